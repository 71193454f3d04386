# SPDX-License-Identifier: GPL-2.0
"""Scenarios: what is compared, where, and how results are read."""

from __future__ import annotations

import csv
import ctypes
import itertools
import json
import math
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Iterable, Mapping, Sequence

from .networks import nanoseconds, Network
from .slowdown import slowdowns
from .traffic import long

Setting = int | float | str
Variant = Mapping[str, Setting | None]  # None: without the setting

# What the setting tso=1 is, for params
TSO = "1: hosts send 64 kB at once, which their NIC segments at {}, and the receiver merges (GRO)"

LATE_NS = 10000  # requests that leave later than due measure the lab

# What each scenario has of its first observed queue, by its name in qdelay's result
METRICS = {"utilisation": "utilisation", "throughput_bps": "throughput_bps", "delay_mean_us": "delay_us.mean",
           "delay_p50_us": "delay_us.p50", "delay_p99_us": "delay_us.p99", "delay_max_us": "delay_us.max",
           "qlen_mean_pkts": "qlen_pkts.mean", "qlen_stddev_pkts": "qlen_pkts.stddev",
           "qlen_p99_pkts": "qlen_pkts.p99", "marks": "marked", "mark_fraction": "mark_fraction", "drops": "dropped"}


@dataclass(frozen=True)
class Run:
    """One run: the row that is tried, in a variant. run["flows"] is a setting of the variant."""

    row: str
    control: str  # the congestion control, for the traffic
    profile: str  # the queue, a profile of lowq-tc with its options
    seed: int
    settings: Mapping[str, Setting]

    def __getitem__(self, name: str) -> Any:
        return self.settings[name]

    def get(self, name: str, default: Any = None) -> Any:
        """A setting that not all variants have"""
        return self.settings.get(name, default)

    @property
    def offloads(self) -> bool:
        """Whether the variant is one whose hosts send 64 kB at once: tso=1"""
        return bool(self.settings.get("tso"))

    def phase(self, number: int) -> int:
        """What a flow's start follows from, in microseconds: a seed counts number times number, so that the distances
        between flows are others with each seed, too"""
        return number * 7919 + (1 + (self.seed - 1) * number * number) * 104729

    def start(self, number: int, within: str) -> str:
        """The start of a flow, a random instant of that time by the seed"""
        return f"{self.phase(number) % (nanoseconds(within) / 1000):.0f}us"

    def longs(self, hosts: int, to: str, *, duration: str, within: str = "1ms", **fields: Any) -> list[dict[str, Any]]:
        """A long flow from each of h1 to hN"""
        return [long(f"h{i}", to, duration=duration, start=self.start(i, within), control=self.control, **fields)
                for i in range(1, hosts + 1)]

    def two(self, first: str, second: str, to: str = "r", *, duration: str, receiver: str | None = None,
            **fields: Any) -> list[dict[str, Any]]:
        """A long flow of each of these controls, from h1 and h2, within 20 ms. receiver: the control at the other end,
        without one the flow's own"""
        return [long(host, to, duration=duration, start=f"{self.seed * factor % 20000}us",
                     control={"from": control, "to": receiver or control}, **fields)
                for host, control, factor in (("h1", first, 104729), ("h2", second, 7919))]

    def queue(self, rtt: str, *options: str, k: int | None = None, limit: str = "") -> str:
        """The row's queue for a link, as Network.link() takes it. rtt and options, such as "--min", "4p", are for
        queues whose thresholds depend on them. k: DCTCP's threshold, packets; other queues have none. limit: of all
        except DualPI2, such as "700000b" """
        profile = self.profile.split()[0]
        more = [] if profile in ("fifo", "prague") else ["--rtt", rtt, *options]
        more += ["--k", str(k)] if k is not None and profile == "dctcp" else []
        more += ["--limit", limit] if limit and profile != "prague" else []
        return " ".join(["lowq-tc", self.profile, *more])

    def step(self, k: int) -> int | None:
        """From how many packets on the row's queue marks, for Network.stated(): k with DCTCP. None: another queue, or
        hosts at the link's rate, one of which makes no queue"""
        return k if self.profile.split()[0] == "dctcp" and not self.offloads else None

    def prepare_hosts(self, net: Network, *, initcwnd: int | None = None) -> None:
        """What the row's control needs of all hosts, where it needs something: LDCP the settings that lowq-tc makes,
        with this initial window, HPCC++ receivers that answer probes"""
        if self.control == "ldcp":
            window = f" --initcwnd {initcwnd}" if initcwnd else ""
            for host in net.hosts:
                net.prepare("", f"lowq-tc host ldcp -n {host} --route default{window} --quiet")
        elif self.control == "hpccpp":
            net.prepare("", "modprobe int_reflector")

    def telemetry(self, net: Network, **values: Setting) -> None:
        """HPCC++'s parameters, and receivers that answer its probes, which others do not mind"""
        net.prepare("", "modprobe int_reflector")
        self.parameters(net, "hpccpp", **values)

    def parameters(self, net: Network, control: str, **values: Setting) -> None:
        """Parameters of a control's module, in the rows that try it"""
        for name, value in values.items() if self.control == control else ():
            net.prepare("", f"echo {value} >/sys/module/tcp_{control}/parameters/{name}")


def at_share(values: Iterable[float], share: float) -> float | None:
    """The value that this share of all does not exceed: at_share(values, 0.99)"""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else None


def hosts(first: int, last: int) -> list[str]:
    """Names: h1 to h8"""
    return [f"h{i}" for i in range(first, last + 1)]


def jain(rates: Sequence[float]) -> float:
    """Jain's index of rates that are not all 0"""
    return sum(rates) ** 2 / (len(rates) * sum(rate * rate for rate in rates))


def value_at(result: Any, path: str) -> Any:
    for part in path.split("."):
        result = result.get(part) if isinstance(result, dict) else None
    return result


def ends_of(flow: Mapping[str, Any], client: str = "client", server: str = "server") -> tuple[Any, Any]:
    """Who sends a flow's data, and who receives it"""
    return (flow.get(server), flow.get(client)) if flow.get("dir") == "pull" else (flow.get(client), flow.get(server))


def data_of(flow: Mapping[str, Any]) -> str:
    """The direction of a flow's data, as qdelay(1) names it"""
    ends = zip(ends_of(flow, "src", "dst"), ends_of(flow, "sport", "dport"))
    return ">".join(f"{address}:{port}" for address, port in ends)


@dataclass(frozen=True)
class Results:
    """What a run has left: flows, as flowgen(1) has them, queues, as qdelay(1) has, and the files in directory"""

    flows: list[dict[str, Any]]
    queues: list[dict[str, Any]]
    run: Run
    directory: Path
    rounds: list[dict[str, Any]] = field(default_factory=list)  # of incasts, as flowgen(1) has them

    def queue(self, node: str, to: str) -> dict[str, Any]:
        """The result of a queue that the plan observes: of a node towards a neighbour"""
        for queue in self.queues:
            if (queue["node"], queue["dev"]) == (node, to):
                return queue
        raise ValueError(f"queue(): the queue of '{node}' towards '{to}' is not observed")

    def rates(self) -> list[float]:
        """The long flows' rates, bit/s: in the time that is counted, at the first queue; without one, of each flow"""
        longs = [flow for flow in self.flows if flow.get("kind") == "long"]
        if not self.queues:
            return [flow["goodput_bps"] for flow in longs]
        seen = {flow["flow"]: flow.get("goodput_bps") or 0 for flow in self.queues[0]["flows"]}
        # where the queue leads to a host, others' flows do not pass it
        mine = [flow for flow in longs if ends_of(flow)[1] == self.queues[0].get("dev")]
        return [seen.get(data_of(flow), 0) for flow in mine or longs]

    def longs(self, host: str) -> list[dict[str, Any]]:
        """The long flows from a host, as the first queue on their path has seen them (qdelay(1))"""
        names = [data_of(sent) for sent in self.flows if sent.get("kind") == "long" and ends_of(sent)[0] == host]
        seen = {flow["flow"]: flow for queue in reversed(self.queues) for flow in queue["flows"]}
        return [dict(seen[name]) for name in names if name in seen]

    def flow(self, host: str) -> dict[str, Any]:
        """The first of them"""
        for found in self.longs(host):
            return found
        raise ValueError(f"flow(): no long flow from '{host}'")

    def of(self, hosts: Iterable[str], path: str) -> list[Any]:
        """A value of the long flow of each of these hosts, as qdelay(1) has it, such as "delay_us.p99"; without those
        that have none"""
        values = (value_at(self.flow(host), path) for host in hosts)
        return [value for value in values if value is not None]

    def mean(self, hosts: Iterable[str], path: str) -> float | None:
        """The mean of those; None if there are none"""
        values = self.of(hosts, path)
        return sum(values) / len(values) if values else None

    def ratio(self, one: Iterable[str], others: Iterable[str], path: str = "payload_bytes") -> float | None:
        """The quotient of two such means"""
        above, below = self.mean(one, path), self.mean(others, path)
        return above / below if above is not None and below else None

    def mbps(self, host: str, seconds: float) -> float:
        """The rate of the long flow from a host in the time that is counted"""
        return float(self.flow(host)["payload_bytes"]) * 8 / 1e6 / seconds

    def pair(self, seconds: float, first: str = "first", second: str = "second") -> dict[str, float | None]:
        """The rates of the long flows from h1 and h2, and their ratio"""
        return {f"{first}_mbps": self.mbps("h1", seconds), f"{second}_mbps": self.mbps("h2", seconds),
                "ratio": self.ratio(["h1"], ["h2"])}

    def share(self, bits: float) -> float:
        """The utilisation where the rate changes: what has left the first queue, of the bits that it could carry"""
        queue = self.queues[0]
        return float(queue["throughput_bps"]) * float(queue["duration_ns"]) / 1e9 / bits

    def goodputs(self, *, label: str | None = None, kind: str = "long", client: str | None = None) -> list[float]:
        """The rates of flows over their whole time, bit/s"""
        return [flow["goodput_bps"] for flow in self.flows if flow.get("kind") == kind and flow["goodput_bps"]
                and label in (None, flow.get("label")) and client in (None, flow.get("client"))]

    def udp(self, label: str) -> dict[str, Any]:
        """What has become of an entry of kind udp, as flowgen(1) has it"""
        return next(flow for flow in self.flows if flow.get("kind") == "udp" and flow["label"] == label)

    def text(self, name: str) -> str:
        """What a program has printed: its label, or its node's name"""
        return (self.directory / f"{name}.out").read_text(encoding="utf-8")

    def program(self, name: str) -> list[dict[str, Any]]:
        """... its lines of JSON"""
        return [json.loads(line) for line in self.text(name).splitlines()]

    def series(self, *hosts: str) -> list[dict[str, float]]:
        """The first queue over time, qdelay(1)'s columns; or the long flows of these hosts, their rates added up. Bins
        in which nothing was seen are left out"""
        if not hosts:
            return [{key: float(value) for key, value in row.items() if value} for row in self.table("queue.csv")]
        names = {self.flow(host)["flow"] for host in hosts}
        rates: dict[float, float] = {}
        for row in self.table("flows.csv"):
            if row["flow"] in names:
                at = float(row["t_s"])
                rates[at] = rates.get(at, 0) + float(row["throughput_bps"])
        return [{"t_s": at, "throughput_bps": rate} for at, rate in sorted(rates.items())]

    def followed(self, begin: float, bps: float, end: float, bin_: float, together: bool = False,
                 rows: Sequence[dict[str, float]] = ()) -> float | None:
        """Bins of the first queue's series from number begin to the first of 5 in a row, all before number end, with
        the rate within 5 % of bps and at most 5 packets in the queue. together: with the rate of all five so, and the
        mean queue of each, which a burst does not count for. rows: not of the first queue's series, but these"""
        run: list[dict[str, float]] = []
        for row in rows or self.series():
            number = round(row["t_s"] / bin_)
            if not begin <= number < end:
                continue
            queue = row.get("qlen_pkts_mean" if together else "qlen_pkts_max", 0)
            right = queue <= 5 and (together or abs(row["throughput_bps"] / bps - 1) <= 0.05)
            run = [*run, row] if right else []
            if len(run) >= 5:
                rate = sum(one["throughput_bps"] for one in run[-5:]) / 5
                if not together or abs(rate / bps - 1) <= 0.05:
                    return round(run[-5]["t_s"] / bin_) - begin
        return None

    def table(self, name: str) -> list[dict[str, str]]:
        """The lines of a CSV file that the run has left: queue.csv, or what shell writes"""
        with (self.directory / name).open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    @staticmethod
    def _enter(node: str) -> None:
        """Enters this node's network, which exists until the metrics are read"""
        with open(f"/run/netns/{node}", encoding="ascii") as namespace:
            if ctypes.CDLL(None).setns(namespace.fileno(), 0):
                raise ValueError(f"cannot enter '{node}'")

    def ask(self, node: str, command: str) -> str:
        """What a command prints in a node, after the traffic"""
        self._enter(node)
        return subprocess.run(command, shell=True, check=True, stdout=subprocess.PIPE, text=True).stdout

    def counter(self, name: str, *nodes: str) -> int:
        """The sum of a counter of /proc/net/netstat or snmp over nodes, such as "TCPTimeouts" """
        total = 0
        for node in nodes:
            self._enter(node)
            lines = [line.split() for file in ("netstat", "snmp")
                     for line in Path("/proc/net", file).read_text(encoding="ascii").splitlines()]
            total += sum(int(value) for names, values in zip(lines[::2], lines[1::2])
                         for known, value in zip(names[1:], values[1:]) if known == name)
        return total

    def times(self, share: float, *, label: str | None = None, kind: str | None = None) -> float | None:
        """The completion time in microseconds that this share of the flows does not exceed: times(0.99)"""
        return at_share([flow["duration_ns"] / 1e3 for flow in self.flows if flow["status"] == "ok"
                         and label in (None, flow.get("label")) and kind in (None, flow.get("kind"))], share)

    def drawn_load(self, bits: float, share: float) -> float:
        """The share of so many bits that the flows drawn come to, with headers: the stated one except for chance"""
        sizes = [float(flow["size"]) * 8 * 1514 / 1448 for flow in self.flows]
        load, chance = sum(sizes) / bits, math.sqrt(sum(size * size for size in sizes)) / bits
        if abs(load - share) > 4 * chance:  # standard deviations of a Poisson process
            raise ValueError(f"the load drawn is {load} of what was stated, not {share}")
        return load

    def round_times(self) -> list[float]:
        """How long each round of an incast took, microseconds, the shortest first"""
        return sorted(one["duration_ns"] / 1e3 for one in self.rounds)


def settings_of(variant: Variant | None) -> dict[str, Setting]:
    """The settings as the report matches them: an empty value stands for variants without the setting"""
    return {key: "" if value is None else value for key, value in (variant or {}).items()}


@dataclass(frozen=True)
class Goal:
    metric: str
    row: str
    least: float | None = None
    most: float | None = None
    median: float | None = None
    beside: Sequence[str] = ()
    variant: Variant | None = None
    text: str = ""

    def as_json(self) -> dict[str, Any]:
        made = vars(self) | {"variant": settings_of(self.variant), "beside": list(self.beside)}
        return {key: value for key, value in made.items() if value not in ("", None, [], {})}


def goal(metric: str, *, row: str, least: float | None = None, most: float | None = None, median: float | None = None,
         beside: Sequence[str] = (), variant: Variant | None = None, text: str = "") -> Goal:
    """What a row must keep, over its cells: all variants, or those with these settings. least and most are of each
    cell, and so of the worst one; median is the limit of the cell in the middle. beside: the best of these rows, its
    peers; the limits are of the ratio to its value in the same cell"""
    if least is None and most is None or None not in (least, most, median):
        raise ValueError("goal(): give least or most, and median with one of them alone")
    if None not in (least, most) and len(beside) > 1:
        raise ValueError("goal(): the best of several rows is the largest or the smallest: give one of least and most")
    if isinstance(beside, str):
        raise ValueError("goal(): beside is a list of rows")
    return Goal(metric, row, least, most, median, tuple(beside), variant, text)


def each(*lists: Sequence[Variant], **settings: Setting | None | Sequence[Setting | None]) -> list[dict[str, Setting]]:
    """Variants: every combination of those of the lists and of these settings, where a setting may have a list of
    values. The last one changes first; None is a variant without the setting"""
    choices: list[Sequence[Variant]] = [*lists]
    choices += [[{key: one} for one in (value if isinstance(value, (list, tuple)) else [value])]
                for key, value in settings.items()]
    return [{key: value for part in parts for key, value in part.items() if value is not None}
            for parts in itertools.product(*choices)]


def lines_of(text: str) -> str:
    """Each paragraph as one line, however it is wrapped"""
    return "\n".join(" ".join(part.split()) for part in re.split(r"\n\s*\n", text.strip()))


@dataclass(frozen=True)
class Scenario:
    """What bench/run needs to know:

    title, question     texts
    rows                names of bench/rows to compare
    plan                a function that returns a run's plan, labnet(1)'s; or
    shell               for what a plan cannot say: bash that defines run_scenario, which lab/runner/guest calls with the
                        variant's settings as variables
    variants            settings, such as {"flows": 8}; each() makes all combinations
    metrics             a function that makes numbers beside those of METRICS, jain and, where there are requests or an
                        incast, rpc_count, rpc_p50_us, rpc_p90_us and rpc_p99_us; and, where there is a list of flows or
                        they start at random, their number and slowdown (slowdown.py) by size
    goals               what a row must keep, each by goal(); three say more than thirty
    reference           the row that others are compared with
    topology            a drawing; without one, the plan's links
    params              other parameters, by name
    words               how a setting is said in plots and tables, with {} for its value ("share": "load {} %"), or a
                        text for each value
    shown               metrics, the most important first
    conclusion          what the table shows, and why goals were missed: a few sentences that need no figures
    modules             directories of kernel modules that a run needs, relative to the project

    Texts may be wrapped and indented as it suits: a paragraph is a line on the page."""

    title: str
    question: str
    rows: Sequence[str]
    plan: Callable[[Run], dict[str, Any]] | None = None
    variants: Sequence[Mapping[str, Setting]] = field(default_factory=lambda: [{}])
    metrics: Callable[[Results], Mapping[str, float | None]] | None = None
    goals: Sequence[Goal] = ()
    reference: str = ""
    topology: str = ""
    params: Mapping[str, Setting] = field(default_factory=dict)
    words: Mapping[str, str | Mapping[Setting, str]] = field(default_factory=dict)
    shown: Sequence[str] = ()
    conclusion: str = ""
    shell: str = ""
    modules: Sequence[str] = ()

    def __post_init__(self) -> None:
        for name, kind in (("title", str), ("question", str), ("rows", Iterable), ("variants", Iterable)):
            if not isinstance(getattr(self, name), kind) or not getattr(self, name):
                raise ValueError(f"Scenario: {name} is not given")
        for name in ("rows", "shown", "modules"):
            if isinstance(getattr(self, name), str):
                raise ValueError(f"Scenario: {name} is a list of names")
        if bool(self.plan) == bool(self.shell):
            raise ValueError("Scenario: give one of plan and shell")
        if self.shell and not self.topology:
            raise ValueError("Scenario: without a plan, topology is a drawing")
        for variant in self.variants:
            for key, value in variant.items():
                if (not key.isidentifier() or key[1:] and key.isupper()  # the run's own are in capitals
                        or any(letter in str(value) for letter in " /=\n") or not str(value)):
                    raise ValueError(f"Scenario: variants: '{key}' and '{value}' are not a setting")
        limits = [(f"goals: {goal.metric} of {goal.row}", goal.variant) for goal in self.goals]
        for what, wanted in limits:
            want = settings_of(wanted)
            if not any(all(str(variant.get(key, "")) == str(value) for key, value in want.items())
                       for variant in self.variants):
                raise ValueError(f"Scenario: {what}: no variant has {want}")

    def example(self, variant: Mapping[str, Setting]) -> Run:
        """A run to try the plan with"""
        return Run(self.rows[0], "cubic", "fifo", 1, variant)

    def measured(self, results: Results) -> dict[str, float | None]:
        made: dict[str, float | None] = {}
        if results.queues:
            made |= {name: value_at(results.queues[0], path) for name, path in METRICS.items()}
            made["retrans"] = sum(flow["retransmitted"] for flow in results.queues[0]["flows"])
        rates = results.rates()
        if len(rates) > 1 and any(rates):
            made["jain"] = jain(rates)
        asked = [flow for flow in results.flows if flow.get("kind") in ("requests", "rpc", "incast")]
        if asked:  # from the instant at which each was due
            times = [flow["since_due_ns"] / 1e3 for flow in asked if flow["status"] == "ok"]
            made |= {"rpc_count": len(times)} | {f"rpc_p{q}_us": at_share(times, q / 100) for q in (50, 90, 99)}
        if len(results.rounds) > 1:
            times = results.round_times()
            made |= {"round_mean_us": sum(times) / len(times), "round_p99_us": at_share(times, 0.99)}
        if self.plan and any(flow.get("kind") in ("flows", "list") for flow in results.flows):
            for name, times in slowdowns(self.plan(results.run), results.flows).items():
                made |= {f"count_{name}": len(times)} | {f"slow_p{q}_{name}": at_share(times, q / 100)
                                                         for q in (50, 99) if times}
        return made | (dict(self.metrics(results)) if self.metrics else {})


def results_in(directory: Path, run: Run) -> Results:
    """queues.json is a plan's, qdelay.json that of a bottleneck that shell has watched"""
    flows, queues, bottleneck = (directory / name for name in ("flows.jsonl", "queues.json", "qdelay.json"))
    entries = [json.loads(line) for line in flows.read_text(encoding="utf-8").splitlines()] if flows.exists() else []
    late = max((entry.get("late_max_ns") or 0 for entry in entries), default=0)
    if late > LATE_NS:
        raise ValueError(f"a request was sent {late} ns after it was due")
    found = (json.loads(queues.read_text(encoding="utf-8"))["queues"] if queues.exists() else
             [json.loads(bottleneck.read_text(encoding="utf-8"))] if bottleneck.exists() else [])
    return Results([flow for flow in entries if flow["type"] == "flow"], found, run, directory,
                   [one for one in entries if one["type"] == "round"])


def load(path: str | Path) -> Scenario:
    """The scenario of a file: SCENARIO, or the only one. dataclasses.replace() makes another one of it; words for
    settings that no variant has are ignored, so that they may be left"""
    path = Path(path)
    names: dict[str, Any] = {"__name__": "scenario", "__file__": str(path)}
    if str(path.parent) not in sys.path:
        sys.path.insert(1, str(path.parent))  # its own modules
    text = path.read_text(encoding="utf-8")
    exec(compile(text, str(path), "exec"), names)  # pylint: disable=exec-used
    named = names.get("SCENARIO")
    found = [named] if isinstance(named, Scenario) else [one for one in names.values() if isinstance(one, Scenario)]
    if len(found) != 1:
        raise ValueError(f"{len(found)} scenarios, not one: SCENARIO = Scenario(...)")
    return found[0]
