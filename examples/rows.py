#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""rows.py [SCENARIO]: a scenario and a plan, run from Python. In a notebook, pandas.DataFrame(rows) is the table."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "lab"))

import lowq_lab  # noqa: E402

for row in lowq_lab.run(sys.argv[1] if len(sys.argv) > 1 else "dctcp-long", rows=["cubic", "dctcp"], seeds=2):
    print(f"{row['row']}, seed {row['seed']}: {row['utilisation']:.3f} of the rate, {row['delay_p99_us']:.0f} us of queue")

net = lowq_lab.dumbbell(2, rate="1gbit", rtt="100us", queue="lowq-tc dctcp --rtt 100us")
plan = net.plan(lowq_lab.long("h*", "r", size="2M", control="dctcp"))
for flow in lowq_lab.run(plan):
    print(f"{flow['client']}: {flow['size']} bytes, {flow['status']}")
