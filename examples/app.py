#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""app.py [DIR]: nginx and curl, unmodified, beside a long flow over a link of 20 Mb/s; results in DIR (out/app)."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[1:1] = [str(ROOT / "lab"), str(ROOT / "scripts")]

from lowq_lab import dumbbell, events, long, program  # noqa: E402

SITE = """mkdir -p /tmp/www && head -c 100000 /dev/zero >/tmp/www/page && echo '
daemon off; user root; pid /tmp/nginx.pid; error_log stderr; events {}
http { access_log off; server { listen 80; root /tmp/www; } }' >/tmp/nginx.conf && exec nginx -e stderr -c /tmp/nginx.conf"""
GET = 'sleep 1; for i in 1 2 3 4 5; do curl -sSf -o /dev/null -w "%{time_total}\\n" http://$SERVER/page || exit; done'

net = dumbbell(2, rate="20mbit", rtt="20ms", queue="fq_codel")
plan = net.plan(long("h1", "r", stop="end", control="cubic"),
                program("h2", SITE, stop="end", label="server"),
                program("r", GET, environment={"SERVER": net.address("h2")}, label="client"),
                observe=[("sw", "r")], bin_="10ms") | {"record": ["acks", "queue"]}

out = Path(sys.argv[1] if len(sys.argv) > 1 else "out/app")
out.mkdir(parents=True, exist_ok=True)
(out / "app.json").write_text(json.dumps(plan), encoding="utf-8")
subprocess.run([ROOT / "scripts" / "lab", "run", "--out", out, out / "app.json"], check=True)
print("pages took", ", ".join((out / "client.out").read_text(encoding="utf-8").split()), "s")
windows = [event["cwnd"] for event in events(out) if event["what"] == "ack" and event["t_ns"] > 10 ** 9]
print(f"{len(windows)} ACKs after the first second: cwnd from {min(windows)} to {max(windows)} packets")
