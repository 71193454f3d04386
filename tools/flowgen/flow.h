/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The client's side of one request: connect, send, receive, report. The pattern (arrivals.c,
 * incast.c) decides which requests there are, and when.
 *
 * Clients close with a reset (SO_LINGER 0), after every byte that counts has been acknowledged or
 * given up. A reset discards a long flow's buffers at once, and avoids TIME_WAIT, which would use
 * up the ports after 28,000 short connections.
 */
#ifndef FLOWGEN_FLOW_H
#define FLOWGEN_FLOW_H

#include <linux/tcp.h>
#include <sys/queue.h>

#include "address.h"
#include "config.h"
#include "transfer.h"

enum { F_CONNECT, F_SEND, F_RECV, F_IDLE };

/* Totals of a connection that only the data's sender knows, from its TCP_INFO. */
struct sender {
	u64 retrans;			/* segments */
	u64 rwnd_limited;		/* us limited by the receive window */
	u64 sndbuf_limited;		/* us limited by the send buffer */
};

/* A connection and its current request. */
struct flow {
	TAILQ_ENTRY(flow) active;
	SLIST_ENTRY(flow) spare;	/* idle, or dropped */
	STAILQ_ENTRY(flow) waiting;	/* rpc --closed */
	int fd;				/* -1: closed */
	u8 state;
	u8 head_left;			/* bytes of head to send */
	bool out_watched;		/* EPOLLOUT is among the events */
	bool connect_only;		/* no request yet: done once connected */
	u32 host;			/* index into cfg.host */
	u32 slot;			/* rpc --closed, incast */
	u64 id;
	u64 size;			/* requested, bytes */
	u64 retry_at;			/* ns; rpc --closed: next start after a failure */
	u64 due;			/* ns; when it was due; at most start */
	u64 start;			/* ns */
	u64 tx_before;			/* bytes of earlier requests on this connection */
	u64 rx_before;
	u64 mark_bytes;			/* --interval: bytes reported so far, and when */
	u64 mark_ns;
	struct sender before;		/* of earlier requests */
	union addr src;
	char cc[CC_LEN];
	struct rx rx;
	struct tx tx;
	struct wire head;
};

TAILQ_HEAD(flow_list, flow);
SLIST_HEAD(flow_stack, flow);
STAILQ_HEAD(flow_queue, flow);

struct verdict {
	enum { OK, TIMEOUT, ERROR } what;
	const char *why;		/* for ERROR */
};

/* Decides which flows there are. Times are of CLOCK_MONOTONIC. */
struct pattern {
	/* @t0: when the run begins */
	void (*init)(u64 t0);
	/* Before each wait; may be NULL. */
	void (*prepare)(void);
	/* When run() must be called next, or NEVER. */
	u64 (*due)(void);
	/* Starts what is due at @now; may be called early. */
	void (*run)(u64 now);
	/* @f has ended. The pattern keeps it, restarts it or drops it. */
	void (*flow_over)(struct flow *f, const struct verdict *v);
	bool (*finished)(void);
	/* Starts no more flows. */
	void (*stop)(void);
};

extern const struct pattern arrivals, incast;

/* Running flows, oldest first, so that deadlines are sorted. */
extern struct flow_list active_flows;

/* @epfd: the epoll instance; @pattern: its flow_over() is called for every flow */
void flows_init(int epfd, const struct pattern *pattern);
/* Frees dropped flows; to be called after each batch of events. */
void flows_reap(void);

/* @host: index into cfg.host */
struct flow *flow_new(u32 host, u32 slot);
/* Closes the flow. Its memory stays valid until flows_reap(). */
void flow_drop(struct flow *f);
/*
 * Starts the flow, and connects if it is not connected. @now: just read; the flow's start. @due:
 * when it should have started, which is earlier if this program was busy or the host was.
 */
void flow_start(struct flow *f, u64 now, u64 due);
/* Reports a flow that cannot start. */
void flow_stillborn(struct flow *f, u64 now, const char *why);
/* @events: from epoll_wait() */
void flow_event(struct flow *f, u32 events);
/* The request has ended at @now: reports it, then keeps or closes the connection. */
void flow_over(struct flow *f, u64 now, struct verdict v);

/* TCP_INFO of the connection; fields that the kernel does not have are 0. False: unknown. */
bool flow_info(const struct flow *f, struct tcp_info *info);
/* Bytes of the current request's payload known to have arrived. */
u64 flow_moved(const struct flow *f, const struct tcp_info *info);

#endif
