# SPDX-License-Identifier: GPL-2.0
"""Plans with a fault each, for labnet.sh

Each must be refused with status 2 and one line that names the place and the reason.
"""
import copy
import json
import os
import shutil
import subprocess
import sys
import tempfile
from typing import Any, Callable

Plan = dict[str, Any]
FOLDER = tempfile.mkdtemp()

GOOD: Plan = {
    "prefix": "t-",
    "exact": False,
    "modules": {"tcp_ldcp": {"ldcp_x": "1,2"}, "tcp_dctcp": {}},
    "machine_sysctl": {"net.core.somaxconn": 4096},
    "sysctl": {"net.ipv4.tcp_rmem": "4096 131072 6291456"},
    "nodes": [
        {"name": "h1", "sysctl": {"net.ipv4.tcp_ecn": 1},
         "routes": [{"to": "default", "via": "10.0.1.254"}, {"to": "default", "via": ["fd00:1::254"]}]},
        {"name": "sw"},
        {"name": "h2", "routes": [{"to": "10.0.1.0/24", "via": "10.0.2.254"}]},
        {"name": "old", "exists": True, "routes": [{"to": "default", "via": "192.0.2.9"}]},
    ],
    "links": [
        {"ends": [{"node": "h1", "dev": "eth0", "mac": "02:00:00:00:01:01",
                   "addresses": ["10.0.1.1/24", "fd00:1::1/64"]},
                  {"node": "sw", "dev": "p1", "addresses": ["10.0.1.254/24", "fd00:1::254/64"],
                   "rate": "2.5Gbit", "queue": "pfifo limit 100"}],
         "rate": "10gbit", "delay": "1.5us", "neighbours": True},
        {"ends": [{"node": "h2", "dev": "eth0", "addresses": ["10.0.2.1/24"], "delay": "0"},
                  {"node": "sw", "dev": "p2", "addresses": ["10.0.2.254/24"]}],
         "mtu": 9000, "txqueuelen": 1, "offloads": True},
        {"ends": [{"node": "sw", "dev": "a"}, {"node": "sw", "dev": "b"}], "rate": "1tbit", "tier": "core"},
    ],
    "traffic": [
        {"kind": "long", "from": "h1", "to": ["h2", "sw"], "duration": "10ms", "label": "bulk", "stagger": "1ms"},
        {"kind": "requests", "from": "h*", "to": "h*", "size": "20k", "closed": 3, "flows": 9, "persist": True},
        {"kind": "flows", "from": "h[12]", "to": "sw", "size": 1000, "load": {"tier": "up", "share": 0.3},
         "duration": "1s", "periodic": True, "control": "cubic", "timeout": "2s", "start": "1ms"},
        {"kind": "incast", "from": ["h1", "sw"], "to": "h2", "size": "20kB", "fan": 10, "rounds": 2, "jitter": "1us",
         "period": "1ms"},
        {"kind": "list", "flows": [{"from": "h1", "to": "h2", "size": 1, "start": "0", "control": "reno"}]},
        {"kind": "udp", "from": "h1", "to": "h2", "rate": "1mbit", "size": 160, "stop": "end", "ecn": "ect1", "on": "1ms",
         "off": "2ms", "burst": 3, "random": True, "label": "call"},
        {"kind": "program", "node": ["h1", "h2"], "command": "true", "start": "1ms", "stop": "9ms", "status": 3,
         "environment": {"A": "b=c", "N": 4}, "label": "it"},
        {"kind": "long", "from": "h1", "to": "h2", "stop": "2s", "control": {"from": "cubic", "to": "reno"}},
    ],
    "record": ["pcap", "acks", "queue", "ss"],
}
GOOD["observe"] = {"queues": [{"node": "sw", "dev": "p[12]", "from": "0", "to": "1s"},
                              {"node": "s*", "dev": "a", "from": "0", "to": "1s"}],
                   "from": "1ms", "to": "2s", "bin": "1ms", "buffer": 8}
GOOD["events"] = [
    {"at": "5ms", "node": "sw", "dev": "p1", "rate": "1gbit"}, {"at": "1ms", "node": "h1", "dev": "eth0", "delay": "0"},
    {"at": "2ms", "node": "h1", "dev": "eth0", "up": False}, {"at": "3ms", "node": "h1", "dev": "eth0", "up": True},
    {"at": "4ms", "node": "h2", "route": {"to": "10.0.1.0/24", "via": "10.0.2.254"}},
]
GOOD["must"] = [
    {"flows": {"kind": "incast"}, "of": "p99", "value": "duration_ns", "most": 1e6, "least": 0},
    {"queue": {"node": "sw", "dev": "p1"}, "value": "delay_us.p99", "most": 20},
]
GOOD["links"][0]["tier"] = GOOD["links"][1]["tier"] = "up"
GOOD["links"][1]["rate"] = "1gbit"

# (place and reason, what is wrong with the plan)
BAD: list[tuple[str, Callable[[Plan], Any]]] = [
    ("typo: unknown field; there are prefix,", lambda p: p.update(typo=1)),
    ("nodes[1].typo: unknown field; there are name,", lambda p: p["nodes"][1].update(typo=1)),
    ("nodes[0].routes[0].metric: unknown field", lambda p: p["nodes"][0]["routes"][0].update(metric=1)),
    ("links[0].colour: unknown field", lambda p: p["links"][0].update(colour="red")),
    ("links[0].ends[1].speed: unknown field", lambda p: end(p).update(speed="1gbit")),
    ("'nodes' is missing", lambda p: p.pop("nodes")),
    ("nodes: not an array", lambda p: p.update(nodes={})),
    ("nodes: 0 of them, not 1 or more", lambda p: p.update(nodes=[], links=[])),
    ("nodes[1]: not an object", lambda p: p["nodes"].__setitem__(1, "sw")),
    ("nodes[1]: 'name' is missing", lambda p: p["nodes"][1].pop("name")),
    ("nodes[1].name: not a string", lambda p: p["nodes"][1].update(name=7)),
    ("nodes[1].name: '' has not 1 to 64", lambda p: p["nodes"][1].update(name="")),
    ("nodes[1].name: 'a/b' has other characters", lambda p: p["nodes"][1].update(name="a/b")),
    ("nodes[1].name: '..' has other characters", lambda p: p["nodes"][1].update(name="..")),
    ("prefix: 'a b' has other characters", lambda p: p.update(prefix="a b")),
    ("nodes[2]: 'h1' is another node's name", lambda p: p["nodes"][2].update(name="h1")),
    ("nodes[1].exists: neither true nor false", lambda p: p["nodes"][1].update(exists="no")),
    ("nodes[3]: sysctl has no place in a node that exists",
     lambda p: p["nodes"][3].update(sysctl={"net.ipv4.tcp_ecn": 1})),
    ("modules: not an object", lambda p: p.update(modules=["tcp_ldcp"])),
    ("modules.a b: not a name of letters", lambda p: p.update(modules={"a b": {}})),
    ("modules.a.b=c: not a name of letters", lambda p: p.update(modules={"a": {"b=c": 1}})),
    ("modules.a.b: not a string", lambda p: p.update(modules={"a": {"b": True}})),
    ("sysctl.kernel.panic: not a name below net.", lambda p: p.update(sysctl={"kernel.panic": 1})),
    ("sysctl.net...x: not a name below net.", lambda p: p.update(sysctl={"net...x": 1})),
    ("sysctl.net.ipv4.tcp_ecn: not a string", lambda p: p.update(sysctl={"net.ipv4.tcp_ecn": 1.5})),
    ("sysctl: not an object", lambda p: p.update(sysctl=[])),
    ("nodes[0].routes[0].via: '10.0.1' is not an IP address", lambda p: route(p).update(via="10.0.1")),
    ("nodes[0].routes[0]: no link of 'h1' leads to 10.0.1.9", lambda p: route(p).update(via="10.0.1.9")),
    ("nodes[0].routes[0]: no link of 'h1' leads to 10.0.2.1", lambda p: route(p).update(via="10.0.2.1")),
    ("nodes[0].routes[0].via[1]: '10.0.1.254' and 'fd00::1' are not of one family",
     lambda p: route(p).update(via=["10.0.1.254", "fd00::1"])),
    ("nodes[0].routes[0]: 'fd00::/64' and '10.0.1.254' are not of one family",
     lambda p: route(p).update(to="fd00::/64")),
    ("nodes[0].routes[0].via: 0 of them, not 1 or more", lambda p: route(p).update(via=[])),
    ("nodes[0].routes[0].to: '10.0.0.0' has no prefix length", lambda p: route(p).update(to="10.0.0.0")),
    ("nodes[0].routes[0].to: '10.0.0.1/24' has bits beyond", lambda p: route(p).update(to="10.0.0.1/24")),
    ("nodes[0].routes[0].to: '224.0.0.0/4' is a multicast", lambda p: route(p).update(to="224.0.0.0/4")),
    ("links[0].ends: 1 of them, not 2", lambda p: p["links"][0]["ends"].pop()),
    ("links[0]: 'ends' is missing", lambda p: p["links"][0].pop("ends")),
    ("links[0].ends[1].node: no node 'nobody'", lambda p: end(p).update(node="nobody")),
    ("links[0].ends[1]: 'dev' is missing", lambda p: end(p).pop("dev")),
    ("links[0].ends[1].dev: 'lo' is taken", lambda p: end(p).update(dev="lo")),
    ("links[0].ends[1].dev: 'sixteen.letters.' has not 1 to 15", lambda p: end(p).update(dev="sixteen.letters.")),
    ("links[1].ends[1]: 'sw' has a device 'p1' already: links[0]",
     lambda p: p["links"][1]["ends"][1].update(dev="p1")),
    ("links[0].ends[1].mac: '02:00' is not a MAC", lambda p: end(p).update(mac="02:00")),
    ("links[0].ends[1].mac: '01:00:00:00:00:01' is not the MAC address of one",
     lambda p: end(p).update(mac="01:00:00:00:00:01")),
    ("links[0]: both ends have the same MAC", lambda p: end(p).update(mac="02:00:00:00:01:01")),
    ("links[0].ends[1].addresses[0]: '10.0.1.254' has no prefix", lambda p: end(p).update(addresses=["10.0.1.254"])),
    ("links[0].ends[1].addresses[0]: '10.0.1.254/33' has no prefix", lambda p: end(p).update(addresses=["10.0.1.254/33"])),
    ("links[0].ends[1].addresses[0]: '10.0.1/24' is not an IP", lambda p: end(p).update(addresses=["10.0.1/24"])),
    ("links[0].ends[1].addresses[0]: '224.0.0.1/24' is a multicast", lambda p: end(p).update(addresses=["224.0.0.1/24"])),
    ("links[1].ends[1].addresses[0]: '10.0.1.1' is used twice: links[0]",
     lambda p: p["links"][1]["ends"][1].update(addresses=["10.0.1.1/24"])),
    ("links[1].ends[1].addresses[0]: 'fd00:1::1' is used twice: links[0]",
     lambda p: p["links"][1]["ends"][1].update(addresses=["FD00:1:0::1/64"])),
    ("links[0].rate: not a string", lambda p: p["links"][0].update(rate=10)),
    ("links[0].rate: '0' has no unit", lambda p: p["links"][0].update(rate="0")),
    ("links[0].rate: '0gbit' is out of range", lambda p: p["links"][0].update(rate="0gbit")),
    ("links[0].rate: '999bit' is out of range (1kbit to 2tbit)", lambda p: p["links"][0].update(rate="999bit")),
    ("links[0].rate: '10tbit' is out of range (1kbit to 2tbit)", lambda p: p["links"][0].update(rate="10tbit")),
    ("links[0].ends[1].rate: '-1gbit' is not a rate", lambda p: end(p).update(rate="-1gbit")),
    ("links[0].ends[1].rate: '1 Gb/s' has an unknown unit", lambda p: end(p).update(rate="1 Gb/s")),
    ("links[0].ends[1].delay: '10' has no unit", lambda p: end(p).update(delay="10")),
    ("links[0].ends[1].delay: '101s' is out of range", lambda p: end(p).update(delay="101s")),
    ("links[0].ends[1].delay: '86400s' is out of range", lambda p: end(p).update(delay="86400s")),
    ("exact: neither true nor false", lambda p: p.update(exact="yes")),
    ("links[0].ends[1].loss: not a probability from 0 to 1", lambda p: end(p).update(loss=1.5)),
    ("links[0].loss: 'r' is missing", lambda p: p["links"][0].update(loss={"p": 0.1})),
    ("links[0].loss.p: not a probability", lambda p: p["links"][0].update(loss={"p": "10%", "r": 1})),
    ("links[0].reorder: not an object", lambda p: p["links"][0].update(reorder=0.1)),
    ("links[0].reorder.by: '101s' is out of range", lambda p: p["links"][0].update(reorder={"share": 0.1, "by": "101s"})),
    ("links[0].jitter: '1' has no unit", lambda p: p["links"][0].update(jitter="1")),
    ("links[0].corrupt: not a probability", lambda p: p["links"][0].update(corrupt=-1)),
    ("links[0].duplicate: not a probability", lambda p: p["links"][0].update(duplicate=[])),
    ("links[1].trace: ./no.trace: No such file", lambda p: p["links"][1].update(trace="no.trace")),
    ("links[0].trace: not a string", lambda p: p["links"][0].update(trace=5)),
    ("trace:2: 'two' is not a number of milliseconds", lambda p: trace(p, "1\ntwo\n")),
    ("trace:2: '' is not a number of milliseconds", lambda p: trace(p, "1\n\n3\n")),
    ("trace:1: '-1' is not a number of milliseconds", lambda p: trace(p, "-1\n")),
    ("trace:3: 4 ms is before the last line's", lambda p: trace(p, "1\n5\n4\n")),
    ("trace:1: 4000001 ms is more than 4000000", lambda p: trace(p, "4000001\n")),
    ("trace has no instant after 0", lambda p: trace(p, "0\n0\n")),
    ("trace has no instant after 0", lambda p: trace(p, "")),
    ("trace has more than 4194304 lines", lambda p: trace(p, "1\n" * 4194305)),
    ("trace has more than 64 MiB", lambda p: trace(p, "1\n", size=100_000_000)),
    ("links[1].ends[0]: a rate and a trace exclude each other", lambda p: (trace(p, "1\n"), p["links"][1].update(rate="1gbit"))),
    ("links[0].ends[1].queue: not 1 to 1000 characters", lambda p: end(p).update(queue="pfifo\nqdisc del dev lo root")),
    ("links[1].ends[1]: a queue needs a rate", lambda p: (p["links"][1].pop("rate"), p["links"][1]["ends"][1].update(queue="pfifo"))),
    ("links[0].mtu: not a whole number from 1280 to 65535", lambda p: p["links"][0].update(mtu=1000)),
    ("links[0].mtu: not a whole number", lambda p: p["links"][0].update(mtu="9000")),
    ("links[0].txqueuelen: not a whole number", lambda p: p["links"][0].update(txqueuelen=0)),
    ("links[0].offloads: neither true nor false", lambda p: p["links"][0].update(offloads=1)),
    ("links[0].tier: 'a b' has other characters", lambda p: p["links"][0].update(tier="a b")),
    ("events: not an array", lambda p: p.update(events={})),
    ("events[0]: 'at' is missing", lambda p: p["events"][0].pop("at")),
    ("events[0]: no node 'x'", lambda p: p["events"][0].update(node="x")),
    ("events[0]: 'sw' has no device 'p9'", lambda p: p["events"][0].update(dev="p9")),
    ("events[0]: 'dev' is missing", lambda p: p["events"][0].pop("dev")),
    ("events[0]: needs one of 'rate', 'delay', 'up' and 'route'", lambda p: p["events"][0].pop("rate")),
    ("events[0]: needs one of 'rate', 'delay', 'up'", lambda p: p["events"][0].update(up=True)),
    ("events[0].rate: '0gbit' is out of range", lambda p: p["events"][0].update(rate="0gbit")),
    ("events[0]: 'p2' of 'sw' has no rate that", lambda p: (p["links"][1].pop("rate"), p["traffic"].pop(2),
                                                            p["events"][0].update(dev="p2"))),
    ("events[0]: 'p2' of 'sw' has no delay that",
     lambda p: p["events"].__setitem__(0, {"at": "0", "node": "sw", "dev": "p2", "delay": "1ms"})),
    ("events[4]: no link of 'h2' leads to 10.0.2.1", lambda p: p["events"][4]["route"].update(via="10.0.2.1")),
    ("events[4]: 'dev' has no place with 'route'", lambda p: p["events"][4].update(dev="eth0")),
    ("must[0]: needs one of 'flows' and 'queue'", lambda p: p["must"][0].pop("flows")),
    ("must[0]: needs 'most' or 'least'", lambda p: [p["must"][0].pop(key) for key in ("most", "least")]),
    ("must[0].most: not a number", lambda p: p["must"][0].update(most="1ms")),
    ("must[0].of: 'p42' is not min, mean,", lambda p: p["must"][0].update(of="p42")),
    ("must[0]: 'of' is missing", lambda p: p["must"][0].pop("of")),
    ("must[0].flows: no such traffic", lambda p: p["must"][0].update(flows={"label": "x"})),
    ("must[1].queue: 'p3' of 'sw' is not observed", lambda p: p["must"][1]["queue"].update(dev="p3")),
    ("must[1]: 'of' has no place with 'queue'", lambda p: p["must"][1].update(of="max")),
    ("observe: not an object", lambda p: p.update(observe=[])),
    ("observe: 'queues' is missing", lambda p: p["observe"].pop("queues")),
    ("observe.queues: 0 of them", lambda p: p["observe"].update(queues=[])),
    ("observe.queues[0].port: unknown field", lambda p: p["observe"]["queues"][0].update(port="p1")),
    ("observe.queues[0]: no node 'x'", lambda p: p["observe"]["queues"][0].update(node="x")),
    ("observe.queues[0]: no device 'x' that is not named", lambda p: p["observe"]["queues"][0].update(dev="x")),
    ("observe.queues[1]: no device 'p1' that is not named", lambda p: p["observe"]["queues"][1].update(dev="p1")),
    ("observe.queues[0]: 'h1' forwards nothing", lambda p: p["observe"]["queues"][0].update(node="h1")),
    ("observe.queues[1]: 'sw' has another window", lambda p: p["observe"]["queues"][1].update(to="3s")),
    ("observe.queues[1]: 'sw' has another window", lambda p: p["observe"]["queues"][1].pop("from")),
    ("observe.queues[0]: 'from' is not before 'to'", lambda p: p["observe"]["queues"][0].update({"from": "1s"})),
    ("observe.queues[0].to: '5' has no unit", lambda p: p["observe"]["queues"][0].update(to="5")),
    ("observe: 'from' is not before 'to'", lambda p: p["observe"].update(to="1ms")),
    ("observe.buffer: not a whole number from 1", lambda p: p["observe"].update(buffer=0)),
    ("traffic: not an array", lambda p: p.update(traffic={})),
    ("traffic[0]: not an object", lambda p: p.update(traffic=["long"])),
    ("traffic[0]: 'kind' is missing", lambda p: p["traffic"][0].pop("kind")),
    ("traffic[0].kind: not a string", lambda p: p["traffic"][0].update(kind=1)),
    ("traffic[0].kind: 'short' is not long, requests,", lambda p: p["traffic"][0].update(kind="short")),
    ("traffic[0].fan: unknown field; there are kind, label,", lambda p: p["traffic"][0].update(fan=1)),
    ("traffic[0]: 'to' is missing", lambda p: p["traffic"][0].pop("to")),
    ("traffic[0].to: 0 of them, not 1 or more", lambda p: p["traffic"][0].update(to=[])),
    ("traffic[0].to[1]: no node 'x*'", lambda p: p["traffic"][0].update(to=["h2", "x*"])),
    ("traffic[0].from: 'old' has no address", lambda p: p["traffic"][0].update({"from": "old"})),
    ("traffic[0]: flow 0 goes from 'h1' to itself", lambda p: p["traffic"][0].update(to="h1")),
    ("traffic[0]: takes one of 'size' and 'duration'", lambda p: p["traffic"][0].update(size=1)),
    ("traffic[0]: needs one of 'size', 'duration' and 'stop'", lambda p: p["traffic"][0].pop("duration")),
    ("traffic[0]: 'timeout' does not go with 'duration'", lambda p: p["traffic"][0].update(timeout="1s")),
    ("traffic[0].flows: not a whole number from 1 to 1000000", lambda p: p["traffic"][0].update(flows=0)),
    ("traffic[0].label: longer than 64", lambda p: p["traffic"][0].update(label="x" * 65)),
    ("traffic[0].start: '1' has no unit", lambda p: p["traffic"][0].update(start="1")),
    ("traffic[1].control: 'a b' has other characters", lambda p: p["traffic"][1].update(control="a b")),
    ("traffic[1]: needs one of 'size' and 'cdf'", lambda p: p["traffic"][1].pop("size")),
    ("traffic[1].size: '20x' has an unknown unit", lambda p: p["traffic"][1].update(size="20x")),
    ("traffic[1].size: not a whole number from 1", lambda p: p["traffic"][1].update(size=0)),
    ("traffic[1].cdf: ./no.cdf: No such file", lambda p: p["traffic"][1].update(cdf="no.cdf")),
    ("traffic[1]: needs one of 'rate' and 'load' and 'closed'", lambda p: p["traffic"][1].update(rate=9)),
    ("traffic[1]: needs 'flows' or 'duration'", lambda p: p["traffic"][1].pop("flows")),
    ("traffic[1]: 'periodic' does not go with 'closed'", lambda p: p["traffic"][1].update(periodic=True)),
    ("traffic[1]: no flow has another node to go to", lambda p: p["traffic"][1].update({"from": "h1", "to": "h1"})),
    ("traffic[2]: needs one of 'rate' and 'load'", lambda p: p["traffic"][2].update(rate=9)),
    ("traffic[2].rate: not a number above 0", lambda p: p["traffic"][2].update(rate=-1)),
    ("traffic[2].load: '10tbit' is out of range", lambda p: p["traffic"][2].update(load="10tbit")),
    ("traffic[2].load.tier: no link has the tier 'down'",
     lambda p: p["traffic"][2].update(load={"tier": "down", "share": 1})),
    ("traffic[2].load: 'share' is missing", lambda p: p["traffic"][2].update(load={"tier": "up"})),
    ("traffic[2].load.share: not a number above 0", lambda p: p["traffic"][2]["load"].update(share=0)),
    ("traffic[2]: no flow uses the tier 'core'", lambda p: p["traffic"][2]["load"].update(tier="core")),
    ("links[1].ends[0]: tier 'up' has no capacity: no rate", lambda p: p["links"][1].pop("rate")),
    ("no path from 'h2' to 'h1'", lambda p: (p["nodes"][2].pop("routes"), p["traffic"][2].update(to="h*"))),
    ("traffic[3]: an incast goes to one node", lambda p: p["traffic"][3].update(to="h*")),
    ("traffic[3].rounds: not a whole number", lambda p: p["traffic"][3].update(rounds="2")),
    ("traffic[3]: 'size' is missing", lambda p: p["traffic"][3].pop("size")),
    ("traffic[4].flows[0]: a flow goes from one node to one", lambda p: p["traffic"][4]["flows"][0].update(to="h*")),
    ("traffic[4].flows[0]: from 'h1' to itself", lambda p: p["traffic"][4]["flows"][0].update(to="h1")),
    ("traffic[4].flows[0].pg: unknown field", lambda p: p["traffic"][4]["flows"][0].update(pg=3)),
    ("traffic[4].flows: 0 of them", lambda p: p["traffic"][4].update(flows=[])),
    ("traffic[5].control: unknown field", lambda p: p["traffic"][5].update(control="cubic")),
    ("traffic[5]: needs one of 'rate' and 'every'", lambda p: p["traffic"][5].update(every="1ms")),
    ("traffic[5]: needs 'duration' or 'stop'", lambda p: p["traffic"][5].pop("stop")),
    ("traffic[5]: 'on' and 'off' go together", lambda p: p["traffic"][5].pop("off")),
    ("traffic[5].ecn: 'ce' is not not-ect, ect0 or ect1", lambda p: p["traffic"][5].update(ecn="ce")),
    ("traffic[5].burst: not a whole number from 1 to 1000", lambda p: p["traffic"][5].update(burst=1001)),
    ("traffic[5]: a packet has 16 to 65507 bytes", lambda p: p["traffic"][5].update(size=15)),
    ("traffic[5].stop: it would end before it starts", lambda p: p["traffic"][5].update(stop="0")),
    ("traffic[5]: 'stop' is not after 'start'", lambda p: p["traffic"][5].update(stop="1s", start="1s")),
    ("traffic[6]: 'command' is missing", lambda p: p["traffic"][6].pop("command")),
    ("traffic[6]: the command is empty", lambda p: p["traffic"][6].update(command="")),
    ("traffic[6]: 'node' is missing", lambda p: p["traffic"][6].pop("node")),
    ("traffic[6].node: no node 'x'", lambda p: p["traffic"][6].update(node="x")),
    ("traffic[6]: the label is to name files, which '../x' cannot", lambda p: p["traffic"][6].update(label="../x")),
    ("traffic[6]: 'timeout' does not go with 'stop'", lambda p: p["traffic"][6].update(timeout="1s")),
    ("traffic[6].status: not a whole number from 0 to 255", lambda p: p["traffic"][6].update(status=256)),
    ("traffic[6].environment.A=B: not the name of a variable", lambda p: p["traffic"][6].update(environment={"A=B": 1})),
    ("traffic[6].environment.A: not a string", lambda p: p["traffic"][6].update(environment={"A": None})),
    ("traffic[7].control.from: 'a b' has other characters", lambda p: p["traffic"][7]["control"].update({"from": "a b"})),
    ("traffic[7].control.server: unknown field; there are from, to", lambda p: p["traffic"][7]["control"].update(server="x")),
    ("traffic: all of it stops at the end, and nothing has", lambda p: p.update(traffic=[p["traffic"][5]], must=[])),
    ("record: not an array", lambda p: p.update(record="acks")),
    ("record[1]: 'cwnd' is not pcap, acks, queue or ss", lambda p: p.update(record=["ss", "cwnd"])),
    ("record: pcap is of observed queues, and there is none",
     lambda p: (p.pop("observe"), p["must"].pop(), p.update(record=["pcap"]))),
    ("nodes[4]: no link reaches 'lost'", lambda p: p["nodes"].append({"name": "lost"})),
]

# texts that are no plan at all
NOT_JSON = [
    ("standard input:1:0: not JSON: ", ""),
    ("standard input:2:0: not JSON: ", "{\n"),
    ("not JSON: duplicate object key", '{"nodes": [], "nodes": []}'),
    ("standard input: not an object", "[]"),
    ("not JSON: ", '{"nodes": [{"name": "\x00"}]}'),
]


def end(plan: Plan) -> Plan:
    """The end that most faults are put into"""
    spoilt: Plan = plan["links"][0]["ends"][1]
    return spoilt


def trace(plan: Plan, text: str, size: int | None = None) -> None:
    """The second link has a trace with this text, in a file of this size"""
    path = os.path.join(FOLDER, "trace")
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
    if size:
        os.truncate(path, size)
    plan["links"][1]["trace"] = path
    plan["links"][1].pop("rate")


def route(plan: Plan) -> Plan:
    first: Plan = plan["nodes"][0]["routes"][0]
    return first


def check(text: str) -> tuple[int, str]:
    run = subprocess.run(["labnet", "--check", "-"], input=text, capture_output=True, text=True, check=False)
    return run.returncode, run.stdout + run.stderr


def main() -> int:
    faults = 0

    def fault(text: str) -> None:
        nonlocal faults
        faults += 1
        print(text)

    traced = copy.deepcopy(GOOD)
    del traced["observe"], traced["must"]
    trace(traced, "1\n")
    for part in (link for one in traced["links"] for link in (one, *one["ends"])):
        part.pop("rate", None)
        part.pop("queue", None)
    traced["traffic"], traced["events"] = traced["traffic"][:2], []
    for text in map(json.dumps, (GOOD, traced)):
        status, said = check(text)
        if status != 0 or said.count("\n") != 1:
            fault(f"a good plan: {status}: {said}")
    def refused(why: str, text: str) -> None:
        status, said = check(text)
        if status != 2 or why not in said or said.count("\n") != 1 or not said.startswith("labnet: standard input:"):
            fault(f"{why}: {status}: {said!r}")

    for why, text in NOT_JSON:
        refused(why, text)
    for why, spoil in BAD:
        plan = copy.deepcopy(GOOD)
        spoil(plan)
        refused(why, json.dumps(plan))
    shutil.rmtree(FOLDER)
    print(f"plans {len(NOT_JSON) + len(BAD)} faults {faults}")
    return min(faults, 1)


if __name__ == "__main__":
    sys.exit(main())
