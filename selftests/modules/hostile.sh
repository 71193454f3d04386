#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Hostile input, by module: what anybody on the network can send, and everything that can
# go away while packets are held. Nothing may break, answer more than was asked, or slow
# down a flow that goes on meanwhile. FULL=1 takes longer, with more of each.
# shellcheck disable=SC2317 # tests are called by name

# shellcheck source=../lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
# shellcheck source=../lib/rdma.sh
. "$LIB/rdma.sh"

# A hostile host sends 100,000 packets a second for this time
if [ "${FULL:-}" ]; then
	FLOOD=1000000 FLOOD_S=10 AWAY=1000
else
	FLOOD=4000 FLOOD_S=0.04 AWAY=10
	# each way to go once
	[ "${LOWQ_LAB:-}" != debug ] || AWAY=5
fi
# in real time a client takes seconds to start: fewer, with more queue pairs each
AWAY_QPS=1
virtual || { AWAY=$((AWAY > 10 ? AWAY / 10 : AWAY)) AWAY_QPS=10; }

# --- roce_rcm --------------------------------------------------------------
#
# h1 and r talk, h2 is hostile. It sends packets that are marked CE, and CNPs.

# roce_fresh [NAME=VALUE...]: the module, loaded again
roce_fresh()
{
	command -v rocegen >/dev/null || skip "no rocegen (needs libibverbs-dev)"
	[ ! -d "$RCM_PARAM" ] || rmmod roce_rcm || fail "cannot unload roce_rcm"
	modprobe roce_rcm "$@" || fail "cannot load roce_rcm $*"
}

# flood_from NS DEV TO_MAC [cnp.py send's options]: to r, as if from h1 unless told otherwise
flood_from()
{
	in_ns "$1" python3 "$LIB/cnp.py" send --src 10.0.1.1 --dst 10.0.0.1 --tos 3 \
		--dev "$2" --from-mac "$(mac_of "$1" "$2")" --to-mac "$3" --rate 100000 "${@:4}" ||
		fail "cnp.py ${*:4}"
}

# flood [cnp.py send's options]: from h2, by way of the router
flood()
{
	flood_from h2 eth0 "$(mac_of sw p2)" "$@"
}

# on_link MAC [cnp.py send's options]: from the router, on r's own link
on_link()
{
	flood_from sw egress "$@"
}

# answers: packets of RoCEv2 that r has sent so far, by nftables
answers()
{
	in_ns r nft -j list counter inet answers sent | jq '.nftables[] | .counter? | select(. != null).packets'
}

count_answers()
{
	in_ns r nft -f - <<-END || skip "no nft"
		table inet answers {
			counter sent { }
			chain out {
				type filter hook postrouting priority 0
				udp dport 4791 counter name sent
			}
		}
	END
}

# ud_serve: r has a UD queue pair that receives; its number is in QP
ud_serve()
{
	(fail() { :; }; roce h1 ud-send --duration 30s) &
	wait_until known_at ::ffff:10.0.1.1
	QP=$(rdma res show qp link "${NSP}r/1" | sed -n 's/.* lqpn \([0-9]*\) .*type UD .*/\1/p' | tail -n1)
	[ -n "$QP" ] || fail "r has no UD queue pair: $(rdma res show qp)"
}

# A host without a soft-RoCE device answers nothing, asks nobody, and takes no RTNL.
roce_no_device()
{
	local opcode

	needs_virtual
	roce_fresh
	dumbbell 2 20us
	count_answers
	for opcode in 0x64 0x24 0x04; do
		flood --qp 2-16777215 --opcode "$opcode" --count "$FLOOD"
		flood --qp 17 --opcode "$opcode" --icrc bad --count 500
	done
	expect "marked packets that came" "$(rcm_counter ce_received)" -ge $((FLOOD * 3))
	expect "answers" "$(answers)" -eq 0
	expect "questions about queue pairs" "$(rcm_counter asked)" -eq 0
	expect "questions about a line, with RTNL" "$(rcm_counter asked_line)" -eq 0
	expect "entries in the table" $(($(rcm_counter local_qps) + $(rcm_counter remote_qps))) -eq 0
}
declare_test roce_no_device "R12" "roce_rcm: no answer, no question, no RTNL on a host without a soft-RoCE device"

# Spoofed datagrams are answered if they are for a UD queue pair that exists, within
# cnp_limit in all, whatever their sources.
roce_reflection()
{
	local sent most

	needs_virtual
	roce_fresh
	hosts 2
	count_answers
	flood --src 10.0.2.1 --qp 1000-16777215 --opcode 0x64 --count "$FLOOD"
	expect "answers for queue pairs that do not exist" "$(answers)" -eq 0
	expect "questions in $FLOOD_S s" "$(rcm_counter asked)" -le "$(awk -v s="$FLOOD_S" 'BEGIN { print s * 1100 + 10 }')"
	ud_serve
	most=$(answers)
	flood --src 10.0.2.1 --qp "$QP" --source-qp 5 --opcode 0x64 --count 200
	expect "answers for one that does" "$(($(answers) - most))" -gt 0
	echo 1000 >"$RCM_PARAM/cnp_limit"
	sleep 0.05
	sent=$(rcm_counter cnp_sent)
	flood --src 10.0.2.1 --qp "$QP" --source-qp 1000-16777215 --opcode 0x64 --count "$FLOOD"
	# the flow of h1 is not marked; a burst of 10 ms is allowed
	expect "CNPs in $FLOOD_S s, of 1000 a second" $(($(rcm_counter cnp_sent) - sent)) -le \
		"$(awk -v s="$FLOOD_S" 'BEGIN { print int(s * 1050 + 15) }')"
	expect "CNPs that the limit stopped" "$(rcm_counter cnp_limited)" -gt $((FLOOD / 2))
}
declare_test roce_reflection "R12" "roce_rcm: spoofed datagrams are answered for an existing UD queue pair only, up to cnp_limit"

# Only what was sent to r alone is answered.
roce_not_unicast()
{
	local before mac

	needs_virtual
	roce_fresh
	hosts 2
	# rdma_rxe of 7.3 crashes on packets to other addresses than its own: they are dropped
	# after roce_rcm's hook, which is before this one because it is registered later
	in_ns r nft -f - <<-END || skip "no nft"
		table inet guard {
			chain in {
				type filter hook input priority 2147483647
				meta pkttype != host udp dport 4791 drop
				ip daddr != 10.0.0.1 udp dport 4791 drop
				ip6 daddr != fd00::1 udp dport 4791 drop
			}
		}
	END
	roce_fresh cnp_interval_us=0
	ud_serve
	mac=$(mac_of r eth0)
	on_link "$mac" --qp "$QP" --opcode 0x64 --count 300
	before=$(rcm_counter cnp_sent)
	expect "CNPs for unicast" "$before" -gt 0
	on_link 33:33:00:00:00:01 --src fd00:1::1 --dst ff02::1 --qp "$QP" --opcode 0x64 --count 300
	on_link "$mac" --src fd00:1::1 --dst fd00:: --qp "$QP" --opcode 0x64 --count 300
	on_link 01:00:5e:00:00:01 --dst 224.0.0.1 --qp "$QP" --opcode 0x64 --count 300
	on_link ff:ff:ff:ff:ff:ff --dst 255.255.255.255 --qp "$QP" --opcode 0x64 --count 300
	on_link ff:ff:ff:ff:ff:ff --dst 10.0.0.255 --qp "$QP" --opcode 0x64 --count 300
	on_link ff:ff:ff:ff:ff:ff --qp "$QP" --opcode 0x64 --count 300
	expect "CNPs for the others" $(($(rcm_counter cnp_sent) - before)) -eq 0
	expect "counted" "$(rcm_counter ce_not_unicast)" -ge 1200
}
declare_test roce_not_unicast "R12" "roce_rcm: multicast, anycast and broadcast are not answered"

# solo_mbps: of a flow from h1 to r for as long as the flood
solo_mbps()
{
	roce h1 send --duration "$1"
	jq '.rate_bps / 1e6' "$TMP/flow.json"
}

# A flood of packets that are wrong in some way leaves a flow at its rate, and is not
# answered.
roce_flood()
{
	local solo kind time=$FLOOD_S before asked flow most

	needs_virtual
	roce_fresh
	hosts 2
	count_answers
	solo=$(solo_mbps "${time}s")
	for kind in "--icrc bad" "--truncate 30" "--truncate 45" "--vlan 7" "--vlan 7 --vlan 8" \
		"--fragment --qp 5000" "--tver 3" "--random" "--length 20" "--opcode 0x81 --icrc bad" \
		"--opcode 0x81 --length 60" "--opcode 0x81" "--opcode 0x24" "--opcode 0x04"; do
		asked=$(rcm_counter asked)
		before=$(rcm_counter cnp_sent)
		roce h1 send --duration "${time}s" &
		flow=$!
		# shellcheck disable=SC2086 # options
		flood --qp 1000000-16777215 --opcode 0x64 --count "$FLOOD" $kind
		wait "$flow"
		expect "flow's rate, of $solo Mb/s alone ($kind)" "$(jq '.rate_bps / 1e6' "$TMP/flow.json")" -ge \
			"$(awk -v s="$solo" 'BEGIN { print s * 0.99 }')"
		expect "CNPs ($kind)" $(($(rcm_counter cnp_sent) - before)) -eq 0
		most=$(awk -v s="$time" 'BEGIN { print s * 1100 + 10 }')
		[[ $kind != *"--icrc bad"* ]] || most=0
		expect "questions ($kind)" $(($(rcm_counter asked) - asked)) -le "$most"
	done
	expect "rates cut" "$(rcm_counter cnp_handled)" -eq 0
	expect "questions about a line, with RTNL" "$(rcm_counter asked_line)" -le 60
}
declare_test roce_flood "R12" "roce_rcm: 100,000 wrong packets a second: no answer, and a flow keeps 99 % of its rate"

# The same packet again and again is one packet, to CNPs and to answers.
roce_replay()
{
	local before

	needs_virtual
	roce_fresh line_rate_mbps=1000
	hosts 2
	ud_serve
	flood --qp "$QP" --source-qp 5 --opcode 0x64 --count 200
	sleep 0.01
	before=$(rcm_counter cnp_sent)
	flood --qp "$QP" --source-qp 5 --opcode 0x64 --count "$FLOOD"
	expect "CNPs in $FLOOD_S s, one per 50 us" $(($(rcm_counter cnp_sent) - before)) -le \
		"$(awk -v s="$FLOOD_S" 'BEGIN { print int(s * 21000 + 5) }')"
}
declare_test roce_replay "R4 R12" "roce_rcm: a replayed packet is answered once per cnp_interval_us"

none_held()
{
	[ "$(held_at ::ffff:10.0.1.1)" -eq 0 ]
}

held_or_ended()
{
	! none_held || ! kill -0 "$CLIENT" 2>/dev/null
}

# roce_held OP: h1 sends at about 1 Mb/s from now on, and packets of it are held back, after those
# of the client before it have gone
roce_held()
{
	local op=$1

	WAIT=$(virtual && echo 2 || echo 60)
	wait_until none_held
	(fail() { :; }; roce h1 "$op" --qps "$AWAY_QPS" --duration 60s --timeout 17 2>"$TMP/client") &
	CLIENT=$!
	wait_until known_at ::ffff:10.0.1.1
	wait_until held_or_ended
	kill -0 "$CLIENT" 2>/dev/null || fail "$op: the client ended: $(cat "$TMP/client" "$TMP/flow.json")"
}

# clients: the processes of roce_held. By name: h1 may be the first namespace.
clients()
{
	pgrep -f "^rocegen .*--dev ${NSP}h1 .*--to "
}

no_clients()
{
	[ -z "$(clients)" ]
}

# away_hosts: h1 and r, whose packets to each other are all marked
away_hosts()
{
	if [[ $(uname -r) = [1-6].* ]]; then
		roce_pair 20mbit
		roce_serve r
		NETDEV=roce_h1
	else
		hosts 1
		NETDEV=eth0
	fi
	mark_all egress
}

# Clients, the module, devices and namespaces go away while packets are held back.
roce_away()
{
	local i ops=(send write uc-write ud-send) NETDEV

	roce_kernel
	roce_fresh rate_min_mbps=1 dcqcn_timer_us=1000000 dcqcn_alpha_us=1000000 idle_s=1
	away_hosts
	for ((i = 0; i < AWAY; i++)); do
		echo "round $i, ${ops[i % 4]}, $SECONDS s"
		roce_held "${ops[i % 4]}"
		case $((i % 5)) in
		2)
			rmmod roce_rcm || fail "cannot unload"
			modprobe roce_rcm rate_min_mbps=1 dcqcn_timer_us=1000000 dcqcn_alpha_us=1000000 idle_s=1 ||
				fail "cannot load"
			;;
		3)
			rdma link del "${NSP}h1"
			roce_device h1 "$NETDEV"
			;;
		4)
			teardown
			away_hosts
			;;
		esac
		# the client, where it is still there: it goes at once, whatever is held back
		clients | xargs -r kill -9
		WAIT=$(virtual && echo 2 || echo 20) wait_until no_clients
	done
	teardown
	rmmod roce_rcm || fail "cannot unload"
}
declare_test roce_away "R11 R12" "roce_rcm: clients, devices, namespaces and the module go away while packets are held back"

# --- tcp_hpccpp, int_reflector, sch_int --------------------------------------
#
# h1 sends to r through sw, whose bottleneck stamps probes. sw is hostile: int_hostile there
# sends altered copies of the probes and responses that pass.

REFLECTOR=/sys/module/int_reflector/parameters

# int_modules: loads them
int_modules()
{
	modprobe -a tcp_hpccpp int_reflector sch_int 2>/dev/null || skip "no HPCC++ modules"
	tc_has_int || skip "tc has no q_int.so (see TC_LIB_DIR)"
	CC=hpccpp
	MODULE=tcp_hpccpp
	PARAM=/sys/module/tcp_hpccpp/parameters
}

# counter NS FILE NAME: of /proc/net
counter()
{
	in_ns "$1" cat "/proc/net/$2" | awk -v n="$3" '$1 == n { print $2 }'
}

# int_path: a dumbbell of one host whose bottleneck stamps
int_path()
{
	dumbbell 1 100us
	in_ns sw tc qdisc add dev egress root handle 1: int rate 1gbit || fail "int"
	shaper sw egress 1gbit parent 1:1 handle 2:
	serve r
}

# Ids that a forged probe makes up do not hide the real ones from the receiver that computes
# the window
int_forged_ids()
{
	local windows

	needs_virtual
	int_modules
	parameter receiver_based=1 base_rtt_ns=100000
	PARAM=$REFLECTOR parameter base_rtt_ns=100000
	int_path
	in_ns sw int_hostile 2000 0.1 >"$TMP/hostile" &
	send --duration 100ms
	wait $!
	windows=$(counter r int_reflector Window)
	expect "probes with a forged id" "$(awk '$1 == "probe" && $2 == "future" { print $3 }' "$TMP/hostile")" -ge 5
	expect "real probes answered with a window, %" "$((100 * windows / $(counter h1 hpccpp Probes)))" -ge 80
	expect "control" "$(flow_field cc)" = hpccpp
}
declare_test int_forged_ids "H12 H13" "int_reflector: forged probe ids do not turn windows off"

# flow_beside COMMAND...: runs it beside a flow of h1 (100 MB); prints the goodput in b/s
flow_beside()
{
	"$@" >"$TMP/hostile" &
	send --size 100M
	wait $!
	flow_field goodput_bps
}

# Probes that were not sent to this host alone are not answered: TCP takes no such segment.
int_not_unicast()
{
	local alone goodput answered probes kind

	needs_virtual
	int_modules
	dumbbell 1 100us
	# the flood takes 0.1 Gb/s of it
	in_ns sw tc qdisc add dev egress root handle 1: int rate 25gbit || fail "int"
	shaper sw egress 25gbit parent 1:1 handle 2:
	in_ns sw tc qdisc add dev egress parent 2:1 bfifo limit 20000000
	serve r
	alone=$(flow_beside true)
	answered=$(counter r int_reflector Answered)
	probes=$(counter h1 hpccpp Probes)
	goodput=$(flow_beside in_ns sw int_hostile -l egress "$(mac_of r eth0)" 100000 0.045)
	cat "$TMP/hostile"
	for kind in unicast vlan qinq ten_tags broadcast multicast_frame multicast; do
		expect "$kind" "$(awk -v k="$kind" '$2 == k { print $3 }' "$TMP/hostile")" -ge 300
	done
	between "goodput under attack / alone" "$(awk -v a="$goodput" -v b="$alone" 'BEGIN { print a / b }')" 0.99 1.01
	expect "control" "$(flow_field cc)" = hpccpp
	answered=$(($(counter r int_reflector Answered) - answered))
	probes=$(($(counter h1 hpccpp Probes) - probes))
	between "answers beyond those to the flow's $probes probes" $((answered - probes)) 1 \
		"$(awk '$2 == "unicast" { print $3 }' "$TMP/hostile")"
}
declare_test int_not_unicast "H9 H13" "int_reflector, sch_int: tagged, broadcast and multicast probes, 100,000 a second: no answer, no effect"

run_tests "$@"
