# SPDX-License-Identifier: GPL-2.0
"""Facts of the host -> findings. Nothing here looks at the machine."""

from __future__ import annotations

from lowq_common.units import rate_text

from . import queues
from .facts import Control, Device, Facts, is_marking
from .finding import NOTE, WRONG, Finding, fine, note, wrong
from .tcpinfo import NO_ECN, Connection, base_control, ecn_mode

LOWQ = ("dctcp_ref", "ldcp", "prague", "hpccpp", "roce")


def judged(facts: Facts, asked: list[str]) -> list[str]:
    """Whose faults count: those that were asked for, else those in use. If no control is in use,
    it is enough that one is ready."""
    used = asked or [one.name for one in facts.controls if one.used]
    if used or any(not hindrances(facts, one, "") for one in facts.controls):
        return used
    return [one.name for one in facts.controls]


def local(facts: Facts, asked: list[str], devices: list[str]) -> list[Finding]:
    """All findings about this host"""
    found = [kernel(facts)]
    counted = judged(facts, asked)
    for control in facts.controls:
        rows = control_rows(facts, control)
        if control.name not in counted:  # the verdict alone, and it does not count
            rows = [one._replace(state=NOTE) if one.state == WRONG else one for one in rows[:1]]
        found += rows
    found += [one for device in facts.devices if not devices or device.name in devices
              for one in device_rows(facts, device, device.name in devices, counted)]
    return found + fallen_back(facts.connections)


def kernel(facts: Facts) -> Finding:
    offers = f"with Accurate ECN (tcp_ecn_option {facts.ecn_option})" if facts.accecn else "without Accurate ECN"
    return fine("kernel", f"Linux {facts.kernel}, {offers}; tcp_ecn {facts.ecn}; default control {facts.default},"
                          f" every user may choose {facts.allowed.replace(' ', ', ')}")


# --- controls -------------------------------------------------------------------------


def control_rows(facts: Facts, control: Control) -> list[Finding]:
    """What is to be said about a control, the verdict first"""
    check = f"control {control.name}"
    rows = hindrances(facts, control, check)
    if control.available or (control.loaded and not control.tcp):
        rows += notes(facts, control, check)
    faults = [one for one in rows if one.state == WRONG]
    ways = ["it is the default"] if control.default else []
    ways += [f"routes to {', '.join(control.routes)}"] if control.routes else []
    ways += list(facts.rdma) if not control.tcp else []
    if faults:
        first = faults[0]
        verdict = first._replace(says=f"not ready: {first.says}")
        return [verdict] + [one for one in rows if one is not first]
    if rows:
        first = rows[0]
        return [first._replace(says=f"ready, but {first.says}")] + rows[1:]
    return [fine(check, "ready" + (f"; {', '.join(ways)}" if ways else ""))]


def hindrances(facts: Facts, control: Control, check: str) -> list[Finding]:
    """Because of these it does not work"""
    host = f"sudo lowq-tc host {control.name}"
    if not control.exists:
        mend = "install lowq's modules for this kernel: sudo make install, or the package lowq-dkms"
        if control.name not in LOWQ:
            mend = f"a kernel that has the control '{control.name}'"
        return [wrong(check, "module-missing", f"there is no module {control.module} for Linux {facts.kernel}", mend)]
    if not control.loaded and not control.available:
        if facts.sig_enforced and not control.signer:
            return [wrong(check, "module-unsigned",
                          f"this kernel loads signed modules only, and {control.module} is not signed",
                          "enrol DKMS's key: mokutil --import /var/lib/dkms/mok.pub, then reboot")]
        return [wrong(check, "module-not-loaded", f"module {control.module} is not loaded",
                      f"sudo modprobe {control.module}")]
    if not control.tcp:
        if not facts.rdma:
            return [wrong(check, "no-rdma-device", "there is no soft-RoCE device",
                          "sudo rdma link add rxe0 type rxe netdev DEVICE")]
        return []
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
    if not control.allowed and not control.used and not facts.root:
        rows.append(wrong(check, "not-allowed", "it is restricted, and this user may not choose it", host + " --allow"))
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
        rows.append(note(check, "parameters-changed", "its parameters differ: " + ", ".join(control.changed),
                         f"sudo modprobe -r {control.module}; sudo modprobe {control.module}"))
    return rows


# --- connections ----------------------------------------------------------------------


def fallen_back(connections: tuple[Connection, ...]) -> list[Finding]:
    """Connections that asked for a control and run Reno"""
    groups: dict[tuple[str, str, str], int] = {}
    for one in connections:
        base, fell = base_control(one.control)
        if fell:
            key = (base, one.peer, ecn_mode(one.info))
            groups[key] = groups.get(key, 0) + 1
    rows = []
    for (base, peer, mode), count in sorted(groups.items()):
        many = f"{count} connection{'s' if count > 1 else ''} with {peer}"
        if base == "hpccpp":
            rows.append(wrong("connections", "no-telemetry", f"{many}: hpccpp runs as Reno, without telemetry",
                              f"lowq-check {peer} --control hpccpp shows which part is missing"))
        elif mode == NO_ECN:
            rows.append(wrong(
                "connections", "control-after-handshake",
                f"{many}: {base} runs as Reno, without ECN. Its program set the control after the handshake,"
                " or the peer refused ECN", f"set it before connect(), as a route or as the default; lowq-check {peer}"
                f" --control {base} tells whether the peer refuses"))
        else:
            rows.append(wrong("connections", "fell-back", f"{many}: {base} runs as Reno, with {mode} negotiated",
                              f"lowq-check {peer} --control {base}"))
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


def device_rows(facts: Facts, device: Device, asked: bool, controls: list[str]) -> list[Finding]:
    """asked: the user named it as a place that should signal; else it is only described"""
    check = f"device {device.name}"
    text = device_text(device)
    rows = []
    tree = list(device.qdiscs)
    bare = queues.unmarked_leaves(tree)
    below = queues.leaves(tree)
    mend = f"sudo lowq-tc PROFILE {device.name} (lowq-tc list shows the profiles)"
    if controls and all(name == "hpccpp" for name in controls):
        if asked and all(one["kind"] != queues.STAMPS for one in tree):
            rows.append(wrong(check, "does-not-stamp", f"no telemetry is stamped: {text}",
                              f"sudo lowq-tc hpccpp {device.name}"))
    elif bare:
        rows.append(wrong(check, "mq-leaf-unmarked", f"its transmit queues {', '.join(bare)} do not mark, others do",
                          f"set it again after a change of the number of queues: {mend}"))
    elif is_marking(device):
        pass
    elif asked:
        elsewhere = [one.name for one in facts.devices if one.name != device.name and is_marking(one)]
        if elsewhere:
            rows.append(wrong(check, "wrong-device", f"it does not mark, but {', '.join(elsewhere)} does: {text}",
                              f"sudo lowq-tc reset {elsewhere[0]}; {mend}"))
        elif any(one.signal == queues.DROPS for one in below):
            rows.append(wrong(check, "drops-only", f"it drops and does not mark: {text}", mend))
        else:
            rows.append(wrong(check, "no-marking", f"it does not mark: {text}", mend))
    if "lro" in device.offloads:
        rows.append(note(check, "lro", "LRO merges packets with different ECN fields",
                         f"sudo ethtool -K {device.name} lro off"))
    if asked and device.ring > 512 and not device.queue_limits:
        rows.append(note(check, "deep-ring", f"{device.ring} packets wait in its ring, below the queue that marks",
                         f"sudo ethtool -G {device.name} tx 128, or lowq-tc --shape"))
    return rows or [fine(check, text)]
