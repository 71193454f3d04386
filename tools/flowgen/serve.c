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
#include "config.h"
#include "serve.h"
#include "socket.h"
#include "transfer.h"

#define EVENTS		256		/* read from epoll at once */
#define COMPLAINTS	10		/* about bad requests */

enum { S_HEAD, S_RECV, S_SEND };

struct conn {
	SLIST_ENTRY(conn) dead;
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

static struct {
	SLIST_HEAD(, conn) dead;	/* freed after this batch of events */
	int epfd;
	int fd[2];			/* listening sockets */
	int fds;
	bool stalled;			/* out of files or memory: not accepting */
	bool served;
	unsigned int complaints;
} srv;

static void srv_listen_events(u32 events)
{
	for (int i = 0; i < srv.fds; i++)
		watch(srv.epfd, EPOLL_CTL_MOD, srv.fd[i], events, &srv.fd[i]);
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
		tx_tune(c->fd, &c->tx);
		return true;
	case OP_PUSH:
		c->state = S_RECV;
		rx_expect(c->fd, &c->rx, size);
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

static void conn_event(struct conn *c, u32 ev)
{
	int r;

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
				      EPOLLIN | EPOLLOUT | EPOLLET, c);
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

static void srv_accept(int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct conn *c;

	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
			srv.stalled = true;
			srv_listen_events(0);
		}
		return;
	}
	c = xcalloc(1, sizeof(*c));
	c->fd = fd;
	c->rx.lowat = sizeof(struct wire);
	watch(srv.epfd, EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLET, c);
	srv.served = true;
	connections_open++;
}

/* @optional: no error if the host lacks this address family */
static void srv_listen(int family, bool optional)
{
	int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
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
	bad = socket_options(fd, family);
	if (bad)
		err(1, "%s", bad);
	/* Accepted sockets inherit these: a whole header wakes us, the one-byte answer is sent. */
	set_int(fd, SOL_SOCKET, SO_RCVLOWAT, sizeof(struct wire));
	set_int(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	addr_any(&any, family, cfg.port);
	if (bind(fd, &any.sa, addr_len(&any))) {
		if (optional && errno == EADDRNOTAVAIL) {
			close(fd);
			return;
		}
		err(1, "bind");
	}
	if (listen(fd, 65535))
		err(1, "listen");
	watch(srv.epfd, EPOLL_CTL_ADD, fd, EPOLLIN, &srv.fd[srv.fds]);
	srv.fd[srv.fds++] = fd;
}

static void srv_ready(void)
{
	static const char line[] = "ready\n";
	int fd = cfg.ready_fd >= 0 ? cfg.ready_fd : STDOUT_FILENO;

	if (write(fd, line, sizeof(line) - 1) < 0)
		err(1, "ready");
	if (cfg.ready_fd >= 0)
		close(fd);
}

int serve(void)
{
	struct epoll_event ev[EVENTS];
	int sig = open_signals();

	srv.epfd = epoll_create1(EPOLL_CLOEXEC);
	if (srv.epfd < 0)
		err(1, "epoll_create");
	watch(srv.epfd, EPOLL_CTL_ADD, sig, EPOLLIN, &sig);
	/* Two sockets, so that IPv4 is served by IPv4 sockets and not by mapped ones. */
	if (cfg.family != AF_INET6)
		srv_listen(AF_INET, false);
	if (cfg.family != AF_INET)
		srv_listen(AF_INET6, cfg.family == AF_UNSPEC);
	srv_ready();
	for (;;) {
		bool idle = cfg.once_idle && srv.served && !connections_open;
		int wait = idle ? (int)(cfg.idle_ns / 1000000) : srv.stalled ? 100 : -1;
		int n = epoll_wait(srv.epfd, ev, EVENTS, wait);

		if (n < 0 && errno != EINTR)
			err(1, "epoll_wait");
		if (!n && idle)
			return 0;
		for (int i = 0; i < n; i++) {
			void *who = ev[i].data.ptr;

			if (who == &sig)
				return 0;
			if (who == &srv.fd[0] || who == &srv.fd[1])
				srv_accept(*(int *)who);
			else if (((struct conn *)who)->fd >= 0)
				conn_event(who, ev[i].events);
		}
		if (srv.stalled && (!SLIST_EMPTY(&srv.dead) || n <= 0)) {
			srv.stalled = false;
			srv_listen_events(EPOLLIN);
		}
		conn_reap();
	}
}
