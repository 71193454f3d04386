#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# HPCC++ end to end: tcp_hpccpp, int_reflector and sch_int, as their packets show it.
# shellcheck disable=SC2317 # tests are called by name

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

export TC_LIB_DIR=$BIN		# q_int.so is there

# load [NAME=VALUE...]: the sender anew, as it comes or with parameters
load()
{
	wait_until modprobe -r tcp_hpccpp
	modprobe tcp_hpccpp "$@" || fail "cannot load with $*"
}

modprobe -r tcp_hpccpp int_reflector sch_int 2>/dev/null
for module in tcp_hpccpp int_reflector sch_int; do
	modprobe "$module" || { echo "1..0 # SKIP no module $module"; exit $KSFT_SKIP; }
done

# node NS DEV RATE [INT-OPTIONS...]: a port that stamps, with a shaper below it. With
# all checkers on a packet takes longer than at the rate asked for.
node()
{
	local ns=$1 dev=$2 rate=$3

	shift 3
	virtual || rate=10mbit
	in_ns "$ns" tc qdisc add dev "$dev" root handle 1: int rate "$rate" "$@" || fail "tc int"
	in_ns "$ns" tc qdisc add dev "$dev" parent 1:1 handle 2: htb default 1 direct_qlen 100000
	in_ns "$ns" tc class add dev "$dev" parent 2: classid 2:1 htb rate "$rate" ceil "$rate" \
		burst 1514 cburst 1514 quantum 1514
	in_ns "$ns" tc qdisc add dev "$dev" parent 2:1 bfifo limit 20000000
}

# send [flowgen options]: one flow h1 -> r, IPv4 unless TO says otherwise
send()
{
	in_ns h1 flowgen long --to "${TO:-10.0.0.1}" --timeout 120s --cc hpccpp "$@" \
		>"$TMP/flow.json" || fail "flow failed: $(head -c 500 "$TMP/flow.json")"
}

flow_field()
{
	jq -rs "map(select(.type == \"flow\"))[0].$1" "$TMP/flow.json"
}

# counter NS FILE NAME: of /proc/net
counter()
{
	in_ns "$1" cat "/proc/net/$2" | awk -v n="$3" '$1 == n { print $2 }'
}

# watch RATE FROM TO: qdelay on both sides of sw, counting from FROM to TO; look
# ends it and leaves $TMP/q.json
watch()
{
	local ports

	ports=$(ip -n "${NSP}sw" -br link | awk '$1 ~ /^p[0-9]+@/ { sub(/@.*/, "", $1); print $1 }' | paste -sd,)
	ip netns exec "${NSP}sw" qdelay --live --in "$ports" --out egress --filter tcp --rate "$1" \
		--from "$2" --to "$3" --bin 1ms --json "$TMP/q.json" 2>"$TMP/q.err" &
	WATCH=$!
	wait_until grep -q ready "$TMP/q.err"
}

look()
{
	sleep 0.2
	kill -TERM "$WATCH"
	wait "$WATCH" || fail "qdelay: $(tail -n1 "$TMP/q.err")"
}

seen()
{
	jq ".$1" "$TMP/q.json"
}

end_to_end()
{
	needs_virtual
	dumbbell 1 100us
	node sw egress 10gbit
	serve r
	watch 10gbit 5ms 30ms
	send --size 40M
	look
	expect "utilisation" "$(seen utilisation)" -ge 0.94
	expect "utilisation" "$(seen utilisation)" -le 0.96
	expect "queue, p99, packets" "$(seen qlen_pkts.p99)" -le 5
	expect "packets lost" "$(seen dropped)" -eq 0
	expect "probes answered" "$(counter r int_reflector Answered)" -ge 200
	expect "responses accepted" "$(counter h1 hpccpp Accepted)" -ge $(($(counter r int_reflector Answered) - 1))
}
declare_test end_to_end "H1 H2 H8 H9 H11" "one flow fills 95 % of the link, and the queue stays near zero"

run_tests "$@"
