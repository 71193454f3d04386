// SPDX-License-Identifier: GPL-2.0
/*
 * The pattern of udp: packets at a constant rate, in bursts, by chance, or on and off in turn. Each
 * has its number and the time when it was sent. Both ends are here and have the same clock.
 */
#include <err.h>
#include <math.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../common/alloc.h"
#include "../common/events.h"
#include "flow.h"
#include "report.h"
#include "rng.h"
#include "socket.h"

#define LAST_NS		NSEC		/* how long the last packets are waited for */
#define RCVBUF		(4 << 20)	/* bytes; the receiver wakes for every packet */

struct head {
	u64 number, sent;		/* the host's byte order: it does not leave the host */
};

/* One flow */
struct stream {
	struct watched watched;		/* first: epoll's pointer is to it */
	int out, in;
	union addr src;
	u64 sent, received, room;
	u64 *delay;			/* ns, of those received */
};

struct udp {
	struct stream *stream;
	u8 *packet;
	struct rng gap_rng;
	double at;			/* ns after t0: the next burst, without the silences */
	u64 end;			/* when it stops sending; NEVER: not known yet */
	bool sent, over;		/* it sends no more; the flows are reported */
};

static void udp_event(struct watched *w, u32 events)
{
	struct stream *s = (struct stream *)w;
	struct head h;

	(void)events;
	while (recv(s->in, &h, sizeof(h), MSG_DONTWAIT | MSG_TRUNC) >= (ssize_t)sizeof(h)) {
		if (s->received == s->room) {
			s->room = s->room ? 2 * s->room : 1024;
			s->delay = xreallocarray(s->delay, s->room, sizeof(*s->delay));
		}
		s->delay[s->received++] = now_ns() - h.sent;
	}
}

static int udp_socket(struct netns *ns, int family)
{
	int fd;

	netns_enter(ns);
	fd = socket(family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		err(1, "udp: socket");
	return fd;
}

static void udp_open(const struct config *cfg, unsigned int i, struct stream *s)
{
	const union addr *dst = &cfg->host[i];
	int family = dst->sa.sa_family;
	socklen_t len = sizeof(s->src);
	union addr any;

	s->watched.event = udp_event;
	s->in = udp_socket(cfg->server[i], family);
	set_buf(s->in, SO_RCVBUFFORCE, SO_RCVBUF, RCVBUF);
	addr_any(&any, family, addr_port(dst));
	if (bind(s->in, &any.sa, addr_len(&any)))
		err(1, "udp: port %u of '%s'", addr_port(dst), cfg->path[i].server);
	watch(epoll_of_flows(), EPOLL_CTL_ADD, s->in, EPOLLIN | EPOLLET, &s->watched);
	s->out = udp_socket(cfg->path[i].netns, family);
	if (family == AF_INET6 ? set_int(s->out, IPPROTO_IPV6, IPV6_TCLASS, cfg->tos) :
				 set_int(s->out, IPPROTO_IP, IP_TOS, cfg->tos))
		err(1, "udp: the ECN field");
	set_buf(s->out, SO_SNDBUFFORCE, SO_SNDBUF, RCVBUF);
	if (connect(s->out, &dst->sa, addr_len(dst)))
		err(1, "udp: '%s'", cfg->path[i].server);
	getsockname(s->out, &s->src.sa, &len);
}

static void udp_init(struct generator *g)
{
	const struct config *cfg = g->cfg;
	struct udp *u = xcalloc(1, sizeof(*u));

	g->state = u;
	u->packet = xcalloc(1, cfg->size);
	u->stream = xcalloc(cfg->paths, sizeof(*u->stream));
	rng_seed(&u->gap_rng, cfg->seed, 5);
	for (unsigned int i = 0; i < cfg->paths; i++)
		udp_open(cfg, i, &u->stream[i]);
	u->end = cfg->duration ? g->t0 + cfg->duration : NEVER;
}

/* When the next burst is due: the time of sending, and a silence for each part of it */
static u64 udp_next(const struct generator *g)
{
	const struct config *cfg = g->cfg;
	const struct udp *u = g->state;
	u64 at = u->at + 0.5;

	return g->t0 + at + (cfg->off ? at / cfg->on * cfg->off : 0);
}

static u64 udp_due(const struct generator *g)
{
	const struct udp *u = g->state;
	u64 next = udp_next(g);

	if (u->over)
		return NEVER;
	return next < u->end ? next : u->sent ? u->end + LAST_NS : u->end;
}

static void udp_burst(struct generator *g, struct stream *s, u64 now)
{
	struct udp *u = g->state;

	for (unsigned int i = 0; i < g->cfg->burst; i++) {
		struct head h = { s->sent, now };

		memcpy(u->packet, &h, sizeof(h));
		/* what the host's own queue refuses is lost, too */
		send(s->out, u->packet, g->cfg->size, 0);
		s->sent++;
	}
}

static int by_value(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

/* The smallest that so many of @permille are not above */
static void report_delay(struct json *j, const char *key, const struct stream *s, u64 permille)
{
	if (s->received)
		json_int(j, key, s->delay[(s->received * permille + 999) / 1000 - 1]);
	else
		json_null(j, key);
}

static void report_stream(const struct generator *g, unsigned int i, u64 end)
{
	const struct config *cfg = g->cfg;
	struct stream *s = &((struct udp *)g->state)->stream[i];
	struct json j = report_line("flow", cfg);
	char text[INET6_ADDRSTRLEN];

	if (s->received)
		qsort(s->delay, s->received, sizeof(*s->delay), by_value);
	json_int(&j, "id", i);
	json_str(&j, "src", addr_text(&s->src, text));
	json_int(&j, "sport", addr_port(&s->src));
	json_str(&j, "dst", addr_text(&cfg->host[i], text));
	json_int(&j, "dport", addr_port(&cfg->host[i]));
	json_str(&j, "client", cfg->path[i].netns->name);
	json_str(&j, "server", cfg->path[i].server);
	json_int(&j, "sent", s->sent);
	json_int(&j, "received", s->received);
	json_int(&j, "size", s->received * cfg->size);
	report_span(&j, g->t0, end, s->received * cfg->size);
	report_delay(&j, "delay_p50_ns", s, 500);
	report_delay(&j, "delay_p99_ns", s, 990);
	report_delay(&j, "delay_p999_ns", s, 999);
	report_delay(&j, "delay_max_ns", s, 1000);
	json_str(&j, "status", "ok");
	report_line_end(&j);
	count_flow(g->t0, end, s->received * cfg->size, true);
}

static void udp_over(struct generator *g)
{
	struct udp *u = g->state;

	u->over = true;
	for (unsigned int i = 0; i < g->cfg->paths; i++)
		report_stream(g, i, u->end);
	if (u->end > g->last_end)
		g->last_end = u->end;
}

static void udp_run(struct generator *g, u64 now)
{
	const struct config *cfg = g->cfg;
	struct udp *u = g->state;
	u64 due;

	while (!u->over && (due = udp_due(g)) <= now) {
		if (due >= u->end) {
			if (u->sent)
				udp_over(g);
			u->sent = true;
			continue;
		}
		report_late(now, due);
		for (unsigned int i = 0; i < cfg->paths; i++)
			udp_burst(g, &u->stream[i], now);
		u->at += cfg->random ? -log(1.0 - rng_unit(&u->gap_rng)) * cfg->every : cfg->every;
		now = now_ns();
	}
}

/* Nothing is on its way any more */
static void udp_prepare(struct generator *g)
{
	struct udp *u = g->state;

	for (unsigned int i = 0; i < g->cfg->paths; i++)
		if (u->stream[i].received < u->stream[i].sent)
			return;
	if (u->sent && !u->over)
		udp_over(g);
}

static bool udp_finished(const struct generator *g)
{
	const struct udp *u = g->state;

	return u->over;
}

/* Packets that are on their way are waited for. */
static void udp_stop(struct generator *g)
{
	struct udp *u = g->state;
	u64 now = now_ns();

	if (now < u->end)
		u->end = now > g->t0 ? now : g->t0;
	u->sent = true;
}

const struct pattern udp = {
	.init = udp_init,
	.prepare = udp_prepare,
	.due = udp_due,
	.run = udp_run,
	.finished = udp_finished,
	.stop = udp_stop,
};
