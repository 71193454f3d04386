# SPDX-License-Identifier: GPL-2.0
"""Prints the plan of a fat-tree: fat_tree.py K [PREFIX]

K pods (even, 4 to 16), each of K/2 edge and K/2 aggregation switches, with K/2 hosts at each edge
switch and (K/2)^2 core switches above. All links have 10 Gb/s and 1 us. Paths up are by ECMP.
Host i at edge switch e of pod p is hP-E-I, 10.P.(16 E + I).1. The tiers of links are host, edge and core, from below.
"""
import json
import sys
from typing import Any


def fat_tree(k: int, prefix: str) -> dict[str, Any]:
    half = range(k // 2)
    routes: dict[str, list[dict[str, Any]]] = {}
    links = []

    def route(node: str, to: str, via: list[str]) -> None:
        routes.setdefault(node, []).append({"to": to, "via": via})

    def link(tier: str, below: str, dev_below: str, above: str, dev_above: str, net: str) -> None:
        """The lower end is .1, the upper one .254"""
        links.append({"tier": tier, "rate": "10gbit", "delay": "1us", "ends": [
            {"node": below, "dev": dev_below, "addresses": [f"{net}.1/24"]},
            {"node": above, "dev": dev_above, "addresses": [f"{net}.254/24"]}]})

    for p in range(k):
        for e in half:
            edge = f"e{p}-{e}"
            for i in half:
                net = f"10.{p}.{16 * e + i}"
                link("host", f"h{p}-{e}-{i}", "eth0", edge, f"d{i}", net)
                route(f"h{p}-{e}-{i}", "default", [f"{net}.254"])
            for a in half:
                link("edge", edge, f"u{a}", f"a{p}-{a}", f"d{e}", f"172.{16 + p}.{16 * e + a}")
                route(f"a{p}-{a}", f"10.{p}.{16 * e}.0/20", [f"172.{16 + p}.{16 * e + a}.1"])
            route(edge, "default", [f"172.{16 + p}.{16 * e + a}.254" for a in half])
        for a in half:
            for c in half:
                link("core", f"a{p}-{a}", f"u{c}", f"c{a}-{c}", f"d{p}", f"192.{p}.{16 * a + c}")
                route(f"c{a}-{c}", f"10.{p}.0.0/16", [f"192.{p}.{16 * a + c}.1"])
            route(f"a{p}-{a}", "default", [f"192.{p}.{16 * a + c}.254" for c in half])
    return {"prefix": prefix, "sysctl": {"net.ipv4.conf.all.forwarding": 1, "net.ipv4.fib_multipath_hash_policy": 1},
            "nodes": [{"name": name, "routes": of} for name, of in sorted(routes.items())], "links": links}


def main() -> int:
    pods = int(sys.argv[1])
    if pods % 2 or not 4 <= pods <= 16:
        sys.exit("fat_tree.py: the number of pods is even, 4 to 16")
    json.dump(fat_tree(pods, sys.argv[2] if len(sys.argv) > 2 else ""), sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
