# SPDX-License-Identifier: GPL-2.0
"""The transfers of app-objects in every cell of a grid of rates and RTTs."""

from dataclasses import replace
from pathlib import Path

from lowq_lab import each, load

RATES = ["6mbit", "20mbit", "60mbit", "100mbit", "250mbit"]

SCENARIO = replace(
    load(Path(__file__).with_name("app-objects.py")),
    title="Transfers of 3 kB to 3 MB on new connections: a grid of 6 to 250 Mb/s x 10 to 65 ms, idle and loaded",
    question="""In which cells of the grid does a transfer on a new connection take longer with Prague than with CUBIC
        over the same queue?""",
    variants=[one | {"load": load} for load in (0, 2) for one in (
        *each(rate=RATES, rtt=["10ms", "30ms", "65ms"]), *each(rate=RATES, rtt="30ms", tso=1))],
    params={"load": "long flows of the same control beside",
            "transfers": "one after another, 12 of each size, on an idle link 3", "tso": "with segmentation offloads"},
    shown=["k12_p50_us", "k100_p50_us", "k300_p50_us", "k1000_p50_us", "k3000_p50_us", "delay_p99_us"],
    conclusion="""On an idle link pacing makes a transfer a little longer: its last packets do not leave in a burst.

        Beside long flows, small transfers end sooner with Prague, since no queue of CUBIC's is before them.""")
