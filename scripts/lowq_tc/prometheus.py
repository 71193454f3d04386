# SPDX-License-Identifier: GPL-2.0
"""What the queues have counted, for Prometheus: beside the metrics of lowq-stat."""

from __future__ import annotations

from lowq_common.system import Namespace
from lowq_common.values import Json, label

from . import host, show
from .journal import Journal
from .world import World

# metric -> its type, and what it is
METRICS = {
    "lowq_queue_set": ("gauge", "1: the queue is as lowq-tc set it"),
    "lowq_host_set": ("gauge", "1: what lowq-tc host set for its controls stands"),
    "lowq_queue_sent_packets": ("counter", "Packets that a queue let out"),
    "lowq_queue_sent_bytes": ("counter", "Bytes that a queue let out"),
    "lowq_queue_marked_packets": ("counter", "Packets that a queue marked with CE"),
    "lowq_queue_dropped_packets": ("counter", "Packets that a queue dropped"),
    "lowq_queue_backlog_packets": ("gauge", "Packets that wait"),
    "lowq_queue_backlog_bytes": ("gauge", "Bytes that wait"),
    "lowq_queue_probability": ("gauge", "With which a queue that computes one (pie, dualpi2) marks or drops"),
    "lowq_queue_delay_seconds": ("gauge", "How long packets wait, as the queue estimates it"),
    "lowq_queue_class_packets": ("counter", "Packets of a class within a queue (dualpi2: L4S, classic; gred: its queues)"),
    "lowq_queue_class_marked_packets": ("counter", "Of these, how many were marked, where the queue tells"),
    "lowq_queue_class_dropped_packets": ("counter", "How many of a class were dropped, where the queue tells"),
    "lowq_queue_stamped_probes": ("counter", "Probes of HPCC++ that a port has stamped"),
}
COLUMNS = {"packets": "sent_packets", "bytes": "sent_bytes", "marked": "marked_packets", "dropped": "dropped_packets",
           "backlog_packets": "backlog_packets", "backlog_bytes": "backlog_bytes"}


def collected() -> tuple[str, str]:
    """Of this namespace, and why the records cannot be read"""
    world, journal = World(Namespace(None)), Journal()
    return text(show.show(world, journal, []), host.show(world, journal)), journal.hidden


def text(shown: list[Json], of_host: Json | None) -> str:
    samples: dict[str, list[str]] = {name: [] for name in METRICS}

    def add(name: str, labels: dict[str, str], value: float) -> None:
        told = ",".join(f'{key}="{label(what)}"' for key, what in labels.items() if what)
        samples[name].append(f"{name}{{{told}}} " + (f"{value:.9g}" if isinstance(value, float) else f"{value}"))

    for one in shown:
        device = {"netns": one.get("netns", ""), "device": one["device"]}
        add("lowq_queue_set", {**device, "profile": one.get("profile", "")}, int(one["set"]))
        for queue in one["queues"]:
            labels = {**device, "kind": queue["kind"], "place": queue["place"]}
            for key, name in COLUMNS.items():
                add("lowq_queue_" + name, labels, queue[key])
            details = queue.get("details", {})
            if "probability" in details:
                add("lowq_queue_probability", labels, float(details["probability"]))
            if "stamped" in details:
                add("lowq_queue_stamped_probes", labels, details["stamped"])
            for name in ("delay_us", "ldelay_us"):
                if name in details:
                    add("lowq_queue_delay_seconds", labels, details[name] / 1e6)
            for which, values in queue.get("classes", {}).items():
                labels["class"] = which
                add("lowq_queue_class_packets", labels, values["packets"])
                if "delay_us" in values:
                    add("lowq_queue_delay_seconds", labels, values["delay_us"] / 1e6)
                for key in ("marked", "dropped"):
                    if key in values:
                        add(f"lowq_queue_class_{key}_packets", labels, values[key])
    if of_host and of_host["controls"]:
        stands = all(one["stands"] and not one["cut_short"] for one in of_host["changes"])
        for control in of_host["controls"]:
            add("lowq_host_set", {"control": control}, int(stands))
    lines = []
    for name, (kind, about) in METRICS.items():
        lines += [f"# HELP {name} {about}", f"# TYPE {name} {kind}", *samples[name]]
    return "\n".join(lines)
