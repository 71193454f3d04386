// SPDX-License-Identifier: GPL-2.0
#include "../common/alloc.h"
#include "options.h"
#include "output.h"
#include "timeline.h"

#define MAX_ROWS	2000000ULL	/* most rows of a series; further ones are left out */

struct dist queue_packets, queue_bytes;

/* A row of the series: [i, i + 1) * opt.bin from the window's start. */
struct bin {
	u64 i;
	u64 bytes, delay_n, delay_max, marked, dropped;
	u64 time;			/* ns of it that have passed */
	long double delay_sum;
	long double packets, octets;	/* queue length * ns */
	u64 packets_max, octets_max;
};

static u64 from, to;			/* the window */
static u64 now;				/* the queue length is known up to here */
static u64 packets, octets;		/* in the queue now; packets are segments */
static struct bin bin;
static u64 rows_left_out;
/* Flows with packets in the bin. */
static struct flow **touched;
static u32 ntouched, touchedcap;

static bool series_wanted(void)
{
	return outfile[OUT_SERIES].f || outfile[OUT_FLOW_SERIES].f;
}

void timeline_start(u64 t, u64 window_from, u64 window_to)
{
	now = t;
	from = window_from;
	to = window_to;
	dist_init(&queue_packets, 12, 0);
	dist_init(&queue_bytes, 12, 0);
}

static void series_row(FILE *f, double t)
{
	fprintf(f, "%.9f,%.3f,", t, (double)bin.bytes * 8 * NSEC / opt.bin);
	if (bin.time)
		fprintf(f, "%.6f,%llu,%.3f,%llu,",
			(double)(bin.packets / bin.time), bin.packets_max,
			(double)(bin.octets / bin.time), bin.octets_max);
	else
		fprintf(f, "%llu,%llu,%llu,%llu,", packets, packets, octets, octets);
	if (bin.delay_n)
		fprintf(f, "%.6f,%.3f,", (double)(bin.delay_sum / bin.delay_n) / 1e3,
			bin.delay_max / 1e3);
	else
		fputs(",,", f);		/* no packet left */
	fprintf(f, "%llu,%llu\n", bin.marked, bin.dropped);
}

static void bin_flush(void)
{
	double t = (double)(opt.from + bin.i * opt.bin) / NSEC;

	if (outfile[OUT_SERIES].f)
		series_row(outfile[OUT_SERIES].f, t);
	for (u32 i = 0; i < ntouched; i++) {
		struct flow *f = touched[i];

		fprintf(outfile[OUT_FLOW_SERIES].f, "%.9f,%s,%.3f\n", t, flow_name(f),
			(double)f->bin_bytes * 8 * NSEC / opt.bin);
		f->bin_bytes = 0;
	}
	ntouched = 0;
	bin = (struct bin) { .i = bin.i + 1 };
}

static u64 bin_end(void)
{
	return from + (bin.i + 1) * opt.bin;
}

/* False if @t is beyond the last row that the series may have. */
static bool bin_allowed(u64 t)
{
	if (t <= from || (t - from) / opt.bin < MAX_ROWS)
		return true;
	rows_left_out = (t - from) / opt.bin - MAX_ROWS + 1;
	return false;
}

u64 timeline_rows_left_out(void)
{
	return rows_left_out;
}

void timeline_to(u64 t)
{
	u64 a = now > from ? now : from, end = t < to ? t : to, b;

	if (t <= now)
		return;
	now = t;
	if (a >= end)
		return;
	dist_add_weighted(&queue_packets, packets, end - a);
	dist_add_weighted(&queue_bytes, octets, end - a);
	if (!series_wanted())
		return;
	if (!bin_allowed(end)) {
		end = from + MAX_ROWS * opt.bin;
		if (a >= end)
			return;
	}
	for (; a < end; a = b) {
		while (a >= bin_end())
			bin_flush();
		b = end < bin_end() ? end : bin_end();
		bin.time += b - a;
		bin.packets += (long double)packets * (b - a);
		bin.octets += (long double)octets * (b - a);
		if (packets > bin.packets_max)
			bin.packets_max = packets;
		if (octets > bin.octets_max)
			bin.octets_max = octets;
	}
}

/* True if the series has a row for @t; then bin is that row. */
static bool bin_of(u64 t)
{
	if (!series_wanted() || t < from || t >= to || !bin_allowed(t))
		return false;
	while (t >= bin_end())
		bin_flush();
	return true;
}

void timeline_in(u64 t, u32 segs, u32 len)
{
	timeline_to(t);
	packets += segs;
	octets += len;
}

void timeline_drop(u64 t, u32 segs)
{
	timeline_to(t);
	if (bin_of(t))
		bin.dropped += segs;
}

static void touch(struct flow *f, u32 len)
{
	if (!f->bin_bytes) {
		if (ntouched == touchedcap) {
			touchedcap = touchedcap ? touchedcap * 2 : 64;
			touched = xreallocarray(touched, touchedcap, sizeof(*touched));
		}
		touched[ntouched++] = f;
	}
	f->bin_bytes += len;
}

void timeline_out(const struct out_ev *e)
{
	timeline_to(e->t);
	if (e->matched) {
		packets -= e->segs;
		octets -= e->len_in;
	}
	if (!bin_of(e->t))
		return;
	bin.bytes += e->len;
	bin.marked += e->marked ? e->segs : 0;
	if (e->matched) {
		bin.delay_n += e->segs;
		bin.delay_sum += (long double)e->delay * e->segs;
		if (e->delay > bin.delay_max)
			bin.delay_max = e->delay;
	}
	if (outfile[OUT_FLOW_SERIES].f)
		touch(e->flow, e->len);
}

void timeline_end(u64 t)
{
	timeline_to(t);
	if (bin.time || bin.bytes || bin.dropped)
		bin_flush();
}
