# SPDX-License-Identifier: GPL-2.0
"""What is so on this host. Reads only."""

from __future__ import annotations

import os
import re
from typing import Iterable, Iterator, NamedTuple

from lowq_common import devices, records, routes, system
from lowq_common.controls import CONTROLS, Given, Host
from lowq_common.devices import ETHTOOL_GTSO, Link, ethtool
from lowq_common.errors import Refused
from lowq_common.netlink import Netlink
from lowq_common.values import Json
from lowq_common.system import Namespace
from lowq_common.tcpinfo import base_control, connections, ecn_mode, fallback_reason

from . import queues

TCP = "net.ipv4.tcp_"


class Control(NamedTuple):
    name: str
    tcp: bool  # a control that sockets can choose
    module: str
    exists: bool
    loaded: bool
    signer: str  # of its file; "" if it is unsigned or built in
    available: bool
    allowed: bool
    default: bool
    routes: tuple[str, ...]  # with this congctl
    ecn: tuple[int, ...]  # values of tcp_ecn with which a server agrees to what it needs
    idle: tuple[str, ...]  # modules that it needs beside its own, and that are not loaded
    changed: tuple[str, ...]  # parameters away from their defaults
    gone: tuple[str, ...]  # parameters that modprobe.d gives and this version does not have, with the file
    back: tuple[str, ...]  # the commands that set these back
    set: tuple[str, ...]  # parameters that lowq-tc has set
    without_effect: tuple[str, ...]  # routes with this congctl that no lookup leads to
    parameters: dict[str, int]

    @property
    def used(self) -> bool:
        return self.default or bool(self.routes)


class Device(NamedTuple):
    name: str
    kind: str
    up: bool
    mtu: int
    speed: int  # bit/s, 0 if unknown
    qdiscs: tuple[Json, ...]
    offloads: tuple[str, ...]
    ring: int  # packets of its transmit ring, 0 if unknown
    queue_limits: bool  # does it have byte queue limits?
    lower: tuple[str, ...] = ()  # the devices in whose queues its packets wait; none if in its own
    stacked: bool = False  # its packets wait in another device's queue, which may be unknown
    radio: bool = False  # Wi-Fi, or a modem for mobile networks: its rate varies


class Fallen(NamedTuple):
    """Connections that asked for a control and run as Reno"""

    control: str
    peer: str
    reason: str
    mode: str  # of ECN
    many: int


class Facts(NamedTuple):
    kernel: str
    root: bool
    forwarding: bool  # is it a router?
    ecn: int
    accecn: bool  # has this kernel Accurate ECN?
    ecn_option: int
    default: str
    allowed: str  # the controls that every user may choose
    sig_enforced: bool
    controls: tuple[Control, ...]
    devices: tuple[Device, ...]
    rdma: tuple[str, ...]  # soft-RoCE devices
    connections: tuple[Fallen, ...]
    counters: Json  # HPCC++'s, of this namespace: name of the file in /proc/net -> counter -> value

    def to_json(self) -> Json:
        """Without the connections, of which there may be very many"""
        told = {name: value for name, value in self._asdict().items() if name != "connections"}
        return {**told, "controls": [one._asdict() for one in self.controls],
                "devices": [one._asdict() for one in self.devices]}


def number(text: str | None, default: int = 0) -> int:
    return int(text) if text and re.fullmatch(r"-?\d+", text) else default


# --- modules and controls -----------------------------------------------------------


class ModuleFile:
    """What modinfo says of a module's file"""

    def __init__(self) -> None:
        self.signer = ""
        self.names: set[str] = set()  # of its parameters
        self.defaults: dict[str, int] = {}  # of its parameters, as their descriptions state them


def module_files(modules: list[str]) -> dict[str, ModuleFile]:
    """Of the modules, all at once if each of them has one file"""
    try:
        text = system.output(["modinfo", *modules])[1] if modules else ""
    except Refused:
        text = ""
    found: list[ModuleFile] = []
    for line in text.splitlines():
        if line.startswith("filename:"):
            found.append(ModuleFile())
        elif not found:
            continue
        elif match := re.match(r"parm: +(\w+):(.*\(default (\d+)\))?", line):
            found[-1].names.add(match[1])
            if match[3]:
                found[-1].defaults[match[1]] = int(match[3])
        elif match := re.match(r"signer: +(.+)", line):
            found[-1].signer = match[1]
    if len(found) == len(modules):
        return dict(zip(modules, found))
    if len(modules) == 1:
        return {modules[0]: found[-1] if found else ModuleFile()}
    return {module: module_files([module])[module] for module in modules}


def parameters(module: str) -> dict[str, int]:
    folder = f"/sys/module/{module}/parameters"
    if not os.path.isdir(folder):
        return {}
    values = {name: system.read_file(f"{folder}/{name}") for name in sorted(os.listdir(folder))}
    return {name: int(value) for name, value in values.items() if value is not None and value.isdigit()}


MODPROBE_D = ("/etc/modprobe.d", "/run/modprobe.d", "/usr/local/lib/modprobe.d", "/usr/lib/modprobe.d",
              "/lib/modprobe.d")


def configured() -> Iterator[tuple[str, str, str]]:
    """Module, parameter and file of each option in modprobe.d(5); a file hides those of its name in later folders"""
    files: dict[str, str] = {}
    for folder in MODPROBE_D:
        for name in os.listdir(folder) if os.path.isdir(folder) else ():
            if name.endswith(".conf"):
                files.setdefault(name, f"{folder}/{name}")
    for _, path in sorted(files.items()):
        try:
            with open(path, encoding="utf-8", errors="surrogateescape") as file:
                lines = file.read().replace("\\\n", " ").splitlines()
        except OSError:
            continue
        for words in map(str.split, lines):
            if len(words) > 2 and words[0] == "options":
                for one in words[2:]:
                    yield words[1].replace("-", "_"), one.split("=")[0].replace("-", "_"), path


def back_to(module: str, name: str, value: int) -> str:
    """The command; a module that is in use cannot be loaded again, but most of its parameters can be written"""
    path = system.parameter_path(f"{module}.{name}")
    if os.stat(path).st_mode & 0o200:
        return f"echo {value} | sudo tee {path}"
    return f"sudo modprobe -r {module} && sudo modprobe {module}"


class Routes:
    """What the routes of this namespace say of controls"""

    def __init__(self, route: Netlink, links: list[Link], available: list[str]) -> None:
        self.by_control: dict[str, list[str]] = {}
        self.useless: dict[str, list[str]] = {}  # control -> routes to which no lookup leads, and why
        seen: set[tuple[str, routes.Prefix]] = set()
        ways: dict[int, list[routes.Way]] = {}
        for one in list(routes.with_control(route, available)):
            self.by_control.setdefault(one.control, []).append(one.prefix.text + one.where)
            if (one.control, one.prefix) in seen or len(seen) >= MOST_CHECKED:
                continue
            seen.add((one.control, one.prefix))
            family = one.prefix.family
            if family not in ways:
                ways[family] = routes.ways(route, family, links)
            good, bad = routes.unreached(route, one.prefix, one.control, ways[family])
            if bad and not good:
                self.useless.setdefault(one.control, []).append(f"{one.prefix.text}{one.where} ({'; '.join(bad)})")


def lockdown() -> bool:
    """Does this kernel load signed modules only?"""
    enforced = system.read_file("/sys/module/module/parameters/sig_enforce") == "Y"
    mode = system.read_file("/sys/kernel/security/lockdown") or ""
    return enforced or "[integrity]" in mode or "[confidentiality]" in mode


MOST_CHECKED = 200  # routes whose effect is looked up


class Needs:
    """What a control needs of this host, and whether its module is there"""

    def __init__(self, space: Namespace, name: str):
        host = Host(Given(), space.sysctl)
        if name in CONTROLS:
            CONTROLS[name].needs(host)
        if not host.tcp:
            host.modules, host.services = host.services, []
        self.host = host
        self.module = host.modules[0] if host.modules else "tcp_" + name
        self.available = name in (space.sysctl(TCP + "available_congestion_control") or "").split()
        self.exists = self.available or system.module_exists(self.module)


def read_controls(space: Namespace, names: Iterable[str], shown: Routes) -> Iterator[Control]:
    needs = {name: Needs(space, name) for name in names}
    known = records.parameters()
    files = module_files([one.module for one in needs.values() if one.exists])
    options = list(configured())
    for name, one in needs.items():
        file = files.get(one.module) or ModuleFile()
        gone = (f"{key} ({path})" for module, key, path in options
                if file.names and module == one.module and key not in file.names)
        yield read_control(space, name, one, file, shown, known)._replace(gone=tuple(dict.fromkeys(gone)))


def read_control(space: Namespace, name: str, needs: Needs, file: ModuleFile, shown: Routes,
                 known: dict[str, str]) -> Control:
    host, module = needs.host, needs.module
    values, changed, back, ours = parameters(module), [], [], []
    for key, usual in (file.defaults if values else {}).items():
        if values.get(key, usual) != usual and known.get(f"{module}.{key}") == str(values[key]):
            ours.append(f"{key}={values[key]}")
        elif values.get(key, usual) != usual:
            changed.append(f"{key}={values[key]} (default {usual})")
            back.append(back_to(module, key, usual))
    return Control(
        name, host.tcp, module, needs.exists, system.module_loaded(module), file.signer, needs.available,
        name in (space.sysctl(TCP + "allowed_congestion_control") or "").split(),
        space.sysctl(TCP + "congestion_control") == name, tuple(shown.by_control.get(name, ())), host.ecn,
        tuple(one for one in host.services if not system.module_loaded(one)), tuple(changed), (),
        tuple(dict.fromkeys(back)), tuple(ours), tuple(shown.useless.get(name, ())), values,
    )


# --- devices ------------------------------------------------------------------------

OFFLOADS = (("tso", ETHTOOL_GTSO), ("gso", 0x23), ("gro", 0x2B))
ETHTOOL_GFLAGS, ETHTOOL_GRINGPARAM, LRO = 0x25, 0x10, 1 << 15


def offloads(name: str) -> tuple[str, ...]:
    found = [word for word, command in OFFLOADS if ethtool(name, command, 8)[1:] not in ((), (0,))]
    flags = ethtool(name, ETHTOOL_GFLAGS, 8)
    return (*found, "lro") if flags and flags[1] & LRO else tuple(found)


# devices that hand each packet on at once: a queue of theirs stays empty unless a shaper fills it
UPPER = ("bond", "team", "bridge", "vlan", "macvlan", "macvtap", "ipvlan", "ipvtap", "vrf", "hsr", "macsec", "dsa",
         "openvswitch")
TUNNELS = ("ipip", "gre", "gretap", "ip6gre", "ip6gretap", "erspan", "ip6erspan", "sit", "ip6tnl", "vti", "vti6",
           "xfrm", "vxlan", "geneve", "bareudp", "wireguard", "tun", "ovpn")


def lower_of(space: Namespace, link: Link) -> tuple[str, ...]:
    """A tunnel that is not bound to a device: the route to its other end names it"""
    if link.lower or link.kind not in TUNNELS:
        return link.lower
    remotes = [link.remote] if link.remote else []
    if link.kind == "wireguard":
        remotes = endpoints(link.name)
    found = []
    for remote in remotes:
        family = "-6" if ":" in remote else "-4"
        name = (system.route_towards(space, family, remote) or {}).get("dev")
        if name and name != link.name:
            found.append(name)
    return tuple(dict.fromkeys(found))


def endpoints(name: str) -> list[str]:
    """Of WireGuard's peers; none without root or wg(8)"""
    try:
        text = system.output(["wg", "show", name, "endpoints"])[1]
    except Refused:
        return []
    ends = [line.split()[1] for line in text.splitlines() if len(line.split()) == 2]
    return [end.rpartition(":")[0].strip("[]") for end in ends if ":" in end]


def read_device(space: Namespace, link: Link, qdiscs: list[Json]) -> Device:
    hardware = devices.hardware(space, link)
    ring = ethtool(link.name, ETHTOOL_GRINGPARAM, 36)
    mine = tuple(one for one in qdiscs if one.get("dev") == link.name)
    return Device(link.name, link.kind or "hardware", link.up, link.mtu, hardware.speed, mine, offloads(link.name),
                  ring[8] if ring else 0, hardware.queue_limits != "none", lower_of(space, link),
                  link.kind in (*UPPER, *TUNNELS) or bool(link.lower), is_radio(link.name))


def is_radio(name: str) -> bool:
    event = system.read_file(f"/sys/class/net/{name}/uevent") or ""
    return not {"DEVTYPE=wlan", "DEVTYPE=wwan"}.isdisjoint(event.split())


def read_devices(space: Namespace, links: list[Link]) -> tuple[Device, ...]:
    """Those that are up; a device without a queue of its own still has its line here"""
    shown = devices.queue_list(space)
    return tuple(read_device(space, link, shown) for link in links if link.up and link.name != "lo")


def rdma_devices() -> tuple[str, ...]:
    """RDMA devices of soft-RoCE, with the network device below"""
    folder = "/sys/class/infiniband"
    found = []
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
        parent = system.read_file(f"{folder}/{name}/parent")
        if parent:
            found.append(f"{name} over {parent}")
    return tuple(found)


# --- all of it ----------------------------------------------------------------------


def read(names: list[str]) -> Facts:
    """names: the controls to look at"""
    space = Namespace()
    default = space.sysctl(TCP + "congestion_control") or ""
    available = (space.sysctl(TCP + "available_congestion_control") or "").split()
    with Netlink(space) as asked:
        links = devices.read_links(asked)
        shown = Routes(asked, links, available)
    wanted = dict.fromkeys(names or [*CONTROLS, *shown.by_control, *([default] if default in CONTROLS else [])])
    option = space.sysctl(TCP + "ecn_option")
    return Facts(
        os.uname().release, os.geteuid() == 0, is_forwarding(space), number(space.sysctl(TCP + "ecn"), -1), option is not None,
        number(option), default, space.sysctl(TCP + "allowed_congestion_control") or "", lockdown(),
        tuple(read_controls(space, wanted, shown)), read_devices(space, links),
        rdma_devices(), fallen(), telemetry_counters(),
    )


def is_forwarding(space: Namespace) -> bool:
    return "1" in (space.sysctl("net.ipv4.ip_forward"), space.sysctl("net.ipv6.conf.all.forwarding"))


def fallen() -> tuple[Fallen, ...]:
    """None where the kernel does not tell them. Counted as they come: there may be very many"""
    found: dict[tuple[str, str, str, str], int] = {}
    try:
        for one in connections():
            base, fell = base_control(one.control)
            if fell:
                key = (base, one.peer, fallback_reason(base, one.info), ecn_mode(one.info))
                found[key] = found.get(key, 0) + 1
    except OSError:
        pass
    return tuple(Fallen(*key, count) for key, count in sorted(found.items()))


def telemetry_counters() -> Json:
    found: Json = {}
    for name in ("int_reflector", "hpccpp"):
        words = (system.read_file(f"/proc/net/{name}") or "").split()
        if words:
            found[name] = {key: int(value) for key, value in zip(words[::2], words[1::2]) if value.isdigit()}
    return found


def available(control: str) -> bool:
    """Can sockets choose it without a module being loaded for it?"""
    return control in (Namespace().sysctl(TCP + "available_congestion_control") or "").split()


def is_marking(device: Device) -> bool:
    return any(one.signal == queues.MARKS for one in queues.leaves(list(device.qdiscs)))


def is_stamping(device: Device) -> bool:
    return any(one["kind"] == queues.STAMPS for one in device.qdiscs)


def is_shaping(device: Device) -> bool:
    """Does a queue of this device limit the rate? Only then can it fill on a stacked device."""
    return any(queues.limits_rate(one) for one in device.qdiscs)
