# SPDX-License-Identifier: GPL-2.0

from typing import Any

from lowq_lab import dumbbell, each, goal, Results, Run, Scenario


def plan(run: Run) -> dict[str, Any]:
    net = dumbbell(2, rate=run["rate"], rtt=[run["rtt"], run.get("other", run["rtt"])], queue=run.queue(run["rtt"]),
                   buffer=33554432)
    second = "prague" if run.get("other") else "cubic"
    return net.measured(*run.two("prague", second, duration="110s", receiver="prague"), count=("20s", "110s"),
                        bin_="10ms")


def metrics(results: Results) -> dict[str, float | None]:
    ratio = results.ratio(["h1"], ["h2"])
    made = {"ratio": ratio, "unfair": max(ratio, 1 / ratio) if ratio else None,
            "prague_p99_us": results.mean(["h1"], "delay_us.p99")}
    return made if results.run.get("other") else made | {"cubic_p99_us": results.mean(["h2"], "delay_us.p99")}


SCENARIO = Scenario(
    title="Beside CUBIC over DualPI2, at rates and RTTs that no other scenario has, with each default of the draft",
    question="Are the defaults that differ from the draft's better in general, or only where they were chosen?",
    topology=r"""
 h1  prague --\
               sw ==== rate ==== r
 h2  cubic  --/  (dualpi2, lowq-tc's defaults)
                  base RTT rtt (h2: other, a second prague)""",
    rows=["prague"],
    variants=[*each(rate="400mbit", rtt=["5ms", "50ms"]), *each(rate="1000mbit", rtt="20ms"),
              *each([*each(rate=["500kbit", "1mbit", "4mbit"], rtt="20ms"), *each(rate="10mbit", rtt=["5ms", "50ms"]),
                     *each(rate="40mbit", rtt=["5ms", "20ms", "100ms"]), *each(rate="100mbit", rtt=["20ms", "100ms"]),
                     *each(rate="400mbit", rtt="20ms"), *each(rate="40mbit", rtt="10ms", other="50ms"),
                     *each(rate="40mbit", rtt="5ms", other="80ms"), *each(rate="40mbit", rtt="20ms", other="100ms")],
                    opts=[None, "strict:1"])],
    params={"opts": "strict:1 is the letter of the draft",
            "other": "instead of CUBIC a second Prague flow, with this base RTT",
            "unfair": "the larger rate by the smaller one", "counted": "from 20 s to 110 s"},
    shown=["ratio", "unfair", "prague_p99_us", "cubic_p99_us", "utilisation", "drops"],
    # of two Prague flows (other + 25 ms) / (rtt + 25 ms), the draft's own ratio, x 1.3
    goals=[goal("ratio", row="prague", least=0.6, most=1.8, variant={"other": None, "opts": None},
                text="Prague to CUBIC, defaults"),
           goal("ratio", row="prague", least=0.6, most=1.8, variant={"other": None},
                text="the same, by the letter of the draft, too"),
           goal("ratio", row="prague", most=4.6, variant={"opts": None, "other": "80ms"},
                text="5 to 80 ms: at most 1.3 x the draft's own ratio")],
    conclusion="""Prague gets most where CUBIC takes tens of seconds to grow.

        Additive increase alone shares a little better, but uses freed capacity too late.""",
    metrics=metrics,
    plan=plan)
