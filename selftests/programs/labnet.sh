#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests labnet, which builds networks of namespaces from plans.
#
#	h1 eth0 -- p1 sw p2 -- eth0 h2

# shellcheck source=../lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"

# plan: h1 and h2 at sw, 1 Gb/s and 100 us towards h2
plan()
{
	cat <<-END
		{ "prefix": "$NSP",
		  "sysctl": { "net.ipv4.conf.all.forwarding": 1, "net.ipv4.tcp_rmem": "4096 50000 60000" },
		  "nodes": [
		    { "name": "h1", "sysctl": { "net.ipv4.tcp_ecn": 1 },
		      "routes": [ { "to": "default", "via": "10.0.1.254" }, { "to": "fd00:9::/32", "via": "fd00:1::254" } ] },
		    { "name": "sw" },
		    { "name": "h2", "routes": [ { "to": "10.0.1.0/24", "via": "10.0.2.254" } ] } ],
		  "links": [
		    { "ends": [
		        { "node": "h1", "dev": "eth0", "mac": "02:00:00:00:01:01", "addresses": [ "10.0.1.1/24", "fd00:1::1/64" ] },
		        { "node": "sw", "dev": "p1", "addresses": [ "10.0.1.254/24", "fd00:1::254/64" ] } ],
		      "neighbours": true },
		    { "ends": [
		        { "node": "sw", "dev": "p2", "addresses": [ "10.0.2.254/24" ],
		          "rate": "1gbit", "delay": "100us", "queue": "pfifo limit 50" },
		        { "node": "h2", "dev": "eth0", "addresses": [ "10.0.2.1/24" ] } ],
		      "mtu": 9000, "offloads": true, "txqueuelen": 77 } ] }
	END
}

# of NS WORD...: ip's JSON, in that namespace
of()
{
	ip -n "$NSP$1" -d -j "${@:2}"
}

# refused STATUS WHY PLAN: labnet ends so, with one line, and no namespace is left
refused()
{
	local rc NAMESPACES

	labnet - <<<"$3" >"$TMP/said" 2>&1
	rc=$?
	expect "status ($2)" "$rc" -eq "$1"
	expect "lines ($(head -c 1000 "$TMP/said"))" "$(wc -l <"$TMP/said")" -eq 1
	grep -qF "$2" "$TMP/said" || fail "'$2' is not in: $(cat "$TMP/said")"
	our_ns
	expect "namespaces left" ${#NAMESPACES[@]} -eq 0
}

bad_plans()
{
	python3 -c 'import jsonschema' 2>/dev/null || skip "needs python3-jsonschema"
	[ -f "$LOWQ_ROOT/docs/plan.schema.json" ] || skip "the schema is not here"
	python3 "$(dirname "$0")/labnet_plans.py" "$LOWQ_ROOT/docs/plan.schema.json" || fail "see above"
	labnet --check /no/such/plan >"$TMP/said" 2>&1
	expect "status without a file" $? -eq 2
	grep -qx 'labnet: /no/such/plan: No such file or directory' "$TMP/said" || fail "$(cat "$TMP/said")"
}
declare_test bad_plans "" "a plan with a fault is refused with its place and reason in one line; the schema agrees"

built()
{
	plan | labnet - || fail "not built"
	expect "namespaces" "$(cd /run/netns && echo "$NSP"*)" = "${NSP}h1 ${NSP}h2 ${NSP}sw"
	expect "sysctl of all" "$(in_ns h2 sysctl -n net.ipv4.tcp_rmem | tr '\t' ' ')" = "4096 50000 60000"
	expect "sysctl of one" "$(in_ns h1 sysctl -n net.ipv4.tcp_ecn) $(in_ns h2 sysctl -n net.ipv4.tcp_ecn)" = "1 2"
	expect "eth0 of h1" "$(of h1 link show eth0 | jq -r '.[] | "\(.address) \(.mtu) \(.txqlen) \(.gso_max_segs) \(.flags | index("UP") != null)"')" \
		= "02:00:00:00:01:01 1500 10000 1 true"
	expect "eth0 of h2" "$(of h2 link show eth0 | jq -r '.[] | "\(.mtu) \(.txqlen) \(.gso_max_segs)"')" = "9000 77 65535"
	expect "addresses" "$(of h1 addr show eth0 | jq -r '[.[].addr_info[] | select(.scope == "global") | "\(.local)/\(.prefixlen)"] | join(" ")')" \
		= "10.0.1.1/24 fd00:1::1/64"
	expect "routes" "$(of h1 route | jq -r '.[] | select(.gateway) | "\(.dst) \(.gateway)"')" = "default 10.0.1.254"
	expect "IPv6 routes" "$(of h1 -6 route | jq -r '.[] | select(.gateway) | "\(.dst) \(.gateway)"')" = "fd00:9::/32 fd00:1::254"
	# p1 has no MAC address in the plan
	expect "neighbour" "$(of h1 neigh show 10.0.1.254 | jq -r '.[] | "\(.lladdr) \(.state[0])"')" \
		= "$(of sw link show p1 | jq -r '.[].address') PERMANENT"
	expect "queues" "$(tc -n "${NSP}sw" qdisc show dev p2 | awk '{ print $2 }' | sort | paste -sd' ')" = "htb netem pfifo"
	expect "lo" "$(of h2 link show lo | jq -r '.[].flags | index("UP") != null')" = true
	# 99.968 us: netem's steps
	expect "RTT, ms" "$(in_ns h1 ping -qc3 10.0.2.1 | sed -n 's,^rtt.* = \([0-9.]*\)/.*,\1,p')" = 0.099
}
declare_test built "" "namespaces, sysctls, devices, addresses, routes, neighbours and queues are as planned"

# A second plan adds to what an earlier one made.
added()
{
	plan | labnet - || fail "not built"
	labnet - <<-END || fail "not added"
		{ "prefix": "$NSP", "nodes": [ { "name": "sw", "exists": true },
		    { "name": "h3", "routes": [ { "to": "default", "via": "10.0.3.254" } ] } ],
		  "links": [ { "ends": [ { "node": "h3", "dev": "eth0", "addresses": [ "10.0.3.1/24" ] },
		    { "node": "sw", "dev": "p3", "addresses": [ "10.0.3.254/24" ] } ] } ] }
	END
	in_ns h3 ping -qc1 10.0.1.1 >/dev/null || fail "no path from h3 to h1"
}
declare_test added "" "a plan adds nodes and links to those of an earlier one"

# What the kernel or tc refuses: status 1, one line, and nothing is left.
fails_whole()
{
	refused 1 "links[1].ends[0].queue: tc: pfifo: unknown parameter \"limt\"" "$(plan | sed 's/pfifo limit/pfifo limt/')"
	refused 1 "h1: net.ipv4.tcp_ecn = 99: Invalid argument" "$(plan | sed 's/"net.ipv4.tcp_ecn": 1/"net.ipv4.tcp_ecn": 99/')"
	refused 1 "net.ipv4.no_such = 1: No such file" "$(plan | sed 's/"net.ipv4.tcp_ecn"/"net.ipv4.no_such"/')"
	refused 1 "/run/netns/${NSP}h2: No such file" "$(plan | sed 's/"name": "h2"/"name": "h2", "exists": true/')"
	refused 1 "nodes[0].routes[0]: File exists" "$(plan | sed 's,"default","10.0.1.0/24",')"
	# What was there before stays.
	plan | labnet - || fail "not built"
	plan | labnet - >"$TMP/said" 2>&1
	expect "status of the same plan again" $? -eq 1
	expect "said" "$(cat "$TMP/said")" = "labnet: /run/netns/${NSP}h1: File exists"
	in_ns h1 ping -qc1 10.0.2.1 >/dev/null || fail "the first plan's network is broken"
}
declare_test fails_whole "" "what the kernel or tc refuses ends with one line, and nothing of the plan is left"

removed()
{
	local arguments

	plan | labnet - || fail "not built"
	ip netns add "other$NSP" || fail "no namespace"
	serve h2
	in_ns h1 flowgen long --to 10.0.2.1 --duration 1000s >/dev/null 2>&1 &
	wait_until sh -c "ss -N ${NSP}h2 -Htn state established | grep -q ."
	labnet --remove "$NSP" || fail "not removed"
	expect "namespaces left" "$(ip netns list | awk '{ print $1 }')" = "other$NSP"
	wait_until sh -c "! pgrep -x flowgen"
	ip netns del "other$NSP"
	labnet --remove "$NSP" || fail "nothing to remove is no failure"
	for arguments in "--remove" "--remove $NSP -" "--remove a/b" "--remove=*" "--remove= " "--check --dot -" "" "- -"; do
		# shellcheck disable=SC2086 # words
		labnet $arguments </dev/null >"$TMP/said" 2>&1
		expect "status of labnet $arguments" $? -eq 2
		expect "lines: $(cat "$TMP/said")" "$(wc -l <"$TMP/said")" -eq 1
	done
}
declare_test removed "" "--remove ends processes, connections and namespaces of this prefix, and no others"

too_large()
{
	local n=10000

	[ "${LOWQ_LAB:-}" ] || skip "judged by the lab's memory"
	refused 1 "$n nodes and 0 links need about" \
		"{ \"prefix\": \"$NSP\", \"nodes\": [ $(seq -f '{ "name": "n%.0f" }' -s, "$n") ] }"
}
declare_test too_large "" "10,000 nodes do not fit into 2 GB, which one line says before any is made"

# The paths of a fat-tree go over its cores, and back; building it takes one process.
fat_tree()
{
	local before after

	python3 "$(dirname "$0")/labnet_fat_tree.py" 4 "$NSP" >"$TMP/plan" || fail "no plan"
	read -r _ before < <(grep '^processes' /proc/stat)
	labnet "$TMP/plan" || fail "not built"
	read -r _ after < <(grep '^processes' /proc/stat)
	# labnet, and the second grep with its subshell
	expect "processes started" "$((after - before))" -le 3
	in_ns h0-0-0 ping -qc1 10.0.1.1 >/dev/null || fail "no path within the rack"
	in_ns h0-0-0 ping -qc1 10.0.16.1 >/dev/null || fail "no path within the pod"
	# 12 links of 960 ns; the first packet waits for ARP, too
	expect "RTT through the core, ms" "$(in_ns h0-0-0 ping -qc3 10.3.17.1 |
		sed -n 's,^rtt.* = \([0-9.]*\)/.*,\1,p')" = 0.011
}
declare_test fat_tree "" "a fat-tree of 36 nodes and 48 links, with ECMP, is built by one process"

run_tests "$@"
