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
    {"metric": "utilisation", "row": "fast", "least": .98, "text": "full link"},
    {"metric": "delay_mean_us", "row": "fast", "most": .1, "beside": ["slow"]},
    {"metric": "jain", "row": "dead", "least": .9}])

for rate in ("1gbit", "100mbit", "10gbit"):
    for row, delay in (("fast", 5), ("slow", 50)):
        place = put("many", {"rate": rate}, row, 1, {"delay_mean_us": delay, "new_metric": 1.5})
        series(place, 300, delay)
scenario("many", goals=[{"metric": "delay_mean_us", "row": "fast", "most": 6, "variant": {"rate": "1gbit"}}])

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
def goal(metric, row, text, **more):
    return {"metric": metric, "row": row, "text": text} | more
scenario("seeds", goals=[
    goal("utilisation", "sure", "full", least=.9),
    goal("delay_mean_us", "sure", "", most=.5, beside=["slow"]),
    goal("utilisation", "crashed", "full", least=.9),
    goal("joined_rtts", "never", "joined", most=5),
    goal("utilisation", "sure", "half", least=.5, beside=["crashed"]),
    goal("delay_mean_us", "noisy", "low", most=13),
    goal("delay_mean_us", "noisy", "no more", most=1.03, beside=["slow", "even"]),
    goal("delay_mean_us", "noisy", "far", most=20)])

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
scenario("wide", goals=[
    goal("rpc_p99_us", "fast", "quick", most=8, median=7.5), goal("jain", "fast", "shared", least=.85, most=.95),
    goal("settled_s", "fast", "soon", most=1, median=.5, beside=["slow", "none"]),
    goal("settled_s", "fast", "sooner", most=1.2, median=1, beside=["slow"]),
    goal("utilisation", "slow", "no less", least=1, beside=["fast"])], conclusion="First.\n\nSecond.",
         words={"load": {"10": "load 10 %", "1gbit": "1 Gb/s of answers"}, "flows": "flows {}"})

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

goal_met() { has seeds.txt 'met +sure: full: at least 90\.0 %: 99\.0 %$'; }
declare_test goal_met "" "a goal that is met"

goal_missed()
{
	has seeds.txt 'missed +sure: queueing delay, mean: at most 0\.5 x slow: 0\.750 x$'
}
declare_test goal_missed "" "a goal relative to a peer, missed"

# 4 of 5 seeds failed or gave null: one seed alone cannot meet the goal
goal_failed_seeds()
{
	has seeds.txt 'no data +crashed: full: .*: 4 of 5 seeds of crashed gave no value' \
		'no data +never: joined: .*: 4 of 5 seeds of never gave no value' \
		'no data +sure: half: .*: 4 of 5 seeds of crashed gave no value' &&
		has one.txt 'no data +fast: full link: .* 1 of 3 seeds of fast gave no value'
}
declare_test goal_failed_seeds "" "a goal with failed or null seeds is not met"

# 10, 12, 14, 16, 18: mean 14, interval 3.9. Limits of 13, and of 1.03 times 13.1, are ties, 20 is not. The best peer is
# even, not slow
goal_tie()
{
	has seeds.txt 'tie +noisy: low: at most 13\.0 µs: 14\.0 µs$' \
		'tie +noisy: no more: at most 1\.03 x the best of slow, even: 1\.07 x$' 'met +noisy: far: .*: 14\.0 µs$'
}
declare_test goal_tie "" "a limit inside the confidence interval is a tie; the best peer counts"

goal_unknown() { has one.txt 'no data +dead: .*: 2 of 2 seeds of dead gave no value'; }
declare_test goal_unknown "" "a goal without data"

# Over the variants: the worst cell and the one in the middle; variants that do not have the metric do not count
goal_cells()
{
	"$report" wide | tr -s '\n ' ' ' >wide.txt
	has wide.txt ' met fast: quick: at most 8\.00 µs, median 7\.50 µs: worst 8\.00 µs \(load 10 %, flows many\), median 7\.00 µs, of 2 cells' \
		' met fast: shared: at least 0\.850 and at most 0\.950: worst 0\.900 ' ' missed fast: soon: at most 1 x the best of slow, none, median 0\.5 x .* of 4 cells' \
		' met fast: sooner: .* 1\.00 x, of 4 cells' ' missed slow: no less: at least 1 x fast: worst 0\.990 x '
}
declare_test goal_cells "" "a goal is judged by its worst cell and by the one in the middle"

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
		'FAILED \(seed 2\): out of luck' '^\| full link: at least 98\.0 % \| fast \| no data: '
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
assert [g["state"] for g in data["goals"]] == ["no data", "no data", "no data"], data'
}
declare_test json_values "" "JSON"

variants()
{
	test "$(grep -o '^rate=.*' many.txt | xargs)" = "rate=100mbit rate=1gbit rate=10gbit" &&
		has many.txt 'new_metric' 'met +fast: queueing delay, mean: at most 6\.00 µs: 5\.00 µs$'
}
declare_test variants "" "variants in natural order, unknown metrics, goals of one variant"

# One row: a line per variant, and a plot with a colour per value of the first setting
one_row()
{
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
assert tags.count("img") >= 3 and tags.count("table") >= 2, tags
PY
}

pages()
{
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
	svgs && repeatable
}
watched_longer()
{
	local file lines=1000

	mkdir -p sent && cp -r one/scenario.json one/runs sent && rm sent/runs/*/*/*/flows.*
	for file in sent/runs/*/*/*/queue.csv; do
		lines=$((lines - 100))
		sed -i "$((lines + 1)),\$d" "$file"
	done
	cp -r sent watched && for file in watched/runs/*/*/*/queue.csv; do
		printf '%s,0,0,0,0\n' 40 50 60 >>"$file"
	done
	"$report" --svg sent.svg sent >/dev/null && "$report" --svg watched.svg watched >/dev/null &&
		cmp sent.svg/queue.svg watched.svg/queue.svg
}
# drawn_from MS: whether the axes of "late", whose data are those of "many" from then on, begin there
drawn_from()
{
	local file

	rm -rf late && cp -r many late && for file in late/runs/*/*/*/{queue,flows}.csv; do
		awk -F, -v from="$1" 'NR == 1 || $1 * 1e3 >= from' "$file" >late.csv && mv late.csv "$file"
	done
	"$report" --svg late.svg late >/dev/null && python3 - "$1" late.svg/{queue,rates}-rate=1gbit.svg <<'PY'
import re
import sys

for name in sys.argv[2:]:
    first = re.findall(r'<g text-anchor="middle">\s*<text [^>]*>([0-9.]+)<', open(name).read())
    assert first and all(0 <= float(mark) - float(sys.argv[1]) <= 5 for mark in first), (name, first)
PY
}

drawn_late()
{
	drawn_from 0 && drawn_from 10
}
declare_test drawn_late "" "axes of time begin where the data do"

declare_test watched_longer "" "the queue's plot ends when the traffic does"

fitted()
{
	cp -r odd fitted && sed -i 's/"rpc_p50_us": [0-9.]*/"rpc_p50_us": 69949/' fitted/runs/*/*/*/result.json &&
		"$report" fitted >fitted.txt && has fitted.txt 'p50 ms' ' 69\.9 ' 'mean us' &&
		"$report" --format markdown fitted >fitted.md && has fitted.md 'request, p50 \(ms\)' '\| 69\.9 \|' &&
		"$report" --html fitted.html fitted >/dev/null && has fitted.html 'request, p50 <small>ms</small>' &&
		"$report" --format csv fitted >fitted.csv && has fitted.csv ',69949,'
}
declare_test fitted "" "times of five digits are in a longer unit, except in CSV and JSON"

declare_test plots "" "plots as files, and the same input gives the same page"

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
	cp -r "$root/bench" "$root/scripts" "$root/lab" "$root/dkms.conf" . && bench/publish >/dev/null && diff -r "$root/bench/results" bench/results &&
		diff "$root/bench/digits.csv" bench/digits.csv && [ "$(wc -l <bench/digits.csv)" -le 2000 ] || return
	diff <(basename -as .py bench/scenarios/*.py | grep -v '^demo' | sort) <(cut -d, -f1 bench/digits.csv | sed 1d | sort -u)
}
declare_test up_to_date "" "results: the pages are what bench/publish writes, and digits.csv has every scenario"

# At most three goals, and as many findings, without measured values; a page of questions fits a screen
short()
{
	in_project || skip "not in the project's own tree"
	python3 - "$root" <<'PY'
import re, sys
from pathlib import Path

sys.dont_write_bytecode = True
root = Path(sys.argv[1])
sys.path[0:0] = [str(root / "lab"), str(root / "scripts")]
from lowq_lab import load

problems = []
for path in sorted((root / "bench/scenarios").glob("*.py")):
    one = load(path)
    said = [part for part in re.split(r"\n\s*\n", one.conclusion) if part.strip()]
    if len(one.goals) > 3 or len(said) > 3:
        problems.append(f"{path.name}: {len(one.goals)} goals, {len(said)} findings")
    problems += [f"{path.name}: a figure in '{text.strip()}'" for text in said if re.search(r"\d\.\d+ (?!/)|\d+ (%|us|ms)\b", text)]
for path in sorted((root / "bench/results").glob("*.md")):
    text = path.read_text(encoding="utf-8")
    if len(text.splitlines()) > 40 or any(line.count("|") > 8 for line in text.splitlines()):
        problems.append(f"{path.name} is too long or too wide")
    for sentence in re.split(r"(?<=[.!?])\s+|\n", re.sub(r"(?m)^\|.*$|`[^`]*`", "", text)):
        if path.name == "README.md" and (len(sentence.split()) > 12 or len(re.findall(r"\d+", sentence)) > 3):
            problems.append(f"{path.name}: {sentence}")
print("\n".join(problems))
sys.exit(bool(problems))
PY
}
declare_test short "" "scenarios and pages: three goals, three findings without figures, tables of seven columns"

# publish takes a page's number when all of its seeds are there, and a regression's with the first; what was there before stays
taken()
{
	local seed run

	in_project || skip "not in the project's own tree"
	[ -d bench ] || cp -r "$root/bench" "$root/scripts" "$root/lab" "$root/dkms.conf" . || return
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

readme()
{
	in_project || skip "not in the project's own tree"
	[ -d lab ] || cp -r "$root"/{bench,lab,scripts,dkms.conf} . || return
	mkdir -p out/demo docs && cp -r one out/demo/demo && cp -r seeds out/demo/demo-internet && cp "$root/README.md" . &&
		bench/publish --demo && has README.md '^\| fast <&> label \| 98\.5 ' '^\| noisy' '^# lowq' && ! grep -q '^| CUBIC, drop-tail' README.md &&
		[ "$(grep -c '^<!-- ' README.md)" = "$(grep -c '^<!-- ' "$root/README.md")" ] &&
		"$report" one --svg picture >/dev/null && cmp docs/demo.svg picture/queue.svg
}
declare_test readme "" "bench/publish --demo: README's tables and its picture"

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
	for name in many sweep edge; do
		"$report" "$name" --svg "pub/$name" --format csv >runs.csv && mv runs.csv "pub/$name/results.csv" || return
	done
	drawings pub/many pub/sweep pub/edge &&
		has pub/edge/variants.svg 'All lines: 40 Mb/s, RTT 1 ms\.' '>1 flow<' '>8 flows, TSO<' \
			'rtt_target_us=100000' '>log scale<' 'everywhere: drops in the first'
}
declare_test drawn "" "every mean is drawn inside of its axis, no label is cut or touches another"

# A row has the same colour and mark whatever stands beside it, and no two rows of bench/rows have both
marks()
{
	in_project || skip "not in the project's own tree"
	python3 - "$root" <<'PY'
import sys
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1] + "/lab/report.d")
from plots import colour_of, numbers_of, shape_of

rows = [line.split("|")[0].strip() for line in open(sys.argv[1] + "/bench/rows") if "|" in line and line[0] not in "#" and "roce_ldcp" not in line]
rows += ["mine", "other"]
numbers = numbers_of(rows)
looks = {row: (colour_of(number), shape_of(number)) for row, number in numbers.items()}
assert len(set(looks.values())) == len(rows), sorted(looks.items(), key=lambda x: x[1])
assert all(numbers_of([row, "cubic"])[row] == numbers[row] for row in rows[:-2])
assert looks["cubic"][0] == looks["cubic_fq"][0] == colour_of(numbers_of(["cubic@against"])["cubic@against"])
PY
}
declare_test marks "" "a row has one colour and mark, whatever is beside it"

# No other program draws
alone()
{
	local python

	python=$(python3 -c 'import sys; print(sys.executable)') && mkdir bin &&
		PATH=$TMP/bin "$python" "$report" many --html alone.html --svg alone >/dev/null && cmp alone.html many.html
}
declare_test alone "" "pages and drawings need no other program, and are the same each time"

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
