#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Tests the lab from the host: exit status, isolation, time, repeatability and its own
# error messages.
# shellcheck disable=SC2317 # tests are called by name

# shellcheck source=../lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
LAB=$LOWQ_ROOT/scripts/lab

# status WANT COMMAND...: checks the exit status; output is in $TMP/out and $TMP/err
status()
{
	local want=$1 rc

	shift
	"$@" >"$TMP/out" 2>"$TMP/err"
	rc=$?
	[ "$rc" -eq "$want" ] || fail "$*: status $rc, expected $want: $(tail -n 3 "$TMP/err")"
}

# The wall time of a command in milliseconds
wall_ms()
{
	local start

	start=$(date +%s%N)
	"$@" >/dev/null 2>&1
	echo $((($(date +%s%N) - start) / 1000000))
}

passes_status_on()
{
	status 7 "$LAB" run -- sh -c 'exit 7'
	status 0 "$LAB" run -- true
	status 143 "$LAB" run -- sh -c 'kill -TERM $$'
	status 127 "$LAB" run -- no-such-command
}
declare_test passes_status_on "" "the command's exit status comes back"

streams()
{
	status 0 "$LAB" run -- sh -c 'echo out; echo err >&2; printf "a\tb\\r\n"'
	expect "standard output" "$(head -n1 "$TMP/out")" = out
	expect "bytes as written" "$(tail -n1 "$TMP/out" | od -An -c | tr -d ' \n')" = 'a\tb\r\n'
	expect "standard error" "$(<"$TMP/err")" = err
	# much output, and a slow reader
	status 0 "$LAB" run -- seq 200000
	expect "lines" "$(wc -l <"$TMP/out")" -eq 200000
}
declare_test streams "" "stdout and stderr arrive separately, complete and unchanged"

warn_fails()
{
	local dir=$TMP/warn

	cp -r "$SELFTESTS/programs/lab_warn" "$dir"
	make -s -C "$("$LAB" kdir)" ARCH=um SUBARCH=x86_64 M="$dir" modules >"$TMP/out" 2>&1 ||
		fail "cannot build the module: $(<"$TMP/out")"
	chmod -R a+rX "$TMP"
	status 123 "$LAB" run -- insmod "$dir/lab_warn.ko"
	grep -q "as asked for" "$TMP/err" || fail "the warning is not shown"
	status 0 "$LAB" run -- dmesg
}
declare_test warn_fails "" "a WARN in the kernel fails the run, whatever the command said"

read_only_host()
{
	local mark=/usr/lowq-lab-was-here

	status 0 "$LAB" run -- sh -c "touch $mark && test -e $mark && echo x >>/etc/passwd"
	[ ! -e "$mark" ] || fail "$mark is on the host"
	! grep -qx x /etc/passwd || fail "/etc/passwd was changed"
	# not even through the guest's own mount of the host's root
	"$LAB" run -- sh -c "mount -t hostfs none /mnt -o / && touch /mnt$mark" >/dev/null 2>&1
	[ ! -e "$mark" ] || { rm -f "$mark"; fail "$mark is on the host, through a second mount"; }
}
declare_test read_only_host "" "touch /usr/x in the guest leaves the host untouched"

# own_module NAME [CODE]: a folder $TMP/NAME with a module whose init runs CODE
own_module()
{
	mkdir -p "$TMP/$1"
	echo "obj-m := $1.o" >"$TMP/$1/Kbuild"
	cat >"$TMP/$1/$1.c" <<-END
		#include <linux/module.h>
		${3:-}
		static int __init start(void) { ${2:-} return 0; }
		static void __exit stop(void) { }
		module_init(start);
		module_exit(stop);
		MODULE_LICENSE("GPL");
	END
}

own_modules()
{
	local example=$LOWQ_ROOT/examples/tcp_example name

	own_module own_lib '' 'int twice(int n); int twice(int n) { return 2 * n; } EXPORT_SYMBOL_GPL(twice);'
	own_module own_user 'pr_info("own: twice %d\n", twice(number));' \
		'int twice(int n); static int number = 1; module_param(number, int, 0444);'
	status 0 "$LAB" run --module "$TMP/own_lib" --module "$TMP/own_user" --module "$example" -- sh -c \
		'modprobe own_user number=21 && dmesg | grep -o "own: twice .*"; modprobe tcp_example && sysctl -n net.ipv4.tcp_available_congestion_control'
	expect "parameter and dependency" "$(head -n1 "$TMP/out")" = "own: twice 42"
	grep -qw example "$TMP/out" || fail "controls: $(<"$TMP/out")"
	expect "files in the folder" "$(cd "$TMP/own_lib" && echo ./*)" = "./Kbuild ./own_lib.c"
	# the project's own modules are still there, and without the option no others
	status 0 "$LAB" run --module "$TMP/own_lib" -- modprobe tcp_dctcp_ref
	status 1 "$LAB" run -- modprobe own_lib
	# a change is seen, and a module of the project's name replaces it
	own_module tcp_ldcp 'pr_info("own: mine\n");'
	status 0 "$LAB" run --module "$TMP/tcp_ldcp" -- sh -c 'modprobe tcp_ldcp && dmesg | grep -q "own: mine"'
	sed -i 's/mine/changed/' "$TMP/tcp_ldcp/tcp_ldcp.c"
	status 0 "$LAB" run --module "$TMP/tcp_ldcp" -- sh -c 'modprobe tcp_ldcp && dmesg | grep -q "own: changed"'
	# clear ends
	own_module own_broken 'no_such_thing;'
	status 125 "$LAB" run --module "$TMP/own_broken" -- true
	grep -q 'own_broken.c:3:.* error: .*no_such_thing' "$TMP/err" || fail "the compiler's error: $(<"$TMP/err")"
	expect "last line" "$(tail -n1 "$TMP/err")" = "lab: --module: $TMP/own_broken does not build"
	own_module own_oops '*(volatile int *)8 = 1;'
	own_module own_panic 'panic("as asked for");'
	for name in oops panic; do
		status 123 "$LAB" run --module "$TMP/own_$name" -- modprobe "own_$name"
		grep -q '^lab: the kernel complained:' "$TMP/err" || fail "$name: $(<"$TMP/err")"
	done
	grep -q 'Kernel panic - not syncing: as asked for' "$TMP/err" || fail "panic: $(<"$TMP/err")"
	# the line of a crash
	status 123 "$LAB" run --module "$TMP/own_oops" -- modprobe own_oops
	grep -qE '^lab: at .*own_oops.c:3, in (start|init_module)\(\) of own_oops:' "$TMP/err" || fail "no place: $(<"$TMP/err")"
	expect "lines shown, and the one of the crash" "$(grep -cE '^[ >] +[0-9]+  ' "$TMP/err") $(grep -c '^> .*volatile int' "$TMP/err")" = "3 1"
	if command -v labnet jq >/dev/null; then
		jq '.modules.own_panic = {}' "$LOWQ_ROOT/examples/plan/incast.json" >"$TMP/panic.json"
		status 123 "$LAB" run --module "$TMP/own_panic" --out "$TMP/of_panic" "$TMP/panic.json"
		grep -q '^Kernel panic - not syncing: as asked for' "$TMP/err" || fail "a plan's module: $(<"$TMP/err")"
		[ ! -e "$TMP/of_panic" ] || fail "a plan that panics leaves $(ls -A "$TMP/of_panic")"
	fi
	mkdir "$TMP/none" "$TMP/with space"
	touch "$TMP/with space/Kbuild"
	for name in /no/such/dir "$TMP/none" "$TMP/with space" "$TMP/own_lib/Kbuild"; do
		status 2 "$LAB" run --module "$name" -- true
		expect "lines of error for $name" "$(wc -l <"$TMP/err")" -eq 1
	done
	cp -r "$TMP/own_lib" "$TMP/again"
	status 125 "$LAB" run --module "$TMP/own_lib" --module "$TMP/again" -- true
	expect "two of a name" "$(tail -n1 "$TMP/err")" = "lab: --module: two directories make own_lib.ko"
	: >"$TMP/again/Kbuild"
	status 125 "$LAB" run --module "$TMP/again" -- true
	expect "no module" "$(tail -n1 "$TMP/err")" = "lab: --module: the Kbuild of $TMP/again makes no module"
}
declare_test own_modules "" "--module: builds modules that are not the project's, with parameters and dependencies; those that do not build, oops or panic end the run clearly"

# Only the lab can load a module that pretends to be another rdma_rxe.
roce_layout()
{
	# shellcheck disable=SC2016 # the inner shell expands
	status 0 "$LAB" run --module "$SELFTESTS/programs/rxe_alike" -- sh -c '
		ip link add alike type dummy && ip addr add 10.9.9.1/24 dev alike && ip link set alike up &&
		ip neigh add 10.9.9.2 lladdr 02:00:00:00:00:02 dev alike &&
		modprobe roce_rcm && modprobe rxe_alike || exit
		grep -E "not_a_qp|ect_set" /sys/kernel/debug/roce_rcm/counters
		echo sent $(cat /sys/class/net/alike/statistics/tx_packets)
		dmesg | grep "not what this module expects"'
	expect "packets that are not managed" "$(awk '$1 == "not_a_qp" { print $2 }' "$TMP/out")" -eq 5
	expect "packets that were changed" "$(awk '$1 == "ect_set" { print $2 }' "$TMP/out")" -eq 0
	expect "packets that left" "$(awk '$1 == "sent" { print $2 }' "$TMP/out")" -ge 5
	expect "lines in the log" "$(grep -c 'not what this module expects' "$TMP/out")" -eq 1
}
declare_test roce_layout "R11" "roce_rcm does not follow a pointer where rdma_rxe's structures are other ones, and says so"

# Hooks that a process calls, as after a verdict of NFQUEUE. Locks are seen with all checkers only.
requeued()
{
	local dir=$SELFTESTS/programs/nf_requeue

	status 0 "$LAB" run --module "$dir" -- "$dir/test.sh"
	[ -z "${FULL:-}" ] || status 0 "$LAB" run --debug --module "$dir" -- "$dir/test.sh"
}
declare_test requeued "H9" "HPCC++'s messages that NFQUEUE has held are handled as in softirq; FULL=1: with all checkers, too"

# A stack trace of a third CPU's start once read beyond its stack
cpus()
{
	local n

	for_full
	for n in 1 2 3 4; do
		status 0 "$LAB" run --debug --smp "$n" -- nproc
		expect "CPUs with --smp $n" "$(<"$TMP/out")" -eq "$n"
	done
	for n in 2 4; do
		status 0 "$LAB" run --debug --smp "$n" -- "$SELFTESTS/modules/sch_int.sh" churn
		grep '^ok 1 churn' "$TMP/out" | grep -qv SKIP || fail "the test was not run: $(<"$TMP/out")"
	done
}
declare_test cpus "" "FULL=1: the debug flavour boots with 1 to 4 CPUs; with two and four int is replaced, changed and dumped under load"

protocol_taken()
{
	local dir=$SELFTESTS/programs/ip253

	status 0 "$LAB" run --module "$dir" -- "$dir/test.sh"
}
declare_test protocol_taken "H21" "HPCC++ where another module has IFA's IP protocol: one line in the log, and the draft's format"

# The model of a switch that some scenarios use
switch_module()
{
	local dir=$SELFTESTS/lib/sch_switch

	status 0 "$LAB" run --module "$dir" -- "$dir/test.sh"
	[ -z "${FULL:-}" ] || status 0 "$LAB" run --debug --module "$dir" -- "$dir/test.sh"
}
declare_test switch_module "" "sch_switch, the scenarios' model of a switch with a shared buffer and PFC; FULL=1: with all checkers, too"

# The kernel's list of netfilter hooks, which the lab's kernel has as this module alone
listed_hooks()
{
	status 0 "$LAB" run --module "$SELFTESTS/programs/nfnetlink_hook" -- "$SELFTESTS/modules/prague_ecn.sh" hooks_on_demand
	grep '^ok 1 hooks_on_demand' "$TMP/out" | grep -qv SKIP || fail "the test was not run: $(<"$TMP/out")"
}
declare_test listed_hooks "" "Prague's netfilter hook is only in the namespace where a socket listens; none with ect=0"

out_dir()
{
	mkdir "$TMP/o"
	status 0 "$LAB" run --out "$TMP/o" -- sh -c "echo kept >$TMP/o/file; echo no >$TMP/elsewhere"
	expect "a file in --out" "$(<"$TMP/o/file")" = kept
	[ ! -e "$TMP/elsewhere" ] || fail "a file beside --out reached the host"
}
declare_test out_dir "" "only the --out directory is written"

# least_ms COMMAND...: the least wall time of five: other work on this machine only adds to it
least_ms()
{
	for _ in 1 2 3 4 5; do wall_ms "$@"; done | sort -n | head -n1
}

virtual_time()
{
	local trivial sleeping

	trivial=$(least_ms "$LAB" run -- true)
	expect "wall time of a trivial command, ms" "$trivial" -lt 3000
	sleeping=$(least_ms "$LAB" run -- sleep 10)
	expect "what 10 s of sleep add to it, ms" $((sleeping - trivial)) -lt 1000
	expect "what 2 s of sleep take with --realtime, ms" "$(wall_ms "$LAB" run --realtime -- sleep 2)" -ge 2000
}
declare_test virtual_time "" "10 s of guest sleep add under 1 s; a trivial command takes under 3 s"

# In virtual time programs take none.
real_time()
{
	[ "${FULL:-}" ] || skip "with FULL=1: by the real clock other work on this machine counts"
	"$LAB" run --realtime -- env FULL=1 selftests/programs/lowq_tc_undo.sh many_queues completes >"$TMP/real" ||
		fail "$(grep -v '# SKIP' "$TMP/real")"
	grep -E '^# 128' "$TMP/real"
	expect "tests that were run" "$(grep '^ok' "$TMP/real" | grep -vc '# SKIP')" -eq 2
}
declare_test real_time "" "lowq-tc sets 128 queues in under 5 s, and completes in 0.15 s, by the real clock"

# What must be the same in two runs: randomness, clock, ports, packets, marks
fingerprint()
{
	# shellcheck disable=SC2016 # the guest expands
	"$LAB" run --seed "$1" -- bash -c '
		. selftests/lib/lib.sh
		modprobe tcp_dctcp_ref
		dumbbell 2 100us
		in_ns sw tc qdisc add dev egress root handle 1: tbf rate 1gbit burst 3000 limit 1000000
		in_ns sw tc qdisc add dev egress parent 1:1 red limit 1000000 min 15000 max 60000 avpkt 1000 burst 20 bandwidth 1gbit probability 0.1 ecn
		serve r --cc dctcp_ref
		in_ns h2 flowgen long --to 10.0.0.1 --cc cubic --size 2M &
		in_ns h1 flowgen rpc --to 10.0.0.1 --push --cc dctcp_ref --cdf selftests/lib/cdf/websearch.cdf --rate 500 --requests 10 --seed 3
		wait $!
		in_ns sw tc -s qdisc show dev egress
		head -c 16 /dev/urandom | od -An -tx1; date +%N; echo $RANDOM; mktemp -u; cat /proc/sys/kernel/random/uuid
		teardown 2>/dev/null' 2>&1 | grep -v "Killed"
}

same_seed()
{
	fingerprint 5 >"$TMP/a"
	fingerprint 5 >"$TMP/b"
	fingerprint 6 >"$TMP/c"
	expect "lines of evidence" "$(wc -l <"$TMP/a")" -ge 15
	cmp "$TMP/a" "$TMP/b" || fail "the same seed gave other bits: $(diff "$TMP/a" "$TMP/b" | head -n 4)"
	! cmp -s "$TMP/a" "$TMP/c" || fail "another seed gave the same bits"
}
declare_test same_seed "" "the same seed gives the same bits, another seed does not"

# clone DIR: copies the sources, with a cache of their own that shares only the kernel, and
# builds modules and programs
clone()
{
	mkdir -p "$1/cache" "$1/lowq"
	tar -C "$LOWQ_ROOT" --exclude=./out --exclude=./.git --exclude='*.o' --exclude='*.ko' -cf - . |
		tar -C "$1/lowq" -xf -
	make -s -C "$1/lowq/selftests" clean
	ln -s "$LOWQ_CACHE/kernel" "$1/cache/kernel"
	make -s -C "$1/lowq/selftests" tools &&
		LOWQ_CACHE=$1/cache "$1/lowq/scripts/lab" run -- true
}

# bench_row CHECKOUT OUT SCENARIO VARIANT ROW: a run of that checkout; its results are in OUT/SCENARIO
bench_row()
{
	mkdir -p "$2/$3"
	"$1/scripts/lab" run --mem 4G --out "$2/$3" -- lab/runner/guest "$3" "$4" "$5" 1 /out >"$2/$3.log" 2>&1 ||
		{ tail -n 3 "$2/$3.log"; return 1; }
}

# same_file A B: the same bytes
same_file()
{
	cmp "$1" "$2" || fail "${2##*/} is not the same: $(cmp "$1" "$2" 2>&1)"
}

# other_user_space CHECKOUT: its programs for plans draw randomness and fail before they begin, as those of another
# distribution may, and sleep
other_user_space()
{
	local program

	# shellcheck disable=SC2016 # the guest expands
	for program in flowgen labnet qdelay; do
		mv "$1/lab/tools/bin/$program" "$1/lab/tools/bin/real-$program" &&
			printf '%s\n' '#!/bin/sh' 'i=0; while [ $((i += 1)) -lt 50 ]; do [ -e /absent ]; done' \
				'head -c 99 /dev/urandom >/dev/null; sleep 0.0123456' 'exec "${0%/*}/real-${0##*/}" "$@"' \
				>"$1/lab/tools/bin/$program" && chmod +x "$1/lab/tools/bin/$program" || return
	done
}

# This checkout, and a clone at another path. The clone's runs have a busy machine, since this
# checkout's are made at the same time, another environment and umask, and a set-up that fails, draws
# randomness and sleeps; the demo's, which is a plan, has so in all of its programs.
two_clones()
{
	local B=$TMP/clone/at/a/path/much/longer/than/that/of/the/other f i here
	local rows=(ldcp-short size=20000 dctcp demo "" prague)

	LOWQ_CACHE=$(readlink -f "$("$LAB" kdir)/../../..")
	export LOWQ_CACHE
	clone "$B" >"$TMP/log" 2>&1 || fail "the clone: $(tail -n 3 "$TMP/log")"
	for f in flowgen qdelay q_int.so; do
		same_file "$LOWQ_ROOT/lab/tools/bin/$f" "$B/lowq/lab/tools/bin/$f"
	done
	for f in "$B"/cache/modules/*/*/updates/*.ko; do
		same_file "$LOWQ_CACHE/${f#"$B/cache/"}" "$f"
	done
	# shellcheck disable=SC2016 # the guest expands
	sed -i '0,/^fixed_start$/s||for i in 1 2 3; do ls /absent; head -c 99 /dev/urandom >/dev/null; done\nsleep 0.0123456\nfixed_start|' \
		"$B/lowq/lab/runner/guest"
	! cmp -s "$LOWQ_ROOT/lab/runner/guest" "$B/lowq/lab/runner/guest" || fail "lab/runner/guest is not disturbed"
	for ((i = 0; i < ${#rows[@]}; i += 3)); do
		[ "${rows[i]}" != demo ] || other_user_space "$B/lowq" || fail "the programs cannot be replaced"
		bench_row "$LOWQ_ROOT" "$TMP/here" "${rows[@]:i:3}" & here=$!
		(
			umask 077
			# shellcheck disable=SC2030 # for this run alone
			export LOWQ_CACHE=$B/cache HOME=$B LC_ALL=C PATH=/bin:/sbin:/usr/bin:/usr/sbin FILLER TERM=xterm-256color
			FILLER=$(head -c 100000 /dev/zero | tr '\0' x)
			bench_row "$B/lowq" "$B" "${rows[@]:i:3}"
		) || fail "the clone's run of ${rows[i]}"
		wait "$here" || fail "this checkout's run of ${rows[i]}"
		for f in "$TMP/here/${rows[i]}"/*.*; do
			[ "${f##*/}" = kernel.log ] || same_file "$f" "$B/${f#"$TMP/here/"}"
		done
		expect "status of ${rows[i]}" "$(jq -r .status "$TMP/here/${rows[i]}/result.json")" = ok
	done
}
declare_test two_clones "" "a clone at another path, in another environment and beside other programs, builds the same files and prints the same digits"

stale()
{
	local out=$TMP/bench result
	local again=("$LOWQ_ROOT/bench/run" --out "$out" --cc dctcp --exact --variant size=20000 ldcp-short)

	"${again[@]}" >"$TMP/log" 2>&1 || fail "bench/run: $(tail -n 3 "$TMP/log")"
	result=$(echo "$out"/runs/*/dctcp/1/result.json)
	jq '.metrics.rpc_p50_us = 1' "$result" >"$TMP/r" && cp "$TMP/r" "$result"
	"${again[@]}" >"$TMP/log" 2>&1
	expect "a result of the same sources is kept" "$(jq .metrics.rpc_p50_us "$result")" = 1
	jq '.tools = "other" | .metrics.rpc_p50_us = 1' "$result" >"$TMP/r" && cp "$TMP/r" "$result"
	"${again[@]}" >"$TMP/log" 2>&1
	expect "one of other sources is made again" "$(jq .metrics.rpc_p50_us "$result")" != 1
}
declare_test stale "" "bench/run: what other sources made is run again, what these made is kept"

far()
{
	local out=$TMP/far ssh=$TMP/ssh other=$TMP/other run result digits build tree compiler
	local again=("$LOWQ_ROOT/bench/run" --cc dctcp --exact --variant size=20000 --seed 1)

	# the far machine is this one, by another way in, once with modules that another compiler made; as sshd does, it
	# sets SHELL, by which parallel's command is run
	build=$(readlink -f "$("$LAB" kdir)/..")
	tree=$(dirname "$(dirname "$build")")
	mkdir -p "$other/kernel" "$other/modules/$(basename "$build")"
	ln -s "$build" "$other/kernel/$(basename "$build")"
	ln -s "$build" "$other/kernel/7.3-virtual"
	ln -s "$tree/tools" "$other/tools"
	cp -r "$tree/modules/$(basename "$build")"/???????? "$other/modules/$(basename "$build")"
	for compiler in "$other"/modules/*/*/compiler; do
		echo "gcc (Other) 99.0" >"$compiler"
	done
	# shellcheck disable=SC2016 # the other shell expands it
	printf '#!/bin/bash\nwhile [[ $1 == -* ]]; do shift; done\n[ "$1" != other ] || export LOWQ_CACHE=%s\nshift\n[ "$1" != -- ] || shift\nSHELL=/bin/bash exec bash -c "$*"\n' "$other" >"$ssh"
	chmod +x "$ssh"
	"${again[@]}" --out "$TMP/near" ldcp-short >"$TMP/log" 2>&1 || fail "bench/run: $(tail -n 3 "$TMP/log")"
	digits=$(jq -c .metrics "$TMP"/near/runs/*/dctcp/1/result.json)
	"${again[@]}" --out "$out" --sshlogin "$ssh far" ldcp-short >"$TMP/log" 2>&1 || fail "sshlogin: $(tail -n 3 "$TMP/log")"
	result=$(echo "$out"/runs/*/dctcp/1/result.json)
	expect "the digits come back" "$(jq -c .metrics "$result")" = "$digits"
	rm -r "$out"
	! "${again[@]}" --out "$out" --sshlogin "$ssh other" ldcp-short >"$TMP/log" 2>&1 || fail "two compilers in one table"
	expect "compiler of the other machine" "$(jq -r .compiler "$result")" = "gcc (Other) 99.0"
	expect "why there is no result" "$(jq -r .status "$result")" = "failed: another machine: compiler: gcc (Other) 99.0 here, $(gcc --version | head -n1) there"
	run=$("${again[@]}" --out "$out" --dry-run ldcp-short | wc -l)
	rm -r "$out"
	"${again[@]}" --out "$out" --task "$run" --tar ldcp-short >"$TMP/task.tar" 2>"$TMP/log" || fail "task: $(tail -n 3 "$TMP/log")"
	[ ! -e "$out" ] || fail "--tar writes files"
	mkdir "$out" && tar -xf "$TMP/task.tar" -C "$out"
	expect "digits of the task" "$(jq -c .metrics "$result")" = "$digits"
	! "${again[@]}" --out "$out" --task $((run + 1)) ldcp-short >"$TMP/log" 2>&1 || fail "task $((run + 1))"
	grep -q "there are $run runs" "$TMP/log" || fail "$(<"$TMP/log")"
}
declare_test far "" "bench/run: runs made through ssh, or as a batch system's task, come back with the same digits; other compilers are refused"

fast_link()
{
	# htb's 100 Gb/s with one packet of burst, filled by reno flows over drop-tail
	local share

	status 0 "$LAB" run -- bash -c '
		. selftests/lib/lib.sh
		modprobe tcp_dctcp_ref
		dumbbell 1 20us
		in_ns sw tc qdisc add dev egress root handle 1: htb default 1 direct_qlen 100000
		in_ns sw tc class add dev egress parent 1: classid 1:1 htb rate 100gbit ceil 100gbit burst 1514 cburst 1514 quantum 1514
		in_ns sw tc qdisc add dev egress parent 1:1 red limit 10000000 min 160000 max 161500 avpkt 1514 burst 107 bandwidth 30gbit probability 1 ecn
		serve r --cc dctcp_ref
		in_ns h1 flowgen long --to 10.0.0.1 --cc dctcp_ref --size 400M
		teardown 2>/dev/null'
	# a frame of 1514 bytes carries 1448 bytes of payload
	share=$(jq -s 'map(select(.type == "flow"))[0].goodput_bps * 1514 / 1448 / 1e11' "$TMP/out")
	expect "share of 100 Gb/s carried" "$share" -ge 0.98
}
declare_test fast_link "" "a 100 Gb/s link carries 98 % of 100 Gb/s or more"

as_nobody()
{
	local cache=$TMP/cache build tree nobody args

	[ "$(id -u)" -eq 0 ] || skip "is not root, so is an ordinary user already"
	# build what the user would build
	build=$(readlink -f "$("$LAB" kdir)/..")
	tree=$(dirname "$(dirname "$build")")
	mkdir -p "$cache/kernel/$(basename "$build")/build" "$cache/modules"
	cp "$build"/{complete,release} "$cache/kernel/$(basename "$build")/"
	cp "$build/build/linux" "$cache/kernel/$(basename "$build")/build/"
	ln -s "$cache/kernel/$(basename "$build")" "$cache/kernel/7.3-virtual"
	cp -r "$tree/modules/$(basename "$build")" "$cache/modules/"
	rm -rf "$cache/modules/$(basename "$build")/work"
	# this checkout may be where other users have no access, such as below /root
	mkdir "$TMP/project"
	cp -r "$LOWQ_ROOT"/{scripts,lab,include,hpccpp,roce,Kbuild,dkms.conf,*.c} "$TMP/project/"
	chmod -R a+rX "$TMP/project"
	chmod 755 "$TMP"
	chown -R nobody "$cache"
	nobody=(setpriv --reuid nobody --regid nogroup --clear-groups env HOME="$TMP" LOWQ_CACHE="$cache" "$TMP/project/scripts/lab")
	# shellcheck disable=SC2016 # the guest expands
	status 7 "${nobody[@]}" run -- sh -c 'modprobe tcp_dctcp_ref && test "$(id -u)" = 0 && exit 7'
	# a cache of another user's: what is there is used, and nothing can be added
	chown -R root "$cache"
	status 0 "${nobody[@]}" run -- true
	rm -r "$cache/modules/$(basename "$build")"/*
	for args in "run -- true" "build --debug" "import /etc/passwd" "run --module $TMP/project -- true"; do
		# shellcheck disable=SC2086 # words
		status 125 "${nobody[@]}" $args
		expect "errors of lab $args" "$(<"$TMP/err")" = "lab: cannot write to the cache $cache (set LOWQ_CACHE)"
	done
}
declare_test as_nobody "" "it works for an unprivileged user, also with another user's cache"

# cpus_of FOLDER: the CPUs of the guest whose temporary files are there
cpus_of()
{
	taskset -cp "$(pgrep -f "^bwrap .*$1/" | head -n1)" | sed 's/.*: //'
}

own_cpu()
{
	local own=$TMP/own n spin=(sh -c 'echo up; while :; do :; done')

	[ "$(nproc)" -ge 2 ] || skip "one CPU"
	# other labs, with another cache, do not count
	mkdir -p "$own"/{a,b,cache}
	find "$(dirname "$(dirname "$(readlink -f "$("$LAB" kdir)/..")")")" -mindepth 1 -maxdepth 1 ! -name cpus -exec ln -s {} "$own/cache" \;
	for n in a b; do
		TMPDIR=$own/$n LOWQ_CACHE=$own/cache "$LAB" run --timeout 60 -- "${spin[@]}" >"$own/out.$n" 2>&1 &
	done
	for n in a b; do
		wait_until grep -q up "$own/out.$n"
		[[ $(cpus_of "$own/$n") =~ ^[0-9]+$ ]] || fail "CPUs of lab $n: $(cpus_of "$own/$n")"
	done
	expect "CPU of one lab" "$(cpus_of "$own/a")" != "$(cpus_of "$own/b")"
	kill %1 %2
	wait
}
declare_test own_cpu "" "a guest stays on one CPU, and two at once on different ones"

times_out()
{
	local ms

	ms=$(wall_ms "$LAB" run --timeout 2 -- sh -c 'while :; do :; done')
	expect "wall time with --timeout 2, ms" "$ms" -le 8000
	status 124 "$LAB" run --timeout 1 -- sh -c 'while :; do :; done'
}
declare_test times_out "" "--timeout ends a run that spins"

interrupted()
{
	local pid tmp=$TMP/left

	mkdir "$tmp"
	TMPDIR=$tmp "$LAB" run -- sh -c 'echo up; while :; do :; done' >"$TMP/out" &
	pid=$!
	wait_until grep -q up "$TMP/out"
	# an impatient user's second one does not stop the cleaning up
	kill -TERM "$pid"
	sleep 0.1
	kill -TERM "$pid"
	wait "$pid"
	# [l]: so that the pattern does not match the process that searches for it
	wait_until sh -c "! pgrep -f '${tmp/%left/[l]eft}'"
	[ -z "$(ls -A "$tmp")" ] || fail "left behind: $(ls -A "$tmp")"
}
declare_test interrupted "" "an interrupted run leaves no process and no file"

# ends SIGNAL SECONDS: a plan's run that gets SIGNAL after so long, and what is left then. Ctrl-C is for all
# processes in the foreground.
ends()
{
	local pid left=$TMP/left

	TMPDIR=$left env --default-signal=INT setsid "$LAB" run --out "$TMP/result" "$TMP/mine.json" >"$TMP/out" 2>&1 &
	pid=$!
	sleep "$2"
	kill -s "$1" -- "${3:-}$pid"
	wait "$pid"
	# [l]: so that the pattern does not match the process that searches for it
	wait_until sh -c "! pgrep -f '${left/%left/[l]eft}'" || fail "SIG$1 after $2 s leaves $(pgrep -fa "$left")"
	wait_until sh -c "[ -z \"\$(ls -A '$left')\" ]" || fail "SIG$1 after $2 s leaves $(find "$left")"
	[ ! -e "$TMP/result" ] || fail "SIG$1 after $2 s leaves results: $(ls -A "$TMP/result")"
}

sudden_ends()
{
	local seconds

	command -v labnet >/dev/null || skip "no labnet"
	mkdir -p "$TMP/left"
	# 20 s of traffic on the wall's clock
	sed 's/60ms", "control"/100s", "control"/' "$LOWQ_ROOT/examples/plan/incast.json" >"$TMP/mine.json"
	for seconds in 0.1 0.7 3; do
		ends INT "$seconds" -
	done
	# while it starts, too
	for seconds in 0.15 0.25 3; do
		ends KILL "$seconds"
	done
}
declare_test sudden_ends "" "Ctrl-C and kill -9 while a plan is checked, built and run leave no process and no file"

wrong_usage()
{
	local args

	for args in "run" "run true" "run --seed x -- true" "run --mem lots -- true" "run --smp 2 -- true" \
		"run --out /no/such/dir -- true" "run --kernel seven -- true" "build --kernel /no/such/tree" \
		"frobnicate" "run --frobnicate -- true" "run --seed" "kselftest" "kselftest mm" "kselftest net no_such_test" \
		"kselftest net --control" "kselftest --control ../x net" "kselftest net -- true" "run --control ldcp -- true"; do
		# shellcheck disable=SC2086 # words
		status 2 "$LAB" $args
		expect "lines of error for: lab $args" "$(wc -l <"$TMP/err")" -eq 1
	done
	status 2 "$LAB" kselftest net rtnetlink
	expect "a name of two tests" "$(<"$TMP/err")" = "lab: 'rtnetlink' is net/rtnetlink.py or net/rtnetlink.sh (see lab --help)"
	mkdir "$TMP/empty"
	status 125 env LOWQ_CACHE="$TMP/other-cache" "$LAB" build --kernel "$TMP/empty"
	grep -q "unsupported kernel" "$TMP/err" || fail "does not say that the kernel is unsupported"
}
declare_test wrong_usage "" "wrong usage: one line, status 2, nothing done"

# lab build's own part with a user's tree: of the kernel only the files that the lab's patches change, and
# a make that compiles nothing
own_tree()
{
	# other tests of this script have folders of these names
	local TMP=$TMP/own_tree
	local tree=$TMP/tree source file patches p build run

	mkdir "$TMP"
	[ "$(df -Pm "$TMP" | awk 'NR == 2 { print $4 }')" -ge 4000 ] || skip "needs 4 GB in $TMP"
	source=$(readlink -f "$("$LAB" kdir)/../source")
	mapfile -t patches < <(LABD=$LOWQ_ROOT/lab/uml; . "$LABD/fetch.sh"; patches_of 7.3)
	sed -n 's|^+++ b/||p' "${patches[@]}" | sort -u | while read -r file; do
		install -D -m 644 "$source/$file" "$tree/$file"
	done
	for ((p = ${#patches[@]} - 1; p >= 0; p--)); do
		patch -d "$tree" -p1 -R --quiet --no-backup-if-mismatch <"${patches[p]}" || fail "${patches[p]} cannot be undone"
	done
	echo own >"$tree/arch/um/own"
	mkdir "$TMP/bin"
	cat >"$TMP/bin/make" <<-'END'
		#!/bin/bash
		for word; do case $word in O=*) out=${word#O=} ;; KCONFIG_ALLCONFIG=*) wanted=${word#*=} ;; esac; done
		case " $* " in
		*" kernelversion "*|*" kernelrelease "*) echo 7.3.99 ;;
		*" allnoconfig "*) cp "$wanted" "$out/.config" ;;
		*" linux modules "*) [ ! -e "$0.slow" ] || exec sleep 987654; touch "$out/linux" ;;
		esac
	END
	chmod +x "$TMP/bin/make"
	cp -r "$tree" "$TMP/before"
	echo CONFIG_OF_MINE=y >"$TMP/config"
	run=(env PATH="$TMP/bin:$PATH" LOWQ_CACHE="$TMP/cache" "$LAB")
	status 0 "${run[@]}" build --kernel "$tree" --config "$TMP/config"
	diff -r "$tree" "$TMP/before" || fail "the tree itself has changed"
	status 0 "${run[@]}" kdir --kernel "$tree" --config "$TMP/config"
	build=$(<"$TMP/out")
	grep -qx CONFIG_OF_MINE=y "$build/.config" || fail "--config has not arrived in $build"
	[ "$(<"$build/../source/arch/um/own")" = own ] || fail "it is not this tree's kernel"
	patch -d "$build/../source" -p1 -R --dry-run --quiet <"$LOWQ_ROOT/lab/uml/exact-clock.patch" ||
		fail "the copy lacks the lab's patch"
	status 0 "${run[@]}" build --kernel "$tree" --config "$TMP/config"
	grep -q "is built" "$TMP/err" || fail "built again: $(<"$TMP/err")"
	# a second one of the same version, as --against compares them
	cp -r "$tree" "$TMP/patched"
	echo patched >"$TMP/patched/arch/um/own"
	status 0 "${run[@]}" build --kernel "$TMP/patched" --config "$TMP/config"
	status 0 "${run[@]}" kdir --kernel "$TMP/patched" --config "$TMP/config"
	[ "$(<"$(<"$TMP/out")/../source/arch/um/own")" = patched ] || fail "two trees of one version share a kernel"
	# killed while the kernel is built
	touch "$TMP/bin/make.slow"
	cp -r "$tree" "$TMP/slow"
	"${run[@]}" build --kernel "$TMP/slow" >/dev/null 2>"$TMP/err" &
	wait_until pgrep -xf 'sleep 987654'
	kill -KILL $!
	wait $! 2>/dev/null
	wait_until sh -c "! pgrep -xf 'sleep 987654'" || fail "kill -9 leaves $(pgrep -fa 'sleep 987654')"
	rm "$TMP/bin/make.slow"
	status 0 "${run[@]}" build --kernel "$TMP/slow"
	cp -r "$tree" "$TMP/other"
	: >"$TMP/other/$(sed -n 's|^+++ b/||p' "$LOWQ_ROOT/lab/uml/exact-clock.patch" | head -n1)"
	status 125 "${run[@]}" build --kernel "$TMP/other"
	grep -q "unsupported kernel: .*does not apply" "$TMP/err" || fail "it says: $(<"$TMP/err")"
}
declare_test own_tree "" "trees of the user's: copied and patched, unchanged themselves, each built with its --config; what does not fit is refused"

progresses()
{
	# shellcheck source=lab/uml/common.sh
	LOWQ_ROOT=$LOWQ_ROOT bash -c '
		PROJECT=$LOWQ_ROOT
		. "$LOWQ_ROOT/lab/uml/common.sh"
		{ seq 150; echo complete; } | progress "a thing" 100 files
		{ echo 30; sleep 1.2; } | progress "what failed" 100 files
		mkdir "$0/grows"
		grows "$0/grows" sh -c "sleep 1.2; exit 3" | progress growing 100 MB
		exit ${PIPESTATUS[0]}' "$TMP" 2>"$TMP/err"
	expect "status of the command" $? -eq 3
	expect "lines" "$(sed 's/, [0-9]* s$//' "$TMP/err" | paste -sd,)" = \
		"$(printf 'lab: a thing: %s %%,' 1 10 20 30 40 50 60 70 80 90 100)lab: what failed: 30 %,lab: growing: 1 %"
}
declare_test progresses "" "long work says how far it is, ends at 100 %, and never before"

chosen_kernel()
{
	LOWQ_ROOT=$LOWQ_ROOT bash -c '
		PROJECT=$LOWQ_ROOT LABD=$LOWQ_ROOT/lab/uml OPT_CONFIG="" OPT_MODULES=()
		for part in common fetch build; do . "$LABD/$part.sh"; done
		CACHE=$0/cache PREBUILT=$0/package
		says()
		{
			echo "$1: $(basename "$(current_build 7.3 virtual)") $(needs_packages 7.3 virtual)"
		}
		add()
		{
			mkdir -p "$1/build" && touch "$1/complete" && echo 7.3 >"$1/release"
		}
		id=$(config_id 7.3 virtual)
		add "$PREBUILT/kernel/7.3.4-virtual-00000000"
		says "package of other patches"
		add "$PREBUILT/kernel/7.3.4-virtual-$id" && rm "$PREBUILT/kernel/7.3.4-virtual-$id/complete"
		says "half of one"
		add "$PREBUILT/kernel/7.3.5-virtual-$id"
		says "two"
		tools=$PREBUILT/tools/$(hash_of "$LABD/init.c" "$LABD/seed.c" "$LABD/start.c")
		mkdir -p "$tools" "$PREBUILT/modules/7.3.5-virtual-$id/00000000"
		touch "$tools/seed.so"
		says "other modules"
		mkdir "$PREBUILT/modules/7.3.5-virtual-$id/$(modules_id "$PREBUILT/kernel/7.3.5-virtual-$id")"
		says "all of one"
		add "$CACHE/kernel/7.3.3-virtual-$id"
		ln -s 7.3.3-virtual-00000000 "$CACHE/kernel/7.3-virtual"
		says "and one in the cache"' "$TMP/chosen" >"$TMP/out"
	expect "kernels, and what has to be installed to build" "$(sed 's/-virtual-[0-9a-f]*[1-9a-f][0-9a-f]*/-mine/' "$TMP/out" | paste -sd,)" = \
		"package of other patches:  lab-build,half of one:  lab-build,two: 7.3.5-mine lab-modules,other modules: 7.3.5-mine lab-modules,all of one: 7.3.5-mine ,and one in the cache: 7.3.3-mine lab-modules"
}
declare_test chosen_kernel "" "which kernel is taken: of several, none that is half there or of other patches; modules of other sources are built"

# by_hand NAME: $PACKED/NAME.tar as lab export makes it, of the files in $PACKED/NAME; the manifest's head is standard input
by_hand()
{
	local dir=$PACKED/$1/lowq-lab

	mkdir -p "$dir"
	{ cat; echo; (cd "$dir" && find . -type f ! -name 'manifest*' -print0 | LC_ALL=C sort -z | xargs -0r sha256sum); } >"$dir/manifest.new"
	mv "$dir/manifest.new" "$dir/manifest"
	(cd "$PACKED/$1" && { echo lowq-lab/manifest; find lowq-lab ! -type d ! -name manifest; } | tar -T- -cf "../$1.tar")
}

# refused NAME STATUS TEXT: lab import of $PACKED/NAME ends so, with one line, and leaves nothing
refused()
{
	status "$2" "$LAB" import "$PACKED/$1"
	grep -q -- "^lab: .*$3" "$TMP/err" || fail "$1: $(<"$TMP/err")"
	expect "lines of error for $1" "$(wc -l <"$TMP/err")" -eq 1
	# shellcheck disable=SC2031 # packed() has set it
	expect "left by $1" "$(cd "$LOWQ_CACHE" && find . -mindepth 2 ! -name lock)" = ""
}

packed()
{
	local PACKED=$TMP/packed head pid signal LOWQ_CACHE

	mkdir -p "$PACKED/bin" "$PACKED/small"
	status 2 "$LAB" export
	status 2 "$LAB" export --kernel "$PACKED/small" "$PACKED/lab.tar"
	status 125 "$LAB" export /proc/none/lab.tar
	status 0 "$LAB" export "$PACKED/lab.tar"
	expect "files left" "$(ls "$PACKED")" = "$(printf '%s\n' bin lab.tar small)"
	# shellcheck disable=SC2031 # of this test alone
	export LOWQ_CACHE=$PACKED/cache
	head="format: 1
architecture: $(uname -m)
kernel: 7.3.9-virtual-00000000
series: 7.3
flavour: virtual"
	status 2 "$LAB" import "$PACKED/none"
	mkdir -p "$LOWQ_CACHE"
	echo text >"$PACKED/text"
	refused text 125 'is not from lab export'
	by_hand old <<<"format: 0"
	refused old.tar 125 'another version'
	by_hand arm <<<"${head/x86_64/aarch64}"
	refused arm.tar 125 'is for aarch64'
	mkdir -p "$PACKED/other/lowq-lab/kernel/7.3.9-virtual-00000000" "$PACKED/link/lowq-lab"
	touch "$PACKED/other/lowq-lab/kernel/7.3.9-virtual-00000000/complete"
	by_hand other <<<"$head"
	refused other.tar 125 "has 7.3.9-virtual-00000000; this lowq's patches and configuration make"
	sed -i 's/ $//; s/^\([0-9a-f]\{8\}\)[0-9a-f]/\1x/' "$PACKED/other/lowq-lab/manifest"
	tar -C "$PACKED/other" -cf "$PACKED/wrong.tar" lowq-lab/manifest lowq-lab/kernel
	refused wrong.tar 125 'is damaged'
	ln -s /etc/passwd "$PACKED/link/lowq-lab/x"
	by_hand link <<<"$head"
	refused link.tar 125 'has links'
	head -c 9000000 "$PACKED/lab.tar" >"$PACKED/half.tar"
	refused half.tar 125 'is damaged'
	# Ctrl-C while it is unpacked, and kill -9
	for signal in INT KILL; do
		env --default-signal=INT setsid "$LAB" import "$PACKED/lab.tar" >"$TMP/out" 2>&1 & pid=$!
		wait_until test -e "$LOWQ_CACHE/importing.$pid/lowq-lab"
		kill -s "$signal" -- "-$pid"
		wait "$pid" 2>/dev/null
		[ ! -e "$LOWQ_CACHE/kernel/7.3-virtual" ] || fail "SIG$signal leaves a kernel"
		[ "$signal" = KILL ] || expect "left after Ctrl-C" "$(cd "$LOWQ_CACHE" && find . -mindepth 2 ! -name lock)" = ""
	done
	status 125 env LOWQ_CACHE=/proc/none "$LAB" import "$PACKED/lab.tar"
	if [ "$(id -u)" -eq 0 ] && mount -t tmpfs -o size=30m none "$PACKED/small" 2>/dev/null; then
		(LOWQ_CACHE=$PACKED/small refused lab.tar 125 'lab import needs') || { umount "$PACKED/small"; exit 1; }
		umount "$PACKED/small"
	fi
	# what a kill has left is no hindrance, and nothing is compiled
	status 0 "$LAB" import "$PACKED/lab.tar"
	expect "left" "$(cd "$LOWQ_CACHE" && echo importing*)" = "importing*"
	# shellcheck disable=SC2016 # the script's
	printf '#!/bin/sh\necho "$0" >>%s/called\nexit 1\n' "$PACKED" | tee "$PACKED/bin/gcc" >"$PACKED/bin/make"
	chmod +x "$PACKED/bin"/*
	status 0 env PATH="$PACKED/bin:$PATH" "$LAB" run -- modprobe tcp_dctcp_ref
	status 0 env PATH="$PACKED/bin:$PATH" "$LAB" import "$PACKED/lab.tar"
	[ ! -e "$PACKED/called" ] || fail "compilers that were started: $(<"$PACKED/called")"
	# a module of one's own, and the modules of other sources, are built from what was packed
	status 0 "$LAB" run --module "$LOWQ_ROOT/examples/tcp_example" -- modprobe tcp_example
	expect "modules" "$(cd "$LOWQ_CACHE/modules" && cat -- */*/updates/tcp_prague.ko | wc -c)" -gt 0
	# beside the kernel of another checkout, which has the link
	ln -sfn "$LOWQ_CACHE/kernel/7.3.4-virtual-00000000" "$LOWQ_CACHE/kernel/7.3-virtual"
	status 0 "$LAB" run -- true
}
declare_test packed "" "lab export and lab import: nothing is compiled after it; what is foreign, damaged or interrupted leaves nothing"

plans()
{
	local queue="dctcp --rtt 100us --no-tso --exact"
	local ends="\"ends\": [ { \"node\": \"a\", \"dev\": \"x\", \"queue\": \"$queue\" }, { \"node\": \"b\", \"dev\": \"y\" } ]"

	command -v dot >/dev/null || skip "needs graphviz"
	echo "{ \"nodes\": [ { \"name\": \"a\" }, { \"name\": \"b\" } ], \"links\": [ { \"rate\": \"1gbit\", $ends } ] }" >"$TMP/plan"
	status 0 "$LAB" plan "$TMP/plan" "$TMP/plan.svg"
	expect "said" "$(<"$TMP/out")" = "2 nodes, 1 links, about 1 MiB of memory"
	expect "places in the drawing" "$(grep -cE '>(a|b|x|y|1 Gb/s)</text>' "$TMP/plan.svg")" -eq 6
	# all of its words, in lines
	sed -n 's/&#45;/-/g; s/.*>\(.*\)<\/text>/\1/p' "$TMP/plan.svg" | grep -A 2 -x 'a x:' | tail -n 2 >"$TMP/words"
	expect "a queue in the drawing" "$(paste -sd' ' "$TMP/words")" = "$queue"
	sed -i 's/1gbit/10tbit/' "$TMP/plan"
	status 2 "$LAB" plan "$TMP/plan" "$TMP/other.svg"
	expect "error" "$(<"$TMP/err")" = "labnet: $TMP/plan: links[0].rate: '10tbit' is out of range (1kbit to 2tbit)"
	status 2 "$LAB" plan
	expect "files left" "$(cd "$TMP" && echo *.svg*)" = plan.svg
}
declare_test plans "" "lab plan checks a plan, and draws it"

runs_a_plan()
{
	# other tests of this script have folders of these names
	local TMP=$TMP/runs_a_plan plan=$LOWQ_ROOT/examples/plan/incast.json

	command -v labnet >/dev/null || skip "no labnet"
	mkdir "$TMP"
	status 0 "$LAB" run --out "$TMP/result" "$plan"
	expect "said" "$(cat "$TMP/out" "$TMP/err")" = "lab: results are in $TMP/result"
	expect "files" "$(cd "$TMP/result" && echo *)" = "flows.jsonl kernel.log plan.json queues.json series.csv"
	expect "plan" "$(cmp "$plan" "$TMP/result/plan.json" && echo same)" = same
	expect "flows" "$(jq -r 'select(.type == "summary") | "\(.flows) \(.ok)"' "$TMP/result/flows.jsonl")" = "103 103"
	cp "$TMP/result/flows.jsonl" "$TMP/first"
	expect "queues" "$(jq -r '.queues[] | "\(.node) \(.dev) \(.marked > 0) \(.capture_drops)"' "$TMP/result/queues.json")" = "sw p9 true 0"
	# by default results are in out/; the same seed gives the same results
	jq '.must = [ { flows: { label: "bulk" }, of: "min", value: "size", least: 1 },
		{ queue: { node: "sw", dev: "p9" }, value: "qlen_pkts.max", most: 1 },
		{ flows: { kind: "incast" }, of: "count", value: "size", least: 101 },
		{ queue: { node: "sw", dev: "p9" }, value: "delay_us.p42", most: 1 } ]' "$plan" >"$TMP/mine.json"
	mkdir "$TMP/here"
	(cd "$TMP/here" && status 1 "$LAB" run ../mine.json) || exit
	sed -i '$d' "$TMP/err"
	expect "bounds" "$(sed 's/is [0-9]*,/is N,/' "$TMP/err")" = "lab: must[1]: sw p9 qlen_pkts.max is N, not at most 1
lab: must[2]: flows incast count of size is N, not at least 101
lab: must[3]: sw p9 delay_us.p42: no such value"
	expect "same results" "$(cmp "$TMP/first" "$TMP/here/out/mine/flows.jsonl" && echo same)" = same
	status 125 "$LAB" run --out /proc/none "$plan"
	expect "said" "$(<"$TMP/err")" = "lab: cannot write to /proc/none"
	sed 's/"dctcp"/"no_such"/' "$plan" >"$TMP/mine.json"
	status 2 "$LAB" run --out "$TMP/none" "$TMP/mine.json"
	expect "said" "$(<"$TMP/err")" = "flowgen: --cc: no congestion control 'no_such' in this kernel"
	sed -i 's/"kind": "long"/"kind": "lang"/' "$TMP/mine.json"
	status 2 "$LAB" run --out "$TMP/none" "$TMP/mine.json"
	expect "said" "$(<"$TMP/err")" = "labnet: $TMP/mine.json: traffic[0].kind: 'lang' is not long, requests, flows, incast, list, udp or program"
	sed 's/red limit/rod limit/' "$plan" >"$TMP/mine.json"
	status 1 "$LAB" run --out "$TMP/none" "$TMP/mine.json"
	expect "said" "$(<"$TMP/err")" = "labnet: $TMP/mine.json: links[3].ends[1].queue: tc: Unknown qdisc \"rod\", hence option \"limit\" is unparsable"
	sed 's/60ms", "control"/600s", "control"/' "$plan" >"$TMP/mine.json"
	status 124 "$LAB" run --timeout 2 --out "$TMP/none" "$TMP/mine.json"
	jq 'del(.must) | .traffic = [ { kind: "long", from: "h2", to: "r", duration: "5ms" } ] | .events = [ { at: "1ms", node: "h1", dev: "eth0",
		up: false }, { at: "2ms", node: "h1", route: { to: "default", via: "10.0.1.254" } } ]' "$plan" >"$TMP/mine.json"
	status 1 "$LAB" run --out "$TMP/event" "$TMP/mine.json"
	expect "said" "$(head -n1 "$TMP/err")" = "labnet: $TMP/mine.json: event at 2000000 ns, 'h1': Network is unreachable"
	# a path that is none
	jq 'del(.must, .sysctl) | .traffic = [ { kind: "long", from: "h2", to: "r", duration: "5ms" } ]' "$plan" >"$TMP/mine.json"
	status 1 "$LAB" run --out "$TMP/event" "$TMP/mine.json"
	expect "said" "$(head -n1 "$TMP/err")" = "lab: 1 of 1 flows failed; the first, from h2 to r: timeout"
	status 2 "$LAB" run --out "$TMP/none" "$TMP/no.json"
	status 2 "$LAB" run "$plan" -- true
	expect "left" "$(ls -d "$TMP/none" 2>/dev/null)" = ""
}
declare_test runs_a_plan "" "lab run PLAN builds the network, sends the traffic, and leaves results in one folder; the same again"

# What a plan says besides TCP: packets, programs, an end for what has none, a control for each side; and what it records
says_it_all()
{
	local TMP=$TMP/says_it_all plan=$LOWQ_ROOT/examples/plan/incast.json

	command -v labnet >/dev/null || skip "no labnet"
	mkdir "$TMP"
	# shellcheck disable=SC2016 # the plan's shell expands
	jq 'del(.must, .observe) | .record = [ "acks", "pcap", "queue", "ss" ] | .traffic = [
		{ kind: "long", from: "h1", to: "r", stop: "end", control: { from: "cubic", to: "reno" } },
		{ kind: "long", from: "h2", to: "r", stop: "50ms", size: "1T" },
		{ kind: "udp", from: "h2", to: "r", size: 200, every: "1ms", on: "5ms", off: "5ms", duration: "40ms", ecn: "ect1", label: "call" },
		{ kind: "program", node: "h3", command: "echo $X; ip -br addr show to 10/8; ulimit -f; exit 3", environment: { X: "y z" }, status: 3, label: "right" },
		{ kind: "program", node: "h3", command: "echo why >&2; exit 4", label: "wrong" },
		{ kind: "program", node: [ "h2", "h3" ], command: "while :; do sleep 9 & sleep .01; done", stop: "20ms" },
		{ kind: "program", node: "h2", command: "sleep 100", timeout: "10ms", label: "late" },
		{ kind: "program", node: "r", command: "trap \"\" TERM; while :; do sleep .02; done", stop: "end", label: "deaf" },
		{ kind: "program", node: "h3", command: "sleep .15", label: "last" } ]' "$plan" >"$TMP/all.json"
	status 1 "$LAB" run --out "$TMP/out.d" "$TMP/all.json"
	expect "said" "$(grep ^flowgen: "$TMP/err" | sort | paste -sd' ')" = \
		"flowgen: program 'late': timeout flowgen: program 'wrong': error: exit status 4, not 0"
	cd "$TMP/out.d" || exit
	expect "files" "$(echo [!kfp]*)" = \
		"acks.csv deaf.out h2.out h3.out last.out late.out queues.json right.out series.csv ss.txt $(echo sw-p{1,2,3,9}.pcap) wrong.err wrong.out"
	expect "a program's output" "$(paste -sd' ' right.out | tr -s ' ')" = "y z eth0@if$(sed -n 's/.*if\([0-9]*\) .*/\1/p' right.out) UP 10.0.3.1/24 524288"
	expect "its errors" "$(<wrong.err)" = why
	expect "programs" "$(jq -r 'select(.type == "program") | "\(.name) \(.exit) \(.status)"' flows.jsonl | sort | paste -sd,)" = \
		"deaf null ok,h2 null ok,h3 null ok,last 0 ok,late null timeout,right 3 ok,wrong 4 error: exit status 4, not 0"
	expect "stopped, ms" "$(jq -r 'select(.kind == "long" or .name == "h2") | "\(.status) \(.duration_ns / 1e6 | floor)"' flows.jsonl | sort | paste -sd,)" = \
		"ok 150,ok 20,stopped 50"
	expect "packets" "$(jq -r 'select(.kind == "udp") | "\(.sent) \(.received) \(.delay_p50_ns <= .delay_max_ns)"' flows.jsonl)" = "20 20 true"
	expect "their ECN field" "$(tcpdump -r sw-p9.pcap 'udp and ip[1] & 1 = 1' 2>/dev/null | wc -l)" -eq 20
	expect "packets in the capture, to the last" "$(tcpdump -r sw-p9.pcap 2>/dev/null | wc -l)" -ge \
		"$(jq '.queues[] | select(.dev == "p9").packets_out' queues.json)"
	awk -F, 'NR == 1 && !/^t_ns,flow,acked_bytes,cwnd,ssthresh,srtt_us,pacing_bps,delivery_bps,inflight,delivered,marked,retrans$/ { exit 1 }
		NR > 1 && (NF != 12 || $1 < last || $2 !~ /^10\.0\.[123]\.1:[0-9]+>10\.0\.9\.1:520[0-9]$/ || $4 < 1 || $9 < 1) { exit 1 }
		NR > 1 { n++; same += $1 == last; last = $1 } END { exit n < 1000 || same > n / 100 }' acks.csv ||
		fail "ACKs: $(wc -l <acks.csv), such as $(tail -n 1 acks.csv)"
	expect "what ss said" "$(grep -c '^100[0-9]\{6\} h1 .*cubic.*cwnd:' ss.txt)" -eq 1
	"$LOWQ_ROOT/lab/report" . >"$TMP/report" || fail "no picture: $(<"$TMP/report")"
	expect "panels" "$(grep -cE '>(Congestion window|Queue)<' recorded.svg)" -eq 2
	PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$LOWQ_ROOT/lab python3 -c 'import lowq_lab
events = list(lowq_lab.events("."))
print(*sorted({event["what"] for event in events}), all(a["t_ns"] <= b["t_ns"] for a, b in zip(events, events[1:])))' >"$TMP/said" 2>&1
	expect "events" "$(tail -n 1 "$TMP/said")" = "ack end queue start True"
}
declare_test says_it_all "" "a plan's packets, programs, stops and sides; ACKs, packets and sockets that it records; a picture of them"

# BBR's start-up (tcp_bbr.c): its window is 2.885 of the path, which has 331 packets, and three bursts of 24
start_up()
{
	command -v labnet >/dev/null || skip "no labnet"
	jq 'del(.events) | .sysctl += { "net.ipv4.tcp_rmem": "4096 131072 33554432", "net.ipv4.tcp_wmem": "4096 131072 33554432" } |
		(.links[] | select(.ends[0].node == "r")) |= (.rate = "100mbit" | .delay = "20ms" | .ends[1].queue = "pfifo limit 10000") |
		.traffic = [ { kind: "long", from: "h1", to: "r", duration: "1s", control: "bbr" } ] |
		.observe = { queues: [ { node: "sw", dev: "p9" } ] } |
		.must = [ { queue: { node: "sw", dev: "p9" }, value: "qlen_pkts.max", least: 690, most: 704 } ]' \
		"$LOWQ_ROOT/examples/plan/incast.json" >"$TMP/start_up.json"
	status 0 "$LAB" run --out "$TMP/start_up" "$TMP/start_up.json"
}
declare_test start_up "" "BBR's start-up makes the queue that its gains say"

# Applications as they are: nginx and curl
application()
{
	command -v labnet >/dev/null || skip "no labnet"
	command -v nginx >/dev/null && command -v curl >/dev/null || skip "needs nginx and curl"
	python3 "$LOWQ_ROOT/examples/app.py" "$TMP/application" >"$TMP/out" 2>"$TMP/err" || fail "$(tail -n 2 "$TMP/err")"
	expect "pages" "$(sed -n 's/^pages took //p' "$TMP/out" | grep -oE '0\.[0-9]+' | wc -l)" -eq 5
	grep -qE '^[0-9]{3,} ACKs .* to [0-9]+ packets$' "$TMP/out" || fail "$(<"$TMP/out")"
}
declare_test application "" "examples/app.py: nginx and curl run in a plan, unmodified"

# to_disk COMMAND...: a plan that is run by it ends with one line, and leaves nothing
to_disk()
{
	status 125 "$@" "$LAB" run --out "$TMP/disk/result" "$TMP/mine.json"
	expect "lines of error: $(<"$TMP/err")" "$(wc -l <"$TMP/err")" -eq 1
	grep -q '^lab: ' "$TMP/err" || fail "$(<"$TMP/err")"
	expect "left" "$(cd "$TMP/disk" && find . -mindepth 1 ! -name filled)" = "$(printf './result\n./result/flows.jsonl')"
	expect "earlier results" "$(<"$TMP/disk/result/flows.jsonl")" = earlier
}

full_disk()
{
	command -v labnet >/dev/null || skip "no labnet"
	mkdir "$TMP/disk"
	[ "$(id -u)" -eq 0 ] && mount -t tmpfs -o size=256k none "$TMP/disk" 2>/dev/null || skip "cannot mount a small disk"
	jq 'del(.must) | .traffic = [ { kind: "long", from: "h2", to: "r", duration: "1ms" } ]' "$LOWQ_ROOT/examples/plan/incast.json" >"$TMP/mine.json"
	mkdir "$TMP/disk/result"
	echo earlier >"$TMP/disk/result/flows.jsonl"
	(
		head -c 1M /dev/zero >"$TMP/disk/filled" 2>/dev/null
		to_disk env
		to_disk env TMPDIR="$TMP/disk"
	)
	local rc=$?
	umount "$TMP/disk"
	return "$rc"
}
declare_test full_disk "" "a plan that is run on a full disk ends with one line, and leaves earlier results"

kernel_tests()
{
	local run=("$LAB" kselftest --out "$TMP/kernel_tests")

	[ -z "$("$LOWQ_ROOT/scripts/packages" --dry-run lab-kselftest)" ] || skip "packages are missing (scripts/packages lab-kselftest)"
	status 0 "${run[@]}" --control dctcp_ref net altnames sctp_vrf
	expect "TAP" "$(grep -v '^#' "$TMP/out" | paste -sd'|')" = \
		"TAP version 13|1..2|ok 1 net/altnames.sh|ok 2 net/sctp_vrf.sh # SKIP needs CONFIG_IP_SCTP"
	expect "in results.json" "$(jq -r '.control, (.tests[] | .result)' "$TMP/kernel_tests/results.json" | paste -sd' ')" = "dctcp_ref pass skip"
	grep -q 'altnames test .*OK' "$TMP/kernel_tests/net/altnames.sh.log" || fail "no output of the test"
	status 1 "${run[@]}" --control no_such net net/altnames.sh
	grep -q '^not ok 1 net/altnames.sh # sysctl: .*' "$TMP/out" || fail "it says: $(<"$TMP/out")"
	grep -q '^| net/altnames.sh | sysctl: ' "$TMP/kernel_tests/table.md" || fail "no line in the table"
	# one that is built, and one that is changed
	[ -z "${FULL:-}" ] || status 0 "${run[@]}" net bind_wildcard fib_rule_tests
}
declare_test kernel_tests "" "lab kselftest runs tests of the kernel's own: pass, fail and skip, with the reason"

costs()
{
	status 0 "$LAB" run --cost -- sh -c 'for i in 1 2 3 4 5 6 7 8; do /bin/true; done'
	grep -qE '^lab: cost: [0-9]+ processes, [0-9]+\.[0-9] CPU s, [0-9]+ context switches$' "$TMP/err" || fail "$(<"$TMP/err")"
	expect "processes" "$(awk '{ print $3 }' "$TMP/err")" -ge 9
	status 0 "$LAB" run -- true
	expect "said without it" "$(<"$TMP/err")" = ""
}
declare_test costs "" "--cost says what a run took"

chosen_tests()
{
	cat >"$TMP/three.sh" <<-END
		. "$LOWQ_ROOT/selftests/lib/tap.sh"
		one() { :; }
		two() { false; }
		three() { skip "why not"; }
		for t in one two three; do declare_test \$t "" "it"; done
		run_tests "\$@"
	END
	status 1 bash "$TMP/three.sh"
	expect "lines of all tests" "$(grep -cE '^(not )?ok ' "$TMP/out")" -eq 3
	status 0 bash "$TMP/three.sh" one
	expect "lines of the chosen one" "$(grep -E '^(1\.\.|not ok|ok)' "$TMP/out" | paste -sd,)" = "1..1,ok 1 one it"
	status 4 bash "$TMP/three.sh" three
	status 1 bash "$TMP/three.sh" one four
	grep -q '^Bail out!' "$TMP/out" || fail "an unknown test: no complaint"
}
declare_test chosen_tests "" "a script runs and tells of the tests that are named, and of no others"

run_tests "$@"
