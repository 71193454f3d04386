// SPDX-License-Identifier: GPL-2.0
#include <err.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "../common/alloc.h"
#include "config.h"

const char * const op_names[OPS] = {
	"send", "write", "read", "uc-send", "uc-write", "ud-send"
};

void put(int fd, const void *buf, size_t len)
{
	if (send(fd, buf, len, MSG_NOSIGNAL) != (ssize_t)len)
		errx(1, "the other side has closed the connection");
}

bool get(int fd, void *buf, size_t len)
{
	return recv(fd, buf, len, MSG_WAITALL) == (ssize_t)len;
}

static bool is_uc(const struct side *s)
{
	return s->h.op == UC_SEND || s->h.op == UC_WRITE;
}

bool is_ud(const struct side *s)
{
	return s->h.op == UD_SEND;
}

/* Do messages need a receive request on the other side? */
static bool takes_recv(const struct side *s)
{
	return s->h.op == SEND || s->h.op == UC_SEND || s->h.op == UD_SEND;
}

void open_device(struct side *s)
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

void post_recv(struct side *s, uint32_t i)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)s->buf, .length = s->h.size + GRH, .lkey = s->mr->lkey
	};
	struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 }, *bad;

	if (ibv_post_recv(s->qp[i], &wr, &bad))
		errx(1, "cannot post a receive request");
}

void post_send(struct side *s, uint32_t i)
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

void exchange(struct side *s, int fd)
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

bool wait_completion(struct side *s, int fd)
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

void tear_down(struct side *s)
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
