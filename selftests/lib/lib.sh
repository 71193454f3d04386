# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# What all tests and scenarios source: where things are, TAP (tap.sh), namespaces and traffic
# (net.sh), the control under test (control.sh), captures and traces (observe.sh).

LIB=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
SELFTESTS=$(dirname "$LIB")
LOWQ_ROOT=$(dirname "$SELFTESTS")
# flowgen, qdelay and rocegen: in a kernel tree, tools/ is beside lib/
for BIN in "${LOWQ_BIN:-$LOWQ_ROOT/lab/tools/bin}" "$SELFTESTS/tools/bin"; do
	[ ! -d "$BIN" ] || break
done
LOWQ_TC=${LOWQ_TC:-$LOWQ_ROOT/scripts/lowq-tc}	# a kernel tree has none: use the installed one
[ -x "$LOWQ_TC" ] || LOWQ_TC=$(command -v lowq-tc)
# beside a test are the programs that only it needs
PATH=$BIN:$(dirname "$(readlink -f "$0")"):$PATH

# shellcheck source=tap.sh
. "$LIB/tap.sh"
# shellcheck source=net.sh
. "$LIB/net.sh"
# shellcheck source=control.sh
. "$LIB/control.sh"
# shellcheck source=observe.sh
. "$LIB/observe.sh"

# Tests need Python's standard library only: without site it starts sooner. What needs more calls
# /usr/bin/python3.
python3()
{
	command python3 -S "$@"
}

# before each test
setup()
{
	command -v flowgen qdelay labnet >/dev/null || fail "build flowgen, qdelay and labnet first: make -C selftests tools"
	[ "$EUID" -eq 0 ] || skip "needs root (of a namespace or the lab)"
}

# Is this the lab in virtual time? Results are exact there. In real time (the debug flavour, a
# user's machine) tests judge only what does not depend on the machine's speed.
virtual()
{
	[ "${LOWQ_LAB:-}" = virtual ]
}

# completed NAMESPACE PROGRAM WORD...: what bash offers there in place of the last word, a line each,
# in $TMP/completed. A blank is behind what is the only one.
completed()
{
	local file=$LOWQ_ROOT/scripts/lowq.bash-completion

	command -v register-python-argcomplete >/dev/null || skip "no python3-argcomplete"
	[ -e "$file" ] || skip "no ${file##*/}"
	# shellcheck disable=SC2016 # the shell that completes expands
	in_ns "$1" bash -c '. "$1"; COMP_LINE=${*:2}; COMP_POINT=${#COMP_LINE} COMP_TYPE=9
		_python_argcomplete "$2"; printf "%s\n" "${COMPREPLY[@]}"' - "$file" "${@:2}" >"$TMP/completed" 2>&1
}

has_accecn()
{
	[ -e /proc/sys/net/ipv4/tcp_ecn_option ]
}

needs_accecn()
{
	has_accecn || skip "this kernel has no Accurate ECN"
}

needs_virtual()
{
	virtual || skip "judged in virtual time, where results are exact"
}
