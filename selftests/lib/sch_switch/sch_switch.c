// SPDX-License-Identifier: GPL-2.0
/*
 * sch_switch - what a switch's ports share, for tests and scenarios: a buffer, and PFC.
 *
 *	enqueue: this port holds more than alpha * (pool - all that ports hold): drop
 *		 more than xoff came by this packet's device: pause that device's peer
 *	dequeue: paused: nothing; at most xon is left of what came by that device: resume
 *
 * A network namespace is a switch; its ports are the devices that have this queueing discipline
 * at the root, with one child, class 1: the port's own queue and shaper. Packets that the
 * namespace itself sends take nothing from the pool, so that a host can have it, too, to be
 * paused. The dynamic threshold is Choudhury's and Hahne's (1998). PFC is that of one priority.
 *
 * Deviations: a pause takes effect at once, before the next packet, because no link of the lab has
 * a delay in this direction; the device that is paused is the peer of a veth. A child that drops
 * what it has queued is accounted for when the port is empty.
 */
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <linux/spinlock.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>
#include <net/pkt_sched.h>

#define SWITCH_INGRESS	64	/* devices whose packets are counted; a power of two */
#define SWITCH_ALPHA	6400	/* %; switches have up to 8, or 800 % */

static unsigned int pool = 4000000;
module_param(pool, uint, 0444);
MODULE_PARM_DESC(pool, "bytes that the ports of a namespace share");

static unsigned int alpha = 100;
module_param(alpha, uint, 0444);
MODULE_PARM_DESC(alpha, "a port may hold this percentage of the free part of the pool");

static unsigned int xoff;
module_param(xoff, uint, 0444);
MODULE_PARM_DESC(xoff, "pause a device's peer above so many bytes from it; 0: never");

static unsigned int xon;
module_param(xon, uint, 0444);
MODULE_PARM_DESC(xon, "resume it at so many");

/**
 * struct switch_ingress - a device by which packets come
 * @ifindex:	0: not used yet
 * @bytes:	that came by it and are in the pool
 * @paused:	its peer has been told to stop
 */
struct switch_ingress {
	int ifindex;
	u32 bytes;
	bool paused;
};

/**
 * struct switch_pool - of a namespace
 * @lock:	see below
 * @used:	bytes
 * @ingress:	by a hash of ifindex
 */
struct switch_pool {
	spinlock_t lock;	/* of all of it, and of what ports hold */
	u32 used;
	struct switch_ingress ingress[SWITCH_INGRESS];
};

/**
 * struct switch_sched_data - a port
 * @qdisc:	the child
 * @held:	bytes that the port has of the pool
 * @from:	the same by ingress device
 * @pauses:	how often the other side has paused this port
 * @paused:	it has
 */
struct switch_sched_data {
	struct Qdisc *qdisc;
	u32 held;
	u32 from[SWITCH_INGRESS];
	atomic_t pauses;
	bool paused;
};

static struct Qdisc_ops switch_qdisc_ops;
static unsigned int switch_net_id __read_mostly;

static struct switch_pool *switch_pool(const struct Qdisc *sch)
{
	return net_generic(dev_net(qdisc_dev(sch)), switch_net_id);
}

/* The entry of a device, a new one if need be; -1 if there is no more room */
static int switch_slot(struct switch_pool *sw, int ifindex)
{
	unsigned int i, slot;

	for (i = 0; i < SWITCH_INGRESS; i++) {
		slot = (ifindex + i) % SWITCH_INGRESS;
		if (!sw->ingress[slot].ifindex)
			sw->ingress[slot].ifindex = ifindex;
		if (sw->ingress[slot].ifindex == ifindex)
			return slot;
	}
	return -1;
}

/* PAUSE or RESUME to the other side of @in's link, if that has a port of ours */
static void switch_signal(struct net *net, struct switch_ingress *in, bool pause)
{
	struct net_device *dev, *peer = NULL;
	struct switch_sched_data *q;
	struct Qdisc *sch;

	in->paused = pause;
	rcu_read_lock();
	dev = dev_get_by_index_rcu(net, in->ifindex);
	if (dev && dev->netdev_ops->ndo_get_peer_dev)
		peer = dev->netdev_ops->ndo_get_peer_dev(dev);
	sch = peer ? rcu_dereference(netdev_get_tx_queue(peer, 0)->qdisc) : NULL;
	if (sch && sch->ops == &switch_qdisc_ops) {
		q = qdisc_priv(sch);
		if (pause)
			atomic_inc(&q->pauses);
		WRITE_ONCE(q->paused, pause);
		if (!pause)
			__netif_schedule(sch);
	}
	rcu_read_unlock();
}

/* Takes @len bytes of the pool for this port; false if the port has its share */
static bool switch_take(struct Qdisc *sch, int ifindex, u32 len)
{
	struct switch_sched_data *q = qdisc_priv(sch);
	struct switch_pool *sw = switch_pool(sch);
	struct switch_ingress *in;
	bool room;
	int slot;

	spin_lock_bh(&sw->lock);
	room = sw->used + len <= pool &&
	       (u64)(q->held + len) * 100 <= (u64)(pool - sw->used) * alpha;
	if (room) {
		sw->used += len;
		q->held += len;
		slot = switch_slot(sw, ifindex);
		if (slot >= 0) {
			in = &sw->ingress[slot];
			q->from[slot] += len;
			in->bytes += len;
			if (xoff && in->bytes > xoff && !in->paused)
				switch_signal(dev_net(qdisc_dev(sch)), in, true);
		}
	}
	spin_unlock_bh(&sw->lock);
	return room;
}

static void switch_give_slot(struct net *net, struct switch_pool *sw,
			     struct switch_sched_data *q, int slot, u32 len)
{
	struct switch_ingress *in = &sw->ingress[slot];

	/* a child that segments makes more of a packet than came */
	len = min(len, q->from[slot]);
	q->from[slot] -= len;
	in->bytes -= len;
	if (in->paused && in->bytes <= xon)
		switch_signal(net, in, false);
}

/* Gives @len bytes back */
static void switch_give(struct Qdisc *sch, int ifindex, u32 len)
{
	struct switch_sched_data *q = qdisc_priv(sch);
	struct switch_pool *sw = switch_pool(sch);
	int slot;

	spin_lock_bh(&sw->lock);
	slot = switch_slot(sw, ifindex);
	if (slot >= 0)
		switch_give_slot(dev_net(qdisc_dev(sch)), sw, q, slot, len);
	len = min(len, q->held);
	q->held -= len;
	sw->used -= len;
	spin_unlock_bh(&sw->lock);
}

/* Gives all back: the port is empty, whatever became of its packets */
static void switch_give_all(struct Qdisc *sch)
{
	struct switch_sched_data *q = qdisc_priv(sch);
	struct switch_pool *sw = switch_pool(sch);
	int slot;

	spin_lock_bh(&sw->lock);
	for (slot = 0; q->held && slot < SWITCH_INGRESS; slot++)
		switch_give_slot(dev_net(qdisc_dev(sch)), sw, q, slot, q->from[slot]);
	sw->used -= q->held;
	q->held = 0;
	spin_unlock_bh(&sw->lock);
}

static int switch_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct switch_sched_data *q = qdisc_priv(sch);
	unsigned int len = qdisc_pkt_len(skb);
	int ifindex = skb->skb_iif, ret;

	if (ifindex && !switch_take(sch, ifindex, len))
		return qdisc_drop(skb, sch, to_free);
	ret = qdisc_enqueue(skb, q->qdisc, to_free);
	if (ret != NET_XMIT_SUCCESS) {
		if (ifindex)
			switch_give(sch, ifindex, len);
		if (net_xmit_drop_count(ret))
			qdisc_qstats_drop(sch);
		return ret;
	}
	sch->qstats.backlog += len;
	sch->q.qlen++;
	return NET_XMIT_SUCCESS;
}

static struct sk_buff *switch_dequeue(struct Qdisc *sch)
{
	struct switch_sched_data *q = qdisc_priv(sch);
	struct sk_buff *skb;

	if (READ_ONCE(q->paused))
		return NULL;
	skb = qdisc_dequeue_peeked(q->qdisc);
	if (skb) {
		qdisc_bstats_update(sch, skb);
		qdisc_qstats_backlog_dec(sch, skb);
		sch->q.qlen--;
		if (skb->skb_iif)
			switch_give(sch, skb->skb_iif, qdisc_pkt_len(skb));
	}
	if (!sch->q.qlen && q->held)
		switch_give_all(sch);
	return skb;
}

/* Also when its device goes down, and a RESUME would not find it. */
static void switch_reset(struct Qdisc *sch)
{
	struct switch_sched_data *q = qdisc_priv(sch);

	qdisc_reset(q->qdisc);
	WRITE_ONCE(q->paused, false);
	switch_give_all(sch);
}

static int switch_init(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct switch_sched_data *q = qdisc_priv(sch);

	if (sch->parent != TC_H_ROOT) {
		NL_SET_ERR_MSG(extack, "switch is a port: at the root only");
		return -EOPNOTSUPP;
	}
	q->qdisc = qdisc_create_dflt(sch->dev_queue, &pfifo_qdisc_ops,
				     TC_H_MAKE(sch->handle, 1), extack);
	if (!q->qdisc)
		return -ENOMEM;
	qdisc_hash_add(q->qdisc, true);
	return 0;
}

/* Also called if init() failed. */
static void switch_destroy(struct Qdisc *sch)
{
	struct switch_sched_data *q = qdisc_priv(sch);

	if (!q->qdisc)
		return;
	switch_give_all(sch);
	qdisc_put(q->qdisc);
}

static int switch_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	struct switch_sched_data *q = qdisc_priv(sch);

	sch->qstats.overlimits = atomic_read(&q->pauses);
	return 0;
}

/* --- one class, the child's ------------------------------------------------- */

static int switch_graft(struct Qdisc *sch, unsigned long arg, struct Qdisc *new,
			struct Qdisc **old, struct netlink_ext_ack *extack)
{
	struct switch_sched_data *q = qdisc_priv(sch);

	*old = qdisc_replace(sch, new ?: &noop_qdisc, &q->qdisc);
	/* which has lost its packets */
	switch_give_all(sch);
	return 0;
}

static struct Qdisc *switch_leaf(struct Qdisc *sch, unsigned long arg)
{
	struct switch_sched_data *q = qdisc_priv(sch);

	return q->qdisc;
}

static unsigned long switch_find(struct Qdisc *sch, u32 classid)
{
	return TC_H_MIN(classid) == 1;
}

static int switch_dump_class(struct Qdisc *sch, unsigned long cl, struct sk_buff *skb,
			     struct tcmsg *tcm)
{
	struct switch_sched_data *q = qdisc_priv(sch);

	tcm->tcm_handle |= TC_H_MIN(1);
	tcm->tcm_info = q->qdisc->handle;
	return 0;
}

static void switch_walk(struct Qdisc *sch, struct qdisc_walker *walker)
{
	if (!walker->stop)
		tc_qdisc_stats_dump(sch, 1, walker);
}

static const struct Qdisc_class_ops switch_class_ops = {
	.graft		= switch_graft,
	.leaf		= switch_leaf,
	.find		= switch_find,
	.walk		= switch_walk,
	.dump		= switch_dump_class,
};

static struct Qdisc_ops switch_qdisc_ops __read_mostly = {
	.cl_ops		= &switch_class_ops,
	.id		= "switch",
	.priv_size	= sizeof(struct switch_sched_data),
	.enqueue	= switch_enqueue,
	.dequeue	= switch_dequeue,
	.peek		= qdisc_peek_dequeued,
	.init		= switch_init,
	.reset		= switch_reset,
	.destroy	= switch_destroy,
	.dump_stats	= switch_dump_stats,
	.owner		= THIS_MODULE,
};

static int __net_init switch_net_init(struct net *net)
{
	struct switch_pool *sw = net_generic(net, switch_net_id);

	spin_lock_init(&sw->lock);
	return 0;
}

/* After the namespace's devices, and all that they held, are gone */
static void __net_exit switch_net_exit(struct net *net)
{
	struct switch_pool *sw = net_generic(net, switch_net_id);

	WARN_ON_ONCE(sw->used);
}

static struct pernet_operations switch_net_ops = {
	.init	= switch_net_init,
	.exit	= switch_net_exit,
	.id	= &switch_net_id,
	.size	= sizeof(struct switch_pool),
};

static int __init switch_module_init(void)
{
	int err;

	if (!pool || pool > 1 << 30 || !alpha || alpha > SWITCH_ALPHA || xoff > pool ||
	    (xoff ? xon >= xoff : xon))
		return -EINVAL;
	err = register_pernet_subsys(&switch_net_ops);
	if (err)
		return err;
	err = register_qdisc(&switch_qdisc_ops);
	if (err)
		unregister_pernet_subsys(&switch_net_ops);
	return err;
}

static void __exit switch_module_exit(void)
{
	unregister_qdisc(&switch_qdisc_ops);
	unregister_pernet_subsys(&switch_net_ops);
}

module_init(switch_module_init);
module_exit(switch_module_exit);

MODULE_AUTHOR("The lowq authors");
MODULE_DESCRIPTION("A switch's shared buffer and PFC, for tests");
MODULE_LICENSE("GPL");
MODULE_ALIAS("net-sch-switch");
