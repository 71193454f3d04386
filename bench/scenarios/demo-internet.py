# SPDX-License-Identifier: GPL-2.0

from lowq_lab import Scenario

SCENARIO = Scenario(
    title="Internet: two long flows and a request stream, 100 Mb/s, base RTT 20 ms",
    question="How long do packets wait, and how long do requests take, over DualPI2 and over a drop-tail queue?",
    topology=r"""
 h1  long flow   --\
 h2  long flow   ---- sw ==== 100 Mb/s ==== r
 h3  answers requests --/     (the queue)
                       base RTT 20 ms""",
    rows=["cubic", "bbr", "prague_fifo", "cubic_l4s", "bbr_l4s", "prague"],
    reference="cubic",
    params={"rate": "100mbit", "rtt": "20ms", "long flows": 2, "requests": "20 kB, Poisson, 40 per second",
            "counted": "5 s to 20 s"},
    shown=["rpc_p50_us", "rpc_p99_us", "utilisation", "delay_mean_us", "delay_p99_us", "failed", "marks", "drops",
           "jain"],
    conclusion="""DualPI2 holds CUBIC and BBR at its target, with random marks and drops; over drop-tail everyone
        waits for the buffer.

        Prague has a queue of its own there, with a step of a millisecond; over drop-tail it is as CUBIC.""",
    shell=r"""
	local pids=()

	dumbbell 3 20ms
	bottleneck 100mbit 20ms
	serve r --cc "$CONTROL"
	serve h3 --cc "$CONTROL"
	check_path h1 r 100mbit 20ms
	LONG_FLOWS=2
	watch_queue 100mbit 5s 20s 20ms
	in_ns h1 flowgen long --to 10.0.0.1 --cc "$CONTROL" --duration 20s >"$TMP/long1" &
	pids+=($!)
	in_ns h2 flowgen long --to 10.0.0.1 --cc "$CONTROL" --start 1s --duration 19s >"$TMP/long2" &
	pids+=($!)
	in_ns r flowgen rpc --to 10.0.3.1 --cc "$CONTROL" --persist --size 20k --rate 40 \
		--start 5s --duration 15s --seed "$SEED" --timeout 10s >"$TMP/rpc" &
	requests_done $!
	wait "${pids[0]}" && wait "${pids[1]}" || fail "a long flow failed"
	cat "$TMP"/long? "$TMP/rpc" >"$OUT/flows.jsonl"
	watched
	completions
""")
