// SPDX-License-Identifier: GPL-2.0
/* The arrival process of long and rpc: flows start one by one. */
#include <math.h>

#include "../common/alloc.h"
#include "../common/events.h"
#include "arrivals.h"
#include "flow.h"
#include "report.h"
#include "rng.h"

#define RETRY_NS	1000000ULL	/* rpc --closed: pause of a slot after a failure */

static struct {
	u64 t0;
	struct rng gap_rng, size_rng, host_rng;
	u64 n;				/* flows drawn so far, without the pending one */
	double at;			/* arrival of the pending flow, ns after t0 */
	u64 size;
	u32 host;
	bool over;			/* no more arrivals */
	unsigned int active;
	struct flow_stack *idle;	/* per host: connections kept by --persist */
	/* rpc --closed */
	u64 issued;
	struct flow_queue waiting;	/* sorted by retry_at, because all wait for the same time */
} gen;

static u64 draw_size(void)
{
	return cfg.size ? cfg.size : cdf_draw(&cfg.cdf, rng_unit(&gen.size_rng));
}

static u32 draw_host(void)
{
	return cfg.hosts > 1 ? (u32)(rng_unit(&gen.host_rng) * cfg.hosts) : 0;
}

/* Draws the pending flow, number gen.n. */
static void draw(void)
{
	if (cfg.mode == LONG) {
		gen.at = (double)gen.n * cfg.stagger;
		gen.size = cfg.size ? cfg.size : UNLIMITED;
		gen.host = gen.n % cfg.hosts;
		gen.over = gen.n >= cfg.flows;
		return;
	}
	if (cfg.periodic)
		gen.at = gen.n * 1e9 / cfg.rate;
	else
		gen.at -= log(1.0 - rng_unit(&gen.gap_rng)) * 1e9 / cfg.rate;
	gen.size = draw_size();
	gen.host = draw_host();
	gen.over = gen.n >= cfg.flows || (cfg.duration && gen.at >= (double)cfg.duration);
}

/* A slot of --closed starts its next request at @due. */
static void wait_until(u32 slot, u64 due)
{
	struct flow *f = flow_new(slot % cfg.hosts, slot);

	f->retry_at = due;
	STAILQ_INSERT_TAIL(&gen.waiting, f, waiting);
}

static void arrivals_init(u64 t0)
{
	gen.t0 = t0;
	gen.idle = xcalloc(cfg.hosts, sizeof(*gen.idle));
	STAILQ_INIT(&gen.waiting);
	rng_seed(&gen.gap_rng, cfg.seed, 1);
	rng_seed(&gen.size_rng, cfg.seed, 2);
	rng_seed(&gen.host_rng, cfg.seed, 3);
	for (u32 slot = 0; slot < cfg.closed; slot++)
		wait_until(slot, t0);
	if (!cfg.closed)
		draw();
}

static u64 arrivals_due(void)
{
	if (gen.over)
		return NEVER;
	if (!cfg.closed)
		return gen.t0 + (u64)(gen.at + 0.5);
	return STAILQ_EMPTY(&gen.waiting) ? NEVER : STAILQ_FIRST(&gen.waiting)->retry_at;
}

static void closed_start(struct flow *f, u64 now)
{
	if (gen.issued >= cfg.flows || (cfg.duration && now >= gen.t0 + cfg.duration))
		gen.over = true;
	if (gen.over) {
		flow_drop(f);
		return;
	}
	f->id = gen.issued++;
	f->size = draw_size();
	gen.active++;
	flow_start(f, now, now);
}

/* A connection that --persist has kept and the server has not closed, or NULL. */
static struct flow *pop_idle(u32 host)
{
	struct flow *f;

	while ((f = SLIST_FIRST(&gen.idle[host]))) {
		SLIST_REMOVE_HEAD(&gen.idle[host], spare);
		if (f->fd >= 0)
			return f;
		flow_drop(f);
	}
	return NULL;
}

static void open_start(u64 now)
{
	struct flow *f = pop_idle(gen.host);
	u64 due = arrivals_due();

	if (!f)
		f = flow_new(gen.host, 0);
	f->id = gen.n;
	f->size = gen.size;
	report_late(now, due);
	gen.n++;
	draw();
	gen.active++;
	flow_start(f, now, due);
}

static void arrivals_run(u64 now)
{
	while (arrivals_due() <= now) {
		if (cfg.closed) {
			struct flow *f = STAILQ_FIRST(&gen.waiting);

			STAILQ_REMOVE_HEAD(&gen.waiting, waiting);
			closed_start(f, now);
		} else {
			open_start(now);
		}
		now = now_ns();
	}
}

static void arrivals_flow_over(struct flow *f, const struct verdict *v)
{
	gen.active--;
	if (f->fd >= 0) {
		if (cfg.closed)
			closed_start(f, now_ns());
		else
			SLIST_INSERT_HEAD(&gen.idle[f->host], f, spare);
		return;
	}
	/* A new connection gets new memory: pending events may still point to the old one. */
	if (cfg.closed && v->what == OK)
		closed_start(flow_new(f->host, f->slot), now_ns());
	else if (cfg.closed)
		/* Retry later, because a failure may take no time at all. */
		wait_until(f->slot, now_ns() + RETRY_NS);
	flow_drop(f);
}

static bool arrivals_finished(void)
{
	return !gen.active && arrivals_due() == NEVER;
}

static void arrivals_stop(void)
{
	gen.over = true;
}

void arrivals_plan(void)
{
	char text[INET6_ADDRSTRLEN];

	arrivals_init(0);
	for (; !gen.over; gen.n++, draw()) {
		const union addr *dst = &cfg.host[gen.host];
		struct json j = report_line("plan");

		json_int(&j, "id", gen.n);
		json_int(&j, "at_ns", arrivals_due());
		json_str(&j, "dst", addr_text(dst, text));
		json_int(&j, "dport", addr_port(dst));
		json_int(&j, "size", gen.size);
		report_line_end(&j);
	}
}

const struct pattern arrivals = {
	.init = arrivals_init,
	.due = arrivals_due,
	.run = arrivals_run,
	.flow_over = arrivals_flow_over,
	.finished = arrivals_finished,
	.stop = arrivals_stop,
};
