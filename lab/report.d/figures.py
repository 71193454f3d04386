# SPDX-License-Identifier: GPL-2.0
"""The figures that a results directory gives."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Iterable, Sequence

from metrics import metric, show
from results import Block, only_row, order, Result, same_everywhere, varied
from words import say
from series import read_csv, read_flows, thin
from plots import (
    Axis, DASHES, duration, Figure, line_style, linear_axis, log_axis, PANEL, Plot, Point, round_log,
    Series, SINGLE, time_axis, value_axis, WIDE)

MAX_DOTS = 8                # metrics in the plot of all variants
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
    found: dict[str, list[list[float]]] = {}
    curves: dict[str, list[Point]] = {}
    for result in block.results:
        for run in result.good[:1]:
            columns = read_csv(run.place / "queue.csv",
                               ("t_s", "qlen_pkts_mean", "qlen_pkts_max", "throughput_bps"))
            if columns:
                found[result.row] = columns
    if not found:
        return None
    # what is watched may be longer than what is sent
    end = max((t for times, _, _, rates in found.values() for t, rate in zip(times, rates) if rate), default=math.inf)
    for row, columns in found.items():
        lines = [line[:3] for line in zip(*columns) if line[0] <= end]
        if lines:
            curves[row] = thin(bins, *map(list, zip(*lines)))
    times = [p[0] for points in curves.values() for p in points]
    x, factor = time_axis(min(times), max(times))
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
        desc = f"Queue of {r.label} to {x.ticks[-1][0]}: " \
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
    x, factor = time_axis(min(p[0] for p in points), max(p[0] for p in points))
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
    """Each metric in each variant, rows as colours; the first setting, of one row. At most
    MAX_DOTS metrics; those that are 0 everywhere have no plot."""
    names = varied(blocks)
    if len(blocks) < 2:
        return None
    by_setting = only_row(blocks) and len(names) > 1
    first, names = (names[:1], names[1:]) if by_setting else ([], names)
    points_of: dict[str, list[tuple[int, Result]]] = {}
    colours: dict[str, int] = {}
    labels: dict[tuple[str, ...], str] = {}
    for b in blocks:
        settings = tuple(str(b.variant.get(n, "")) for n in names)
        labels.setdefault(settings, say(b.words[n] for n in names if n in b.words))
        at = list(labels).index(settings)
        for r in b.results:
            who = say(b.words[n] for n in first if n in b.words) if first else r.label
            colours.setdefault(who, len(colours) + 1 if first else r.colour)
            points_of.setdefault(who, []).append((at, r))
    curves = sorted(colours, key=lambda who: colours[who])
    y = Axis(-0.5, len(labels) - 0.5, [(s, i) for i, s in enumerate(labels.values())], "")
    shift = 0.7 / len(curves)
    plots: list[Plot] = []
    zero: list[str] = []
    for key in keys:
        how = metric(key)
        series = []
        for i, who in enumerate(curves):
            offset = (i - (len(curves) - 1) / 2) * shift
            points: list[Point] = [
                (s.mean * how.scale, at + offset, (s.mean - s.half) * how.scale,
                 (s.mean + s.half) * how.scale)
                for at, r in points_of[who] if (s := r.metrics.get(key))]
            series += [Series(who, colours[who], "marks", points)] if points else []
        means = [p[0] for s in series for p in s.points]
        if means and min(means) == max(means) == 0:
            zero.append(how.name)
        elif means and len(plots) < MAX_DOTS:
            ends = [v for s in series for p in s.points for v in p[2:]]
            plots.append(Plot(how.name, "", 0, f"{how.name} of each row in each variant.", WIDE,
                              value_axis(means, ends, how.unit, how.style), y, series))
    if not plots:
        return None
    text = "A line is a variant, a point the mean over the seeds; a bar, where it is longer than " \
           "the point, is the 95 % confidence interval."
    same = same_everywhere(blocks)
    text += f" All lines: {say(same)}." if same else ""
    text += f" 0 everywhere: {', '.join(zero)}." if zero else ""
    legend = [(who, colours[who], "marks") for who in curves]
    return Figure("variants", "Across the variants", text, legend, plots, True)


def own_figures(block: Block, bins: int) -> list[Figure]:
    """The figures of one variant."""
    figures = [queue_figure(block, bins), rate_figure(block, bins), *cdf_figures(block)]
    return [f for f in figures if f]
