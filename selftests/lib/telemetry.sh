# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# HPCC++'s hosts and nodes; needs lib.sh.

tc_has_int || skip_all "tc has no q_int.so (see TC_LIB_DIR)"

# Modules that a test has removed are loaded again for the next.
eval "lib_$(declare -f teardown)"
teardown()
{
	local module

	lib_teardown
	for module in sch_int int_reflector tcp_hpccpp; do
		[ -d "/sys/module/$module" ] || modprobe "$module"
	done
}

under_test hpccpp
modprobe -a -r int_reflector sch_int 2>/dev/null
modprobe -a int_reflector sch_int || skip_all "no module int_reflector or sch_int"
# shellcheck disable=SC2034 # for the scripts
REFLECTOR=/sys/module/int_reflector/parameters
# shellcheck disable=SC2034
INT_HOST=/sys/module/int_host/parameters
# A capture's filter: TCP packets that have PSH as their only flag, as HPCC++'s messages do
# shellcheck disable=SC2034 # for the scripts
MESSAGES='tcp[13] == 8 or ip6[53] == 8'

# node NS DEV RATE [INT-OPTIONS...]: makes a port that stamps, with a shaper below it. With all
# checkers on, packets take more CPU time than high rates allow.
node()
{
	local ns=$1 dev=$2 rate=$3

	shift 3
	virtual || rate=10mbit
	in_ns "$ns" tc qdisc add dev "$dev" root handle 1: int rate "$rate" "$@" || fail "tc int"
	shaper "$ns" "$dev" "$rate" parent 1:1 handle 2:
	in_ns "$ns" tc qdisc add dev "$dev" parent 2:1 bfifo limit 20000000
}

# counter NS FILE NAME: a counter in /proc/net/FILE
counter()
{
	in_ns "$1" sed -n "s/^$3 //p" "/proc/net/$2"
}

# seen NAME: a value of the result that observed has left
seen()
{
	jq ".$1" "$TMP/q.json"
}

# chain N [RTT]: h1 -- s1 -- ... -- sN -- r; s1 delays packets to h1. Every node's device towards r
# is its "egress", towards h1 its "ingress". Neighbours as in net().
chain()
{
	# shellcheck disable=SC2034 # net.sh's
	local n=$1 rtt=${2:-100us} i PLAN=1

	roomy
	add_ns h1
	add_ns r
	for ((i = 1; i <= n; i++)); do
		add_ns "s$i"
	done
	net 1 h1 eth0 s1 ingress "$rtt"
	net 0 r eth0 "s$n" egress
	for ((i = 1; i < n; i++)); do
		inner "s$i" egress "s$((i + 1))" ingress "10.1.$i"
		route "s$i" 10.0.0.0/24 "10.1.$i.2"
		route "s$((i + 1))" 10.0.1.0/24 "10.1.$i.1"
	done
	PLAN='' build_plan
}

# results RESULT: the number of samples in $TMP/trace with this result (enum hpccpp_result)
results()
{
	grep -c "hpccpp_sample:.* result=$1 " "$TMP/trace"
}
