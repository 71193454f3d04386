# SPDX-License-Identifier: GPL-2.0
"""The figures that a results directory gives."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Iterable, Sequence

from metrics import metric, show
from results import Block, only_row, order, Result
from series import Point, read_csv, read_flows, thin
from plots import (
    Axis, DASHES, duration, Figure, line_style, linear_axis, log_axis, PANEL, Plot, round_log,
    Series, SINGLE, time_axis, WIDE)

MAX_CURVES = 12             # flows drawn in one panel ...
MIN_SHARE = 0.05            # ... each with this share of the largest one's bytes or more


def missing(results: Sequence[Result], have: Iterable[str]) -> str:
    """A sentence that names the rows left out of a figure."""
    have = set(have)
    names = [r.label for r in results if r.row not in have]
    return f" Without data: {', '.join(names)}." if names else ""


def note(result: Result, *parts: tuple[str, str]) -> str:
    """Numbers for a panel's caption: pairs of word and metric."""
    return ", ".join(f"{word} {show(key, result.metrics[key].mean)}"
                     for word, key in parts if key in result.metrics)


def queue_figure(block: Block, bins: int) -> Figure | None:
    """Queue length over time, a panel per row."""
    curves = {}
    for result in block.results:
        for run in result.good[:1]:
            columns = read_csv(run.place / "queue.csv",
                               ("t_s", "qlen_pkts_mean", "qlen_pkts_max"))
            if columns:
                curves[result.row] = thin(bins, *columns)
    if not curves:
        return None
    x, factor = time_axis(max(p[0] for points in curves.values() for p in points))
    peaks = [max(p[2] for p in points) for points in curves.values()]
    floor = 0.0
    if max(peaks) > 20 * max(1.0, min(peaks)):
        floor = 0.1
        y = log_axis(floor, max(peaks) * 1.1, "packets")
        y = y._replace(ticks=[("0", floor), *y.ticks[1:]])
    else:
        y = linear_axis(max(peaks), "packets")
    plots = []
    for r in block.results:
        if r.row not in curves:
            continue
        points: list[Point] = [(t * factor, max(m, floor), max(h, floor))
                               for t, m, h in curves[r.row]]
        series = [Series(f"{r.label}: highest", r.colour, "band", points),
                  Series(f"{r.label}: highest", r.colour, "edge", [(p[0], p[2]) for p in points]),
                  Series(f"{r.label}: mean", r.colour, "line", [p[:2] for p in points])]
        desc = f"Queue of {r.label} from 0 to {x.ticks[-1][0]}: " \
               f"highest {max(p[2] for p in points):g} packets."
        plots.append(Plot(r.label, note(r, ("mean", "qlen_mean_pkts"), ("p99", "qlen_p99_pkts")),
                          r.colour, desc, PANEL, x, y, series))
    scale = "The scale is logarithmic (0 is drawn at its foot) and" if floor else "The scale is"
    text = f"Packets waiting at the bottleneck: line, mean; shade, up to the longest in each " \
           f"interval. {scale} the same in all panels."
    return Figure("queue", "Queue over time", text + missing(block.results, curves),
                  [], plots)


def flow_rates(path: Path) -> tuple[dict[str, dict[float, float]], int]:
    """Gb/s over time of the large flows in a flows.csv, in the order of their starts, and the
    number of other flows."""
    flows: dict[str, dict[float, float]] = {}
    columns = read_csv(path, ("t_s", "throughput_bps"), ("flow",))
    for t, rate, flow in zip(*columns):
        flows.setdefault(flow, {})[t] = rate * 1e-9
    sums = {flow: math.fsum(rates.values()) for flow, rates in flows.items()}
    large = sorted(flows, key=lambda f: -sums[f])[:MAX_CURVES]
    large = [f for f in large if sums[f] >= MIN_SHARE * sums[large[0]]]
    times = sorted(set(columns[0])) if columns else []
    begins = {f: min(flows[f]) for f in large}
    kept = {}
    for flow in sorted(large, key=lambda f: (begins[f], order(f))):
        end = max(flows[flow])          # a time without a line is a time without data
        kept[flow] = {t: flows[flow].get(t, 0.0) for t in times if begins[flow] <= t <= end}
    return kept, len(flows) - len(kept)


def rate_figure(block: Block, bins: int) -> Figure | None:
    """Throughput of each large flow over time, a panel per row."""
    curves: dict[str, dict[str, list[Point]]] = {}
    others = 0
    for result in block.results:
        for run in result.good[:1]:
            flows, small = flow_rates(run.place / "flows.csv")
            others = max(others, small)
            if flows:
                curves[result.row] = {f: thin(bins, list(r), list(r.values()), list(r.values()))
                                      for f, r in flows.items()}
    if not curves:
        return None
    points = [p for drawn in curves.values() for curve in drawn.values() for p in curve]
    x, factor = time_axis(max(p[0] for p in points))
    scale, unit = (1.0, "Gb/s") if max(p[1] for p in points) >= 0.5 else (1e3, "Mb/s")
    y = linear_axis(max(p[1] for p in points) * scale, unit)
    most = max(map(len, curves.values()))
    styles = ["line", *DASHES] if most <= 4 else ["thin"]
    plots = []
    for r in block.results:
        series = [Series(f"{r.label}: flow {i + 1}, {flow}", r.colour, styles[i % len(styles)],
                         [(p[0] * factor, p[1] * scale) for p in curve])
                  for i, (flow, curve) in enumerate(curves.get(r.row, {}).items())]
        if series:
            plots.append(Plot(r.label, note(r, ("Jain", "jain")), r.colour,
                              f"Throughput of {len(series)} flows of {r.label} over time.",
                              PANEL, x, y, series))
    legend = [(f"flow {i + 1}", 0, styles[i]) for i in range(most)] if 1 < most <= 4 else []
    text = f"Throughput of each flow in {unit}; lines that meet share fairly."
    text += f" Drawn are the largest flows; {others} smaller ones are not." if others else ""
    return Figure("rates", "Rates over time", text + missing(block.results, curves), legend, plots)


def cdf_points(values: list[float], width: int, height: int) -> list[Point]:
    """The distribution of sorted `values`, one point per pixel at most."""
    last = None
    points: list[Point] = [(values[0], 0.0)]
    for i, value in enumerate(values, 1):
        pixel = (round(math.log10(value) * width), round(i / len(values) * height))
        if pixel != last or i == len(values):
            points.append((value, i / len(values)))
        last = pixel
    return points


def cdf_figures(block: Block) -> list[Figure]:
    """Distribution of completion times over all seeds, all rows in one plot, by kind of flow."""
    times: dict[str, dict[str, list[float]]] = {}
    open_ended: dict[str, int] = {}
    for result in block.results:
        for run in result.good:
            for flow in read_flows(run.place / "flows.jsonl"):
                kind, took = str(flow.get("kind")), flow.get("duration_ns")
                if kind == "long":
                    continue
                if flow.get("status", "ok") == "ok" and isinstance(took, (int, float)) and took > 0:
                    times.setdefault(kind, {}).setdefault(result.row, []).append(took / 1e3)
                else:
                    open_ended[kind] = open_ended.get(kind, 0) + 1
    figures = []
    for kind, rows in sorted(times.items()):
        for values in rows.values():
            values.sort()
        everything = [v for values in rows.values() for v in values]
        x = log_axis(round_log(min(everything), False), round_log(max(everything), True), "",
                     duration)
        y = Axis(0, 1, [(f"{p} %", p / 100) for p in (0, 25, 50, 75, 100)], "completed")
        have = [r for r in block.results if r.row in rows]
        series = [Series(r.label, r.colour, line_style(r.colour),
                         cdf_points(rows[r.row], 100, SINGLE[1])) for r in have]
        middle = {r.row: rows[r.row][len(rows[r.row]) // 2] for r in have}
        have.sort(key=lambda r: middle[r.row])
        legend = [(f"{r.label}: half in {duration(float(f'{middle[r.row]:.3g}'))}", r.colour,
                   line_style(r.colour)) for r in have]
        word, words = {"rpc": ("Request", "requests"),
                       "incast": ("Incast", "incast flows")}.get(kind, (kind, f"{kind} flows"))
        desc = f"Share of {words} done within a time: " \
               + "; ".join(label for label, _, _ in legend) + "."
        text = f"Share of the {words} that were done within a time, {len(everything)} in all; " \
               f"further left is better, and each line ends at its slowest."
        if open_ended.get(kind):
            text += f" {open_ended[kind]} did not complete and are left out."
        figures.append(Figure("completion-" + re.sub(r"\W+", "-", kind), f"{word} completion times",
                              text + missing(block.results, rows),
                              legend, [Plot("", "", 0, desc, SINGLE, x, y, series)]))
    return figures


def metric_figure(blocks: Sequence[Block], keys: Sequence[str]) -> Figure | None:
    """Each metric against the variants, rows as colours; the first setting, of one row."""
    names = [n for n in dict.fromkeys(k for b in blocks for k in b.variant)
             if len({str(b.variant.get(n)) for b in blocks}) > 1]
    if len(blocks) < 2:
        return None
    by_setting = only_row(blocks) and len(names) > 1
    first, names = (names[0], names[1:]) if by_setting else ("", names)
    points_of: dict[str, list[tuple[str, Result]]] = {}
    colours: dict[str, int] = {}
    labels: list[str] = []
    for b in blocks:
        at = " / ".join(str(b.variant.get(n, "–")) for n in names)
        labels += [] if at in labels else [at]
        for r in b.results:
            who = f"{first}={b.variant.get(first, '–')}" if by_setting else r.label
            colours.setdefault(who, len(colours) + 1 if by_setting else r.colour)
            points_of.setdefault(who, []).append((at, r))
    curves = sorted(colours, key=lambda who: colours[who])
    every = math.ceil(len(labels) / 20)     # more names than this would overlap
    x = Axis(-0.5, len(labels) - 0.5,
             [("" if i % every else s, i) for i, s in enumerate(labels)], " / ".join(names))
    shift = min(0.08 if len(names) == 1 else 0.2, 0.7 / len(curves))
    size = WIDE if sum(len(text) + 2 for text in labels) > 50 else PANEL
    plots = []
    for key in keys:
        how = metric(key)
        series = []
        for i, who in enumerate(curves):
            colour = colours[who]
            points = [(labels.index(at) + (i - (len(curves) - 1) / 2) * shift,
                       *(v * how.scale for v in (s.mean, s.mean - s.half, s.mean + s.half)))
                      for at, r in points_of[who] if (s := r.metrics.get(key))]
            if points:
                if len(names) == 1:
                    series.append(Series(who, colour, "thin", [p[:2] for p in points]))
                series.append(Series(who, colour, "marks", points))
        values = [v for s in series if s.style == "marks" for p in s.points for v in p[1:]]
        if not values or (min(values) == max(values) == 0):
            continue
        low, high = min(values), max(values)
        if low > 0 and high > 30 * low:
            y = log_axis(low * 0.8, high * 1.25, how.unit)
        elif low > 0.5 * high and how.style in ("percent", "index"):
            top = {"percent": 100.0, "index": 1.0}[how.style]
            pad = (max(high, top) - low) * 0.1
            y = linear_axis(max(high, top), how.unit, min(low - pad, 0.95 * top), 3)
        else:
            y = linear_axis(high * 1.05, how.unit, min(0.0, low * 1.05))
        plots.append(Plot(how.name, "", 0, f"{how.name} of each row in each variant.",
                          size, x, y, series))
    if not plots:
        return None
    text = "One plot per metric; bars, where there are any, are the 95 % confidence interval " \
           "over the seeds."
    legend = [(who, colours[who], "marks") for who in curves]
    return Figure("variants", "Across the variants", text, legend, plots)


def own_figures(block: Block, bins: int) -> list[Figure]:
    """The figures of one variant."""
    figures = [queue_figure(block, bins), rate_figure(block, bins), *cdf_figures(block)]
    return [f for f in figures if f]
