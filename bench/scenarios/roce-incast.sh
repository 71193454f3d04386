# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034,SC2153,SC2154
TITLE="RoCEv2: four senders, one receiver"
QUESTION="Soft-RoCE has no congestion control. Does roce_rcm keep an incast of SENDs, and of READs, from dropping, and the link in use?"
TOPOLOGY='
 h1..h4  a queue pair each, 64 kB messages  -- sw ==== RATE ==== r
                                    (RED for UDP 4791, CNPs first)
                                    lines of RATE, base RTT 20 us'
ROWS="rxe roce_rcm"
VARIANTS=("op=send rate=1gbit" "op=read rate=1gbit" "op=send rate=10gbit" "op=read rate=10gbit")
PARAMS='{"MTU of RoCE":1024,"messages under way":4,"queue":"lowq-tc roce --limit 400000b","counted":"from 2 ms on; 1 Gb/s: 400 ms, 10 Gb/s: 60 ms","DCQCN":"defaults at 10 Gb/s; at 1 Gb/s T = K = 500 us, one CNP per 400 us, R_AI 5 and R_HAI 10 Mb/s, g = 1/16"}'
COLUMNS_SHOWN='["utilisation","goodput_mbps","qlen_p99_over_kmax","delay_p99_us","marks","drops","jain","go_back_n"]'
REFERENCE=rxe
GOALS='[
	{"metric":"drops","row":"roce_rcm","op":"<=","value":0,"variant":"*","text":"no drop after 2 ms"},
	{"metric":"utilisation","row":"roce_rcm","op":">=","value":0.9,"variant":"*","text":"utilisation >= 90 %"},
	{"metric":"jain","row":"roce_rcm","op":">=","value":0.95,"variant":"*","text":"Jain >= 0.95"},
	{"metric":"qlen_p99_over_kmax","row":"roce_rcm","op":"<=","value":1.2,"variant":"*","text":"queue p99 <= K_max + 20 %"}]'

run_scenario()
{
	local i h ms=60 kmax options pids=()

	# shellcheck source=../../selftests/lib_roce.sh
	. "$SELFTESTS/lib_roce.sh"
	[ "$rate" = 10gbit ] || ms=400
	read -ra options < <(roce_tuned "$rate")
	[ "$ROW" = rxe ] || modprobe roce_rcm "${options[@]}" || fail "no roce_rcm"
	roce_dumbbell 4 "$rate" 20us
	kmax=$("$LOWQ_TC" roce egress -n "${NSP}sw" --rate "$rate" --limit 400000b --dry-run --json |
		jq .params.max_bytes)
	"$LOWQ_TC" roce egress -n "${NSP}sw" --rate "$rate" --limit 400000b --no-rehearsal --quiet ||
		fail "lowq-tc roce"
	for h in r h1 h2 h3 h4; do
		roce_serve "$h"
	done
	watch_queue "$rate" 2ms "${ms}ms" 1ms --filter "udp dst port 4791"
	for i in 1 2 3 4; do
		if [ "$op" = read ]; then
			TO_HOST=h$i LOG=flow$i roce r read --duration "${ms}ms" &
		else
			LOG=flow$i roce "h$i" send --duration "${ms}ms" &
		fi
		pids+=($!)
	done
	wait "${pids[@]}"
	cat "$TMP"/flow?.json >"$OUT/flows.jsonl"
	watched
	metric qlen_p99_over_kmax "$(jq --argjson k "$kmax" '.qlen_bytes.p99 / $k' "$OUT/qdelay.json")"
	metric goodput_mbps "$(jq -s 'map(.rate_bps) | add / 1e6' "$OUT/flows.jsonl")"
	metric jain "$(jq -s 'map(.rate_bps) | (add * add) / (length * (map(. * .) | add))' "$OUT/flows.jsonl")"
	metric go_back_n "$(cat /sys/class/infiniband/"$NSP"*/ports/1/hw_counters/completer_retry_err |
		awk '{ n += $1 } END { print n }')"
}
