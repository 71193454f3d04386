// SPDX-License-Identifier: GPL-2.0
/* The client's loop: waits for events of connections and for the next timer. */
#include <err.h>
#include <errno.h>
#include <sys/timerfd.h>

#include "../common/events.h"
#include "client.h"
#include "flow.h"
#include "report.h"

#define EVENTS		256		/* read from epoll at once */

static struct {
	const struct pattern *pattern;
	u64 t0;				/* when the run begins */
	u64 deadline;			/* from a flow's start, NEVER if none */
	u64 tick;			/* next --interval */
	u64 armed;			/* expiry set on the timer, NEVER if none */
	int timer;
} cl;

static u64 flow_deadline(const struct flow *f)
{
	return cl.deadline == NEVER ? NEVER : f->start + cl.deadline;
}

/* Ends flows whose time is up: a timed long flow ends normally, any other times out. */
static void check_deadlines(u64 now)
{
	struct flow *f;

	while ((f = TAILQ_FIRST(&active_flows)) && flow_deadline(f) <= now) {
		bool proper = cfg.mode == LONG && cfg.duration && f->state != F_CONNECT;

		flow_over(f, now, (struct verdict) { proper ? OK : TIMEOUT, NULL });
	}
}

/* --interval: the same instants for all flows, so that their lines can be summed. */
static void check_tick(u64 now)
{
	struct tcp_info info;
	struct flow *f;

	if (cl.tick > now)
		return;
	TAILQ_FOREACH(f, &active_flows, active)
		if (f->state != F_CONNECT && flow_info(f, &info))
			report_interval(f, now, &info, flow_moved(f, &info));
	cl.tick += (1 + (now - cl.tick) / cfg.interval) * cfg.interval;
}

static void arm_timer(void)
{
	struct flow *oldest = TAILQ_FIRST(&active_flows);
	u64 next = cl.pattern->due();

	if (oldest && flow_deadline(oldest) < next)
		next = flow_deadline(oldest);
	if (cl.tick < next)
		next = cl.tick;
	/* A timer set for an earlier event stays: a useless wake-up costs less than setting it. */
	if (next == NEVER || cl.armed <= next)
		return;
	cl.armed = next;
	set_timer(cl.timer, TFD_TIMER_ABSTIME, next);
}

static void interrupted(void)
{
	u64 now = now_ns();
	struct flow *f;

	cl.pattern->stop();
	while ((f = TAILQ_FIRST(&active_flows)))
		flow_over(f, now, (struct verdict) { ERROR, "interrupted" });
}

int client(void)
{
	int epfd = epoll_create1(EPOLL_CLOEXEC), sig = open_signals();
	struct epoll_event ev[EVENTS];
	bool stop = false;

	if (epfd < 0)
		err(1, "epoll_create");
	watch(epfd, EPOLL_CTL_ADD, sig, EPOLLIN, &sig);
	/* Edge-triggered: setting the timer again clears it, so it need not be read. */
	cl.timer = open_timer();
	watch(epfd, EPOLL_CTL_ADD, cl.timer, EPOLLIN | EPOLLET, &cl.timer);
	cl.armed = NEVER;
	cl.deadline = cfg.mode == LONG && cfg.duration ? cfg.duration :
		      cfg.timeout ? cfg.timeout : NEVER;
	cl.t0 = now_ns() + cfg.start;
	cl.tick = cfg.interval ? cl.t0 + cfg.interval : NEVER;
	cl.pattern = cfg.mode == INCAST ? &incast : &arrivals;
	cl.pattern->init(cl.t0);
	flows_init(epfd, cl.pattern);
	if (!cfg.start)
		cl.pattern->run(cl.t0);
	while (!stop) {
		bool timer_fired = false;
		int n;

		if (cl.pattern->prepare)
			cl.pattern->prepare();
		if (cl.pattern->finished())
			break;
		arm_timer();
		n = epoll_wait(epfd, ev, EVENTS, -1);
		if (n < 0 && errno != EINTR)
			err(1, "epoll_wait");
		for (int i = 0; i < n; i++) {
			void *who = ev[i].data.ptr;

			if (who == &sig)
				stop = true;
			else if (who == &cl.timer)
				timer_fired = true;
			else if (((struct flow *)who)->fd >= 0)
				flow_event(who, ev[i].events);
		}
		if (timer_fired) {
			u64 now = now_ns();

			cl.armed = NEVER;
			check_deadlines(now);
			check_tick(now);
			cl.pattern->run(now);
		}
		flows_reap();
	}
	if (stop)
		interrupted();
	report_summary(cl.t0);
	return totals.failed || stop;
}
