#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The guest's part of "lab run PLAN": plan.sh TOOLS PLAN OUT [PREPARE]. Each program does the whole plan. PREPARE has
# commands for the network when it is built. AFTER_US: of six digits, how long after a whole second it begins. FLOW_SERIES:
# a file in OUT for the flows' rates.
PATH=$1:${0%/*}/../../scripts:$PATH
# tc's plugin for sch_int, where it is not installed
[ ! -e "$1/q_int.so" ] || export TC_LIB_DIR="$1"
plan=$2 out=$3

read -r now _ </proc/uptime
labnet --zero "$((${now%.*} + 1))s" --seed "$LOWQ_SEED" -- "$plan" || exit
[ ! -s "${4:-}" ] || sh -e "$4" >/dev/null || exit
# in the lab, how long that took does not matter any more
[ -z "${LOWQ_LAB:-}" ] || lab-start || exit
read -r now _ </proc/uptime
zero=$((${now%.*} + 5))${AFTER_US:-000000}us
qdelay --plan "$plan" --zero "$zero" --json "$out/queues.json" --series "$out/series.csv" \
	${FLOW_SERIES:+--flow-series "$out/$FLOW_SERIES"} 2>"$out/said" &
observer=$!
labnet --events --record "$out" --zero "$zero" -- "$plan" &
events=$!
flowgen plan "$plan" --zero "$zero" --seed "$LOWQ_SEED" --out "$out/flows.jsonl" &
flows=$!
# they wait for it; what their loading drew does not matter any more, either
sleep 3
[ -z "${LOWQ_LAB:-}" ] || lab-start --now || exit
wait $flows
flows=$?
# events after the traffic's end do not happen; 143: ended by that. What records packets takes longer
kill $events 2>/dev/null
kill -INT $observer 2>/dev/null
wait $events
case $? in
0|143) ;;
*) flows=1 ;;
esac
wait $observer || flows=1
sed '/^ready$/d' "$out/said" >&2
rm "$out/said"
exit $flows
