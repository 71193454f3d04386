# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034,SC2154
TITLE="Beside CUBIC over DualPI2, at rates and RTTs that no other page has, with each default of the draft"
QUESTION="Are the defaults that differ from the draft's better in general, or only where they were chosen?"
TOPOLOGY='
 h1  prague --\
               sw ==== rate ==== r
 h2  cubic  --/  (dualpi2, lowq-tc'"'"'s defaults)
                  base RTT rtt'
ROWS="prague"
VARIANTS=()
for _cell in "rate=500kbit rtt=20ms" "rate=1mbit rtt=20ms" "rate=4mbit rtt=20ms" "rate=10mbit rtt=5ms" "rate=10mbit rtt=50ms" "rate=40mbit rtt=5ms" "rate=40mbit rtt=20ms" \
	"rate=40mbit rtt=100ms" "rate=100mbit rtt=20ms" "rate=100mbit rtt=100ms" "rate=400mbit rtt=20ms"; do
	for _set in "" ewma_shift:3 rtt_limit_us:0 fast_rounds:0; do
		VARIANTS+=("$_cell${_set:+ opts=$_set}")
	done
done
PARAMS='{"opts":"what differs from the defaults: ewma_shift:3 is a gain of 1/8; the draft'"'"'s defaults: rtt_limit_us:0 is rtt_virt without a limit, fast_rounds:0 additive increase alone","unfair":"the larger rate by the smaller one","counted":"from 20 s to 110 s"}'
COLUMNS_SHOWN='["ratio","unfair","prague_p99_us","cubic_p99_us","utilisation","drops"]'
GOALS='[
	{"metric":"ratio","row":"prague","op":">=","value":0.5,"variant":"*","text":"Prague : CUBIC >= 0.5"},
	{"metric":"ratio","row":"prague","op":"<=","value":2,"variant":"*","text":"Prague : CUBIC <= 2"}]'
ANSWER="Prague gets {range ratio prague opts=} times CUBIC's rate; the larger rate is {range unfair prague opts=} times the smaller one, and {range unfair prague opts=ewma_shift:3} times with a gain of 1/8."
CONCLUSION=""

run_scenario()
{
	local from=20 to=110

	BUFFER=33554432
	dumbbell 2 "$rtt"
	bottleneck "$rate" "$rtt"
	serve r --cc prague
	check_path h1 r "$rate" "$rtt"
	watch_queue "$rate" "${from}s" "${to}s" 10ms
	two_flows prague cubic "$to"
	watched
	metric prague_mbps "$(of 1 ".payload_bytes * 8 / 1e6 / ($to - $from)")"
	metric cubic_mbps "$(of 2 ".payload_bytes * 8 / 1e6 / ($to - $from)")"
	metric ratio "$(jq -n "$(of 1 .payload_bytes) / $(of 2 .payload_bytes)")"
	metric unfair "$(jq -n "$(of 1 .payload_bytes) / $(of 2 .payload_bytes) | [., 1 / .] | max")"
	metric prague_p99_us "$(of 1 .delay_us.p99)"
	metric cubic_p99_us "$(of 2 .delay_us.p99)"
}
