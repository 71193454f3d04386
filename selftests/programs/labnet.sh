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
		{ "prefix": "$NSP", "exact": false,
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
	grep -qF "$2" "$TMP/said" || fail "'$2' is not in: $(<"$TMP/said")"
	our_ns
	expect "namespaces left" ${#NAMESPACES[@]} -eq 0
}

bad_plans()
{
	/usr/bin/python3 "$(dirname "$0")/labnet_plans.py" || fail "see above"
	labnet --check /no/such/plan >"$TMP/said" 2>&1
	expect "status without a file" $? -eq 2
	grep -qx 'labnet: /no/such/plan: No such file or directory' "$TMP/said" || fail "$(<"$TMP/said")"
}
declare_test bad_plans "" "a plan with a fault is refused with its place and reason in one line"

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

# A queue in lowq-tc's words is what lowq-tc would set, below the link's delay.
profiles()
{
	local PATH=$LOWQ_ROOT/scripts:$PATH words

	[ -x "$LOWQ_ROOT/scripts/lowq-tc" ] || skip "no lowq-tc here"
	for words in "dctcp --rtt 200us" "dctcp --rtt 200us --nodrop --exact" "ldcp --rtt 200us" "ldcp --rtt 200us --exact" \
		prague; do
		plan | jq --arg queue "lowq-tc $words" '.links[1].ends[0].queue = $queue | del(.links[1].txqueuelen) | .links += [ { rate: "1gbit", ends: [
			{ node: "sw", dev: "same", queue: $queue }, { node: "h2", dev: "other" } ], mtu: 9000, offloads: true } ]' >"$TMP/plan"
		labnet "$TMP/plan" || fail "not built"
		# as lowq-tc numbers them
		tc -d -n "${NSP}sw" qdisc show dev p2 | grep -v netem | sed 's/dev p2 //; s/parent 3:1/root refcnt 2/' | sort >"$TMP/is"
		tc -d -n "${NSP}sw" qdisc show dev same | sed 's/dev same //' | sort >"$TMP/without"
		tc -n "${NSP}sw" qdisc del dev same root	# lowq-tc replaces no queue of others
		# shellcheck disable=SC2086 # words
		LOWQ_STATE_DIR=$TMP/state in_ns sw lowq-tc --no-rehearsal -q ${words%% *} same --rate 1gbit --shape ${words#"${words%% *}"} || fail "lowq-tc $words"
		tc -d -n "${NSP}sw" qdisc show dev same | sed 's/dev same //; s/10f0:/1:/g; s/10f1:/2:/g' | sort >"$TMP/alone"
		diff "$TMP/is" "$TMP/without" >"$TMP/diff" || fail "$words below a delay: $(<"$TMP/diff")"
		diff "$TMP/is" "$TMP/alone" >"$TMP/diff" || fail "$words: $(<"$TMP/diff")"
		# with the queue itself and not an average of two lengths, nowhere else
		expect "weights of $words" "$(grep -o 'ewma [0-9]*' "$TMP/is" | sort -u | paste -sd,)" = \
			"$(case $words in *--exact) echo ewma 0 ;; prague) ;; *) echo ewma 1 ;; esac)"
		labnet --remove "$NSP"
	done
	refused 1 "links[1].ends[0].queue: lowq-tc: " "$(plan | jq '.links[1].ends[0].queue = "lowq-tc nothing"')"
}
declare_test profiles "" "a queue in lowq-tc's words is what lowq-tc sets"

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
	refused 1 "modules.tcp_no_such: modprobe: FATAL: Module tcp_no_such not found" "$(plan | jq '.modules.tcp_no_such = {}')"
	refused 1 "modules.tcp_ldcp.no_such: No such file" "$(plan | jq '.modules.tcp_ldcp.no_such = 1')"
	refused 1 "net.ipv4.no_such = 1: No such file" "$(plan | sed 's/"net.ipv4.tcp_ecn"/"net.ipv4.no_such"/')"
	refused 1 "/run/netns/${NSP}h2: No such file" "$(plan | sed 's/"name": "h2"/"name": "h2", "exists": true/')"
	refused 1 "nodes[0].routes[0]: File exists" "$(plan | sed 's,"default","10.0.1.0/24",')"
	# What was there before stays.
	plan | labnet - || fail "not built"
	plan | labnet - >"$TMP/said" 2>&1
	expect "status of the same plan again" $? -eq 1
	expect "said" "$(<"$TMP/said")" = "labnet: /run/netns/${NSP}h1: File exists"
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
	for arguments in "--remove" "--remove $NSP -" "--remove a/b" "--remove=*" "--remove= " "--check --dot -" "--check --zero 1s -" "" "- -"; do
		# shellcheck disable=SC2086 # words
		labnet $arguments </dev/null >"$TMP/said" 2>&1
		expect "status of labnet $arguments" $? -eq 2
		expect "lines: $(<"$TMP/said")" "$(wc -l <"$TMP/said")" -eq 1
	done
}
declare_test removed "" "--remove ends processes, connections and namespaces of this prefix, and no others"

# flows FILTER: jq over all lines of results
flows()
{
	jq -rs "$1" "$TMP/flows"
}

# One flowgen serves and sends in all namespaces, what the plan says and nothing else.
traffic()
{
	plan | jq '.links[1].rate = "1gbit" | .traffic = [
		{ kind: "long", from: "h*", to: ["h2", "h1"], size: "100k", label: "bulk", stagger: "1ms" },
		{ kind: "requests", from: "h1", to: "h2", size: 5000, closed: 2, flows: 7, persist: true },
		{ kind: "flows", from: "h*", to: "h*", size: 10000, rate: 1000, periodic: true, flows: 20, control: "reno" },
		{ kind: "incast", from: ["h1", "sw"], to: "h2", size: 3000, rounds: 2, fan: 5 },
		{ kind: "list", start: "50ms", flows: [
			{ from: "h2", to: "h1", size: 70, start: "2ms", control: "reno" }, { from: "h1", to: "h2", size: 60 },
			{ from: "h1", to: "sw", size: 80, start: "1ms" } ] } ]' >"$TMP/plan"
	labnet "$TMP/plan" || fail "not built"
	flowgen plan "$TMP/plan" --zero "$(awk '{ print $1 + 1 }' /proc/uptime)s" >"$TMP/flows" || fail "$(head -n1 "$TMP/flows")"
	expect "summary" "$(flows '.[-1] | "\(.type) \(.flows) \(.ok) \(.bytes)"')" = "summary 42 42 $((200000 + 35000 + 200000 + 30000 + 210))"
	expect "long" "$(flows '[.[] | select(.kind == "long") | "\(.label) \(.client) \(.server) \(.size) \(.dir)"] | sort | join(",")')" \
		= "bulk ${NSP}h1 h2 100000 push,bulk ${NSP}h2 h1 100000 push"
	expect "requests" "$(flows '[.[] | select(.kind == "requests") | "\(.client) \(.server) \(.dir) \(.src)"] | unique | join(",")')" \
		= "${NSP}h2 h1 pull 10.0.2.1"
	expect "connections kept" "$(flows '[.[] | select(.kind == "requests") | .sport] | unique | length')" -eq 2
	expect "both ways" "$(flows '[.[] | select(.kind == "flows") | .client] | unique | length')" -eq 2
	expect "controls" "$(flows '[.[] | select(.type == "flow") | "\(.kind) \(.cc) \(.dport)"] | unique | join(",")')" \
		= "flows reno 5202,incast cubic 5201,list cubic 5201,list reno 5202,long cubic 5201,requests cubic 5201"
	expect "rounds" "$(flows '[.[] | select(.type == "round") | "\(.fan) \(.ok)"] | join(",")')" = "5 5,5 5"
	expect "answers of each" "$(flows '[.[] | select(.kind == "incast" and .type == "flow") | .server] | group_by(.) | map(length) | join(",")')" = 6,4
	virtual || return 0
	# connect() ends with an error, EINPROGRESS, which costs 1 us of virtual time
	expect "start of the list, ms" "$(flows '([.[] | select(.kind == "list") | .start_ns] | min) - .[-1].start_ns | . / 1e6 | round')" -eq 50
	expect "starts within it, ms" "$(flows '[.[] | select(.kind == "list")] | sort_by(.id) | map(.start_ns) |
		[.[0] - .[1], .[2] - .[1]] | map(. / 1e6 | round) | join(",")')" = 2,1
}
declare_test traffic "" "one flowgen sends a plan's traffic of each kind, with its nodes, sizes, times and controls"

# A share of a tier: 2 of 3 flows between three hosts cross the link that h3 is behind, one of h3's 2 directions
load()
{
	plan | jq '.links += [ { tier: "far", rate: "100mbit", ends: [ { node: "sw", dev: "p3", addresses: ["10.0.3.254/24"] },
		{ node: "h3", dev: "eth0", addresses: ["10.0.3.1/24"] } ] } ] |
		.nodes += [ { name: "h3", routes: [ { to: "default", via: "10.0.3.254" } ] } ] | .nodes[2].routes[0].to = "default" |
		.traffic = [ { kind: "flows", from: "h*", to: "h*", size: 12500, load: { tier: "far", share: 0.5 }, periodic: true, flows: 30 } ]' >"$TMP/plan"
	labnet "$TMP/plan" || fail "not built"
	flowgen plan "$TMP/plan" --seed 3 >"$TMP/flows" || fail "$(head -n1 "$TMP/flows")"
	# half of 2 x 100 Mb/s, by 4 of 6 pairs: 150 Mb/s, a flow each 667 us
	expect "us from flow to flow" "$(flows '[.[] | select(.type == "flow") | .start_ns] | sort | (.[-1] - .[0]) / 29 / 1e3 | round')" -eq 667
}
declare_test load "" "a load on a tier becomes a rate of flows by the plan's routes"

# observe PLAN: runs its traffic with its queues observed: $TMP/flows, $TMP/queues, $TMP/series, $TMP/rates
observe()
{
	local zero

	zero=$(awk '{ print $1 + 2 }' /proc/uptime)s
	qdelay --plan "$1" --zero "$zero" --json "$TMP/queues" --series "$TMP/series" --flow-series "$TMP/rates" 2>"$TMP/said" &
	wait_until grep -q ready "$TMP/said"
	flowgen plan "$1" --zero "$zero" >"$TMP/flows" || fail "$(head -n1 "$TMP/flows")"
	sleep 0.1	# the last ACKs and resets
	kill -INT $!
	wait $! || fail "$(<"$TMP/said")"
}

# What one qdelay for all queues says of a queue is what a qdelay for that queue alone says: packets, marks,
# losses, delay less the link's. The queues of a switch take no packet from each other.
observed()
{
	local at

	needs_virtual
	plan | jq '.links[1].ends[0].queue = "red limit 90000 min 9000 max 9001 avpkt 1500 burst 7 ecn bandwidth 1gbit" |
		.links[1].offloads = false | .links[1].mtu = 1500 | .links[0].rate = "2gbit" | .sysctl["net.ipv4.tcp_ecn"] = 1 |
		.traffic = [ { kind: "long", from: "h1", to: "h2", size: "2M", flows: 4, control: "reno" },
			{ kind: "long", from: "h2", to: "h1", size: "500k" } ] |
		.observe = { queues: [ { node: "sw" } ], bin: "10ms", from: "1ms", to: "30ms", buffer: 1 }' >"$TMP/plan"
	at=$(awk '{ print int($1) + 2 }' /proc/uptime)
	labnet --zero "${at}s" "$TMP/plan" || fail "not built"
	expect "queues are made at --zero" "$(awk -v at="$at" '{ print ($1 >= at && $1 < at + 0.1) }' /proc/uptime)" -eq 1
	observe "$TMP/plan"
	expect "queues" "$(jq -r '[.queues[] | "\(.node) \(.dev)"] | join(",")' "$TMP/queues")" = "sw p1,sw p2"
	expect "duration" "$(jq '.queues[1].duration_ns' "$TMP/queues")" -eq 29000000
	expect "rows of each" "$(sed 1d "$TMP/series" | cut -d, -f1,2 | sort | uniq -c | awk '{ print $1, $2 }' | paste -sd,)" = "3 sw,p1,3 sw,p2"
	expect "rows whose flows together have another rate" "$(awk -F, 'FNR == 1 { next } NR == FNR { sum[$1, $2, $3] += $5; next }
		(sum[$1, $2, $3] - $4) ^ 2 > 1 { n++ } END { print n + 0 }' "$TMP/rates" "$TMP/series")" -eq 0
	expect "marked" "$(jq '.queues[1].marked > 100 and .queues[0].marked == 0' "$TMP/queues")" = true
	# with losses, and the same window for both
	tc -n "${NSP}sw" qdisc replace dev p2 parent 1:1 handle 4: pfifo limit 40 || fail "no pfifo"
	jq '.observe |= { queues: [ { node: "sw", dev: "p2" } ] }' "$TMP/plan" >"$TMP/whole"
	in_ns sw qdelay --live --in p1 --out p2 --rate 1gbit --duration 4s --json "$TMP/alone" 2>"$TMP/ready" &
	wait_until grep -q ready "$TMP/ready"
	observe "$TMP/whole"
	wait
	expect "one queue" "$(jq '.queues | length' "$TMP/queues")" -eq 1
	expect "losses" "$(jq '.queues[0].dropped > 20' "$TMP/queues")" = true
	diff <(jq -S "$SAME" "$TMP/alone") <(jq -S ".queues[0] | $SAME" "$TMP/queues") >"$TMP/diff" || fail "not the same: $(head -n 12 "$TMP/diff")"
	expect "the link's delay, ns" "$(jq -s '(.[0].delay_us.p50 - .[1].queues[0].delay_us.p50) * 1e3 | round' "$TMP/alone" "$TMP/queues")" -eq 99968
}
declare_test observed "" "one qdelay for all queues of a plan says of each what a qdelay of its own says"

#	h1 -- a -- b -- h2
# A node's window is its own: what a plan with two says of each is what a plan with that window for all says.
windows()
{
	local zero name

	needs_virtual
	jq -n --arg prefix "$NSP" '
		def link(a; b; net): { ends: [ { node: a, dev: "to-\(b)", addresses: [ "10.9.\(net).1/24" ] },
			{ node: b, dev: "to-\(a)", addresses: [ "10.9.\(net).2/24" ] } ], neighbours: true };
		{ prefix: $prefix, sysctl: { "net.ipv4.conf.all.forwarding": 1 },
		nodes: [ { name: "h1", routes: [ { to: "default", via: "10.9.1.2" } ] },
			{ name: "a", routes: [ { to: "default", via: "10.9.2.2" } ] },
			{ name: "b", routes: [ { to: "10.9.1.0/24", via: "10.9.2.1" } ] },
			{ name: "h2", routes: [ { to: "default", via: "10.9.3.1" } ] } ],
		links: [ link("h1"; "a"; 1), link("a"; "b"; 2) + { rate: "100mbit" }, link("b"; "h2"; 3) ],
		traffic: [ { kind: "long", from: "h1", to: "h2", duration: "100ms", control: "reno" } ],
		observe: { queues: [ { node: "a", dev: "to-b", from: "10ms", to: "40ms" }, { node: "b", dev: "to-h2" } ],
			from: "50ms", to: "60ms", bin: "5ms" } }' >"$TMP/plan"
	jq '.observe.queues[0] |= del(.from, .to)' "$TMP/plan" >"$TMP/b"
	jq '.observe.queues[0] |= del(.from, .to) | .observe += { from: "10ms", to: "40ms" }' "$TMP/plan" >"$TMP/a"
	labnet "$TMP/plan" || fail "not built"
	zero=$(awk '{ print $1 + 2 }' /proc/uptime)s
	for name in a b plan; do
		qdelay --plan "$TMP/$name" --zero "$zero" --json "$TMP/$name.queues" --series "$TMP/$name.series" 2>"$TMP/$name.said" &
		wait_until grep -q ready "$TMP/$name.said"
	done
	flowgen plan "$TMP/plan" --zero "$zero" >"$TMP/flows" || fail "$(head -n1 "$TMP/flows")"
	# shellcheck disable=SC2046 # PIDs
	kill -INT $(jobs -p)
	wait
	expect "windows, ms" "$(jq -r '[.queues[] | "\(.node) \(.duration_ns / 1e6)"] | join(",")' "$TMP/plan.queues")" = "a 30,b 10"
	expect "packets" "$(jq '[.queues[].packets_in] | .[0] > 200 and .[1] > 70' "$TMP/plan.queues")" = true
	for name in a b; do
		diff <(jq -S ".queues[] | select(.node == \"$name\")" "$TMP/$name.queues") \
			<(jq -S ".queues[] | select(.node == \"$name\")" "$TMP/plan.queues") >"$TMP/diff" || fail "$name: $(head -n 12 "$TMP/diff")"
		diff <(grep "^$name," "$TMP/$name.series") <(grep "^$name," "$TMP/plan.series") >"$TMP/diff" || fail "$name: $(head -n 12 "$TMP/diff")"
	done
	expect "first rows" "$(awk -F, 'NR > 1 && !seen[$1]++ { print $1, $3 * 1000 }' "$TMP/plan.series" | sort | paste -sd,)" = "a 10,b 50"
}
declare_test windows "" "each node that a plan observes can have its own window"

# What does not depend on the instant at which a qdelay was ended, or on the link's delay
SAME='{ packets_in, packets_out, bytes_out, matched, dropped, unmatched_out, marked, ecn, jain,
	flows: [ .flows[] | { flow, packets, packets_in, bytes, payload_bytes, marked, dropped, retransmitted } ] }'

# mbps NODE MS: throughput of the node's queue in these 10 ms
mbps()
{
	awk -F, -v node="$1" -v from="$2" '$1 == node && $3 * 1000 + 0.5 >= from && $3 * 1000 < from + 9.5 { printf "%.0f\n", $4 / 1e6 }' "$TMP/series"
}

#	    /-- a --\
#	  h1         h2	a rate changes, then the route, then a link goes down and comes back
#	    \-- b --/
events()
{
	needs_virtual
	jq -n --arg prefix "$NSP" '
		def link(a; b; net): { ends: [ { node: a[0], dev: a[1], addresses: [ "10.9.\(net).1/24" ] },
			{ node: b[0], dev: b[1], addresses: (if b[0] == "h2" and net == 3 then [ "10.9.9.9/32" ] else [] end + [ "10.9.\(net).2/24" ]) } ],
			neighbours: true } | if b[0] == "h2" then .ends[0] += { rate: "1gbit", delay: "10us", queue: "pfifo limit 100" } else . end;
		{ prefix: $prefix, sysctl: { "net.ipv4.conf.all.forwarding": 1, "net.ipv4.tcp_rto_min_us": 5000 },
		nodes: [ { name: "h1", routes: [ { to: "10.9.9.9/32", via: "10.9.1.2" } ] },
			{ name: "h2", routes: [ { to: "default", via: "10.9.3.1" } ] },
			{ name: "a", routes: [ { to: "10.9.9.9/32", via: "10.9.3.2" } ] },
			{ name: "b", routes: [ { to: "10.9.9.9/32", via: "10.9.4.2" } ] } ],
		links: [ link(["h1", "e0"]; ["a", "up"]; 1), link(["h1", "e1"]; ["b", "up"]; 2), link(["a", "down"]; ["h2", "e0"]; 3),
			link(["b", "down"]; ["h2", "e1"]; 4) ],
		traffic: [ { kind: "long", from: "h1", to: "h2", duration: "300ms", control: "reno" } ],
		observe: { queues: [ { node: "[ab]", dev: "down" } ], bin: "10ms" },
		events: [ { at: "100ms", node: "h2", dev: "e1", up: false }, { at: "40ms", node: "a", dev: "down", rate: "100mbit" },
			{ at: "60ms", node: "h1", route: { to: "10.9.9.9/32", via: "10.9.2.2" } },
			{ at: "140ms", node: "b", dev: "down", up: true }, { at: "200ms", node: "b", dev: "down", delay: "3ms" } ] }' >"$TMP/plan"
	labnet "$TMP/plan" || fail "not built"
	labnet --events --zero "$(awk '{ print $1 + 2 }' /proc/uptime)s" "$TMP/plan" 2>"$TMP/events" &
	observe "$TMP/plan"
	wait
	expect "events" "$(<"$TMP/events")" = ""
	expect "before, Mb/s" "$(mbps a 20)" -ge 990
	expect "at a tenth of the rate, Mb/s" "$(mbps a 50)" -le 101
	expect "after the route has changed, Mb/s" "$(mbps b 80)" -ge 990
	expect "on the other path, Mb/s" "$(mbps a 80)" -eq 0
	expect "while the link is down, Mb/s" "$(mbps b 120)" -eq 0
	expect "when it is up again, Mb/s" "$(mbps b 190)" -ge 990
	expect "delay of b, ms" "$(in_ns h1 ping -qc1 -I 10.9.1.1 10.9.9.9 | sed -n 's,^rtt.* = \([0-9]*\).*,\1,p')" -eq 3
	printf '{ "prefix": "%s", "nodes": [ { "name": "no" } ], "events": [ { "at": "0", "node": "no", "route": {
		"to": "default", "via": "10.0.0.1" } } ] }' "$NSP" | labnet --events - >"$TMP/said" 2>&1
	expect "status of a wrong event" $? -eq 2
	labnet --events --dot "$TMP/plan" >"$TMP/said" 2>&1
	expect "status of wrong usage" $? -eq 2
}
declare_test events "" "rates, routes, delays and links change at the plan's times"

# The memory for captures is one budget, which a fabric's nodes share or which is refused.
budget()
{
	python3 "$LIB/fat_tree.py" 4 "$NSP" | jq '.observe = { queues: [ { node: "[eac]*" } ], buffer: 4 }' >"$TMP/plan"
	qdelay --plan "$TMP/plan" >"$TMP/said" 2>&1
	expect "status" $? -eq 1
	expect "said" "$(<"$TMP/said")" = "qdelay: observe.buffer: 4 MiB are too few for 20 nodes: at least 6"
	jq '.observe.buffer = 60000' "$TMP/plan" | qdelay --plan - >"$TMP/said" 2>&1
	expect "status" $? -eq 1
	grep -qx 'qdelay: observe.buffer: 60000 MiB do not fit: at most half of the [0-9]* MiB of memory that are available' "$TMP/said" ||
		fail "$(<"$TMP/said")"
}
declare_test budget "" "captures of all devices share one budget; one line says where it cannot fit"

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

	python3 "$LIB/fat_tree.py" 4 "$NSP" >"$TMP/plan" || fail "no plan"
	read -r _ before < <(grep '^processes' /proc/stat)
	labnet "$TMP/plan" || fail "not built"
	read -r _ after < <(grep '^processes' /proc/stat)
	# labnet, and the second grep with its subshell
	expect "processes started" "$((after - before))" -le 3
	in_ns h0-0-0 ping -qc1 10.0.1.1 >/dev/null || fail "no path within the rack"
	in_ns h0-0-0 ping -qc1 10.0.16.1 >/dev/null || fail "no path within the pod"
	# 12 links of 960 ns, each with 98 bytes at 10 Gb/s; the first packet waits for ARP, too
	expect "RTT through the core, ms" "$(in_ns h0-0-0 ping -qc3 10.3.17.1 |
		sed -n 's,^rtt.* = \([0-9.]*\)/.*,\1,p')" = 0.012
}
declare_test fat_tree "" "a fat-tree of 36 nodes and 48 links, with ECMP, is built by one process"

# The end of a link that came up first can send only once a kworker has seen the other end come up. That waits while
# namespaces are being removed.
active()
{
	local up ns i

	[[ $(uname -r) != [1-6].* ]] || skip "Linux $(uname -r) has no way to hasten it"
	for i in 1 2 3 4; do
		python3 "$LIB/fat_tree.py" 4 "${NSP}x" >"$TMP/plan" && labnet "$TMP/plan" || fail "no fat-tree"
		labnet --remove "${NSP}x"
		plan | labnet - || fail "not built"
		up=0
		for ns in h1 sw h2; do	# all of a namespace: to ask about one device makes its state known
			up=$((up + $(ip -n "$NSP$ns" -o link | grep -c 'state UP')))
		done
		expect "devices that are up at once, of 4" "$up" -eq 4
		teardown
	done
}
declare_test active "" "when labnet ends all devices can send, also while other namespaces are being removed"

run_tests "$@"
