// SPDX-License-Identifier: GPL-2.0
/*
 * roce_rcm: holds back what is too early for its queue pair's rate.
 *
 * rdma_rxe must not see it: an error on transmission ends its queue pair. Early
 * packets are taken out of the stack's hands (NF_STOLEN, which rdma_rxe takes for
 * success) into a FIFO of their queue pair, and a timer puts them back. Requests
 * keep their reference to the queue pair there: rdma_rxe stops by itself when 64 of
 * its packets are on their way. Responses have no such limit: they are let go of,
 * and bounded by fifo_kb.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/etherdevice.h>
#include <net/dst.h>

#include "cc_compat.h"
#include "cc_param.h"
#include "roce_rcm.h"
#include "roce_rcm_trace.h"

CC_PARAM(fifo_kb, 8192, 64, 1000000, 0644, "64 kB to 1 GB",
	 "responses of a queue pair that are held back take at most this memory, kB");
CC_PARAM(fifo_total_mb, 256, 1, 100000, 0644, "1 MB to 100 GB",
	 "all that is held back takes at most this memory, MB");

static atomic_long_t fifo_total;	/* bytes in all FIFOs */

long rcm_pace_memory(void)
{
	return atomic_long_read(&fifo_total);
}

/* --- when ------------------------------------------------------------------ */

/* A wait that has begun goes on at the new rate. */
static void rate_changed(struct rcm_qp *qp, u64 before, u64 now)
{
	if (qp->rate.model.rate != before && qp->next_ns > now)
		qp->next_ns = now + fp_mul_div(qp->next_ns - now, before, qp->rate.model.rate);
}

/* Time has gone by, up to @now. Under the lock. */
static void advance_to(struct rcm_qp *qp, const struct dcqcn_params *p, u64 now)
{
	u64 before = qp->rate.model.rate;

	rcm_rate_advance(&qp->rate, p, now);
	rate_changed(qp, before, now);
}

/* A packet of @len bytes leaves. */
static void charge(struct rcm_qp *qp, const struct dcqcn_params *p, unsigned int len, u64 now)
{
	len += ETH_HLEN;
	qp->next_ns = max(qp->next_ns, now) + dcqcn_duration(len, qp->rate.model.rate);
	rcm_rate_sent(&qp->rate, p, len);
}

/* Wakes up when a packet is due, or when the rate changes before. */
static void arm(struct rcm_qp *qp, const struct dcqcn_params *p)
{
	u64 at = qp->next_ns;

	if (dcqcn_limited(&qp->rate.model, p))
		at = min(at, qp->rate.model.timer_due);
	hrtimer_start(&qp->timer, ns_to_ktime(at), HRTIMER_MODE_ABS_SOFT);
}

/* Is it free again? */
static void settle(struct rcm_qp *qp, const struct dcqcn_params *p)
{
	if (!qp->limited || dcqcn_limited(&qp->rate.model, p) || !rcm_pace_idle(qp))
		return;
	WRITE_ONCE(qp->limited, false);
	trace_roce_rcm_free(&qp->addr, qp->number);
}

/* --- what ------------------------------------------------------------------ */

static struct sk_buff *fifo_take(struct rcm_qp *qp)
{
	struct sk_buff *skb;

	qp->sending_lane = skb_queue_empty(&qp->fifo[qp->turn]) ? !qp->turn : qp->turn;
	skb = __skb_dequeue(&qp->fifo[qp->sending_lane]);
	if (skb) {
		qp->turn = !qp->sending_lane;
		qp->fifo_bytes -= skb->truesize;
		atomic_long_sub(skb->truesize, &fifo_total);
	}
	return skb;
}

/*
 * Sends what is due, or, with @all, everything. Under the lock, which is let go of
 * while a packet is on its way; @sending keeps the order until then.
 */
static void fifo_send(struct rcm_qp *qp, const struct dcqcn_params *p, bool all)
	__must_hold(&qp->lock)
{
	struct sk_buff *skb;

	qp->sending = true;
	for (;;) {
		u64 now = ktime_get_ns();

		advance_to(qp, p, now);
		if (!all && qp->next_ns > now)
			break;
		skb = fifo_take(qp);
		if (!skb)
			break;
		/* from when it was due: a timer that is late costs no rate */
		charge(qp, p, skb->len, qp->next_ns);
		spin_unlock(&qp->lock);
		dst_output(qp->net, skb->sk, skb);
		spin_lock(&qp->lock);
	}
	qp->sending = false;
}

/* Softirq. */
static enum hrtimer_restart release(struct hrtimer *timer)
{
	struct rcm_qp *qp = container_of(timer, struct rcm_qp, timer);
	struct dcqcn_params p;

	spin_lock(&qp->lock);
	if (!qp->sending) {
		rcm_rate_params(&p, READ_ONCE(qp->line));
		fifo_send(qp, &p, false);
		if (rcm_pace_waiting(qp))
			arm(qp, &p);
		else
			settle(qp, &p);
	}
	spin_unlock(&qp->lock);
	return HRTIMER_NORESTART;
}

/*
 * May @skb, a packet of @qp, leave now, past what waits? A packet without payload
 * waits for its own lane only: then there is an order to keep.
 */
static bool may_leave(const struct rcm_qp *qp, enum rcm_lane lane, u8 opcode, u64 now)
{
	if (qp->dead || !qp->limited)
		return true;
	if (!skb_queue_empty(&qp->fifo[lane]) || (qp->sending && qp->sending_lane == lane))
		return false;
	return roce_is_bare(opcode) || (!rcm_pace_waiting(qp) && qp->next_ns <= now);
}

/* Is there room in the FIFO for one more? */
static bool fifo_room(const struct rcm_qp *qp, enum rcm_lane lane)
{
	if (lane == RCM_RESPONSES && qp->fifo_bytes > READ_ONCE(fifo_kb.value) * 1024ULL)
		return false;
	return rcm_pace_memory() <= READ_ONCE(fifo_total_mb.value) * 1048576ULL;
}

/* The verdict for @skb: it may leave now, or else is in the FIFO, or gone. Under RCU. */
unsigned int rcm_pace(struct rcm_qp *qp, struct sk_buff *skb, u8 opcode)
{
	enum rcm_lane lane = roce_is_response(opcode) ? RCM_RESPONSES : RCM_REQUESTS;
	unsigned int verdict = NF_STOLEN;
	struct dcqcn_params p;
	bool first;
	u64 now;

	spin_lock_bh(&qp->lock);
	rcm_rate_params(&p, READ_ONCE(qp->line));
	now = ktime_get_ns();
	advance_to(qp, &p, now);
	settle(qp, &p);
	if (may_leave(qp, lane, opcode, now)) {
		charge(qp, &p, skb->len, now);
		verdict = NF_ACCEPT;
		goto out;
	}
	/*
	 * rdma_rxe counts requests itself, until they are freed. It does not wait
	 * for responses: what holds the queue pair back would be its own requests.
	 */
	if (lane == RCM_RESPONSES)
		skb_orphan(skb);
	if (!fifo_room(qp, lane) || !skb_dst_force(skb)) {
		qp->dropped++;
		rcm_count(RCM_FIFO_DROPPED);
		kfree_skb(skb);
		goto out;
	}
	rcm_count(RCM_PACED);
	first = !rcm_pace_waiting(qp);
	qp->fifo_bytes += skb->truesize;
	atomic_long_add(skb->truesize, &fifo_total);
	__skb_queue_tail(&qp->fifo[lane], skb);
	if (first && !qp->sending)
		arm(qp, &p);
out:
	spin_unlock_bh(&qp->lock);
	return verdict;
}

/* --- from outside ---------------------------------------------------------- */

void rcm_pace_init(struct rcm_qp *qp)
{
	int i;

	for (i = 0; i < RCM_LANES; i++)
		__skb_queue_head_init(&qp->fifo[i]);
	cc_hrtimer_setup(&qp->timer, release, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
}

/* A CNP has come at @now: a lower rate from now on. Under the lock. */
void rcm_pace_cut(struct rcm_qp *qp, u64 now)
{
	struct dcqcn_params p;
	u64 before;

	rcm_rate_params(&p, READ_ONCE(qp->line));
	if (!qp->limited)
		rcm_rate_from_line(&qp->rate, &p, now);
	advance_to(qp, &p, now);
	before = qp->rate.model.rate;
	rcm_rate_cnp(&qp->rate, &p, now);
	rate_changed(qp, before, now);
	WRITE_ONCE(qp->limited, true);
	trace_roce_rcm_cut(&qp->addr, qp->number, before, qp->rate.model.rate, qp->rate.model.alpha,
			   rcm_pace_waiting(qp));
	if (!qp->sending && rcm_pace_waiting(qp))
		arm(qp, &p);
}

/* Lets go of everything that is held back, in order, and paces nothing from then on. */
void rcm_pace_drain(struct rcm_qp *qp)
{
	struct dcqcn_params p;

	spin_lock_bh(&qp->lock);
	while (qp->sending) {	/* release(), on another processor */
		spin_unlock_bh(&qp->lock);
		hrtimer_cancel(&qp->timer);
		spin_lock_bh(&qp->lock);
	}
	rcm_rate_params(&p, READ_ONCE(qp->line));
	fifo_send(qp, &p, true);
	WRITE_ONCE(qp->limited, false);
	spin_unlock_bh(&qp->lock);
}

/* What is held back of @qp, which is dead, is dropped, and its timer never runs again. */
void rcm_pace_stop(struct rcm_qp *qp)
{
	struct sk_buff *skb;

	hrtimer_cancel(&qp->timer);
	spin_lock_bh(&qp->lock);
	while ((skb = fifo_take(qp)))
		kfree_skb(skb);
	spin_unlock_bh(&qp->lock);
}
