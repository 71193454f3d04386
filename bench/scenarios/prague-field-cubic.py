# SPDX-License-Identifier: GPL-2.0

from lowq_lab import each, goal, Scenario

SCENARIO = Scenario(
    title="Beside CUBIC over DualPI2, at rates and RTTs that no other page has, with each default of the draft",
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
                    opts=[None, "ewma_shift:3", "rtt_limit_us:65000", "fast_rounds:0"])],
    params={"opts": "what differs from the defaults: ewma_shift:3 is a gain of 1/8, rtt_limit_us:65000 limits "
                    "rtt_virt to 65 ms; fast_rounds:0 is the draft's additive increase alone",
            "other": "instead of CUBIC a second Prague flow, with this base RTT",
            "unfair": "the larger rate by the smaller one", "counted": "from 20 s to 110 s"},
    shown=["ratio", "unfair", "prague_p99_us", "cubic_p99_us", "utilisation", "drops"],
    # of two Prague flows (other + 25 ms) / (rtt + 25 ms), the draft's own ratio, x 1.3
    goals=[goal("ratio", row="prague", least=0.6, variant={"other": None},
                text="Prague : CUBIC >= 0.6 (until 0.3: 0.5)"),
           goal("ratio", row="prague", most=1.8, variant={"other": None}, text="Prague : CUBIC <= 1.8 (until 0.3: 2)"),
           *(goal("ratio", row="prague", most=most, variant={"other": other},
                  text=f"{rtt} : {other[:-2]} ms <= 1.3 x the draft's own ratio (until 0.3: 2)")
             for rtt, other, most in ((10, "50ms", 2.8), (5, "80ms", 4.55), (20, "100ms", 3.6)))],
    answer="""Prague gets {range ratio prague opts= other=} times CUBIC's rate; with rtt_virt limited to 65 ms {range
        ratio prague opts=rtt_limit_us:65000 other=}, with a gain of 1/8 {range ratio prague opts=ewma_shift:3 other=},
        with additive increase alone {range ratio prague opts=fast_rounds:0 other=}. Of two Prague flows the one with
        the shorter RTT gets {range ratio prague opts= other=50ms}, {range ratio prague opts= other=80ms} and {range
        ratio prague opts= other=100ms} times the other's rate (10 and 50 ms, 5 and 80, 20 and 100), with the limit
        {range ratio prague opts=rtt_limit_us:65000 other=50ms}, {range ratio prague opts=rtt_limit_us:65000 other=80ms}
        and {range ratio prague opts=rtt_limit_us:65000 other=100ms}.""",
    conclusion="""{range ratio prague opts= other=} times the rate of CUBIC is what Prague gets on defaults, from 500 kb/s
        to 1 Gb/s and 5 to 100 ms; most where CUBIC takes tens of seconds to grow: {range ratio prague opts= other=
        rtt=100ms} at 100 ms, {range ratio prague opts= other= rate=400mbit rtt=50ms} at 400 Mb/s and 50 ms.

        {range ratio prague opts= other=50ms} times the rate of a flow of 50 ms is what one of 10 ms gets, and {range
        ratio prague opts= other=100ms} times that of one of 100 ms a flow of 20 ms; the draft's formula gives 2.1 and
        2.8: marks in bursts favour flows that reduce less often (prague-rtt).

        A limit of rtt_virt of 65 ms makes two Prague flows of different RTTs more equal, and gives Prague more than its
        share where the RTT is above 40 ms: the default is the draft's, without a limit.

        Additive increase alone (fast_rounds=0) shares better at 400 Mb/s and 20 ms ({range ratio prague
        opts=fast_rounds:0 other= rate=400mbit rtt=20ms} times, not {range ratio prague opts= other= rate=400mbit
        rtt=20ms}), and equally well or nearly so elsewhere, but uses freed capacity too late (prague-field-follow): fast
        increase stays on.

        1/8 as the gain shares better from 100 Mb/s on and at 100 ms (1.2 to 1.8 times CUBIC's rate, not 1.4 to 2.0), and
        not elsewhere: the gain is the draft's.

        1/100 of CUBIC's rate is what Prague got at 500 kb/s with a target of 15 ms: at 1 Mb/s and below lowq-tc sets a
        longer target for CUBIC's queue, the time of two packets.""",
    shell="""
	local second=cubic

	[ -z "${other:-}" ] || second=prague
	prague_beside "$second" 20 110 "${other:-}"
	metric unfair "$(jq -n "$(of 1 .payload_bytes) / $(of 2 .payload_bytes) | [., 1 / .] | max")"
	metric prague_p99_us "$(of 1 .delay_us.p99)"
	[ $second = prague ] || metric cubic_p99_us "$(of 2 .delay_us.p99)"
""")
