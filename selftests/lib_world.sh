# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Situations that connections meet in real networks: single packets that are lost or late,
# data in both directions, a change of the control at a chosen moment. Source lib.sh first.

# talk STEP...: one connection from h1 to r's talk server (talk.py --help); its results are in
# $TMP/talk. TO changes the address
talk()
{
	in_ns h1 timeout 120 python3 "$SELFTESTS/talk.py" to "${TO:-10.0.0.1}" "$@" >"$TMP/talk" ||
		fail "talk: $(tail -n1 "$TMP/talk")"
	count_now
}

# talk_server NS [OPTION...]: starts talk.py serve in NS
talk_server()
{
	in_ns "$1" python3 "$SELFTESTS/talk.py" serve "${@:2}" 2>"$TMP/talk.$1" &
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

# data_meets NS DEV SPEC...: netem for packets of 1 KB and more that leave there, not for
# handshakes and ACKs; "loss X% ecn" marks packets, it does not drop them
data_meets()
{
	in_ns "$1" tc qdisc replace dev "$2" root handle 1: prio bands 2 \
		priomap 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1
	in_ns "$1" tc qdisc add dev "$2" parent 1:1 netem limit 100000 "${@:3}"
	in_ns "$1" tc filter add dev "$2" parent 1: protocol ip u32 match u16 0x0400 0x0400 at 2 classid 1:1
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
