/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The client's side of one request: connect, send, receive, report. Which requests there are, and
 * when, is the pattern's.
 *
 * Clients close with a reset (SO_LINGER 0). By then every byte that counts has been acknowledged
 * or given up; what a reset saves is the draining of a long flow's buffers, and TIME_WAIT, which
 * would use up the ports after 28,000 short connections.
 */
#ifndef FLOWGEN_FLOW_H
#define FLOWGEN_FLOW_H

#include <linux/tcp.h>
#include <sys/queue.h>

#include "address.h"
#include "config.h"
#include "transfer.h"

enum { F_CONNECT, F_SEND, F_RECV, F_IDLE };

/* What only the data's sender knows; totals of a connection, from its TCP_INFO. */
struct sender {
	u64 retrans;			/* segments */
	u64 rwnd_limited;		/* us that the receive window held it up */
	u64 sndbuf_limited;		/* the same for its own send buffer */
};

/* A connection, and the request that it serves now. */
struct flow {
	TAILQ_ENTRY(flow) active;
	SLIST_ENTRY(flow) spare;	/* idle, or dropped */
	STAILQ_ENTRY(flow) waiting;	/* rpc --closed */
	int fd;				/* -1: closed */
	u8 state;
	u8 head_left;			/* bytes of head to send */
	bool out_watched;		/* EPOLLOUT is among the events */
	bool connect_only;		/* ahead of a request: over when the connection stands */
	u32 host;			/* index into cfg.host */
	u32 slot;			/* rpc --closed, incast */
	u64 id;
	u64 size;			/* asked for */
	u64 retry_at;			/* ns; rpc --closed: next start after a failure */
	u64 due;			/* ns; when the arrival process asked for it; at most start */
	u64 start;			/* ns */
	u64 tx_before;			/* bytes of earlier requests on this connection */
	u64 rx_before;
	u64 mark_bytes;			/* --interval: reported so far, until when */
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

/* What decides which flows there are. Times are of CLOCK_MONOTONIC. */
struct pattern {
	/* @t0: when the run begins */
	void (*init)(u64 t0);
	/* Before each wait; may be NULL. */
	void (*prepare)(void);
	/* When run() wants to be called, or NEVER. */
	u64 (*due)(void);
	/* @now: a time at or after due(), or some other reason to look */
	void (*run)(u64 now);
	/* @f is over. The pattern keeps it, starts it again or drops it. */
	void (*flow_over)(struct flow *f, const struct verdict *v);
	bool (*finished)(void);
	/* No new flows. */
	void (*stop)(void);
};

extern const struct pattern arrivals, incast;

/* Those under way, oldest first: so deadlines are in order. */
extern struct flow_list active_flows;

/* @epfd: for the events, @pattern: told of every flow's end */
void flows_init(int epfd, const struct pattern *pattern);
/* Ends the rest of those that were dropped: after each batch of events. */
void flows_reap(void);

/* @host: index into cfg.host */
struct flow *flow_new(u32 host, u32 slot);
/* Not under way any more. Its memory rests until flows_reap(). */
void flow_drop(struct flow *f);
/*
 * Starts the flow, and connects if it is not connected. @now: just read; the flow's start. @due:
 * when it should have started, which is earlier if this program was busy or the host was.
 */
void flow_start(struct flow *f, u64 now, u64 due);
/* Reports a flow that cannot start. */
void flow_stillborn(struct flow *f, u64 now, const char *why);
/* @events: as of epoll_wait() */
void flow_event(struct flow *f, u32 events);
/* The request is over, well or not, at @now. Reports it, then keeps or closes the connection. */
void flow_over(struct flow *f, u64 now, struct verdict v);

/* As struct tcp_info of the running kernel, as far as it goes. False: nothing known. */
bool flow_info(const struct flow *f, struct tcp_info *info);
/* Bytes of the present request's payload that have arrived, as far as known here. */
u64 flow_moved(const struct flow *f, const struct tcp_info *info);

#endif
