// SPDX-License-Identifier: GPL-2.0
#include <err.h>
#include <math.h>
#include <netinet/in.h>

#include "../common/json.h"
#include "account.h"
#include "options.h"
#include "output.h"
#include "report.h"
#include "source.h"
#include "timeline.h"

/* @all: all percentiles, not only mean and p99 */
static void put_us(struct json *j, const char *key, struct dist *d, bool all)
{
	json_open(j, key, '{');
	json_real(j, "mean", 6, dist_mean(d) / 1e3);
	if (all) {
		json_real(j, "p50", 3, dist_percentile(d, 1, 2) / 1e3);
		json_real(j, "p90", 3, dist_percentile(d, 9, 10) / 1e3);
	}
	json_real(j, "p99", 3, dist_percentile(d, 99, 100) / 1e3);
	if (all) {
		json_real(j, "p999", 3, dist_percentile(d, 999, 1000) / 1e3);
		json_real(j, "max", 3, dist_max(d) / 1e3);
		json_real(j, "min", 3, dist_min(d) / 1e3);
	}
	json_close(j, '}');
}

static void put_length(struct json *j, const char *key, struct dist *d)
{
	json_open(j, key, '{');
	json_real(j, "mean", 6, dist_mean(d));
	json_real(j, "p99", 1, dist_percentile(d, 99, 100));
	json_real(j, "max", 0, dist_max(d));
	json_real(j, "stddev", 6, dist_stddev(d));
	json_close(j, '}');
}

static void put_ecn(struct json *j, const char *key, const u64 *n)
{
	json_open(j, key, '{');
	json_int(j, "not_ect", n[NOT_ECT]);
	json_int(j, "ect0", n[ECT0]);
	json_int(j, "ect1", n[ECT1]);
	json_int(j, "ce", n[CE]);
	json_close(j, '}');
}

static const char *proto_name(u8 proto)
{
	static char num[4];

	switch (proto) {
	case IPPROTO_TCP:
		return "tcp";
	case IPPROTO_UDP:
		return "udp";
	case IPPROTO_ICMP:
		return "icmp";
	case IPPROTO_ICMPV6:
		return "icmp6";
	}
	snprintf(num, sizeof(num), "%u", proto);
	return num;
}

/* Segmentation between the captures makes counts of drops meaningless: null. */
static void put_dropped(struct json *j, const char *key, u64 dropped, bool segmented)
{
	json_real(j, key, 0, segmented ? NAN : (double)dropped);
}

static void put_flow(struct json *j, struct flow *f)
{
	json_open(j, NULL, '{');
	json_str(j, "flow", flow_name(f));
	json_str(j, "proto", proto_name(f->key.proto));
	json_int(j, "packets", f->packets);
	json_int(j, "packets_in", f->packets_in);
	json_int(j, "bytes", f->bytes);
	json_int(j, "payload_bytes", f->payload);
	json_real(j, "goodput_bps", 3, (double)f->fresh * 8 * NSEC / totals.duration);
	json_int(j, "marked", f->marked);
	put_dropped(j, "dropped", f->dropped, f->segmented);
	json_int(j, "unmatched_out", f->unmatched_out);
	json_int(j, "retransmitted", f->retrans);
	put_us(j, "delay_us", &f->delay, false);
	if (opt.gaps) {
		put_us(j, "gap_us", &f->gap_out, true);
		put_us(j, "gap_in_us", &f->gap_in, true);
	}
	json_close(j, '}');
}

/* Jain's index over goodput; NAN if there is none. */
static double jain(void)
{
	long double sum = 0, sq = 0;
	u64 n = 0;

	for (u32 i = 0; i < nflows; i++) {
		long double x = flows[i]->fresh;

		n += x > 0;
		sum += x;
		sq += x * x;
	}
	return sum * sum / (n * sq);
}

static void put_flows(struct json *j)
{
	json_open(j, "flows", '[');
	flows_sort();
	for (u32 i = 0; i < nflows; i++) {
		if (!flows[i]->packets && !flows[i]->packets_in)
			continue;
		json_newline(j);
		put_flow(j, flows[i]);
	}
	json_close(j, ']');
}

/* @segmented: packets segmented on one side only; @lost: packets that the captures lost */
static void put_result(u64 segmented, u64 lost)
{
	struct json j = { .file = outfile[OUT_JSON].f };
	long double bps = (long double)totals.bytes_out * 8 * NSEC / totals.duration;
	struct source *s;
	char first[24];
	u64 ignored = 0;

	for_each_source(s)
		ignored += s->ignored;
	/* a string, because numbers of JSON are exact up to 2^53 only */
	snprintf(first, sizeof(first), "%llu", totals.first);

	json_open(&j, NULL, '{');
	json_int(&j, "packets_in", totals.in);
	json_int(&j, "packets_out", totals.out);
	json_int(&j, "bytes_out", totals.bytes_out);
	json_int(&j, "matched", totals.matched);
	put_dropped(&j, "dropped", totals.dropped, segmented);
	json_int(&j, "unresolved", totals.unresolved);
	json_int(&j, "unmatched_out", totals.unmatched_out);
	json_int(&j, "queued_at_start", totals.queued_at_start);
	json_int(&j, "segmented", segmented);
	json_int(&j, "super_packets", totals.super_out);
	json_int(&j, "ignored", ignored);
	json_int(&j, "capture_drops", lost);
	json_int(&j, "duration_ns", totals.duration);
	json_str(&j, "first_ns", first);
	json_real(&j, "utilisation", 6, bps / opt.rate);	/* NAN or infinite without a rate */
	json_real(&j, "throughput_bps", 3, bps);
	put_us(&j, "delay_us", &totals.delay, true);
	put_length(&j, "qlen_pkts", &queue_packets);
	put_length(&j, "qlen_bytes", &queue_bytes);
	json_open(&j, "ecn", '{');
	put_ecn(&j, "in", totals.ecn_in);
	put_ecn(&j, "out", totals.ecn_out);
	json_close(&j, '}');
	json_int(&j, "marked", totals.marked);
	json_real(&j, "mark_fraction", 9, (double)totals.marked / totals.matched);
	put_dropped(&j, "dropped_not_ect", totals.dropped_ecn[NOT_ECT], segmented);
	put_dropped(&j, "dropped_ect0", totals.dropped_ecn[ECT0], segmented);
	put_dropped(&j, "dropped_ect1", totals.dropped_ecn[ECT1], segmented);
	put_dropped(&j, "dropped_ce", totals.dropped_ecn[CE], segmented);
	json_real(&j, "jain", 6, jain());
	put_flows(&j);
	json_close(&j, '}');
	fputc('\n', j.file);
}

/* Ends the program where a side has no packets to measure. */
static void check_empty(bool out)
{
	const char *name = NULL;
	u64 usable = 0, all = 0;
	struct source *s;

	for_each_source(s) {
		if (s->out != out)
			continue;
		name = s->name;
		all += s->packets;
		usable += s->packets - s->ignored;
	}
	if (usable)
		return;
	if (all)
		errx(1, "%s: none of %llu packets is IP", name, all);
	errx(1, "%s: no packets%s", name, opt.filter ? " that pass --filter" : "");
}

/* Ends the program where the segments of super-packets cannot be counted. */
static void check_super(void)
{
	for (u32 i = 0; i < nflows; i++)
		if (flows[i]->uncounted)
			errx(1, "%s: %llu packets larger than any frame, and no SYN says the MSS: capture from the start, say --mss, or turn offloads off (ethtool -K DEV tso off gso off gro off)",
			     flow_name(flows[i]), flows[i]->uncounted);
}

/* Marks the flows segmented on one side only; returns how many of their packets left unmatched. */
static u64 check_segmented(void)
{
	u64 packets = 0;

	for (u32 i = 0; i < nflows; i++) {
		struct flow *f = flows[i];

		f->segmented = f->split_out && f->max_in != f->max_out;
		if (f->segmented)
			packets += f->split_out;
	}
	return packets;
}

int report(void)
{
	u64 segmented, lost = 0;
	struct source *s;

	check_empty(false);
	check_empty(true);
	check_super();
	account_end();
	if (!totals.in && !totals.out)
		errx(1, "no packets between --from and --to");
	segmented = check_segmented();
	for_each_source(s) {
		lost += s->drops;
		if (s->late)
			warnx("warning: %s: %llu packets are out of order by more than 1 ms: queue lengths may be off",
			      s->name, s->late);
	}
	put_result(segmented, lost);
	outputs_close();

	if (totals.super_out)
		warnx("note: %llu super-packets (TSO, GSO or GRO) counted as segments of their flows' MSS",
		      totals.super_out);
	if (timeline_rows_left_out())
		warnx("the series has no more than 2000000 rows; %llu are left out: take a longer --bin",
		      timeline_rows_left_out());
	if (segmented)
		warnx("%llu packets unmatched because segmented on one side only: turn offloads off (ethtool -K DEV tso off gso off gro off)",
		      segmented);
	else if (totals.unmatched_out)
		warnx("warning: %llu packets left that had not come in: other traffic, changed in between, or longer in the queue than --gap",
		      totals.unmatched_out);
	for_each_source(s) {
		if (s->drops)
			warnx("%s: the kernel lost %llu packets of the capture: take a larger --buffer",
			      s->name, s->drops);
	}
	return segmented || lost || timeline_rows_left_out();
}
