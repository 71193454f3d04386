# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# TAP output as kselftest expects it, for all test scripts. Each test runs in a subshell of its
# own and can pass nothing but files to a later one.

TMP=$(mktemp -d)
readonly KSFT_SKIP=4

# sleep SECONDS: what no process is started for
exec {NEVER}<> <(:)
sleep()
{
	read -rt "$1" -u "$NEVER" || :
}

TESTS=()	# "FUNCTION|REQUIREMENT IDS|what it shows"

# declare_test FUNCTION "IDS" "WHAT": adds a test; they run in the order of declaration
declare_test()
{
	TESTS+=("$1|$2|$3")
}

# Scripts redefine these: setup runs before each test, teardown and put_back after it, whether
# it passed or not.
setup() { :; }
teardown() { :; }
put_back() { :; }

# In a test, fail "why" or skip "why" ends it; otherwise its exit status decides. Outside a
# test, fail ends the script.
fail()
{
	printf '%s\n' "$*" >"$TMP/why"
	[ "$BASH_SUBSHELL" -gt 0 ] || echo "Bail out! $*"
	exit 1
}

skip()
{
	printf '%s\n' "$*" >"$TMP/why"
	exit $KSFT_SKIP
}

# for_full: ends a test that only FULL=1 runs
for_full()
{
	[ "${FULL:-}" ] || skip "with FULL=1"
}

# skip_all WHY: to be called instead of run_tests; skips the whole script
skip_all()
{
	echo "1..0 # SKIP $*"
	rm -rf "$TMP"
	exit $KSFT_SKIP
}

# expect WHAT GOT OP WANT, OP one of -eq -ne -lt -le -gt -ge (floats too), = !=
expect()
{
	local whole='^-?[0-9]{1,18}$' number='^[-+]?[0-9]*\.?[0-9]+([eE][-+]?[0-9]+)?$' a b order=0 LC_ALL=C

	if [[ $3 = *= || ( $2 =~ $whole && $4 =~ $whole ) ]]; then
		test "$2" "$3" "$4"
	elif [[ $2 =~ $number && $4 =~ $number ]]; then
		# as texts of one length
		printf -v a %040.12f "$2"
		printf -v b %040.12f "$4"
		[[ ! $a < $b ]] || order=-1
		[[ ! $a > $b ]] || order=1
		[[ $a$b != -*-* ]] || order=$((-order))
		test $order "$3" 0
	else
		false
	fi || fail "$1: got '$2', expected $3 '$4'"
}

# between WHAT GOT LEAST MOST
between()
{
	expect "$1" "$2" -ge "$3"
	expect "$1" "$2" -le "$4"
}

# measured WHAT: printed with the test's result, which a passing test's other output is not
measured()
{
	echo "measured: $*"
}

# run_tests [FUNCTION...]: runs all or the named tests, prints TAP, exits as kselftest expects.
# AFTER_TEST is a program that runs after each test, with the test's name.
run_tests()
{
	local entry func ids what line n=0 passed=0 failed=0 rc start chosen=()

	for entry in "${TESTS[@]}"; do
		[ $# -gt 0 ] && [[ " $* " != *" ${entry%%|*} "* ]] || chosen+=("$entry")
	done
	if [ ${#chosen[@]} -lt $# ]; then
		echo "Bail out! one of these is no test here: $*"
		rm -rf "$TMP"
		exit 1
	fi
	echo "TAP version 13"
	echo "1..${#chosen[@]}"
	for entry in "${chosen[@]}"; do
		IFS='|' read -r func ids what <<<"$entry"
		n=$((n + 1))
		: >"$TMP/why"
		start=${EPOCHREALTIME/[.,]/}
		(trap 'teardown; put_back' EXIT; setup; "$func") >"$TMP/log" 2>&1
		rc=$?
		[ -z "${AFTER_TEST:-}" ] || "$AFTER_TEST" "$func"
		printf '# %s took %d ms\n' "$func" $(((${EPOCHREALTIME/[.,]/} - start) / 1000))
		what="$func ${ids:+[$ids] }$what"
		case $rc in
		0)
			passed=$((passed + 1))
			while IFS= read -r line; do
				[[ $line != "measured: "* ]] || echo "# ${line#measured: }"
			done <"$TMP/log"
			echo "ok $n $what"
			;;
		"$KSFT_SKIP") echo "ok $n $what # SKIP $(<"$TMP/why")" ;;
		*)
			failed=$((failed + 1))
			echo "not ok $n $what"
			sed 's/^/# /' "$TMP/log" "$TMP/why" | tail -n 40
			;;
		esac
	done
	rm -rf "$TMP"
	[ $failed -eq 0 ] || exit 1
	[ $passed -gt 0 ] || exit $KSFT_SKIP
	exit 0
}
