# SPDX-License-Identifier: GPL-2.0
"""A sample as a table, as JSON, and as Prometheus reads it."""

from __future__ import annotations

import json
import os

from lowq_common.values import Json, label
from lowq_common.version import version

from .sample import QUANTILES, Row, Rows, quantiles

SCHEMA = 1
# metric -> what it is. All are gauges: connections come and go, and with them what they have counted.
METRICS = {
    "lowq_tcp_connections": "Established TCP connections",
    "lowq_tcp_fallback_connections": "Of these, how many run as Reno, by reason",
    "lowq_tcp_delivery_rate_bytes_per_second": "Delivery rate of a connection, as last measured",
    "lowq_tcp_srtt_seconds": "Smoothed RTT of a connection",
    "lowq_tcp_min_rtt_seconds": "Minimum RTT of a connection",
    "lowq_tcp_delivered_packets": "Packets that the peers acknowledged",
    "lowq_tcp_marked_packets": "Of these, how many the path marked with CE",
    "lowq_tcp_sent_packets": "Data packets that were sent",
    "lowq_tcp_retransmitted_packets": "Of these, how many were retransmissions",
    "lowq_stat_cpu_seconds": "CPU time of this sample",
}


def percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.2f}" if whole else "-"


def scaled(values: list[int], by: float) -> list[str]:
    return [f"{value * by:.3g}" if value * by < 100 else f"{value * by:.0f}" for value in values] or ["-"] * len(QUANTILES)


HEADS = ("control", "conns", "as Reno", "Mb/s p50", "p90", "p99", "srtt ms p50", "p90", "p99", "min ms p50", "p90", "p99",
         "marked %", "resent %")


def cells(group: str, control: str, row: Row) -> list[str]:
    delivered, marked, sent, resent = row.counts
    return [f"{group + ': ' if group else ''}{control}", str(row.connections), str(sum(row.fallen.values())),
            *scaled(quantiles(row.rates), 8e-6), *scaled(quantiles(row.rtts), 1e-3), *scaled(quantiles(row.min_rtts), 1e-3),
            percent(marked, delivered), percent(resent, sent)]


def table(rows: Rows) -> str:
    lines = [list(HEADS)] + [cells(group, control, row) for (group, control), row in sorted(rows.items())]
    widths = [max(len(line[at]) for line in lines) for at in range(len(HEADS))]
    texts = ["  ".join(f"{word:<{width}}" if not at else f"{word:>{width}}"
                       for at, (word, width) in enumerate(zip(line, widths))) for line in lines]
    for (group, control), row in sorted(rows.items()):
        for reason, count in sorted(row.fallen.items()):
            texts.append(f"{group + ': ' if group else ''}{control}: {count} run as Reno: {REASONS[reason]}")
    return "\n".join(texts)


REASONS = {
    "no-ecn": "no ECN was negotiated: the peer or the path refused it, or the program set the control after connect()",
    "no-accecn": "the peer has no Accurate ECN",
    "no-telemetry": "no telemetry comes back, or a bottleneck does not stamp",
    "other": "the control decided so although ECN was negotiated",
}


def named(values: list[int]) -> Json:
    return {f"p{share * 100:g}": value for share, value in zip(QUANTILES, values)}


def as_json(rows: Rows, seconds: float, cpu: float) -> str:
    """seconds: that the counts cover; 0: since each connection began"""
    told = []
    for (group, control), row in sorted(rows.items()):
        delivered, marked, sent, resent = row.counts
        told.append({
            "group": group, "control": control, "connections": row.connections, "fallen_back": row.fallen,
            "delivery_rate": named(quantiles(row.rates)), "rates": len(row.rates), "app_limited": row.limited,
            "srtt_us": named(quantiles(row.rtts)), "min_rtt_us": named(quantiles(row.min_rtts)),
            "delivered": delivered, "marked": marked, "sent": sent, "retransmitted": resent,
        })
    return json.dumps({"lowq_stat": SCHEMA, "version": version(), "seconds": seconds, "cpu_seconds": round(cpu, 6),
                       "rows": told})


def prometheus(rows: Rows, cpu: float) -> str:
    samples: dict[str, list[str]] = {name: [] for name in METRICS}
    for (group, control), row in sorted(rows.items()):
        labels = f'control="{label(control)}",group="{label(group)}"'
        samples["lowq_tcp_connections"].append(f"{{{labels}}} {row.connections}")
        for reason in REASONS:
            samples["lowq_tcp_fallback_connections"].append(f'{{{labels},reason="{reason}"}} {row.fallen.get(reason, 0)}')
        for name, values, unit in (("delivery_rate_bytes_per_second", row.rates, 1), ("srtt_seconds", row.rtts, 1e-6),
                                   ("min_rtt_seconds", row.min_rtts, 1e-6)):
            for share, value in zip(QUANTILES, quantiles(values)):
                samples["lowq_tcp_" + name].append(f'{{{labels},quantile="{share}"}} {value * unit:.9g}')
        for name, value in zip(("delivered", "marked", "sent", "retransmitted"), row.counts):
            samples[f"lowq_tcp_{name}_packets"].append(f"{{{labels}}} {value}")
    samples["lowq_stat_cpu_seconds"].append(f" {cpu:.6f}")
    lines = []
    for name, about in METRICS.items():
        lines += [f"# HELP {name} {about}", f"# TYPE {name} gauge", *(name + sample for sample in samples[name])]
    return "\n".join(lines)


def write(path: str, text: str) -> None:
    """A reader sees the old file or the new one, whole. A device or a pipe stays what it is."""
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return
    path = os.path.realpath(path)  # a link stays, too
    folder, name = os.path.split(path)
    new = os.path.join(folder, f".{name}.{os.getpid()}")
    try:
        with open(new, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(new, 0o644)
        os.replace(new, path)
    except BaseException:
        try:
            os.unlink(new)
        except OSError:
            pass
        raise
