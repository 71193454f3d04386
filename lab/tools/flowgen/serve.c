// SPDX-License-Identifier: GPL-2.0
/*
 * The server. Requests on one connection do not overlap. A header that is not exactly right
 * closes its connection.
 */
#include <endian.h>
#include <err.h>
#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../common/alloc.h"
#include "../common/events.h"
#include "../common/units.h"
#include "address.h"
#include "loop.h"
#include "serve.h"
#include "transfer.h"

#define COMPLAINTS	10		/* about bad requests */

enum { S_HEAD, S_RECV, S_SEND };

struct conn {
	struct watched watched;		/* first, as in struct listener */

	SLIST_ENTRY(conn) dead;
	const struct server *server;
	int fd;				/* -1: closed; ignore its events of this batch */
	u8 state;
	u8 got;				/* bytes of head */
	bool out_watched;
	bool in_missed;			/* input came while sending; epoll is edge-triggered */
	bool last;
	struct rx rx;
	struct tx tx;
	struct wire head;
};

struct listener {
	struct watched watched;
	const struct server *server;
	int fd;
};

static struct {
	SLIST_HEAD(, conn) dead;	/* freed after this batch of events */
	const struct work *work;
	int epfd;
	struct listener *listener;
	unsigned int listeners;
	bool stalled;			/* out of files or memory: not accepting */
	bool served;
	unsigned int complaints;
} srv;

static void srv_listen_events(u32 events)
{
	for (struct listener *l = srv.listener; l < srv.listener + srv.listeners; l++)
		watch(srv.epfd, EPOLL_CTL_MOD, l->fd, events, &l->watched);
}

static void conn_close(struct conn *c)
{
	close(c->fd);
	c->fd = -1;
	SLIST_INSERT_HEAD(&srv.dead, c, dead);
	connections_open--;
}

static void conn_reap(void)
{
	struct conn *c;

	while ((c = SLIST_FIRST(&srv.dead))) {
		SLIST_REMOVE_HEAD(&srv.dead, dead);
		free(c);
	}
}

/* The header may be anything: act on it only if every field is valid. */
static bool conn_request(struct conn *c)
{
	const struct wire *w = &c->head;
	u64 size = be64toh(w->size);

	if (w->magic != htobe32(WIRE_MAGIC) || w->version != WIRE_VERSION ||
	    (w->flags & ~WIRE_LAST) || w->zero)
		return false;
	if (!size || (size > SIZE_LIMIT && size != UNLIMITED))
		return false;
	c->last = w->flags & WIRE_LAST;
	switch (w->op) {
	case OP_PULL:
		c->state = S_SEND;
		c->tx.left = size;
		tx_tune(c->fd, &c->tx, c->server->cfg, c->server->netns);
		return true;
	case OP_PUSH:
		c->state = S_RECV;
		rx_expect(c->fd, &c->rx, size, c->server->cfg);
		return true;
	}
	return false;
}

static int conn_read_head(struct conn *c)
{
	ssize_t n = recv(c->fd, (char *)&c->head + c->got, sizeof(c->head) - c->got,
			 MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? BLOCKED : BROKEN;
	if (!n)
		return CLOSED;
	c->got += n;
	if (c->got < sizeof(c->head)) {
		rx_lowat(c->fd, &c->rx, sizeof(c->head) - c->got);
		return BLOCKED;
	}
	c->got = 0;
	if (!conn_request(c)) {
		if (srv.complaints++ < COMPLAINTS)
			warnx("a connection that sent no valid request is closed");
		return BROKEN;
	}
	return DONE;
}

static void conn_event(struct watched *w, u32 ev)
{
	struct conn *c = (struct conn *)w;
	int r;

	if (c->fd < 0)
		return;
	if (ev & EPOLLERR) {
		conn_close(c);
		return;
	}
	if (c->state == S_SEND) {
		if (ev & (EPOLLIN | EPOLLHUP))
			c->in_missed = true;
		if (!(ev & (EPOLLOUT | EPOLLHUP)))
			return;
	} else if (!(ev & (EPOLLIN | EPOLLHUP))) {
		return;
	}
	for (;;) {
		switch (c->state) {
		case S_HEAD:
			r = conn_read_head(c);
			break;
		case S_RECV:
			r = rx_drain(c->fd, &c->rx);
			if (r == DONE) {
				c->state = S_SEND;
				c->tx.left = 1;
			}
			break;
		default:
			r = tx_pump(c->fd, &c->tx, NULL, NULL);
			if (r == BLOCKED && !c->out_watched) {
				c->out_watched = true;
				watch(srv.epfd, EPOLL_CTL_MOD, c->fd,
				      EPOLLIN | EPOLLOUT | EPOLLET, &c->watched);
			}
			if (r == DONE) {
				c->state = S_HEAD;
				if (!c->last)
					rx_lowat(c->fd, &c->rx, sizeof(c->head));
				if (!c->in_missed)
					return;
				c->in_missed = false;
			}
			break;
		}
		if (r < 0)
			conn_close(c);
		if (r != DONE)
			return;
	}
}

static void srv_accept(struct watched *w, u32 events)
{
	const struct listener *l = (struct listener *)w;
	int fd = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct conn *c;

	(void)events;
	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
			srv.stalled = true;
			srv_listen_events(0);
		}
		return;
	}
	c = xcalloc(1, sizeof(*c));
	c->watched.event = conn_event;
	c->server = l->server;
	c->fd = fd;
	c->rx.lowat = sizeof(struct wire);
	watch(srv.epfd, EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLET, &c->watched);
	srv.served = true;
	connections_open++;
}

/* @optional: no error if the host lacks this address family */
static void srv_listen(const struct server *s, int family, bool optional)
{
	int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct listener *l = &srv.listener[srv.listeners];
	const char *bad;
	union addr any;

	if (fd < 0) {
		if (optional)
			return;
		err(1, "socket");
	}
	set_int(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	if (family == AF_INET6)
		set_int(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
	bad = socket_options(fd, family, s->cfg);
	if (bad)
		err(1, "%s", bad);
	/* Accepted sockets inherit these: a whole header wakes us, the one-byte answer is sent. */
	set_int(fd, SOL_SOCKET, SO_RCVLOWAT, sizeof(struct wire));
	set_int(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	addr_any(&any, family, s->cfg->port);
	if (bind(fd, &any.sa, addr_len(&any))) {
		if (optional && errno == EADDRNOTAVAIL) {
			close(fd);
			return;
		}
		err(1, "bind");
	}
	if (listen(fd, 65535))
		err(1, "listen");
	*l = (struct listener){ { srv_accept }, s, fd };
	srv.listeners++;
	watch(srv.epfd, EPOLL_CTL_ADD, fd, EPOLLIN, &l->watched);
}

static void srv_ready(const struct config *cfg)
{
	static const char line[] = "ready\n";
	int fd = cfg->ready_fd >= 0 ? cfg->ready_fd : STDOUT_FILENO;

	if (write(fd, line, sizeof(line) - 1) < 0)
		err(1, "ready");
	if (cfg->ready_fd >= 0)
		close(fd);
}

void serve(const struct work *w, int epfd)
{
	srv.work = w;
	srv.epfd = epfd;
	srv.listener = xcalloc(2 * w->servers, sizeof(*srv.listener));
	for (const struct server *s = w->server; s < w->server + w->servers; s++) {
		netns_enter(s->netns);
		/* Two sockets, so that IPv4 is served by IPv4 sockets and not by mapped ones. */
		if (s->cfg->family != AF_INET6)
			srv_listen(s, AF_INET, false);
		if (s->cfg->family != AF_INET)
			srv_listen(s, AF_INET6, s->cfg->family == AF_UNSPEC);
	}
	/* who makes flows here need not be told */
	if (!w->clients && !w->part)
		srv_ready(w->server->cfg);
}

/* --once-idle is of a single server. */
static bool srv_idle(void)
{
	return srv.work && srv.work->server->cfg->once_idle && srv.served && !connections_open;
}

int serve_timeout(void)
{
	if (srv_idle())
		return srv.work->server->cfg->idle_ns / 1000000;
	return srv.stalled ? 100 : -1;
}

bool serve_reap(int n)
{
	if (!n && srv_idle())
		return true;
	if (srv.stalled && (!SLIST_EMPTY(&srv.dead) || n <= 0)) {
		srv.stalled = false;
		srv_listen_events(EPOLLIN);
	}
	conn_reap();
	return false;
}
