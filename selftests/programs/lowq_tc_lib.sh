# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# What the tests of lowq-tc share. They work in the namespace $ns, with records in $TMP/state; the
# list of allowed controls, which all namespaces share, is put back at the end.

# shellcheck source=../lib/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"
[ "$LOWQ_TC" ] || skip_all "lowq-tc is neither in ../scripts nor installed"
LOWQ_TC=$(readlink -f "$LOWQ_TC")
ns=${NSP}a
export LOWQ_TC LOWQ_STATE_DIR=$TMP/state LC_ALL=C

readonly allowed_key=net.ipv4.tcp_allowed_congestion_control
allowed=$(sysctl -n "$allowed_key" 2>/dev/null)

trap '[[ $(sysctl -n "$allowed_key" 2>/dev/null) == "$allowed" ]] ||
	sysctl -qw "$allowed_key=$allowed" 2>/dev/null' EXIT

for tool in ip tc jq python3 sysctl unshare; do
	command -v $tool >/dev/null || skip_all "no $tool"
done
((EUID == 0)) || skip_all 'not root'
unshare -n ip link add type veth || skip_all 'no veth or no network namespaces'

# Runs lowq-tc on $ns; puts its output into $out, $err, its status into $rc.
lt()
{
	"$LOWQ_TC" -n "$ns" "$@" >"$TMP/out" 2>"$TMP/err"
	rc=$?
	IFS= read -rd '' out <"$TMP/out"
	IFS= read -rd '' err <"$TMP/err"
	# shellcheck disable=SC2034 # for the tests
	out=${out%$'\n'} err=${err%$'\n'}
	return "$rc"
}

# must ARGUMENTS...: lowq-tc has to succeed
must() { lt "$@" || fail "lowq-tc $* gave $rc: $err"; }

# gives STATUS PART ARGUMENTS...: the exit status, and a part of what is said
gives()
{
	lt "${@:3}"
	[[ $rc == "$1" ]] || fail "lowq-tc ${*:3}: status $rc, expected $1: $err$out"
	[[ $err$out == *"$2"* ]] || fail "lowq-tc ${*:3}: does not say '$2': $err$out"
}

# refused PART ARGUMENTS...: exit status 2, a part of what is said in one line, and nothing else; ends STATUS PART
# ARGUMENTS...: the same with another status
refused() { ends 2 "$@"; }
ends()
{
	gives "$@"
	[[ $err == *"$2"* && $err != *$'\n'* && ! $out ]] || fail "lowq-tc ${*:3}: not one line of error: $err$out"
}

# checks STATUS ARGUMENTS of show...: with --check
checks() { gives "$1" "" "${@:2}" --check; }

# each COMMAND... <TABLE: runs it with each line of standard input, PART|WORDS, as two arguments and more
each()
{
	local part words line

	while IFS='|' read -r part line; do
		eval "words=($line)"
		"$@" "$part" "${words[@]}"
	done
}

tcn() { tc -n "$ns" "$@"; }
ipn() { ip -n "$ns" "$@"; }

# device: lq0 with one queue, and its peer
device()
{
	ipn -batch - <<-END
		link add name lq0 numtxqueues 1 type veth peer name lq1
		link set lq0 up
		link set lq1 up
	END
}

# picture VARIABLE: what a change could show in; with RECORDS_TOO also the records
picture()
{
	tcn -d -batch - >"$TMP/shown" <<-END
		qdisc show
		class show dev lq0
		filter show dev lq0
	END
	# the carrier comes when it comes
	ipn -d -o -batch - >>"$TMP/shown" <<-END
		link show
		route show table all
	END
	# as the namespace sees /proc/sys/net
	nsenter --net="/run/netns/$ns" sed -E 's/ (refcnt [0-9]*|linkdown)//; /^unicast fe80::/d; / table local /d; s/ expires [0-9]*sec//
		s/^([0-9]+: [^:]+): .*( qlen [0-9]+).*( gso_max_segs [0-9]+).*/\1\2\3/' "$TMP/shown" \
		/proc/sys/net/ipv4/tcp_{ecn,congestion_control,allowed_congestion_control} >"$TMP/picture"
	[[ ! ${RECORDS_TOO:-} || ! -e $LOWQ_STATE_DIR/records.json ]] || cat "$LOWQ_STATE_DIR"/*.json >>"$TMP/picture"
	IFS= read -rd '' "$1" <"$TMP/picture"
	[[ ${!1} == *"dev lq0 "*" qlen "* ]] || fail "no picture: ${!1}"
}

# same EXPECTED GOT WHAT
same()
{
	[[ $1 == "$2" ]] && return
	diff <(printf '%s\n' "$1") <(printf '%s\n' "$2")
	fail "$3 differs"
}

# same_picture BEFORE WHAT
same_picture()
{
	local now

	picture now
	same "$1" "$now" "$2: the picture"
}

# records: their number; no_records: there is none
records() { find "$LOWQ_STATE_DIR" -name '*.json' 2>/dev/null | wc -l; }
no_records() { expect "records" "$(records)" -eq 0; }

have_qdisc() { unshare -n tc qdisc add dev lo root "$@" 2>/dev/null; }
have_red()	# asked once
{
	[[ -e $TMP/red ]] || { have_qdisc red limit 100000 min 3000 max 3000 avpkt 1500 burst 2 bandwidth 1gbit ecn && : >"$TMP/red"; }
}

# wrapped TOOL BODY: makes $TMP/wrapped/TOOL, which runs BODY before the real TOOL. BODY finds the
# command's words in $*, and lowq-tc's process in $caller. It sees each command by itself: those
# that lowq-tc hands to one tc are taken apart.
wrapped()
{
	mkdir -p "$TMP/wrapped"
	cat >"$TMP/wrapped/$1" <<-END
		#!/bin/bash
		TMP=$TMP ns=$ns real=$(command -v "$1")
		export caller=\${caller:-\$PPID}
		one()
		{
			$2
			exec "\$real" "\$@"
		}
		if [[ \$* == *"-batch -" && \$* != *-force* ]]; then
			for ((number = 1; ; number++)); do
				read -ra words || exit 0
				(one "\${@:1:\$#-2}" "\${words[@]}" </dev/null) && continue
				echo "Command failed -:\$number" >&2
				exit 1
			done
		fi
		one "\$@"
	END
	chmod +x "$TMP/wrapped/$1"
}
