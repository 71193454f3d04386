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

if length == 1 then
	([.[0].tests[] | select(.result == "pass") | .test]) as $passed |
	"Passed (\($passed | length)): \($passed | join(", ")).", "", (.[0].control |= (if . == "" then "result" else . end)) as $runs |
	([.[0].tests[] | select(.result == ("fail", "skip"))] | sort_by(.result) | map(.test)) as $rest |
	if ($rest | length) > 0 then $rest | table($runs) else empty end
else . as $runs | [.[].tests[].test] | unique | table($runs) end
