# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034,SC2154
TITLE="Prague beside CUBIC where there is no L4S: drop-tail queues of 0.5 to 8 BDP"
QUESTION="Does Prague get about what a second CUBIC flow would get, and does its slow start lose about as much?"
TOPOLOGY='
 h1  first   --\
                sw ==== rate ==== r
 h2  second  --/  (drop-tail, bdp times rate times rtt)
                   base RTT rtt'
ROWS="prague_fifo cubic"
VARIANTS=(bdp={0.5,1,4,8}\ rate=100mbit\ rtt=30ms\ second=cubic bdp={1,4}\ rate=40mbit\ rtt=20ms\ second=cubic
	bdp={1,4}\ rate=100mbit\ rtt=50ms\ second=cubic "bdp=1 rate=10mbit rtt=100ms second=cubic"
	"bdp=1 rate=400mbit rtt=20ms second=cubic" bdp={1,4}\ rate=100mbit\ rtt=30ms\ second=reno)
PARAMS='{"counted":"from 20 s to 120 s; start_drops: in the first 2 s"}'
COLUMNS_SHOWN='["ratio","first_mbps","second_mbps","utilisation","delay_p99_us","start_drops","drops"]'
REFERENCE=cubic
GOALS='[
	{"metric":"ratio","row":"prague_fifo","op":">=","value":0.5,"variant":"*","text":"Prague : the other >= 0.5"},
	{"metric":"ratio","row":"prague_fifo","op":"<=","value":2,"variant":"*","text":"Prague : the other <= 2"}]'
ANSWER="Prague gets {range ratio prague_fifo} times the other flow's rate, a CUBIC flow in its place {range ratio cubic}."
CONCLUSION=""

run_scenario()
{
	local packets

	packets=$(awk -v b="$bdp" -v r="${rate%mbit}" -v t="${rtt%ms}" 'BEGIN { printf "%d", b * r * t * 1000 / 8 / 1514 + 0.5 }')
	BUFFER=33554432
	dumbbell 2 "$rtt"
	QUEUE="fifo --limit ${packets}p"
	bottleneck "$rate" "$rtt"
	serve r --cc "$CONTROL"
	check_path h1 r "$rate" "$rtt"
	watch_queue "$rate" 20s 120s 10ms
	two_flows "$CONTROL" "$second" 120 &
	sleep 2
	metric start_drops "$(in_ns sw tc -s -j qdisc show dev egress | jq '[.[].drops] | add')"
	wait $! || fail "a traffic generator failed"
	watched
	metric first_mbps "$(of 1 '.payload_bytes * 8 / 1e6 / 100')"
	metric second_mbps "$(of 2 '.payload_bytes * 8 / 1e6 / 100')"
	metric ratio "$(jq -n "$(of 1 .payload_bytes) / $(of 2 .payload_bytes)")"
}
