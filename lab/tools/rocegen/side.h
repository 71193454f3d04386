/* SPDX-License-Identifier: GPL-2.0 */
/* One side of a connection: its queue pairs, and the TCP connection that sets them up. */
#ifndef ROCEGEN_SIDE_H
#define ROCEGEN_SIDE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAGIC		0x726f636567656e31ULL
#define MAX_QPS		4096
#define MAX_SIZE	(256U << 20)
#define MAX_DEPTH	1024
#define GRH		40	/* space before the payload of a received datagram */
#define UD_QKEY		0x11111111

enum op { SEND, WRITE, READ, UC_SEND, UC_WRITE, UD_SEND, OPS };
extern const char * const op_names[OPS];

enum { BOTH_NONE, BOTH_WRITE, BOTH_READ };

/* The client's first message */
struct hello {
	uint64_t magic;
	uint32_t op;
	uint32_t qps;
	uint32_t size;		/* of a message, bytes */
	uint32_t depth;		/* messages in flight per queue pair */
	uint32_t mtu;		/* enum ibv_mtu */
	uint32_t both;		/* BOTH_*: the server's requests, on the same queue pairs */
};

/* What the other side needs to know of a queue pair */
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
	uint64_t *received;	/* bytes, per queue pair */
	char *buf;
};

/* TCP. put() ends the program if the other side has closed the connection; get() returns false. */
void put(int fd, const void *buf, size_t len);
bool get(int fd, void *buf, size_t len);

bool is_ud(const struct side *s);

/* Opens cfg.dev; on the client's side also finds out the MTU. */
void open_device(struct side *s);
/* Makes the queue pairs that s->h asks for, and connects them with those of the other side. */
void exchange(struct side *s, int fd);
void post_recv(struct side *s, uint32_t i);
void post_send(struct side *s, uint32_t i);
/* Sleeps until there are completions or @fd is readable. Returns true for the latter. */
bool wait_completion(struct side *s, int fd);
void tear_down(struct side *s);

#endif
