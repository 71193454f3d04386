# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Runs the kernel's own tests of the network: tools/testing/selftests/net and net/forwarding, whose
# Makefiles name them. What they need of C is built by these Makefiles, for the host, in the cache:
#   kselftest/SOURCE/{usr,net,net/forwarding}/    the kernel's headers, and programs

# named_by DIR VARIABLE...: what a Makefile of these tests has in the variables, a line each
named_by()
{
	# shellcheck disable=SC2016 # make's
	make -s -C "$1" OUTPUT=/nowhere --eval="lowq-names: ; @printf '%s\n' $(printf '$(notdir $(%s)) ' "${@:2}")" \
		lowq-names 2>/dev/null | grep . | LC_ALL=C sort -u
}

# kselftests: all tests of both directories, a line each, such as "net/forwarding/router.sh"
kselftests()
{
	local dir

	for dir in net net/forwarding; do
		named_by "$SELFTESTS/$dir" TEST_PROGS TEST_GEN_PROGS | sed "s|^|$dir/|"
	done
}

# programs_of TEST: the programs in C that it is or names; not those in BPF or with YNL
programs_of()
{
	local dir=$SELFTESTS/${1%/*} test=${1##*/} texts=()

	if [ -f "$dir/$test" ]; then
		# and the scripts that it has the name of
		mapfile -t texts < <(cd "$dir" && { echo "$test"; grep -oE '[[:alnum:]_-]+\.sh' "$test"; } | sort -u)
		test=$(cd "$dir" && grep -ohE '[[:alnum:]_]+' "${texts[@]}" 2>/dev/null | LC_ALL=C sort -u)
	fi
	named_by "$dir" TEST_GEN_PROGS TEST_GEN_FILES | grep -v '\.o$' |
		LC_ALL=C comm -23 - <(named_by "$dir" YNL_GEN_PROGS YNL_GEN_FILES) |
		LC_ALL=C comm -12 - <(printf '%s\n' "$test")
}

# build_programs TEST: builds them in PROGRAMS. Where one cannot be built, the test may do without.
build_programs()
{
	local dir=${1%/*} programs lock

	mapfile -t programs < <(programs_of "$1")
	mkdir -p "$PROGRAMS/net/forwarding" 2>/dev/null || die "cannot write to the cache $CACHE (set LOWQ_CACHE)"
	[ ${#programs[@]} -gt 0 ] || return 0
	exec {lock}>"$PROGRAMS/lock"
	flock "$lock"
	[ -f "$PROGRAMS/headers" ] || {
		make -s -C "$SELFTESTS/../../.." ARCH="$(uname -m)" O="$PROGRAMS" -j"$(nproc)" headers >"$PROGRAMS/log" 2>&1 &&
			touch "$PROGRAMS/headers"
	} || die "the kernel's headers cannot be made; see $PROGRAMS/log"
	make -k -C "$SELFTESTS/$dir" OUTPUT="$PROGRAMS/$dir" KHDR_INCLUDES="-isystem $PROGRAMS/usr/include" \
		-j"$(nproc)" "${programs[@]/#/$PROGRAMS/$dir/}" >"$PROGRAMS/log" 2>&1
	exec {lock}>&-
}

# needs_of TEST: what kselftest.list says that it needs, a line each
needs_of()
{
	sed -n "s%^$1 *| *%%p" "$LABD/kselftest.list" | sed 's/, */\n/g'
}

# missing TEST: why this lab cannot run it, if so
missing()
{
	local need found=()

	while read -r need; do
		case $need in
		''|tcp) ;;
		CONFIG_*) grep -q "^$need=" "$BUILD/build/.config" || found+=("$need") ;;
		"program "*) type -P "${need#program }" >/dev/null || found+=("$need") ;;
		time) [ "$OPT_REALTIME" ] || found+=("time that passes while a program works (--realtime)") ;;
		*) found+=("$need") ;;
		esac
	done < <(needs_of "$1")
	[ ${#found[@]} -eq 0 ] || printf '%s\n' "needs $(printf '%s, ' "${found[@]}")" | sed 's/, $//'
}

# why STATUS LOG: what a test that did not pass says about it, in a line
why()
{
	local pattern='not ok|FAIL|[Ff]ailed|[Ee]rror: |not found|[Nn]o such|[Uu]nknown|[Cc]annot|not supported' line

	case $1 in
	4) pattern='skip|SKIP' ;;
	"$EXIT_SPLAT") echo "the kernel complained"; return ;;
	"$EXIT_TIMEOUT") echo "no end after $OPT_TIMEOUT s"; return ;;
	esac
	# without colours
	line=$(sed 's/\x1b\[[0-9;]*m//g' "$2" | { grep -aE -m1 "$pattern" || tail -n1 "$2"; } |
		tr -s '[:space:]' ' ' | tr -cd '[:print:]' | sed -E 's/^ *(SKIP:?|# )* *//; s/ *$//' | cut -c1-100)
	printf '%s\n' "${line:-status $1}"
}

# run_kselftest TEST: runs it in a guest of its own; sets result and reason
run_kselftest()
{
	local log=$OPT_OUT/$1.log status dir
	local options=(--kernel "$OPT_KERNEL" --seed "$OPT_SEED" --mem "$OPT_MEM" --timeout "$OPT_TIMEOUT")

	result=skip
	reason=$(missing "$1")
	[ -z "$reason" ] || return 0
	[ -z "$OPT_CONFIG" ] || options+=(--config "$OPT_CONFIG")
	[ "$OPT_FLAVOUR" != debug ] || options+=(--debug)
	[ -z "$OPT_REALTIME" ] || options+=(--realtime)
	for dir in "${OPT_MODULES[@]}"; do
		options+=(--module "$dir")
	done
	mkdir -p "${log%/*}"
	build_programs "$1"
	if [ ! -f "$SELFTESTS/$1" ] && [ ! -x "$PROGRAMS/$1" ]; then
		reason="does not build: $(grep -m1 -oP 'fatal error: \K.*|: error: \K.*' "$PROGRAMS/log" || tail -n1 "$PROGRAMS/log")"
		return
	fi
	"$PROJECT/lab/lab" run "${options[@]}" -- sh "$LABD/kselftest-guest.sh" \
		"$SELFTESTS" "$PROGRAMS" "$1" "$OPT_CONTROL" >"$log" 2>&1 &
	LAB_OF_TEST=$!
	wait $LAB_OF_TEST
	status=$?
	LAB_OF_TEST=
	case $status in
	0) result=pass; return ;;
	4) ;;
	*) result=fail ;;
	esac
	reason=$(why $status "$log")
}

# If this ends early, end the lab of the running test, too
end_kselftest()
{
	rm -f "${LINES_OF:-}"
	[ -n "${LAB_OF_TEST:-}" ] || return 0
	kill -TERM "$LAB_OF_TEST"
	wait "$LAB_OF_TEST"
}

# kselftest TEST...: TAP on standard output, and in --out the output of each test, results.json and table.md
kselftest()
{
	local all tests=() name test result reason n=0 start
	local -A count=([pass]=0 [fail]=0 [skip]=0)

	SELFTESTS=$(readlink -f "$BUILD/source")/tools/testing/selftests
	PROGRAMS=$CACHE/kselftest/$(basename "$(readlink -f "$BUILD/source")")
	mapfile -t all < <(kselftests)
	[ ${#all[@]} -gt 0 ] || die "no tests in $SELFTESTS"
	for name; do
		# its whole name, or one without .sh or .py that no other test has
		test=$(printf '%s\n' "${all[@]}" | grep -xF -m1 -e "$name" -e "net/$name") ||
			test=$(printf '%s\n' "${all[@]}" | grep -xF -e "net/$name.sh" -e "net/$name.py") ||
			usage_error "the kernel's net and net/forwarding have no test '$name'"
		[[ $test != *$'\n'* ]] || usage_error "'$name' is ${test/$'\n'/ or }"
		tests+=("$test")
	done
	mkdir -p -- "$OPT_OUT" 2>/dev/null && OPT_OUT=$(realpath -- "$OPT_OUT") && [ -w "$OPT_OUT" ] ||
		die "cannot write to $OPT_OUT"
	[ $# -gt 0 ] || for test in "${all[@]}"; do
		[ -z "$OPT_CONTROL" ] || needs_of "$test" | grep -qx tcp || continue
		tests+=("$test")
	done
	LINES_OF=$(mktemp "$OPT_OUT/.results.XXXXXX") || die "cannot write to $OPT_OUT"
	printf 'TAP version 13\n1..%d\n' ${#tests[@]}
	for test in "${tests[@]}"; do
		start=$SECONDS
		run_kselftest "$test"
		count[$result]=$((count[$result] + 1))
		case $result in
		pass) echo "ok $((++n)) $test" ;;
		skip) echo "ok $((++n)) $test # SKIP $reason" ;;
		fail) echo "not ok $((++n)) $test # $reason" ;;
		esac
		# shellcheck disable=SC2016 # jq's
		jq -nc --arg test "$test" --arg result "$result" --arg why "$reason" --argjson seconds $((SECONDS - start)) \
			'$ARGS.named' >>"$LINES_OF" || die "cannot write to $OPT_OUT"
	done
	jq -s --arg kernel "$(cat "$BUILD/release")" --arg control "$OPT_CONTROL" '{ $kernel, $control, tests: . }' \
		"$LINES_OF" >"$OPT_OUT/results.json" && jq -rs -f "$LABD/kselftest.jq" "$OPT_OUT/results.json" >"$OPT_OUT/table.md" ||
		die "cannot write to $OPT_OUT"
	echo "# ${count[pass]} passed, ${count[fail]} failed, ${count[skip]} skipped; the output of each is in $OPT_OUT"
	[ "${count[fail]}" -eq 0 ]
}
