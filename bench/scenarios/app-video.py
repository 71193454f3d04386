# SPDX-License-Identifier: GPL-2.0

from typing import Any

from lowq_lab import at_share, dumbbell, each, goal, long, program, Results, Run, Scenario


def plan(run: Run) -> dict[str, Any]:
    net = dumbbell(3, rate=run["rate"], rtt=run["rtt"], queue=run.queue(run["rtt"]), line="1gbit" if run.offloads else "",
                   offloads=run.offloads)
    rates = f"--rates {run['bits']} " if run.get("bits") else ""
    return net.measured(long("h1", "r", duration="28s", start=f"{run.seed * 104729 % 300}ms",
                             control=run.get("beside", run.control)),
                        program("r", f'"$RUNNER/app" video --cc {run.control} {rates}r h3 {net.address("h3")}',
                                start="8s", label="video"), count=("8s", "28s"), bin_="20ms")


def metrics(results: Results) -> dict[str, float | None]:
    *segments, summary = results.program("video")
    times = [segment["since_due_ns"] / 1e3 for segment in segments]
    return {"rpc_count": len(times)} | {f"rpc_p{q}_us": at_share(times, q / 100) for q in (50, 90, 99)} | {
        "late_segments": summary["late"], "video_mbps": summary["rate_bps"] / 1e6}


SCENARIO = Scenario(
    title="Video in segments of 333 ms beside a long CUBIC flow, 20 to 60 Mb/s, 14 to 65 ms",
    question="How many segments of a video come late beside another flow, and how long do they take?",
    topology=r"""
 h1  a long flow        --\
                           sw ==== rate ==== r  player
 h3  server of segments --/    (the queue)
                          base RTT rtt""",
    rows=["prague", "cubic_l4s", "bbr_l4s", "cubic_fq", "cubic"],
    reference="cubic_l4s",
    variants=[*each(rate="30mbit", rtt="28ms", beside=[None, "cubic"]),
              *each(rate="30mbit", rtt="28ms", bits="2400000,4800000,9600000"),
              *each(rate="20mbit", rtt="65ms", beside="cubic", bits="2400000,4800000,9600000"),
              *each(rate="60mbit", rtt="14ms", beside="cubic"),
              *each(rate="30mbit", rtt="28ms", beside="cubic", tso=1)],
    params={"bits": "rates of the video, bit/s; one: 9600000, 400 kB a segment",
            "beside": "control of the long flow; otherwise that of the video",
            "segments": "60, one every 333 ms, from the eighth second on"},
    words={"beside": {"cubic": "beside CUBIC"}, "bits": {"2400000,4800000,9600000": "three rates"}},
    shown=["late_segments", "rpc_p50_us", "rpc_p99_us", "video_mbps", "delay_p99_us", "utilisation"],
    goals=[goal("late_segments", row="prague", most=1, beside=["cubic_l4s", "bbr_l4s"])],
    conclusion="""Over drop-tail beside CUBIC all segments are late, whatever the rate.

        With Prague beside a CUBIC flow over DualPI2 none is, as over fq_codel.""",
    metrics=metrics,
    plan=plan)
