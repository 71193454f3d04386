# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034 # read by the other parts
# Shared by the parts of the lab and by scripts/matrix: where things are, how to say what goes wrong,
# which programs are needed.

CACHE=${LOWQ_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/lowq}
DEFAULT_KERNEL=7.3

# Exit statuses of "lab" itself; a command's own are passed on unchanged.
readonly EXIT_USAGE=2 EXIT_SPLAT=123 EXIT_TIMEOUT=124 EXIT_LAB=125

# SAYING: the program's name in its messages
say()
{
	printf '%s: %s\n' "${SAYING:-lab}" "$*" >&2
}

die()
{
	say "$*"
	exit $EXIT_LAB
}

usage_error()
{
	say "$* (see ${SAYING:-lab} --help)"
	exit $EXIT_USAGE
}

# What the kernel says when something is wrong with it.
readonly SPLATS='WARNING: |BUG: |BUG at |Oops|Kernel panic|general protection|KASAN|UBSAN|INFO: possible|INFO: task|INFO: rcu|INFO: trying|possible (circular|recursive|irq lock)|suspicious RCU|inconsistent lock state|held lock freed|unreferenced object|refcount_t:|unregister_netdevice: waiting|leaked|sleeping function|scheduling while atomic|double free|Call Trace'

# program:package for everything below; checked once, named all at once
readonly BUILD_TOOLS="gcc:gcc ld:binutils make:make flex:flex bison:bison bc:bc
	xz:xz-utils patch:patch depmod:kmod cpio:cpio"
readonly RUN_TOOLS="setarch:util-linux bwrap:bubblewrap ip:iproute2"

# need_tools "PROGRAM:PACKAGE ...": installs what is missing when root, else
# names it and stops.
need_tools()
{
	local pair missing=()

	for pair in $1; do
		command -v "${pair%%:*}" >/dev/null || missing+=("${pair##*:}")
	done
	[ ${#missing[@]} -eq 0 ] && return
	[ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null ||
		die "missing packages: install them with: apt-get install ${missing[*]}"
	say "installing ${missing[*]}"
	{ DEBIAN_FRONTEND=noninteractive apt-get -qq install -y \
		--no-install-recommends "${missing[@]}" ||
	  { apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y \
		--no-install-recommends "${missing[@]}"; }; } >/dev/null 2>&1 ||
		die "apt-get cannot install: ${missing[*]}"
}

# need_space DIR MIB WHAT
need_space()
{
	local free

	mkdir -p "$1" 2>/dev/null || die "cannot write to the cache $1 (set LOWQ_CACHE)"
	free=$(df -Pm "$1" | awk 'NR == 2 { print $4 }')
	[ "$free" -ge "$2" ] || die "$3 needs $2 MiB in $1; only $free are free"
}

# hash FILE...: eight hex digits that stand for the files' contents
hash_of()
{
	cat "$@" | sha256sum | cut -c1-8
}

is_tty()
{
	[ -t 2 ]
}
