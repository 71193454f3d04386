# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2154	# options and facts come from lowq-tc
#
# prague: a queue for L4S. What is ECT(1) is marked at a very short delay; the rest
# has a queue and a law of its own, coupled to it (dualpi2, RFC 9332), or of its
# flow (fq_codel).

profile prague 'L4S: ECT(1) marked at 1 ms or less, the rest apart (RFC 9332)' \
	limit aqm step step-min target coupling

option aqm word
option step time
option step-min count
option target time
option coupling count

control prague 'Prague for L4S' host_prague

# Accurate ECN in both directions: the module asks for it as a client, but a server
# agrees for other controls only if the sysctl does.
host_prague() {
	needs_module tcp_prague
	wants_ecn 3 4 5
	wants_sysctl net.ipv4.tcp_ecn_option 2
	wants_sysctl net.ipv4.tcp_ecn_fallback 1
}

prague_words=()

prague_compute() {
	local aqm=${opt[aqm]:-dualpi2} known name

	[[ $aqm == @(dualpi2|fq_codel) ]] || refuse "--aqm $aqm: dualpi2 or fq_codel"
	record aqm "$aqm"
	record rate_bps "$rate"
	prague_words=()
	if [[ $aqm == fq_codel ]]; then
		prague_fq_codel
		return
	fi
	# A tc that does not know dualpi2 can still add it, as it comes.
	known=$(tc qdisc add dev lo root dualpi2 help 2>&1)
	if [[ $known != *step_thresh* && -e $here/../lib/lowq/q_dualpi2.so ]]; then
		export TC_LIB_DIR=$here/../lib/lowq
		known=$(tc qdisc add dev lo root dualpi2 help 2>&1)
		note "tc knows dualpi2's options by a plugin: TC_LIB_DIR=$TC_LIB_DIR"
	fi
	if [[ $known == *step_thresh* ]]; then
		prague_dualpi2
		return
	fi
	for name in limit step step-min target coupling; do
		! has "$name" || not_honoured "--$name ${given[$name]}: this tc ($(tc -V 2>&1 | sed 's/.*iproute2-//; s/,.*//')) does not know dualpi2's options; it has the kernel's"
	done
	explain "dualpi2 as the kernel sets it: ECT(1) marked above 1 ms, target 15 ms for the rest, coupling factor 2, limit 10000 packets"
}

prague_dualpi2() {
	local packets

	if has limit; then
		to_bytes limit
		packets_of "$REPLY"
		packets=$REPLY
		prague_words+=(limit "$packets")
	fi
	! has step || prague_words+=(step_thresh "$((opt[step] / 1000))us")
	! has step-min || prague_words+=(min_qlen_step "${opt[step-min]}")
	! has target || prague_words+=(target "$((opt[target] / 1000))us")
	! has coupling || prague_words+=(coupling_factor "${opt[coupling]}")
	explain "dualpi2${prague_words[*]:+, ${prague_words[*]}}; what is not given is the kernel's"
}

prague_fq_codel() {
	local step=${opt[step]:-1000000} packets=10240

	! has coupling || refuse "--coupling goes with --aqm dualpi2"
	! has step-min || refuse "--step-min goes with --aqm dualpi2"
	tc_offers fq_codel ce_threshold_selector
	if has limit; then
		to_bytes limit
		packets_of "$REPLY"
		packets=$REPLY
	fi
	prague_words=(limit "$packets" ecn ce_threshold "$((step / 1000))us"
		ce_threshold_selector 0x01/0x03)
	if has target; then
		prague_words+=(target "$((opt[target] / 1000))us" interval "$((opt[target] / 50))us")
	fi
	record step_ns "$step"
	fmt_time "$step"
	explain "fq_codel: a queue for each flow; ECT(1) that waited longer than $REPLY is marked, CoDel's law above that"
	note "CoDel's law marks ECT(1) too, when its target is missed for long"
}

prague_tree() {	# PLACE HANDLE
	add_qdisc "$1" "$2" "${param[aqm]}" "${prague_words[@]}"
}
