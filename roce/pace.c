// SPDX-License-Identifier: GPL-2.0
/*
 * roce_rcm: holds back packets that are too early for their queue pair's rate.
 *
 * rdma_rxe must not notice: an error on transmission ends its queue pair. The hook puts an
 * early packet into a FIFO of its queue pair and returns NF_STOLEN, which rdma_rxe takes for
 * success; a timer sends the packet later.
 *
 * Requests keep their reference to the queue pair while they are held: rdma_rxe stops
 * by itself at 64 packets. But a queue pair that is being destroyed waits for these
 * references, for 200 jiffies on older kernels, and is then freed regardless. So
 *  - a request is held for hold_ms at most,
 *  - once the queue pair is being destroyed, its requests are sent at once,
 *  - a packet is never due later than the duration of one packet at the current rate.
 * Responses have no limit of 64: they give up their reference, and fifo_kb limits them.
 *
 * Packets without payload (ACKs, READ requests) are not charged: they are small, and the
 * peer's data decides how many there are. If they were charged, the ACKs of a queue pair that
 * sends and receives could use up its rate.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/etherdevice.h>
#include <linux/random.h>
#include <net/dst.h>
#include <net/netns/generic.h>

#include "cc_compat.h"
#include "cc_param.h"
#include "roce_rcm.h"
#include "roce_rcm_trace.h"

CC_PARAM(fifo_kb, 8192, 64, 1000000, 0644, "64 kB to 1 GB",
	 "memory limit of a queue pair's responses that are held back, kB");
CC_PARAM(fifo_total_mb, 256, 1, 100000, 0644, "1 MB to 100 GB",
	 "memory limit of all packets that are held back, MB");
CC_PARAM(hold_ms, 100, 1, 150, 0644, "1 to 150 ms: rdma_rxe frees a queue pair after 200",
	 "a request is held back for at most this time, ms");

/* Requests of a queue pair after which rdma_rxe waits for one to be freed */
#define RXE_REQUESTS	64

/* While several queue pairs answer READs, those that start share the line by this. */
#define START_SHARE	8

/* Most changes of the rate that are computed one by one until the next packet */
#define RATE_STEPS	64

static atomic_long_t fifo_total;	/* bytes in all FIFOs */

long rcm_pace_memory(void)
{
	return atomic_long_read(&fifo_total);
}

/* --- when ------------------------------------------------------------------ */

/* A packet is due at @due. The rate changes at @now: returns when the packet is due then. */
static u64 due_at_new_rate(u64 due, u64 now, u64 before, u64 after)
{
	if (due <= now || before == after)
		return due;
	return now + fp_mul_div(due - now, before, after);
}

/*
 * Lets @rate grow step by step until @now or @due, whichever is first. Returns the new @due: the
 * same number of bits at a higher rate. *@more: RATE_STEPS steps were not enough.
 */
static u64 grow_until_due(struct rcm_rate *rate, const struct dcqcn_params *p, u64 now, u64 due,
			  bool *more)
{
	int i;

	*more = false;
	for (i = 0; rate->model.timer_due < due && rate->model.timer_due <= now &&
	     rcm_rate_grows(rate, p); i++) {
		u64 before = rate->model.rate, at = rate->model.timer_due;

		if (i == RATE_STEPS) {
			*more = true;
			break;
		}
		rcm_rate_advance(rate, p, at);
		due = due_at_new_rate(due, at, before, rate->model.rate);
	}
	return due;
}

static atomic_t *answering(const struct rcm_qp *qp)
{
	struct rcm_net *rn = net_generic(qp->net, rcm_net_id);

	return &rn->answering;
}

/*
 * The parameters of @qp's rate. Queue pairs of a host that answer READs share the increase of one:
 * each with all of it, many would grow by more than their share of the line in every period.
 */
void rcm_pace_params(const struct rcm_qp *qp, struct dcqcn_params *p)
{
	u32 n = qp->rate.model.only_sent ? atomic_read(answering(qp)) : 0;

	rcm_rate_params(p, READ_ONCE(qp->line));
	if (n > 1) {
		p->ai = div_u64(p->ai, n);
		p->hai = div_u64(p->hai, n);
	}
}

/*
 * @qp is starting. One that answers alone starts with the line's rate. If several do, a reader with
 * many queue pairs is likely, to other hosts as well: all of them together start with a part of
 * the line's rate, and not at the same moment.
 */
static void share_line(struct rcm_qp *qp, const struct dcqcn_params *p, u64 now)
{
	u32 n = atomic_read(answering(qp));
	u64 share;

	if (n < 2)
		return;
	share = div_u64(p->line, START_SHARE * n);
	if (share >= qp->rate.share)
		return;
	rcm_rate_share(&qp->rate, p, share);
	qp->next_ns = now + reciprocal_scale(get_random_u32(),
					     dcqcn_duration(READ_ONCE(qp->rate.packet_bytes),
							    qp->rate.model.rate));
}

/* Brings the rate of @qp, and when its next packet is due, up to @now. Under the lock. */
static void advance_to(struct rcm_qp *qp, const struct dcqcn_params *p, u64 now)
{
	u64 before;
	bool more;

	if (qp->rate.starting)
		share_line(qp, p, now);
	qp->next_ns = grow_until_due(&qp->rate, p, now, qp->next_ns, &more);
	before = qp->rate.model.rate;
	rcm_rate_advance(&qp->rate, p, now);
	qp->next_ns = due_at_new_rate(qp->next_ns, now, before, qp->rate.model.rate);
}

/* When the next packet of @qp may leave if no CNP arrives before */
static u64 next_release(const struct rcm_qp *qp, const struct dcqcn_params *p)
{
	struct rcm_rate rate = qp->rate;
	bool more;
	u64 due;

	due = grow_until_due(&rate, p, qp->next_ns, qp->next_ns, &more);
	return more ? rate.model.timer_due : due;
}

static u64 hold_ns(void)
{
	return READ_ONCE(hold_ms.value) * NSEC_PER_MSEC;
}

/*
 * A packet of @len bytes leaves; it was due at @due. The requests that rdma_rxe sends at a time,
 * RXE_REQUESTS, must leave within hold_ms, whatever the rate.
 */
static void charge(struct rcm_qp *qp, const struct dcqcn_params *p, enum rcm_lane lane,
		   unsigned int len, u64 due)
{
	u64 ns;

	len += ETH_HLEN;
	ns = dcqcn_duration(len, qp->rate.model.rate);
	if (lane == RCM_REQUESTS)
		ns = min(ns, hold_ns() / RXE_REQUESTS);
	qp->next_ns = due + ns;
	rcm_rate_sent(&qp->rate, p, len);
	WRITE_ONCE(qp->sent_at, jiffies);
}

/* When the request that has waited longest must leave */
static u64 hold_ends(const struct rcm_qp *qp)
{
	const struct sk_buff *skb = skb_peek(&qp->fifo[RCM_REQUESTS]);

	return skb ? ktime_to_ns(skb->tstamp) + hold_ns() : U64_MAX;
}

/* Sets the timer for the next packet that leaves the FIFO. */
static void arm(struct rcm_qp *qp, const struct dcqcn_params *p)
{
	u64 at = qp->destroyed ? 0 : min(next_release(qp, p), hold_ends(qp));

	hrtimer_start(&qp->timer, ns_to_ktime(at), HRTIMER_MODE_ABS_SOFT);
}

/* Ends pacing when the rate is the line's again and nothing is held back. */
static void end_pacing_if_free(struct rcm_qp *qp, const struct dcqcn_params *p)
{
	if (!qp->limited || qp->rate.starting || dcqcn_limited(&qp->rate.model, p) ||
	    !rcm_pace_idle(qp))
		return;
	WRITE_ONCE(qp->limited, false);
	trace_roce_rcm_free(&qp->addr, qp->number);
}

/* --- what ------------------------------------------------------------------ */

static struct sk_buff *fifo_take(struct rcm_qp *qp, enum rcm_lane lane)
{
	struct sk_buff *skb = __skb_dequeue(&qp->fifo[lane]);

	if (skb) {
		if (lane == RCM_RESPONSES && skb_queue_empty(&qp->fifo[lane]))
			atomic_dec(answering(qp));
		qp->fifo_bytes -= skb->truesize;
		atomic_long_sub(skb->truesize, &fifo_total);
		skb->tstamp = 0;	/* else a time of departure to fq */
	}
	return skb;
}

/*
 * The next packet to leave at @now, or NULL; with @all none waits. The lanes take turns;
 * a request that was held for too long comes first.
 */
static struct sk_buff *fifo_next(struct rcm_qp *qp, u64 now, bool all)
{
	bool late = hold_ends(qp) <= now;

	if (!all && qp->next_ns > now && !late)
		return NULL;
	if (late)
		qp->sending_lane = RCM_REQUESTS;
	else
		qp->sending_lane = skb_queue_empty(&qp->fifo[qp->turn]) ? !qp->turn : qp->turn;
	if (late && qp->next_ns > now)
		rcm_count(RCM_HELD_TOO_LONG);
	qp->turn = !qp->sending_lane;
	return fifo_take(qp, qp->sending_lane);
}

static void fifo_purge(struct rcm_qp *qp, enum rcm_lane lane)
{
	struct sk_buff *skb;

	while ((skb = fifo_take(qp, lane))) {
		qp->dropped++;
		rcm_count(RCM_FIFO_DROPPED);
		kfree_skb(skb);
	}
}

/* Is the queue pair of the requests in the FIFO being destroyed? Then none is held. */
static bool requests_orphaned(const struct rcm_qp *qp)
{
	const struct sk_buff *skb = skb_peek(&qp->fifo[RCM_REQUESTS]);
	const struct ib_qp *ibqp = skb ? rcm_rxe_qp(skb) : NULL;

	return ibqp && rcm_rxe_destroyed(ibqp);
}

/*
 * Sends what is due; with @all, or when the queue pair is being destroyed, everything.
 * Under the lock, which is released while a packet is sent: @sending keeps the order.
 */
static void fifo_send(struct rcm_qp *qp, const struct dcqcn_params *p, bool all)
	__must_hold(&qp->lock)
{
	struct sk_buff *skb;

	qp->sending = true;
	for (;;) {
		u64 now = ktime_get_ns();

		if (!qp->destroyed && requests_orphaned(qp))
			qp->destroyed = true;
		if (qp->destroyed)	/* the peer no longer waits for these */
			fifo_purge(qp, RCM_RESPONSES);
		advance_to(qp, p, now);
		skb = fifo_next(qp, now, all || qp->destroyed);
		if (!skb)
			break;
		if (qp->destroyed)
			rcm_count(RCM_LET_GO);
		/* from when it was due: a timer that is late costs no rate */
		charge(qp, p, qp->sending_lane, skb->len, min(qp->next_ns, now));
		spin_unlock(&qp->lock);
		skb->dev = skb_dst(skb)->dev;	/* the one before may be gone */
		dst_output(qp->net, skb->sk, skb);
		spin_lock(&qp->lock);
	}
	qp->sending = false;
}

/* The timer of a queue pair, in softirq */
static enum hrtimer_restart roce_rcm_release(struct hrtimer *timer)
{
	struct rcm_qp *qp = container_of(timer, struct rcm_qp, timer);
	struct dcqcn_params p;

	rcu_read_lock();
	spin_lock(&qp->lock);
	if (!qp->sending) {
		rcm_pace_params(qp, &p);
		fifo_send(qp, &p, false);
		if (rcm_pace_waiting(qp))
			arm(qp, &p);
		else
			end_pacing_if_free(qp, &p);
	}
	spin_unlock(&qp->lock);
	rcu_read_unlock();
	return HRTIMER_NORESTART;
}

/*
 * May @skb, a packet of @qp, leave now, ahead of those that wait? A packet without
 * payload waits only behind others of its lane, to keep their order.
 */
static bool may_leave(const struct rcm_qp *qp, enum rcm_lane lane, bool bare, u64 now)
{
	if (qp->dead || !qp->limited)
		return true;
	if (!skb_queue_empty(&qp->fifo[lane]) || (qp->sending && qp->sending_lane == lane))
		return false;
	return bare || qp->destroyed || (!rcm_pace_waiting(qp) && qp->next_ns <= now);
}

/*
 * May a packet with @bth, of @lane, go into the FIFO? After a response that was dropped, all
 * others are useless until the peer asks again for that one. Only the first of a later READ goes
 * in: when it arrives, rdma_rxe asks again at once, else after its timeout.
 */
static bool fifo_admits(struct rcm_qp *qp, enum rcm_lane lane, const struct roce_bth *bth)
{
	bool room = rcm_pace_memory() <= READ_ONCE(fifo_total_mb.value) * 1048576ULL;
	bool data = lane == RCM_RESPONSES && !roce_is_bare(bth->opcode);

	if (data && qp->missing_psn != RCM_NO_PSN) {
		room = room && !qp->gap_shown && roce_starts_read(bth->opcode);
		qp->gap_shown |= room;
		return room;
	}
	if (lane == RCM_RESPONSES && qp->fifo_bytes > READ_ONCE(fifo_kb.value) * 1024ULL)
		room = false;
	if (data && !room) {
		qp->missing_psn = bth->psn;
		qp->gap_shown = false;
	}
	return room;
}

/*
 * Returns the verdict for @skb, a packet of @ibqp: NF_ACCEPT if it may leave now, NF_STOLEN if it
 * was put into the FIFO or dropped. Under RCU.
 */
unsigned int rcm_pace(struct rcm_qp *qp, struct sk_buff *skb, const struct ib_qp *ibqp,
		      const struct roce_bth *bth)
{
	enum rcm_lane lane = roce_is_response(bth->opcode) ? RCM_RESPONSES : RCM_REQUESTS;
	bool bare = roce_is_bare(bth->opcode), first;
	unsigned int verdict = NF_STOLEN;
	struct dcqcn_params p;
	u64 now;

	spin_lock_bh(&qp->lock);
	rcm_pace_params(qp, &p);
	now = ktime_get_ns();
	advance_to(qp, &p, now);
	end_pacing_if_free(qp, &p);
	qp->destroyed = rcm_rxe_destroyed(ibqp);
	if (may_leave(qp, lane, bare, now)) {
		if (!bare)
			charge(qp, &p, lane, skb->len, now);
		verdict = NF_ACCEPT;
		goto out;
	}
	/*
	 * rdma_rxe counts its requests until they are freed. It would count responses as
	 * well, and then hold back the queue pair's own requests because of them.
	 */
	if (lane == RCM_RESPONSES)
		skb_orphan(skb);
	if (!fifo_admits(qp, lane, bth) || !skb_dst_force(skb)) {
		qp->dropped++;
		rcm_count(RCM_FIFO_DROPPED);
		kfree_skb(skb);
		goto out;
	}
	rcm_count(RCM_PACED);
	first = !rcm_pace_waiting(qp) || (lane == RCM_REQUESTS && skb_queue_empty(&qp->fifo[lane]));
	skb->tstamp = ns_to_ktime(now);
	qp->fifo_bytes += skb->truesize;
	atomic_long_add(skb->truesize, &fifo_total);
	if (lane == RCM_RESPONSES && skb_queue_empty(&qp->fifo[lane]))
		atomic_inc(answering(qp));
	__skb_queue_tail(&qp->fifo[lane], skb);
	if ((first || qp->destroyed) && !qp->sending)
		arm(qp, &p);
out:
	spin_unlock_bh(&qp->lock);
	return verdict;
}

/* --- READs ------------------------------------------------------------------- */

/* A CNP, or with @lost a loss, lowers the rate at @now. Under the lock. */
static void lower_rate(struct rcm_qp *qp, u64 now, bool lost)
{
	struct dcqcn_params p;
	u64 before;

	rcm_pace_params(qp, &p);
	if (!qp->limited)
		rcm_rate_from_line(&qp->rate, &p, now);
	advance_to(qp, &p, now);
	before = qp->rate.model.rate;
	if (lost)
		rcm_rate_loss(&qp->rate, &p, now);
	else
		rcm_rate_cnp(&qp->rate, &p, now);
	qp->next_ns = due_at_new_rate(qp->next_ns, now, before, qp->rate.model.rate);
	WRITE_ONCE(qp->limited, true);
	trace_roce_rcm_cut(&qp->addr, qp->number, before, qp->rate.model.rate,
			   qp->rate.model.alpha, rcm_pace_waiting(qp));
	if (!qp->sending && rcm_pace_waiting(qp))
		arm(qp, &p);
}

/* Is the response @psn still held back? The first response with data in the FIFO is the oldest. */
static bool still_held(const struct rcm_qp *qp, u32 psn)
{
	struct rcm_packet p;
	struct sk_buff *skb;

	skb_queue_walk(&qp->fifo[RCM_RESPONSES], skb)
		if (rcm_packet_read(&p, skb, skb->protocol == htons(ETH_P_IP) ? NFPROTO_IPV4 :
									   NFPROTO_IPV6) &&
		    !roce_is_bare(p.roce.bth.opcode))
			return roce_psn_after(psn, p.roce.bth.psn) >= 0;
	return false;
}

/*
 * The peer has asked for the response @psn again, and so for all that follow: those in the FIFO
 * are stale. If @psn had left, it was lost, maybe with the marks that would have shown why. If the
 * FIFO had no room for it, it had not left.
 */
void rcm_pace_repeated(struct rcm_qp *qp, u32 psn)
{
	struct sk_buff *skb;
	bool lost;

	spin_lock_bh(&qp->lock);
	lost = !still_held(qp, psn) && (qp->missing_psn == RCM_NO_PSN ||
					roce_psn_after(psn, qp->missing_psn) < 0);
	qp->missing_psn = RCM_NO_PSN;
	while ((skb = fifo_take(qp, RCM_RESPONSES))) {
		rcm_count(RCM_STALE_DROPPED);
		kfree_skb(skb);
	}
	if (lost && !qp->dead && !READ_ONCE(rcm_stopping)) {
		rcm_count(RCM_LOSSES);
		lower_rate(qp, ktime_get_ns(), true);
	}
	spin_unlock_bh(&qp->lock);
}

/* @qp has sent no data for a long time, or never: what its rate was says nothing any more. */
void rcm_pace_start(struct rcm_qp *qp, enum rcm_lane lane)
{
	struct dcqcn_params p;

	spin_lock_bh(&qp->lock);
	if (rcm_pace_idle(qp) && !qp->dead && !READ_ONCE(rcm_stopping)) {
		rcm_pace_params(qp, &p);
		qp->rate.model.only_sent = false;
		if (lane == RCM_RESPONSES)
			rcm_rate_start(&qp->rate, &p, ktime_get_ns());
		else
			rcm_rate_from_line(&qp->rate, &p, ktime_get_ns());
		qp->next_ns = 0;
		WRITE_ONCE(qp->limited, lane == RCM_RESPONSES);
	}
	spin_unlock_bh(&qp->lock);
}

/* --- from outside ---------------------------------------------------------- */

void rcm_pace_init(struct rcm_qp *qp)
{
	int i;

	for (i = 0; i < RCM_LANES; i++)
		__skb_queue_head_init(&qp->fifo[i]);
	cc_hrtimer_setup(&qp->timer, roce_rcm_release, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
}

/* A CNP arrives at @now: cuts the rate. Under the lock. */
void rcm_pace_cut(struct rcm_qp *qp, u64 now)
{
	lower_rate(qp, now, false);
}

/* Sends everything that is held back, in order, and ends pacing. */
void rcm_pace_drain(struct rcm_qp *qp)
{
	struct dcqcn_params p;

	spin_lock_bh(&qp->lock);
	while (qp->sending) {	/* roce_rcm_release(), on another processor */
		spin_unlock_bh(&qp->lock);
		hrtimer_cancel(&qp->timer);
		spin_lock_bh(&qp->lock);
	}
	rcm_pace_params(qp, &p);
	fifo_send(qp, &p, true);
	WRITE_ONCE(qp->limited, false);
	spin_unlock_bh(&qp->lock);
}

/* Drops what is held back of @qp, which is dead; its timer never runs again. */
void rcm_pace_stop(struct rcm_qp *qp)
{
	int lane;

	hrtimer_cancel(&qp->timer);
	spin_lock_bh(&qp->lock);
	for (lane = 0; lane < RCM_LANES; lane++)
		fifo_purge(qp, lane);
	spin_unlock_bh(&qp->lock);
}
