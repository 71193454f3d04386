# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034 # read by the other parts
# Shared by the parts of the lab, devel/matrix and devel/deb: where things are, how to say
# what goes wrong, which packages are needed. Set PROJECT before sourcing this.

CACHE=${LOWQ_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/lowq}
PREBUILT=/usr/lib/lowq/lab	# of the package lowq-lab-kernel
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

# An ordinary user's PATH has no sbin directories in Debian, where depmod and tc are.
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

# need_packages TARGET...: of scripts/packages. Installs what is missing when root, else
# names it and stops.
need_packages()
{
	"$PROJECT/scripts/packages" "$@" || exit
}

# need_space DIR MIB WHAT
need_space()
{
	local free

	mkdir -p "$1" 2>/dev/null || die "cannot write to the cache $1 (set LOWQ_CACHE)"
	free=$(df -Pm "$1" | awk 'NR == 2 { print $4 }')
	[ "$free" -ge "$2" ] || die "$3 needs $2 MiB in $1; only $free are free"
}

# check_results DIR: names each bound of a plan that the results there break, and sets status
check_results()
{
	local broken line

	broken=$(cd "$1" && jq -nr --slurpfile plan plan.json --slurpfile flows flows.jsonl \
		--slurpfile queues "$([ -f queues.json ] && echo queues.json || echo /dev/null)" -f "$LABD/must.jq") || return
	[ -n "$broken" ] || return 0
	while read -r line; do say "$line"; done <<<"$broken"
	status=1
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

# progress WHAT TOTAL UNIT: reads how far WHAT is, a number a line, and "complete" when it has ended well. On a terminal
# this is one line, which says every second how long it takes; in a log it is a line per 10 %.
progress()
{
	local n=0 line status percent=0 shown=-1 second=-1 start=$SECONDS

	while :; do
		read -r -t 1 line && status=0 || status=$?
		[ $status -ne 0 ] || n=$line
		[ $status -eq 0 ] || [ $status -gt 128 ] || break
		[ "$n" = complete ] && percent=100 n=$2 || percent=$((n * 100 / $2))
		# the total may be of a slightly other thing
		[ "$percent" -lt 100 ] || [ "$line" = complete ] || percent=99
		if is_tty; then
			[ $SECONDS -eq $second ] && [ $percent -lt 100 ] || printf '\r\033[K%s: %s: %d of about %d %s, %d %%, %d s' "${SAYING:-lab}" "$1" "$n" "$2" "$3" $percent \
				$((SECONDS - start)) >&2
			second=$SECONDS
		elif [ $((percent / 10)) -gt $((shown / 10)) ] || [ $shown -lt 0 ]; then
			say "$1: $percent %, $((SECONDS - start)) s"
			shown=$percent
		fi
	done
	# what has ended well leaves its line
	! is_tty || if [ "$percent" -eq 100 ]; then echo >&2; else printf '\r\033[K' >&2; fi
}

# grows PLACE COMMAND...: prints the MB in PLACE, every second while COMMAND runs, then complete; returns COMMAND's status
grows()
{
	local pid status

	"${@:2}" & pid=$!
	while kill -0 $pid 2>/dev/null; do
		du -sm -- "$1" 2>/dev/null | cut -f1
		sleep 1
	done
	wait $pid
	status=$?
	[ $status -ne 0 ] || echo complete
	return $status
}
