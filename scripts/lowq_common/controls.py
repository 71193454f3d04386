# SPDX-License-Identifier: GPL-2.0
"""The controls, and what each needs of its host: data in, wanted settings out. Nothing here
reads or changes the machine."""

from __future__ import annotations

from typing import Any, Callable, NamedTuple

from .errors import Refused


class Given:
    """Options that were given. Values are checked; given[] has them as the user wrote them."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.given: dict[str, str] = {}

    def has(self, name: str) -> bool:
        return name in self.values

    def get(self, name: str, default: Any = None) -> Any:
        return self.values.get(name, default)


class Host:
    """What a control needs of its host. Facts come in as functions, needs go out as lists."""

    def __init__(self, options: Given, sysctl: Callable[[str], str | None]):
        self.options = options
        self.sysctl = sysctl
        self.tcp = True  # a control that sockets can choose
        self.modules: list[str] = []  # stay loaded
        self.services: list[str] = []  # reset unloads them
        self.parameters: list[tuple[str, str, str]] = []  # module, name, value
        self.ecn: tuple[int, ...] = ()  # net.ipv4.tcp_ecn: wanted, and also fine
        self.sysctls: list[tuple[str, str]] = []
        self.route_metrics: dict[str, int] = {}
        self.route_features: list[str] = []
        self.timer_slack = 0  # ns: of each fq, at most


class Control(NamedTuple):
    name: str
    about: str
    options: tuple[str, ...]
    needs: Callable[[Host], None]


def asks_for_ecn(host: Host) -> None:
    host.ecn = (1, 3, 4)
    host.route_features.append("ecn")


def mainline(host: Host) -> None:
    host.modules.append("tcp_dctcp")
    asks_for_ecn(host)


def reference(host: Host) -> None:
    host.modules.append("tcp_dctcp_ref")
    asks_for_ecn(host)


def checked(options: Given, name: str, low: int, high: int, says: str) -> int:
    value: int = options.values[name]
    if not low <= value <= high:
        raise Refused(f"--{name} {options.given[name]}: must be {says}")
    return value


def rate_mbps(options: Given) -> int:
    return checked(options, "rate", 1_000_000, 1_600_000_000_000, "1mbit to 1600gbit") // 1_000_000


def hpccpp(host: Host) -> None:
    """T, W_ai = W_init * (1 - eta) / N, the rate at which flows start, and what probes look like"""
    options = host.options
    host.modules.append("tcp_hpccpp")
    host.services.append("int_reflector")
    host.timer_slack = 1000  # fq's 10 us cost 5 % of 10 Gb/s
    if options.has("rtt"):
        base = checked(options, "rtt", 1000, 1_000_000_000, "1us to 1s")
        host.parameters.append(("tcp_hpccpp", "base_rtt_ns", str(base)))
    if options.has("flows"):
        flows = str(checked(options, "flows", 1, 1_000_000, "1 to 1000000"))
        host.parameters += [("tcp_hpccpp", "flows", flows), ("int_reflector", "flows", flows)]
    if options.has("rate"):
        host.parameters.append(("tcp_hpccpp", "line_rate_mbps", str(rate_mbps(options))))
    if options.has("dscp"):
        host.parameters.append(("int_host", "dscp", str(options.values["dscp"])))
    if options.has("format"):
        host.parameters.append(("tcp_hpccpp", "format", str(("old", "ifa", "int").index(options.values["format"]))))
        if options.values["format"] == "int":
            if not options.has("rate"):
                raise Refused("--format int needs --rate: INT does not carry that of the path's ports")
            host.parameters.append(("int_host", "int_mbps", str(rate_mbps(options))))
    if options.has("cell"):
        host.parameters.append(("int_host", "cell", str(checked(options, "cell", 1, 65535, "1 to 65535"))))


def ldcp(host: Host) -> None:
    """Both ends: ECN, an ACK per packet, and a receive window that holds a first RTT. A
    sender pushes what is longer than half of that window in parts: so it is twice that."""
    options = host.options
    host.modules.append("tcp_ldcp")
    asks_for_ecn(host)
    if not options.has("route"):
        return
    if not options.has("quickack"):
        host.route_metrics["quickack"] = 1
    if not options.has("initcwnd"):
        return
    window = 2 * options.values["initcwnd"] + 2
    if not options.has("initrwnd"):
        host.route_metrics["initrwnd"] = window
    # The default receive buffer has to hold that window: twice the bytes, as half of a
    # buffer counts for overhead at the default tcp_adv_win_scale.
    buffers = host.sysctl("net.ipv4.tcp_rmem")
    if buffers:
        least, middle, most = (int(value) for value in buffers.split())
        wanted = 2 * window * 1460
        if middle < wanted:
            host.sysctls.append(("net.ipv4.tcp_rmem", f"{least} {wanted} {max(most, wanted)}"))


def prague(host: Host) -> None:
    """Accurate ECN in both directions: the module asks for it as a client, but a server
    agrees for other controls only if the sysctl does."""
    host.modules.append("tcp_prague")
    host.ecn = (3, 4, 5)
    host.sysctls += [("net.ipv4.tcp_ecn_option", "2"), ("net.ipv4.tcp_ecn_fallback", "1")]


def roce(host: Host) -> None:
    for name in ("route", "default", "allow", "initcwnd", "initrwnd", "quickack"):
        if host.options.has(name):
            raise Refused(f"--{name} does not go with 'host roce': it is not a control of TCP")
    host.tcp = False
    host.services.append("roce_rcm")  # it works while it is loaded
    if host.options.has("rate"):
        host.parameters += [("roce_rcm", name, str(value)) for name, value in dcqcn(rate_mbps(host.options))]


def dcqcn(mbps: int) -> list[tuple[str, int]]:
    """The paper's constants are for 40 Gb/s, and work at 10. A slower link has periods of as many
    packets, and proportional steps; the period of alpha is shorter than its memory, 2^g periods."""
    period = max(55, 500_000 // mbps)
    slow = mbps < 10_000
    return [
        ("line_rate_mbps", mbps),
        ("rate_min_mbps", min(10, max(1, mbps // 1000))),
        ("dcqcn_timer_us", period),
        ("dcqcn_alpha_us", period),
        ("cnp_interval_us", max(50, 400_000 // mbps)),
        ("dcqcn_shift_g", max(1, (256 * 55 // period).bit_length() - 1)),
        ("dcqcn_ai_mbps", max(1, mbps // 200) if slow else 40),
        ("dcqcn_hai_mbps", max(1, mbps // 100) if slow else 200),
    ]


CONTROLS: dict[str, Control] = {
    one.name: one for one in (
        Control("dctcp", "mainline's DCTCP", (), mainline),
        Control("dctcp_ref", "DCTCP by the letter of RFC 8257", (), reference),
        Control("hpccpp", "HPCC++ over TCP: probes and a receiver that answers them",
                ("rtt", "flows", "rate", "dscp", "format", "cell"), hpccpp),
        Control("ldcp", "LDCP", (), ldcp),
        Control("prague", "Prague for L4S", (), prague),
        Control("roce", "soft-RoCE: injector, notification and reaction point", ("rate",), roce),
    )
}
