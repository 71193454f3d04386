/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the parts of roce_rcm share. Each calls those below it alone:
 *
 *	main.c		the hooks; loading, unloading, namespaces
 *	debugfs.c	what can be seen of it: counters and queue pairs
 *	cnp.c		CNPs: those for packets that come marked, and those that come
 *	policy.c	which flows take part
 *	rxe.c		what only rdma_rxe, the RDMA core and the device know
 *	qp.c		the queue pairs that are known
 *	pace.c		holds back what is too early for its queue pair's rate
 *	rate.c		that rate: DCQCN or LDCP
 *	packet.c	a packet's headers and its ICRC
 */
#ifndef _LOWQ_ROCE_RCM_H
#define _LOWQ_ROCE_RCM_H

#include <linux/atomic.h>
#include <linux/hashtable.h>
#include <linux/hrtimer.h>
#include <linux/in6.h>
#include <linux/netfilter.h>
#include <linux/skbuff.h>
#include <linux/spinlock.h>

#include "dcqcn_model.h"
#include "roce_wire.h"

struct ib_qp;

/* The module is going: no rate is cut any more, and nothing asked. */
extern bool rcm_stopping;

/* --- counters: debugfs.c ---------------------------------------------- */

enum rcm_counter {
	RCM_ECT_SET,		/* packets made ECT(0) */
	RCM_PACED,		/* packets held back */
	RCM_FIFO_DROPPED,	/* ... and dropped: fifo_kb, fifo_total_mb */
	RCM_CE_RECEIVED,	/* packets that came with CE */
	RCM_CE_INVALID,		/* ... malformed, or of no data transport */
	RCM_CE_BAD_ICRC,	/* ... with a wrong ICRC */
	RCM_CE_UNKNOWN_QP,	/* ... for a queue pair not known (yet) */
	RCM_CE_WRONG_SOURCE,	/* ... not from its peer */
	RCM_CE_COALESCED,	/* ... within cnp_interval_us */
	RCM_CNP_SENT,
	RCM_CNP_UNSENT,		/* no route or memory */
	RCM_CNP_RECEIVED,	/* CNPs that came, of any kind */
	RCM_CNP_HANDLED,	/* ... and cut a rate */
	RCM_CNP_MALFORMED,	/* ... of wrong length or version */
	RCM_CNP_UNKNOWN_QP,
	RCM_CNP_WRONG_SOURCE,
	RCM_CNP_BAD_ICRC,
	RCM_CNP_TOO_SOON,	/* ... within reduce_gap_us */
	RCM_TABLE_FULL,		/* a queue pair not taken in: max_qps */
	RCM_ASKED,		/* questions to the RDMA core */
	RCM_COUNTERS
};

extern atomic_long_t rcm_counters[RCM_COUNTERS];

static inline void rcm_count(enum rcm_counter what)
{
	atomic_long_inc(&rcm_counters[what]);
}

void rcm_debugfs_init(void);
void rcm_debugfs_exit(void);

/* --- packets: packet.c ------------------------------------------------ */

/**
 * struct rcm_packet - a packet and its addresses
 * @roce:	from the UDP header on
 * @saddr:	source; IPv4's as ::ffff:a.b.c.d
 * @daddr:	destination, likewise
 * @ip_bytes:	of the IP header
 * @ecn:	the ECN field
 */
struct rcm_packet {
	struct roce_packet roce;
	struct in6_addr saddr;
	struct in6_addr daddr;
	u16 ip_bytes;
	u8 ecn;
};

bool rcm_packet_read(struct rcm_packet *p, const struct sk_buff *skb, u8 pf);
bool rcm_packet_icrc_ok(const struct rcm_packet *p, const struct sk_buff *skb);

/* --- rates: rate.c ---------------------------------------------------- */

/* bit/s, assumed for a device that reports no speed, and until it has been asked */
#define RCM_LINE_UNKNOWN	10000000000ULL

/**
 * struct rcm_rate - the rate of a queue pair
 * @model:	DCQCN's state; LDCP uses its @rate, @target and @timer_due (end of the RTT)
 * @cw:		LDCP: congestion window, packets in Q40
 * @packet_bytes: LDCP: size of the largest packet seen, bytes, above 0
 */
struct rcm_rate {
	struct dcqcn_model model;
	u64 cw;
	u32 packet_bytes;
};

void rcm_rate_params(struct dcqcn_params *p, u64 device_line);
void rcm_rate_init(struct rcm_rate *rate, const struct dcqcn_params *p, u64 now);
void rcm_rate_from_line(struct rcm_rate *rate, const struct dcqcn_params *p, u64 now);
void rcm_rate_advance(struct rcm_rate *rate, const struct dcqcn_params *p, u64 now);
void rcm_rate_sent(struct rcm_rate *rate, const struct dcqcn_params *p, u32 bytes);
void rcm_rate_cnp(struct rcm_rate *rate, const struct dcqcn_params *p, u64 now);

/* --- queue pairs: qp.c ------------------------------------------------ */

/*
 * Requests and responses have a lane each. Their sequence numbers are separate, and
 * an ACK must not wait for its own side's bulk data.
 */
enum rcm_lane { RCM_REQUESTS, RCM_RESPONSES, RCM_LANES };

/* The destinations that a UD queue pair is known to send to */
#define RCM_UD_PEERS	8

/**
 * struct rcm_qp - a local queue pair, or one that sends datagrams to a local one
 * @node:	in rcm_qp_table, readers under RCU
 * @dying:	taken out of it, readers may still be there
 * @net:	key: its network namespace; gone before the last reader under RCU is
 * @netns:	number of @net
 * @addr:	key: its address; IPv4's as ::ffff:a.b.c.d
 * @number:	key: its number
 * @remote:	key: is it the peer's (UD)? Then it has @cnp_at alone
 * @lock:	of what follows
 * @timer:	runs out when the next packet of the FIFO may leave
 * @peer_addr:	whom it sends to; RC and UC use the first, UD all, oldest replaced
 * @peers:	how many of them are known
 * @peer_next:	UD: the one to be replaced next
 * @peer_qp:	RC, UC: number of the peer's queue pair
 * @connected:	RC or UC
 * @dead:	no longer in the table
 * @limited:	below line rate, or with packets in the FIFO; read without the lock
 * @sending:	a packet is out of the FIFO and not yet with the device
 * @sending_lane: ... of this lane
 * @turn:	the lane that is served next
 * @rate:	its rate
 * @line:	bit/s, its device's; 0 before that was asked
 * @next_ns:	when the next packet may leave
 * @fifo:	what is held back
 * @fifo_bytes:	memory of it
 * @cnp_at:	ns: when the last CNP because of it was sent
 * @cut_at:	ns: when the last CNP for it was taken
 * @used:	jiffies, last sign of life
 * @cnps_in:	CNPs that cut its rate
 * @cnps_out:	CNPs sent because of packets for it (local) or from it (remote)
 * @dropped:	packets that found no room in the FIFO
 * @rcu:	for kfree_rcu()
 */
struct rcm_qp {
	struct hlist_node node;
	struct hlist_node dying;
	struct net *net;
	u32 netns;
	struct in6_addr addr;
	u32 number;
	bool remote;
	spinlock_t lock;	/* of all below */
	struct hrtimer timer;
	struct in6_addr peer_addr[RCM_UD_PEERS];
	u8 peers;
	u8 peer_next;
	u32 peer_qp;
	bool connected;
	bool dead;
	bool limited;
	bool sending;
	u8 sending_lane;
	u8 turn;
	struct rcm_rate rate;
	u64 line;
	u64 next_ns;
	struct sk_buff_head fifo[RCM_LANES];
	u64 fifo_bytes;
	u64 cnp_at;
	u64 cut_at;
	unsigned long used;
	u64 cnps_in;
	u64 cnps_out;
	u64 dropped;
	struct rcu_head rcu;
};

#define RCM_QP_TABLE_BITS	12
extern DECLARE_HASHTABLE(rcm_qp_table, RCM_QP_TABLE_BITS);

struct rcm_qp *rcm_qp_find(const struct net *net, const struct in6_addr *addr, u32 number,
			   bool remote);
struct rcm_qp *rcm_qp_get(struct net *net, const struct in6_addr *addr, u32 number, bool remote);
bool rcm_qp_is_peer(const struct rcm_qp *qp, const struct in6_addr *addr);
void rcm_qp_learn(struct rcm_qp *qp, const struct in6_addr *addr, u32 number, bool connected);
unsigned int rcm_qps_known(bool remote);
void rcm_qps_drain(const struct net *net);
void rcm_qps_forget(const struct net *net);
void rcm_qps_init(void);
void rcm_qps_exit(void);

/* --- pacing: pace.c --------------------------------------------------- */

/* Packets in the FIFO; under the lock. */
static inline u32 rcm_pace_waiting(const struct rcm_qp *qp)
{
	return qp->fifo[RCM_REQUESTS].qlen + qp->fifo[RCM_RESPONSES].qlen;
}

/* None there, and none on its way from there to the device; under the lock. */
static inline bool rcm_pace_idle(const struct rcm_qp *qp)
{
	return !rcm_pace_waiting(qp) && !qp->sending;
}

void rcm_pace_init(struct rcm_qp *qp);
unsigned int rcm_pace(struct rcm_qp *qp, struct sk_buff *skb, u8 opcode);
void rcm_pace_cut(struct rcm_qp *qp, u64 now);
void rcm_pace_drain(struct rcm_qp *qp);
void rcm_pace_stop(struct rcm_qp *qp);
long rcm_pace_memory(void);

/* --- the rest -------------------------------------------------------------- */

/* policy.c. Under RCU. */
bool rcm_takes_part(const struct rcm_packet *p);

/* rxe.c */
const struct ib_qp *rcm_rxe_qp(const struct sk_buff *skb);
void rcm_rxe_ask(struct net_device *dev, struct net *net, const struct in6_addr *addr,
		 u32 number);
void rcm_rxe_exit(void);

/* cnp.c. Under RCU. */
void rcm_cnp_for(const struct sk_buff *skb, const struct rcm_packet *p,
		 const struct nf_hook_state *state);
void rcm_cnp_received(const struct sk_buff *skb, const struct rcm_packet *p,
		      const struct nf_hook_state *state);

#endif /* _LOWQ_ROCE_RCM_H */
