// SPDX-License-Identifier: GPL-2.0
/* The loop of servers and generators: waits for events of connections and for the next timer. */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "../common/alloc.h"
#include "../common/events.h"
#include "flow.h"
#include "loop.h"
#include "programs.h"
#include "report.h"
#include "serve.h"

#define EVENTS		256		/* read from epoll at once */

static struct {
	struct generator *gen;
	unsigned int gens;
	u64 armed;			/* expiry set on the timer, NEVER if none */
	int epfd, timer;
	bool stop, timer_fired;
	bool ending;			/* what stops at the end has been told */
	bool waits, all;		/* for other processes; they have finished */
} loop;

static u64 flow_deadline(const struct generator *g, const struct flow *f)
{
	return g->deadline == NEVER ? NEVER : f->start + g->deadline;
}

/* Ends flows whose time is up: a timed long flow ends normally, any other times out. */
static void check_deadlines(struct generator *g, u64 now)
{
	struct flow *f;

	while ((f = TAILQ_FIRST(&g->active)) && flow_deadline(g, f) <= now) {
		bool proper = g->cfg->mode == LONG && g->cfg->duration && f->state != F_CONNECT;

		flow_over(f, now, (struct verdict) { proper ? OK : TIMEOUT, NULL });
	}
}

/* --interval: the same instants for all flows, so that their lines can be summed. */
static void check_tick(struct generator *g, u64 now)
{
	struct tcp_info info;
	struct flow *f;

	if (g->tick > now)
		return;
	TAILQ_FOREACH(f, &g->active, active)
		if (f->state != F_CONNECT && flow_info(f, &info))
			report_interval(f, now, &info, flow_moved(f, &info));
	g->tick += (1 + (now - g->tick) / g->cfg->interval) * g->cfg->interval;
}

/* Ends it where the plan says so: this is no failure of its flows. */
static void stop(struct generator *g)
{
	struct verdict v = { .why = NULL };
	u64 now = now_ns();
	struct flow *f;

	g->stop_at = NEVER;
	g->pattern->stop(g);
	while ((f = TAILQ_FIRST(&g->active))) {
		v.what = f->state == F_CONNECT ? TIMEOUT : STOPPED;
		flow_over(f, now, v);
	}
}

static u64 next_event(const struct generator *g)
{
	struct flow *oldest = TAILQ_FIRST(&g->active);
	u64 next = g->pattern->due(g);

	if (oldest && flow_deadline(g, oldest) < next)
		next = flow_deadline(g, oldest);
	if (g->stop_at < next)
		next = g->stop_at;
	return g->tick < next ? g->tick : next;
}

static void arm_timer(void)
{
	const struct generator *g;
	u64 next = NEVER, t;

	for (g = loop.gen; g < loop.gen + loop.gens; g++) {
		t = next_event(g);
		if (t < next)
			next = t;
	}
	/* Keep a timer for an earlier time: a useless wake-up costs less than setting it again. */
	if (next == NEVER || loop.armed <= next)
		return;
	loop.armed = next;
	set_timer(loop.timer, TFD_TIMER_ABSTIME, next);
}

static void run_timers(void)
{
	u64 now = now_ns();
	struct generator *g;

	loop.armed = NEVER;
	for (g = loop.gen; g < loop.gen + loop.gens; g++) {
		check_deadlines(g, now);
		check_tick(g, now);
		if (g->stop_at <= now)
			stop(g);
		g->pattern->run(g, now);
	}
}

static void interrupted(void)
{
	u64 now = now_ns();
	struct generator *g;
	struct flow *f;

	for (g = loop.gen; g < loop.gen + loop.gens; g++) {
		g->pattern->stop(g);
		while ((f = TAILQ_FIRST(&g->active)))
			flow_over(f, now, (struct verdict) { ERROR, "interrupted" });
		if (g->pattern == &programs)
			programs_end(g);
	}
}

static void on_signal(struct watched *w, u32 events)
{
	(void)w;
	(void)events;
	loop.stop = true;
}

static void on_timer(struct watched *w, u32 events)
{
	(void)w;
	(void)events;
	loop.timer_fired = true;
}

/* @base: when the configurations' start counts from */
static void init_generators(const struct work *w, u64 base)
{
	struct generator *g;

	loop.gens = w->clients;
	loop.gen = xcalloc(loop.gens, sizeof(*loop.gen));
	for (g = loop.gen; g < loop.gen + loop.gens; g++) {
		const struct config *cfg = &w->client[g - loop.gen];

		g->cfg = cfg;
		TAILQ_INIT(&g->active);
		g->deadline = cfg->mode == LONG && cfg->duration ? cfg->duration :
			      cfg->timeout ? cfg->timeout : NEVER;
		g->t0 = base + cfg->start;
		g->tick = cfg->interval ? g->t0 + cfg->interval : NEVER;
		g->stop_at = cfg->stop ? base + cfg->stop : NEVER;
		g->pattern = cfg->mode == INCAST ? &incast : cfg->mode == UDP ? &udp :
			     cfg->mode == PROGRAM ? &programs : &arrivals;
		g->pattern->init(g);
	}
}

/* True if all that was to be done is done */
static bool finished(const struct work *w)
{
	struct generator *g;
	bool all = loop.gens > 0 || w->part, rest = true;

	for (g = loop.gen; g < loop.gen + loop.gens; g++) {
		if (g->pattern->prepare)
			g->pattern->prepare(g);
		if (g->pattern->finished(g))
			continue;
		if (g->cfg->until_end)
			rest = false;
		else
			all = false;
	}
	if (!all || rest || loop.ending)
		return all && rest;
	loop.ending = true;
	for (g = loop.gen; g < loop.gen + loop.gens; g++)
		if (g->cfg->until_end && !g->pattern->finished(g))
			stop(g);
	return finished(w);
}

static void on_end(struct watched *w, u32 events)
{
	(void)w;
	(void)events;
	loop.all = true;
}

/* The module's answer comes when all processes have asked. Until then servers serve their flows. */
static void wait_for_all(void)
{
	static struct watched ended = { on_end };
	char text[32];
	int fd, p[2];
	pid_t pid;

	if (pipe2(p, O_CLOEXEC))
		err(1, "pipe");
	pid = fork();
	if (pid < 0)
		err(1, "fork");
	if (!pid) {
		fd = open("/sys/module/lowq_link/parameters/end", O_RDONLY | O_CLOEXEC);
		_exit(fd < 0 || read(fd, text, sizeof(text)) <= 0);
	}
	close(p[1]);
	watch(loop.epfd, EPOLL_CTL_ADD, p[0], EPOLLIN, &ended);
	loop.waits = true;
}

/* ... and so have other processes */
static bool all_finished(const struct work *w)
{
	if (!loop.waits && !finished(w))
		return false;
	if (w->part && !loop.waits)
		wait_for_all();
	return !w->part || loop.all;
}

static void start_generators(const struct work *w)
{
	static struct watched timer = { on_timer };
	u64 base = w->zero ? w->zero : now_ns();
	struct generator *g;

	/* Edge-triggered: setting the timer again clears it, so it need not be read. */
	loop.timer = open_timer();
	watch(loop.epfd, EPOLL_CTL_ADD, loop.timer, EPOLLIN | EPOLLET, &timer);
	loop.armed = NEVER;
	flows_init(loop.epfd);
	init_generators(w, base);
	for (g = loop.gen; g < loop.gen + loop.gens; g++)
		if (!w->zero && !g->cfg->start)
			g->pattern->run(g, g->t0);
}

int run(const struct work *w)
{
	const struct config whole_plan = { .mode = PLAN, .label = "", .seed = w->seed };
	static struct watched signals = { on_signal };
	struct epoll_event ev[EVENTS];
	int sig = open_signals();

	loop.epfd = epoll_create1(EPOLL_CLOEXEC);
	if (loop.epfd < 0)
		err(1, "epoll_create");
	watch(loop.epfd, EPOLL_CTL_ADD, sig, EPOLLIN, &signals);
	if (w->servers)
		serve(w, loop.epfd);
	if (w->clients || w->part)
		start_generators(w);
	while (!loop.stop && !all_finished(w)) {
		int n;

		if (loop.gens)
			arm_timer();
		n = epoll_wait(loop.epfd, ev, EVENTS, serve_timeout());
		if (n < 0 && errno != EINTR)
			err(1, "epoll_wait");
		loop.timer_fired = false;
		for (int i = 0; i < n; i++) {
			struct watched *who = ev[i].data.ptr;

			who->event(who, ev[i].events);
		}
		if (loop.timer_fired)
			run_timers();
		flows_reap();
		if (serve_reap(n))
			break;
	}
	if (!loop.gens && !w->part)
		return 0;
	if (loop.stop)
		interrupted();
	report_summary(w->plan ? &whole_plan : w->client,
		       loop.gens && !w->part ? loop.gen[0].t0 : w->zero);
	return totals.failed || loop.stop;
}
