# SPDX-License-Identifier: GPL-2.0
"""Soft-RoCE: each host has a device of its name, and rocegen(1) is what sends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .networks import Network
from .scenario import Results, Run
from .traffic import program

START_MS = 20  # when clients start: servers listen then
DEVICES = Path("/sys/class/infiniband")
# Where the paper's parameters do not fit the rate: at 1 Gb/s DCQCN's periods are six packets long. LDCP counts every
# marked packet; its RTT is the network's with the queue at K_max
SLOW_DCQCN = {"dcqcn_ai_mbps": 5, "dcqcn_hai_mbps": 10, "dcqcn_timer_us": 500, "dcqcn_alpha_us": 500,
              "cnp_interval_us": 400, "dcqcn_shift_g": 4, "rate_min_mbps": 1}
LDCP = {"algorithm": 1, "cnp_interval_us": 0, "reduce_gap_us": 0}


def load_rcm(run: Run, net: Network, gbps: int, **more: int) -> None:
    """The module of the row, if it has one, for lines of this rate"""
    if run.row == "rxe":
        return
    values: dict[str, int] = {"line_rate_mbps": gbps * 1000}
    if run.row == "roce_ldcp":
        values |= LDCP | {"ldcp_alpha": 256 if gbps == 1 else 768, "ldcp_rtt_us": 400 if gbps == 1 else 100}
    elif gbps == 1:
        values |= SLOW_DCQCN
    net.prepare("", "modprobe roce_rcm " + " ".join(f"{name}={value}" for name, value in (values | more).items()))


def rdma_hosts(net: Network, gbps: int) -> None:
    """Each host's device, and its line, which never drops: a drop would end a connection"""
    net.sysctl("net.ipv4.conf.all.rp_filter", 0)
    for host in net.hosts:
        (switch,) = net.peers[host]
        net.queue(host, switch, "pfifo limit 100000", rate=f"{gbps}gbit")
        net.prepare(host, f"rdma link add {host} type rxe netdev {switch}")


def victim(gbps: int, queues: dict[tuple[str, str], tuple[str, str]], **options: Any) -> Network:
    """h1 (f) and h2 (x) share the link from sw to sw2, behind which are h3 (g) and h4 (y). queues: rate and words of the
    queue of each switch towards a neighbour"""
    net = Network(**options)
    net.switch("sw", "sw2")
    net.host("h1", "h2", "h3", "h4")
    for host, switch in (("h1", "sw"), ("h2", "sw"), ("h3", "sw2"), ("h4", "sw2")):
        net.link(host, switch)
    net.link("sw", "sw2")
    for (switch, to), (rate, words) in queues.items():
        net.queue(switch, to, words, rate=rate)
    rdma_hosts(net, gbps)
    return net


def rocegen(host: str, words: str) -> str:
    """A command with the index of the host's IPv4 address among its device's"""
    gids = DEVICES / host / "ports/1/gids"
    return f"gid=$(grep -l ^0000:0000:0000:0000:0000:ffff: {gids}/[0-7] 2>/dev/null | head -n 1); " \
           f"exec rocegen {words} --dev {host} --gid ${{gid##*/}}"


def serve(*hosts: str) -> list[dict[str, Any]]:
    return [program(host, rocegen(host, "serve"), label=f"serve-{host}", stop="end") for host in hosts]


def client(net: Network, host: str, to: str, words: str, *, label: str) -> dict[str, Any]:
    """Queue pairs from host, such as send, uc-write or read with rocegen's options"""
    return program(host, rocegen(host, f"{words} --to {net.address(to)} --port 5301"), label=label,
                   start=f"{START_MS}ms")


def count(begin_ms: int, end_ms: int) -> tuple[str, str]:
    """For Network.plan(): after the start of clients"""
    return f"{START_MS + begin_ms}ms", f"{START_MS + end_ms}ms"


def results_of(results: Results, flows: int) -> list[dict[str, Any]]:
    """What the clients flow1, flow2, ... say, of each queue pair"""
    return [line for i in range(1, flows + 1) for line in results.program(f"flow{i}")]


def bytes_sent(text: str) -> int:
    """By a device, as "ip -s -j link show" says"""
    return int(json.loads(text)[0]["stats64"]["tx"]["bytes"])


def went_back() -> int:
    """How often senders have gone back to a lost packet"""
    return sum(int(file.read_text(encoding="ascii")) for file in DEVICES.glob("*/ports/1/hw_counters/completer_retry_err"))
