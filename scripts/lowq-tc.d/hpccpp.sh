# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2154	# options and facts come from lowq-tc
#
# hpccpp: a port that stamps telemetry into probes (sch_int), over a drop-tail queue.

profile hpccpp 'telemetry for HPCC++: the port stamps its load into probes (sch_int)' \
	rtt limit switch-id dscp relative sojourn

option switch-id number
option dscp dscp
option relative flag
option sojourn flag

option flows count

control hpccpp 'HPCC++ over TCP: probes and a receiver that answers them' host_hpccpp \
	rtt flows rate dscp

# T, W_ai = W_init * (1 - eta) / N, the rate at which flows start, and the DSCP
host_hpccpp() {
	needs_module tcp_hpccpp
	needs_service int_reflector
	if has rtt; then
		((opt[rtt] >= 1000 && opt[rtt] <= 1000000000)) ||
			refuse "--rtt ${given[rtt]}: must be 1us to 1s"
		wants_parameter tcp_hpccpp base_rtt_ns "${opt[rtt]}"
	fi
	if has flows; then
		((opt[flows] <= 1000000)) || refuse "--flows ${given[flows]}: must be 1 to 1000000"
		wants_parameter tcp_hpccpp flows "${opt[flows]}"
		wants_parameter int_reflector flows "${opt[flows]}"
	fi
	if has rate; then
		((opt[rate] >= 1000000 && opt[rate] <= 1600000000000)) ||
			refuse "--rate ${given[rate]}: must be 1mbit to 1600gbit"
		wants_parameter tcp_hpccpp line_rate_mbps $((opt[rate] / 1000000))
	fi
	if has dscp; then
		wants_parameter tcp_hpccpp dscp "${opt[dscp]}"
		wants_parameter int_reflector dscp "${opt[dscp]}"
	fi
}

# A number that may be 0.
parse_number() {
	[[ $2 =~ ^[0-9]{1,9}$ ]] || refuse "$1 $2: not a number"
	REPLY=$((10#$2))
}

int_words=()
int_limit=0

hpccpp_compute() {
	local text=

	((rate)) || refuse "$dev tells no link speed: give --rate"
	((rate >= 10000000 && rate <= 1600000000000)) ||
		refuse "--rate ${given[rate]}: sch_int stamps 10mbit to 1600gbit"
	# The counters are a port's: one queue for all of it, not one for each of the NIC's.
	if ((queues > 1)); then
		note "one queue in place of $dev's $queues: what is stamped is the whole port's load, and probes wait where data waits"
		queues=1
	fi
	fmt_rate "$rate"
	record rate_bps "$rate"
	int_words=(rate "$REPLY")
	text="stamps as a port of $REPLY"
	if has switch-id; then
		((opt[switch-id] >= 1 && opt[switch-id] <= 4095)) ||
			refuse "--switch-id ${given[switch-id]}: must be 1 to 4095"
		int_words+=(switch-id "${opt[switch-id]}")
		record switch_id "${opt[switch-id]}"
		text+=", switch ID ${opt[switch-id]}"
	else
		note "no --switch-id: one made from the address of $dev; two alike on a path hide a change of path"
	fi
	if has dscp; then
		int_words+=(dscp "${opt[dscp]}")
		note "the hosts need it, too: lowq-tc host hpccpp --dscp ${given[dscp]}"
	fi
	record dscp "${opt[dscp]:-23}"
	if has relative; then
		int_words+=(relative)
		text+=', its real rate hidden'
	fi
	if has sojourn; then
		int_words+=(sojourn)
		text+=', queue as the wait of the probe'
	fi
	explain "$text; probes have DSCP ${param[dscp]}"
	tc_offers int rate
	settle_limit $((rate_k * 10 / 8000 > frame ? rate_k * 10 / 8000 : frame)) '10 us at the rate'
	int_limit=$limit
	if ((!shape && !software)); then
		note "what waits in the ring of $dev is not in the queue that is stamped: make it short, or shape a little below the line rate (--shape)"
	fi
}

hpccpp_tree() {	# PLACE HANDLE
	add_qdisc "$1" "$2" int "${int_words[@]}"
	add_qdisc "parent $2:1" '' bfifo limit "$int_limit"
}
