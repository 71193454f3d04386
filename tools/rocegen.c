// SPDX-License-Identifier: GPL-2.0
/*
 * rocegen - RDMA traffic for measuring congestion management, like flowgen for TCP
 *
 *	rocegen serve			the other side, for any number of clients
 *	rocegen send | write | read | uc-send | uc-write | ud-send
 *					prints one line of JSON per queue pair at the end
 *
 * It sleeps on a completion channel when there is nothing to do. perftest polls, which
 * never ends in a simulation whose time stands still while programs run. The clock is read
 * when messages begin and when they end.
 *
 * Client and server set up their queue pairs over TCP: struct hello, then from each side a
 * struct qp_info per queue pair, then a byte when ready; at the end a byte from the client,
 * and from the server the bytes that each of its queue pairs has received. The server forks
 * a process per client. Both hosts must have the same byte order.
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <infiniband/verbs.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "common/alloc.h"
#include "common/events.h"
#include "common/json.h"
#include "common/units.h"

#define MAGIC		0x726f636567656e31ULL
#define DEFAULT_PORT	"5301"
#define MAX_QPS		4096
#define MAX_SIZE	(256U << 20)
#define MAX_DEPTH	1024
#define GRH		40	/* space before the payload of a received datagram */
#define UD_QKEY		0x11111111

enum op { SEND, WRITE, READ, UC_SEND, UC_WRITE, UD_SEND, OPS };
static const char * const op_names[] = {
	"send", "write", "read", "uc-send", "uc-write", "ud-send"
};

enum { BOTH_NONE, BOTH_WRITE, BOTH_READ };

struct hello {
	uint64_t magic;
	uint32_t op;
	uint32_t qps;
	uint32_t size;
	uint32_t depth;
	uint32_t mtu;
	uint32_t both;		/* BOTH_*: the server's requests, on the same queue pairs */
};

struct qp_info {
	union ibv_gid gid;
	uint32_t qpn;
	uint32_t psn;
	uint32_t rkey;
	uint64_t addr;
};

/* One side of a connection: a device, and queue pairs of one kind to one peer */
struct side {
	struct hello h;
	bool client;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp **qp;
	struct ibv_ah **ah;
	struct qp_info *peer;
	uint64_t *received;
	char *buf;
};

static struct {
	const char *dev;
	const char *to;
	const char *port;
	const char *label;
	int gid;
	uint64_t messages;
	uint64_t duration;
	uint64_t start;
	int timeout;
	struct hello h;
} cfg = {
	.gid = 1, .port = DEFAULT_PORT, .label = "", .timeout = 14,
	.h = { .magic = MAGIC, .qps = 1, .size = 65536, .depth = 4 },
};

/* ---- TCP ------------------------------------------------------------------------------- */

static void put(int fd, const void *buf, size_t len)
{
	if (send(fd, buf, len, MSG_NOSIGNAL) != (ssize_t)len)
		errx(1, "the other side has closed the connection");
}

static bool get(int fd, void *buf, size_t len)
{
	return recv(fd, buf, len, MSG_WAITALL) == (ssize_t)len;
}

/* ---- verbs ----------------------------------------------------------------------------- */

static bool is_uc(const struct side *s)
{
	return s->h.op == UC_SEND || s->h.op == UC_WRITE;
}

static bool is_ud(const struct side *s)
{
	return s->h.op == UD_SEND;
}

/* Do messages need a receive request on the other side? */
static bool takes_recv(const struct side *s)
{
	return s->h.op == SEND || s->h.op == UC_SEND || s->h.op == UD_SEND;
}

static void open_device(struct side *s)
{
	struct ibv_device **list = ibv_get_device_list(NULL), **d;
	struct ibv_port_attr port;

	for (d = list; d && *d; d++)
		if (!strcmp(ibv_get_device_name(*d), cfg.dev))
			s->ctx = ibv_open_device(*d);
	if (!s->ctx)
		errx(1, "no RDMA device '%s'", cfg.dev);
	ibv_free_device_list(list);
	if (ibv_query_port(s->ctx, 1, &port))
		errx(1, "cannot query '%s'", cfg.dev);
	if (s->client)
		s->h.mtu = port.active_mtu;
}

static void post_recv(struct side *s, uint32_t i)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)s->buf, .length = s->h.size + GRH, .lkey = s->mr->lkey
	};
	struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 }, *bad;

	if (ibv_post_recv(s->qp[i], &wr, &bad))
		errx(1, "cannot post a receive request");
}

static void post_send(struct side *s, uint32_t i)
{
	static const enum ibv_wr_opcode opcode[] = {
		[SEND] = IBV_WR_SEND, [WRITE] = IBV_WR_RDMA_WRITE, [READ] = IBV_WR_RDMA_READ,
		[UC_SEND] = IBV_WR_SEND, [UC_WRITE] = IBV_WR_RDMA_WRITE, [UD_SEND] = IBV_WR_SEND,
	};
	struct ibv_sge sge = {
		.addr = (uintptr_t)s->buf, .length = s->h.size, .lkey = s->mr->lkey
	};
	struct ibv_send_wr wr = {
		.wr_id = i, .sg_list = &sge, .num_sge = 1,
		.opcode = opcode[!s->client && s->h.both == BOTH_READ ? READ : s->h.op],
		.send_flags = IBV_SEND_SIGNALED,
	}, *bad;

	if (is_ud(s)) {
		wr.wr.ud.ah = s->ah[i];
		wr.wr.ud.remote_qpn = s->peer[i].qpn;
		wr.wr.ud.remote_qkey = UD_QKEY;
	} else {
		wr.wr.rdma.remote_addr = s->peer[i].addr;
		wr.wr.rdma.rkey = s->peer[i].rkey;
	}
	if (ibv_post_send(s->qp[i], &wr, &bad))
		errx(1, "cannot post a send request");
}

static void make_qps(struct side *s, struct qp_info *mine)
{
	enum ibv_qp_type type = is_ud(s) ? IBV_QPT_UD : is_uc(s) ? IBV_QPT_UC : IBV_QPT_RC;
	uint32_t i, d, n = s->h.qps;
	union ibv_gid gid;

	open_device(s);
	if (ibv_query_gid(s->ctx, 1, cfg.gid, &gid))
		errx(1, "no GID %d", cfg.gid);
	s->pd = ibv_alloc_pd(s->ctx);
	s->channel = ibv_create_comp_channel(s->ctx);
	if (!s->pd || !s->channel)
		errx(1, "no protection domain or completion channel");
	s->cq = ibv_create_cq(s->ctx, n * s->h.depth, NULL, s->channel, 0);
	s->buf = xcalloc(1, s->h.size + GRH);
	if (!s->cq || ibv_req_notify_cq(s->cq, 0))
		errx(1, "no completion queue of %u", n * s->h.depth);
	s->mr = ibv_reg_mr(s->pd, s->buf, s->h.size + GRH, IBV_ACCESS_LOCAL_WRITE |
			   IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	if (!s->mr)
		errx(1, "cannot register %u bytes of memory", s->h.size);
	s->qp = xcalloc(n, sizeof(*s->qp));
	s->ah = xcalloc(n, sizeof(*s->ah));
	s->peer = xcalloc(n, sizeof(*s->peer));
	s->received = xcalloc(n, sizeof(*s->received));
	for (i = 0; i < n; i++) {
		struct ibv_qp_init_attr init = {
			.send_cq = s->cq, .recv_cq = s->cq, .qp_type = type,
			.cap = { .max_send_wr = s->h.depth, .max_recv_wr = s->h.depth,
				 .max_send_sge = 1, .max_recv_sge = 1 },
		};
		struct ibv_qp_attr attr = {
			.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = UD_QKEY,
			.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
		};
		int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			   (is_ud(s) ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);

		s->qp[i] = ibv_create_qp(s->pd, &init);
		if (!s->qp[i] || ibv_modify_qp(s->qp[i], &attr, mask))
			err(1, "no queue pair %u", i);
		if (!s->client && takes_recv(s))
			for (d = 0; d < s->h.depth; d++)
				post_recv(s, i);
		mine[i] = (struct qp_info){
			.gid = gid, .qpn = s->qp[i]->qp_num, .psn = 1000 + i,
			.rkey = s->mr->rkey, .addr = (uintptr_t)s->buf,
		};
	}
}

/* Brings the queue pairs to the state ready-to-send. */
static void connect_qps(struct side *s, const struct qp_info *mine)
{
	uint32_t i;

	for (i = 0; i < s->h.qps; i++) {
		struct ibv_ah_attr ah = {
			.is_global = 1, .port_num = 1,
			.grh = { .dgid = s->peer[i].gid, .sgid_index = cfg.gid, .hop_limit = 64 },
		};
		struct ibv_qp_attr rtr = {
			.qp_state = IBV_QPS_RTR, .path_mtu = s->h.mtu,
			.dest_qp_num = s->peer[i].qpn, .rq_psn = s->peer[i].psn,
			.max_dest_rd_atomic = 16, .min_rnr_timer = 12, .ah_attr = ah,
		};
		struct ibv_qp_attr rts = {
			.qp_state = IBV_QPS_RTS, .sq_psn = mine[i].psn, .timeout = cfg.timeout,
			.retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 16,
		};
		int rtr_mask = IBV_QP_STATE, rts_mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

		if (!is_ud(s)) {
			rtr_mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
			if (!is_uc(s)) {
				rtr_mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
				rts_mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
					    IBV_QP_MAX_QP_RD_ATOMIC;
			}
		} else {
			s->ah[i] = ibv_create_ah(s->pd, &ah);
			if (!s->ah[i])
				errx(1, "no address handle");
		}
		if (ibv_modify_qp(s->qp[i], &rtr, rtr_mask) ||
		    ibv_modify_qp(s->qp[i], &rts, rts_mask))
			err(1, "cannot connect queue pair %u", i);
	}
}

static void exchange(struct side *s, int fd)
{
	size_t len = s->h.qps * sizeof(struct qp_info);
	struct qp_info *mine = xcalloc(1, len);
	char ready = 1;

	make_qps(s, mine);
	put(fd, mine, len);
	if (!get(fd, s->peer, len))
		errx(1, "the other side failed: see its error message");
	connect_qps(s, mine);
	put(fd, &ready, 1);
	if (!get(fd, &ready, 1))
		errx(1, "the other side is not ready");
	free(mine);
}

/* Sleeps until there are completions or @fd is readable. Returns true for the latter. */
static bool wait_completion(struct side *s, int fd)
{
	struct pollfd p[] = {
		{ .fd = s->channel->fd, .events = POLLIN }, { .fd = fd, .events = POLLIN }
	};
	struct ibv_cq *cq;
	void *context;

	while (poll(p, 2, -1) < 0)
		if (errno != EINTR)
			err(1, "poll");
	if (p[0].revents) {
		if (ibv_get_cq_event(s->channel, &cq, &context))
			errx(1, "no event on the completion channel");
		ibv_ack_cq_events(cq, 1);
		if (ibv_req_notify_cq(s->cq, 0))
			errx(1, "no notification");
	}
	return p[1].revents;
}

static void tear_down(struct side *s)
{
	uint32_t i;

	for (i = 0; i < s->h.qps; i++) {
		if (ibv_destroy_qp(s->qp[i]))
			errx(1, "cannot destroy a queue pair");
		if (s->ah[i])
			ibv_destroy_ah(s->ah[i]);
	}
	ibv_destroy_cq(s->cq);
	ibv_dereg_mr(s->mr);
	ibv_dealloc_pd(s->pd);
	ibv_destroy_comp_channel(s->channel);
	ibv_close_device(s->ctx);
}

/* The server's own requests, with --both and --read-back: as many as the client's */
static void post_all(struct side *s)
{
	uint32_t i, d;

	for (i = 0; i < s->h.qps; i++)
		for (d = 0; d < s->h.depth; d++)
			post_send(s, i);
}

/* ---- server ---------------------------------------------------------------------------- */

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

static int serve(void)
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

/* ---- client ---------------------------------------------------------------------------- */

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

struct flow {
	uint64_t posted;
	uint64_t done;
	uint64_t start;
	uint64_t end;
	uint32_t flying;
	enum ibv_wc_status status;
};

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

static int client(void)
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

/* ---- main ------------------------------------------------------------------------------ */

static _Noreturn void usage(int status)
{
	fprintf(status ? stderr : stdout,
		"usage: rocegen serve --dev DEV [--gid N] [--port P]\n"
		"       rocegen send|write|read|uc-send|uc-write|ud-send --dev DEV --to ADDR\n"
		"               [--gid N] [--port P] [--qps N] [--size BYTES] [--depth N]\n"
		"               [--duration TIME | --messages N] [--start TIME] [--timeout N]\n"
		"               [--both | --read-back] [--label TEXT]\n"
		"       rocegen --version\n"
		"TIME is such as 20ms, BYTES such as 64Ki. --timeout is 4.096 us * 2^N.\n");
	exit(status);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "dev", 1, NULL, 'd' }, { "gid", 1, NULL, 'g' }, { "port", 1, NULL, 'p' },
		{ "to", 1, NULL, 't' }, { "qps", 1, NULL, 'q' }, { "size", 1, NULL, 's' },
		{ "depth", 1, NULL, 'n' }, { "duration", 1, NULL, 'D' },
		{ "messages", 1, NULL, 'm' }, { "start", 1, NULL, 'S' },
		{ "timeout", 1, NULL, 'T' }, { "label", 1, NULL, 'l' }, { "both", 0, NULL, 'b' },
		{ "read-back", 0, NULL, 'r' },
		{ "help", 0, NULL, 'h' }, { "version", 0, NULL, 'V' },
		{ NULL, 0, NULL, 0 }
	};
	u64 size = cfg.h.size;
	const char *what;
	int c, i;

	while ((c = getopt_long(argc, argv, "h", options, &i)) != -1) {
		switch (c) {
		case 'd':
			cfg.dev = optarg;
			break;
		case 'g':
			cfg.gid = parse_int("--gid", optarg, 0, 255);
			break;
		case 'p':
			cfg.port = optarg;
			break;
		case 't':
			cfg.to = optarg;
			break;
		case 'q':
			cfg.h.qps = parse_int("--qps", optarg, 1, MAX_QPS);
			break;
		case 's':
			size = parse_size("--size", optarg);
			break;
		case 'n':
			cfg.h.depth = parse_int("--depth", optarg, 1, MAX_DEPTH);
			break;
		case 'D':
			cfg.duration = parse_time("--duration", optarg);
			break;
		case 'm':
			cfg.messages = parse_int("--messages", optarg, 1, UINT64_MAX);
			break;
		case 'S':
			cfg.start = parse_time("--start", optarg);
			break;
		case 'T':
			cfg.timeout = parse_int("--timeout", optarg, 0, 31);
			break;
		case 'l':
			cfg.label = optarg;
			break;
		case 'b':
			cfg.h.both = BOTH_WRITE;
			break;
		case 'r':
			cfg.h.both = BOTH_READ;
			break;
		case 'h':
			usage(0);
		case 'V':
			puts("rocegen " LOWQ_VERSION);
			return 0;
		default:
			usage(2);
		}
	}
	if (argc - optind != 1 || !cfg.dev)
		usage(2);
	what = argv[optind];
	if (!strcmp(what, "serve"))
		return serve();
	for (i = 0; i < OPS && strcmp(what, op_names[i]); i++)
		;
	if (i == OPS || !cfg.to || size > MAX_SIZE || !cfg.duration == !cfg.messages)
		usage(2);
	if (cfg.h.both && i != WRITE && i != UC_WRITE)
		errx(2, "--both takes write or uc-write");
	if (cfg.h.both == BOTH_READ && i != WRITE)
		errx(2, "--read-back takes write");
	cfg.h.op = i;
	cfg.h.size = size;
	return client();
}
