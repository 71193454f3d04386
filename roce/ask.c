// SPDX-License-Identifier: GPL-2.0
/*
 * roce_rcm: asks the RDMA core about queue pairs and network devices about their speed. Both may
 * sleep, so work items ask. The answers go to the table of queue pairs and to a list of speeds.
 */
#include <linux/ethtool.h>
#include <linux/rtnetlink.h>
#include <linux/workqueue.h>
#include <net/net_namespace.h>
#include <rdma/ib_verbs.h>
#include <rdma/restrack.h>

#include "cc_compat.h"
#include "roce_rcm.h"

/* Marked packets from the network cause at most one question in this time. */
#define ASK_GAP_NS	NSEC_PER_MSEC

/**
 * struct question - a question that a work item answers
 * @work:	the work item
 * @taken:	a question is being answered; the fields below belong to @work
 * @net:	network namespace, held
 * @dev:	network device, held
 * @tracker:	of the reference to @dev
 * @addr:	address of the queue pair
 * @number:	number of the queue pair
 *
 * One at a time: while a question is being answered, no other one is asked; a later packet
 * asks again.
 */
struct question {
	struct work_struct work;
	bool taken;
	struct net *net;
	struct net_device *dev;
	netdevice_tracker tracker;
	struct in6_addr addr;
	u32 number;
};

static DEFINE_SPINLOCK(question_lock);	/* protects @taken of both, asked_at and lines */

/* Returns true if @q was free; the caller holds the lock, fills in the rest, and schedules. */
static bool question_take(struct question *q, struct net *net, struct net_device *dev)
{
	if (q->taken || READ_ONCE(rcm_stopping) || !maybe_get_net(net))
		return false;
	q->taken = true;
	q->net = net;
	q->dev = dev;
	netdev_hold(dev, &q->tracker, GFP_ATOMIC);
	return true;
}

static void question_done(struct question *q)
{
	netdev_put(q->dev, &q->tracker);
	put_net(q->net);
	spin_lock_bh(&question_lock);
	q->taken = false;
	spin_unlock_bh(&question_lock);
}

/* --- ... about a queue pair ------------------------------------------------ */

/*
 * Fills in the kind of queue pair @number on @dev and, if it is connected, its peer. Returns 0 or
 * an error.
 */
static int query_qp(struct net_device *dev, u32 number, enum rcm_kind *kind,
		    struct in6_addr *addr, u32 *peer)
{
	struct ib_device *ibdev = rcm_rxe_device(dev);
	struct rdma_restrack_entry *entry;
	struct ib_qp_init_attr *init;
	struct ib_qp_attr *attr;
	struct ib_qp *ibqp;
	int err = -ENOMEM;

	if (!ibdev)
		return -ENODEV;
	entry = rdma_restrack_get_byid(ibdev, RDMA_RESTRACK_QP, number);
	if (IS_ERR(entry)) {
		err = PTR_ERR(entry);
		goto put_device;
	}
	ibqp = container_of(entry, struct ib_qp, res);
	attr = kzalloc_obj(*attr, GFP_KERNEL);
	init = kzalloc_obj(*init, GFP_KERNEL);
	if (attr && init)
		err = ib_query_qp(ibqp, attr, IB_QP_STATE | IB_QP_AV | IB_QP_DEST_QPN, init);
	if (!err) {
		memcpy(addr, &attr->ah_attr.grh.dgid, sizeof(*addr));
		*peer = attr->dest_qp_num;
		*kind = ibqp->qp_type == IB_QPT_UD ? RCM_DATAGRAM : RCM_CONNECTED;
		/* it has a peer from ready-to-receive on, until an error */
		if ((ibqp->qp_type != IB_QPT_RC && ibqp->qp_type != IB_QPT_UC &&
		     ibqp->qp_type != IB_QPT_UD) ||
		    attr->qp_state < IB_QPS_RTR || attr->qp_state == IB_QPS_ERR)
			err = -EINVAL;
	}
	kfree(attr);
	kfree(init);
	rdma_restrack_put(entry);
put_device:
	ib_device_put(ibdev);
	return err;
}

static void answer_about_qp(struct work_struct *work)
{
	struct question *q = container_of(work, struct question, work);
	struct in6_addr addr;
	enum rcm_kind kind;
	struct rcm_qp *qp;
	u32 number;

	if (!query_qp(q->dev, q->number, &kind, &addr, &number)) {
		rcu_read_lock();
		qp = rcm_qp_get(q->net, &q->addr, q->number, false);
		if (qp && !READ_ONCE(qp->peers)) {
			if (kind == RCM_CONNECTED)
				rcm_qp_learn(qp, &addr, number, kind);
			else
				WRITE_ONCE(qp->kind, kind);
		}
		rcu_read_unlock();
	}
	question_done(q);
}

static struct question about_qp = { .work = __WORK_INITIALIZER(about_qp.work, answer_about_qp) };
static u64 asked_at;	/* ns: when the last question about a queue pair was asked */

/* Has @dev a soft-RoCE device? In any context. */
static bool has_device(struct net_device *dev)
{
	struct ib_device *ibdev = rcm_rxe_device(dev);

	if (ibdev)
		ib_device_put(ibdev);
	return ibdev;
}

/*
 * Asks for the kind and the peer of queue pair @number of @dev, at @addr, because of a packet
 * from the network: at most once per ASK_GAP_NS, and without RTNL. The answer, if any, goes to
 * the table. Under RCU.
 */
void rcm_ask_qp(struct net_device *dev, struct net *net, const struct in6_addr *addr, u32 number)
{
	u64 now = ktime_get_ns();

	if (!has_device(dev))
		return;
	spin_lock_bh(&question_lock);
	if ((!asked_at || now - asked_at >= ASK_GAP_NS) && question_take(&about_qp, net, dev)) {
		asked_at = now;
		about_qp.addr = *addr;
		about_qp.number = number;
		rcm_count(RCM_ASKED);
		schedule_work(&about_qp.work);
	}
	spin_unlock_bh(&question_lock);
}

/* --- ... about a line ------------------------------------------------------ */

/* Speeds asked for within the last second: many queue pairs then need one question */
#define LINES		8

static struct {
	const struct net_device *dev;
	u64 bps;
	unsigned long until;
} lines[LINES];
static unsigned int lines_next;	/* the one to replace next */

/* Speed of @dev, bit/s; a virtual device may report anything */
static u64 query_line(struct net_device *dev)
{
	struct ethtool_link_ksettings link = {};
	int err;

	rtnl_lock();
	err = __ethtool_get_link_ksettings(dev, &link);
	rtnl_unlock();
	if (err || !link.base.speed || link.base.speed == (u32)SPEED_UNKNOWN)
		return RCM_LINE_UNKNOWN;
	return min(link.base.speed * 1000000ULL, DCQCN_RATE_MAX);
}

static void answer_about_line(struct work_struct *work)
{
	struct question *q = container_of(work, struct question, work);
	u64 bps = query_line(q->dev);

	spin_lock_bh(&question_lock);
	lines[lines_next].dev = q->dev;
	lines[lines_next].bps = bps;
	lines[lines_next].until = jiffies + HZ;
	lines_next = (lines_next + 1) % LINES;
	spin_unlock_bh(&question_lock);
	question_done(q);
}

static struct question about_line = {
	.work = __WORK_INITIALIZER(about_line.work, answer_about_line)
};

/*
 * Returns the speed of @dev, bit/s, or 0 if it is not known yet; then it asks the device. That
 * takes RTNL, so only packets that this host sends may cause it.
 */
u64 rcm_ask_line(struct net_device *dev, struct net *net)
{
	u64 bps = 0;
	int i;

	spin_lock_bh(&question_lock);
	for (i = 0; i < LINES; i++)
		if (lines[i].dev == dev && time_before(jiffies, lines[i].until))
			bps = lines[i].bps;
	if (!bps && question_take(&about_line, net, dev)) {
		rcm_count(RCM_ASKED_LINE);
		schedule_work(&about_line.work);
	}
	spin_unlock_bh(&question_lock);
	return bps;
}

/* Waits for the last answers; rcm_stopping, seen by all, prevents new questions. */
void rcm_ask_exit(void)
{
	flush_work(&about_qp.work);
	flush_work(&about_line.work);
}
