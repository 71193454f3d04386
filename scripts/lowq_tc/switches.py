# SPDX-License-Identifier: GPL-2.0
"""--print: the thresholds of a profile in the words of switches that are not Linux.

Sources of what they take:
  sonic    github.com/sonic-net/SONiC/wiki/ECN-WRED-configuration-utility (ecnconfig),
           docs.nvidia.com/networking-ethernet-software/sonic-202012/System-Configuration/QoS-and-Buffers
           (WRED_PROFILE, QUEUE, DSCP_TO_TC_MAP, PORT_QOS_MAP of CONFIG_DB): bytes, percent
  cumulus  docs.nvidia.com/networking-ethernet-software/cumulus-linux-56/Layer-1-and-Switch-Ports/Quality-of-Service
           (nv set qos congestion-control, nv set qos mapping): bytes, percent
  mlnx     Onyx: docs.ansible.com/ansible/4/collections/mellanox/onyx/onyx_traffic_class_module.html
           (interface ethernet ... traffic-class ... congestion-control): "KBs", no probability
"""

from __future__ import annotations

import json

from lowq_common.errors import Refused
from lowq_common.units import decimal
from lowq_common.values import INGRESS_PREF

from .config import IFB
from .options import FRAME, PRINT, Options
from .plan import wanted
from .profiles import PROFILES
from .profiles.base import Device, Tc
from .report import Report

ROCE, CNP = 26, 48  # DSCPs of RoCEv2, if --dscp does not say another, and of its CNPs: as NVIDIA's switches have them


class Marking:
    """What a switch is told: thresholds in bytes, the DSCP, and what happens to Not-ECT"""

    def __init__(self, port: str, low: int, high: int, probability: str, drops: bool, dscp: int | None):
        self.port = port
        self.low = low
        self.high = high
        self.probability = probability
        self.drops = drops  # Not-ECT packets are dropped where ECT ones are marked
        self.dscp = dscp
        # where these switches put a DSCP by themselves; without one, all traffic is in class 0
        self.traffic_class = 0 if dscp is None else dscp >> 3

    def percent(self, system: str) -> str:
        """Above max all are marked anyway: of a step the probability does not matter"""
        if self.low == self.high:
            return "100"
        billionths = round(float(self.probability) * 10**9)
        if billionths % 10**7:
            raise Refused(f"--print {system}: a probability of {self.probability} is not in whole percent there")
        return decimal(billionths // 10**7, 0)


def sonic(marking: Marking) -> list[str]:
    percent = marking.percent("sonic")
    profile: dict[str, str] = {"ecn": "ecn_all"}
    for colour in ("green", "yellow", "red"):  # all packets are green unless a policer colours them
        profile |= {
            f"wred_{colour}_enable": "true", f"{colour}_min_threshold": str(marking.low),
            f"{colour}_max_threshold": str(marking.high), f"{colour}_drop_probability": percent,
        }
    made: dict[str, dict[str, dict[str, str]]] = {
        "WRED_PROFILE": {"LOWQ": profile},
        "QUEUE": {f"{marking.port}|{marking.traffic_class}": {"wred_profile": "LOWQ"}},
    }
    if marking.dscp is not None:
        # network control, and CNPs, keep their classes
        made["DSCP_TO_TC_MAP"] = {
            "LOWQ": {str(at): str(at >> 3 if at == marking.dscp or at >= CNP else 0) for at in range(64)}
        }
        made["TC_TO_QUEUE_MAP"] = {"LOWQ": {str(at): str(at) for at in range(8)}}
        made["PORT_QOS_MAP"] = {marking.port: {"dscp_to_tc_map": "LOWQ", "tc_to_queue_map": "LOWQ"}}
    return json.dumps(made, indent=2).splitlines()


def cumulus(marking: Marking) -> list[str]:
    to = f"nv set qos congestion-control lowq traffic-class {marking.traffic_class}"
    made = [
        f"{to} min-threshold {marking.low}", f"{to} max-threshold {marking.high}",
        f"{to} probability {marking.percent('cumulus')}", f"{to} ecn enable",
        f"{to} red {'enable' if marking.drops else 'disable'}",
        f"nv set interface {marking.port} qos congestion-control profile lowq",
    ]
    if marking.dscp is not None:
        mapping = "nv set qos mapping default-global"
        others = [at for at in range(marking.traffic_class * 8, marking.traffic_class * 8 + 8) if at != marking.dscp]
        made += [
            f"{mapping} trust l3", f"{mapping} dscp {marking.dscp} switch-priority {marking.traffic_class}",
            f"{mapping} dscp {','.join(map(str, others))} switch-priority 0",
        ]
    return [*made, "nv config apply"]


def mlnx(marking: Marking) -> list[str]:
    if marking.percent("mlnx") != "100":
        raise Refused("--print mlnx: marks with a probability that grows to 1 only: --probability 1")
    # at least as much, whether a KB is 1000 or 1024 bytes
    low, high = ((size + 999) // 1000 for size in (marking.low, marking.high))
    to = f"interface ethernet {marking.port}"
    control = "both" if marking.drops else "ecn"
    made = [f"{to} qos trust L3"] if marking.dscp is not None else []
    return made + [
        f"{to} traffic-class {marking.traffic_class} congestion-control {control}"
        f" minimum-absolute {low} maximum-absolute {high}"
    ]


SYSTEMS = {"sonic": sonic, "cumulus": cumulus, "mlnx": mlnx}
NOT_THERE = ("limit", "share", "sched", "rest-limit", "burst")  # options


def printed(name: str, port: str, options: Options) -> tuple[list[str], Report]:
    """-> the lines, and how they came about. Nothing of this machine is read."""
    system: str = options.values["print"]
    if system == "commands":
        return commands(name, port, options)
    if name in ("prague", "fifo"):
        raise Refused(f"--print {system}: it has no words for {name}")
    profile = PROFILES[name]
    options.only(f"--print {system}", "rate", "dscp", *PRINT, *(set(profile.options) - set(NOT_THERE)))
    refuse(name, system, options)
    report = Report()
    mtu: int = options.get("mtu", 1500)
    device = Device(port, mtu, mtu + 14, 1, False, "", 0, 65536, 65535, "switch", True)
    wanted(profile, device, options, Tc("", {}, "", lambda: False), report)
    params = report.params
    low, high = params.get("min_bytes", params.get("k_bytes")), params.get("max_bytes", params.get("k_bytes"))
    drops = name != "roce" and not options.has("nodrop")
    dscp = options.get("dscp", {"roce": ROCE, "segregate": 10}.get(name))
    if dscp is not None and not 8 <= dscp < CNP:
        raise Refused(f"--dscp {dscp}: 8 to {CNP - 1}: those below are in the queue of all others there")
    marking = Marking(port, low, high, str(params.get("probability", 1)), drops, dscp)
    report.unmet = []
    report.explanation = [line for line in report.explanation if not line.startswith(("limit ", "the rest"))]
    report.notes = [
        "the buffer, and shares of the link, are not set by this",
        "a switch may look at an average of its queue; its manual says how to weigh it",
    ]
    if name == "roce":
        report.note(f"RoCEv2 is known by its DSCP, {marking.dscp}, and CNPs by {CNP}: hosts have to set them")
        if system == "sonic":
            report.not_honoured("letting Not-ECT RoCEv2 packets pass: they are dropped where ECT ones are marked")
    elif marking.dscp is not None:
        report.note(f"hosts have to set DSCP {marking.dscp}")
    if system == "sonic":
        report.note("CONFIG_DB: 'sonic-cfggen -j FILE --write-to-db' loads it; 'ecnconfig -l' shows the thresholds")
    if system == "mlnx":
        report.note("thresholds are in KB, rounded up")
        if marking.dscp is not None:
            first = marking.traffic_class * 8
            report.note(f"DSCPs {first} to {first + 7} share traffic class {marking.traffic_class}")
    return SYSTEMS[system](marking), report


def commands(name: str, port: str, options: Options) -> tuple[list[str], Report]:
    """For a router with sh, ip and tc, and without Python: what lowq-tc would run there"""
    options.only("--print commands", *FRAME, *PRINT, *PROFILES[name].options)
    if options.has("exact") or options.has("gso-segs"):
        raise Refused("--print commands: not with --exact and --gso-segs, for which tc has no word everywhere")
    report, mtu, dev = Report(), options.get("mtu", 1500), port
    made, away = ["set -e"], []
    if options.has("ingress"):
        dev = IFB + port
        made += [f"[ -e /sys/class/net/{dev} ] || ip link add name {dev} type ifb", f"ip link set dev {dev} up",
                 f"tc qdisc show dev {port} | grep -q clsact || tc qdisc add dev {port} clsact",
                 f"tc filter del dev {port} ingress pref {INGRESS_PREF} 2>/dev/null || :",
                 f"tc filter add dev {port} ingress protocol all pref {INGRESS_PREF} matchall"
                 f" action mirred egress redirect dev {dev}"]
        away = [f"tc filter del dev {port} ingress pref {INGRESS_PREF}", f"ip link del dev {dev}"]
    device = Device(dev, mtu, mtu + 14, 1, True, "router", 0, 65536, 65535, "none", True)
    tc = Tc("", {probe: True for probe in PROFILES[name].probes(options)}, "", lambda: False)
    want = wanted(PROFILES[name], device, options, tc, report)
    if want.egress:
        raise Refused(f"--print commands: {name} needs filters at clsact; --simple needs none")
    made += [f"tc qdisc del dev {dev} root 2>/dev/null || :", *(command.text(None) for command in want.tree)]
    away = away or [f"tc qdisc del dev {dev} root"]
    return [f"# {name} on {port}, for sh; to take it away: {'; '.join(away)}", *made], report


def refuse(name: str, system: str, options: Options) -> None:
    """What these switches have no words for"""
    if options.has("exact"):
        raise Refused(f"--print {system}: no word for a mark by the instantaneous queue, as --exact is")
    if options.get("aqm", "red") != "red":
        raise Refused(f"--print {system}: no marks by the time that packets waited, as {options.get('aqm')} makes")
    if name == "ldcp" and not options.has("simple"):
        raise Refused(f"--print {system}: one profile for ECT and Not-ECT packets of a queue; --simple is that")
    if name == "red" and (options.has("no-ecn") or options.has("harddrop")):
        raise Refused(f"--print {system}: for marks; not with --no-ecn or --harddrop")
    if options.has("nodrop") and system == "sonic":
        raise Refused("--print sonic: WRED there drops Not-ECT packets where it marks ECT ones; not with --nodrop")
