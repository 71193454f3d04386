#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Tests devel/which, on a small project of its own.
# shellcheck disable=SC2317 # tests are called by name

# shellcheck source=selftests/lib/tap.sh
. "$(dirname "$0")/../selftests/lib/tap.sh"
DEVEL=$(realpath "$(dirname "$0")")

# a project whose a.c had these lines when the map was made; unit test_a runs 2 to 4, "long" 2 and 3,
# "short" 3 and 5
setup()
{
	mkdir -p "$TMP/p/devel" "$TMP/p/selftests/modules" "$TMP/p/out/coverage" && cd "$TMP/p" || fail
	cp "$DEVEL"/{which,covered.py,state.py} devel/
	touch selftests/modules/x.sh
	printf '%s\n' one two three four five six >a.c
	git init -q . && git add a.c && git -c user.name=t -c user.email=t@example.org commit -qm a || fail "no git"
	cat >out/coverage/tests.json <<-END
		{ "seconds": { "unit test_a": 0.1, "x.sh long": 30, "x.sh short": 2 },
		  "sha256": { "a.c": "$(sha256sum a.c | cut -d' ' -f1)" },
		  "lines": { "a.c": { "2": ["x.sh long", "unit test_a"], "3": ["x.sh long", "x.sh short", "unit test_a"],
		    "4": ["unit test_a"], "5": ["x.sh short"] } } }
	END
}

teardown()
{
	rm -rf "$TMP/p"
}

# says STATUS TEXT ARGUMENT...
says()
{
	local status

	devel/which "${@:3}" >"$TMP/out" 2>&1
	status=$?
	expect "status of ${*:3} ($(head -n1 "$TMP/out"))" "$status" -eq "$1"
	expect "said of ${*:3}" "$(cat "$TMP/out")" = "$2"
}

UNIT='make -C selftests/unit check-test_a  # 0 s'
X='scripts/lab run -- selftests/modules/x.sh'

lines()
{
	says 0 "$UNIT
$X long  # 30 s" a.c:2
	says 0 "$UNIT
$X long short  # 32 s" "$PWD/a.c:2-3"
	says 0 "$X short  # 2 s" a.c:5
	says 0 "$UNIT
$X short  # 2 s" --few a.c:2-5
	says 1 "which: no test runs these lines" a.c:1-1 --map <(sed 's/"2":/"9":/' out/coverage/tests.json)
	says 2 "which: a.c:7: the file has 6 lines" a.c:7
	says 2 "which: 'a.c' is not FILE:LINE or FILE:FIRST-LAST" a.c
	says 2 "which: no file b.c" b.c:1
	says 2 "which: make coverage does not count the lines of devel/which" devel/which:1
	rm out/coverage/tests.json
	says 1 "which: there is no out/coverage/tests.json: make coverage first" a.c:1
}
declare_test lines "" "the tests of lines, as commands; --few: as many as run each line once"

change()
{
	says 1 "which: no test runs these lines" --change
	# two new lines before what was the fifth, and the second one gone
	sed -i '5i new\nnew' a.c && sed -i 2d a.c
	says 0 "$X short  # 2 s" a.c:6
	says 0 "$UNIT
$X long short  # 32 s" --change
	git -c user.name=t -c user.email=t@example.org commit -qam b
	says 1 "which: no test runs these lines" --change
	says 0 "$UNIT
$X long short  # 32 s" --change HEAD~
	sed -i 's/"a.c": "./&0/' out/coverage/tests.json
	says 1 "which: a.c has changed since make coverage, and no commit has it as it was" a.c:1
}
declare_test change "" "--change, and lines that have moved since the map was made"

run_tests "$@"
