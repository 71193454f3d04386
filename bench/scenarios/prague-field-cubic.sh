# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034,SC2154
TITLE="Prague beside CUBIC over DualPI2, 4 to 1000 Mb/s, 5 to 100 ms"
QUESTION="Do a Prague flow and a CUBIC flow of the same base RTT get the same rate outside the paths of prague-cubic?"
TOPOLOGY='
 h1  prague  --\
                sw ==== rate ==== r
 h2  cubic   --/  (dualpi2, defaults)
                   base RTT rtt'
ROWS="prague"
VARIANTS=("rate=4mbit rtt=20ms" "rate=10mbit rtt=5ms" "rate=10mbit rtt=50ms" rate=40mbit\ rtt={5,20,100}ms
	rate=100mbit\ rtt={20,100}ms rate=400mbit\ rtt={5,20,50}ms "rate=1000mbit rtt=20ms")
PARAMS='{"queue":"dualpi2 with the defaults of the kernel","counted":"from 30 s to 150 s; from 400 Mb/s on to 90 s"}'
COLUMNS_SHOWN='["ratio","prague_mbps","cubic_mbps","prague_p99_us","cubic_p99_us","utilisation","drops"]'
GOALS='[
	{"metric":"ratio","row":"prague","op":">=","value":0.5,"variant":"*","text":"Prague : CUBIC >= 0.5"},
	{"metric":"ratio","row":"prague","op":"<=","value":2,"variant":"*","text":"Prague : CUBIC <= 2"}]'
ANSWER="Prague gets {range ratio prague} times CUBIC's rate; its packets wait {range prague_p99_us prague} at p99, CUBIC's {range cubic_p99_us prague}."
CONCLUSION=""

run_scenario()
{
	local from=30 to=150

	[ "${rate%mbit}" -lt 400 ] || to=90
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
	metric prague_p99_us "$(of 1 .delay_us.p99)"
	metric cubic_p99_us "$(of 2 .delay_us.p99)"
}
