# SPDX-License-Identifier: GPL-2.0

from typing import Any

from lowq_lab import dumbbell, each, goal, program, Results, Run, Scenario


def plan(run: Run) -> dict[str, Any]:
    queue, both = run.queue(run["rtt"]), run["way"] == "both"
    net = dumbbell(1, rate=run["rate"], rtt=run["rtt"], queue=queue, line="1gbit" if run.offloads else "",
                   offloads=run.offloads, back=(run["rate"], queue) if both else None)
    client, server = ("h1", "r") if run["way"] == "up" else ("r", "h1")
    option = "" if run["way"] == "down" else f"--{run['way']} "
    return net.measured(program("r", f'"$RUNNER/app" respond --cc {run.control} --duration 12s --from 4s {option}'
                                     f"{client} {server} {net.address(server)}", label="respond"),
                        count=("4s", "12s"), bin_="20ms")


def metrics(results: Results) -> dict[str, float | None]:
    (said,) = results.program("respond")
    if said["unanswered"]:
        raise ValueError(f"{said['unanswered']} probes without an answer")
    made = {"failed": 0, "rpm": said["rpm"], "own_us": said["own_ns"] / 1000, "foreign_us": said["foreign_ns"] / 1000}
    return made | {"back_mbps": said["up_bps"] / 1e6} if results.run["way"] == "both" else made


SCENARIO = Scenario(
    title="Responsiveness under working conditions, 20 to 100 Mb/s, 20 to 65 ms, up, down and both",
    question="How many round trips per minute does an application get while the link is loaded?",
    topology="""
 h1  -- sw ==== rate ==== r
          (the queue)
   base RTT rtt""",
    rows=["prague", "cubic_l4s", "bbr_l4s", "cubic_fq", "cubic"],
    reference="cubic_l4s",
    variants=[*each(rate="20mbit", rtt="30ms", way=["down", "up", "both"]),
              *each(rate="100mbit", rtt="20ms", way=["down", "up", "both"]),
              *each(rate="60mbit", rtt="65ms", way=["down", "up", "both"]),
              *each(rate="100mbit", rtt="20ms", way="down", tso=1)],
    params={"way": "down: r is the client; up: h1 is; both: r is, 4 connections send each way, and the way back has "
                   "the same rate and queue",
            "load": "4 connections of a multiplexing protocol without TLS, 16 kB unsent in the kernel",
            "counted": "from 4 s to 12 s", "source": "draft-ietf-ippm-responsiveness"},
    words={"way": {"down": "down", "up": "up", "both": "both ways"}},
    shown=["rpm", "own_us", "foreign_us", "delay_p99_us", "utilisation", "back_mbps"],
    goals=[goal("rpm", row="prague", least=1, beside=["cubic_l4s", "bbr_l4s"])],
    conclusion="""Prague's load keeps most of the responsiveness of an idle link, but uses less of slow ones.

        Over a long drop-tail queue some probes are not answered before the run ends; such a run counts as failed.""",
    metrics=metrics,
    plan=plan)
