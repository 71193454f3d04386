# SPDX-License-Identifier: GPL-2.0
"""Facts of the host -> findings. Nothing here looks at the machine."""

from __future__ import annotations

from lowq_common.devices import handle_of
from lowq_common.tcpinfo import NO_TELEMETRY, WITHOUT_ECN
from lowq_common.units import rate_text
from lowq_common.values import LOWQ_ROOT, Json

from . import queues
from .facts import Control, Device, Facts, Fallen, is_marking, is_shaping, is_stamping
from .finding import LET_OUT, NO_NAT, NOTE, TAKE_IN, WRONG, Finding, fine, note, wrong

INSTALL = "install lowq's modules for this kernel: sudo make install, or the package lowq-dkms"
ENROL = "enrol DKMS's key once: sudo mokutil --import /var/lib/dkms/mok.pub, then reboot"
SLACK_NS = 1000  # what sch_fq's timer may be late without a cost to hpccpp
SHORT_STEP_US, VARYING_STEP = 6000, "10ms"  # for links whose rate varies: too short, and what lowq-tc sets
LOWQ = ("dctcp_ref", "ldcp", "prague", "hpccpp", "roce")


def judged(facts: Facts, asked: list[str]) -> list[str]:
    """Whose faults count: those that were asked for, else those in use. If no control is in use,
    it is enough that one is ready."""
    used = asked or [one.name for one in facts.controls if one.used]
    if used or any(not hindrances(facts, one, "") for one in facts.controls):
        return used
    return [one.name for one in facts.controls]


SENDER, RECEIVER, ROUTER = ROLES = ("sender", "receiver", "router")


def role_of(facts: Facts, asked: list[str], devices: list[str]) -> str:
    """What is set says it: a router forwards, its queues are asked about, and it uses no control itself. Hosts of
    containers forward, too."""
    used = [one for one in facts.controls if one.used and (one.name in asked or not asked)]
    set_up = [one for one in facts.devices if any(each.get("root") and handle_of(each) == LOWQ_ROOT for each in one.qdiscs)]
    about_queues = devices or (set_up and not asked)
    return ROUTER if facts.forwarding and about_queues and not used and "roce" not in asked else SENDER


def local(facts: Facts, asked: list[str], devices: list[str], role: str = "") -> list[Finding]:
    """All findings about this host"""
    found = [kernel(facts)]
    counted = judged(facts, asked)
    if not role:
        role = role_of(facts, asked, devices)
    if role == ROUTER:
        found.append(fine("role", "a router: its queues count, not what a sender or receiver needs (--role sender)"))
        found += [one for device in facts.devices if not devices or device.name in devices
                  for one in device_rows(facts, device, device.name in devices, asked)]
        return found + fallen_back(facts.connections) + telemetry(facts)
    missing = [] if asked else [one.name for one in facts.controls if one.name in LOWQ and not one.exists]
    if len(missing) == len(LOWQ):
        row = wrong("controls", "module-missing", f"none of lowq's modules is installed for Linux {facts.kernel}: no"
                                                  f" {', '.join(missing)}", INSTALL)
        found.append(row if counted and set(counted) <= {*missing, "dctcp"} else row._replace(state=NOTE))
    for control in facts.controls:
        if len(missing) == len(LOWQ) and control.name in missing:
            continue
        rows = control_rows(facts, control, role)
        if control.name not in counted:  # the verdict alone, and it does not count
            rows = [one._replace(state=NOTE) if one.state == WRONG else one for one in rows[:1]]
        found += rows
    found += [one for device in facts.devices if not devices or device.name in devices
              for one in device_rows(facts, device, device.name in devices, counted)]
    return found + fallen_back(facts.connections) + telemetry(facts)


def kernel(facts: Facts) -> Finding:
    offers = f"with Accurate ECN (tcp_ecn_option {facts.ecn_option})" if facts.accecn else "without Accurate ECN"
    return fine("kernel", f"Linux {facts.kernel}, {offers}; tcp_ecn {facts.ecn}; default control {facts.default},"
                          f" every user may choose {facts.allowed.replace(' ', ', ')}")


# --- controls -------------------------------------------------------------------------


# what a receiver does not need of its own: another module, or the stack, answers
NOT_OF_RECEIVERS = {"prague": ("module-missing", "module-unsigned", "module-not-loaded", "not-allowed"),
                    "hpccpp": ("module-missing", "module-unsigned", "module-not-loaded", "not-allowed")}


def control_rows(facts: Facts, control: Control, role: str = SENDER) -> list[Finding]:
    """What is to be said about a control, the verdict first"""
    check = f"control {control.name}"
    rows = hindrances(facts, control, check)
    if role == RECEIVER and control.name in NOT_OF_RECEIVERS:
        if any(one.fault in NOT_OF_RECEIVERS[control.name] for one in rows):
            rows = requirements(facts, control, check)
        rows = [one for one in rows if one.fault not in NOT_OF_RECEIVERS[control.name]]
        return rows or [fine(check, "ready to receive")]
    if control.available or (control.loaded and not control.tcp):
        rows += notes(facts, control, check)
    faults = [one for one in rows if one.state == WRONG]
    ways = ["it is the default"] if control.default else []
    ways += [f"routes to {', '.join(control.routes)}"] if control.routes else []
    ways += list(facts.rdma) if not control.tcp else []
    told = f"; set by lowq-tc: {', '.join(control.set)}" if control.set else ""
    if faults:
        first = faults[0]
        verdict = first._replace(says=f"not ready: {first.says}")
        return [verdict] + [one for one in rows if one is not first]
    if rows:
        first = rows[0]
        return [first._replace(says=f"ready, but {first.says}{told}")] + rows[1:]
    return [fine(check, "ready" + (f"; {', '.join(ways)}" if ways else "") + told)]


def hindrances(facts: Facts, control: Control, check: str) -> list[Finding]:
    """Because of these it does not work"""
    host = f"sudo lowq-tc host {control.name}"
    if not control.exists:
        mend = INSTALL
        if control.name not in LOWQ:
            mend = f"a kernel that has the control '{control.name}'"
        return [wrong(check, "module-missing", f"there is no module {control.module} for Linux {facts.kernel}", mend)]
    if not control.loaded and not control.available:
        if facts.sig_enforced and not control.signer:
            return [wrong(check, "module-unsigned",
                          f"this kernel loads signed modules only, and {control.module} is not signed",
                          f"DKMS signs what it builds: sudo make dkms-install, or the package lowq-dkms; {ENROL}")]
        rejected = f"; if its key is rejected: {ENROL}" if facts.sig_enforced else ""
        return [wrong(check, "module-not-loaded", f"module {control.module} is not loaded",
                      f"sudo modprobe {control.module}{rejected}")]
    if not control.tcp:
        if not facts.rdma:
            return [wrong(check, "no-rdma-device", "there is no soft-RoCE device",
                          "sudo rdma link add rxe0 type rxe netdev DEVICE")]
        return []
    rows = requirements(facts, control, check)
    if not control.allowed and not control.used and not facts.root:
        rows.append(wrong(check, "not-allowed", "it is restricted, and this user may not choose it", host + " --allow"))
    if control.without_effect:
        rows.append(wrong(check, "route-without-effect", f"no lookup leads to its routes to"
                          f" {', '.join(control.without_effect)}", f"{host} --route PREFIX, which follows the rules, or"
                          " ip rule"))
    return rows


def requirements(facts: Facts, control: Control, check: str) -> list[Finding]:
    """What both ends need"""
    host = f"sudo lowq-tc host {control.name}"
    rows = []
    feedback = control.parameters.get("dctcp_feedback")
    if control.name == "prague" and not facts.accecn and not feedback:
        rows.append(wrong(check, "kernel-without-accecn",
                          f"Linux {facts.kernel} has no Accurate ECN: every connection is Reno",
                          "a kernel from 7.0 on; in private networks also tcp_prague's dctcp_feedback=1"))
    elif control.ecn and facts.ecn == 0:
        rows.append(wrong(check, "tcp-ecn-off", "net.ipv4.tcp_ecn is 0: as a server this host refuses ECN", host))
    elif control.name == "prague" and facts.accecn and facts.ecn not in control.ecn:
        rows.append(wrong(check, "tcp-ecn-not-accurate",
                          f"net.ipv4.tcp_ecn is {facts.ecn}: as a server this host refuses Accurate ECN", host))
    if control.name == "prague" and facts.accecn and not facts.ecn_option:
        rows.append(wrong(check, "accecn-option-off",
                          "net.ipv4.tcp_ecn_option is 0: marks are counted modulo 8 only", host))
    rows += [wrong(check, "service-missing", f"module {one} is not loaded", host) for one in control.idle]
    return rows


def notes(facts: Facts, control: Control, check: str) -> list[Finding]:
    """With these it works, perhaps not as expected"""
    rows = []
    host = f"sudo lowq-tc host {control.name}"
    if control.tcp and not control.used and not control.allowed and facts.root:
        rows.append(note(check, "only-root", "it is restricted: only root can choose it, per socket",
                         f"{host} --allow, --default or --route PREFIX"))
    elif control.tcp and not control.used:
        rows.append(note(check, "not-chosen", "only programs that choose it themselves use it",
                         f"{host} --default or --route PREFIX"))
    if control.changed:
        by = "unless it is meant" if facts.root else "unless lowq-tc has set them (its records are for root to read)"
        rows.append(note(check, "parameters-changed", "its parameters differ: " + ", ".join(control.changed),
                         f"{by}: " + "; ".join(control.back)))
    if control.gone:
        rows.append(note(check, "parameters-gone", f"{control.module} has no parameter " + ", ".join(control.gone),
                         f"delete it there; man {control.module} names what replaces it"))
    return rows


# --- connections ----------------------------------------------------------------------


def fallen_back(connections: tuple[Fallen, ...]) -> list[Finding]:
    """Connections that asked for a control and run Reno"""
    rows = []
    for base, peer, reason, mode, count in connections:
        many = f"{count} connection{'s' if count > 1 else ''} with {peer}"
        if reason == NO_TELEMETRY:
            rows.append(wrong("connections", "no-telemetry", f"{many}: hpccpp runs as Reno, without telemetry",
                              f"lowq-check {peer} --control hpccpp shows which part is missing"))
        elif reason == WITHOUT_ECN:
            rows.append(wrong(
                "connections", "control-after-handshake",
                f"{many}: {base} runs as Reno, without ECN. Its program set the control after the handshake,"
                " or the peer refused ECN", f"set it before connect(), as a route or as the default; lowq-check {peer}"
                f" --control {base} tells whether the peer refuses"))
        else:
            rows.append(wrong("connections", "fell-back", f"{many}: {base} runs as Reno, with {mode} negotiated",
                              f"lowq-check {peer} --control {base}"))
    return rows


# --- HPCC++ -----------------------------------------------------------------------------


def telemetry(facts: Facts) -> list[Finding]:
    """What the modules have counted since they were loaded"""
    rows = []
    sender, reflector = facts.counters.get("hpccpp", {}), facts.counters.get("int_reflector", {})
    if sender.get("Unstamped"):
        rows.append(note("telemetry", "unstamped", f"{sender['Unstamped']} times a connection of hpccpp ran as Reno"
                         " because a bottleneck that does not stamp lost or marked its packets (Unstamped in"
                         " /proc/net/hpccpp)", "on each port that may be a bottleneck: sudo lowq-tc hpccpp DEVICE"))
    if sender.get("Translated"):
        rows.append(note("telemetry", "probes-translated", f"{sender['Translated']} connections of hpccpp ran as Reno because"
                         " this host's NAT translates them (Translated in /proc/net/hpccpp)", NO_NAT))
    if sender.get("Refused"):
        rows.append(note("telemetry", "probes-refused", f"{sender['Refused']} connections of hpccpp ran as Reno because a RST"
                         " answered a probe, as at published ports (Refused in /proc/net/hpccpp)", f"{NO_NAT}; or {TAKE_IN}"))
    if sender.get("OldFormat"):
        rows.append(note("telemetry", "old-format", f"{sender['OldFormat']} connections of hpccpp left IFA or INT for the draft's"
                         " own format (OldFormat in /proc/net/hpccpp): nodes, the peer or a firewall do not let it be",
                         "let IP protocol 253 pass (IFA); give the ports' rate (INT): lowq-tc host hpccpp --format int --rate"
                         " RATE; or --format old"))
    unsent = sender.get("Unsent", 0) + reflector.get("Unsent", 0)
    if unsent:
        rows.append(note("telemetry", "probes-unsent", f"{unsent} probes or answers did not leave this host (Unsent in"
                         " /proc/net/hpccpp and int_reflector): its firewall or queue dropped them", LET_OUT))
    return rows


# --- devices --------------------------------------------------------------------------


def device_text(device: Device) -> str:
    below = queues.leaves(list(device.qdiscs))
    marked, dropped = sum(one.marked for one in below), sum(one.dropped for one in below)
    words = [queues.outline(list(device.qdiscs))]
    words.append(f"{marked} marked, {dropped} dropped")
    words.append(rate_text(device.speed) if device.speed else "no line rate")
    words += [f"MTU {device.mtu}", "offloads " + (" ".join(device.offloads) or "none")]
    return ", ".join(words)


def lowest(facts: Facts, device: Device) -> list[Device]:
    """The devices below this one in whose queues its packets wait; itself if it is not stacked. A bridge
    has ports towards containers, whose packets wait elsewhere: they count only where there are no others."""
    known = {one.name: one for one in facts.devices}
    found: dict[str, Device] = {}
    names, seen = [device.name], set()
    while names:
        name = names.pop(0)
        one = known.get(name)
        if one is None or name in seen:
            continue
        seen.add(name)
        if not one.stacked or (one is not device and is_shaping(one)):
            found[name] = one
            continue
        below = [lower for lower in one.lower if lower in known]
        if one.kind == "bridge":
            below = [lower for lower in below if known[lower].kind not in ("veth", "tun")] or below
        names += below
    return list(found.values())


def device_rows(facts: Facts, device: Device, asked: bool, controls: list[str]) -> list[Finding]:
    """asked: the user named it as a place that should signal; else it is only described"""
    check = f"device {device.name}"
    text = device_text(device)
    stamps = bool(controls) and all(name == "hpccpp" for name in controls)
    if not asked:
        rows = bare_leaves(check, device) if not stamps and not device.stacked else []
    elif device.stacked and not is_shaping(device):
        rows = stacked_rows(facts, device, stamps)
    elif stamps:
        rows = [] if is_stamping(device) else [
            wrong(check, "does-not-stamp", f"no telemetry is stamped: {text}", f"sudo lowq-tc hpccpp {device.name}")]
    else:
        rows = marking_rows(facts, device)
    if device.lower:
        text += ", over " + ", ".join(device.lower)
    if "lro" in device.offloads:
        rows.append(note(check, "lro", "LRO merges packets with different ECN fields",
                         f"sudo ethtool -K {device.name} lro off"))
    filters = [one for one in device.qdiscs if queues.filters_acks(one)]
    if "prague" in controls and filters:
        rows.append(note(check, "ack-filter", "its ACK filter drops no ACK with Accurate ECN: prague's own ACKs can fill a"
                         " narrow uplink", "; ".join(changed(device, one, queues.NO_FILTER) for one in filters)))
    late = [one for one in device.qdiscs if queues.timer_slack_ns(one) > SLACK_NS]
    if "hpccpp" in controls and late:
        rows.append(note(check, "late-timer", f"sch_fq sends each packet up to {queues.timer_slack_ns(late[0]) // 1000} us late:"
                         " at 10 Gb/s hpccpp loses 5 % of its rate", "; ".join(slack_set(device, one) for one in late)))
    short = [one for one in device.qdiscs if 0 < queues.l4s_step_us(one) < SHORT_STEP_US]
    if device.radio and "prague" in controls and short:
        mend = "; ".join(changed(device, one, f"step_thresh {VARYING_STEP}") for one in short)
        if any(one.get("root") and handle_of(one) == LOWQ_ROOT for one in device.qdiscs):
            mend = f"sudo lowq-tc prague {device.name} --varying, with the options that it was set with"
        rows.append(note(check, "short-step", "its rate varies, and L4S packets are marked so early that a third of the link"
                         " may stay unused", mend))
    if asked and device.ring > 512 and not device.queue_limits:
        rows.append(note(check, "deep-ring", f"{device.ring} packets wait in its ring, below the queue that marks",
                         f"sudo ethtool -G {device.name} tx 128, or lowq-tc --shape"))
    return rows or [fine(check, text)]


def changed(device: Device, qdisc: Json, words: str) -> str:
    """What changes options of one queue, and nothing around it"""
    return f"sudo tc qdisc change dev {device.name} {queues.place_of(qdisc)} {qdisc['kind']} {words}"


def slack_set(device: Device, fq: Json) -> str:
    """The kernel's own default queue has no handle, and takes no change: one like it in its place does"""
    words = f"timer_slack {SLACK_NS}ns"
    if handle_of(fq) != "0:":
        return changed(device, fq, words)
    if fq.get("root"):
        return f"sudo tc qdisc replace dev {device.name} root fq {words}"
    queue = str(fq.get("parent")).partition(":")[2]
    return f"sudo tc qdisc replace dev {device.name} parent 1:{queue} fq {words}, below a 'root handle 1: mq'"


def mend_for(names: list[str], stamps: bool = False) -> str:
    if stamps:
        return "; ".join(f"sudo lowq-tc hpccpp {name}" for name in names)
    return "; ".join(f"sudo lowq-tc PROFILE {name}" for name in names) + " (lowq-tc list shows the profiles)"


def stacked_rows(facts: Facts, device: Device, stamps: bool) -> list[Finding]:
    """Of a device that hands its packets on at once: those below it must mark, or stamp"""
    check = f"device {device.name}"
    below = [one for one in lowest(facts, device) if one.name != device.name]
    verb = "stamp" if stamps else "mark"
    if not below:
        return [note(check, "lower-unknown", f"its packets wait in the queue of another device, which is not known here"
                                             f" (a {device.kind} device)",
                     "check the device by which they leave, in its own network namespace: lowq-check --device DEVICE")]
    good = is_stamping if stamps else is_marking
    bad = [one.name for one in below if not good(one)]
    names = ", ".join(one.name for one in below)
    text = f"its packets wait in {names}"
    if bad:
        lack = f"{', '.join(bad)} {'does' if len(bad) == 1 else 'do'} not {verb}"
        if good(device):
            lack += f"; its own queue never fills, as a {device.kind} device passes packets on at once"
        return [wrong(check, "lower-unmarked", f"{text}: {lack}", mend_for(bad, stamps))]
    rows = [row for one in below if not stamps for row in bare_leaves(f"device {one.name}", one)]
    return rows or [fine(check, f"{text}, which {verb}{'s' if len(below) == 1 else ''}")]


def bare_leaves(check: str, device: Device) -> list[Finding]:
    bare = queues.unmarked_leaves(list(device.qdiscs))
    if not bare:
        return []
    return [wrong(check, "mq-leaf-unmarked", f"its transmit queues {', '.join(bare)} do not mark, others do",
                  f"set it again after a change of the number of queues: {mend_for([device.name])}")]


def marking_rows(facts: Facts, device: Device) -> list[Finding]:
    """Of a device whose own queue should mark. Another device's queue is never to be reset: that it
    marks can be right."""
    check = f"device {device.name}"
    text, mend = device_text(device), mend_for([device.name])
    rows = bare_leaves(check, device)
    if rows or is_marking(device):
        return rows
    if device.kind == "veth":
        mend += "; a pair of veth has no rate of its own: --shape sets one, or it is the device by which packets" \
                " leave the machine that has to mark"
    related = {one.name for one in lowest(facts, device)}
    above = [one.name for one in facts.devices if one.stacked and is_marking(one) and not is_shaping(one)
             and device.name in [lower.name for lower in lowest(facts, one)]]
    elsewhere = [one.name for one in facts.devices if is_marking(one) and not one.stacked and one.name not in related]
    if above:
        return [wrong(check, "queue-above", f"it does not mark; the queue of {', '.join(above)} above it does, but never"
                                            f" fills, as that device passes packets on at once: {text}", mend)]
    if elsewhere:
        return [wrong(check, "wrong-device", f"it does not mark, but {', '.join(elsewhere)} does: {text}", mend)]
    if any(one.signal == queues.DROPS for one in queues.leaves(list(device.qdiscs))):
        return [wrong(check, "drops-only", f"it drops and does not mark: {text}", mend)]
    return [wrong(check, "no-marking", f"it does not mark: {text}", mend)]
