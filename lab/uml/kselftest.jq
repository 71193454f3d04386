# SPDX-License-Identifier: GPL-2.0
# jq -rs -f kselftest.jq results.json...: the results of one or more runs of "lab kselftest" as Markdown. Of one
# run: which tests passed, and a table of the others; of several: a table with a column for each.

def cell: if . == null then ""
	else .result + (if .why == "" then "" else ": " + (.why | gsub("\\|"; "/")) end) end;

def row: "| " + join(" | ") + " |";

# of the tests in the input
def table($runs):
	(["test"] + [$runs[].control | if . == "" then "default" else . end] | row),
	(["---"] + [$runs[] | "---"] | row),
	(.[] as $test | [$test] + [$runs[] | first(.tests[] | select(.test == $test)) // null | cell] | row);

def names: map(.test) | join(", ");

if length == 1 then .[0].tests |
	map(select(.result == "pass")) as $passed | map(select(.result == "fail")) as $failed |
	map(select(.result == "skip")) as $skipped |
	"Passed, \($passed | length): \($passed | names).",
	if ($failed | length) > 0 then
		"", (["failed, \($failed | length)", "why"] | row), (["---", "---"] | row),
		($failed[] | [.test, (.why | gsub("\\|"; "/"))] | row) else empty end,
	if ($skipped | length) > 0 then
		"", (["skipped, \($skipped | length)", "why"] | row), (["---", "---"] | row),
		($skipped | group_by(.why)[] | [names, .[0].why] | row) else empty end
else . as $runs | [.[].tests[].test] | unique | table($runs) end
