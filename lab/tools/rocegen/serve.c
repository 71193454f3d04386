// SPDX-License-Identifier: GPL-2.0
#include <err.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "config.h"
#include "serve.h"

/* The server's own requests, with --both and --read-back: as many as the client's */
static void post_all(struct side *s)
{
	uint32_t i, d;

	for (i = 0; i < s->h.qps; i++)
		for (d = 0; d < s->h.depth; d++)
			post_send(s, i);
}

static void serve_client(int fd)
{
	struct side s = { 0 };
	struct ibv_wc wc[64];
	bool over = false;
	char done;
	int n, i;

	if (!get(fd, &s.h, sizeof(s.h)) || s.h.magic != MAGIC || s.h.op >= OPS || !s.h.qps ||
	    s.h.qps > MAX_QPS || s.h.size > MAX_SIZE || !s.h.depth || s.h.depth > MAX_DEPTH ||
	    s.h.both > BOTH_READ || (s.h.both && s.h.op != WRITE && s.h.op != UC_WRITE) ||
	    (s.h.both == BOTH_READ && s.h.op != WRITE))
		errx(1, "unknown request from a client: is it another version of rocegen?");
	exchange(&s, fd);
	if (s.h.both)
		post_all(&s);
	while (!over) {
		over = wait_completion(&s, fd);
		while ((n = ibv_poll_cq(s.cq, 64, wc)) > 0)
			for (i = 0; i < n; i++) {
				if (wc[i].status == IBV_WC_WR_FLUSH_ERR)
					continue;
				if (wc[i].status != IBV_WC_SUCCESS)
					errx(1, "receiving: %s", ibv_wc_status_str(wc[i].status));
				if (s.h.both) {
					if (!over)
						post_send(&s, wc[i].wr_id);
					continue;
				}
				s.received[wc[i].wr_id] += wc[i].byte_len - (is_ud(&s) ? GRH : 0);
				post_recv(&s, wc[i].wr_id);
			}
	}
	if (get(fd, &done, 1))
		put(fd, s.received, s.h.qps * sizeof(*s.received));
	tear_down(&s);
	exit(0);
}

int serve(void)
{
	struct addrinfo hints = {
		.ai_family = AF_INET6, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE
	}, *ai;
	int fd, one = 1, zero = 0;

	if (getaddrinfo(NULL, cfg.port, &hints, &ai))
		errx(1, "no port '%s'", cfg.port);
	fd = socket(ai->ai_family, ai->ai_socktype, 0);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero));
	if (bind(fd, ai->ai_addr, ai->ai_addrlen) || listen(fd, 100))
		err(1, "port %s", cfg.port);
	freeaddrinfo(ai);
	signal(SIGCHLD, SIG_IGN);
	for (;;) {
		int c = accept(fd, NULL, NULL);

		if (c < 0)
			continue;
		setsockopt(c, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		if (!fork())
			serve_client(c);
		close(c);
	}
}
