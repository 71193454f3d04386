# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# What the tests of lowq-check share.
# shellcheck disable=SC2034 # the scripts that source this use its variables

# shellcheck source=../lib/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"
# shellcheck source=../lib/talk.sh
. "$LIB/talk.sh"
# shellcheck source=../lib/rdma.sh
. "$LIB/rdma.sh"

LOWQ_CHECK=${LOWQ_CHECK:-$LOWQ_ROOT/scripts/lowq-check}
[ -x "$LOWQ_CHECK" ] || LOWQ_CHECK=$(command -v lowq-check) || skip_all "lowq-check is not installed"
LOWQ_CHECK=$(readlink -f "$LOWQ_CHECK")
if [ "$LOWQ_CHECK" = "$LOWQ_ROOT/scripts/lowq-check" ]; then
	# a copy, for ssh.sh's PATH
	chmod a+rx "$TMP"	# for an ordinary user
	mkdir "$TMP/scripts"
	cp -rp "$LOWQ_ROOT"/scripts/lowq[-_]{check,common,tc} "$TMP/scripts"	# what is compiled goes by the times
	cp "$LOWQ_ROOT/dkms.conf" "$TMP"	# has the version
	LOWQ_CHECK=$TMP/scripts/lowq-check
	LOWQ_TC=$TMP/scripts/lowq-tc
fi
export LOWQ_CHECK
[ "${LOWQ_LAB:-}" ] || skip_all "loads and unloads modules"
export TC_LIB_DIR=$BIN	# tc's plugin for int
for module in tcp_dctcp tcp_dctcp_ref tcp_ldcp tcp_prague tcp_hpccpp int_reflector; do
	modprobe "$module" || skip_all "no module $module"
done

# The lab's programs take tens of milliseconds to start, so these use few.

# check ARGUMENT...: runs lowq-check in h1, or in the host FROM. The result is in RC, and in FOUND
# a line for each finding: "WRONG WHERE: CHECK SAYS [FAULT]: MEND"
check()
{
	local line

	in_ns "${FROM:-h1}" "${AS[@]}" "$LOWQ_CHECK" "$@" >"$TMP/check" 2>"$TMP/check.err"
	RC=$?
	[ "$RC" -ne 2 ] || fail "lowq-check $*: $(<"$TMP/check.err")"
	FOUND=()
	while read -r line; do
		if [[ $line == "["* ]]; then FOUND[-1]+=" $line"; else FOUND+=("$line"); fi
	done <"$TMP/check"
	printf '%s\n' "${FOUND[@]}"
}
AS=()

# says STATUS TEXT ARGUMENT...: lowq-check, run in h1 or FROM, ends with STATUS, says one line with
# TEXT, and prints nothing else
says()
{
	local status=$1 text=$2

	in_ns "${FROM:-h1}" "${AS[@]}" timeout 300 "$LOWQ_CHECK" "${@:3}" >"$TMP/said" 2>"$TMP/said.err"
	RC=$?
	mapfile -t FOUND <"$TMP/said.err"
	[[ $RC -eq $status && ${#FOUND[@]} -eq 1 && ! -s $TMP/said && ${FOUND[0]} == "lowq-check: "*"$text"* ]] ||
		fail "lowq-check ${*:3}: status $RC, expected $status and '$text': ${FOUND[*]}"
}

# named FAULT [TEXT]: the last check calls it wrong, with that text in what it says or in where or
# in the mend, which is not empty; the exit status is 1
named()
{
	local one all=()

	[ "$RC" -eq 1 ] || fail "exit status $RC"
	for one in "${FOUND[@]}"; do
		[[ ! $one =~ ^WRONG\ .*\ \[([a-z-]*)\]:\  ]] || all+=("${BASH_REMATCH[1]}")
	done
	measured "named $1, all: ${all[*]}"
	for one in "${FOUND[@]}"; do
		[[ $one != "WRONG "*" [$1]: "* || $one != *"${2:-}"* ]] || return 0
	done
	fail "not named: $*"
}

# not_named FAULT: the last check does not call it wrong
not_named()
{
	[[ "${FOUND[*]}" != *" [$1]"* ]] || fail "'$1' is named"
}

# healthy: the last check found nothing wrong
healthy()
{
	[ "$RC" -eq 0 ] || fail "exit status $RC"
	measured "nothing wrong"
}

# skips TEXT: the last check says that it skipped something
skips()
{
	[[ "${FOUND[*]}" == *"skipped "*"$1"* ]] || fail "does not say that it skipped: $1"
}

# tells CHECK TEXT: the last check says this about it
tells()
{
	[[ "${FOUND[*]}" == *": $1 "*"$2"* ]] || fail "does not say about $1: $2"
}

# queue NS DEV KIND...: at the root
queue()
{
	in_ns "$1" tc qdisc replace dev "$2" root "${@:3}"
}
RED=(red limit 1000000 min 30000 max 30000 avpkt 1500 burst 21 bandwidth 1gbit)

# peer [OPTION...]: the listener at r, or at PEER; debugfs, which "ip netns exec" hides, stays
# visible
peer()
{
	nsenter --net="/run/netns/$NSP${PEER:-r}" "${AS[@]}" "$LOWQ_CHECK" --listen --token secret --timeout 300 "$@" \
		>"$TMP/listener" 2>&1 &
	LISTENER=$!
	wait_until listening "${PEER:-r}" 5388
}

# pair [OPTION...]: h1, and r with the listener
pair()
{
	dumbbell 1 1ms
	peer "$@"
}

# filters DEV FILTER...: for IPv4 packets that leave sw by DEV
filters()
{
	in_ns sw tc qdisc add dev "$1" clsact
	in_ns sw tc filter add dev "$1" egress protocol ip "${@:2}"
}

# path [OPTION...]: checks the path from h1 to r
path()
{
	check "${TO:-10.0.0.1}" --token secret "$@"
}

# rewrite DEV FILTER... -- PEDIT...: what sw does to IPv4 packets that leave by DEV
rewrite()
{
	local filter=()

	while [ "$1" != -- ]; do
		filter+=("$1")
		shift
	done
	filters "${filter[0]}" flower "${filter[@]:1}" action pedit ex munge ip "${@:2}" pipe action csum ip4h || fail "no tc flower or pedit"
}

# stamping DEV...: sch_int at ports of sw, or of the router AT
stamping()
{
	local dev

	modprobe int_reflector	# which goes with tcp_hpccpp when a test reloads that
	for dev; do
		# lowq-tc replaces no queue of others
		in_ns "${AT:-sw}" tc qdisc del dev "$dev" root 2>/dev/null
		in_ns "${AT:-sw}" "$LOWQ_TC" hpccpp "$dev" --rate 100mbit --shape -q --no-rehearsal || fail "no sch_int on $dev"
	done
}

# h1 - sw - sw2 - r
two_routers()
{
	local ns PLAN=1

	roomy
	for ns in h1 sw sw2 r; do
		add_ns "$ns"
	done
	net 1 h1 eth0 sw p1
	net 0 r eth0 sw2 egress
	inner sw egress sw2 p1 10.0.2
	route sw 10.0.0.0/24 10.0.2.2
	route sw2 10.0.1.0/24 10.0.2.1
	PLAN='' build_plan
}

# bottlenecks RATE QDISC...: both ways. Without one, a load is limited by the CPU alone, which
# takes no virtual time.
bottlenecks()
{
	shape "$@"
	in_ns r tc qdisc del dev eth0 root 2>/dev/null
	shaper r eth0 "$1"
	in_ns r tc qdisc add dev eth0 parent 1:1 handle 2: "${@:2}"
}

# policed ACTION...: what happens to data above 20 Mb/s on its way to r
policed()
{
	filters egress matchall action police rate 20mbit burst 30k conform-exceed "$@" || fail "no policer"
}

# prepared CONTROL: both hosts as lowq-tc sets them up for it, as the default
prepared()
{
	local host ecn=1

	[ "$1" != prague ] || ecn=3
	# for a restricted one the first namespace must allow that
	sysctl -qw net.ipv4.tcp_allowed_congestion_control="$(sysctl -n net.ipv4.tcp_allowed_congestion_control) $1"
	for host in h1 r; do
		if [ "${FULL:-}" ]; then
			in_ns "$host" "$LOWQ_TC" host "$1" --default -q --no-rehearsal 2>"$TMP/err" || fail "$(<"$TMP/err")"
		else
			in_ns "$host" sysctl -qw net.ipv4.tcp_ecn="$ecn" net.ipv4.tcp_congestion_control="$1" || fail "no default $1"
		fi
	done
}

# picture: what lowq-check could have changed on both hosts
picture()
{
	local host

	for host in h1 r; do
		echo "$host"
		in_ns "$host" sysctl -a -r '^net\.(core|ipv[46])' 2>/dev/null | grep -v 'nf_conntrack_count'
		ip -n "$NSP$host" -d -o addr | sed '/ fe80:/d'	# these come when the carrier does
		ip -n "$NSP$host" -4 route show table all
		ip -n "$NSP$host" -6 route show table all | sed 's/ expires [0-9]*sec//; /fe80:/d'
		ip -n "$NSP$host" rule
		ip -n "$NSP$host" tcp_metrics
		tc -n "$NSP$host" qdisc show
		tc -n "$NSP$host" filter show dev eth0
		! command -v nft >/dev/null || in_ns "$host" nft list ruleset
	done
	awk '{ print $1 }' /proc/modules
	! command -v rdma >/dev/null || rdma resource show qp
}

# one that is unprivileged
USER_IDS=(setpriv --reuid 65534 --regid 65534 --clear-groups)
