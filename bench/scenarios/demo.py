# SPDX-License-Identifier: GPL-2.0

from lowq_lab import Scenario

SCENARIO = Scenario(
    title="Data centre: two long flows and a request stream, 10 Gb/s, base RTT 100 us",
    question="How long do packets wait, and how long do requests take, under each congestion control with its queue?",
    topology=r"""
 h1  long flow   --\
 h2  long flow   ---- sw ==== 10 Gb/s ==== r
 h3  answers requests --/     (the queue)
                       base RTT 100 us""",
    rows=["cubic", "bbr", "dctcp", "dctcp_ref", "ldcp", "hpccpp"],
    reference="cubic",
    params={"rate": "10gbit", "rtt": "100us", "long flows": 2, "requests": "20 kB, Poisson, 2000 per second",
            "counted": "0.1 s to 0.4 s"},
    shown=["rpc_p50_us", "rpc_p99_us", "utilisation", "delay_mean_us", "delay_p99_us", "failed", "marks", "drops",
           "jain"],
    conclusion="""With a drop-tail queue CUBIC and BBR fill the buffer, and every packet of every flow waits in it.

        DCTCP, LDCP and HPCC++ keep the queues that they are made for nearly empty, so that requests finish several
        times sooner.

        LDCP and HPCC++ leave a small part of the link unused.""",
    shell=r"""
	dumbbell 3 100us
	bottleneck 10gbit 100us
	serve r --cc "$CONTROL"
	serve h3 --cc "$CONTROL"
	check_path h1 r 10gbit 100us
	LONG_FLOWS=2
	watch_queue 10gbit 100ms 400ms
	in_ns h1 flowgen long --to 10.0.0.1 --cc "$CONTROL" --duration 400ms >"$TMP/long1" &
	local a=$!
	in_ns h2 flowgen long --to 10.0.0.1 --cc "$CONTROL" --start 30ms --duration 370ms >"$TMP/long2" &
	local b=$!
	in_ns r flowgen rpc --to 10.0.3.1 --cc "$CONTROL" --persist --size 20k --rate 2000 \
		--start 100ms --duration 300ms --seed "$SEED" --timeout 5s >"$TMP/rpc" &
	requests_done $!
	all_done $a $b
	cat "$TMP"/long? "$TMP/rpc" >"$OUT/flows.jsonl"
	watched
	completions
""")
