# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Boots the lab kernel for one command.

# The kernel's log from the command's start on.
log_of_command()
{
	sed -n '/lab: command starts/,$p' "$1"
}

# sandbox RUN TOOLS [OUT]: confines the guest. The host's files are read-only, except
# the run and the --out directories, and everything the guest starts dies with it. The run and
# tools directories have the same names in every run: they are in the kernel's command line,
# which the kernel mixes into its randomness. Sets WALL, and INSIDE and TOOLS: both directories
# as the guest's kernel sees them.
sandbox()
{
	INSIDE=/dev/lowq-lab TOOLS=/dev/lowq-tools
	WALL=(bwrap --ro-bind / / --dev /dev --proc /proc --unshare-pid --die-with-parent
		--bind "$1" "$INSIDE" --ro-bind "$2" "$TOOLS")
	[ -z "${3:-}" ] || WALL+=(--bind "$3" "$3")
	if ! "${WALL[@]}" true 2>/dev/null {ALIVE}>&-; then
		say "note: bubblewrap cannot run here: the guest's root sees the host read-only, but could mount it otherwise, and a seed does not repeat a run to the bit"
		INSIDE=$1 TOOLS=$2
		WALL=()
	fi
}

# one_cpu: keeps the guest on one CPU of the host, which no other lab has. A guest with one CPU is
# one process per program, of which one runs at a time; changing between them on one CPU takes
# half the time. Sets PIN, which stays empty where all are taken.
one_cpu()
{
	local cpus cpu last taken i

	PIN=()
	[ "$OPT_SMP" = 1 ] && mkdir -p "$CACHE/cpus" 2>/dev/null || return 0
	mapfile -t cpus < <(taskset -cp $$ 2>/dev/null | sed 's/.*: //' | tr ',' '\n' |
		while IFS=- read -r cpu last; do seq "$cpu" "${last:-$cpu}"; done)
	for ((i = 0; i < ${#cpus[@]}; i++)); do
		cpu=${cpus[($$ + i) % ${#cpus[@]}]}
		# held until the last process of this lab has ended
		{ exec {taken}>"$CACHE/cpus/$cpu"; } 2>/dev/null || return 0
		flock -n "$taken" && PIN=(taskset -c "$cpu") && return 0
		exec {taken}>&-
	done
}

# print_cost RUN: what the run took
print_cost()
{
	awk '
		/^processes / { processes = $2 } /^ctxt / { switches = $2 }
		# bash: the CPU time of all that it has started, as "0m1.234s 0m0.567s"
		FILENAME ~ /times$/ { split($1 "m" $2, t, /[ms]+/); cpu = t[1] * 60 + t[2] + t[3] * 60 + t[4] }
		END { printf "lab: cost: %d processes, %.1f CPU s, %d context switches\n", processes, cpu, switches }
	' "$1/stat" "$1/times" >&2
}

# when_dead NAME COMMAND...: sets NAME to a pipe that only this process may hold open: when it ends, even by kill -9,
# COMMAND runs
when_dead()
{
	local pipe

	exec {pipe}> >(
		trap '' INT TERM HUP
		cat
		"${@:2}"
	)
	printf -v "$1" %s "$pipe"
}

# end_guest RUNDIR: what is left of it
end_guest()
{
	while pkill -KILL -f -- " (--bind |lab=)$1 "; do sleep 0.02; done
	rm -rf "$1"
}

# make_rundir: sets RUNDIR, and ALIVE: when this process ends, what is left of the guest ends and RUNDIR goes
make_rundir()
{
	RUNDIR=$(mktemp -du "${TMPDIR:-/tmp}/lowq-lab.XXXXXX") || die "no temporary directory"
	when_dead ALIVE end_guest "$RUNDIR"
	mkdir -m 700 "$RUNDIR" || die "no temporary directory"
}

# where_in_own_module LOG MODULES: the first place in a module of --module that the kernel's log names, with the five
# lines before it
where_in_own_module()
{
	local frame offset name function ko section address at file line dir

	[ ${#OPT_MODULES[@]} -gt 0 ] && type -P addr2line objdump >/dev/null || return 0
	while read -r frame name; do
		offset=${frame##*+} offset=$((${offset%%/*})) function=${frame%+*} name=${name//[][]/} ko=$2/updates/$name.ko
		[ -f "$ko" ] || ko=$(find "$2/updates" -name "${name//_/[-_]}.ko" -print -quit)
		[ -f "$ko" ] || continue
		read -r address section < <(objdump -t "$ko" | awk -v f="$function" '$NF == f && / F / { print $1, $(NF - 2); exit }')
		[ -n "${section:-}" ] || continue
		at=$(addr2line -e "$ko" -j "$section" -i "$(printf %x $((0x$address + offset)))" | head -n1)
		at=${at%% (*} line=${at##*:} at=${at%:*}
		[[ $line =~ ^[0-9]+$ ]] || continue
		for dir in "${OPT_MODULES[@]}"; do
			file=$(find "$dir" -name "${at##*/}" -print -quit)
			[ -f "$file" ] || continue
			say "at ${file#"$PWD"/}:$line, in $function() of $name:"
			awk -v at="$line" 'NR >= at - 5 && NR <= at { printf "%s%5d  %s\n", NR == at ? ">" : " ", NR, $0 }' "$file" >&2
			return
		done
	done < <(grep -oE '[A-Za-z_][A-Za-z0-9_.]*\+0x[0-9a-f]+(/0x[0-9a-f]+)? \[[A-Za-z0-9_]+\]' <<<"$1")
}

# run_guest BUILD FLAVOUR COMMAND...; options are in OPT_*. Returns the status.
run_guest()
{
	local build=$1 flavour=$2 tools modules run status=$EXIT_LAB begun=$SECONDS pid readers=() time boot out err log
	# shellcheck disable=SC2016 # the inner shell's
	local timed='env -i HOME=/root PATH="$PATH" LOWQ_SEED="$LOWQ_SEED" "${@:2}"; status=$?; times >"$1"; exit $status'
	local path=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
	shift 2

	tools=$(build_tools) || exit
	modules=$(build_modules "$build") || exit
	[ ${#OPT_MODULES[@]} -eq 0 ] || modules=$(own_modules "$build" "$modules" "${OPT_MODULES[@]}") || exit
	make_rundir
	run=$RUNDIR
	[ -z "$PLAN" ] || { OPT_OUT=$run/out; mkdir "$OPT_OUT"; }
	printf '%s\0' "$@" 2>/dev/null >"$run/argv" || die "cannot write to $run"
	printf '%s\0' HOME=/root TERM=dumb LANG=C.UTF-8 LOWQ_LAB="${flavour/coverage/virtual}" LOWQ_SEED="$OPT_SEED" \
		PATH="$path:/run/lab" ${PART:+LOWQ_PART="$PART"} >"$run/env"
	# An installed lab has no project to run the command in.
	if [ -f "$PROJECT/Makefile" ]; then
		printf /lowq >"$run/cwd"
		printf %s "$PROJECT" >"$run/project"
	else
		printf %s "$PWD" >"$run/cwd"
	fi
	printf %s "$tools" >"$run/tools"
	[ -z "$modules" ] || printf %s "$modules" >"$run/modules"
	[ -z "$OPT_OUT" ] || printf %s "$OPT_OUT" >"$run/outdir"
	touch "$run"/{stdout,stderr,kernel.log}

	# Drain the guest's pipes into files at once: it would wait for a slow reader, and runs would
	# differ. tail shows the files to the user.
	exec {out}> >(exec cat >"$run/stdout" {ALIVE}>&-); readers+=($!)
	exec {err}> >(exec cat >"$run/stderr" {ALIVE}>&- {out}>&-); readers+=($!)
	exec {log}> >(exec cat >"$run/kernel.log" {ALIVE}>&- {out}>&- {err}>&-); readers+=($!)

	time=(time-travel=inf-cpu time-travel-start=1893456000000000000)
	# before 7 IPsec brings it: it measures a processor's jitter, and there is none while time stands still
	! grep -qx CONFIG_CRYPTO_JITTERENTROPY=y "$build/build/.config" || time+=(initcall_blacklist=jent_mod_init)
	[ -z "$OPT_REALTIME" ] || time=()
	# kmemleak's lock is handed on in turn: CPUs that run would spin for one that waits for a CPU
	[ "$OPT_SMP" -le 2 ] || [ "$OPT_SMP" -le "$(nproc)" ] ||
		{ say "note: without kmemleak, as this machine has less than $OPT_SMP CPUs"; time+=(kmemleak=off); }
	[ "$flavour" != debug ] || [[ ${time[*]} == *kmemleak* ]] || touch "$run/leaks"
	# the same words for all parts, whose boots are alike
	[ -z "${PART:-}" ] || time+=(parallel=6)
	sandbox "$run" "$tools" "$OPT_OUT"
	one_cpu
	boot=("$build/build/linux" mem="$OPT_MEM" root=/dev/root rootfstype=hostfs rootflags=/ ro
		init="$TOOLS/init" lab="$INSIDE" "${time[@]}" seccomp=on ncpus="$OPT_SMP"
		con=null "con0=null,fd:3" "con1=null,fd:4" "con2=null,fd:5" console=tty2
		panic=-1 uml_dir="$INSIDE" umid=guest)
	setsid setpriv --pdeathsig TERM env -i HOME=/root PATH="$path" LOWQ_SEED="$OPT_SEED" \
		"${PIN[@]}" setarch -R timeout -k 2 "$OPT_TIMEOUT" "${WALL[@]}" \
		bash -c "$timed" lab "$INSIDE/times" LD_PRELOAD="$TOOLS/seed.so" "${boot[@]}" \
		</dev/null 3>&"$out" 4>&"$err" 5>&"$log" {ALIVE}>&- {out}>&- {err}>&- {log}>&- >"$run/uml.log" 2>&1 &
	pid=$!
	GUEST=$pid
	exec {out}>&- {err}>&- {log}>&-
	tail -q -c +1 -s 0.02 -f --pid=$pid "$run/stdout" {ALIVE}>&- & readers+=($!)
	tail -q -c +1 -s 0.02 -f --pid=$pid "$run/stderr" >&2 {ALIVE}>&- & readers+=($!)
	wait $pid 2>/dev/null
	status=$?
	GUEST=
	wait "${readers[@]}"
	[ -z "$OPT_COST" ] || [ ! -s "$run/times" ] || print_cost "$run"
	[ -z "$OPT_OUT" ] || cp "$run/kernel.log" "$OPT_OUT/" 2>/dev/null

	if log_of_command "$run/kernel.log" | grep -qE "$SPLATS"; then
		say "the kernel complained:"
		log_of_command "$run/kernel.log" | grep -E -m1 -A150 "$SPLATS" >&2
		# a fault's registers come before its line
		where_in_own_module "$(log_of_command "$run/kernel.log")" "$modules"
		return "$EXIT_SPLAT"
	elif [ $status -eq 124 ] || { [ $status -eq 137 ] && [ $((SECONDS - begun)) -ge "$OPT_TIMEOUT" ]; }; then
		say "stopped after $OPT_TIMEOUT s (--timeout)"
		return "$EXIT_TIMEOUT"
	elif [ $status -eq 137 ]; then
		say "the guest was killed"
		return "$EXIT_LAB"
	elif [ -s "$run/status" ]; then
		return "$(cat "$run/status")"
	fi
	say "the guest ended without a status; its last words:"
	tail -n 20 "$run/uml.log" "$run/kernel.log" >&2
	return "$EXIT_LAB"
}

# Leave nothing behind, whatever ends this process.
clean_up()
{
	trap '' INT TERM HUP	# a second one
	if [ -n "${GUEST:-}" ]; then
		kill -TERM -- -"$GUEST" 2>/dev/null
		sleep 0.2
		kill -KILL -- -"$GUEST" 2>/dev/null
		wait "$GUEST" 2>/dev/null
	fi
	[ -z "${RUNDIR:-}" ] || rm -rf "$RUNDIR"
}
