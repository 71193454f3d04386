// SPDX-License-Identifier: GPL-2.0
#include <err.h>
#include <math.h>
#include <netinet/in.h>

#include "../common/json.h"
#include "options.h"
#include "output.h"
#include "report.h"
#include "source.h"

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

/* @duration: of the window, ns */
static void put_flow(struct json *j, struct flow *f, u64 duration)
{
	json_open(j, NULL, '{');
	json_str(j, "flow", flow_name(f));
	json_str(j, "proto", proto_name(f->key.proto));
	json_int(j, "packets", f->packets);
	json_int(j, "packets_in", f->packets_in);
	json_int(j, "bytes", f->bytes);
	json_int(j, "payload_bytes", f->payload);
	json_real(j, "goodput_bps", 3, (double)f->fresh * 8 * NSEC / duration);
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
static double jain(const struct queue *q)
{
	const struct flows *all = &q->hop->flows;
	long double sum = 0, sq = 0;
	u64 n = 0;

	for (u32 i = 0; i < all->n; i++) {
		long double x = all->at[i]->fresh;

		if (all->at[i]->queue != q)
			continue;
		n += x > 0;
		sum += x;
		sq += x * x;
	}
	return sum * sum / (n * sq);
}

/* Flows that have left by @q, or were lost in it */
static void put_flows(struct json *j, const struct queue *q)
{
	struct flows *all = &q->hop->flows;

	json_open(j, "flows", '[');
	for (u32 i = 0; i < all->n; i++) {
		struct flow *f = all->at[i];

		if ((!f->packets && !f->packets_in) || (f->queue != q && q->hop->queues > 1))
			continue;
		json_newline(j);
		put_flow(j, f, q->hop->duration);
	}
	json_close(j, ']');
}

/* The fields of the queue's object. @segmented: packets segmented on one side only */
static void put_queue(struct json *j, struct queue *q, u64 segmented)
{
	const struct hop *h = q->hop;
	const struct totals *n = &q->totals;
	long double bps = (long double)n->bytes_out * 8 * NSEC / h->duration;
	char first[24];

	/* a string, because numbers of JSON are exact up to 2^53 only */
	snprintf(first, sizeof(first), "%llu", h->first);

	json_int(j, "packets_in", n->in);
	json_int(j, "packets_out", n->out);
	json_int(j, "bytes_out", n->bytes_out);
	json_int(j, "matched", n->matched);
	put_dropped(j, "dropped", n->dropped, segmented);
	json_int(j, "unresolved", n->unresolved);
	json_int(j, "unmatched_out", n->unmatched_out);
	json_int(j, "queued_at_start", n->queued_at_start);
	json_int(j, "segmented", segmented);
	json_int(j, "super_packets", n->super_out);
	json_int(j, "ignored", h->ignored);
	json_int(j, "capture_drops", h->drops);
	json_int(j, "duration_ns", h->duration);
	json_str(j, "first_ns", first);
	json_real(j, "utilisation", 6, bps / q->rate);	/* NAN or infinite without a rate */
	json_real(j, "throughput_bps", 3, bps);
	put_us(j, "delay_us", &q->totals.delay, true);
	put_length(j, "qlen_pkts", &q->timeline.queue_packets);
	put_length(j, "qlen_bytes", &q->timeline.queue_bytes);
	json_open(j, "ecn", '{');
	put_ecn(j, "in", n->ecn_in);
	put_ecn(j, "out", n->ecn_out);
	json_close(j, '}');
	json_int(j, "marked", n->marked);
	json_real(j, "mark_fraction", 9, (double)n->marked / n->matched);
	put_dropped(j, "dropped_not_ect", n->dropped_ecn[NOT_ECT], segmented);
	put_dropped(j, "dropped_ect0", n->dropped_ecn[ECT0], segmented);
	put_dropped(j, "dropped_ect1", n->dropped_ecn[ECT1], segmented);
	put_dropped(j, "dropped_ce", n->dropped_ecn[CE], segmented);
	json_real(j, "jain", 6, jain(q));
	put_flows(j, q);
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
static void check_super(const struct hop *h)
{
	for (u32 i = 0; i < h->flows.n; i++)
		if (h->flows.at[i]->uncounted)
			errx(1, "%s: %llu packets larger than any frame, and no SYN says the MSS: capture from the start, say --mss, or turn offloads off (ethtool -K DEV tso off gso off gro off)",
			     flow_name(h->flows.at[i]), h->flows.at[i]->uncounted);
}

/* Marks the flows segmented on one side only; returns how many of their packets left unmatched. */
static u64 check_segmented(const struct queue *q)
{
	const struct flows *all = &q->hop->flows;
	u64 packets = 0;

	for (u32 i = 0; i < all->n; i++) {
		struct flow *f = all->at[i];

		if (f->queue != q)
			continue;
		f->segmented = f->split_out && f->max_in != f->max_out;
		if (f->segmented)
			packets += f->split_out;
	}
	return packets;
}

/* What is said of a queue beside its result, after @name. True if the result is incomplete */
static bool warn_of(const struct queue *q, u64 segmented, const char *name)
{
	if (q->totals.super_out)
		warnx("note: %s%llu super-packets (TSO, GSO or GRO) counted as segments of their flows' MSS",
		      name, q->totals.super_out);
	if (q->timeline.rows_left_out)
		warnx("%sthe series has no more than 2000000 rows; %llu are left out: take a longer --bin",
		      name, q->timeline.rows_left_out);
	if (segmented)
		warnx("%s%llu packets unmatched because segmented on one side only: turn offloads off (ethtool -K DEV tso off gso off gro off)",
		      name, segmented);
	else if (q->totals.unmatched_out)
		warnx("warning: %s%llu packets left that had not come in: other traffic, changed in between, or longer in the queue than --gap",
		      name, q->totals.unmatched_out);
	return segmented || q->timeline.rows_left_out;
}

int report(struct hop *h)
{
	struct json j = { .file = outfile[OUT_JSON].f };
	u64 segmented;
	struct source *s;
	bool bad;

	check_empty(false);
	check_empty(true);
	check_super(h);
	account_end(h, h->last);
	if (!h->queue->totals.in && !h->queue->totals.out)
		errx(1, "no packets between --from and --to");
	segmented = check_segmented(h->queue);
	for_each_source(s) {
		h->drops += s->drops;
		h->ignored += s->ignored;
		if (s->late)
			warnx("warning: %s: %llu packets are out of order by more than 1 ms: queue lengths may be off",
			      s->name, s->late);
	}
	flows_sort(&h->flows);
	json_open(&j, NULL, '{');
	put_queue(&j, h->queue, segmented);
	json_close(&j, '}');
	fputc('\n', j.file);
	outputs_close();

	bad = warn_of(h->queue, segmented, "");
	for_each_source(s) {
		if (s->drops)
			warnx("%s: the kernel lost %llu packets of the capture: take a larger --buffer",
			      s->name, s->drops);
	}
	return bad || h->drops;
}

/* Adds the queue's object */
static void report_queue(struct json *j, struct queue *q)
{
	const char *node = q->hop->name;
	u64 segmented = check_segmented(q);
	char name[128];

	json_newline(j);
	json_open(j, NULL, '{');
	json_str(j, "node", node);
	json_str(j, "dev", q->dev);
	put_queue(j, q, segmented);
	json_close(j, '}');
	snprintf(name, sizeof(name), "%s %s: ", node, q->dev);
	warn_of(q, segmented, name);
}

int report_all(struct hop *hops, u32 n)
{
	struct json j = { .file = outfile[OUT_JSON].f };
	bool bad = false;
	struct hop *h;
	u64 last = 0, lost = 0;

	for (h = hops; h < hops + n; h++) {
		check_super(h);
		if (h->last > last)
			last = h->last;
	}
	json_open(&j, NULL, '{');
	json_open(&j, "queues", '[');
	for (h = hops; h < hops + n; h++) {
		account_end(h, last);
		flows_sort(&h->flows);
		for (u32 i = 0; i < h->queues; i++)
			if (h->queue[i].reported)
				report_queue(&j, &h->queue[i]);
		if (h->drops) {
			warnx("%s: the kernel lost %llu packets of the capture: take a larger 'buffer'",
			      h->name, h->drops);
			bad = true;
		}
		lost += h->lost;
	}
	json_close(&j, ']');
	json_int(&j, "dropped_elsewhere", lost);
	json_close(&j, '}');
	fputc('\n', j.file);
	outputs_close();
	return bad;
}
