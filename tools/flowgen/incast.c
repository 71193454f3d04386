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

static struct {
	enum { PREPARE, WAIT, RUN, OVER } phase;
	struct flow **slot;
	const char **why;		/* per slot: why there is no connection */
	unsigned int next;		/* PREPARE: slot to look at next */
	unsigned int busy;		/* PREPARE: handshakes; RUN: requests */
	u64 rounds;			/* how many in all */
	u64 round;
	u64 t0;
	u64 base;			/* the first round's time */
	u64 due;			/* WAIT: the round's; RUN: times count from it */
	struct request {
		u64 after;		/* ns after the round's start */
		unsigned int slot;
	} *request;			/* RUN: in the order in which they start */
	unsigned int begun;		/* RUN: how many have started */
	u64 start, bytes, ok;		/* RUN */
	struct rng jitter_rng;
} inc;

static void incast_init(u64 t0)
{
	inc.t0 = t0;
	inc.rounds = cfg.count;
	inc.slot = xcalloc(cfg.fan, sizeof(*inc.slot));
	inc.why = xcalloc(cfg.fan, sizeof(*inc.why));
	inc.request = xcalloc(cfg.fan, sizeof(*inc.request));
	rng_seed(&inc.jitter_rng, cfg.seed, 4);
}

static void incast_prepare(void)
{
	if (inc.phase != PREPARE)
		return;
	while (inc.busy < HANDSHAKES && inc.next < cfg.fan) {
		unsigned int i = inc.next++;
		struct flow *f = inc.slot[i];

		if (f && f->fd >= 0)
			continue;
		if (f)
			flow_drop(f);
		f = flow_new(i % cfg.hosts, i);
		inc.slot[i] = f;
		f->connect_only = true;
		inc.busy++;
		flow_start(f, now_ns(), NEVER);
	}
	if (!inc.busy && inc.next == cfg.fan) {
		inc.phase = WAIT;
		if (!inc.round) {
			inc.base = now_ns();
			if (inc.base < inc.t0)
				inc.base = inc.t0;
		}
		inc.due = inc.base + inc.round * cfg.period;
	}
}

static u64 incast_due(void)
{
	if (inc.phase == WAIT)
		return inc.due;
	if (inc.phase == RUN && inc.begun < cfg.fan)
		return inc.due + inc.request[inc.begun].after;
	return NEVER;
}

static int by_time(const void *a, const void *b)
{
	const struct request *x = a, *y = b;

	if (x->after != y->after)
		return x->after < y->after ? -1 : 1;
	return x->slot < y->slot ? -1 : x->slot > y->slot;
}

static void round_begins(u64 now)
{
	if (cfg.period)
		report_late(now, inc.due);
	else
		inc.due = now;
	inc.phase = RUN;
	inc.start = now;
	inc.bytes = 0;
	inc.ok = 0;
	inc.begun = 0;
	/* One more than the requests, so that the round cannot end before all have started. */
	inc.busy = cfg.fan + 1;
	for (unsigned int i = 0; i < cfg.fan; i++)
		inc.request[i] = (struct request) {
			cfg.jitter ? (u64)(rng_unit(&inc.jitter_rng) * cfg.jitter) : 0, i
		};
	qsort(inc.request, cfg.fan, sizeof(*inc.request), by_time);
}

static void round_over(u64 end)
{
	struct json j = report_line("round");

	json_int(&j, "round", inc.round);
	json_int(&j, "fan", cfg.fan);
	json_int(&j, "size", cfg.size);
	json_int(&j, "ok", inc.ok);
	json_int(&j, "failed", cfg.fan - inc.ok);
	json_int(&j, "bytes", inc.bytes);
	report_span(&j, inc.start, end, inc.bytes);
	report_line_end(&j);
	inc.phase = ++inc.round < inc.rounds ? PREPARE : OVER;
	inc.next = 0;
	inc.busy = 0;
}

/* May be called from incast_prepare(), which then continues. */
static void incast_flow_over(struct flow *f, const struct verdict *v)
{
	inc.busy--;
	if (f->connect_only) {
		f->connect_only = false;
		inc.why[f->slot] = v->what == TIMEOUT ? strerror(ETIMEDOUT) : v->why;
		return;
	}
	if (v->what == OK) {
		inc.ok++;
		inc.bytes += f->size;
	}
	if (!inc.busy)
		round_over(totals.last_end);
}

static void incast_run(u64 now)
{
	if (incast_due() > now)
		return;
	if (inc.phase == WAIT)
		round_begins(now);
	while (incast_due() <= now) {
		const struct request *r = &inc.request[inc.begun++];
		struct flow *f = inc.slot[r->slot];

		f->id = inc.round * cfg.fan + r->slot;
		f->size = cfg.size;
		if (f->fd >= 0)
			flow_start(f, now, inc.due + r->after);
		else
			flow_stillborn(f, now, inc.why[r->slot] ? inc.why[r->slot] : "closed by the server");
	}
	if (inc.begun == cfg.fan && !--inc.busy)
		round_over(totals.last_end);
}

static bool incast_finished(void)
{
	return inc.phase == OVER;
}

static void incast_stop(void)
{
	inc.rounds = 0;
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
