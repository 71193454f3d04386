# SPDX-License-Identifier: GPL-2.0
"""Measurements of a path -> findings. Nothing here touches the machine or the network."""

from __future__ import annotations

from typing import Callable

from lowq_common.streams import printable
from lowq_common.values import Json
from lowq_common.tcpinfo import ACCECN, NO_ECN, OPT_ECN_SEEN, RFC3168, base_control, ecn_mode
from lowq_common.units import time_text

from .chance import THRESHOLD, exact, share, worse
from .facts import Facts, Fallen
from .finding import LET_OUT, NO_NAT, TAKE_IN, Finding, fine, note, skipped, wrong
from .packets import ACCURATE_ECN, PLAIN_ECN

THERE, BACK = "there", "back"
OPPOSITE = {THERE: BACK, BACK: THERE}
WAY = {THERE: "to the peer", BACK: "from the peer"}
ECN = ("Not-ECT", "ECT(1)", "ECT(0)", "CE")
CE = 3
# which ECN field the data of a control has; others: ECT(0), if ECN is negotiated
ECT = {"prague": 1}
PER_MARK = ("dctcp", "dctcp_ref", "ldcp")  # need a receiver that echoes marks one by one
MODE = {NO_ECN: "no ECN", RFC3168: "RFC 3168", ACCECN: "Accurate ECN"}
ALMOST_ALL = 0.9
CLOSE_US = 20  # a base RTT may be set wrong by this and by a quarter
SLOW_US = 2000  # a queue without marks: this, and more than the base RTT


def is_hpccpp(control: str) -> bool:
    return base_control(control)[0] == "hpccpp"


def wants_ecn(control: str) -> bool:
    return base_control(control)[0] in (*PER_MARK, *ECT)


def suspects(tests: Json) -> list[tuple[str, int]]:
    """Kind and TOS of test packets none of which has arrived as sent: lost, or changed?"""
    return [(kind, int(tos)) for kind, by_tos in tests.items() for tos, results in by_tos.items()
            if settled(int(tos), results) != int(tos)]


def lost(results: list[int | None]) -> int:
    return sum(got is None for got in results)


def plain(kind: str) -> str:
    """The kind whose Not-ECT packets are the control of this one: a SYN's flags are what is tested"""
    return "syn" if kind in (PLAIN_ECN, ACCURATE_ECN) else kind


def control_of(tests: Json, kind: str) -> tuple[int, int]:
    """Of the Not-ECT packets of this kind: how many were lost, of how many"""
    results = tests[plain(kind)]["0"]
    return lost(results), len(results)


def idle_loss(found: Json, way: str) -> tuple[int, int]:
    """Of all Not-ECT test packets of kinds that arrive at all: how many were lost, of how many"""
    all_lost = everything = 0
    for kind, by_tos in found.get("tests", {}).get(way, {}).items():
        results = by_tos.get("0", [])
        if kind in ("data", "ack", "synack") and lost(results) < len(results):
            all_lost, everything = all_lost + lost(results), everything + len(results)
    return all_lost, everything


def echo_is_clear(runs: list[Json], found: Json, way: str) -> bool:
    """Was the last run one that loss cannot explain, and as it should be?"""
    last = runs[-1]
    return bool(last["marked"] and not last["resent"] and
                (ecn_mode(found["info"][way]["info"]) != ACCECN or last["marked"] == last["arrived"]))


def lossy(sender: Json, result: Json) -> bool:
    """Did a load lose packets without a mark, where marks or telemetry should have come first?"""
    change = {name: result["after"][name] - result["before"][name] for name in ("total_retrans", "delivered_ce")}
    asks = is_hpccpp(sender["control"]) or ecn_mode(sender["info"]) != NO_ECN
    return asks and change["total_retrans"] > 0 and not change["delivered_ce"]


def odd(tests: Json) -> list[int]:
    """TOS of the test packets that do not arrive as sent although others arrive; CE always first"""
    if not any(got is not None for one in tests.values() for got in one):
        return []
    return sorted(int(tos) for tos, results in tests.items() if settled(int(tos), results) != int(tos))


def as_sent(tos: int, got: int | None) -> bool:
    """Has what is tested arrived as sent? TOS 0 to 3 test the ECN field, whatever the path does to the DSCP; the
    others test the DSCP."""
    return got is not None and (got & 3 == tos if tos < 4 else got >> 2 == tos >> 2)


def settled(tos: int, results: list[int | None]) -> int | None:
    """What becomes of a packet with this TOS: one that was lost or marked once proves nothing"""
    if any(as_sent(tos, got) for got in results):
        return tos
    return next((got for got in results if got is not None), None)


def path(found: Json, facts: Facts) -> list[Finding]:
    """All findings about a path"""
    control = base_control(found["info"][THERE]["control"])[0]
    if "unreachable" in found:
        control = found["asked"] or facts.default
    rows = [negotiated(found, control)]
    if "unreachable" not in found:
        rows += controls(found)
        rows += existing(found, facts.connections)
    rows += on_the_way(found)
    rows += header_fields(found, control)
    rows += [row for way in (THERE, BACK) for row in loss(found, way)]
    rows += echoes(found)
    rows += fits(found)
    rows += timing(found, control, facts)
    if "telemetry" in found:
        rows += telemetry(found)
    rows += unstamped(found)
    if "load" in found:
        rows += [row for way in (THERE, BACK) for row in load(found, way)]
    return [one._replace(where=found["address"]) for one in rows if one]


# --- the handshake ------------------------------------------------------------------------


def negotiated(found: Json, control: str) -> Finding:
    mode = ecn_mode(found["info"][THERE]["info"])
    peer = found["peer"]
    check, says = "handshake", f"{MODE[mode]} was negotiated"
    reached = "unreachable" not in found
    if reached and control == "hpccpp":
        return fine(check, f"{says}; hpccpp needs none")
    if reached and (mode == ACCECN or mode == RFC3168 and control != "prague"):
        return fine(check, says)
    tests = found.get("tests", {}).get(THERE, {})
    ect = ECT.get(control, 2)
    if "syn" in tests and dropped(tests, "syn", ect):
        return wrong(check, "ect-syn-dropped", f"the path drops SYNs with {ECN[ect]}, as {control}'s are",
                     "a middlebox on the path must let ECN pass")
    if not reached:
        return wrong(check, "no-connection", f"a connection with {control} is not answered, one with reno is",
                     "the lines about ECN say what the path drops" if found.get("hops") else
                     "run it as root at both ends, to see what the path drops")
    if control not in (*PER_MARK, "prague"):
        why = f"{control} does not ask for it"
        if peer["ecn"] == 0:
            why = "net.ipv4.tcp_ecn is 0 at the peer"
        return note(check, "no-ecn", f"{says}: {why}", "for ECN: here sudo sysctl net.ipv4.tcp_ecn=1, at the peer 1 or 2")
    if peer["ecn"] == 0:
        return wrong(check, "peer-ecn-off", f"{says}: net.ipv4.tcp_ecn is 0 at the peer",
                     f"at the peer: sudo lowq-tc host {control} --default")
    theirs = base_control(found["info"][BACK]["control"])[0]
    if control in PER_MARK and theirs not in (*PER_MARK, "prague"):
        return wrong(check, "peer-control", f"{says}: the peer listens with {printed(theirs)}, and Linux then refuses ECN"
                     " to a SYN that is ECT", peer_choice(control))
    if control == "prague" and not found["here"]["accecn"]:
        return wrong(check, "kernel-without-accecn", f"{says}: this kernel has no Accurate ECN", "a kernel from 7.0 on")
    if control == "prague" and not peer["accecn"]:
        return wrong(check, "peer-without-accecn",
                     f"{says}: the peer's kernel, {printed(peer['kernel'])}, has no Accurate ECN",
                     "a kernel from 7.0 on at the peer")
    if control == "prague" and peer["ecn"] not in (3, 4, 5):
        return wrong(check, "peer-without-accecn", f"{says}: net.ipv4.tcp_ecn is {peer['ecn']} at the peer",
                     "at the peer: sudo lowq-tc host prague")
    kind = ACCURATE_ECN if control == "prague" else PLAIN_ECN
    words = "AE, ECE and CWR" if control == "prague" else "ECE and CWR"
    if kind in tests and dropped(tests, kind, 0):
        return wrong(check, "ecn-syn-dropped", f"{says}: the path drops SYNs with {words}",
                     "a middlebox on the path must let SYNs that ask for ECN pass")
    changed = found.get("flags", {}).get(kind, [])
    if changed and all(changed):
        return wrong(check, "syn-flags-changed", f"{says}: the path changes {words} of a SYN",
                     "a middlebox on the path must not change TCP's flags")
    if "handshakes" in found:
        ours, plain = found["handshakes"]["ecn"], found["handshakes"]["plain"]
        chance = exact(ours["tried"] - ours["with_ecn"] + 1, ours["tried"] + 1, plain["tried"] - plain["at_once"],
                       plain["tried"])
        if chance >= THRESHOLD:
            return note(check, "handshake-loss", f"{says} on {ours['with_ecn']} of {ours['tried']} connections, but of"
                        f" {plain['tried']} of reno {plain['tried'] - plain['at_once']} also lost packets of theirs: after"
                        " a loss Linux goes on without ECN", "find the loss first")
    return wrong(check, "ecn-refused", f"{says}, although both ends would: the path may change TCP's ECN flags",
                 "look at the SYN at both ends: tcpdump 'tcp[13] & 2 != 0'")


def dropped(tests: Json, kind: str, tos: int) -> bool:
    """Are packets of this kind and TOS dropped, more than Not-ECT ones?"""
    results = tests.get(kind, {}).get(str(tos), [])
    return bool(results) and lost(results) == len(results) and worse(len(results), len(results), control_of(tests, kind))


def encrypted(found: Json) -> bool:
    """Does what this end sends not leave as TCP?"""
    return bool(found["here"]["root"] and not found["seen"][THERE].get("out"))


def both_views(found: Json) -> tuple[Json, Json]:
    """Addresses and ports as this end sees them, and as the peer does"""
    there = found["info"][BACK]["way"]
    return found["info"][THERE]["way"], [there[1], there[0], there[3], there[2]]


def on_the_way(found: Json) -> list[Finding]:
    """Do both ends see one connection? Addresses that differ are NAT; sequence numbers, a proxy."""
    here, mirrored = both_views(found)
    numbers = found.get("numbers", {})
    seen = f"this end sees {tuple_text(here)}, the peer {tuple_text(mirrored)}"
    if numbers and numbers[THERE] != [numbers[BACK][1], numbers[BACK][0]]:
        words = "" if here == mirrored else f"; {seen}"
        return [wrong("path", "tcp-proxy", f"the two ends count other sequence numbers{words}: something on the way ends"
                      " the connection and makes another one (a proxy), or rewrites it",
                      "let these connections pass it, or check the two halves of the path each by itself")]
    if here != mirrored:
        what = "addresses are translated (NAT)" if numbers else "NAT or a proxy"
        return [fine("path", f"{what}: {printed(seen)}")]
    return []


def tuple_text(way: Json) -> str:
    return f"{way[0]} port {way[2]} to {way[1]} port {way[3]}"


def loss(found: Json, way: str) -> list[Finding]:
    lost_there, sent = idle_loss(found, way)
    if not sent:
        return []
    text = f"{lost_there} of {sent} Not-ECT test packets were lost ({share(lost_there, sent)})"
    if lost_there:
        return [note(f"loss {WAY[way]}", "packet-loss", text, "loss without load: a bad cable, radio, or congestion by"
                     " others; faults named here are beyond what this loss explains")]
    return [fine(f"loss {WAY[way]}", text)]


def peer_choice(control: str) -> str:
    return (f"at the peer: sudo lowq-tc host {control} --default or --route PREFIX (a server may choose it itself:"
            f" lowq-check --listen --control {control})")


def printed(text: Json) -> str:
    """From the peer"""
    return printable(str(text))


def controls(found: Json) -> list[Finding]:
    """Is the control at both ends the one that was asked for?"""
    here, there = (base_control(found["info"][way]["control"]) for way in (THERE, BACK))
    mode = ecn_mode(found["info"][THERE]["info"])
    asked = found["asked"] or here[0]
    rows = []
    if here[0] != asked:
        rows.append(wrong("control", "other-control", f"{printed(here[0])} runs in place of {asked}",
                          "another program, such as BPF, changes it"))
    if here[1]:
        rows.append(wrong("control", "fell-back", f"{here[0]} runs as Reno on a new connection",
                          "the other lines about this path say why; so does dmesg"))
    theirs = printed(there[0])
    if here[0] in PER_MARK and there[0] not in PER_MARK and mode == RFC3168:
        rows.append(wrong(
            "control", "peer-control", f"the peer's end runs {theirs}, which echoes marks once per RTT, not one by one",
            peer_choice(here[0])))
    elif there[0] != here[0]:
        rows.append(note("control", "controls-differ", f"{here[0]} here, {theirs} at the peer"))
    return rows or [fine("control", f"{here[0]} at both ends")]


def existing(found: Json, connections: tuple[Fallen, ...]) -> list[Finding]:
    """Other connections with this peer that run as Reno although a new one does not"""
    if base_control(found["info"][THERE]["control"])[1] or ecn_mode(found["info"][THERE]["info"]) == NO_ECN:
        return []
    bad = [one for one in connections if one.peer == found["address"] and one.mode == NO_ECN]
    if not bad:
        return []
    return [wrong("connections", "control-after-handshake",
                  f"{sum(one.many for one in bad)} of {bad[0].control} run as Reno, without ECN, although this peer"
                  " agrees to ECN: their program set the control after the handshake",
                  "set it before connect(), as a route's congctl or as the default")]


# --- header fields ------------------------------------------------------------------------


def header_fields(found: Json, control: str) -> list[Finding]:
    if "tests" not in found or not found["peer"]["root"]:
        rows = [row for way in (THERE, BACK) for row in from_counters(found, way)]
        why = "without root here" if "tests" not in found else "without root at the peer"
        return rows + [skipped("header fields", f"{why} only the kernel's counters were read: not each ECN field,"
                                                " DSCP, and where they change")]
    return [row for way in (THERE, BACK) for row in tested(found, way, control)]


def expected_ect(info: Json) -> bool:
    """Does this sender send ECT packets?"""
    return ecn_mode(info["info"]) != NO_ECN and not is_hpccpp(info["control"])


def from_counters(found: Json, way: str) -> list[Finding]:
    """What the two sockets have counted"""
    check = f"ECN {WAY[way]}"
    sender, receiver = (found["info"][one] for one in ((THERE, BACK) if way == THERE else (BACK, THERE)))
    if not expected_ect(sender):
        return []
    mine, theirs = sender["info"], receiver["info"]
    if "received_e0" in theirs and ecn_mode(theirs) == ACCECN:
        arrived = any(theirs[name] for name in ("received_e0", "received_e1", "received_ce_bytes"))
    else:
        arrived = bool(theirs["options"] & OPT_ECN_SEEN)
    if not arrived:
        return [bleached(check, "data", f"ECT arrives as {ECN[0]}", "")]
    if mine["delivered"] >= 10 and mine["delivered_ce"] > ALMOST_ALL * mine["delivered"]:
        return [always_ce(check, f"{mine['delivered_ce']} of {mine['delivered']} packets were marked without load", "")]
    return [fine(check, "ECT arrives")]


def bleached(check: str, kinds: str, says: str, place: str) -> Finding:
    return wrong(check, "ecn-bleached", f"{says} on {kinds}{place}",
                 "the device there must not clear the ECN field (perhaps it rewrites the whole TOS byte)")


def always_ce(check: str, says: str, place: str) -> Finding:
    return wrong(check, "ce-always", f"{says}{place}",
                 "the device there sets CE whatever its queue: a wrong threshold, or a rewritten TOS byte")


def place_of(found: Json, way: str, tos: int) -> str:
    """Where it happens, as far as the routers tell"""
    hops = found.get("traces", {}).get(way, {}).get(str(tos))
    if not hops:
        return ""
    before = "this host" if way == THERE else "the peer"
    for distance, router, got in hops:
        if not as_sent(tos, got):
            return f", between {before} and hop {distance} ({printed(router)})"
        before = f"hop {distance} ({printed(router)})"
    return f", behind {before}"


def what_becomes(cases: list[tuple[int, int | None]]) -> str:
    """cases: the ECN field that was sent, the TOS that arrived"""
    sent: dict[str, list[str]] = {}
    for tos, got in cases:
        sent.setdefault("dropped" if got is None else ECN[got & 3], []).append(ECN[tos])
    words = []
    for end, names in sent.items():
        many = len(names) > 1
        verb = ("are" if many else "is") if end == "dropped" else ("arrive as" if many else "arrives as")
        words.append(f"{', '.join(names)} {verb} {end}")
    return "; ".join(words)


def tested(found: Json, way: str, control: str) -> list[Finding]:
    check = f"ECN {WAY[way]}"
    tests = found["tests"][way]
    rows, kept, unclear, unsure = [], [], [], []
    by_fault: dict[str, dict[tuple[int, int | None], list[str]]] = {}
    for kind, by_tos in tests.items():
        if kind not in ("syn", "synack", "data", "ack"):
            continue
        if settled(0, by_tos["0"]) is None:
            unclear.append(kind)
            continue
        bad = False
        for tos in (1, 2, 3, 0):
            got = settled(tos, by_tos[str(tos)])
            if got is None and not dropped(tests, kind, tos):
                bad = True
                unsure.append(f"{ECN[tos]} on {kind}")
            elif got != tos:
                bad = True
                fault = name_of(tos, got)
                by_fault.setdefault(fault, {}).setdefault((tos, got), []).append(kind)
        if not bad:
            kept.append(kind)
    for fault, cases in by_fault.items():
        tos, got = next(iter(cases))
        kinds = sorted({kind for some in cases.values() for kind in some})
        says = what_becomes(list(cases))
        place = place_of(found, way, tos)
        words = f"{says} on {', '.join(kinds)}{place}"
        if fault == "ecn-bleached":
            rows.append(bleached(check, ", ".join(kinds), says, place))
        elif fault == "ce-always":
            rows.append(always_ce(check, f"{says} on {', '.join(kinds)}", place))
        elif fault == "ect-dropped" and kinds == ["syn"]:
            rows.append(wrong(check, "ect-syn-dropped", words, "a middlebox there must let SYNs with ECN pass"))
        else:
            rows.append(wrong(check, fault, words, "a middlebox there must not look at the ECN field"))
    if not relevant(control, found):
        rows = [one._replace(state="note") for one in rows]
    if kept:
        rows.append(fine(check, f"arrives as sent on {', '.join(kept)}"))
    if unsure:
        rows.append(skipped(check, f"too much loss to tell whether these arrive: {', '.join(unsure)}"))
    if unclear:
        why = "IPsec hides what arrives" if encrypted(found) else "something keeps track of connections"
        rows.append(skipped(check, f"test packets of the kind {', '.join(unclear)} do not arrive, whatever their ECN"
                                   f" field: {why}"))
    return rows + dscp(found, way)


def relevant(control: str, found: Json) -> bool:
    """Does this control use ECN?"""
    return control in (*PER_MARK, *ECT) or ecn_mode(found["info"][THERE]["info"]) != NO_ECN


def name_of(tos: int, got: int | None) -> str:
    if got is None:
        return "ect-dropped"
    if got & 3 == CE:
        return "ce-always"
    return "ecn-bleached" if got & 3 == 0 else "ecn-changed"


def dscp(found: Json, way: str) -> list[Finding]:
    check = f"DSCP {WAY[way]}"
    tests = {int(tos): results for tos, results in found["tests"][way].get("data", {}).items() if int(tos) > 3}
    bad = {tos: got for tos, results in tests.items() if (got := settled(tos, results)) != tos
           and (got is not None or dropped(found["tests"][way], "data", tos))}
    if not tests or settled(0, found["tests"][way]["data"]["0"]) is None:
        return []
    if not bad:
        return [fine(check, "kept: " + ", ".join(str(tos >> 2) for tos in sorted(tests)))]
    words = "; ".join(f"{tos >> 2} " + ("is dropped" if got is None else f"arrives as {got >> 2}")
                      for tos, got in sorted(bad.items()))
    fault = "dscp-cleared" if all(got is not None and got >> 2 == 0 for got in bad.values()) else "dscp-changed"
    return [wrong(check, fault, f"{words}{place_of(found, way, min(bad))}",
                  "queues there cannot choose by DSCP: trust it at that port, or choose by port number")]


def echoes(found: Json) -> list[Finding]:
    """Are marks echoed, and counted right?"""
    rows = []
    for way, runs in found.get("marks", {}).items():
        check = f"marks {WAY[way]}"
        mode = ecn_mode(found["info"][way]["info"])
        if mode == NO_ECN:
            continue
        ce = found["tests"][way].get("data", {}).get(str(CE), [])
        arrived, marked = (sum(one[name] for one in runs) for name in ("arrived", "marked"))
        clean = [one for one in runs if not one["resent"]]
        off = [one for one in clean if one["marked"] != one["arrived"]]
        if settled(CE, ce) != CE or not arrived:
            rows.append(skipped(check, "CE does not arrive"))
        elif not marked and worse(arrived, arrived, idle_loss(found, OPPOSITE[way])):
            rows.append(wrong(check, "marks-not-echoed",
                              f"none of {arrived} packets that arrived with CE were reported",
                              "something between the ends changes TCP's ECE flag, or the receiver's control is at fault"))
        elif not marked:
            rows.append(skipped(check, f"none of {arrived} packets with CE was reported; loss can be the cause"))
        elif mode == ACCECN and len(clean) >= 2 and off == clean:
            rows.append(wrong(check, "marks-miscounted", f"{arrived} packets arrived with CE, {marked} were counted",
                              "something on the path changes Accurate ECN's fields"))
        else:
            last = runs[-1]
            rows.append(fine(check, f"{last['arrived']} packets with CE, {last['marked']} counted ({MODE[mode]})"))
    return rows


# --- sizes and times ------------------------------------------------------------------------


def fits(found: Json) -> list[Finding]:
    rows = []
    for way, result in found["fits"].items():
        check = f"MTU {WAY[way]}"
        overhead = 60 if ":" in found["address"] else 40
        if result["arrives"] == result["full"]:
            rows.append(fine(check, f"segments of {result['full']} bytes arrive"))
            continue
        most = f"{result['arrives']} do" if result["arrives"] else "no smaller ones that were tried do, either"
        size = result["arrives"] + overhead + 12
        rows.append(wrong(
            check, "mtu-black-hole", f"segments of {result['full']} bytes vanish, {most}, and no ICMP message says so",
            f"let ICMP pass; or {'here' if way == THERE else 'at the peer'}, which sends them: ip route replace ... mtu"
            f" {size}, or sysctl net.ipv4.tcp_mtu_probing=1"))
    return rows


def timing(found: Json, control: str, facts: Facts) -> list[Finding]:
    base = min(found["info"][way]["info"]["min_rtt"] for way in (THERE, BACK)
               if found["info"][way]["info"].get("min_rtt"))
    rows = [fine("base RTT", f"{time_text(base * 1000)}")]
    for one in facts.controls:
        if one.name != control:
            continue
        given = one.parameters.get("base_rtt_ns", 0) / 1000 or one.parameters.get("base_rtt_us", 0)
        if given and abs(given - base) > CLOSE_US + base / 4:
            name = "base_rtt_ns" if "base_rtt_ns" in one.parameters else "base_rtt_us"
            value = base * 1000 if name == "base_rtt_ns" else base
            rows = [wrong("base RTT", "wrong-base-rtt",
                          f"{one.module}'s {name} says {time_text(int(given * 1000))}, it is {time_text(base * 1000)}",
                          f"echo {value} | sudo tee /sys/module/{one.module}/parameters/{name} (0: measured)")]
    clamp = found["route"]["cwnd"]
    if clamp:
        rows.append(wrong("cwnd", "cwnd-clamped", f"the route limits the congestion window to {clamp} packets",
                          f"ip route replace ... without cwnd (ip route get {found['address']})"))
    return rows


# --- HPCC++ -----------------------------------------------------------------------------------

OTHERS_US = 1000  # a thousand flows of hpccpp keep a queue of less than a third of this


def telemetry(found: Json) -> list[Finding]:
    check = "telemetry"
    seen, peer = found["telemetry"]["seen"], found["telemetry"]["peer"]
    sent = found["telemetry"]["here"].get("hpccpp", {})
    answers = peer.get("int_reflector", {}).get("Answered", 0)
    arrived = sum(seen["peer"].get("in", {}).get("telemetry", {}).values())
    came = sent.get("Accepted", 0)
    if not found["peer"]["reflector"]:
        return [wrong(check, "no-reflector", "probes are not answered: int_reflector is not loaded at the peer",
                      "at the peer: sudo lowq-tc host hpccpp")]
    if sent.get("Translated"):
        return [wrong(check, "probes-translated", "this host's NAT translates the connection, and would not translate its"
                      " probes: it sends none and uses Reno (Translated in /proc/net/hpccpp)", NO_NAT)]
    if sent.get("Refused"):
        return [wrong(check, "probes-refused", "a RST answered a probe, and the connection sends no more: NAT (a published"
                      " port) or a firewall on the way has it at an address that does not know it (Refused in"
                      " /proc/net/hpccpp)", f"{NO_NAT}; or {TAKE_IN}")]
    if not sent.get("Probes") and sent.get("Unsent"):
        return [wrong(check, "probes-unsent", f"{sent['Unsent']} probes did not leave this host: its firewall or queue"
                      " drops them (state untracked)", f"here: {LET_OUT}")]
    if not sent.get("Probes"):
        return [wrong(check, "no-probes", "this host sends no probes", "dmesg; /proc/net/hpccpp")]
    unsent = peer.get("int_reflector", {}).get("Unsent", 0)
    if not answers and unsent:
        return [wrong(check, "answers-unsent", f"{unsent} answers did not leave the peer: its firewall or queue drops them"
                      " (state untracked)", f"at the peer: {LET_OUT}")]
    here, mirrored = both_views(found)
    if not answers and here != mirrored:
        return [wrong(check, "probes-translated", f"{sent['Probes']} probes were sent, none was answered: NAT on the way"
                      f" does not translate them; {tuple_text(here)} is {tuple_text(mirrored)} at the peer", NO_NAT)]
    if not answers:
        where = "" if not seen["peer"] or arrived else " on the way there"
        return [wrong(check, "probes-filtered", f"{sent['Probes']} probes were sent, none was answered: they are"
                      f" filtered{where}, or have another DSCP there",
                      "let TCP segments with PSH alone pass (conntrack calls them invalid), and keep their DSCP")]
    if not came:
        return [wrong(check, "probes-filtered", f"{answers} probes were answered, no answer was accepted: they are"
                      " filtered on the way back", "let TCP segments with PSH alone pass, and keep their DSCP")]
    if encrypted(found):
        return [wrong(check, "probes-encrypted", f"{came} of {sent['Probes']} probes came back, but none leaves this host as"
                      " TCP: IPsec encrypts them, and no node on the way can stamp them",
                      "for what IPsec protects choose a control that needs marks only; ESP copies the ECN field")]
    message = seen["here"].get("messages", {}).get("2") or seen["peer"].get("messages", {}).get("1")
    if not message:
        return [fine(check, f"{came} of {sent['Probes']} probes came back")]
    probe = seen["peer"].get("messages", {}).get("1")
    count = max(0, found["info"][THERE]["ttl"] - probe["ttl"]) if probe else 0
    rates = ", ".join(f"{speed} Mb/s" if speed else "no rate" for speed, _ in message["hops"])
    text = f"{came} of {sent['Probes']} probes came back; {message['nhop']} nodes stamped: {rates or 'none'}"
    if message["nhop"] > len(message["hops"]):
        return [wrong(check, "probe-room", f"{text}; probes have room for {len(message['hops'])} records, and the connection"
                      " runs as Reno", f"here: echo {message['nhop']} > /sys/module/tcp_hpccpp/parameters/probe_room")]
    if message["nhop"] < count:
        return [wrong(check, "hop-unstamped", f"{text}; but {count} routers forwarded them",
                      "on each router, for the port that leads on: sudo lowq-tc hpccpp DEVICE")]
    if not message["nhop"]:
        return [wrong(check, "nothing-stamps", text, "on each port that may be a bottleneck: sudo lowq-tc hpccpp DEVICE")]
    longest = max(waiting * 8 // speed if speed else 0 for speed, waiting in message["hops"])
    if longest > OTHERS_US:
        return [wrong(check, "beside-others", f"{text}; a packet waits {time_text(longest * 1000)} at one of them: others fill"
                      " its queue, and hpccpp gives way", "a queue of its own there, or hpccpp for all of the port's senders")]
    return [fine(check, text)]


def unstamped(found: Json) -> list[Finding]:
    """Connections that fell back during this check, as a bottleneck does not stamp"""
    rows = []
    for end, whose in (("here", "here"), ("peer", "at the peer")):
        count = found.get("counted", {}).get(end, {}).get("hpccpp", {}).get("Unstamped", 0)
        old = found.get("telemetry", {}).get("start", {}).get(end, {}).get("hpccpp", {}).get("Unstamped", 0)
        if count > old:
            rows.append(wrong("telemetry", "bottleneck-unstamped",
                              f"under load {whose} hpccpp fell back to Reno, cause \"unstamped\" (/proc/net/hpccpp): packets"
                              " are lost or marked where no node stamps", "on the port, or at the policer, that limits the"
                              " rate: sudo lowq-tc hpccpp DEVICE --rate RATE --shape"))
    return rows


# --- RoCE -------------------------------------------------------------------------------------


def roce(found: Json) -> list[Finding]:
    """Findings about congestion management of RoCEv2"""
    check = "RoCE"
    counted, result = found.get("counted", {}), found.get("marked", {})
    if not found["here"]["root"]:
        row = skipped(check, "needs root here: marked packets are made by hand")
    elif "error" in found:
        row = wrong(check, "peer-without-rdma", f"the peer has no RDMA device at this address: {found['error']}",
                    "at the peer: sudo rdma link add rxe0 type rxe netdev DEVICE")
    elif result["cnps"]:
        row = fine(check, f"{result['cnps']} CNPs came back for {result['sent']} marked packets")
    elif not found["peer"]["roce_rcm"]:
        row = wrong(check, "peer-without-rcm", "no CNP came back: roce_rcm is not loaded at the peer",
                    "at the peer: sudo lowq-tc host roce")
    elif counted.get("cnp_sent"):
        row = wrong(check, "cnps-lost", f"the peer sent {counted['cnp_sent']} CNPs, none came back",
                    "let UDP port 4791 pass on the way back; a queue of its own for CNPs: sudo lowq-tc roce DEVICE")
    elif counted and not counted.get("ce_received"):
        row = wrong(check, "roce-filtered", f"{result['sent']} marked packets were sent, none arrived with CE",
                    "let UDP port 4791 pass, and keep its ECN field")
    else:
        reasons = ", ".join(f"{name} {value}" for name, value in counted.items() if value)
        row = wrong(check, "no-cnp", f"no CNP came back for {result['sent']} marked packets ({printed(reasons)})",
                    "at the peer: dmesg, /sys/kernel/debug/roce_rcm/counters")
    return [row._replace(where=found["address"])]


# --- under load -----------------------------------------------------------------------------


PACKET_BITS = 1500 * 8
LONG_US, LONG_PACKETS = 5000, 30  # a queue beyond these and two base RTTs is too long for a control of short queues
LEAST_BUFFER = 65536  # bytes: what kernels give the largest buffer of TCP at least
EMPTY_PACKETS = 3  # the longest queue that is none


def load(found: Json, way: str) -> list[Finding]:
    check = f"load {WAY[way]}"
    result = found["load"][way]
    before, after = result["before"], result["after"]
    control = base_control(found["info"][way]["control"])[0]
    change = {name: after[name] - before[name] for name in (
        "delivered_ce", "delivered", "total_retrans", "bytes_acked", "busy_time", "rwnd_limited", "sndbuf_limited",
        "data_segs_out")}
    base = after["min_rtt"]
    delay = max(0, result["rtt_max"] - base)
    mean = max(0, int(result["rtt_mean"]) - base)
    rate = change["bytes_acked"] * 8 / result["seconds"] / 1e6
    packet_us = PACKET_BITS / max(rate, 0.01)
    text = (f"{rate:.1f} Mb/s, queue delay {time_text(mean * 1000)} (at most {time_text(delay * 1000)}),"
            f" {change['delivered_ce']} of {change['delivered']} packets marked, {change['total_retrans']} resent")
    where = f"at the bottleneck: sudo lowq-tc {profile(control)} DEVICE"
    asks = ecn_mode(found["info"][way]["info"]) != NO_ECN
    silent = control != "hpccpp" and asks and not change["delivered_ce"]
    limited = {name: change[name] / change["busy_time"] if change["busy_time"] else 0
               for name in ("rwnd_limited", "sndbuf_limited")}
    limited["sndbuf_limited"] = max(limited["sndbuf_limited"], result.get("starved", 0))
    # a long queue makes the receive window limit, too, so the queue is the cause
    if silent and not change["total_retrans"] and mean > max(SLOW_US, base):
        return [wrong(check, "queue-unmarked", f"{text}: a queue grows and does not mark", where)]
    sender, receiver = (found["here"], found["peer"]) if way == THERE else (found["peer"], found["here"])
    if limited["rwnd_limited"] > 0.3:
        return [limit(receiver, "rmem")(check, "receive-window", f"{text}: the receive window limits it for {limited['rwnd_limited']:.0%} of"
                      " the time", f"where the data {'arrives, at the peer' if way == THERE else 'arrives, here'}: a larger"
                      " net.ipv4.tcp_rmem, or a program that reads faster")]
    if limited["sndbuf_limited"] > 0.3:
        return [limit(sender, "wmem")(check, "send-buffer", f"{text}: the send buffer limits it for {limited['sndbuf_limited']:.0%} of the"
                      " time", f"where the data is sent, {'here' if way == THERE else 'at the peer'}: a larger"
                      " net.ipv4.tcp_wmem, or a program that sets no small SO_SNDBUF")]
    if "idle" in result:
        return lost_under_load(check, text, where, result["idle"], change, delay > EMPTY_PACKETS * packet_us + CLOSE_US)
    if asks and control in (*PER_MARK, *ECT) and change["delivered_ce"] and \
            mean > max(LONG_US, 2 * base, LONG_PACKETS * packet_us):
        return [wrong(check, "threshold-too-large", f"{text}: it marks, but only when {time_text(mean * 1000)} of queue wait"
                      f" (base RTT {time_text(base * 1000)}), or others fill that queue", where)]
    if asks and change["delivered_ce"] > max(10, change["delivered"] / 100) and mean < packet_us:
        return [wrong(check, "marks-without-queue", f"{text}: marks, but no queue: something marks by rate, as a policer"
                      " that sets CE", "mark by the queue instead: " + where)]
    rows = ack_filter(found, way, result)
    return rows or [fine(check, f"{text}; no queue grew" if silent else text)]


def limit(end: Json, what: str) -> Callable[..., Finding]:
    """A buffer as large as kernels make it limits only where the path has no bottleneck: nothing is wrong"""
    return wrong if end.get(what, LEAST_BUFFER) < LEAST_BUFFER else note


def lost_under_load(check: str, text: str, where: str, idle: Json, change: Json, queue: bool) -> list[Finding]:
    """Packets were lost, none was marked. What was lost of small packets without load is the path's loss."""
    idle_text = f"{idle['lost']} of {idle['sent']} without load"
    if not worse(change["total_retrans"], max(change["data_segs_out"], change["total_retrans"]),
                 (min(idle["lost"], idle["sent"]), idle["sent"])):
        return [note(check, "packet-loss", f"{text}; {idle_text}: the loss is not due to the load",
                     "loss limits the rate; find its cause (a bad cable, radio, others' congestion)")]
    if queue:
        return [wrong(check, "queue-drops", f"{text}; {idle_text}: the bottleneck drops and does not mark", where)]
    return [wrong(check, "loss-without-queue", f"{text}; {idle_text}: packets are lost although no queue grew, as at a"
                  " policer", "shape to the policer's rate before it, with a queue that marks (hpccpp: or stamps): sudo"
                  f" {where.partition('sudo ')[2]} --rate RATE --shape")]


def ack_filter(found: Json, way: str, result: Json) -> list[Finding]:
    """ACKs that the receiver sent and the sender never got, beyond the path's loss"""
    first, last = result["receiver"]
    sent = last["segs_out"] - first["segs_out"]
    gone = sent - (result["after"]["segs_in"] - result["before"]["segs_in"])
    control = idle_loss(found, OPPOSITE[way])
    if sent < 100 or gone < sent / 10 or not control[1] or not worse(gone, sent, control):
        return []
    return [note(f"load {WAY[way]}", "ack-filter", f"{gone} of {sent} ACKs did not come back: something on the way of the"
                 " ACKs drops them (an ACK filter, as cake's), or that way is congested", "without effect on Reno and CUBIC;"
                 " such a filter drops no ACK with Accurate ECN, so prague's own can fill a narrow uplink: leave it off")]


def profile(control: str) -> str:
    """Of lowq-tc: the queue that suits it; for Reno, CUBIC and others it is the classic queue of DualPI2"""
    if control in ("dctcp", "dctcp_ref"):
        return "dctcp"
    return control if control in ("ldcp", "hpccpp") else "prague"
