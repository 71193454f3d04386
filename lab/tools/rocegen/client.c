// SPDX-License-Identifier: GPL-2.0
#include <err.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "../common/alloc.h"
#include "../common/events.h"
#include "../common/json.h"
#include "client.h"
#include "config.h"

/* The messages of one queue pair. Times: CLOCK_MONOTONIC, ns */
struct flow {
	uint64_t posted;
	uint64_t done;
	uint64_t start;
	uint64_t end;
	uint32_t flying;	/* posted and not completed */
	enum ibv_wc_status status;	/* of the first that failed */
};

static int dial(void)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *ai;
	int fd, one = 1;

	if (getaddrinfo(cfg.to, cfg.port, &hints, &ai))
		errx(1, "no address '%s' port '%s'", cfg.to, cfg.port);
	fd = socket(ai->ai_family, ai->ai_socktype, 0);
	if (connect(fd, ai->ai_addr, ai->ai_addrlen))
		err(1, "%s", cfg.to);
	freeaddrinfo(ai);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return fd;
}

static int timer_in(uint64_t ns)
{
	struct itimerspec t = { .it_value = { .tv_sec = ns / NSEC, .tv_nsec = ns % NSEC } };
	int fd = timerfd_create(CLOCK_MONOTONIC, 0);

	if (fd < 0 || (ns && timerfd_settime(fd, 0, &t, NULL)))
		errx(1, "no timer");
	return fd;
}

static bool post_more(struct side *s, struct flow *f, uint32_t i, bool over)
{
	if (over || f->status || f->flying == s->h.depth ||
	    (cfg.messages && f->posted == cfg.messages))
		return false;
	post_send(s, i);
	f->posted++;
	f->flying++;
	return true;
}

/* Returns when all messages are complete. */
static void transfer(struct side *s, struct flow *flows)
{
	int timer = timer_in(cfg.duration), n, k;
	uint64_t start = now_ns();
	uint32_t i, flying = 0;
	struct ibv_wc wc[64];
	bool over = false;

	for (i = 0; i < s->h.qps; i++) {
		flows[i].start = start;
		while (post_more(s, &flows[i], i, false))
			flying++;
	}
	while (flying) {
		uint64_t t;

		/* the timer stays readable once it has run out */
		if (wait_completion(s, over ? -1 : timer))
			over = true;
		t = now_ns();
		while ((n = ibv_poll_cq(s->cq, 64, wc)) > 0)
			for (k = 0; k < n; k++) {
				struct flow *f = &flows[wc[k].wr_id];

				f->flying--;
				flying--;
				f->end = t;
				if (wc[k].status == IBV_WC_SUCCESS)
					f->done++;
				else if (!f->status)
					f->status = wc[k].status;
				flying += post_more(s, f, wc[k].wr_id, over);
			}
	}
	close(timer);
}

static void report(const struct side *s, uint32_t i, const struct flow *f)
{
	uint64_t ns = f->end - f->start, bytes = f->done * s->h.size;
	struct json j = { .file = stdout };

	json_open(&j, NULL, '{');
	json_str(&j, "type", "flow");
	json_str(&j, "label", cfg.label);
	json_str(&j, "kind", op_names[s->h.op]);
	json_int(&j, "qp", s->qp[i]->qp_num);
	json_int(&j, "size", s->h.size);
	json_int(&j, "messages", f->done);
	json_int(&j, "bytes", bytes);
	json_int(&j, "received", s->received[i]);
	json_int(&j, "start_ns", f->start);
	json_int(&j, "duration_ns", ns);
	json_real(&j, "rate_bps", 0, ns ? bytes * 8e9 / ns : 0);
	json_str(&j, "status", f->status ? ibv_wc_status_str(f->status) : "ok");
	json_close(&j, '}');
	putchar('\n');
}

int client(void)
{
	struct side s = { .client = true, .h = cfg.h };
	uint64_t real_minus_mono;
	struct flow *flows;
	int fd, failed = 0;
	char done = 1;
	uint32_t i;

	fd = dial();
	open_device(&s);	/* for the MTU, which the server has to know */
	if (is_ud(&s) && s.h.size > 128U << s.h.mtu)
		s.h.size = 128U << s.h.mtu;	/* a datagram is a packet */
	ibv_close_device(s.ctx);
	s.ctx = NULL;
	put(fd, &s.h, sizeof(s.h));
	exchange(&s, fd);
	flows = xcalloc(s.h.qps, sizeof(*flows));
	if (cfg.start) {
		int t = timer_in(cfg.start);
		uint64_t n;

		if (read(t, &n, sizeof(n)) < 0)
			errx(1, "timer");
		close(t);
	}
	real_minus_mono = clock_ns(CLOCK_REALTIME) - now_ns();
	transfer(&s, flows);
	put(fd, &done, 1);
	if (!get(fd, s.received, s.h.qps * sizeof(*s.received)))
		errx(1, "the server ended early");
	for (i = 0; i < s.h.qps; i++) {
		flows[i].start += real_minus_mono;
		flows[i].end += real_minus_mono;
		report(&s, i, &flows[i]);
		failed |= flows[i].status != IBV_WC_SUCCESS;
	}
	tear_down(&s);
	return failed;
}
