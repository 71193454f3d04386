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

struct arrivals {
	struct rng gap_rng, size_rng, path_rng;
	u64 n;				/* flows drawn so far, without the pending one */
	double at;			/* arrival of the pending flow, ns after t0 */
	u64 size;
	u32 path;
	bool over;			/* no more arrivals */
	unsigned int active;
	struct flow_stack *idle;	/* per path: connections kept by --persist */
	/* rpc --closed */
	u64 issued;
	struct flow_queue waiting;	/* sorted by retry_at, because all wait for the same time */
};

static u64 draw_size(struct arrivals *a, const struct config *cfg)
{
	return cfg->size ? cfg->size : cdf_draw(&cfg->cdf, rng_unit(&a->size_rng));
}

static u32 draw_path(struct arrivals *a, const struct config *cfg)
{
	return cfg->paths > 1 ? (u32)(rng_unit(&a->path_rng) * cfg->paths) : 0;
}

static void draw_next(struct arrivals *a, const struct config *cfg)
{
	if (cfg->list) {
		a->over = a->n >= cfg->flows;
		if (a->over)
			return;
		a->at = cfg->list[a->n].at;
		a->size = cfg->list[a->n].size;
		a->path = cfg->list[a->n].path;
		return;
	}
	if (cfg->mode == LONG) {
		a->at = (double)a->n * cfg->stagger;
		a->size = cfg->size ? cfg->size : UNLIMITED;
		a->path = a->n % cfg->paths;
		a->over = a->n >= cfg->flows;
		return;
	}
	if (cfg->periodic)
		a->at = a->n * 1e9 / cfg->rate;
	else
		a->at -= log(1.0 - rng_unit(&a->gap_rng)) * 1e9 / cfg->rate;
	a->size = draw_size(a, cfg);
	a->path = draw_path(a, cfg);
	a->over = a->n >= cfg->flows || (cfg->duration && a->at >= (double)cfg->duration);
}

/* Draws the pending flow, number a->n, without those of other processes. */
static void draw(struct arrivals *a, const struct config *cfg)
{
	draw_next(a, cfg);
	while (!a->over && cfg->path[a->path].elsewhere) {
		a->n++;
		draw_next(a, cfg);
	}
}

/* A slot of --closed starts its next request at @due. */
static void wait_until(struct generator *g, u32 slot, u64 due)
{
	struct arrivals *a = g->state;
	struct flow *f = flow_new(g, slot % g->cfg->paths, slot);

	f->retry_at = due;
	STAILQ_INSERT_TAIL(&a->waiting, f, waiting);
}

static void arrivals_init(struct generator *g)
{
	const struct config *cfg = g->cfg;
	struct arrivals *a = xcalloc(1, sizeof(*a));

	g->state = a;
	a->idle = xcalloc(cfg->paths, sizeof(*a->idle));
	STAILQ_INIT(&a->waiting);
	rng_seed(&a->gap_rng, cfg->seed, 1);
	rng_seed(&a->size_rng, cfg->seed, 2);
	rng_seed(&a->path_rng, cfg->seed, 3);
	for (u32 slot = 0; slot < cfg->closed; slot++)
		wait_until(g, slot, g->t0);
	if (!cfg->closed)
		draw(a, cfg);
}

static u64 arrivals_due(const struct generator *g)
{
	const struct arrivals *a = g->state;

	if (a->over)
		return NEVER;
	if (!g->cfg->closed)
		return g->t0 + (u64)(a->at + 0.5);
	return STAILQ_EMPTY(&a->waiting) ? NEVER : STAILQ_FIRST(&a->waiting)->retry_at;
}

static void closed_start(struct flow *f, u64 now)
{
	const struct config *cfg = f->gen->cfg;
	struct arrivals *a = f->gen->state;

	if (a->issued >= cfg->flows || (cfg->duration && now >= f->gen->t0 + cfg->duration))
		a->over = true;
	if (a->over) {
		flow_drop(f);
		return;
	}
	f->id = a->issued++;
	f->size = draw_size(a, cfg);
	a->active++;
	flow_start(f, now, now);
}

/* A connection that --persist has kept and the server has not closed, or NULL. */
static struct flow *pop_idle(struct arrivals *a, u32 path)
{
	struct flow *f;

	while ((f = SLIST_FIRST(&a->idle[path]))) {
		SLIST_REMOVE_HEAD(&a->idle[path], spare);
		if (f->fd >= 0)
			return f;
		flow_drop(f);
	}
	return NULL;
}

static void open_start(struct generator *g, u64 now)
{
	struct arrivals *a = g->state;
	struct flow *f = pop_idle(a, a->path);
	u64 due = arrivals_due(g);

	if (!f)
		f = flow_new(g, a->path, 0);
	f->id = g->cfg->list ? g->cfg->list[a->n].id : a->n;
	f->size = a->size;
	report_late(now, due);
	a->n++;
	draw(a, g->cfg);
	a->active++;
	flow_start(f, now, due);
}

static void arrivals_run(struct generator *g, u64 now)
{
	struct arrivals *a = g->state;

	while (arrivals_due(g) <= now) {
		if (g->cfg->closed) {
			struct flow *f = STAILQ_FIRST(&a->waiting);

			STAILQ_REMOVE_HEAD(&a->waiting, waiting);
			closed_start(f, now);
		} else {
			open_start(g, now);
		}
		now = now_ns();
	}
}

static void arrivals_flow_over(struct flow *f, const struct verdict *v)
{
	struct generator *g = f->gen;
	struct arrivals *a = g->state;

	a->active--;
	if (f->fd >= 0) {
		if (g->cfg->closed)
			closed_start(f, now_ns());
		else
			SLIST_INSERT_HEAD(&a->idle[f->path], f, spare);
		return;
	}
	/* A new connection gets new memory: pending events may still point to the old one. */
	if (g->cfg->closed && v->what == OK)
		closed_start(flow_new(g, f->path, f->slot), now_ns());
	else if (g->cfg->closed)
		/* Retry later, because a failure may take no time at all. */
		wait_until(g, f->slot, now_ns() + RETRY_NS);
	flow_drop(f);
}

static bool arrivals_finished(const struct generator *g)
{
	const struct arrivals *a = g->state;

	return !a->active && arrivals_due(g) == NEVER;
}

static void arrivals_stop(struct generator *g)
{
	struct arrivals *a = g->state;

	a->over = true;
}

void arrivals_print(const struct config *cfg)
{
	struct generator g = { .cfg = cfg };
	char text[INET6_ADDRSTRLEN];
	struct arrivals *a;

	arrivals_init(&g);
	a = g.state;
	for (; !a->over; a->n++, draw(a, cfg)) {
		const union addr *dst = &cfg->host[cfg->path[a->path].host];
		struct json j = report_line("plan", cfg);

		json_int(&j, "id", a->n);
		json_int(&j, "at_ns", arrivals_due(&g));
		json_str(&j, "dst", addr_text(dst, text));
		json_int(&j, "dport", addr_port(dst));
		json_int(&j, "size", a->size);
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
