# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034,SC2153,SC2154
TITLE="RoCEv2: twenty senders at 40 Gb/s"
QUESTION="DCQCN's paper shows a queue of 76.6 kB at the 90th percentile for 20:1 at 40 Gb/s. What is it here?"
TOPOLOGY='
 h1..h20  a queue pair each, SENDs of 64 kB  -- sw ==== 40 Gb/s ==== r
                             (RED 5 kB to 200 kB, up to 1 %)
                             lines of 40 Gb/s, base RTT 20 us'
ROWS="rxe roce_rcm"
VARIANTS=("")
PARAMS='{"MTU of RoCE":1024,"messages under way":4,"queue":"lowq-tc roce --min 5000b --max 200000b --probability 0.01 --limit 4000000b","counted":"10 to 40 ms","DCQCN":"the paper'"'"'s"}'
COLUMNS_SHOWN='["utilisation","queue_p90_bytes","delay_p99_us","marks","drops","jain"]'
REFERENCE=rxe
GOALS='[
	{"metric":"queue_p90_bytes","row":"roce_rcm","op":"<=","value":76600,"variant":"*","text":"queue p90 <= 76.6 kB (the paper)"},
	{"metric":"utilisation","row":"roce_rcm","op":">=","value":0.9,"variant":"*","text":"utilisation >= 90 %"}]'

run_scenario()
{
	local i options pids=()

	# shellcheck source=../../selftests/lib_roce.sh
	. "$SELFTESTS/lib_roce.sh"
	read -ra options < <(roce_tuned 40gbit)
	[ "$ROW" = rxe ] || modprobe roce_rcm "${options[@]}" || fail "no roce_rcm"
	roce_dumbbell 20 40gbit 20us
	"$LOWQ_TC" roce egress -n "${NSP}sw" --rate 40gbit --min 5000b --max 200000b \
		--probability 0.01 --limit 4000000b --no-rehearsal --quiet || fail "lowq-tc roce"
	roce_serve r
	watch_queue 40gbit 10ms 40ms 1ms --filter "udp dst port 4791"
	for ((i = 1; i <= 20; i++)); do
		LOG=flow$i roce "h$i" send --duration 40ms &
		pids+=($!)
	done
	wait "${pids[@]}"
	cat "$TMP"/flow*.json >"$OUT/flows.jsonl"
	watched
	# what waits, in bytes: the wait at the link's rate
	metric queue_p90_bytes "$(jq '.delay_us.p90 * 5000' "$OUT/qdelay.json")"
	metric jain "$(jq -s 'map(.rate_bps) | (add * add) / (length * (map(. * .) | add))' "$OUT/flows.jsonl")"
}
