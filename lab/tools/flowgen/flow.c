// SPDX-License-Identifier: GPL-2.0
#include <endian.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../common/alloc.h"
#include "../common/events.h"
#include "flow.h"
#include "report.h"
#include "socket.h"

static struct flow_stack dropped = SLIST_HEAD_INITIALIZER(dropped);
static int epfd;

void flows_init(int fd)
{
	epfd = fd;
}

int epoll_of_flows(void)
{
	return epfd;
}

void flows_reap(void)
{
	struct flow *f;

	while ((f = SLIST_FIRST(&dropped))) {
		SLIST_REMOVE_HEAD(&dropped, spare);
		free(f);
	}
}

static void flow_event(struct watched *w, u32 events);

struct flow *flow_new(struct generator *g, u32 path, u32 slot)
{
	struct flow *f = xcalloc(1, sizeof(*f));

	f->watched.event = flow_event;
	f->gen = g;
	f->fd = -1;
	f->path = path;
	f->slot = slot;
	f->rx.lowat = 1;
	return f;
}

static void flow_close(struct flow *f)
{
	if (f->fd < 0)
		return;
	close(f->fd);
	connections_open--;
	f->fd = -1;
}

void flow_drop(struct flow *f)
{
	flow_close(f);
	SLIST_INSERT_HEAD(&dropped, f, spare);
}

bool flow_info(const struct flow *f, struct tcp_info *info)
{
	socklen_t len = sizeof(*info);

	memset(info, 0, sizeof(*info));
	return f->fd >= 0 && !getsockopt(f->fd, IPPROTO_TCP, TCP_INFO, info, &len);
}

u64 flow_moved(const struct flow *f, const struct tcp_info *info)
{
	const struct config *cfg = f->gen->cfg;
	u64 n, before;

	if (f->state == F_CONNECT)
		return 0;
	if (cfg->pull) {
		n = info->tcpi_bytes_received;
		before = f->rx_before;
	} else {	/* the SYN counts as one byte */
		n = info->tcpi_bytes_acked;
		before = f->tx_before + 1 + sizeof(struct wire);
	}
	n = n > before ? n - before : 0;
	return n < f->size ? n : f->size;
}

static void flow_report(struct flow *f, u64 now, const struct verdict *v)
{
	const struct config *cfg = f->gen->cfg;
	bool complete = v->what == OK && f->size != UNLIMITED, known = false;
	struct tcp_info info = { 0 };
	struct sender s;
	u64 moved = 0;
	socklen_t len;

	if (!cfg->pull || !complete)
		known = flow_info(f, &info);
	if (complete)
		moved = f->size;
	else if (known)
		moved = flow_moved(f, &info);
	s = (struct sender) {
		.retrans = info.tcpi_total_retrans,
		.rwnd_limited = info.tcpi_rwnd_limited,
		.sndbuf_limited = info.tcpi_sndbuf_limited,
	};
	/* The control can change during the handshake (fallback without ECN), not later. */
	if (f->fd >= 0 && !f->cc[0]) {
		len = sizeof(f->cc) - 1;
		if (getsockopt(f->fd, IPPROTO_TCP, TCP_CONGESTION, f->cc, &len))
			f->cc[0] = 0;
	}
	if (cfg->interval && (known || cfg->pull))
		report_interval(f, now, &info, moved);
	report_flow(f, now, moved, !cfg->pull && known ? &s : NULL, v);
	if (!cfg->pull && known)
		f->before = s;
}

void flow_over(struct flow *f, u64 now, struct verdict v)
{
	const struct config *cfg = f->gen->cfg;

	TAILQ_REMOVE(&f->gen->active, f, active);
	if (!f->connect_only) {
		flow_report(f, now, &v);
		f->tx_before += sizeof(struct wire) + (cfg->pull ? 0 : f->size);
		f->rx_before += cfg->pull ? f->size : 1;
	}
	f->state = F_IDLE;
	if (v.what != OK || !cfg->persist)
		flow_close(f);
	f->gen->pattern->flow_over(f, &v);
}

static void flow_failed(struct flow *f, const char *why)
{
	flow_over(f, now_ns(), (struct verdict) { ERROR, why });
}

static void flow_broken(struct flow *f, int how)
{
	flow_failed(f, how == CLOSED ? "closed by the server" : strerror(errno));
}

static void flow_watch(struct flow *f, int op, bool out)
{
	if (op == EPOLL_CTL_MOD && out == f->out_watched)
		return;
	f->out_watched = out;
	watch(epfd, op, f->fd, EPOLLIN | EPOLLRDHUP | EPOLLET | (out ? EPOLLOUT : 0), &f->watched);
}

/* The connection is established: sends the request and its data. */
static void flow_send(struct flow *f)
{
	int r = tx_pump(f->fd, &f->tx, &f->head, &f->head_left);

	if (r < 0) {
		flow_broken(f, r);
	} else if (r == BLOCKED) {
		flow_watch(f, EPOLL_CTL_MOD, true);
	} else {
		f->state = F_RECV;
		/*
		 * Do not watch EPOLLOUT here: each arrival would also report that the socket is
		 * writable, and wake us without data.
		 */
		if (f->rx.left > RX_LOWAT_MAX)
			flow_watch(f, EPOLL_CTL_MOD, false);
	}
}

static void flow_request(struct flow *f)
{
	const struct config *cfg = f->gen->cfg;

	f->state = F_SEND;
	f->head = (struct wire) {
		.magic = htobe32(WIRE_MAGIC),
		.version = WIRE_VERSION,
		.op = cfg->pull ? OP_PULL : OP_PUSH,
		.flags = cfg->persist ? 0 : WIRE_LAST,
		.size = htobe64(f->size),
	};
	f->head_left = sizeof(f->head);
	f->first = 0;
	f->await_first = cfg->first_byte;
	if (cfg->pull) {
		f->tx.left = 0;
		rx_expect(f->fd, &f->rx, f->size, cfg);
		if (f->await_first)
			rx_lowat(f->fd, &f->rx, 1);
	} else {
		f->tx.left = f->size;
		f->rx.left = 1;
		tx_tune(f->fd, &f->tx, cfg, cfg->path[f->path].netns);
	}
	flow_send(f);
}

static const char *flow_socket(struct flow *f)
{
	const struct config *cfg = f->gen->cfg;
	const struct path *path = &cfg->path[f->path];
	const union addr *dst = &cfg->host[path->host];
	static const struct linger reset = { .l_onoff = 1 };
	static char why[80];
	const char *bad;
	socklen_t len = sizeof(f->src);

	netns_enter(path->netns);
	f->fd = socket(dst->sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (f->fd < 0)
		return strerror(errno);
	connections_open++;
	setsockopt(f->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	bad = socket_options(f->fd, dst->sa.sa_family, cfg);
	if (bad) {
		snprintf(why, sizeof(why), "%s: %s", bad, strerror(errno));
		return why;
	}
	if (!cfg->pull)
		set_int(f->fd, IPPROTO_TCP, TCP_NODELAY, 1);
	if (connect(f->fd, &dst->sa, addr_len(dst)) && errno != EINPROGRESS)
		return strerror(errno);
	getsockname(f->fd, &f->src.sa, &len);
	flow_watch(f, EPOLL_CTL_ADD, true);
	return NULL;
}

void flow_start(struct flow *f, u64 now, u64 due)
{
	const char *bad;

	f->start = now;
	f->due = due < now ? due : now;
	f->mark_ns = now;
	TAILQ_INSERT_TAIL(&f->gen->active, f, active);
	if (f->fd >= 0) {
		flow_request(f);
		return;
	}
	f->state = F_CONNECT;
	bad = flow_socket(f);
	if (bad)
		flow_over(f, now, (struct verdict) { ERROR, bad });
}

void flow_stillborn(struct flow *f, u64 now, const char *why)
{
	f->start = now;
	f->due = now;
	TAILQ_INSERT_TAIL(&f->gen->active, f, active);
	flow_over(f, now, (struct verdict) { ERROR, why });
}

/*
 * The first byte of the answer is there. It is not read, so that the receiver's window and ACKs are
 * what they are without --first-byte. True: there is more to wait for, and another event will come.
 */
static bool flow_first(struct flow *f)
{
	f->first = now_ns();
	f->await_first = false;
	rx_expect(f->fd, &f->rx, f->size, f->gen->cfg);
	return f->rx.lowat > 1;
}

static void flow_event(struct watched *w, u32 events)
{
	struct flow *f = (struct flow *)w;
	int r, error;

	if (f->fd < 0)
		return;
	if (events & EPOLLERR) {
		error = get_int(f->fd, SOL_SOCKET, SO_ERROR);
		if (f->state != F_IDLE) {
			flow_failed(f, strerror(error > 0 ? error : EIO));
			return;
		}
	}
	switch (f->state) {
	case F_CONNECT:
		if (!(events & EPOLLOUT))
			return;
		if (f->connect_only)
			flow_over(f, 0, (struct verdict) { OK, NULL });
		else
			flow_request(f);
		return;
	case F_SEND:
		if (events & (EPOLLRDHUP | EPOLLHUP))
			flow_broken(f, CLOSED);
		else if (events & EPOLLOUT)
			flow_send(f);
		return;
	case F_RECV:
		if (!(events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP)))
			return;
		if (f->await_first && events & EPOLLIN && flow_first(f) &&
		    !(events & (EPOLLRDHUP | EPOLLHUP)))
			return;
		r = rx_drain(f->fd, &f->rx);
		if (r < 0)
			flow_broken(f, r);
		else if (r == DONE)
			flow_over(f, now_ns(), (struct verdict) { OK, NULL });
		return;
	case F_IDLE:
		/* No data is expected: the server has closed, or breaks the protocol. */
		if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
			flow_close(f);
		return;
	}
}
