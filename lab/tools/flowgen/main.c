// SPDX-License-Identifier: GPL-2.0
/*
 * flowgen - traffic source and sink for measuring congestion controls
 *
 *	flowgen serve			answers requests
 *	flowgen long | rpc | incast	makes requests; prints one line of JSON per finished flow
 *	flowgen plan			does both, in many network namespaces
 *
 * One process, one epoll, no threads. Its cost per megabyte matters more than usual: if the
 * kernel runs in virtual time, most of the real time goes into system calls and wake-ups. So:
 *
 *  - The receiver sleeps until SO_RCVLOWAT bytes are queued (or all that is missing, if that is
 *    less), then discards them with one recv(MSG_TRUNC), which copies nothing.
 *  - The sender hands over megabytes with one sendmsg() of one small buffer repeated, and sleeps
 *    until half of it has left (TCP_NOTSENT_LOWAT).
 *  - Sockets are registered edge-triggered, once. A short read or a short write means "empty" or
 *    "full"; no second call is made to get EAGAIN.
 *    (In virtual time, User-Mode Linux also lets 1 us pass whenever a call returns an error. Only
 *    the EINPROGRESS of connect() cannot be avoided.)
 *  - Nothing polls. All waiting is in epoll_wait() without a timeout; a timerfd with absolute
 *    expiry (no timer slack) wakes it. The clock is read when a flow starts and when it ends.
 *
 *	options.c		the command line: struct work, of servers and generators of flows
 *	../plan/flowgen.c	the same from a plan
 *	loop.c			runs them
 *	serve.c			servers
 *	arrivals.c, incast.c	decide which requests there are, and when
 *	udp.c, programs.c	what a plan has besides: packets, and commands
 *	flow.c			one request, from connect() to its report
 *	report.c		lines of JSON
 *	transfer.c, socket.c	moving bytes, for both sides; socket options
 *	netns.c			network namespaces
 */
#include <err.h>

#include "../common/files.h"
#include "arrivals.h"
#include "loop.h"
#include "report.h"
#include "transfer.h"

static unsigned int connections(const struct config *cfg)
{
	switch (cfg->mode) {
	case LONG:
		return cfg->flows;
	case RPC:
		return cfg->closed;
	case INCAST:
		return cfg->fan;
	case UDP:
		return 2 * cfg->paths;
	default:
		return 0;
	}
}

static void probe(const struct config *cfg, struct netns *ns, int family)
{
	netns_enter(ns);
	netns_send_buffer(ns);
	probe_options(family, cfg);
}

static void prepare(const struct work *w)
{
	for (const struct config *c = w->client; c < w->client + w->clients; c++)
		connections_planned += connections(c);
	raise_file_limit(connections_planned + 2 * w->servers);
	for (const struct config *c = w->client; c < w->client + w->clients; c++)
		if (c->mode != UDP && c->mode != PROGRAM)
			probe(c, c->path->netns, c->host->sa.sa_family);
	for (const struct server *s = w->server; s < w->server + w->servers; s++)
		probe(s->cfg, s->netns, s->cfg->family ? s->cfg->family : AF_INET);
}

int main(int argc, char **argv)
{
	struct work work;
	int ret = 0;

	read_options(&work, argc, argv);
	if (work.plan) {
#ifdef WITH_PLAN
		allow_files();		/* one for each namespace */
		read_plan(&work);
#else
		errx(2, "plan: built without libjansson-dev");
#endif
	}
	prepare(&work);
	if (!work.clients && !work.part)
		return run(&work);
	report_open(work.out_path);
	if (work.clients && work.client->print)
		arrivals_print(work.client);
	else
		ret = run(&work);
	if (report_close())
		errx(1, "the output could not be written");
	return ret;
}
