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

#include "loop.h"
#include "transfer.h"

enum { F_CONNECT, F_SEND, F_RECV, F_IDLE };

struct generator;

/* Totals of a connection that only the data's sender knows, from its TCP_INFO. */
struct sender {
	u64 retrans;			/* segments */
	u64 rwnd_limited;		/* us limited by the receive window */
	u64 sndbuf_limited;		/* us limited by the send buffer */
};

/* A connection and its current request. */
struct flow {
	struct watched watched;		/* first: epoll's pointer is to it */

	TAILQ_ENTRY(flow) active;
	SLIST_ENTRY(flow) spare;	/* idle, or dropped */
	STAILQ_ENTRY(flow) waiting;	/* rpc --closed */
	struct generator *gen;
	int fd;				/* -1: closed */
	u8 state;
	u8 head_left;			/* bytes of head to send */
	bool out_watched;		/* EPOLLOUT is among the events */
	bool connect_only;		/* no request yet: done once connected */
	bool await_first;		/* no byte of the answer is there yet */
	u32 path;			/* index into config.path */
	u32 slot;			/* rpc --closed, incast */
	u64 id;
	u64 size;			/* requested, bytes */
	u64 retry_at;			/* ns; rpc --closed: next start after a failure */
	u64 due;			/* ns; when it was due; at most start */
	u64 start;			/* ns */
	u64 first;			/* ns: --first-byte, when it was there; 0: not yet */
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
	/* STOPPED: by the plan, which is as well as OK */
	enum { OK, TIMEOUT, ERROR, STOPPED } what;
	const char *why;		/* for ERROR */
};

/* Decides which flows there are. Times are of CLOCK_MONOTONIC. */
struct pattern {
	/* Sets @g->state; @g->t0 is known */
	void (*init)(struct generator *g);
	/* Before each wait; may be NULL. */
	void (*prepare)(struct generator *g);
	/* When run() must be called next, or NEVER. */
	u64 (*due)(const struct generator *g);
	/* Starts what is due at @now; may be called early. */
	void (*run)(struct generator *g, u64 now);
	/* @f has ended. The pattern keeps it, restarts it or drops it. */
	void (*flow_over)(struct flow *f, const struct verdict *v);
	bool (*finished)(const struct generator *g);
	/* Starts no more flows. udp and programs end later. */
	void (*stop)(struct generator *g);
};

extern const struct pattern arrivals, incast, udp, programs;

/**
 * struct generator - makes the flows of one configuration
 * @cfg:	what it makes
 * @pattern:	decides which, and when
 * @state:	the pattern's
 * @active:	running flows, oldest first, so that deadlines are sorted
 * @t0:		when the run begins, ns
 * @deadline:	from a flow's start, ns; NEVER if none
 * @tick:	next --interval, ns
 * @last_end:	when a flow has ended last, ns
 * @stop_at:	when it ends at the latest, ns; NEVER if it does not
 */
struct generator {
	const struct config *cfg;
	const struct pattern *pattern;
	void *state;
	struct flow_list active;
	u64 t0, deadline, tick, last_end, stop_at;
};

/* @epfd: the epoll instance; epoll_of_flows() returns it */
void flows_init(int epfd);
int epoll_of_flows(void);
/* Frees dropped flows; to be called after each batch of events. */
void flows_reap(void);

/* @path: index into config.path */
struct flow *flow_new(struct generator *g, u32 path, u32 slot);
/* Closes the flow. Its memory stays valid until flows_reap(). */
void flow_drop(struct flow *f);
/*
 * Starts the flow, and connects if it is not connected. @now: just read; the flow's start. @due:
 * when it should have started, which is earlier if this program was busy or the host was.
 */
void flow_start(struct flow *f, u64 now, u64 due);
/* Reports a flow that cannot start. */
void flow_stillborn(struct flow *f, u64 now, const char *why);
/* The request has ended at @now: reports it, then keeps or closes the connection. */
void flow_over(struct flow *f, u64 now, struct verdict v);

/* TCP_INFO of the connection; fields that the kernel does not have are 0. False: unknown. */
bool flow_info(const struct flow *f, struct tcp_info *info);
/* Bytes of the current request's payload known to have arrived. */
u64 flow_moved(const struct flow *f, const struct tcp_info *info);

#endif
