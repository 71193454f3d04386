// SPDX-License-Identifier: GPL-2.0
#include "../common/alloc.h"
#include "options.h"
#include "output.h"
#include "timeline.h"

#define MAX_ROWS	2000000ULL	/* most rows of a series; further ones are left out */

static bool series_wanted(void)
{
	return outfile[OUT_SERIES].f || outfile[OUT_FLOW_SERIES].f;
}

void timeline_start(struct timeline *t, u64 at, u64 from, u64 to)
{
	t->now = at;
	t->zero = at;
	t->from = from;
	t->to = to;
	dist_init(&t->queue_packets, 12, 0);
	dist_init(&t->queue_bytes, 12, 0);
}

static void begin_row(const struct timeline *t, FILE *f, double at)
{
	if (t->name)
		fprintf(f, "%s,", t->name);
	fprintf(f, "%.9f,", at);
}

static void series_row(const struct timeline *t, FILE *f, double at)
{
	begin_row(t, f, at);
	fprintf(f, "%.3f,", (double)t->bin.bytes * 8 * NSEC / opt.bin);
	if (t->bin.time)
		fprintf(f, "%.6f,%llu,%.3f,%llu,",
			(double)(t->bin.packets / t->bin.time), t->bin.packets_max,
			(double)(t->bin.octets / t->bin.time), t->bin.octets_max);
	else
		fprintf(f, "%llu,%llu,%llu,%llu,", t->packets, t->packets, t->octets, t->octets);
	if (t->bin.delay_n)
		fprintf(f, "%.6f,%.3f,", (double)(t->bin.delay_sum / t->bin.delay_n) / 1e3,
			t->bin.delay_max / 1e3);
	else
		fputs(",,", f);		/* no packet left */
	fprintf(f, "%llu,%llu\n", t->bin.marked, t->bin.dropped);
}

static void bin_flush(struct timeline *t)
{
	double at = (double)(t->from - t->zero + t->bin.i * opt.bin) / NSEC;

	if (outfile[OUT_SERIES].f)
		series_row(t, outfile[OUT_SERIES].f, at);
	for (u32 i = 0; i < t->ntouched; i++) {
		struct flow *f = t->touched[i];

		begin_row(t, outfile[OUT_FLOW_SERIES].f, at);
		fprintf(outfile[OUT_FLOW_SERIES].f, "%s,%.3f\n", flow_name(f),
			(double)f->bin_bytes * 8 * NSEC / opt.bin);
		f->bin_bytes = 0;
	}
	t->ntouched = 0;
	t->bin = (struct bin) { .i = t->bin.i + 1 };
}

static u64 bin_end(const struct timeline *t)
{
	return t->from + (t->bin.i + 1) * opt.bin;
}

/* False if @at is beyond the last row that the series may have. */
static bool bin_allowed(struct timeline *t, u64 at)
{
	if (at <= t->from || (at - t->from) / opt.bin < MAX_ROWS)
		return true;
	t->rows_left_out = (at - t->from) / opt.bin - MAX_ROWS + 1;
	return false;
}

void timeline_to(struct timeline *t, u64 at)
{
	u64 a = t->now > t->from ? t->now : t->from, end = at < t->to ? at : t->to, b;

	if (at <= t->now)
		return;
	t->now = at;
	if (a >= end)
		return;
	dist_add_weighted(&t->queue_packets, t->packets, end - a);
	dist_add_weighted(&t->queue_bytes, t->octets, end - a);
	if (!series_wanted())
		return;
	if (!bin_allowed(t, end)) {
		end = t->from + MAX_ROWS * opt.bin;
		if (a >= end)
			return;
	}
	for (; a < end; a = b) {
		while (a >= bin_end(t))
			bin_flush(t);
		b = end < bin_end(t) ? end : bin_end(t);
		t->bin.time += b - a;
		t->bin.packets += (long double)t->packets * (b - a);
		t->bin.octets += (long double)t->octets * (b - a);
		if (t->packets > t->bin.packets_max)
			t->bin.packets_max = t->packets;
		if (t->octets > t->bin.octets_max)
			t->bin.octets_max = t->octets;
	}
}

/* True if the series has a row for @at; then bin is that row. */
static bool bin_of(struct timeline *t, u64 at)
{
	if (!series_wanted() || at < t->from || at >= t->to || !bin_allowed(t, at))
		return false;
	while (at >= bin_end(t))
		bin_flush(t);
	return true;
}

void timeline_in(struct timeline *t, u64 at, u32 segs, u32 len)
{
	timeline_to(t, at);
	t->packets += segs;
	t->octets += len;
}

void timeline_drop(struct timeline *t, u64 at, u32 segs)
{
	timeline_to(t, at);
	if (bin_of(t, at))
		t->bin.dropped += segs;
}

static void touch(struct timeline *t, struct flow *f, u32 len)
{
	if (!f->bin_bytes) {
		if (t->ntouched == t->touchedcap) {
			t->touchedcap = t->touchedcap ? t->touchedcap * 2 : 64;
			t->touched = xreallocarray(t->touched, t->touchedcap, sizeof(*t->touched));
		}
		t->touched[t->ntouched++] = f;
	}
	f->bin_bytes += len;
}

void timeline_out(struct timeline *t, const struct out_ev *e)
{
	timeline_to(t, e->t);
	if (e->matched) {
		t->packets -= e->segs;
		t->octets -= e->len_in;
	}
	if (!bin_of(t, e->t))
		return;
	t->bin.bytes += e->len;
	t->bin.marked += e->marked ? e->segs : 0;
	if (e->matched) {
		t->bin.delay_n += e->segs;
		t->bin.delay_sum += (long double)e->delay * e->segs;
		if (e->delay > t->bin.delay_max)
			t->bin.delay_max = e->delay;
	}
	if (outfile[OUT_FLOW_SERIES].f)
		touch(t, e->flow, e->len);
}

void timeline_end(struct timeline *t, u64 at)
{
	timeline_to(t, at);
	if (t->bin.time || t->bin.bytes || t->bin.dropped)
		bin_flush(t);
}
