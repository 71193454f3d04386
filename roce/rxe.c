// SPDX-License-Identifier: GPL-2.0
/* roce_rcm: what only rdma_rxe, the RDMA core and the device know. */
#include <linux/ethtool.h>
#include <linux/rtnetlink.h>
#include <linux/workqueue.h>
#include <net/inet_sock.h>
#include <net/net_namespace.h>
#include <rdma/ib_verbs.h>
#include <rdma/restrack.h>

#include "cc_compat.h"
#include "roce_rcm.h"

/*
 * The queue pair that @skb comes from, or NULL. rdma_rxe gives each a kernel UDP
 * socket that is never bound, as no other sender of packets to this port has; its user
 * data is the driver's queue pair, which begins with the RDMA core's.
 */
const struct ib_qp *rcm_rxe_qp(const struct sk_buff *skb)
{
	const struct sock *sk = skb->sk;
	const struct ib_qp *ibqp;

	if (!sk || !sk_fullsock(sk) || !sk->sk_kern_sock || sk->sk_type != SOCK_DGRAM ||
	    sk->sk_protocol != IPPROTO_UDP || inet_sk(sk)->inet_num || !skb->destructor)
		return NULL;
	ibqp = READ_ONCE(sk->sk_user_data);
	if (!ibqp || (uintptr_t)ibqp & 7 || ibqp->device->ops.driver_id != RDMA_DRIVER_RXE)
		return NULL;
	return ibqp;
}

/* --- questions that take sleep --------------------------------------------- */

/*
 * One question at a time; who finds it taken asks again with the next packet. So
 * nobody on the network can make more of them than one after the other.
 */
static struct {
	spinlock_t lock;	/* of @taken, and of the rest for who takes it */
	bool taken;
	struct net *net;
	struct net_device *dev;
	netdevice_tracker tracker;
	struct in6_addr addr;
	u32 number;
} question = { .lock = __SPIN_LOCK_UNLOCKED(question.lock) };

/* bit/s; a virtual device may say anything */
static u64 line_of(struct net_device *dev)
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

/* The peer of connected queue pair @number on @dev. Returns 0 and fills in, or an error. */
static int peer_of(struct net_device *dev, u32 number, struct in6_addr *addr, u32 *peer)
{
	struct ib_device *ibdev = ib_device_get_by_netdev(dev, RDMA_DRIVER_RXE);
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
	/* before it is ready to receive it has no peer, whatever it says */
	if (!err && ((ibqp->qp_type != IB_QPT_RC && ibqp->qp_type != IB_QPT_UC) ||
		     attr->qp_state < IB_QPS_RTR))
		err = -EINVAL;
	if (!err) {
		memcpy(addr, &attr->ah_attr.grh.dgid, sizeof(*addr));
		*peer = attr->dest_qp_num;
	}
	kfree(attr);
	kfree(init);
	rdma_restrack_put(entry);
put_device:
	ib_device_put(ibdev);
	return err;
}

static void answer_question(struct work_struct *work)
{
	struct in6_addr addr;
	struct rcm_qp *qp;
	u32 number;
	u64 line;
	int err;

	line = line_of(question.dev);
	err = peer_of(question.dev, question.number, &addr, &number);
	rcu_read_lock();
	qp = err ? rcm_qp_find(question.net, &question.addr, question.number, false) :
		   rcm_qp_get(question.net, &question.addr, question.number, false);
	if (qp) {
		WRITE_ONCE(qp->line, line);
		if (!err && !READ_ONCE(qp->peers))
			rcm_qp_learn(qp, &addr, number, true);
	}
	rcu_read_unlock();
	netdev_put(question.dev, &question.tracker);
	put_net(question.net);
	spin_lock_bh(&question.lock);
	question.taken = false;
	spin_unlock_bh(&question.lock);
}

static DECLARE_WORK(question_work, answer_question);

/*
 * What is the line of @dev, and, if it is connected, who the peer of its queue pair
 * @number, at @addr? The answer, if any, will be found in the table. Under RCU.
 */
void rcm_rxe_ask(struct net_device *dev, struct net *net, const struct in6_addr *addr,
		 u32 number)
{
	spin_lock_bh(&question.lock);
	if (!question.taken && !READ_ONCE(rcm_stopping) && maybe_get_net(net)) {
		question.taken = true;
		question.net = net;
		question.dev = dev;
		question.addr = *addr;
		question.number = number;
		netdev_hold(question.dev, &question.tracker, GFP_ATOMIC);
		rcm_count(RCM_ASKED);
		schedule_work(&question_work);
	}
	spin_unlock_bh(&question.lock);
}

/* No question is open any more; rcm_stopping, seen by all, keeps new ones away. */
void rcm_rxe_exit(void)
{
	flush_work(&question_work);
}
