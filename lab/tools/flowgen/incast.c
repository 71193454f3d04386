// SPDX-License-Identifier: GPL-2.0
/*
 * The pattern of incast. Each round: PREPARE opens the missing connections (in the first round
 * all), WAIT waits for the round's start, RUN is the round itself.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../common/alloc.h"
#include "../common/events.h"
#include "flow.h"
#include "report.h"
#include "rng.h"

#define HANDSHAKES	256		/* most handshakes at once while connections are opened */

struct incast {
	enum { PREPARE, WAIT, RUN, OVER } phase;
	struct flow **slot;
	const char **why;		/* per slot: why there is no connection */
	unsigned int next;		/* PREPARE: slot to look at next */
	unsigned int busy;		/* PREPARE: handshakes; RUN: requests */
	u64 rounds;			/* how many in all */
	u64 round;
	u64 base;			/* the first round's time */
	u64 due;			/* WAIT: the round's; RUN: times count from it */
	u64 ready;			/* when the last round was over, and all are connected */
	struct request {
		u64 after;		/* ns after the round's start */
		unsigned int slot;
	} *request;			/* RUN: in the order in which they start */
	unsigned int begun;		/* RUN: how many have started */
	u64 start, bytes, ok;		/* RUN */
	struct rng jitter_rng;
};

static void incast_init(struct generator *g)
{
	struct incast *inc = xcalloc(1, sizeof(*inc));

	g->state = inc;
	inc->rounds = g->cfg->count;
	inc->slot = xcalloc(g->cfg->fan, sizeof(*inc->slot));
	inc->why = xcalloc(g->cfg->fan, sizeof(*inc->why));
	inc->request = xcalloc(g->cfg->fan, sizeof(*inc->request));
	rng_seed(&inc->jitter_rng, g->cfg->seed, 4);
}

static void incast_prepare(struct generator *g)
{
	struct incast *inc = g->state;

	if (inc->phase != PREPARE)
		return;
	while (inc->busy < HANDSHAKES && inc->next < g->cfg->fan) {
		unsigned int i = inc->next++;
		struct flow *f = inc->slot[i];

		if (f && f->fd >= 0)
			continue;
		if (f)
			flow_drop(f);
		f = flow_new(g, i % g->cfg->paths, i);
		inc->slot[i] = f;
		f->connect_only = true;
		inc->busy++;
		flow_start(f, now_ns(), NEVER);
	}
	if (!inc->busy && inc->next == g->cfg->fan) {
		inc->phase = WAIT;
		if (!inc->round) {
			inc->base = now_ns();
			if (inc->base < g->t0)
				inc->base = g->t0;
		}
		inc->due = inc->base + inc->round * g->cfg->period;
		inc->ready = now_ns();
	}
}

static u64 incast_due(const struct generator *g)
{
	const struct incast *inc = g->state;

	if (inc->phase == WAIT)
		return inc->due;
	if (inc->phase == RUN && inc->begun < g->cfg->fan)
		return inc->due + inc->request[inc->begun].after;
	return NEVER;
}

static int by_time(const void *a, const void *b)
{
	const struct request *x = a, *y = b;

	if (x->after != y->after)
		return x->after < y->after ? -1 : 1;
	return x->slot < y->slot ? -1 : x->slot > y->slot;
}

static void round_begins(struct generator *g, u64 now)
{
	struct incast *inc = g->state;

	if (g->cfg->period)
		report_late(now, inc->due > inc->ready ? inc->due : inc->ready);
	else
		inc->due = now;
	inc->phase = RUN;
	inc->start = now;
	inc->bytes = 0;
	inc->ok = 0;
	inc->begun = 0;
	/* One more than the requests, so that the round cannot end before all have started. */
	inc->busy = g->cfg->fan + 1;
	for (unsigned int i = 0; i < g->cfg->fan; i++)
		inc->request[i] = (struct request) {
			g->cfg->jitter ? (u64)(rng_unit(&inc->jitter_rng) * g->cfg->jitter) : 0, i
		};
	qsort(inc->request, g->cfg->fan, sizeof(*inc->request), by_time);
}

static void round_over(struct generator *g, u64 end)
{
	struct incast *inc = g->state;
	struct json j = report_line("round", g->cfg);

	json_int(&j, "round", inc->round);
	json_int(&j, "fan", g->cfg->fan);
	json_int(&j, "size", g->cfg->size);
	json_int(&j, "ok", inc->ok);
	json_int(&j, "failed", g->cfg->fan - inc->ok);
	json_int(&j, "bytes", inc->bytes);
	report_span(&j, inc->start, end, inc->bytes);
	report_line_end(&j);
	inc->phase = ++inc->round < inc->rounds ? PREPARE : OVER;
	inc->next = 0;
	inc->busy = 0;
}

/* May be called from incast_prepare(), which then continues. */
static void incast_flow_over(struct flow *f, const struct verdict *v)
{
	struct incast *inc = f->gen->state;

	inc->busy--;
	if (f->connect_only) {
		f->connect_only = false;
		inc->why[f->slot] = v->what == TIMEOUT ? strerror(ETIMEDOUT) : v->why;
		return;
	}
	if (v->what == OK) {
		inc->ok++;
		inc->bytes += f->size;
	}
	if (!inc->busy)
		round_over(f->gen, f->gen->last_end);
}

static void incast_run(struct generator *g, u64 now)
{
	struct incast *inc = g->state;

	if (incast_due(g) > now)
		return;
	if (inc->phase == WAIT)
		round_begins(g, now);
	while (incast_due(g) <= now) {
		const struct request *r = &inc->request[inc->begun++];
		struct flow *f = inc->slot[r->slot];

		f->id = inc->round * g->cfg->fan + r->slot;
		f->size = g->cfg->size;
		if (f->fd >= 0)
			flow_start(f, now, inc->due + r->after);
		else
			flow_stillborn(f, now, inc->why[r->slot] ? inc->why[r->slot] : "closed by the server");
	}
	if (inc->begun == g->cfg->fan && !--inc->busy)
		round_over(g, g->last_end);
}

static bool incast_finished(const struct generator *g)
{
	const struct incast *inc = g->state;

	return inc->phase == OVER;
}

static void incast_stop(struct generator *g)
{
	struct incast *inc = g->state;

	inc->rounds = 0;
}

const struct pattern incast = {
	.init = incast_init,
	.prepare = incast_prepare,
	.due = incast_due,
	.run = incast_run,
	.flow_over = incast_flow_over,
	.finished = incast_finished,
	.stop = incast_stop,
};
