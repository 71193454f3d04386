# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034,SC2154 # bench/run and bench/guest read and set what is here
TITLE="A near and a far host, 1 Gb/s, base RTT 100 and 400 us"
QUESTION="How much of the link does the far host get?"
TOPOLOGY='
 h1  100 us  --\
                sw ==== 1 Gb/s ==== r
 h2  400 us  --/     (the queue)'
ROWS="dctcp example"
VARIANTS=("")
PARAMS='{"rate":"1gbit","counted":"0.1 s to 0.4 s","ratio":"rate of the far flow by that of the near one"}'
COLUMNS_SHOWN='["utilisation","ratio","qlen_mean_pkts","delay_p99_us","marks","drops"]'
REFERENCE=dctcp

run_scenario()
{
	network far.json
	bottleneck 1gbit 100us --k 10
	serve r --cc "$CONTROL"
	check_path h2 r 1gbit 400us 10
	watch_queue 1gbit 100ms 400ms
	long_flows 2 410ms
	watched
	metric ratio "$(jq -n "$(of 2 .goodput_bps) / $(of 1 .goodput_bps)")"
}
