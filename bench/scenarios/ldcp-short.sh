# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034,SC2153,SC2154
TITLE="LDCP: answers of up to one BDP on an idle path, 10 Gb/s, base RTT 100 us"
QUESTION="How much longer does the first answer on a connection take than the link alone needs?"
TOPOLOGY='
 h1  answers, one after the other -- sw ==== 10 Gb/s ==== r  asks
  10 Gb/s                           (ldcp: WRED; dctcp: RED step)
                                     base RTT 100 us'
ROWS="dctcp ldcp"
VARIANTS=()
# not named as the settings: those are set when this file is read
for _s in 1000 20000 60000 125000; do
	VARIANTS+=("size=$_s" "size=$_s tso=1")
done
PARAMS='{"tso":"1: hosts send 64 kB at once, which their NIC segments at 10 Gb/s, and the receiver merges (GRO)","initial window":"ldcp: 87 packets, the BDP; dctcp: 10","ideal":"RTT + size / rate, without headers","answers":"20, each the first on its connection, begun at random within 100 us"}'
COLUMNS_SHOWN='["rpc_p50_us","rpc_p99_us","ideal_us","over_ideal"]'
REFERENCE=dctcp
PAPER='{"source":"H. Dai et al., PFC-Free Low Delay Control Protocol, draft-dai-tsvwg-pfc-free-congestion-control-01","differs":"TCP, not RoCEv2 on a NIC; the draft names no set-up","figures":[
	{"figure":"section 2.3","what":"time by that at full speed","metric":"over_ideal","variant":{"tso":""},"says":"short flows could have finished in one round: a first RTT at full speed","in_tree":"dctcp","ours":"ldcp"}]}'
GOALS='[
	{"metric":"over_ideal","row":"ldcp","op":"<=","value":1.1,"variant":"*","text":"p50 at most 1.1 x (RTT + size / rate)"}]'
ANSWER="LDCP's answers take {range over_ideal ldcp} times as long as the link needs; DCTCP's {range over_ideal dctcp}."
CONCLUSION="3 more rounds is what DCTCP needs for an answer of one BDP: it starts with 10 packets, LDCP sends one BDP at once in the first RTT.
1 kB fits in any initial window, so there is no difference. With offloads (TSO) it is the same."

run_scenario()
{
	local i

	dumbbell 1 100us
	line_rate 10gbit
	bottleneck 10gbit 100us
	ldcp_hosts 87
	serve h1 --cc "$CONTROL"
	check_path h1 r 10gbit 100us
	merging
	fixed_start
	for ((i = 1; i <= 20; i++)); do
		SEED=$((SEED * 100 + i)) incast 1 1 "$size" 100us
	done >"$OUT/flows.jsonl"
	completions
	metric ideal_us $((100 + size / 1250))
	metric over_ideal "$(jq -s --argjson size "$size" '[.[] | select(.type == "flow") | .duration_ns / 1000] | sort |
		.[length / 2 - 1] / (100 + $size / 1250)' "$OUT/flows.jsonl")"
}
