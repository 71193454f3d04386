# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Part of devel/speed: a flow in the lab that is timed from outside, medians, and facts
# about the machine.
# The script that sources this sets NAME, its own name, first.

BENCH=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
ROOT=$(cd "$BENCH/.." && pwd)
LAB=$ROOT/scripts/lab
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin	# an ordinary user's PATH lacks these
export LC_ALL=C

die()
{
	printf '%s: %s\n' "$NAME" "$*" >&2
	exit 2
}

say()
{
	printf '%s: %s\n' "$NAME" "$*" >&2
}

# ready_lab TARGET: gets TARGET's packages, the lab's kernel and the tools before anything is
# timed
ready_lab()
{
	"$ROOT/scripts/packages" "$1" || exit
	make -s -C "$ROOT" tools || die "the tools do not build (make tools)"
	"$LAB" build && "$LAB" run -- true || die "the lab does not run (scripts/lab run -- true)"
}

# tree PID: this process and all its descendants
tree()
{
	ps -e -o pid=,ppid= | awk -v root="$1" '
		{ parent[$1] = $2 }
		END { for (p in parent) { for (q = p; q in parent && q != root; q = parent[q]); if (q == root) print p } }'
}

# cpu_ns PID...: the CPU time that they have used so far, with that of children they have reaped
cpu_ns()
{
	local pid ns ticks stat sum=0 hz

	hz=$(getconf CLK_TCK)
	for pid; do
		read -r ns _ 2>/dev/null <"/proc/$pid/schedstat" || continue
		stat=$(<"/proc/$pid/stat") 2>/dev/null || continue
		# after the name: state is field 3 of proc(5), cutime 16, cstime 17
		read -ra ticks <<<"${stat##*) }"
		sum=$((sum + ns + (ticks[13] + ticks[14]) * (1000000000 / hz)))
	done
	echo $sum
}

# timed_flow ROW SIZE: runs one flow in the lab; prints speed-guest's flow.json with
# wall_s (from the flow's start to its end, without boot and set-up), cpu_s (CPU time of the
# lab's processes in that time) and total_s (all of lab run).
timed_flow()
{
	local dir pid pids before after status ended began=$EPOCHREALTIME

	dir=$(mktemp -d)
	"$LAB" run --mem 4G --timeout 1800 --out "$dir" -- devel/speed-guest "$1" "$2" "$dir" >"$dir/log" 2>&1 &
	pid=$!
	# shellcheck disable=SC2064 # this run's own
	trap "kill $pid 2>/dev/null; rm -rf '$dir'" EXIT
	# Finding the processes takes a while, so it is done before and during the flow.
	seen "$dir/ready" $pid
	mapfile -t pids < <(tree $pid)
	seen "$dir/start" $pid
	before=$(cpu_ns "${pids[@]}")
	mapfile -t pids < <(tree $pid)
	seen "$dir/end" $pid
	after=$(cpu_ns "${pids[@]}")
	wait $pid
	status=$?
	ended=$EPOCHREALTIME
	trap - EXIT
	if [ $status -ne 0 ] || [ ! -s "$dir/flow.json" ]; then
		tail -n 20 "$dir/log" >&2
		rm -rf "$dir"
		die "the run of row $1 in the lab failed with status $status"
	fi
	jq -c --argjson wall "$(stat -c %.9Y "$dir/start" "$dir/end" | awk 'NR == 1 { s = $1 } END { printf "%.4f", $1 - s }')" \
		--argjson cpu $((after - before)) --argjson total $((${ended/./} - ${began/./})) \
		'. + { wall_s: $wall, cpu_s: ($cpu / 1e9), total_s: ($total / 1e6) }' "$dir/flow.json"
	rm -rf "$dir"
}

# seen FILE PID: waits for the file while the process lives; checks 200 times a second
seen()
{
	local tick

	exec {tick}<> <(:)
	while [ ! -e "$1" ] && kill -0 "$2" 2>/dev/null; do
		read -r -t 0.005 -u "$tick"
	done
	exec {tick}>&-
}

# jq functions for tables
# shellcheck disable=SC2016,SC2034 # jq's own $, for those who source this
JQ_LIB='
def median: sort | if length % 2 == 1 then .[length / 2 | floor] else (.[length / 2] + .[length / 2 - 1]) / 2 end;
def fixed($n): if . == null then "-" else
	(. * pow(10; $n) | round | tostring | if startswith("-") then ["-", .[1:]] else ["", .] end) as [$sign, $digits] |
	(if ($digits | length) <= $n then ("0" * ($n + 1 - ($digits | length))) + $digits else $digits end) as $d |
	if $n == 0 then $sign + $d else $sign + $d[:-$n] + "." + $d[-$n:] end end;
def spread: { min: min, median: median, max: max };
'

# machine: facts about it, as JSON. To be called before the measurement, so that the load is that of
# other programs.
machine()
{
	jq -n --arg cpu "$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n1)" --argjson cores "$(nproc)" \
		--arg load "$(cut -d' ' -f1-3 /proc/loadavg)" --arg os "$(. /etc/os-release && echo "${PRETTY_NAME:-}")" \
		--arg kernel "$(uname -r)" --arg date "$(date -u +%F)" \
		'{ cpu: $cpu, cores: $cores, load_before: $load, os: $os, kernel: $kernel, date: $date }'
}
