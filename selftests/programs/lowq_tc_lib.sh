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

tcn() { tc -n "$ns" "$@"; }
ipn() { ip -n "$ns" "$@"; }

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
