# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Situations that connections meet in real networks: single packets that are lost or late,
# data in both directions, a change of the control at a chosen moment. Source lib.sh first.

# talk STEP...: one connection from h1 to r's talk server (talk.py --help); its results are in
# $TMP/talk. TO changes the address
talk()
{
	in_ns h1 timeout 120 python3 "$LIB/talk.py" to "${TO:-10.0.0.1}" "$@" >"$TMP/talk" ||
		fail "talk: $(tail -n1 "$TMP/talk")"
	count_now
}

# talk_server NS [OPTION...]: starts talk.py serve in NS
talk_server()
{
	in_ns "$1" python3 "$LIB/talk.py" serve "${@:2}" 2>"$TMP/talk.$1" &
	wait_until listening "$1" 5299
}

# fates NS DEV [DELAY]: makes SO_PRIORITY decide about packets that leave there: 0 pass, 1 are
# lost, 2 are delayed by DELAY, and of 3 a fifth are lost
fates()
{
	in_ns "$1" tc qdisc replace dev "$2" root handle 1: prio bands 4 \
		priomap 0 1 2 3 0 0 0 0 0 0 0 0 0 0 0 0
	in_ns "$1" tc qdisc add dev "$2" parent 1:4 handle 14: netem limit 100000 loss 20%
	in_ns "$1" tc qdisc add dev "$2" parent 1:2 handle 12: netem limit 100000 loss 100%
	in_ns "$1" tc qdisc add dev "$2" parent 1:3 handle 13: netem limit 100000 delay "${3:-30ms}"
}

# undone [STEP...]: a packet is late by less than its retransmission's RTT (30 ms): a loss that was
# none. The window is then what it was before. STEPs follow on the same connection.
undone()
{
	lossy delay 20ms
	fates h1 eth0 18ms
	# what the window is worth is judged, not whether idling has reduced it
	in_ns h1 sysctl -qw net.ipv4.tcp_slow_start_after_idle=0
	sink "$CC"
	client 10.0.0.1 send=450000 acked info=before- fate=2 send=1448 fate=0 send=100000 acked info=after- "$@"
	cat "$TMP/client"
	expect "losses that were undone" "$(in_ns h1 nstat -asz | awk '$1 ~ /TCP.*Undo$/ { n += $2 } END { print n + 0 }')" -ge 1
	expect "window after it" "$(field after-cwnd <"$TMP/client")" -ge "$(field before-cwnd <"$TMP/client")"
}

# timeout_in_cwr EVENT: ten packets are marked, ten behind them are lost, and all retransmissions,
# until a timeout, which comes while the stack is in CWR. The trace of EVENT is in $TMP/trace. RTT 40 ms.
timeout_in_cwr()
{
	lossy loss 0%
	fates h1 eth0
	sink "$CC"
	trace_on "$1" tcp/tcp_cong_state_set
	client 10.0.0.1 send=100000 acked "$(instead loss 100% ecn)" send=14480 fate=1 send=14480 fate=0 sleep=0.05 \
		"$(instead loss 100%)" sleep=0.6 "$(instead loss 0%)" acked
	trace_off "$TMP/states"
	cat "$TMP/states"
	expect "states of the stack: CWR, then Loss" "$(grep 'dport=5299 ' "$TMP/states" | field cong_state | head -n2 | paste -sd' ')" = "2 4"
	grep "${1#*/}" "$TMP/states" >"$TMP/trace"
	# dctcp_ref's reduction for the mark may be due at the window's end
	expect "reduction for a mark, then for loss" "$(field cause <"$TMP/trace" | head -n2 | sed s/due/ecn/ | paste -sd' ')" = "ecn loss"
}

# data_meets NS DEV SPEC...: netem for packets of 1 KB and more that leave there, not for ACKs and
# handshakes, whose loss would leave ECN off; "loss X% ecn" marks packets, it does not drop them. With ECT_ONLY
# for those that are ECT(0) or marked
data_meets()
{
	local v4=() v6=()

	[ -z "${ECT_ONLY:-}" ] || { v4=(match u8 0x02 0x02 at 1) v6=(match u16 0x0020 0x0020 at 0); }
	in_ns "$1" tc qdisc replace dev "$2" root handle 1: prio bands 2 \
		priomap 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1
	in_ns "$1" tc qdisc add dev "$2" parent 1:1 netem limit 100000 "${@:3}"
	in_ns "$1" tc filter add dev "$2" parent 1: protocol ip u32 match u16 0x0400 0x0400 at 2 "${v4[@]}" classid 1:1
	in_ns "$1" tc filter add dev "$2" parent 1: protocol ipv6 u32 match u16 0x0400 0x0400 at 4 "${v6[@]}" classid 1:1
}

# counters saves the kernel's counters at h1 and r, count_now saves them a second time, and
# counted NS NAME prints by how much one has increased in between
counters()
{
	local ns

	for ns in h1 r; do
		in_ns $ns nstat -asz >"$TMP/nstat.$ns"
	done
}

count_now()
{
	local ns

	for ns in h1 r; do
		in_ns $ns nstat -asz >"$TMP/nstat.$ns.now"
	done
}

counted()
{
	awk -v name="$2" 'NR == FNR { before[$1] = $2; next }
		$1 == name { n = $2 - before[$1] } END { print n + 0 }' "$TMP/nstat.$1" "$TMP/nstat.$1.now"
}
