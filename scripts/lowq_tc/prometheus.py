# SPDX-License-Identifier: GPL-2.0
"""What the queues have counted, for Prometheus: beside the metrics of lowq-stat."""

from __future__ import annotations

from lowq_common.values import Json

# metric -> its type, and what it is
METRICS = {
    "lowq_queue_set": ("gauge", "1: the queue is as lowq-tc set it"),
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


def label(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r'\"').replace("\n", r"\n").encode("utf-8", "replace").decode()


def text(shown: list[Json]) -> str:
    samples: dict[str, list[str]] = {name: [] for name in METRICS}

    def add(name: str, labels: dict[str, str], value: float) -> None:
        told = ",".join(f'{key}="{label(what)}"' for key, what in labels.items() if what)
        samples["lowq_queue_" + name].append(f"lowq_queue_{name}{{{told}}} {value:.9g}" if isinstance(value, float) else
                                             f"lowq_queue_{name}{{{told}}} {value}")

    for one in shown:
        device = {"netns": one.get("netns", ""), "device": one["device"]}
        add("set", {**device, "profile": one.get("profile", "")}, int(one["set"]))
        for queue in one["queues"]:
            labels = {**device, "kind": queue["kind"], "place": queue["place"]}
            for key, name in COLUMNS.items():
                add(name, labels, queue[key])
            details = queue.get("details", {})
            if "probability" in details:
                add("probability", labels, float(details["probability"]))
            if "stamped" in details:
                add("stamped_probes", labels, details["stamped"])
            for name in ("delay_us", "ldelay_us"):
                if name in details:
                    add("delay_seconds", labels, details[name] / 1e6)
            for which, values in queue.get("classes", {}).items():
                labels["class"] = which
                add("class_packets", labels, values["packets"])
                if "delay_us" in values:
                    add("delay_seconds", labels, values["delay_us"] / 1e6)
                for key in ("marked", "dropped"):
                    if key in values:
                        add(f"class_{key}_packets", labels, values[key])
    lines = []
    for name, (kind, about) in METRICS.items():
        lines += [f"# HELP {name} {about}", f"# TYPE {name} {kind}", *samples[name]]
    return "\n".join(lines)
