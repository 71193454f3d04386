#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Tests bench/run from the host, with controls, rows and scenarios that are not the project's.
# shellcheck disable=SC2317 # tests are called by name

# shellcheck source=../lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"
ROOT=$(realpath "$(dirname "$0")/../..")
RUN=$ROOT/bench/run
EXAMPLE=$ROOT/examples/tcp_example
export PYTHONDONTWRITEBYTECODE=1 LOWQ_CACHE=${LOWQ_CACHE:-${XDG_CACHE_HOME:-~/.cache}/lowq}

# bench ARGUMENT...: its output is in $TMP/out
bench()
{
	"$RUN" "$@" >"$TMP/out" 2>&1
}

# said TEXT...: lines of the last output contain these
said()
{
	local text

	for text; do
		grep -qF -- "$text" "$TMP/out" || fail "no '$text' in: $(tail -n 20 "$TMP/out")"
	done
}

# scenario FILE FIELD...: a scenario of one's own with these fields (NAME=VALUE)
scenario()
{
	# shellcheck disable=SC2016 # the scenario expands
	printf '%s\n' 'from lowq_lab import *' 'FLOW = """dumbbell 1 100us; bottleneck 1gbit 100us; serve r --cc "$CONTROL"' \
		'watch_queue 1gbit 20ms 60ms; long_flows 1 70ms; watched"""' 'SCENARIO = Scenario(**(dict(' \
		'title="Mine", question="Is it?", topology="h1 -- r", rows=["cubic"], shell="metric utilisation 0.5") | dict(' \
		"${@:2}" ')))' >"$1"
}

# result FIELD VARIANT ROW: of the run in $TMP/o
result()
{
	jq -r "$1" "$TMP/o/runs/$2/$3/1/result.json"
}

own_control()
{
	local command digits f=$TMP/short.py
	local bench=(bench --out "$TMP/o" --cc dctcp --exact --variant flows=1)
	local half='half | example | dctcp --k 3 | mine' less="less | example cut=12 | dctcp --k 3 | it's mine, 12 %"

	scenario "$f" 'variants=each(flows=[1, 2]), reference="none", conclusion="so", shell=FLOW,' \
		'goals=[goal("utilisation", row="cubic", least=0.9), *(goal("utilisation", row="dctcp", least=0.9, variant={"flows": n}) for n in (1, 2))]'
	"${bench[@]}" --module "$EXAMPLE" --row "$half" --row "$less" "$f" || fail "$(tail -n 5 "$TMP/out")"
	said 'How do dctcp, half and less compare here?' "it's mine, 12 %"
	expect "goals, findings and reference" "$(jq -c '[(.goals | map([.metric, .row, .variant])), .conclusion, .reference_row]' "$TMP/o/scenario.json")" = \
		'[[["utilisation","dctcp",{"flows":1}]],null,null]'
	expect "control and parameter" "$(result .control flows=1 less)" = "example cut=12"
	measured "share used, cut in half $(result .metrics.utilisation flows=1 half), by 12 % $(result .metrics.utilisation flows=1 less)"
	expect "share used, cut in half" "$(result .metrics.utilisation flows=1 half)" -lt 0.95
	expect "share used, cut by 12 %" "$(result .metrics.utilisation flows=1 less)" -ge 0.96
	# the command that is printed makes the same digits, and nothing that is up to date again
	command=$(sed -n 's/^  \(bench\/run .*\)/\1/p' "$TMP/out")
	digits=$(result .metrics flows=1 less)
	jq '.metrics.utilisation = 1' "$TMP/o/runs/flows=1/half/1/result.json" >"$TMP/r" && cp "$TMP/r" "$TMP/o/runs/flows=1/half/1/result.json"
	rm -r "$TMP/o/runs/flows=1/less"
	(cd "$ROOT" && eval "$command --out '$TMP/o'") >"$TMP/out" 2>&1 || fail "$command: $(tail -n 5 "$TMP/out")"
	expect "digits of '$command'" "$(result .metrics flows=1 less)" = "$digits"
	expect "what is up to date" "$(result .metrics.utilisation flows=1 half)" = 1
	# another parameter is another run, and so is a change of the module
	cp -r "$EXAMPLE" "$TMP/mine"
	sed -i 's/cut = 50/cut = 12/' "$TMP/mine/tcp_example.c"
	"${bench[@]}" --cc less --module "$TMP/mine" --row "$half" --row "${less/=12/=50}" "$f"
	expect "digits with the other value" "$(result .metrics flows=1 half)" = "$digits"
	expect "share used after a change of the row" "$(result .metrics.utilisation flows=1 less)" -lt 0.95
	expect "rows in the report" "$(jq -c .rows "$TMP/o/scenario.json")" = '["less","half"]'
}
declare_test own_control "" "--module, --row: a control that is not the project's is compared by one command, which the report repeats"

tutorial()
{
	local step n kernel compiler page=$ROOT/docs/tutorial.md

	# as a reader does it: one block of commands after the other
	export HOME=$TMP/home
	mkdir "$HOME"
	cd "$ROOT" || fail
	awk -v to="$TMP/step" '/^```sh$/ { n++; file = to n; next } /^```$/ { file = "" } file { print >file }' "$page"
	if [ "${INSTALLED:-}" ]; then
		# as the page says, in the reader's folder; the programs are found
		sed -i 's|scripts/lab|lowq-lab|; s|bench/run|lowq-bench|; s|examples/|/usr/share/doc/lowq-lab/&|' "$TMP"/step*
		! grep -E '(scripts|bench|selftests|devel)/' "$TMP"/step* || fail "commands of a clone"
		RUN=lowq-bench
		cd "$HOME" || fail
	fi
	for ((n = 1; ; n++)); do
		step=$TMP/step$n
		[ -e "$step" ] || break
		bash -eu "$step" >"$TMP/out" 2>&1 || fail "$(<"$step"): status $?: $(tail -n 20 "$TMP/out")"
		cp "$TMP/out" "$step.out"
	done
	expect "steps" $((n - 1)) -eq 7
	grep -qw example "$TMP/step2.out" || fail "the control is not there: $(<"$TMP/step2.out")"
	expect "share used, cut in half" "$(awk '/^my control/ { print $3 }' "$TMP/step3.out")" -lt 98
	expect "share used, cut by 12 %" "$(awk '/^my control/ { print $3 }' "$TMP/step4.out")" -ge 99
	# the page's digits, on the kernel and with the compiler that it names
	read -r kernel compiler < <(sed -n 's/.*(Linux \(.*\), gcc \(.*\)).*/\1 \2/p' "$page")
	if grep -q "kernel Linux $kernel .*compiler gcc .* $compiler;" <(paste -sd' ' "$TMP/step3.out" | tr -s ' '); then
		for n in 3 4 6; do
			grep -qxF "$(grep '^my control' "$TMP/step$n.out")" "$page" || fail "not on the page: $(grep '^my control' "$TMP/step$n.out")"
		done
		measured "the page's digits are right"
	fi
	grep -q '<svg' "$HOME/mine/far.svg" || fail "no drawing"
	grep -q 'all 2 values are as expected' "$TMP/step7.out" || fail "$(<"$TMP/step7.out")"
	# what is not as expected
	echo 'ratio example 0.9 1' >"$HOME/mine/bounds"
	! "$RUN" --out ~/mine/far --module ~/mine --row 'example | example | dctcp | my control' --variant far=400 --expect ~/mine/bounds ~/mine/far.py >"$TMP/out" 2>&1 ||
		fail "--expect passes"
	said "report: $HOME/mine/bounds:1: ratio of example [far=400]: 0.4"
}
declare_test tutorial "" "the commands of docs/tutorial.md: a control, a change, a scenario and a plan outside of the project; --expect"

# The package's test is fresh.sh's, which runs the tutorial.
installed()
{
	local bin=$TMP/root/usr/bin f=$TMP/away/short.py

	"$ROOT/scripts/install.sh" install "$TMP/root" /usr >"$TMP/out" 2>&1 || fail "$(tail -n 3 "$TMP/out")"
	[ -e "$bin/labnet" ] || skip "no labnet"
	mkdir "$TMP/away"
	scenario "$f" 'shell=FLOW'
	bench --out "$TMP/o" --cc mine --module "$EXAMPLE" --row 'mine | example | dctcp | mine' "$f" || fail "$(tail -n 5 "$TMP/out")"
	cd "$TMP/away" || fail
	RUN=$bin/lowq-bench
	bench --cc mine --module "$EXAMPLE" --row 'mine | example | dctcp | mine' ./short.py || fail "installed: $(tail -n 5 "$TMP/out")"
	said "  lowq-bench short.py --cc mine --module $EXAMPLE" "plots: $TMP/away/out/bench/short/index.html"
	expect "digits" "$(jq -cS .metrics out/bench/short/runs/all/mine/1/result.json)" = "$(jq -cS .metrics "$TMP/o/runs/all/mine/1/result.json")"
	"$bin/lowq-report" --metrics marks out/bench/short >"$TMP/out" || fail "lowq-report: status $?"
	said mine
	bench --dry-run --row 'example | example | dctcp | mine' "$TMP/root/usr/share/doc/lowq-lab/examples/tcp_example/far.py"
	expect "runs of a scenario in Python: $(head -n1 "$TMP/out")" "$(wc -l <"$TMP/out")" -eq 4
	"$bin/lowq-lab" plan "$TMP/root/usr/share/doc/lowq-lab/examples/plan/incast.json" >"$TMP/out" || fail "lowq-lab plan: status $?"
	said '5 nodes, 4 links'
	"$ROOT/scripts/install.sh" uninstall "$TMP/root" /usr >"$TMP/out"
	expect "files left" "$(find "$TMP/root" -mindepth 1 ! -type d)" = ''
}
declare_test installed "" "what make install puts elsewhere compares a module and a scenario of one's own, with the digits of a clone"

# offers LINE WORD...: what bash offers for the last word of a command line
offers()
{
	local words

	read -ra words <<<"$1."
	words[-1]=${words[-1]%.}
	# shellcheck disable=SC2016 # the shell that completes expands
	bash -c '. "$1"; shift
		COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); _lowq_lab "$1" "${@: -1}" "${@: -2:1}"
		printf "%s\n" "${COMPREPLY[@]}"' - "$ROOT/lab/lowq-lab.bash-completion" "${words[@]}" | sort -u >"$TMP/offered"
	expect "offered for '$1'" "$(paste -sd' ' "$TMP/offered")" = "${*:2}"
}

completes()
{
	mkdir "$TMP/bin" "$TMP/d"
	for name in lab:lowq-lab runner/run:lowq-bench report:lowq-report; do
		ln -s "$ROOT/lab/${name%:*}" "$TMP/bin/${name#*:}"
	done
	PATH=$TMP/bin:$PATH
	cd "$TMP/d" && mkdir tree && touch a.json
	offers 'lowq-lab ' build clean export import kdir kselftest list plan run
	offers 'lowq-lab kselftest --control pr' prague
	offers 'lowq-lab run ' a.json tree
	offers 'lowq-lab run --m' --mem --module
	offers 'lowq-lab run --module ' tree
	offers 'lowq-lab run --kernel 6' 6.1 6.12
	offers 'lowq-bench app-p' app-page
	offers 'lowq-bench ./a' ./a.json
	# shellcheck disable=SC2046 # words
	offers 'lowq-bench --cc dctcp,cubic_' $(sed -n 's/^\(cubic_[a-z0-9_]*\) *|.*/dctcp,\1/p' "$ROOT/bench/rows" | sort)
	offers 'lowq-bench --see' --seed --seeds
	offers 'lowq-report --format c' csv
	offers 'lowq-report ' tree
	# every option that takes a value is known: none is followed by the options or files that a word is
	for name in lab:lab bench:run report:report; do
		"$TMP/bin/lowq-${name%:*}" --help | grep -oE -- '--[a-z]+ [A-Z{]' | cut -d' ' -f1 | sort -u | while read -r option; do
			[ "$option" != --tolerance ] || continue
			grep -qE -- "$option([|]|[)])" "$ROOT/lab/lowq-lab.bash-completion" || fail "$option of lowq-${name%:*} is not known"
		done || exit
	done
}
declare_test completes "" "bash completes commands, options, scenarios, rows and files of lowq-lab, lowq-bench and lowq-report"

ci()
{
	local file command

	for_full
	# a repository with a control, as both jobs have it: its own folder, and one called mine
	cp -r "$EXAMPLE" "$TMP/mine"
	for file in github gitlab; do
		cd "$TMP" || fail
		[ "$file" = github ] || cd mine || fail
		# shellcheck disable=SC2016 # eval expands
		command=$(grep -A1 'bench/run --out' "$ROOT/examples/ci/$file.yml" | paste -sd' ' | sed 's/.*bench.run --out results/bench --out "$TMP\/o"/')
		expect "arguments of $file" "$(wc -w <<<"$command")" -eq 19
		eval "$command" || fail "$file: $command: $(tail -n 5 "$TMP/out")"
		said 'report: all 3 values are as expected'
	done
	sed -i 's/^drops.*/drops example 1 -/' "$TMP/mine/bounds"
	! eval "$command" || fail "a value that is not as expected does not fail"
}
declare_test ci "" "the commands of examples/ci run a control's scenario, and fail on a value outside of its bounds"

# ends CODE WHY: a control that is loaded but does CODE when a connection begins ends its run with this reason
ends()
{
	sed "s|^static struct|static void example_start(struct sock *sk) { $1 }\n&|; s|\.undo_cwnd|.init = example_start,\n\t&|" \
		"$EXAMPLE/tcp_example.c" >"$TMP/bad/tcp_example.c"
	! bench --fresh --out "$TMP/o" --module "$TMP/bad" --row 'bad | example | fifo | bad' --cc bad --exact --variant '' "$TMP/flow.py" ||
		fail "'$1' is no failure"
	grep -qE -- "FAILED \(seed 1\): $2" "$TMP/out" || fail "'$1': $(<"$TMP/out")"
}

bad_controls()
{
	mkdir "$TMP/bad"
	cp "$EXAMPLE/Kbuild" "$TMP/bad/"
	scenario "$TMP/flow.py" "shell='dumbbell 1 1ms; serve r --cc \"\$CONTROL\"; in_ns h1 flowgen long --to 10.0.0.1 --cc \"\$CONTROL\" --size 1k || fail none'"
	ends 'WARN_ON(1);' 'the kernel complained: WARNING: .*'
	ends 'panic("mine");' 'the kernel complained: Kernel panic - not syncing: mine'
	# it does not build, has no such parameter, has another name
	echo 'obj-m := none.o' >"$TMP/bad/Kbuild"
	bench --out "$TMP/none" --module "$TMP/bad" --row 'bad | example | fifo | bad' "$TMP/flow.py"
	expect "status if it does not build" $? -eq 1
	said "lab: --module: $TMP/bad does not build"
	[ ! -e "$TMP/none" ] || fail "it left results"
	! bench --out "$TMP/o" --module "$EXAMPLE" --row 'p | example cot=3 | fifo | p' --row 'q | exampel | fifo | q' --row 'r | cubic beta=0 | fifo | r' \
		--row 's | cubic nothing=1 | fifo | s' "$TMP/flow.py" || fail "no failure"
	said "FAILED (seed 1): module tcp_example has no parameter 'cot'" "FAILED (seed 1): no congestion control 'exampel': modprobe: " \
		"FAILED (seed 1): cubic does not take nothing=1"
}
declare_test bad_controls "" "a control that does not build, warns, oopses or panics, or that is not there, is named in one line"

# --list has groups, and a group's name stands for its scenarios, unless one of them has that name
groups()
{
	bench --list || fail "--list: status $?"
	said ' papers:' '  papers-dctcp-queue '
	bench --dry-run --out "$TMP/none" --seeds 1 validate || :
	expect "--out for a group" "$(wc -l <"$TMP/out")" -eq 1
	said '--out, --csv, --expect and --task go with one scenario'
	bench --dry-run validate
	expect "scenarios of the group" "$(cut -f1 "$TMP/out" | sort -u | paste -sd' ')" = \
		"$(cd "$ROOT/bench/scenarios" && printf '%s\n' validate-*.py | sed 's/\.py$//' | paste -sd' ')"
	bench --dry-run demo
	expect "scenarios of the name of one" "$(cut -f1 "$TMP/out" | sort -u)" = demo
	bench --dry-run --demo
	expect "runs of the demo" "$(cut -f4 "$TMP/out" | sort | uniq -c | xargs)" = "12 1 12 2 12 3 12 4 12 5"
	bench --dry-run --demo --seed 1
	expect "runs of the demo with one seed" "$(cut -f4 "$TMP/out" | sort | uniq -c | xargs)" = "12 1"
}
declare_test groups "" "scenarios have groups, by name; the demo has five seeds, or the one that is asked for"

# With each seed the flows of a scenario start at other distances, not only earlier or later together.
starts()
{
	local i us distances

	# of a scenario in shell: what the guest gets, and what it makes of it
	scenario "$TMP/mine.py" 'shell="true"'
	eval "$(PYTHONPATH=$ROOT/lab python3 -m lowq_lab guest "$TMP/mine.py" '' cubic cubic fifo 7; sed -n '/^start_us()/,/^}/p' "$ROOT/lab/runner/guest")"
	for us in 100 1000 5000 20000; do
		PYTHONPATH=$ROOT/lab python3 -c '
import sys; from lowq_lab import Run
for seed in range(1, 21): print(*(Run("", "", "", seed, {}).start(i, sys.argv[1] + "us").removesuffix("us") for i in range(1, 9)))' "$us" >"$TMP/starts"
		expect "starts in shell within $us us, seed 7" "$(for i in {1..8}; do start_us "$i" "$us"; done | paste -sd' ')" = "$(sed -n 7p "$TMP/starts")"
		expect "instants outside of $us us" "$(tr ' ' '\n' <"$TMP/starts" | awk -v us="$us" '$1 < 0 || $1 >= us' | wc -l)" -eq 0
		distances=$(awk -v us="$us" '{ for (i = 2; i <= NF; i++) printf "%d ", ($i - $1 + us) % us; print "" }' "$TMP/starts" |
			sort -u | wc -l)
		expect "sets of distances of 20 seeds, $us us" "$distances" -eq 20
	done
}
declare_test starts "" "flows start at instants within the time that was asked for, and at other distances with each seed"

# refused WHY ARGUMENT...: one line, status 2, nothing left
refused()
{
	bench --out "$TMP/none" "${@:2}"
	expect "status of ${*:2}" $? -eq 2
	expect "lines of error of ${*:2}" "$(wc -l <"$TMP/out")" -eq 1
	said "$1"
	[ ! -e "$TMP/none" ] || fail "${*:2} left results"
}

wrong_usage()
{
	local row queue="'NAME | CONTROL | QUEUE | LABEL'" f=$TMP/mine.py

	for row in '' 'x' 'x | y | fifo' 'x | y | fifo | l | m' ' | y | fifo | l' 'x | | fifo | l' 'x y | y | fifo | l' 'x|y|fifo|' $'x|y|fifo|l\nm'; do
		refused "--row takes $queue" --row "$row" demo
	done
	refused "no queue 'none' (see lowq-tc list)" --row 'x | y | none | l' demo
	refused "is NAME=VALUE, not '3'" --row 'x | y 3 | fifo | l' demo
	refused "there is a row 'cubic' already" --row 'cubic | y | fifo | l' demo
	refused "there is a row 'x' already" --row 'x | y | fifo | l' --row 'x | y | fifo | l' demo
	refused "no row 'none' in bench/rows" --cc none demo
	refused "no Kbuild in '/no/such'" --module /no/such demo
	refused "no Kbuild in '$TMP'" --module "$TMP" demo
	refused "no file './none.py'" ./none.py
	refused "No such file" --expect /no/such demo
	scenario "$f"
	scenario "$f" 'rows=["cubic", "none"]'
	refused "$f: rows: no row 'none'" "$f"
	scenario "$f" 'variants=[{"a b": 1}]'
	refused "$f:4: Scenario: variants: 'a b' and '1' are not a setting" "$f"
	scenario "$f" 'shell=""'
	refused "$f:4: Scenario: give one of plan and shell" "$f"
	scenario "$f" 'shell="if"'
	refused "$f:7: shell: syntax error" "$f"
	scenario "$f" 'title=None'
	refused "$f:4: Scenario: title is not given" "$f"
	scenario "$f" '1 +'
	refused "$f:7: invalid syntax" "$f"
	scenario "$f" 'title=nothing'
	refused "$f:6: name 'nothing' is not defined" "$f"
	touch "$TMP/mine.sh"
	refused "a scenario's file has a name like mine.py" "$TMP/mine.sh"
}
declare_test wrong_usage "" "wrong rows, modules, bounds and scenarios: one line that names file and line, status 2, nothing left"

kernels()
{
	local row f=$TMP/short.py

	scenario "$f" 'shell=FLOW, goals=[goal("utilisation", row="cubic", least=0.5)]'
	bench --out "$TMP/o" --kernel 7.3 --against "${OTHER:-7.3}" "$f" || fail "$(tail -n 5 "$TMP/out")"
	said 'How do cubic and cubic@against compare here?' "bench/run $f --kernel 7.3 --against ${OTHER:-7.3}" 'met      cubic: utilisation'
	for row in cubic cubic@against; do
		expect "status of $row" "$(result .status all "$row")" = ok
		expect "row" "$(result .row all "$row")" = "$row"
	done
	expect "labels" "$(result .label all cubic@against)" = "$(result .label all cubic), kernel ${OTHER:-7.3}"
	if [ "${OTHER:-}" ]; then
		expect "kernels" "$(result .kernel all cubic)" != "$(result .kernel all cubic@against)"
	else
		expect "digits of the same kernel" "$(result .metrics all cubic)" = "$(result .metrics all cubic@against)"
	fi
	# what is up to date is kept
	jq '.metrics.utilisation = 2' "$TMP/o/runs/all/cubic@against/1/result.json" >"$TMP/r" && cp "$TMP/r" "$TMP/o/runs/all/cubic@against/1/result.json"
	bench --out "$TMP/o" --kernel 7.3 --against "${OTHER:-7.3}" "$f"
	expect "what is up to date" "$(result .metrics.utilisation all cubic@against)" = 2
	refused "no kernel 'none'" --kernel none "$f"
	refused "no kernel '/none'" --against /none "$f"
	refused "--config: cannot read '/none'" --config /none "$f"
}
declare_test kernels "" "--against: each row on two kernels, in one report (OTHER=6.12: not the same one)"

# refused_python WHY LINE...: FILE:LINE and the reason in one line, of far.py with these changes by sed
refused_python()
{
	sed "$2" "$EXAMPLE/far.py" >"$TMP/far.py"
	refused "bench: $TMP/far.py:$1" "$TMP/far.py" --row 'example | example | dctcp | mine'
}

python()
{
	local row='example | example | dctcp | mine'

	bench --out "$TMP/o" --cc example --module "$EXAMPLE" --row "$row" --variant far=400 "$EXAMPLE/far.py" || fail "$(tail -n 5 "$TMP/out")"
	said 'How does example do here?' "bench/run examples/tcp_example/far.py --cc example --variant far=400"
	measured "share used $(result .metrics.utilisation far=400 example), ratio $(result .metrics.ratio far=400 example), Jain $(result .metrics.jain far=400 example)"
	expect "share used" "$(result .metrics.utilisation far=400 example)" -ge 0.9
	# .23 with a cut of 12 % and .19 with one of 50
	expect "ratio" "$(result .metrics.ratio far=400 example)" -lt 0.4
	expect "flows that failed" "$(result .metrics.failed far=400 example)" -eq 0
	sed 's/stated("h2", "r", rate="1gbit"/stated("h2", "r", rate="2gbit"/; s/, "example"\]/]/' "$EXAMPLE/far.py" >"$TMP/far.py"
	! bench --out "$TMP/w" --variant far=400 "$TMP/far.py" || fail "another rate than stated: status 0"
	said 'FAILED (seed 1): the plan: path: h2 to '
	expect "plot's data" "$(head -c 19 "$TMP/o/runs/far=400/example/1/queue.csv")" = t_s,throughput_bps,
	# each host of each kind of network reaches the others, by all kinds of traffic
	cat >"$TMP/nets.py" <<-'END'
		from lowq_lab import *
		def plan(run):
		    to = {"queue": run.queue("100us"), "rate": "1gbit"}
		    net = {"bell": lambda: dumbbell(3, rtt="1ms", **to), "lot": lambda: parking_lot(3, delay="20us", **to),
		           "leaf": lambda: leaf_spine(3, 2, 2, delay="5us", uplink="4gbit", **to), "fat": lambda: fat_tree(4, delay="1us", **to)}[run["net"]]()
		    one, last = net.hosts[0], net.hosts[-1]
		    cc = {"control": run.control}
		    return net.plan(long(one, last, size="1M", **cc), requests("[hr]*", "[hr]*", size=99, closed=9, flows=99, **cc),
		        flows("[hr]*", "[hr]*", size=99, rate=9999, flows=9, **cc), incast("h*", last, size=99, fan=4, **cc),
		        listed([(one, last, 9, "1ms")], **cc), observe=[(net.links[-1]["ends"][0]["node"], net.links[-1]["ends"][1]["node"])])
		nets = Scenario(title="Nets", question="Do they work?", rows=["dctcp"], variants=[{"net": name} for name in ("bell", "lot", "leaf", "fat")],
		    plan=plan, goals=[goal("failed", row="dctcp", most=0)])
	END
	bench --out "$TMP/n" "$TMP/nets.py" || fail "$(tail -n 5 "$TMP/out")"
	expect "failed, of all" "$(jq -s -c 'map([.variant.net, .metrics.failed, .metrics.rpc_p99_us > 0])' "$TMP"/n/runs/*/dctcp/1/result.json)" = \
		'[["bell",0,true],["fat",0,true],["leaf",0,true],["lot",0,true]]'
	expect "flows" "$(grep -c '"type":"flow"' "$TMP/n/runs/net=fat/dctcp/1/flows.jsonl")" -eq 114
	refused_python "16: Network.queue() got an unexpected keyword argument 'rates'" 's/, rate="1gbit")/, rates="1gbit")/'
	refused_python "14: link(): no node 'h3'" 's/net.link("h2"/net.link("h3"/'
	refused_python "14: no setting 'fur'" "s/'far'\]/'fur']/"
	refused_python '9: ' 's/^def plan.*/def plan(run) -> :/'
	refused_python "9: the plan of far=200: links[2].ends[0].rate: '0gbit' is out of range" 's/, rate="1gbit")/, rate="0gbit")/'
	refused_python "32: goal() got an unexpected keyword argument 'less'" 's/least=0.97/less=0.97/'
	refused_python "26: Scenario: variants: 'far' and 'a b' are not a setting" 's/"far": 200/"far": "a b"/'
	refused_python "32: goal() got an unexpected keyword argument 'relative'" "s/least=0.97/least=0.97, relative='example'/"
	refused_python "26: Scenario.__init__() got an unexpected keyword argument 'param'" 's/params=/param=/'
	refused_python "26: Scenario: goals: utilisation of dctcp: no variant has {'fur': 2}" "s/least=0.97/least=0.97, variant={'fur': 2}/"
	refused_python "32: goal(): give least or most, and median with one of them" 's/least=0.97/median=0.97/'
	refused_python "32: goal(): beside is a list of rows" "s/least=0.97/least=0.97, beside='example'/"
	refused_python "26: Scenario: give one of plan and shell" "s/plan=plan/plan=plan, shell='watched'/"
	refused_python "26: Scenario: shown is a list of names" "s/shown=.*drops.\]/shown='drops'/"
	refused_python "1: 0 scenarios, not one" "/^SCENARIO/,\$d"
	refused_python " rows: no row 'nothing' in bench/rows" 's/"dctcp", "example"\]/"dctcp", "nothing"]/'
}
declare_test python "" "a scenario in Python is made of a plan; one with a fault is refused with file and line"

# From Python and as CSV: a row for each run, a failed one, too; a plan's flows; what is wrong is an exception of one line
rows()
{
	# shellcheck disable=SC2016 # the scenario expands
	scenario "$TMP/quick.py" 'rows=["cubic", "dctcp"], shell="metric utilisation 0.5; metric delay_p99_us 7; [ $SEED != 3 ] || fail three"'
	python3 "$ROOT/examples/rows.py" "$TMP/quick.py" >"$TMP/out" 2>&1 || fail "$(tail -n 5 "$TMP/out")"
	expect "rows of runs" "$(grep -c 'seed [12]: 0.500 of the rate, 7 us of queue' "$TMP/out")" -eq 4
	expect "rows of flows" "$(tail -n 2 "$TMP/out" | sort | paste -sd' ')" = "h1: 2000000 bytes, ok h2: 2000000 bytes, ok"
	"$RUN" --out "$TMP/c" --cc cubic --seed 3 --csv - "$TMP/quick.py" >"$TMP/csv" 2>"$TMP/out"
	expect "status, lines, heading" "$? $(wc -l <"$TMP/csv") $(head -c 25 "$TMP/csv")" = "1 2 row,label,control,queue,s"
	expect "file" "$("$RUN" --out "$TMP/c" --cc cubic --seed 1 --csv "$TMP/csv" "$TMP/quick.py" 2>/dev/null; cut -d, -f1 "$TMP/csv" | paste -sd' ')" = "row cubic"
	PYTHONPATH=$ROOT/lab python3 - "$TMP" >"$TMP/out" 2>&1 <<-'END' || fail "$(tail -n 5 "$TMP/out")"
		import sys
		import lowq_lab
		for what, words in (("none", {}), (sys.argv[1] + "/quick.py", {"rows": ["none"]}), ({"nodes": []}, {}), ({}, {"variant": "a=1"})):
		    try:
		        print(lowq_lab.run(what, **words))
		    except (RuntimeError, ValueError) as error:
		        print(error)
		lowq_lab.running.output = lambda words, output=lowq_lab.running.output: output(words).replace("CUBIC, drop-tail", "12e4")
		print([(row["status"], row["label"]) for row in lowq_lab.run(sys.argv[1] + "/quick.py", rows=["cubic"], seeds=[3], out=sys.argv[1] + "/c")])
	END
	said "no scenario 'none'" "no row 'none' in bench/rows" 'nodes: ' 'a plan has no rows and no variants' "[('failed: three', '12e4')]"
}
declare_test rows "" "lowq_lab.run() and --csv - return a row for each run, and of a plan for each flow"

# The simulators' files: as they publish them, with prose after the last flow, fewer flows announced than follow, and
# rates with and without a unit
field_files()
{
	cat >"$TMP/topology.txt" <<-'END'
		6 2 1 5
		4 5 
		0 4 10000000000.0 1us 0
		1 4 10Gbps 1000ns 0.000000
		2 5 10Gb/s 0.001ms 0
		3 5 10Gbps 1us 0
		4 5 40Gbps 5us 0

	END
	printf '%s\n' 3 '0 3 3 100 10000 0.001' '1 2 3 10000 0.002' '2 0 3 100 200000 0.003' '3 0 3 100 5000 2' '' 'First line: # of flows' \
		'src0 dst0 3 dst_port0 size0 start_time0' >"$TMP/flow.txt"
	cat >"$TMP/tiny.topo" <<-'END'
		# three tiers
		Nodes 8
		Tiers 3
		Podsize 4

		Tier 0
		Downlink_speed_Gbps 10
		Radix_Down 2
		Radix_Up 2
		Downlink_Latency_ns 1000
		Switch_Latency_ns 64

		Tier 1
		Oversubscribed 2
		Downlink_speed_Gbps 10
		Radix_Down 2
		Radix_Up 1
		Downlink_Latency_ns 1000
		Bundle 1

		Tier 2
		Downlink_speed_Gbps 10
		Radix_Down 2
		Downlink_Latency_ns 2000
	END
	printf '%s\n' 'Nodes 8' 'Connections 2' '# id and prio do not count' '0->7 id 1 start 1000000 size 10000' \
		'1->0 start 2000000000 size 10000 prio 2' >"$TMP/flow.cm"
}

field()
{
	local file

	field_files
	cat >"$TMP/field.py" <<-'END'
		from pathlib import Path
		from lowq_lab import *
		HERE = Path(__file__).parent
		def plan(run):
		    if run["from"] == "ns3":
		        net = ns3_topology(HERE / "topology.txt", queue=run.queue("16us"))
		        return net.plan(ns3_list(HERE / "flow.txt", net, control=run.control), observe=[("n5", "n3")])
		    net = htsim_topology(HERE / "tiny.topo", queue=run.queue("16us"))
		    return net.plan(htsim_list(HERE / "flow.cm", net, control=run.control), observe=[("t0", "n0")])
		SCENARIO = Scenario(title="Field", question="Do the files run?", rows=["dctcp"], plan=plan, variants=[{"from": "ns3"}, {"from": "htsim"}])
	END
	rm -rf "$TMP/o"
	bench --out "$TMP/o" "$TMP/field.py" || fail "$(tail -n 5 "$TMP/out")"
	expect "ns-3: flows from and to" "$(jq -r 'select(.type == "flow") | "\(.client)>\(.server):\(.size)"' "$TMP/o/runs/from=ns3/dctcp/1/flows.jsonl" | paste -sd' ')" = \
		"n0>n3:10000 n1>n2:10000 n2>n0:200000"
	expect "htsim: flows from and to" "$(jq -r 'select(.type == "flow") | "\(.client)>\(.server):\(.size)"' "$TMP/o/runs/from=htsim/dctcp/1/flows.jsonl" | paste -sd' ')" = \
		"n0>n7:10000 n1>n0:10000"
	measured "slowdown $(result .metrics.slow_p50_small from=ns3 dctcp), of 200 kB $(result .metrics.slow_p50_medium from=ns3 dctcp), by htsim's files $(result .metrics.slow_p99_small from=htsim dctcp)"
	expect "flows by size" "$(result '[.metrics.count_small, .metrics.count_medium, .metrics.count_large] | join(" ")' from=ns3 dctcp)" = "2 1 0"
	# within one window and alone, a flow takes its ideal time, and that in which links send SYNs and ACKs
	for file in ns3 htsim; do
		expect "$file: slowdown of a flow alone" "$(result .metrics.slow_p99_small "from=$file" dctcp)" -gt 0.99
		expect "$file: slowdown of a flow alone" "$(result .metrics.slow_p99_small "from=$file" dctcp)" -lt 1.03
	done
	# the first window of 10 packets, and the next, last less than the RTT
	expect "200 kB, with slow start" "$(result .metrics.slow_p50_medium from=ns3 dctcp)" -gt 1
	python3 "${BASH_SOURCE[0]%/*}/field_files.py" "$TMP" || fail "a wrong file is not refused so"
	sed -i 's/^1 2 3/1 1 3/' "$TMP/flow.txt"
	refused "$TMP/field.py:7: $TMP/flow.txt: line 3: destination: the flow goes from 1 to itself" "$TMP/field.py"
}
declare_test field "" "topologies and flows of HPCC, PowerTCP and htsim run unedited; a fault in one has its line and field"

# Files beside a scenario: it finds them from any folder, and a change of one repeats its runs
beside()
{
	local file made

	printf '%s\n' '1000 0' '3000 1' >"$TMP/sizes.cdf"
	printf '%s\n' 1 2 >"$TMP/link.trace"
	echo 'FLOWS = 3' >"$TMP/helper.py"
	cat >"$TMP/beside.py" <<-'END'
		from helper import FLOWS
		from lowq_lab import *
		def plan(run):
		    net = Network()
		    net.switch("s")
		    net.host("a", "b")
		    net.link("a", "s", delay="1ms")
		    net.link("s", "b", trace="link.trace")
		    return net.plan(flows("a", "b", cdf="sizes.cdf", rate=100, flows=FLOWS, control=run.control), observe=[("s", "b")])
		SCENARIO = Scenario(title="Beside", question="Are they found?", rows=["cubic"], plan=plan)
	END
	(cd / && bench --out "$TMP/beside" "$TMP/beside.py") || fail "$(tail -n 5 "$TMP/out")"
	expect "flows" "$(grep -c '"type":"flow"' "$TMP/beside/runs/all/cubic/1/flows.jsonl")" -eq 3
	# a rate that changes leaves no ideal time
	expect "slowdown" "$(jq .metrics.slow_p50_small "$TMP/beside/runs/all/cubic/1/result.json")" = null
	for file in helper.py sizes.cdf link.trace; do
		made=$("$ROOT/lab/runner/one" --made "$TMP/beside.py" | jq .scenario)
		sed -i '$s/[123]/4/' "$TMP/$file"
		expect "$file: what a run depends on" "$("$ROOT/lab/runner/one" --made "$TMP/beside.py" | jq .scenario)" != "$made"
	done
}
declare_test beside "" "a scenario's own modules, traces and sizes are found beside it, and a change of one repeats its runs"

# What a plan says of hosts and queues is so in the guest, and what metrics ask there comes back
words()
{
	cat >"$TMP/words.py" <<-'END'
		import json, re
		from lowq_lab import *
		def plan(run):
		    net = dumbbell(2, rate="1gbit", rtt="100us", queue=run.queue("100us", k=9, limit="99p"))
		    run.prepare_hosts(net, initcwnd=33)
		    run.parameters(net, "ldcp", alpha=100)
		    net.initcwnd(7, "h2")
		    net.prepare("", 'echo 5 >"$OUT/five"')
		    net.stated("h1", "r", rate="1gbit", rtt="100us", mark_at=run.step(9))
		    return net.plan(program("h1", "echo $START_NS", label="began"), long("h1", "r", duration="20ms", control="cubic"), long("h2", "r", duration="20ms", control=run.control, pull=True),
		        observe=[("sw", "r")],
		        *[incast("h*", "r", size="3k", rounds=4, timeout=limit, control=run.control) for limit in ("1s", "1us")])
		def metrics(results):
		    route = [re.search("initcwnd ([0-9]+)", results.ask(host, "ip route")) for host in ("h1", "h2", "r")]
		    return {f"window{i}": int(found[1]) if found else None for i, found in enumerate(route)} | {
		        "limit": max(q["options"].get("limit", 0) for q in json.loads(results.ask("sw", "tc -j qdisc show dev r"))),
		        "rounds": len(results.round_times()), "five": int((results.directory / "five").read_text()),
		        "opened": results.counter("PassiveOpens", "h1", "h2"), "segments": results.counter("OutSegs", "h1", "h2"),
		        "alpha": int(open("/sys/module/tcp_ldcp/parameters/alpha").read()) if results.run.row == "ldcp" else None,
		        "solicits": sum(int(results.ask(node, "awk '/OutRouterSolicits/ { print $2 }' /proc/net/snmp6")) for node in ("h1", "sw", "r")),
		        "began": int(results.text("began")) % 10**9, "even": jain([1, 1, 2]), "most": at_share([3, 9, 1], 0.99), "second": results.flow("h2")["payload_bytes"]}
		SCENARIO = Scenario(title="Words", question="Are they so?", rows=["dctcp", "ldcp"], plan=plan, metrics=metrics)
	END
	rm -rf "$TMP/o"		# of other tests
	bench --out "$TMP/o" "$TMP/words.py" || fail "$(tail -n 5 "$TMP/out")"
	# h2's own window replaces that of LDCP's hosts; answers within 1 us are not possible
	expect "windows, limit, alpha, rounds, file, failed, answered" "$(jq -s -c 'map(.metrics |
		[.window0, .window1, .window2, .limit, .alpha, .rounds, .five, .failed, .rpc_count])' "$TMP"/o/runs/all/*/1/result.json)" = \
		'[[null,7,null,149886,null,8,5,8,8],[33,7,33,149886,100,8,5,8,8]]'
	expect "Jain, p99" "$(result '[.metrics.even * 9, .metrics.most] | tostring' all ldcp)" = '[8,9]'
	# one for the answers of each, and for the long flow of the second
	expect "connections to both hosts" "$(result .metrics.opened all dctcp)" -eq 3
	# plans start 50 us after a second
	expect "ns from the plan's start to its program's" $(($(result .metrics.began all dctcp) - 50000)) -lt 1000
	# at random instants, out of the stream that queues draw from
	expect "IPv6 router solicitations" "$(result .metrics.solicits all dctcp)" -eq 0
	expect "segments of both" "$(result .metrics.segments all dctcp)" -gt 1000
	expect "bytes of the second flow, of another control" "$(result .metrics.second all dctcp)" -gt 1000000
}
declare_test words "" "hosts, queues and parameters that a plan names, and counters and files that metrics read"

# in_shell GOAL FINDING STEP: a scenario whose run is in shell, with a metric in Python
in_shell()
{
	cat >"$TMP/mine.py" <<-END
		from lowq_lab import *
		SCENARIO = Scenario(
		    title="Mine", question="""Is it
		        what it is?""", topology="h1 -- r", rows=["cubic"],
		    variants=each(each(a=1, b=[None, 2]) + each(a=3), c=[0.5]), goals=[goal("more", row="cubic", least=$1, variant={"b": None})],
		    conclusion="$2", metrics=lambda results: {"more": results.run["c"] + results.run.seed, "b": results.run.settings.get("b")},
		    shell="""
		$3
		metric less "\${b:-0}"
		""")
	END
}

shell()
{
	local made

	in_shell 1 'yes' 'true'
	bench --out "$TMP/o" "$TMP/mine.py" || fail "$(tail -n 5 "$TMP/out")"
	said 'Is it what it is?'
	expect "variants" "$(bench --dry-run "$TMP/mine.py"; cut -f2 "$TMP/out" | paste -sd,)" = "a=1 c=0.5,a=1 b=2 c=0.5,a=3 c=0.5"
	expect "metrics" "$(result '[.metrics.more, .metrics.b, .metrics.less] | tostring' 'a=1 b=2 c=0.5' cubic)" = '[1.5,2,2]'
	expect "goals" "$(jq -c '.goals' "$TMP/o/scenario.json")" = '[{"metric":"more","row":"cubic","least":1,"variant":{"b":""}}]'
	made=$(result .metrics.more 'a=3 c=0.5' cubic)
	# texts, goals and comments do not repeat a run; what it does, does
	jq '.metrics.more = 9' "$TMP/o/runs/a=3 c=0.5/cubic/1/result.json" >"$TMP/r" && cp "$TMP/r" "$TMP/o/runs/a=3 c=0.5/cubic/1/result.json"
	in_shell 2 'no' $'true\n# nothing'
	bench --out "$TMP/o" "$TMP/mine.py"
	expect "kept" "$(result .metrics.more 'a=3 c=0.5' cubic)" -eq 9
	in_shell 2 'no' ':'
	bench --out "$TMP/o" "$TMP/mine.py"
	expect "repeated" "$(result .metrics.more 'a=3 c=0.5' cubic)" = "$made"
	in_shell 1 yes 'fail why'
	! bench --out "$TMP/o" "$TMP/mine.py" || fail "a run that fails: status 0"
	said 'FAILED (seed 1): why'
}
declare_test shell "" "a scenario in Python whose run is in shell: variants, goals, metrics; changes that repeat runs"

# Settings with the names of the run's own variables; a scenario made of another one's, with fewer settings
own_names()
{
	local f=$TMP/names.py

	scenario "$TMP/of.py" 'variants=each(flows=[1, 2], p=1), words={"flows": "{} flows"}'
	# shellcheck disable=SC2016 # the scenario expands
	printf '%s\n' 'from dataclasses import replace' 'from lowq_lab import load' 'S = load(__file__.replace("names", "of"))' \
		'SCENARIO = replace(S, variants=[dict(p=7, own=8, params=9, made=10, setting=11, pair=12, text=13)],' \
		'    shell="for i in p own params made setting pair text; do metric $i ${!i}; done")' >"$f"
	bench --out "$TMP/o" --row 'prague2 | prague loss_cubic=0 | prague | x' --cc prague2 "$f" || fail "$(tail -n 5 "$TMP/out")"
	expect "the settings that the run saw" "$(jq -c '[.metrics[]]' "$TMP"/o/runs/*/prague2/1/result.json)" = "[7,8,9,10,11,12,13]"
	scenario "$f" 'variants=[{"OUT": 1}]'
	refused "'OUT' and '1' are not a setting" "$f"
}
declare_test own_names "" "settings keep their values, whatever their names; replace() makes a scenario of a published one"

# What a long flow had is not what the acknowledgements of a flow the other way had, which passed the queue before it.
both_ways()
{
	# shellcheck disable=SC2016 # the scenario expands
	in_shell 1 yes 'dumbbell 1 1ms
		bottleneck 100mbit 1ms
		serve r; serve h1
		watch_queue 100mbit 20ms 80ms 1ms --filter "dst host 10.0.0.1"
		in_ns r flowgen rpc --to 10.0.1.1 --size 3000 --closed 1 --requests 1 --start 22ms >request & request=$!
		in_ns r flowgen long --to 10.0.1.1 --duration 90ms >back & back=$!
		in_ns h1 flowgen long --to 10.0.0.1 --start 30ms --duration 60ms >there
		wait $request $back
		watched
		metric sent $(of 1 .payload_bytes)'
	bench --out "$TMP/o" --variant 'a=3 c=0.5' "$TMP/mine.py" || fail "$(tail -n 5 "$TMP/out")"
	expect "bytes of the long flow" "$(result .metrics.sent 'a=3 c=0.5' cubic)" -gt 10000
}
declare_test both_ways "" "the long flow of a host is neither the acknowledgements that it sends for another nor an answer"

# 1440 bytes and flowgen's header are a frame and 8 bytes: a host's line segments them, although its burst has room for
# both. Else they would be one packet before the queue and two behind it
line_rate()
{
	cat >"$TMP/line.py" <<-'END'
		from lowq_lab import *
		def plan(run):
		    if run["line"] == "100gbit":
		        net = dumbbell(1, rate="100gbit", rtt="1ms", queue=run.queue("1ms"), line="100gbit")
		        return net.plan(udp("h1", "r", every="1ms", burst=9, duration="20ms"), observe=[("sw", "r")])
		    net = dumbbell(1, rate="100mbit", rtt="1ms", queue="pfifo limit 99", line="1gbit", offloads=True)
		    net.merging("r")
		    return net.plan(long("h1", "r", size=1440, control=run.control), observe=[("sw", "r")])
		SCENARIO = Scenario(title="Line", question="Is it cut?", rows=["cubic"], variants=each(line=["1gbit", "100gbit"]), plan=plan)
	END
	bench --out "$TMP/line" "$TMP/line.py" || fail "$(tail -n 5 "$TMP/out")"
	expect "packets segmented behind the queue, of a plan" "$(jq '.queues[0].segmented' "$TMP/line/runs/line=1gbit/cubic/1/queues.json")" -eq 0
	# a frame takes .121 us: it would wait so long behind one that came with it
	expect "packets of bursts" "$(jq '.queues[0].packets_out' "$TMP/line/runs/line=100gbit/cubic/1/queues.json")" -eq 180
	expect "us that a packet of a burst waits in the queue behind a line of its rate" \
		"$(jq '.queues[0].delay_us.max' "$TMP/line/runs/line=100gbit/cubic/1/queues.json")" -lt 0.06
}
declare_test line_rate "" "a host's line segments all that is longer than a frame, and sends one frame at a time"

late_request()
{
	mkdir "$TMP/late"
	echo '{"type":"summary","late_max_ns":20000}' >"$TMP/late/flows.jsonl"
	! PYTHONPATH=$ROOT/lab:$ROOT/scripts python3 -m lowq_lab metrics "$EXAMPLE/far.py" "$TMP/late" far=400 cubic cubic fifo 1 >"$TMP/out" 2>&1 ||
		fail "status 0"
	said "far.py:1: a request was sent 20000 ns after it was due"
}
declare_test late_request "" "a run whose requests left later than due has failed"

# runs NUMBER: within a minute so many runs go on in $TMP/o
runs()
{
	local end=$((SECONDS + 60))

	while [ "$(pgrep -fc -- "lab/runner/one.* $TMP/o ")" -ne "$1" ]; do
		[ "$SECONDS" -lt "$end" ] || { fail "runs in $TMP/o: $(pgrep -fa -- "$TMP/o ")"; return; }
		sleep 0.2
	done
}

sudden_end()
{
	local signal f=$TMP/long.py

	scenario "$f" 'variants=each(a=[1, 2]), shell="while :; do sleep 1; done"'
	for signal in INT TERM KILL; do
		env --default-signal=INT setsid "$RUN" --jobs 1 --out "$TMP/o" "$f" >"$TMP/out" 2>&1 &
		runs 1
		# Ctrl-C is for all processes in the foreground
		if [ "$signal" = INT ]; then kill -s INT -- -$!; else kill -s "$signal" $!; fi
		runs 0
	done
}
declare_test sudden_end "" "no run goes on after Ctrl-C in bench/run, or after it was terminated or killed"

full_disk()
{
	local f=$TMP/short.py o=$TMP/disk/o

	mkdir "$TMP/disk"
	[ "$(id -u)" -eq 0 ] && mount -t tmpfs -o size=256k none "$TMP/disk" 2>/dev/null || skip "cannot mount a small disk"
	scenario "$f" 'shell=FLOW'
	(
		head -c 1M /dev/zero >"$TMP/disk/filled" 2>/dev/null
		! bench --out "$o" "$f" || fail "status 0"
		expect "said" "$(grep -v '^lab: ' "$TMP/out")" = "bench: cannot write to $o"
		expect "left" "$(cd "$TMP/disk" && echo *)" = filled
		# room for a run, but not for what made it
		truncate -s 224K "$TMP/disk/filled"
		! bench --out "$o" "$f" || fail "status 0 of a run"
		said "bench: cannot write to $o/runs/all/cubic/1" 'FAILED (seed 1): no result.json'
		rm -f "$o/index.html"
		head -c 1M /dev/zero >"$TMP/disk/filled" 2>/dev/null
		! "$ROOT/lab/report" --html "$o/index.html" "$o" >"$TMP/out" 2>&1 || fail "status 0 of a report"
		said "report: $o/index.html: No space left on device"
		expect "half files" "$(find "$o" -empty)" = ''
	)
	local rc=$?
	umount -l "$TMP/disk"
	return "$rc"
}
declare_test full_disk "" "bench/run on a full disk says so, and leaves no result that is not whole"

# start_slurm: one node, by daemons of ours; SLURM_CONF is for what follows
start_slurm()
{
	local daemon dir=$TMP/slurm

	mkdir -p "$dir"/{state,spool}
	cat >"$dir/slurm.conf" <<-END
		ClusterName=lowq
		SlurmctldHost=$(hostname -s)(127.0.0.1)
		SlurmctldPort=36817
		SlurmdPort=36818
		AuthType=auth/none
		CredType=cred/none
		MpiDefault=none
		ProctrackType=proctrack/linuxproc
		TaskPlugin=task/none
		SelectType=select/cons_tres
		SelectTypeParameters=CR_Core_Memory
		SlurmUser=$(id -un)
		SlurmdUser=$(id -un)
		StateSaveLocation=$dir/state
		SlurmdSpoolDir=$dir/spool
		SlurmctldPidFile=$dir/slurmctld.pid
		SlurmdPidFile=$dir/slurmd.pid
		ReturnToService=2
		NodeName=$(hostname -s) NodeAddr=127.0.0.1 CPUs=$(nproc) RealMemory=$(awk '/^MemTotal/ { print int($2 / 1100) }' /proc/meminfo)
		PartitionName=main Nodes=ALL Default=YES State=UP
	END
	export SLURM_CONF=$dir/slurm.conf
	for daemon in slurmctld slurmd; do
		"$daemon" -D >"$dir/$daemon.log" 2>&1 &
	done
	for ((i = 0; i < 300; i++)); do
		[[ $(sinfo -h -o %t 2>/dev/null) != idle ]] || return 0
		sleep 0.1
	done
	fail "no node: $(tail -n 3 "$dir"/*.log)"
}

slurm()
{
	local command dir=$TMP/there

	for_full
	[ "$(id -u)" -eq 0 ] && command -v slurmctld slurmd sbatch >/dev/null || skip "needs root, and slurm-wlm"
	start_slurm
	trap 'kill $(jobs -p) && wait' EXIT
	mkdir "$dir" && ln -s "$ROOT"/{bench,examples} "$dir/" && cd "$dir" || fail
	# the example's commands, for two runs of the sweep
	command=$(sed -n 's/^#\t//p' examples/slurm/bench.sbatch | sed "s|--seeds 5 |--seeds 2 --cc dctcp --variant one_in=1000 --exact --out out/bench/dctcp-light |")
	bash -eu -c "$command" >"$TMP/out" 2>&1 || fail "$(tail -n 5 "$TMP/out")"
	expect "archives" "$(cd out/slurm && echo *.tar)" = "1.tar 2.tar"
	expect "runs of the report" "$(jq -c .status out/bench/dctcp-light/runs/*/dctcp/?/result.json | sort | uniq -c | tr -s ' ')" = ' 2 "ok"'
	expect "runs made again" "$(find out/bench/dctcp-light -name result.json -newer out/slurm/2.tar)" = ''
	said 'seeds 1, 2;'
}
declare_test slurm "" "the commands of examples/slurm run a sweep as a job array, and report on it"

two_at_once()
{
	local held pid f=$TMP/short.py

	scenario "$f"
	mkdir "$TMP/both" && touch "$TMP/both/theirs"
	exec {held}<"$TMP/both"
	flock "$held"
	"$RUN" --fresh --out "$TMP/both" "$f" >"$TMP/out" 2>&1 {held}<&- &
	pid=$!
	until grep -q "bench: waiting for another bench/run, which writes to $TMP/both" "$TMP/out"; do
		kill -0 "$pid" 2>/dev/null || fail "it does not wait: $(<"$TMP/out")"
		sleep 0.2
	done
	[ -e "$TMP/both/theirs" ] || fail "another's results are deleted"
	exec {held}<&-
	wait "$pid" || fail "after the other one: $(tail -n 5 "$TMP/out")"
	expect "files" "$(cd "$TMP/both" && echo *)" = "index.html runs scenario.json"
}
declare_test two_at_once "" "a second bench/run into the same directory waits for the first, and deletes nothing before"

run_tests "$@"
