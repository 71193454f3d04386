#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests lab/report: tables, means over seeds, failed runs, goals, broken input, the page and
# the plots, all from results that this test makes up.

# shellcheck source=../lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"
root=$(realpath "$(dirname "$0")/../..")
report=$(realpath "$(dirname "$0")/../../lab/report")
cd "$TMP" || exit 1
export LC_ALL=C.UTF-8

in_project()
{
	[ -d "$root/bench/results" ]
}

needs_gnuplot()
{
	command -v gnuplot >/dev/null || skip "gnuplot is not installed"
}

make_results()
{
	python3 - <<'PY'
import json
from pathlib import Path

def put(top, variant, row, seed, metrics, status="ok", **more):
    place = Path(top, "runs", "-".join(map(str, variant.values())) or "default", row, str(seed))
    place.mkdir(parents=True)
    result = {"variant": variant, "row": row, "label": f"{row} <&> label", "control": row,
              "queue": "red", "seed": seed, "status": status, "metrics": metrics}
    (place / "result.json").write_text(json.dumps(result | more))
    return place

def series(place, samples, level):
    with open(place / "queue.csv", "w") as out:
        print("t_s,throughput_bps,qlen_pkts_mean,qlen_pkts_max,marked", file=out)
        for i in range(samples):
            print(i * 1e-4, 1e10, level, 4321 if i == samples // 3 else level + 2, 0, sep=",",
                  file=out)
    with open(place / "flows.csv", "w") as out:
        print("t_s,flow,throughput_bps", file=out)
        for i in range(0, samples, 10):
            print(i * 1e-4, "a>b", 6e9 + (i % 7) * 1e7, sep=",", file=out)
            if not 1000 <= i < 1200:
                print(i * 1e-4, "c>d", 5e9, sep=",", file=out)
            print(i * 1e-4, f"small{i}>b", 1e6, sep=",", file=out)
    with open(place / "flows.jsonl", "w") as out:
        print('{"type":"start"}', file=out)
        for i in range(500):
            print(json.dumps({"type": "flow", "kind": "rpc", "duration_ns": 50000 + 100 * i * level,
                              "status": "ok"}), file=out)
        print('{"type":"flow","kind":"rpc","duration_ns":1,"status":"timeout"}', file=out)
        print('{"type":"flow","kind":"long","duration_ns":1,"status":"ok"}', file=out)

def scenario(top, **more):
    Path(top, "scenario.json").write_text(json.dumps(
        {"name": top, "title": "A <title>", "question": "Is it & how?", "topology": "a --<>-- b",
         "params": {"rate": "10gbit"}, "command": "make demo", "kernel": "Linux x",
         "reference_row": "slow"} | more))

base = {"utilisation": 0.98, "delay_mean_us": 10, "delay_p99_us": 40, "rpc_p50_us": 100,
        "rpc_p99_us": 200, "marks": 1000, "drops": 0, "jain": 1, "goodput_bps": 9.5e9}
for seed, util, mean in ((1, .98, 10), (2, .99, 14)):
    place = put("one", {}, "fast", seed, base | {"utilisation": util, "delay_mean_us": mean})
    series(place, 2000, 3)
series(put("one", {}, "slow", 1, base | {"delay_mean_us": 100, "rpc_p99_us": None}), 200000, 300)
put("one", {}, "slow", 2, {}, "failed: out of luck")
put("one", {}, "dead", 1, {}, "failed: did not start")
put("one", {}, "dead", 2, {}, "failed: did not start")
put("one", {}, "fast", 3, {"utilisation": 0.5}, "failed: cut short")
scenario("one", goals=[
    {"metric": "utilisation", "row": "fast", "op": ">=", "value": .98, "variant": "*",
     "text": "full link"},
    {"metric": "delay_mean_us", "row": "fast", "op": "<=", "value": .1, "relative_to": "slow"},
    {"metric": "jain", "row": "dead", "op": ">=", "value": .9}])

for rate in ("1gbit", "100mbit", "10gbit"):
    for row, delay in (("fast", 5), ("slow", 50)):
        place = put("many", {"rate": rate}, row, 1, {"delay_mean_us": delay, "new_metric": 1.5})
        series(place, 300, delay)
scenario("many", goals=[{"metric": "delay_mean_us", "row": "fast", "op": "<", "value": 6,
                         "variant": {"rate": "1gbit"}}])

for a in (1, 2):
    for b in (1, 2, 4):
        put("sweep", {"a": a, "b": b}, "only", 1, {"jain": .5 + a / 10 + b / 100})
scenario("sweep", conclusion="a is what counts.")

for seed in range(1, 6):
    put("seeds", {}, "sure", seed, {"utilisation": .99, "delay_mean_us": 30})
    put("seeds", {}, "slow", seed, {"delay_mean_us": 40})
    put("seeds", {}, "noisy", seed, {"delay_mean_us": 8 + 2 * seed, "delay_p99_us": 1})
    put("seeds", {}, "even", seed, {"delay_mean_us": 11.6 + .5 * seed})
    put("seeds", {}, "never", seed, {"joined_rtts": 3 if seed == 1 else None})
    if seed == 1:
        put("seeds", {}, "crashed", 1, {"utilisation": .99})
    else:
        put("seeds", {}, "crashed", seed, {}, "failed: crashed")
def goal(metric, row, op, value, text, **more):
    return {"metric": metric, "row": row, "op": op, "value": value, "text": text} | more
scenario("seeds", answer="The delay is {range delay_mean_us noisy} to {max delay_mean_us slow}.", goals=[
    goal("utilisation", "sure", ">=", .9, "full"),
    goal("delay_mean_us", "sure", "<=", .5, "", relative_to="slow"),
    goal("utilisation", "crashed", ">=", .9, "full"),
    goal("joined_rtts", "never", "<=", 5, "joined"),
    goal("utilisation", "sure", ">=", .5, "half", relative_to="crashed"),
    goal("delay_mean_us", "noisy", "<=", 13, "low"),
    goal("delay_mean_us", "noisy", "<=", 1.03, "no more", relative_to="even"),
    goal("delay_mean_us", "noisy", "<=", 20, "far")])

for opts in ("", "rtt_target_us:100000,rtt_rounds:100,fractional:1,ewma_shift:3,rtt_limit_us:65000"):
    for flows in (1, 8):
        for tso in ("", 1):
            for row in ("fast", "slow", "other"):
                big = flows * 99999.949999 + (row == "fast")
                put("edge", {"rate": "40mbit", "rtt": "1ms", "flows": flows, "opts": opts, "tso": tso},
                    row, 1, {"utilisation": .99999949 - flows / 100, "drops": 0 if row == "slow" else big * flows ** 3,
                             "settled_s": -.123456789 * flows, "filled_us": big, "jain": 1, "early_drops": 0,
                             "queue_after_mean": 1e-7 * big, "joined_together_rtts": 12.3456749 * flows})
scenario("edge")

for load in ("10", "1gbit"):
    for flows in ("many", "few"):
        for row in ("fast", "slow"):
            own = {"rpc_p50_us": 1, "rpc_p99_us": len(row + flows)} if load == "10" else {"settled_s": len(flows)}
            put("wide", {"load": load, "flows": flows}, row, 1, {"utilisation": .95 + .01 * (row == "fast"),
                "jain": .9 if row == "fast" else .8, "drops": 7, "delay_mean_us": len(flows), "delay_p99_us": 2,
                "settled_s": 1, "early_drops": len(row), "util_after": len(row + flows)} | own)
scenario("wide", goals=[goal("jain", "fast", ">=", .5, "shared")], conclusion="First {max utilisation fast}.\n\nSecond.",
         words={"load": {"10": "load 10 %", "1gbit": "1 Gb/s of answers"}, "flows": "flows {}"})

for link, wait in (("a", 1), ("b", 40), ("c", 1)):
    for n, step in enumerate(("10ms", "", "3ms") if link != "c" else ("",)):
        for row in ("fast", "slow") if not step else ("fast",):
            for seed in (1, 2):
                put("trade", {"link": link} | ({"step": step} if step else {}), row, seed, {
                    "utilisation": {"": .5, "3ms": .51 if link == "b" else .7, "10ms": .9}[step] + .2 * (row == "slow"),
                    "delay_p99_us": wait * {"": 1000, "3ms": 1040 if link == "b" else 3000, "10ms": 2700 + 10 * seed}[step]
                                    * (1 if row == "fast" else 30)})
scenario("trade", words={"step": "step {}", "link": "link {}"}, curve={
    "x": "delay_p99_us", "y": "utilisation", "along": "step", "otherwise": "5ms", "variant": {}, "text": "Read <it>."})

for k in (20, 65):
    for row in ("linux", "mine"):
        for seed in (1, 2):
            put("paper", {"k": k}, row, seed, {"utilisation": .9 + seed / 100, "drops": k * 1000,
                "rpc_p50_us": 46 + seed} if (row, k) != ("mine", 65) else {"drops": 5})
def figure(name, metric, **more):
    return {"figure": name, "metric": metric, "in_tree": "linux", "ours": "mine"} | more
scenario("paper", paper={"source": "A. Author, P & Q, 2010", "differs": "virtual hosts", "figures": [
    figure("fig. 17", "rpc_p50_us", what="each sender", value=50, variant={"k": 20}, differs="one path"),
    figure("fig. 13", "utilisation", value=[.9, .95], says="nearly"),
    figure("section 4", "drops", says="few | none", ours="", variant={"k": 65}),
    figure("fig. 1", "utilisation", value=.915, in_tree="none", variant={"k": "20"})]})

put("odd", {}, "fast", 1, base)
Path("odd/runs/default/lost/1").mkdir(parents=True)
scenario("odd")
PY
}

# has FILE PATTERN...: the file contains every pattern
has()
{
	local file=$1 pattern
	shift
	for pattern; do
		grep -Eq -- "$pattern" "$file" && continue
		echo "no '$pattern' in:"
		cat "$file"
		return 1
	done
}

mean() { has one.txt '^fast <&> label +98\.5 +12\.0 +40\.0 +100 +200 +1000 +0 +1\.000'; }
declare_test mean "" "mean over the seeds"

# two seeds: half of the interval is 12.706 * s / sqrt(2), for 10 and 14: 25.4
interval() { has one.txt '^ +95 % ± +6\.4 +25\.4 +0 '; }
declare_test interval "" "the 95 % confidence interval over the seeds, Student's t"

failed_runs()
{
	has one.txt '^slow.* 98\.0 ' '^slow.*FAILED \(seed 2\): out of luck' \
		'^dead.*FAILED \(seeds 1, 2\): did not start' \
		'^fast.*FAILED \(seed 3\): cut short'
}
declare_test failed_runs "" "failed runs are shown"

lost_run() { has odd.txt 'lost +FAILED .*no result.json'; }
declare_test lost_run "" "a run without a result.json is shown as failed"

goal_met() { has seeds.txt 'met +sure: full: 99\.0 %, met by 9\.0 points'; }
declare_test goal_met "" "a goal that is met"

goal_missed()
{
	has seeds.txt 'missed +sure: .*<= 0\.5 × slow: 30\.0 µs against 20\.0 µs, missed by 10 µs'
}
declare_test goal_missed "" "a goal relative to another row, missed"

# 4 of 5 seeds failed or gave null: one seed alone cannot meet the goal
goal_failed_seeds()
{
	has seeds.txt 'missed +crashed: full: 99\.0 %, but 4 of 5 seeds of crashed gave no value' \
		'missed +never: joined: 3 RTTs, but 4 of 5 seeds of never gave no value' \
		'no data +sure: half: .*but 4 of 5 seeds of crashed gave no value' &&
		has one.txt 'missed +fast: full link: 98\.5 %, but 1 of 3 seeds of fast gave no value'
}
declare_test goal_failed_seeds "" "a goal with failed or null seeds is not met"

# 10, 12, 14, 16, 18: mean 14, interval 3.9. Limits of 13 and 13.5 are ties, half of slow's 40 is
# not.
goal_tie()
{
	has seeds.txt 'tie +noisy: low: 14\.0 µs: no difference, the 95 % interval is ±3\.93 µs' \
		'tie +noisy: no more: 14\.0 µs against 13\.5 µs: no difference' \
		'met +noisy: far: 14\.0 µs, met by 6\.0 µs'
}
declare_test goal_tie "" "a limit inside the confidence interval is a tie"

goal_unknown() { has one.txt 'no data +dead: .*dead has no jain'; }
declare_test goal_unknown "" "a goal without data"

narrow()
{
	for name in one many; do
		LC_ALL=C "$report" "$name"
	done | awk 'length > 100 { print "too wide: " $0; bad = 1 } END { exit bad }'
}
declare_test narrow "" "tables fit 100 columns"

ascii()
{
	LC_ALL=C "$report" one >ascii.txt &&
		if LC_ALL=C grep -n '[^ -~]' ascii.txt; then return 1; fi
}
declare_test ascii "" "plain ASCII where the locale is not UTF-8"

columns()
{
	"$report" one --metrics goodput_bps,jain >columns.txt &&
		has columns.txt '^ +Gb/s +Jain$' 'fast.* 9\.50 +1\.000' &&
		if grep marks columns.txt; then return 1; fi
}
declare_test columns "" "chosen columns"

markdown()
{
	has one.md '^\| row \| utilisation \(%\) \|' '^\|---\|---:\|' \
		'^\| fast <&> label \| 98\.5 ± 6\.4 \| 12\.0 ± 25\.4 \| 40\.0 \|' \
		'FAILED \(seed 2\): out of luck' '\| missed: full link' \
		'^\| full link \| fast \| 0 of 1 \(1 missed\) \|'
}
declare_test markdown "" "Markdown"

csv_values()
{
	"$report" one --format csv | python3 -c '
import csv, sys
rows = list(csv.DictReader(sys.stdin))
fast = [r for r in rows if r["row"] == "fast" and r["status"] == "ok"]
assert [(r["seed"], r["delay_mean_us"], r["utilisation"], r["kernel"]) for r in fast] == \
    [("1", "10", "0.98", "Linux x"), ("2", "14", "0.99", "Linux x")], fast
slow = [r for r in rows if r["row"] == "slow"]
assert [r["status"] for r in slow] == ["ok", "failed: out of luck"], slow
assert slow[0]["rpc_p99_us"] == "", slow'
}
declare_test csv_values "" "CSV"

json_values()
{
	"$report" one --format json | python3 -c '
import json, sys
data = json.load(sys.stdin)
assert [r["row"] for r in data["rows"]] == ["slow", "dead", "fast"], data
delay = data["rows"][2]["metrics"]["delay_mean_us"]
assert round(delay.pop("ci95"), 3) == 25.412, delay
assert delay == {"mean": 12, "min": 10, "max": 14, "seeds": 2}, delay
assert data["rows"][2]["failed"] == [{"seed": "3", "reason": "cut short"}], data
assert [g["state"] for g in data["goals"]] == ["missed", "missed", "no data"], data'
}
declare_test json_values "" "JSON"

variants()
{
	test "$(grep -o '^rate=.*' many.txt | xargs)" = "rate=100mbit rate=1gbit rate=10gbit" &&
		has many.txt 'new_metric' 'met +fast \[rate=1gbit\].*met by 1.0' &&
		test "$(grep -c ' met ' many.txt)" = 1
}
declare_test variants "" "variants in natural order, unknown metrics, goals of one variant"

# One row: a line per variant, and a plot with a colour per value of the first setting
one_row()
{
	needs_gnuplot
	"$report" sweep --format markdown --svg sweep-svg >sweep.md &&
		has sweep.md '^\| variant \| row \| Jain \|$' '^\| a 2, b 4 \| only <&> label \| 0\.740 \|$' &&
		test "$(grep -c '^| a [12], b [124] |' sweep.md)" = 6 &&
		has sweep-svg/variants.svg '>a 1<' '>a 2<' '>b 4<'
}
declare_test one_row "" "one row: a table of variants, and a colour per value of the first setting"

# refused STATUS PATTERN ARGUMENT...: report exits with STATUS and one line on stderr that has
# the pattern
refused()
{
	local want=$1 pattern=$2 status=0
	shift 2
	"$report" "$@" >/dev/null 2>err.txt || status=$?
	test "$status" = "$want" && test "$(wc -l <err.txt)" = 1 && has err.txt "$pattern" && return
	echo "report $*: status $status, wanted $want and one line:"
	cat err.txt
	return 1
}

usage_errors()
{
	refused 2 'DIR' && refused 2 'no such directory' nowhere &&
		refused 2 'format' one --format xml && refused 2 'unrecognized' one --fo csv &&
		refused 2 'no such metric: nope' one --metrics jain,nope
}
declare_test usage_errors "" "wrong usage: one line, exit 2"

data_errors()
{
	local run=broken/runs/default/fast/1

	mkdir empty && cp -r one broken && rm -r broken/runs/default/[ds]* &&
		refused 1 'scenario.json: No such file' empty &&
		echo '{}' >empty/scenario.json && refused 1 'no runs' empty &&
		echo '{"goals": [{"metric": "jain"}]}' >broken/scenario.json &&
		refused 1 'goal 1' broken &&
		echo '{"a":' >broken/scenario.json && refused 1 'scenario.json: not JSON' broken &&
		echo '{}' >broken/scenario.json && "$report" broken >/dev/null &&
		echo '[1]' >"$run"/result.json && refused 1 "$run/result.json: not a JSON object" broken &&
		printf '{"status"' >"$run"/result.json && refused 1 "$run/result.json: not JSON" broken &&
		printf '\xff\xfe' >"$run"/result.json && refused 1 "not UTF-8" broken
}
declare_test data_errors "" "broken results: one line, exit 1"

series_errors()
{
	local run=broken2/runs/default/fast/1 page=(broken2 --html broken2.html)

	needs_gnuplot
	cp -r one broken2 && rm -r broken2/runs/default/[ds]* &&
		echo '{"type":' >>"$run"/flows.jsonl && refused 1 'flows.jsonl: line 504' "${page[@]}" &&
		rm "$run"/flows.jsonl && echo '1,1' >>"$run"/flows.csv &&
		refused 1 'flows.csv: line 582' "${page[@]}" &&
		echo 't_s' >"$run"/queue.csv && refused 1 'queue.csv: no column' "${page[@]}" &&
		rm "$run"/*.csv && "$report" "${page[@]}" >/dev/null && test -s broken2.html
}
declare_test series_errors "" "broken series: one line, exit 1"

# The page: well-formed, loads nothing, has no scripts, unique ids and no broken references.
page()
{
	"$report" "$1" --html "$1.html" >/dev/null && python3 - "$1.html" <<'PY'
import html.parser, sys
import xml.etree.ElementTree as ET
from urllib.parse import unquote

text = open(sys.argv[1], encoding="utf-8").read()
assert len(text.encode()) < 2_000_000, len(text)
for bad in ("http:", "https:", "<script", "@import", "url("):
    assert bad not in text, bad
void, stack, ids, references, tags = {"meta", "link", "br", "img"}, [], [], [], []

class Parser(html.parser.HTMLParser):
    def handle_starttag(self, tag, attributes):
        tags.append(tag)
        attributes = dict(attributes)
        ids.extend([attributes["id"]] if "id" in attributes else [])
        references.extend(attributes.get("aria-labelledby", "").split())
        if tag == "img":
            assert attributes["src"].startswith("data:image/svg+xml,") and attributes["alt"]
            ET.fromstring(unquote(attributes["src"].partition(",")[2]))
        assert tag != "th" or attributes.get("scope"), self.getpos()
        if tag not in void:
            stack.append(tag)
    def handle_endtag(self, tag):
        assert stack and stack.pop() == tag, (tag, self.getpos())

Parser(convert_charrefs=True).feed(text)
assert not stack, stack
assert len(ids) == len(set(ids)), sorted(i for i in ids if ids.count(i) > 1)
assert set(references) <= set(ids), set(references) - set(ids)
assert tags.count("img") >= 4 and tags.count("table") >= 2, tags
PY
}

pages()
{
	needs_gnuplot
	page one && page many
}
declare_test pages "" "the page is complete, well-formed, with unique ids"

# A flow without a line for some time sent nothing then; small flows are counted, not drawn.
gaps()
{
	printf '%s\n' t_s,flow,throughput_bps 0,a,1e9 0.1,a,1e9 0.1,b,2e9 0.2,b,2e9 0.2,small,1e6 \
		0.3,a,1e9 >gaps.csv && python3 - "$report" <<'PY'
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1] + ".d")
from figures import flow_rates

flows, others = flow_rates(Path("gaps.csv"))
assert others == 1 and list(flows) == ["a", "b"], (flows, others)
assert flows["a"] == {0: 1, .1: 1, .2: 0, .3: 1} and flows["b"] == {.1: 2, .2: 2}, flows
PY
}
declare_test gaps "" "gaps in the rate of a flow"

# Thinning out 200000 samples must keep the one whose value is 4321.
peak()
{
	needs_gnuplot
	has one.html 'Queue of slow .*highest 4321 packets' 'Completion|completion' \
		'3 did not complete' 'Drawn are the largest flows; 20000 smaller' 'FAILED \(seeds 1, 2\): did not start'
}
declare_test peak "" "thinning keeps peaks; the page names what is left out"

svgs()
{
	"$report" one --svg svg >/dev/null && "$report" many --svg svg >/dev/null &&
		python3 - svg/*.svg <<'PY'
import sys
import xml.etree.ElementTree as ET

names = {n.split("/")[1] for n in sys.argv[1:]}
assert {"queue.svg", "rates.svg", "completion-rpc.svg", "variants.svg",
        "queue-rate=1gbit.svg"} <= names, names
for name in sys.argv[1:]:
    root = ET.parse(name).getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg" and root.get("viewBox"), name
    ids = [e.get("id") for e in root.iter() if e.get("id")]
    assert len(ids) == len(set(ids)), name
    kinds = {e.tag.split("}")[1] for e in root.iter()}
    assert "text" in kinds and "script" not in kinds, (name, kinds)
PY
}

repeatable()
{
	"$report" many --html again.html >/dev/null && cmp many.html again.html
}

plots()
{
	needs_gnuplot
	svgs && repeatable
}
declare_test plots "" "plots as files, and the same input gives the same page"

# A page written from its runs is the same as one written from results.csv alone, links included
republished()
{
	"$report" --publish pub/many many && has pub/many/README.md '^# A <title>$' \
		'^\*\*Question\.\*\* Is it & how\?$' '^!\[.*\]\(variants\.svg\)$' '^make demo$' \
		'^\| 1 Gb/s \| fast <&> label \| .* \| met \|$' '^- kernel: Linux x$' &&
		mkdir again && cp pub/many/results.csv many/scenario.json again/ &&
		"$report" --publish again again && cmp pub/many/README.md again/README.md &&
		cmp pub/many/variants.svg again/variants.svg && cmp pub/many/results.csv again/results.csv
}
declare_test republished "" "a page made from results.csv is the page made from the runs"

answer()
{
	"$report" --publish pub/seeds seeds &&
		has pub/seeds/README.md '^\*\*Answer\.\*\* The delay is 14\.0 µs to 40\.0 µs\.$' \
		'^\| never .*\| missed: joined' '^\| full \| crashed \| 0 of 1 \(1 missed\) \|$'
}
declare_test answer "" "the answer takes its numbers from the runs; a missed goal is shown in its row"

# A paper's value stands beside those of a control of the kernel and of ours, in each variant that it is of: a number,
# a range, or words
beside_paper()
{
	"$report" --publish pub/paper paper && "$report" paper --format markdown >paper.md &&
		"$report" paper --html paper.html && "$report" paper >paper.txt &&
		has pub/paper/README.md '^The paper: A\. Author, P & Q, 2010\. What differs here: virtual hosts\.$' \
			'^\| fig\. 17: each sender \(K 20\) \| 50\.0 µs \| linux: 47\.5 ± 6\.35 µs \(−5\.0 %\) \| mine: 47\.5 .*\| one path \|$' \
			'^\| fig\. 13: utilisation \(K 65\) \| 90\.0 to 95\.0 % \(nearly\) \| linux: 91\.5 ± 6\.4 % \(within\) \| mine: no value \| – \|$' \
			'^\| section 4: drops \(K 65\) \| few \\\| none \| linux: 65000 \| – \|' \
			'^\| fig\. 1: utilisation \(K 20\) \| 91\.5 % \| none: no value \| mine: 91\.5 ± 6\.4 % \(the same\)' '^A line whose paper' &&
		has paper.md '^\| figure \| the paper \| in-tree \| ours \|' && has paper.txt '^  fig\. 17: each sender .*the paper 50\.0 µs; linux: 47' &&
		has paper.html '<h3>Beside the paper</h3>' 'A\. Author, P &amp; Q, 2010\. What differs here: virtual hosts\.</caption>' &&
		has pub/paper/paper.csv '^fig\. 17,each sender \(K 20\),rpc_p50_us,k=20,50,50,,linux,47\.5,6\.353' '^section 4,.*,,few \| none,linux,65000,0,,,,$' &&
		"$report" paper --format json | jq -e '.paper | length == 5 and .[0].ours_mean == 47.5 and .[1].least == 0.9 and .[2].ours_mean == null' >/dev/null
}
declare_test beside_paper "" "a paper's values stand beside the measured ones, on the page, in the terminal, as CSV and JSON"

# paper_refused WHY FIGURES: what is wrong with a paper is one line
paper_refused()
{
	jq --argjson figures "$2" '.paper.figures = $figures' paper/scenario.json >wrong-paper/scenario.json
	refused 1 "$1" wrong-paper
}

wrong_papers()
{
	local good='"figure":"f","metric":"drops","in_tree":"linux"' entry

	cp -r paper wrong-paper
	for entry in '{"figure":"f","metric":"drops","value":1}' "{$good}" "{$good,\"value\":[2,1]}" "{$good,\"value\":true}" "{$good,\"value\":1,\"variant\":\"k=20\"}" 1; do
		paper_refused 'figure 1 of paper needs' "[$entry]" || return
	done
	paper_refused 'figure 2 of paper: no variant has' "[{$good,\"value\":1},{$good,\"value\":1,\"variant\":{\"k\":21}}]" &&
		paper_refused 'paper needs source and a list' '{}'
}
declare_test wrong_papers "" "a paper's value without figure, metric, row or something to compare with: one line, exit 1"

# A page's table has seven columns at most. What is the same in every line is said once, settings
# that only some metrics belong to have tables of their own, and the conclusion is a list.
wide()
{
	"$report" --publish pub/wide wide && "$report" --publish pub/edge edge && "$report" --publish pub/sweep sweep &&
		has pub/wide/README.md '^### load 10 %$' '^### 1 Gb/s of answers$' '^\| flows many ' \
			'^\| variant \| row \| utilisation \(%\) \|.*\| goals \|' '^In every line: .*; drops 7' \
			'^Not in this table, but in \[results.csv\]' '^- First 96\.0 %\.$' '^- Second\.$' &&
		has pub/edge/README.md '^All variants: 40 Mb/s, RTT 1 ms\.$' '^\| 8 flows, TSO \| fast' &&
		has pub/sweep/README.md '^All lines: only <&> label\.$' '^\| a 2, b 4 \| 0\.740 \|$' &&
		for page in pub/wide pub/edge "$root"/bench/results/*; do
			[ -f "$page/variants.svg" ] || continue
			awk -F'[^\\\\][|]' '/^\| / && NF - 1 > 7 { print FILENAME ": " NF - 1 " columns: " $0; bad = 1 } END { exit bad }' \
				"$page/README.md" || return
		done
}
declare_test wide "" "a page's table has at most seven columns; the rest is named"

# index_of DIR...: writes index/README.md
index_of()
{
	mkdir -p index && "$report" --index index/README.md "$@"
}

# The index counts goals, and is bold only for a goal that was met in more variants, and missed in
# fewer, at the release before.
got_worse()
{
	local old='0.0,seeds,noisy'

	rm -rf index
	index_of one seeds many &&
		has index/README.md '^3 of 12 goals met; ' '^\| \[seeds\].* \| 2 of 8 goals met \|$' \
			'^\| \[many\].* 1 of 1 goals met \|$' && ! grep -F '**' index/README.md &&
		has index/goals.csv '^[0-9.]+,seeds,never,joined,0,1,1$' '^[0-9.]+,seeds,noisy,low,0,0,1$' &&
		{
			echo version,scenario,row,goal,met,unmet,of
			echo 0.0,seeds,never,joined,1,0,1	# missed now
			echo "$old",low,1,0,1			# a tie now
			echo 0.0,seeds,crashed,full,0,1,1	# missed then, too
			echo 0.0,many,fast,gone,1,0,1		# no longer judged
			echo 0.0,many,fast,"queueing delay, mean < 6.00 µs",0,1,1
		} >index/goals.csv && sed -i 's/queueing.*µs/"&"/' index/goals.csv && index_of one seeds many &&
		has index/README.md '2 of 8 goals met; \*\*worse than in 0\.0: joined \(never\): 0 of 1, before 1 of 1\*\* \|$' \
			'since 0\.0 ' && test "$(grep -Fc '**' index/README.md)" = 1 &&
		test "$(grep -c ^0.0, index/goals.csv)" = 5 && cp index/goals.csv goals.first &&
		index_of one seeds many && cmp index/goals.csv goals.first &&
		sed -i '/^0\.0,/!s/^[0-9.]*,/0.1,/' index/goals.csv && index_of one seeds many &&
		test "$(cut -d, -f1 index/goals.csv | uniq | sed -n 2p)" = 0.1 && ! grep ^0.0 index/goals.csv
}
declare_test got_worse "" "the index counts goals, and names in bold only what got worse"

# A question's page takes parts of several scenarios; the index names it first. What it asks for must
# be there: unknown fields, scenarios, variants, rows and values are refused, in one line.
asked()
{
	local wrong words

	cat >questions.toml <<-'TOML'
		[[question]]
		name = "both"
		title = "Which of both?"
		question = "Is it quick?"
		answer = "It is {many max delay_mean_us slow rate=1gbit}, and\n{seeds range delay_mean_us noisy}."
		[[question.part]]
		scenario = "many"
		title = "Fast"
		variants = ["rate=1gbit", "rate=100mbit"]
		rows = ["fast"]
		metrics = ["delay_mean_us"]
		findings = "{many min delay_mean_us fast rate=1gbit} is little.\nThat is all."
		[[question.part]]
		scenario = "seeds"
		title = "All"
		variants = [""]
		metrics = ["delay_mean_us", "utilisation"]
	TOML
	rm -rf index
	index_of one seeds many --questions questions.toml &&
		has index/README.md '^\| \[Which of both\?\]\(questions/both\.md\) \| Is it quick\? \| It is [0-9.]+ µs, and 14\.0 µs\. \|$' &&
		has index/questions/both.md '^\*\*Answer\.\*\* It is [0-9.]+ µs, and 14' '^## Fast$' '^- [0-9.]+ µs is little\.$' \
			'^- That is all\.$' '\[many\]\(\.\./many/README\.md\)' '^\| noisy' &&
		test "$(grep -c 'fast <&> label' index/questions/both.md)" = 2 && ! grep -q 'slow <&> label.*1 Gb' index/questions/both.md ||
		return
	for wrong in 's/^title = "Fast"/titel = "Fast"/|unknown field' '/^title = "Fast"/d|no field .title' \
		's/^variants = .*100mbit.*/variants = "rate"/|no list' 's/"many"/"none"/|no published results' \
		's/rate=1gbit", "rate=100mbit/rate=7gbit/|no variant' 's/"fast"/"none"/|no variant' \
		's/{many max/{many max nothing/|no data' 's/^name = .*/name =/|questions.toml'; do
		sed "${wrong%|*}" questions.toml >wrong.toml
		words=$(index_of one seeds many --questions wrong.toml 2>&1) && { echo "accepted: $wrong"; return 1; }
		[ "$(wc -l <<<"$words")" = 1 ] && grep -q "${wrong##*|}" <<<"${words//wrong/questions}" ||
			{ echo "$wrong: $words"; return 1; }
	done
}
declare_test asked "" "a question's page takes parts of several scenarios, and refuses what is not there"

# Every link of a text exists; every file of bench/results is linked.
published()
{
	in_project || skip "not in the project's own tree"
	python3 - "$root" <<'PY'
import re, sys
from pathlib import Path
from urllib.parse import unquote

root = Path(sys.argv[1])
results, problems = root / "bench/results", []
linked = {results / "README.md"}
for page in [root / "README.md", root / "CONTRIBUTING.md", *sorted(results.glob("*.md")),
             *sorted(root.glob("docs/*.md"))]:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:|#", target):
            continue
        path = (page.parent / unquote(target.split("#")[0])).resolve()
        linked.add(path)
        if not path.exists():
            problems.append(f"{page.relative_to(root)}: no {target}")
for path in results.rglob("*"):
    if path.is_file() and path.resolve() not in {p.resolve() for p in linked}:
        problems.append(f"{path.relative_to(root)} is linked from nowhere")
print("\n".join(problems))
sys.exit(bool(problems))
PY
}
declare_test published "" "results: every file is linked, every link exists"

# The pages are those of digits.csv, which has a run of every scenario, in at most 2,000 lines
up_to_date()
{
	in_project || skip "not in the project's own tree"
	cp -r "$root/bench" "$root/scripts" "$root/dkms.conf" . && bench/publish >/dev/null && diff -r "$root/bench/results" bench/results &&
		diff "$root/bench/digits.csv" bench/digits.csv && [ "$(wc -l <bench/digits.csv)" -le 2000 ] || return
	diff <(basename -as .py bench/scenarios/*.py | grep -v '^demo' | sort) <(cut -d, -f1 bench/digits.csv | sed 1d | sort -u)
}
declare_test up_to_date "" "results: the pages are what bench/publish writes, and digits.csv has every scenario"

# publish takes a page's number when all of its seeds are there, and a regression's with the first; what was there before stays
taken()
{
	local seed run

	in_project || skip "not in the project's own tree"
	[ -d bench ] || cp -r "$root/bench" "$root/scripts" "$root/dkms.conf" . || return
	cp "$root/bench/digits.csv" bench/
	for seed in 1 2 3 4 5; do
		run=taken/prague-drop/runs/rtt=2ms/prague/$seed
		mkdir -p "$run" && echo "{\"status\": \"ok\", \"kernel\": \"Linux 9.9\", \"compiler\": \"gcc (x) 1.2\",
			\"metrics\": {\"drop_p99_us\": ${seed}000, \"util_after\": 0.$seed}}" >"$run/result.json"
		[ "$seed" != 4 ] || { bench/publish --out taken >/dev/null && has bench/digits.csv '^prague-drop,rtt=2ms,prague,drop_p99_us,7' &&
			has bench/digits.csv '^prague-drop,rtt=2ms,prague,util_after,9\.9 gcc 1\.2,0\.1$' || return; }
	done
	bench/publish --out taken >/dev/null && has bench/digits.csv '^prague-drop,rtt=2ms,prague,drop_p99_us,9\.9 gcc 1\.2,1000,2000,3000,4000,5000$' &&
		has bench/results/radio.md '^\| rate drops .* 3\.0 ± 2\.0 ' && bench/publish --runs --cc hpccpp >runs &&
		has runs '^bench/run dc-field-traffic --variant traffic=requests --exact --cc hpccpp --seeds 5$' && ! grep -q prague runs
}
declare_test taken "" "bench/publish: numbers from out/, with all seeds of a page"

# drawings DIR...: looks at DIR/variants.svg beside DIR/results.csv. Every mean of the table is drawn,
# inside of its axis; every label is inside of the drawing and touches no other; 40 kB at most.
drawings()
{
	python3 - "$report" "$@" <<'PY'
import csv, re, sys
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1] + ".d")
from metrics import metric
from dots import text_width

SVG, problems, drawn_all = "{http://www.w3.org/2000/svg}", [], 0

def table(path):
    """Name of each metric: number of means, and whether one is not 0."""
    means, other = {}, set()
    lines = [r for r in csv.DictReader(open(path, encoding="utf-8")) if r["status"] == "ok"]
    texts = ("row", "label", "control", "queue", "seed", "status", "commit", "kernel", "compiler",
             "tools")
    for line in lines:
        where = tuple(v for k, v in line.items() if k.startswith("variant.") or k == "row")
        for key, value in line.items():
            if value and key not in texts and not key.startswith("variant."):
                means.setdefault(metric(key).name, set()).add(where)
                if float(value):
                    other.add(metric(key).name)
    return {name: (len(found), name in other) for name, found in means.items()}

def places(path):
    """Ends of the horizontal and vertical lines of a path: M x y H x and M x y V y."""
    return [(float(x), float(y), letter, float(end)) for x, y, letter, end in
            re.findall(r"M([\d.]+) ([\d.]+)([HV])([\d.]+)", path)]

def box(text, anchor):
    """Left, top, right and bottom of a text."""
    size = float(text.get("font-size", 11))
    width = text_width(text.text, size) * (1.12 if text.get("font-weight") == "bold" else 1)
    left = float(text.get("x")) - width * {"start": 0, "middle": .5, "end": 1}[anchor]
    base = float(text.get("y"))
    return left, base - .75 * size, left + width, base + .2 * size, text.text

def labels(name, root):
    """No text is cut or touches another."""
    width, height = map(float, root.get("viewBox").split()[2:])
    boxes = []
    for group in root.iter():
        for text in group.findall(SVG + "text"):
            boxes.append(box(text, group.get("text-anchor", "start")))
    for i, a in enumerate(boxes):
        if a[0] < 0 or a[1] < 0 or a[2] > width or a[3] > height:
            problems.append(f"{name}: '{a[4]}' is cut")
        for b in boxes[:i]:
            if a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]:
                problems.append(f"{name}: '{a[4]}' and '{b[4]}' overlap")

for top in map(Path, sys.argv[2:]):
    name, path = top.name, top / "variants.svg"
    if path.stat().st_size > 40000:
        problems.append(f"{name}: {path.stat().st_size} bytes")
    root = ET.parse(path).getroot()
    expected, plots = table(top / "results.csv"), {}
    for group in root.iter(SVG + "g"):
        title = group.find(SVG + "title")
        if title is None:
            continue
        axis = [p for e in group.iter(SVG + "path") for p in places(e.get("d"))]
        left, right = next((x, end) for x, _, way, end in axis if way == "H")
        up, down = next((y, end) for _, y, way, end in axis if way == "V")
        count = 0
        for line in group.iter(SVG + "polyline"):
            points = {tuple(map(float, p.split(","))) for p in line.get("points").split()}
            count += len(points)
            problems += [f"{name}: {title.text}: point {x},{y} outside of the axis"
                         for x, y in points if not (left <= x <= right and up <= y <= down)]
        plots[title.text] = count
    drawn_all += sum(plots.values())
    for title, count in plots.items():
        if count != expected.get(title, (0,))[0]:
            problems.append(f"{name}: {title}: {count} points, {expected.get(title, (0,))[0]} means")
    if not plots:
        problems.append(f"{name}: no plot")
    labels(name, root)
    if (top / "curve.svg").exists():
        labels(f"{name}, curve", ET.parse(top / "curve.svg").getroot())
    most = [t for t, n in Counter(e.get("d") for e in root.iter(SVG + "path")).items() if n > 2 and len(t) > 60]
    problems += [f"{name}: a path is there more than twice: {t[:40]}" for t in most]
print("\n".join(problems))
print(f"{drawn_all} points in {len(sys.argv) - 2} drawings")
sys.exit(bool(problems) or not drawn_all)
PY
}

# A value that is the largest of its plot and would be rounded up, 0 beside large values, long names
drawn()
{
	for name in many sweep edge trade; do
		"$report" --publish "pub/$name" "$name" || return
	done
	drawings pub/many pub/sweep pub/edge pub/trade &&
		has pub/edge/variants.svg 'All lines: 40 Mb/s, RTT 1 ms\.' '>1 flow<' '>8 flows, TSO<' \
			'rtt_target_us=100000' '>log scale<' 'everywhere: drops in the first'
}
declare_test drawn "" "every mean is drawn inside of its axis, no label is cut or touches another"

# A drawing of one metric against another: every mean is where its axes say, a line goes along the setting, and its values
# are beside its points; a part without such a line is not drawn
curve()
{
	local wrong

	"$report" --publish pub/trade trade && "$report" trade --html trade.html >trade.txt || return
	has pub/trade/README.md '^!\[.*: utilisation against queueing delay, p99\]\(curve\.svg\)$' &&
		has trade.html 'alt="utilisation against queueing delay, p99"' &&
		has pub/trade/curve.svg '>Read &lt;it&gt;\.<' && ! grep -q 'link c' pub/trade/curve.svg && python3 - <<'PY' || return
import re
import xml.etree.ElementTree as ET
from math import log

SVG = "{http://www.w3.org/2000/svg}"
root = ET.parse("pub/trade/curve.svg").getroot()
panels = [g for g in root.iter(SVG + "g") if g.find(SVG + "title") is not None]
assert [g.find(SVG + "title").text for g in panels] == ["link a", "link b"]

def number(text):
    return float(text.rstrip("kM")) * {"k": 1e3, "M": 1e6}.get(text[-1], 1)

def axis(texts, of):
    """From px to a value, linear or logarithmic as the marks are: the error of the other is larger."""
    marks = [(float(t.get(of)), number(t.text)) for t in texts]
    (a, low), (b, high) = marks[0], marks[-1]
    if len(marks) > 2 and low > 0 and abs((marks[1][0] - a) / (b - a) - (marks[1][1] - low) / (high - low)) > .01:
        return lambda at: low * (high / low) ** ((at - a) / (b - a))
    return lambda at: low + (high - low) * (at - a) / (b - a)

want = {"link a": [[(30000, 70)], [(3000, 70), (1000, 50), (2715, 90)]],
        "link b": [[(1200000, 70)], [(41600, 51), (40000, 50), (108600, 90)]]}
for panel in panels:
    name = panel.find(SVG + "title").text
    below, beside = panel.findall(SVG + "g")
    x = axis([t for t in below if re.fullmatch(r"[\d.]+[kM]?", t.text)], "x")
    y = axis(list(beside), "y")
    lines = [[tuple(map(float, p.split(","))) for p in line.get("points").split()] for line in panel.iter(SVG + "polyline")]
    for line, values in zip(lines, want[name]):
        line = line[:len(values)]
        for (left, top), (across, up) in zip(line, values):
            # a mark's baseline is 4 px below its line
            assert abs(x(left) / across - 1) < .03 and abs(y(top + 4) - up) < .6, (name, left, top, x(left), y(top + 4))
    labels = [t for t in panel.findall(SVG + "text") if t.text.endswith(" ms")]
    assert sorted(t.text for t in labels) == ["10 ms", "3 ms", "5 ms"], name
    for label in labels:
        at = lines[1][["3 ms", "5 ms", "10 ms"].index(label.text)]
        assert abs(float(label.get("x")) - at[0]) < 45 and abs(float(label.get("y")) - at[1]) < 20, (name, label.text)
    assert len(lines) == 2
PY
	for wrong in 's/"along"/"across"/' 's/"x": "delay_p99_us"/"x": 3/' 's/"curve": {/"curve": [1], "other": {/'; do
		mkdir -p wrong && cp -r trade/runs wrong/ && sed "$wrong" trade/scenario.json >wrong/scenario.json
		! "$report" --publish pub/wrong wrong 2>err.txt && [ "$(wc -l <err.txt)" -eq 1 ] && has err.txt curve || return
	done
}
declare_test curve "" "a metric against another: points where their axes say, a line along the setting, its values beside"

without_gnuplot()
{
	local python

	python=$(python3 -c 'import sys; print(sys.executable)') && mkdir bin &&
		PATH=$TMP/bin "$python" "$report" odd --html bare.html 2>err.txt >/dev/null &&
		has err.txt gnuplot && has bare.html 'No plots' '<table' &&
		if PATH=$TMP/bin "$python" "$report" odd --svg bare 2>err.txt; then return 1; fi &&
		has err.txt 'needs gnuplot' &&
		PATH=$TMP/bin "$python" "$report" --publish pub/bare many && test -s pub/bare/variants.svg
}
declare_test without_gnuplot "" "without gnuplot: pages are published, --html has its tables, --svg says why not"

# unexpected LINE...: the words that "--expect" says of these lines and the results "many"; its exit status
unexpected()
{
	printf '%s\n' "$@" >expect
	"$report" --expect expect many 2>err.txt >expected.txt
}

expected()
{
	# delay_mean_us is 5 for fast and 50 for slow in each of three variants
	unexpected '# metric row least most' 'delay_mean_us fast 4.9 5 # as measured' 'delay_mean_us slow 50 -' \
		'new_metric slow - 1.5 rate=1gbit' && has err.txt '^report: all 3 values are as expected$' || return
	unexpected 'delay_mean_us fast 5.1 6' && return
	[ "$(wc -l <err.txt)" -eq 3 ] && has err.txt \
		'^report: expect:1: delay_mean_us of fast \[rate=1gbit\]: 5, expected 5\.1 to 6$' && has expected.txt 'fast <&> label' || return
	unexpected 'delay_mean_us slow 0 49 rate=1gbit' && return
	has err.txt 'slow \[rate=1gbit\]: 50, expected 0 to 49$' && [ "$(wc -l <err.txt)" -eq 1 ] || return
	# what is not there is not as expected
	unexpected 'delay_mean_us nobody - -' 'nothing fast - - rate=1gbit' 'delay_mean_us fast - - rate=2gbit' && return
	has err.txt 'expect:1: no run of nobody$' 'expect:2: nothing of fast .*: 1 of 1 seeds gave no value$' \
		'expect:3: no run of fast with rate=2gbit$' || return
	echo 'utilisation crashed .98 1' >expect
	"$report" --expect expect seeds >/dev/null 2>err.txt && return
	has err.txt 'utilisation of crashed: 4 of 5 seeds gave no value'
}
declare_test expected "" "--expect: a mean outside of its bounds, a value that is missing and a failed seed end with status 1"

expected_wrong()
{
	local text status

	while IFS= read -r text; do
		printf '%b' "$text" >expect
		"$report" --expect expect >expected.txt 2>err.txt
		status=$?
		[ "$status" -eq 2 ] && [ "$(wc -l <err.txt)" -eq 1 ] && [ ! -s expected.txt ] ||
			{ echo "'$text': $status $(cat err.txt)"; return 1; }
	done <<-'END'
		delay_mean_us fast 5
		delay_mean_us fast 5 x
		delay_mean_us fast 5 nan
		delay_mean_us fast 6 5
		delay_mean_us fast 5 6 1gbit
		# nothing\n
		\xff\xfe
	END
	echo 'delay_mean_us fast 5 6' >expect
	"$report" --expect expect && "$report" --expect absent 2>/dev/null
	[ $? -eq 2 ] || return
	"$report" 2>/dev/null
	[ $? -eq 2 ]
}
declare_test expected_wrong "" "--expect: a wrong line is named with its number, status 2"

# the command is one line, whatever the width
one_line()
{
	local long

	long="bench/run x --row 'a | b | c | $(printf 'word %.0s' {1..40})'"

	cp -r odd long && jq --arg c "$long" '.command = $c' odd/scenario.json >long/scenario.json &&
		"$report" long >long.txt && grep -qxF "  $long" long.txt
}
declare_test one_line "" "the command can be copied"

# what other commands left in the same directory is not in the report
only_asked()
{
	cp -r many part && jq '.runs = ["1gbit/fast/1"]' many/scenario.json >part/scenario.json && "$report" part --format csv >part.csv &&
		[ "$(wc -l <part.csv)" -eq 2 ] && has part.csv '^1gbit,fast,'
}
declare_test only_asked "" "with a list of runs only these are shown"

command -v python3 >/dev/null || skip_all "python3 is not installed"
make_results
for name in one many odd seeds; do
	"$report" "$name" >"$name.txt"
done
"$report" one --format markdown >one.md
run_tests "$@"
