# SPDX-License-Identifier: GPL-2.0
"""How each metric is named, scaled and written."""

from __future__ import annotations

from typing import NamedTuple


class Metric(NamedTuple):
    """How one metric is shown; values in result.json times scale give unit."""
    head: tuple[str, str]   # the two lines of its heading in a text table
    name: str
    unit: str
    scale: float
    style: str              # "percent", "count", "index" or "number"
    what: str

# of transfers, kB
SIZES = {3: "3 kB", 12: "12 kB", 30: "30 kB", 100: "100 kB", 300: "300 kB", 1000: "1 MB", 3000: "3 MB"}

METRICS: dict[str, Metric] = {
    "utilisation": Metric(("util", "%"), "utilisation", "%", 100, "percent",
                          "share of the bottleneck's rate that was used"),
    "delay_mean_us": Metric(("delay", "mean us"), "queueing delay, mean", "µs", 1, "number",
                            "how long packets waited in the bottleneck's queue, on average"),
    "delay_p99_us": Metric(("delay", "p99 us"), "queueing delay, p99", "µs", 1, "number",
                           "99 of 100 packets waited no longer than this"),
    "rpc_p50_us": Metric(("request", "p50 us"), "request, p50", "µs", 1, "number",
                         "half of the requests were answered in this time or less"),
    "rpc_p90_us": Metric(("request", "p90 us"), "request, p90", "µs", 1, "number",
                         "90 of 100 requests were answered in this time or less"),
    "rpc_p99_us": Metric(("request", "p99 us"), "request, p99", "µs", 1, "number",
                         "99 of 100 requests were answered in this time or less"),
    "round_mean_us": Metric(("query", "mean us"), "query, mean", "µs", 1, "number",
                            "how long it took until all answers of a query were complete, on average"),
    "round_p50_us": Metric(("query", "p50 us"), "query, p50", "µs", 1, "number",
                           "half of the queries were complete in this time or less"),
    "round_p99_us": Metric(("query", "p99 us"), "query, p99", "µs", 1, "number",
                           "99 of 100 queries were complete in this time or less"),
    "marks": Metric(("marks", ""), "marks", "", 1, "count",
                    "packets that the queue marked CE (congestion experienced)"),
    "drops": Metric(("drops", ""), "drops", "", 1, "count", "packets that the queue dropped"),
    "jain": Metric(("Jain", ""), "Jain", "", 1, "index",
                   "Jain's fairness index of the long flows: 1 is equal shares, "
                   "1/n is one of n flows taking all"),
    "goodput_bps": Metric(("goodput", "Gb/s"), "goodput", "Gb/s", 1e-9, "number",
                          "payload delivered per second, all flows together"),
    "qlen_mean_pkts": Metric(("queue", "mean pk"), "queue, mean", "packets", 1, "number",
                             "queue length averaged over time"),
    "qlen_stddev_pkts": Metric(("queue", "sd pk"), "queue, std. deviation", "packets", 1, "number",
                               "how much the queue length varies"),
    "qlen_p99_pkts": Metric(("queue", "p99 pk"), "queue, p99", "packets", 1, "number",
                            "the queue was no longer than this for 99 % of the time"),
    "rpc_count": Metric(("requests", ""), "requests", "", 1, "count", "requests completed"),
    "retrans": Metric(("retrans", ""), "retransmits", "", 1, "count",
                      "segments that were retransmitted"),
    "delay_p50_us": Metric(("delay", "p50 us"), "queueing delay, p50", "µs", 1, "number",
                           "half of the packets waited no longer than this"),
    "delay_max_us": Metric(("delay", "max us"), "queueing delay, max", "µs", 1, "number",
                           "the longest that any packet waited"),
    "throughput_bps": Metric(("rate", "Gb/s"), "throughput", "Gb/s", 1e-9, "number",
                             "bytes that crossed the bottleneck per second, headers included"),
    "mark_fraction": Metric(("marked", "%"), "marked", "%", 100, "number",
                            "share of the packets that the queue marked CE"),
    "failed": Metric(("failed", ""), "failed", "", 1, "count",
                     "flows or requests that did not complete"),
    "timeouts": Metric(("RTOs", ""), "timeouts", "", 1, "count",
                       "retransmission timeouts, as the hosts count them"),
    "alpha_mean": Metric(("alpha", "%"), "alpha, mean", "%", 100, "number",
                         "the sender's estimate of the marked fraction"),
    "alpha_over_fraction": Metric(("alpha /", "marked"), "alpha / marked", "", 1, "index",
                                  "the estimate divided by the true fraction: 1 is right"),
    "queue_max_kb": Metric(("queue", "max kB"), "queue, max", "kB", 1, "count",
                           "the longest queue"),
    "joined_rtts": Metric(("joined", "RTTs"), "joined after", "RTTs", 1, "count",
                          "RTTs from the second flow's start until the total rate is right "
                          "and the queue is short"),
    "joined_together_rtts": Metric(("so in 5", "RTTs"), "joined after, 5 RTTs together", "RTTs", 1, "count",
                                   "RTTs from the second flow's start until 5 in a row have the right rate "
                                   "together, and each a mean queue of at most 5 packets"),
    "reclaimed_rtts": Metric(("reclaimed", "RTTs"), "reclaimed after", "RTTs", 1, "count",
                             "RTTs from the second flow's end until its share is used again"),
    "join_queue_max": Metric(("queue", "max pk"), "queue while joining, max", "packets", 1,
                             "count",
                             "the longest queue in the 20 RTTs after the second flow's start"),
    "jain_end": Metric(("Jain", "end"), "Jain at the end", "", 1, "index",
                       "Jain's fairness index of both flows in their last 50 RTTs together"),
    "found_p50_pkts": Metric(("found", "p50 pk"), "queue found, p50", "packets", 1, "number",
                             "half of the packets found no longer queue than this"),
    "found_p99_pkts": Metric(("found", "p99 pk"), "queue found, p99", "packets", 1, "number",
                             "99 of 100 packets found no longer queue than this"),
    "jain_least": Metric(("Jain", "least"), "Jain, least", "", 1, "index",
                         "the least of Jain's fairness index over the intervals between joins and ends"),
    "jain_mean": Metric(("Jain", "mean"), "Jain, mean", "", 1, "index",
                        "the mean of Jain's fairness index over these intervals"),
    "variation": Metric(("rate", "sd %"), "variation of rates", "%", 100, "number",
                        "standard deviation of a flow's rate over short intervals, by its mean"),
    "s1_mbps": Metric(("S1", "Mb/s"), "sender of S1", "Mb/s", 1, "number",
                      "rate of a sender behind both bottlenecks, headers included"),
    "s2_mbps": Metric(("S2", "Mb/s"), "sender of S2", "Mb/s", 1, "number",
                      "rate of a sender behind the 10 Gb/s bottleneck, headers included"),
    "s3_mbps": Metric(("S3", "Mb/s"), "sender of S3", "Mb/s", 1, "number",
                      "rate of a sender behind the 1 Gb/s bottleneck, headers included"),
    "share_off": Metric(("unfair", "%"), "furthest from its fair share", "%", 100, "number",
                     "how far the group that is furthest from its fair share is from it"),
    "late_share": Metric(("with", "RTO %"), "queries with a timeout", "%", 100, "percent",
                         "queries that took a least RTO longer than the link needs"),
    "seen_pkts": Metric(("seen", "mean pk"), "in the queueing discipline", "packets", 1, "number",
                        "what of the mean queue was in the queueing discipline, which marks"),
    "ring_pkts": Metric(("ring", "mean pk"), "in the ring", "packets", 1, "number",
                        "what of it was behind, in the ring, with the packet that is being sent"),
    "lost": Metric(("lost", ""), "lost", "", 1, "count", "packets that any port of the network dropped"),
    "pauses": Metric(("pauses", ""), "pauses", "", 1, "count", "how often PFC paused a host or a switch"),
    "host_drops": Metric(("host", "drops"), "drops at the receiver", "", 1, "count",
                         "packets for which the receiver's CPU had no more room"),
    "host_cpu": Metric(("CPU", "%"), "receiver's CPU", "%", 100, "percent",
                       "time that the receiver's CPU needed for packets, of the time that flows took"),
    "probe_share": Metric(("probes", "%"), "probes", "%", 100, "number",
                          "share of the bytes at the bottleneck that are telemetry probes"),
    "down_rtts": Metric(("down", "RTTs"), "rate halves: followed after", "RTTs", 1, "count",
                        "RTTs until the sender follows a drop of the tighter link's rate"),
    "up_rtts": Metric(("up", "RTTs"), "rate doubles: followed after", "RTTs", 1, "count",
                      "RTTs until the sender follows a rise of the tighter link's rate"),
    "down_together_rtts": Metric(("down in 5", "RTTs"), "rate halves: followed after, 5 RTTs together", "RTTs",
                                 1, "count",
                                 "RTTs from the drop until 5 in a row have the right rate together, and "
                                 "each a mean queue of at most 5 packets"),
    "up_together_rtts": Metric(("up in 5", "RTTs"), "rate doubles: followed after, 5 RTTs together", "RTTs", 1,
                               "count", "the same, from the rise"),
    "down_queue_max": Metric(("queue", "max pk"), "queue after the drop, max", "packets", 1,
                             "count",
                             "the longest queue in the 20 RTTs after the drop"),
    "queue_after_mean": Metric(("queue", "after pk"), "queue later, mean", "packets", 1, "number",
                               "the mean queue from 20 RTTs after the drop on"),
    "count_small": Metric(("small", "flows"), "flows under 100 kB", "", 1, "count",
                          "the number of these flows"),
    "slow_p50_small": Metric(("small", "p50"), "slowdown under 100 kB, p50", "×", 1, "number",
                             "completion time of small flows divided by that in an idle network"),
    "slow_p95_small": Metric(("small", "p95"), "slowdown under 100 kB, p95", "×", 1, "number",
                             "the same, 95 of 100 flows"),
    "excess_p95_small": Metric(("small", "excess"), "excess under 100 kB, p95", "×", 1, "number",
                               "what 95 of 100 small flows take beyond the time in an idle network, in such times"),
    "slow_p99_small": Metric(("small", "p99"), "slowdown under 100 kB, p99", "×", 1, "number",
                             "the same, 99 of 100 flows"),
    "slow_p95_medium": Metric(("medium", "p95"), "slowdown, 100 kB to 1 MB, p95", "×", 1, "number",
                              "completion time of flows of that size divided by that in an idle "
                              "network, 95 of 100 flows"),
    "slow_p99_medium": Metric(("medium", "p99"), "slowdown, 100 kB to 1 MB, p99", "×", 1, "number",
                              "completion time of flows of that size divided by that in an idle "
                              "network, 99 of 100 flows"),
    "drawn_load": Metric(("load", "drawn %"), "load drawn", "%", 100, "percent",
                         "what the requests drawn come to, with headers, of the trunks"),
    "slow_p50_large": Metric(("large", "p50"), "slowdown over 1 MB, p50", "×", 1, "number",
                             "completion time of large flows divided by that in an idle network"),
    "slow_p95_large": Metric(("large", "p95"), "slowdown over 1 MB, p95", "×", 1, "number",
                             "the same, 95 of 100 flows"),
    "slow_p99_large": Metric(("large", "p99"), "slowdown over 1 MB, p99", "×", 1, "number",
                             "the same, 99 of 100 flows"),
    "back_gbps": Metric(("back", "Gb/s"), "goodput on the way back", "Gb/s", 1, "number",
                        "payload that the flows on the way back delivered per second"),
    "back_mbps": Metric(("back", "Mb/s"), "goodput on the way back", "Mb/s", 1, "number",
                        "payload that the flows on the way back delivered per second"),
    "beside_gbps": Metric(("beside", "Gb/s"), "goodput beside", "Gb/s", 1, "number",
                          "payload that each flow beside the long one delivered per second"),
    "long_gbps": Metric(("long", "Gb/s"), "long flow's goodput", "Gb/s", 1, "number",
                        "payload that the long flow delivered per second"),
    "long_drops": Metric(("long", "drops"), "long flow's drops", "", 1, "count",
                         "packets of the long flow that the queue dropped"),
    "stable_drops": Metric(("ECT", "drops"), "ECT packets dropped", "", 1, "count",
                           "packets dropped that were ECT: LDCP's after its first RTT, all of "
                           "DCTCP's"),
    "first_rtt_drops": Metric(("Not-ECT", "drops"), "Not-ECT packets dropped", "", 1, "count",
                              "packets of LDCP's first RTT that the queue dropped, as intended"),
    "ideal_us": Metric(("ideal", "us"), "ideal", "µs", 1, "number", "RTT + size / rate"),
    "over_ideal": Metric(("over", "ideal"), "p50 / ideal", "×", 1, "index",
                         "median completion time divided by RTT + size / rate"),
    "ratio": Metric(("ratio", ""), "ratio of rates", "", 1, "number",
                    "the first flow's rate divided by the other's"),
    "prague_mbps": Metric(("Prague", "Mb/s"), "Prague", "Mb/s", 1, "number", "Prague's goodput"),
    "cubic_mbps": Metric(("CUBIC", "Mb/s"), "CUBIC", "Mb/s", 1, "number", "CUBIC's goodput"),
    "first_mbps": Metric(("first", "Mb/s"), "first flow", "Mb/s", 1, "number",
                         "the first flow's goodput"),
    "short_mbps": Metric(("short", "Mb/s"), "flow with the shorter RTT", "Mb/s", 1, "number",
                         "goodput of the flow with the shorter RTT"),
    "long_mbps": Metric(("other", "Mb/s"), "other flow", "Mb/s", 1, "number",
                        "goodput of the flow with the longer RTT"),
    "prague_p99_us": Metric(("Prague", "p99 us"), "Prague's delay, p99", "µs", 1, "number",
                            "queueing delay of Prague's packets"),
    "cubic_p99_us": Metric(("CUBIC", "p99 us"), "CUBIC's delay, p99", "µs", 1, "number",
                           "queueing delay of CUBIC's packets"),
    "prague_p50_us": Metric(("Prague", "p50 us"), "Prague's delay, p50", "µs", 1, "number",
                            "queueing delay of Prague's packets"),
    "prague_p90_us": Metric(("Prague", "p90 us"), "Prague's delay, p90", "µs", 1, "number",
                            "queueing delay of Prague's packets"),
    "prague_p999_us": Metric(("Prague", "p99.9 us"), "Prague's delay, p99.9", "µs", 1, "number",
                             "queueing delay of Prague's packets"),
    "cubic_p50_us": Metric(("CUBIC", "p50 us"), "CUBIC's delay, p50", "µs", 1, "number",
                           "queueing delay of CUBIC's packets"),
    "cubic_p90_us": Metric(("CUBIC", "p90 us"), "CUBIC's delay, p90", "µs", 1, "number",
                           "queueing delay of CUBIC's packets"),
    "cubic_p999_us": Metric(("CUBIC", "p99.9 us"), "CUBIC's delay, p99.9", "µs", 1, "number",
                            "queueing delay of CUBIC's packets"),
    "settled_s": Metric(("settled", "s"), "time until the rate is right", "s", 1, "number",
                        "time from the event to the first instant from which on the rate is right"),
    "used_from_2s": Metric(("used 2-", "11 s %"), "used from second 2 to 11", "%", 100, "percent",
                           "share of the link's rate that was used from the second to the eleventh second after "
                           "the start"),
    "start_max_us": Metric(("start", "max us"), "longest delay in the first 3 s", "µs", 1, "number",
                           "the longest that a packet waited in the first three seconds"),
    "filled_us": Metric(("filled", "us"), "time until the link is used", "µs", 1, "number",
                        "time from the event until 90 % of the link are used for half a millisecond"),
    "app_gbps": Metric(("app", "Gb/s"), "application's goodput", "Gb/s", 1, "number",
                       "payload per second of the flow that its application limits"),
    "detect_s": Metric(("detect", "s"), "time until detected", "s", 1, "number",
                       "time from the start until Prague took the queue for a Classic one"),
    "classic_share": Metric(("classic", "%"), "in classic mode", "%", 100, "percent",
                            "share of the time in which Prague took the queue for a Classic one"),
    "over_s": Metric(("over", "50 ms s"), "waits above 50 ms", "s", 1, "number",
                     "how long packets waited more than 50 ms, in steps of 0.1 s"),
    "replayed": Metric(("replay", "drops"), "dropped by anti-replay", "", 1, "count",
                       "packets that arrived too late for the tunnel's anti-replay window"),
    "early_drops": Metric(("early", "drops"), "drops in the first 2 s", "", 1, "count",
                          "packets dropped in the first two seconds"),
    "second_mbps": Metric(("second", "Mb/s"), "second flow", "Mb/s", 1, "number",
                          "goodput of the second flow"),
    "phase_p99_us": Metric(("phase", "p99 us"), "delay meanwhile, p99", "µs", 1, "number",
                           "p99, over intervals of 10 ms, of the longest delay in each, until the rate "
                           "is right and for 2 s at least"),
    "drop_p99_us": Metric(("drop", "p99 us"), "delay after the drop, p99", "µs", 1, "number",
                          "queueing delay in the second after the rate dropped"),
    "drop_max_us": Metric(("drop", "max us"), "delay after the drop, max", "µs", 1, "number",
                          "the longest wait in that second"),
    "bound_us": Metric(("bound", "us"), "least possible", "µs", 1, "number",
                       "delay by the packets in flight at the drop and those sent until its "
                       "first mark returns: four RTTs"),
    "util_after": Metric(("util", "after %"), "utilisation afterwards", "%", 100, "percent",
                         "use of the link in the 4 s after the rate has returned"),
    "queue_p90_bytes": Metric(("queue", "p90 kB"), "queue, p90", "kB", 1e-3, "number",
                              "the queue was no longer than this for 90 % of the time"),
    "queue_at_rest": Metric(("rests", "kB"), "DCQCN's fixed point", "kB", 1e-3, "number",
                            "the queue at DCQCN's fixed point, by the formula in the scenario"),
    "qlen_p99_over_kmax": Metric(("p99 /", "K_max"), "queue p99 / K_max", "", 1, "index",
                                 "the queue's p99 divided by the threshold that marks all"),
    "goodput_mbps": Metric(("goodput", "Mb/s"), "goodput", "Mb/s", 1, "number",
                           "payload delivered per second, all queue pairs together"),
    "go_back_n": Metric(("go-back", "N"), "go-back-N", "", 1, "count",
                        "times that a sender went back and retransmitted all after a loss"),
    "useful": Metric(("useful", "%"), "useful", "%", 100, "percent",
                     "READ responses that a READ needed, of those that left the queue"),
    "last_ms": Metric(("last", "ms"), "last READ", "ms", 1, "number", "until the last READ was answered"),
    "victim_mbps": Metric(("victim", "Mb/s"), "victim", "Mb/s", 1, "number", "goodput of x -> y"),
    "congested_mbps": Metric(("f -> g", "Mb/s"), "f -> g", "Mb/s", 1, "number",
                             "rate of f -> g"),
    "victim_share": Metric(("victim", "share"), "victim's share", "%", 100, "percent",
                           "goodput of x -> y divided by what it could get"),
    **{f"used_rtt{number}": Metric((f"RTT {number}", "%"), f"used in the {which} RTT", "%", 100, "percent",
                                   f"share of the bottleneck's rate that was used in the {which} RTT with data")
       for number, which in ((1, "first"), (2, "second"), (3, "third"))},
    "used_ten": Metric(("ten", "RTTs %"), "used in ten RTTs", "%", 100, "percent",
                       "share of the bottleneck's rate that was used in the first ten RTTs with data"),
    "short_us": Metric(("short", "us"), "short flow", "µs", 1, "number", "how long the short flow took"),
    **{f"k{kilo}_p{part}_us": Metric((size, f"p{part} ms"), f"{size}, p{part}", "ms", 1e-3, "number",
                                     f"{share} such transfers took this time or less, handshake included")
       for kilo, size in SIZES.items()
       for part, share in ((50, "half of"), (99, "99 of 100"))},
    **{f"k{kilo}_first_us": Metric((size, "first ms"), f"{size}, first byte, p50", "ms", 1e-3, "number",
                                   "half of such transfers had their first byte there in this time or less")
       for kilo, size in SIZES.items()},
    **{f"k{kilo}_first99_us": Metric((size, "first p99 ms"), f"{size}, first byte, p99", "ms", 1e-3, "number",
                                     "99 of 100 such transfers had their first byte there in this time or less")
       for kilo, size in SIZES.items()},
    "page_p50_us": Metric(("page", "p50 ms"), "page, p50", "ms", 1e-3, "number",
                          "half of the pages were complete in this time or less"),
    "page_max_us": Metric(("page", "max ms"), "page, slowest", "ms", 1e-3, "number",
                          "the slowest page"),
    "late_segments": Metric(("late", "segments"), "late segments", "", 1, "count",
                            "segments of video that took longer than they play"),
    "beside_mbps": Metric(("beside", "Mb/s"), "rate of the long flows", "Mb/s", 1, "number",
                          "what the long flows beside carried in the meantime"),
    "video_mbps": Metric(("video", "Mb/s"), "rate of the video", "Mb/s", 1, "number",
                         "mean rate of the segments that were chosen"),
    "call_p50_us": Metric(("call", "p50 ms"), "one-way delay, p50", "ms", 1e-3, "number",
                          "half of the call's packets took this time or less, one way"),
    "call_p99_us": Metric(("call", "p99 ms"), "one-way delay, p99", "ms", 1e-3, "number",
                          "99 of 100 of the call's packets took this time or less, one way"),
    "call_p999_us": Metric(("call", "p99.9 ms"), "one-way delay, p99.9", "ms", 1e-3, "number",
                           "999 of 1000 of the call's packets took this time or less, one way"),
    "call_lost": Metric(("call", "lost"), "packets lost", "", 1, "count",
                        "packets of the call that were lost"),
    "retransmitted_permille": Metric(("retrans", "per 1000"), "retransmitted", "of 1000", 1, "number",
                                     "segments that the first flow retransmitted, of 1000 that it sent"),
    "rpm": Metric(("round trips", "per minute"), "responsiveness", "round trips/min", 1, "number",
                  "round trips per minute while the link is loaded; more is better"),
    "own_us": Metric(("loaded", "ms"), "answer over a loaded connection", "ms", 1e-3, "number",
                     "mean of the fastest 95 of 100 answers over a loaded connection"),
    "foreign_us": Metric(("new", "ms"), "answer over a new connection", "ms", 1e-3, "number",
                         "mean of the fastest 95 of 100 answers over a new connection, without its handshake"),
}
EXTRA = ("goodput_bps", "qlen_mean_pkts", "qlen_stddev_pkts", "qlen_p99_pkts", "rpc_count",
         "retrans", "delay_p50_us", "delay_max_us", "throughput_bps", "mark_fraction")
#          known, and shown by default only where there is room


def metric(key: str) -> Metric:
    """How to show `key`; an unknown one is shown under its own name."""
    return METRICS.get(key) or Metric((key, ""), key, "", 1, "number", "")


def show_number(value: float, style: str = "number") -> str:
    """`value` with a sensible number of digits."""
    size = abs(value)
    if style == "percent":
        return f"{value:.1f}"
    if style == "index":
        return f"{value:.3f}"
    if value == int(value) and (style == "count" or size >= 100 or value == 0):
        return f"{value:.0f}"
    if style == "count":
        return f"{value:.0f}" if size >= 100 else f"{value:.1f}"
    for limit, digits in ((100, 0), (10, 1), (1, 2), (0.01, 3)):
        if size >= limit:
            return f"{value:.{digits}f}"
    return f"{value:.2g}"


def rough(value: float) -> str:
    """`value` with two digits, or all before the point."""
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}" if value >= 1 else f"{value:.2g}"


def show(key: str, value: float) -> str:
    """A value of metric `key` in the unit of its heading."""
    how = metric(key)
    return show_number(value * how.scale, how.style)
