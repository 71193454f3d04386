# SPDX-License-Identifier: GPL-2.0
"""Scenarios: what is compared, where, and how results are read."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Iterable, Mapping, Sequence

Setting = int | float | str

# What each scenario has of its first observed queue, by its name in qdelay's result
METRICS = {"utilisation": "utilisation", "delay_mean_us": "delay_us.mean", "delay_p50_us": "delay_us.p50",
           "delay_p99_us": "delay_us.p99", "delay_max_us": "delay_us.max", "qlen_mean_pkts": "qlen_pkts.mean",
           "qlen_stddev_pkts": "qlen_pkts.stddev", "qlen_p99_pkts": "qlen_pkts.p99", "marks": "marked",
           "mark_fraction": "mark_fraction", "drops": "dropped"}


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

    def queue(self, rtt: str, *options: str) -> str:
        """The row's queue for a link, as Network.link() takes it. rtt and options, such as "--k", "65", are for queues
        whose threshold depends on them"""
        more = [] if self.profile.split()[0] in ("fifo", "prague") else ["--rtt", rtt, *options]
        return " ".join(["lowq-tc", self.profile, *more])


@dataclass(frozen=True)
class Results:
    """What a run has left: flows, as flowgen(1) has them, and queues, as qdelay(1) has"""

    flows: list[dict[str, Any]]
    queues: list[dict[str, Any]]

    def queue(self, node: str, to: str) -> dict[str, Any]:
        """That of a node towards a neighbour, which the plan observes"""
        for queue in self.queues:
            if (queue["node"], queue["dev"]) == (node, to):
                return queue
        raise ValueError(f"queue(): the queue of '{node}' towards '{to}' is not observed")

    def times(self, share: float, *, label: str | None = None, kind: str | None = None) -> float | None:
        """The completion time in microseconds that this share of the flows does not exceed: times(0.99)"""
        of = sorted(flow["duration_ns"] / 1e3 for flow in self.flows if flow["status"] == "ok"
                    and label in (None, flow.get("label")) and kind in (None, flow.get("kind")))
        return of[max(0, math.ceil(share * len(of)) - 1)] if of else None


@dataclass(frozen=True)
class Goal:
    metric: str
    row: str
    op: str
    value: float
    variant: Mapping[str, Setting] | None = None
    text: str = ""

    def as_json(self) -> dict[str, Any]:
        return {"metric": self.metric, "row": self.row, "op": self.op, "value": self.value,
                "variant": dict(self.variant) if self.variant else "*"} | ({"text": self.text} if self.text else {})


def goal(metric: str, *, row: str, least: float | None = None, most: float | None = None,
         variant: Mapping[str, Setting] | None = None, text: str = "") -> Goal:
    """A limit that a row must keep, in variants with these settings or in all"""
    if (least is None) == (most is None):
        raise ValueError("goal(): give one of least and most")
    op, value = (">=", least) if most is None else ("<=", most)
    return Goal(metric, row, op, value or 0, variant, text)


@dataclass(frozen=True)
class Scenario:
    """What bench/run needs to know. plan makes a run's plan. metrics, which is optional, makes the numbers that the
    scenario has beside those of METRICS, jain and, where there are requests, rpc_p50_us and rpc_p99_us."""

    title: str
    question: str
    rows: Sequence[str]
    plan: Callable[[Run], dict[str, Any]]
    variants: Sequence[Mapping[str, Setting]] = field(default_factory=lambda: [{}])
    metrics: Callable[[Results], Mapping[str, float | None]] | None = None
    goals: Sequence[Goal] = ()
    reference: str = ""
    topology: str = ""  # a drawing; without one, the plan's links
    params: Mapping[str, Setting] = field(default_factory=dict)
    shown: Sequence[str] = ()  # metrics, the most important first

    def __post_init__(self) -> None:
        for name, kind in (("title", str), ("question", str), ("rows", Iterable), ("variants", Iterable)):
            if not isinstance(getattr(self, name), kind) or not getattr(self, name):
                raise ValueError(f"Scenario: {name} is not given")
        if isinstance(self.rows, str):
            raise ValueError("Scenario: rows is a list of names")
        for variant in self.variants:
            for key, value in variant.items():
                if not key.isidentifier() or any(letter in str(value) for letter in " /=\n") or not str(value):
                    raise ValueError(f"Scenario: variants: '{key}' and '{value}' are not a setting")

    def measured(self, results: Results) -> dict[str, float | None]:
        made: dict[str, float | None] = {}
        if results.queues:
            for name, path in METRICS.items():
                value: Any = results.queues[0]
                for part in path.split("."):
                    value = value.get(part) if isinstance(value, dict) else None
                made[name] = value
        rates = [flow["goodput_bps"] for flow in results.flows if flow.get("kind") == "long"]
        if len(rates) > 1 and any(rates):
            made["jain"] = sum(rates) ** 2 / (len(rates) * sum(rate * rate for rate in rates))
        if any(flow.get("kind") == "requests" for flow in results.flows):
            made["rpc_p50_us"] = results.times(0.5, kind="requests")
            made["rpc_p99_us"] = results.times(0.99, kind="requests")
        return made | (dict(self.metrics(results)) if self.metrics else {})


def results_in(directory: Path) -> Results:
    queues = directory / "queues.json"
    flows = [json.loads(line) for line in (directory / "flows.jsonl").read_text(encoding="utf-8").splitlines()]
    return Results([flow for flow in flows if flow["type"] == "flow"],
                   json.loads(queues.read_text(encoding="utf-8"))["queues"] if queues.exists() else [])
