// SPDX-License-Identifier: GPL-2.0
/*
 * lowq_link - a network link: a pair of devices with a rate or a trace, delay and faults
 *
 * A device takes one packet at a time: while it leaves, others wait in the qdisc above, which is
 * the user's. When its last bit has left, it flies; it arrives at the other device after the
 * delay. What happens to it, and when, is link_model.h's.
 *
 * A packet carries from end to end what a wire would: neither the sender's hash, by which all
 * switches on a path would choose alike, nor its socket, mark or time.
 */
#include <linux/etherdevice.h>
#include <linux/ethtool.h>
#include <linux/hrtimer.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/rbtree.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <net/rtnetlink.h>
#include <net/sch_generic.h>

#include "link_model.h"
#include "lowq_link.h"
#include "parallel.h"

#define LINK_FEATURES	(NETIF_F_SG | NETIF_F_FRAGLIST | NETIF_F_HW_CSUM | NETIF_F_RXCSUM | \
			 NETIF_F_SCTP_CRC | NETIF_F_HIGHDMA)
/* for ends that treat each packet alike */
#define LINK_GSO	(NETIF_F_GSO_SOFTWARE | NETIF_F_GSO_ENCAP_ALL)

/**
 * struct link_end - a device, and what it does with packets that it sends
 * @dev:	the device
 * @peer:	the other end's
 * @lock:	for all that follows
 * @wire:	has the rate, 0: none
 * @trace:	has @n instants, 0: none
 * @instants:	the trace's, of which @known have been given
 * @known:	how many
 * @path:	delay, jitter, reordering
 * @loss:	its law
 * @duplicate:	probability, Q32
 * @corrupt:	probability, Q32
 * @random:	state of the generator
 * @leaving:	the packet whose bits are being sent, or NULL
 * @end:	when its last bit has left, ns
 * @left:	fires then
 * @freed:	when it has fired, ns
 * @flying:	packets on the way, by the time of their arrival
 * @arrives:	fires when the first of them arrives
 * @first:	when that is, ns
 * @due:	instead of @arrives and @first in a run of several processes
 * @part:	which of them has the device, and the other end's
 * @stopped:	when the device went down, ns
 */
struct link_end {
	struct net_device *dev;
	struct net_device __rcu *peer;
	spinlock_t lock;	/* packets leave and arrive, and the line changes */
	struct link_wire wire;
	struct link_trace trace;
	u32 *instants;
	u32 known;
	struct link_path path;
	struct link_loss loss;
	u64 duplicate;
	u64 corrupt;
	u64 random;
	struct sk_buff *leaving;
	u64 end;
	struct hrtimer left;
	u64 freed;
	struct rb_root_cached flying;
	struct hrtimer arrives;
	u64 first;
	struct link_due due;
	struct lowq_link_part part;
	u64 stopped;
};

struct link_cb {
	u64 arrival;	/* ns */
};

static u64 *arrival(struct sk_buff *skb)
{
	return &((struct link_cb *)skb->cb)->arrival;
}

static bool has_line(const struct link_end *e)
{
	return e->wire.rate || e->trace.n;
}

static void set_timer(struct hrtimer *timer, u64 at)
{
	hrtimer_start(timer, ns_to_ktime(at), HRTIMER_MODE_ABS_SOFT);
}

/* --- packets -------------------------------------------------------------------------------- */

/* What the packet takes on the wire: a large one goes as segments, each with its headers. */
static u32 wire_bytes(const struct sk_buff *skb)
{
	const struct skb_shared_info *info = skb_shinfo(skb);
	u32 header;

	if (!info->gso_size)
		return skb->len;
	header = skb->encapsulation ? skb_inner_transport_offset(skb) : skb_transport_offset(skb);
	if (info->gso_type & (SKB_GSO_TCPV4 | SKB_GSO_TCPV6))
		header += skb->encapsulation ? inner_tcp_hdrlen(skb) : tcp_hdrlen(skb);
	else
		header += sizeof(struct udphdr);
	if (skb->len <= header)
		return skb->len;
	return skb->len + (DIV_ROUND_UP(skb->len - header, info->gso_size) - 1) * header;
}

/* A packet that is as late as another one comes after it. */
static void insert(struct link_end *e, struct sk_buff *skb, u64 at)
{
	struct rb_node **p = &e->flying.rb_root.rb_node, *parent = NULL;
	bool first = true;

	*arrival(skb) = at;
	while (*p) {
		parent = *p;
		if (at < *arrival(rb_to_skb(parent))) {
			p = &parent->rb_left;
		} else {
			p = &parent->rb_right;
			first = false;
		}
	}
	rb_link_node(&skb->rbnode, parent, p);
	rb_insert_color_cached(&skb->rbnode, &e->flying, first);
}

static struct sk_buff *take_first(struct link_end *e)
{
	struct rb_node *first = rb_first_cached(&e->flying);
	struct sk_buff *skb = rb_to_skb(first);

	rb_erase_cached(first, &e->flying);
	skb->next = NULL;
	skb->prev = NULL;
	skb->dev = e->dev;
	return skb;
}

/* A wrong bit, which checksums can see: NULL without memory. */
static struct sk_buff *damage(struct link_end *e, struct sk_buff *skb)
{
	u64 random = link_random(&e->random);

	if (skb->len <= ETH_HLEN)
		return skb;
	skb = skb_unshare(skb, GFP_ATOMIC);
	if (!skb)
		return NULL;
	if (skb_linearize(skb) || (skb->ip_summed == CHECKSUM_PARTIAL && skb_checksum_help(skb))) {
		kfree_skb(skb);
		return NULL;
	}
	skb->ip_summed = CHECKSUM_NONE;
	skb->data[ETH_HLEN + fp_mul_shr(random, skb->len - ETH_HLEN, 63) / 2] ^=
		1 << (random & 7);
	return skb;
}

static void send_off(struct link_end *e, struct sk_buff *skb, u64 at)
{
	if (e->part.to == e->part.from)
		insert(e, skb, at);
	else
		parallel_send(e->part.to, e->due.id, skb, at);
}

/* The packet has left at @end. */
static void fly(struct link_end *e, struct sk_buff *skb, u64 end)
{
	struct sk_buff *copy;
	u64 at;

	skb_orphan(skb);
	if (link_loses(&e->loss, &e->random)) {
		DEV_STATS_INC(e->dev, tx_errors);
		kfree_skb(skb);
		return;
	}
	if (link_chance(&e->random, e->corrupt))
		skb = damage(e, skb);
	if (!skb)
		return;
	if (um_parallel && !parallel_normalize(skb)) {
		kfree_skb(skb);
		return;
	}
	at = link_arrival(&e->path, end, &e->random);
	copy = link_chance(&e->random, e->duplicate) ? skb_clone(skb, GFP_ATOMIC) : NULL;
	if (copy && um_parallel && !parallel_normalize(copy)) {
		kfree_skb(copy);
		copy = NULL;
	}
	send_off(e, skb, at);
	if (copy)
		send_off(e, copy, at);
}

/* Puts what has arrived into @list, and waits for the next one. */
static void collect(struct link_end *e, u64 now, struct sk_buff_head *list)
{
	struct rb_node *first;
	u64 at;

	__skb_queue_head_init(list);
	while ((first = rb_first_cached(&e->flying)) != NULL) {
		at = *arrival(rb_to_skb(first));
		if (at <= now) {
			__skb_queue_tail(list, take_first(e));
			continue;
		}
		if (um_parallel) {
			if (at != e->due.at)
				parallel_set(&e->due, at);
		} else if (at != e->first) {
			e->first = at;
			set_timer(&e->arrives, at);
		}
		return;
	}
}

static void deliver(struct link_end *e, struct sk_buff_head *list,
		    int (*receive)(struct sk_buff *skb))
{
	struct net_device *peer;
	struct sk_buff *skb;

	rcu_read_lock();
	peer = rcu_dereference(e->peer);
	parallel_node(peer);
	while ((skb = __skb_dequeue(list)) != NULL) {
		unsigned int len = skb->len;

		skb_clear_hash(skb);
		skb->mark = 0;
		skb_clear_tstamp(skb);
		if (!peer) {
			kfree_skb(skb);
		} else if (!__dev_forward_skb(peer, skb)) {
			dev_sw_netstats_rx_add(peer, len);
			receive(skb);
		}
	}
	parallel_node(NULL);
	rcu_read_unlock();
}

static enum hrtimer_restart has_left(struct hrtimer *timer)
{
	struct link_end *e = container_of(timer, struct link_end, left);
	u64 now = ktime_get_ns();
	struct sk_buff_head list;
	bool left;

	spin_lock(&e->lock);
	/* or a change of the rate came between */
	left = e->leaving && e->end <= now;
	if (left) {
		fly(e, e->leaving, e->end);
		e->leaving = NULL;
		e->freed = now;
	}
	collect(e, now, &list);
	spin_unlock(&e->lock);
	if (left)
		netif_wake_queue(e->dev);
	deliver(e, &list, netif_receive_skb);
	return HRTIMER_NORESTART;
}

static void receive_due(struct link_end *e)
{
	struct sk_buff_head list;

	spin_lock(&e->lock);
	collect(e, ktime_get_ns(), &list);
	spin_unlock(&e->lock);
	deliver(e, &list, netif_receive_skb);
}

static enum hrtimer_restart has_arrived(struct hrtimer *timer)
{
	receive_due(container_of(timer, struct link_end, arrives));
	return HRTIMER_NORESTART;
}

static void is_due(struct link_due *due)
{
	receive_due(container_of(due, struct link_end, due));
}

static netdev_tx_t start_xmit(struct sk_buff *skb, struct net_device *dev)
{
	struct link_end *e = netdev_priv(dev);
	u64 now = ktime_get_ns();
	struct sk_buff_head list;
	unsigned int len = skb->len;

	if (e->part.from != parallel_me()) {
		/* another process has the node, and sends it */
		kfree_skb(skb);
		return NETDEV_TX_OK;
	}
	spin_lock(&e->lock);
	if (e->leaving) {
		spin_unlock(&e->lock);
		return NETDEV_TX_BUSY;
	}
	skb_tx_timestamp(skb);
	if (has_line(e)) {
		/* it has waited: it follows without a gap, although timers are a little late */
		if (now == e->freed)
			now = e->end;
		netif_stop_queue(dev);
		e->leaving = skb;
		e->end = e->wire.rate ? link_send(&e->wire, now, wire_bytes(skb)) :
					link_trace_send(&e->trace, now, wire_bytes(skb));
		set_timer(&e->left, e->end);
		__skb_queue_head_init(&list);
	} else {
		fly(e, skb, now);
		collect(e, now, &list);
	}
	spin_unlock(&e->lock);
	dev_sw_netstats_tx_add(dev, 1, len);
	/* the other end may send at once, and so on */
	deliver(e, &list, netif_rx);
	return NETDEV_TX_OK;
}

/* Ends of links, by their numbers, where there are several processes */
static DEFINE_XARRAY(ways);

void link_import(u32 id, struct sk_buff *skb, u64 sent, u64 at)
{
	struct link_end *e = xa_load(&ways, id);

	/* it was on the way when the link went down */
	if (!e || !netif_running(e->dev) || sent <= e->stopped) {
		kfree_skb(skb);
		return;
	}
	insert(e, skb, at);
	if (!e->due.at || at < e->due.at)
		parallel_set(&e->due, at);
}

/* --- the device ----------------------------------------------------------------------------- */

static int open_end(struct net_device *dev)
{
	struct link_end *e = netdev_priv(dev);
	struct net_device *peer = rtnl_dereference(e->peer);

	if (!peer)
		return -ENOTCONN;
	if (e->known < e->trace.n)
		return -ENODATA;
	netif_start_queue(dev);
	if (peer->flags & IFF_UP) {
		netif_carrier_on(dev);
		netif_carrier_on(peer);
	}
	return 0;
}

/* What is on the way is lost. */
static int stop_end(struct net_device *dev)
{
	struct link_end *e = netdev_priv(dev);
	struct net_device *peer = rtnl_dereference(e->peer);

	netif_carrier_off(dev);
	if (peer)
		netif_carrier_off(peer);
	netif_stop_queue(dev);
	hrtimer_cancel(&e->left);
	hrtimer_cancel(&e->arrives);
	spin_lock_bh(&e->lock);
	kfree_skb(e->leaving);
	e->leaving = NULL;
	while (rb_first_cached(&e->flying))
		kfree_skb(take_first(e));
	e->first = 0;
	e->stopped = ktime_get_ns();
	if (um_parallel)
		parallel_set(&e->due, 0);
	spin_unlock_bh(&e->lock);
	return 0;
}

static void free_end(struct net_device *dev)
{
	struct link_end *e = netdev_priv(dev);

	if (e->due.id)
		xa_erase(&ways, e->due.id);
	kvfree(e->instants);
}

/* What happens by chance, and a trace, is of each packet on the wire. */
static netdev_features_t fix_features(struct net_device *dev, netdev_features_t features)
{
	const struct link_end *e = netdev_priv(dev);

	if (e->trace.n || e->path.jitter || e->path.late || e->duplicate || e->corrupt ||
	    e->loss.good || e->loss.worse)
		features &= ~LINK_GSO;
	return features;
}

static const struct net_device_ops link_ops = {
	.ndo_open		= open_end,
	.ndo_stop		= stop_end,
	.ndo_start_xmit		= start_xmit,
	.ndo_set_mac_address	= eth_mac_addr,
	.ndo_validate_addr	= eth_validate_addr,
	.ndo_fix_features	= fix_features,
};

static int get_link_ksettings(struct net_device *dev, struct ethtool_link_ksettings *settings)
{
	const struct link_end *e = netdev_priv(dev);

	settings->base.speed = e->wire.rate ? div_u64(e->wire.rate, 1000000) : SPEED_UNKNOWN;
	settings->base.duplex = DUPLEX_FULL;
	settings->base.port = PORT_TP;
	return 0;
}

static const struct ethtool_ops link_ethtool_ops = {
	.get_link		= ethtool_op_get_link,
	.get_link_ksettings	= get_link_ksettings,
	.get_ts_info		= ethtool_op_get_ts_info,
};

static void setup(struct net_device *dev)
{
	struct link_end *e = netdev_priv(dev);

	ether_setup(dev);
	dev->netdev_ops = &link_ops;
	dev->ethtool_ops = &link_ethtool_ops;
	dev->priv_flags &= ~IFF_TX_SKB_SHARING;
	dev->priv_flags |= IFF_LIVE_ADDR_CHANGE | IFF_NO_QUEUE;
	dev->lltx = true;
	dev->features |= LINK_FEATURES | LINK_GSO;
	dev->hw_features = LINK_FEATURES | LINK_GSO;
	dev->hw_enc_features = LINK_FEATURES | LINK_GSO;
	dev->vlan_features = LINK_FEATURES | LINK_GSO;
	netif_set_tso_max_size(dev, GSO_MAX_SIZE);
	dev->max_mtu = ETH_MAX_MTU;
	dev->pcpu_stat_type = NETDEV_PCPU_STAT_TSTATS;
	dev->needs_free_netdev = true;
	dev->priv_destructor = free_end;
	e->dev = dev;
	spin_lock_init(&e->lock);
	e->flying = RB_ROOT_CACHED;
	e->due.arrive = is_due;
	hrtimer_setup(&e->left, has_left, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
	hrtimer_setup(&e->arrives, has_arrived, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
}

/* --- rtnetlink ------------------------------------------------------------------------------ */

static const struct netlink_range_validation rates = { LINK_RATE_MIN, LINK_RATE_MAX };
static const struct netlink_range_validation times = { 0, LINK_TIME_MAX };
static const struct netlink_range_validation sizes = { 1, LOWQ_LINK_TRACE_MAX };
static const struct netlink_range_validation chances = { 0, LINK_ONE };

static const struct nla_policy policy[IFLA_LOWQ_LINK_MAX + 1] = {
	[IFLA_LOWQ_LINK_PEER]		= { .len = sizeof(struct ifinfomsg) },
	[IFLA_LOWQ_LINK_RATE]		= NLA_POLICY_FULL_RANGE(NLA_U64, &rates),
	[IFLA_LOWQ_LINK_DELAY]		= NLA_POLICY_FULL_RANGE(NLA_U64, &times),
	[IFLA_LOWQ_LINK_JITTER]		= NLA_POLICY_FULL_RANGE(NLA_U64, &times),
	[IFLA_LOWQ_LINK_SEED]		= { .type = NLA_U64 },
	[IFLA_LOWQ_LINK_LOSS]		= NLA_POLICY_EXACT_LEN(sizeof(struct lowq_link_loss)),
	[IFLA_LOWQ_LINK_LATE]		= NLA_POLICY_EXACT_LEN(sizeof(struct lowq_link_late)),
	[IFLA_LOWQ_LINK_DUPLICATE]	= NLA_POLICY_FULL_RANGE(NLA_U64, &chances),
	[IFLA_LOWQ_LINK_CORRUPT]	= NLA_POLICY_FULL_RANGE(NLA_U64, &chances),
	[IFLA_LOWQ_LINK_TRACE_SIZE]	= NLA_POLICY_FULL_RANGE(NLA_U32, &sizes),
	[IFLA_LOWQ_LINK_TRACE]		= { .type = NLA_BINARY },
	[IFLA_LOWQ_LINK_TRACE_START]	= { .type = NLA_U64 },
	[IFLA_LOWQ_LINK_PART]		= NLA_POLICY_EXACT_LEN(sizeof(struct lowq_link_part)),
};

static int refuse_loss(struct nlattr *a, struct netlink_ext_ack *extack)
{
	struct lowq_link_loss loss;

	nla_memcpy(&loss, a, sizeof(loss));
	if (max(max(loss.good, loss.bad), max(loss.worse, loss.better)) <= LINK_ONE)
		return 0;
	NL_SET_ERR_MSG_ATTR(extack, a, "a probability above 1");
	return -ERANGE;
}

static int refuse_late(struct nlattr *a, struct netlink_ext_ack *extack)
{
	struct lowq_link_late late;

	nla_memcpy(&late, a, sizeof(late));
	if (late.share <= LINK_ONE && late.by <= LINK_TIME_MAX)
		return 0;
	NL_SET_ERR_MSG_ATTR(extack, a, "out of range");
	return -ERANGE;
}

/* Room for a trace that comes */
static int size_trace(struct link_end *e, u32 n)
{
	u32 *instants = kvmalloc_array(n, sizeof(*instants), GFP_KERNEL_ACCOUNT);

	if (!instants)
		return -ENOMEM;
	kvfree(e->instants);
	e->instants = instants;
	e->known = 0;
	e->trace.at = instants;
	e->trace.n = n;
	return 0;
}

static int add_instants(struct link_end *e, struct nlattr *a, struct netlink_ext_ack *extack)
{
	u32 n = nla_len(a) / sizeof(u32), last = e->known ? e->instants[e->known - 1] : 0, i;

	if (n > e->trace.n - e->known) {
		NL_SET_ERR_MSG_ATTR(extack, a, "more than the trace's size");
		return -ERANGE;
	}
	nla_memcpy(e->instants + e->known, a, n * sizeof(u32));
	for (i = 0; i < n; i++) {
		if (e->instants[e->known + i] < last) {
			NL_SET_ERR_MSG_ATTR(extack, a, "the trace goes backwards");
			return -EINVAL;
		}
		last = e->instants[e->known + i];
	}
	if (e->known + n == e->trace.n && !last) {
		NL_SET_ERR_MSG_ATTR(extack, a, "the trace takes no time");
		return -EINVAL;
	}
	e->known += n;
	return 0;
}

/* Before the device is up */
static int set_part(struct link_end *e, struct nlattr *a)
{
	if (!um_parallel || e->due.id || rcu_access_pointer(e->dev->qdisc) != &noop_qdisc)
		return -EBUSY;
	nla_memcpy(&e->part, a, sizeof(e->part));
	e->due.id = e->part.id;
	return xa_insert(&ways, e->due.id, e, GFP_KERNEL);
}

/* All that refuses comes before all that changes the line in use. */
static int configure(struct net_device *dev, struct nlattr *data[],
		     struct netlink_ext_ack *extack)
{
	struct nlattr *rate = data[IFLA_LOWQ_LINK_RATE], *size = data[IFLA_LOWQ_LINK_TRACE_SIZE];
	struct link_end *e = netdev_priv(dev);
	u64 now;
	int err = 0;

	if (size || (rate && !e->wire.rate)) {
		if ((size && rate) || e->wire.rate || (rate && e->trace.n) ||
		    rcu_access_pointer(dev->qdisc) != &noop_qdisc) {
			NL_SET_ERR_MSG(extack, "a rate or a trace, before the device is up");
			return -EBUSY;
		}
	}
	if (data[IFLA_LOWQ_LINK_LOSS])
		err = refuse_loss(data[IFLA_LOWQ_LINK_LOSS], extack);
	if (!err && data[IFLA_LOWQ_LINK_LATE])
		err = refuse_late(data[IFLA_LOWQ_LINK_LATE], extack);
	if (!err && data[IFLA_LOWQ_LINK_PART])
		err = set_part(e, data[IFLA_LOWQ_LINK_PART]);
	if (!err && size)
		err = size_trace(e, nla_get_u32(size));
	if (!err && data[IFLA_LOWQ_LINK_TRACE])
		err = add_instants(e, data[IFLA_LOWQ_LINK_TRACE], extack);
	if (err)
		return err;
	if (size || rate)
		dev->priv_flags &= ~IFF_NO_QUEUE;

	spin_lock_bh(&e->lock);
	now = ktime_get_ns();
	if (rate) {
		link_set_rate(&e->wire, now, nla_get_u64(rate));
		if (e->leaving) {
			e->end = e->wire.end;
			set_timer(&e->left, e->end);
		}
	}
	if (data[IFLA_LOWQ_LINK_DELAY])
		link_set_delay(&e->path, nla_get_u64(data[IFLA_LOWQ_LINK_DELAY]));
	if (data[IFLA_LOWQ_LINK_JITTER])
		e->path.jitter = nla_get_u64(data[IFLA_LOWQ_LINK_JITTER]);
	if (data[IFLA_LOWQ_LINK_SEED])
		e->random = nla_get_u64(data[IFLA_LOWQ_LINK_SEED]);
	if (data[IFLA_LOWQ_LINK_LOSS]) {
		struct lowq_link_loss loss;

		nla_memcpy(&loss, data[IFLA_LOWQ_LINK_LOSS], sizeof(loss));
		e->loss = (struct link_loss){ loss.good, loss.bad, loss.worse, loss.better };
	}
	if (data[IFLA_LOWQ_LINK_LATE]) {
		struct lowq_link_late late;

		nla_memcpy(&late, data[IFLA_LOWQ_LINK_LATE], sizeof(late));
		e->path.late = late.share;
		e->path.late_by = late.by;
	}
	if (data[IFLA_LOWQ_LINK_DUPLICATE])
		e->duplicate = nla_get_u64(data[IFLA_LOWQ_LINK_DUPLICATE]);
	if (data[IFLA_LOWQ_LINK_CORRUPT])
		e->corrupt = nla_get_u64(data[IFLA_LOWQ_LINK_CORRUPT]);
	if (e->known == e->trace.n && data[IFLA_LOWQ_LINK_TRACE])
		link_trace_start(&e->trace, now);
	if (e->known && data[IFLA_LOWQ_LINK_TRACE_START])
		link_trace_start(&e->trace, nla_get_u64(data[IFLA_LOWQ_LINK_TRACE_START]));
	spin_unlock_bh(&e->lock);
	netdev_update_features(dev);
	return 0;
}

static int change_end(struct net_device *dev, struct nlattr *tb[], struct nlattr *data[],
		      struct netlink_ext_ack *extack)
{
	return data ? configure(dev, data, extack) : 0;
}

static int check_end(struct nlattr *tb[], struct nlattr *data[], struct netlink_ext_ack *extack)
{
	if (tb[IFLA_ADDRESS] && (nla_len(tb[IFLA_ADDRESS]) != ETH_ALEN ||
				 !is_valid_ether_addr(nla_data(tb[IFLA_ADDRESS]))))
		return -EADDRNOTAVAIL;
	return 0;
}

static struct rtnl_link_ops rtnl_ops;

static int register_end(struct net_device *dev, struct nlattr *tb[])
{
	int err;

	if (!tb[IFLA_ADDRESS])
		eth_hw_addr_random(dev);
	err = register_netdevice(dev);
	if (!err)
		netif_carrier_off(dev);
	return err;
}

/* Makes both ends; changes give them their lines. */
static int new_pair(struct net_device *dev, struct rtnl_newlink_params *params,
		    struct netlink_ext_ack *extack)
{
	struct nlattr *other = params->data ? params->data[IFLA_LOWQ_LINK_PEER] : NULL;
	struct nlattr *tb[IFLA_MAX + 1];
	struct ifinfomsg *message;
	struct net_device *peer;
	struct link_end *e;
	char name[IFNAMSIZ];
	int err;

	if (!other) {
		NL_SET_ERR_MSG(extack, "the other end is missing");
		return -EINVAL;
	}
	message = nla_data(other);
	err = rtnl_nla_parse_ifinfomsg(tb, other, extack);
	if (err)
		return err;
	if (tb[IFLA_IFNAME])
		nla_strscpy(name, tb[IFLA_IFNAME], IFNAMSIZ);
	else
		strscpy(name, "link%d", IFNAMSIZ);
	peer = rtnl_create_link(rtnl_newlink_peer_net(params), name, NET_NAME_USER, &rtnl_ops, tb,
				extack);
	if (IS_ERR(peer))
		return PTR_ERR(peer);
	err = register_end(peer, tb);
	if (err) {
		free_netdev(peer);
		return err;
	}
	err = rtnl_configure_link(peer, message, 0, NULL);
	if (!err)
		err = register_end(dev, params->tb);
	if (err) {
		unregister_netdevice(peer);
		return err;
	}
	e = netdev_priv(dev);
	rcu_assign_pointer(e->peer, peer);
	e = netdev_priv(peer);
	rcu_assign_pointer(e->peer, dev);
	return 0;
}

/* Both go together. RCU keeps each until the other has stopped. */
static void remove_pair(struct net_device *dev, struct list_head *head)
{
	struct link_end *e = netdev_priv(dev);
	struct net_device *peer = rtnl_dereference(e->peer);

	unregister_netdevice_queue(dev, head);
	if (!peer)
		return;
	RCU_INIT_POINTER(e->peer, NULL);
	e = netdev_priv(peer);
	RCU_INIT_POINTER(e->peer, NULL);
	unregister_netdevice_queue(peer, head);
}

static struct net *net_of_peer(const struct net_device *dev)
{
	const struct link_end *e = netdev_priv(dev);
	struct net_device *peer = rtnl_dereference(e->peer);

	return peer ? dev_net(peer) : dev_net(dev);
}

static struct rtnl_link_ops rtnl_ops = {
	.kind		= LOWQ_LINK_KIND,
	.priv_size	= sizeof(struct link_end),
	.setup		= setup,
	.validate	= check_end,
	.newlink	= new_pair,
	.changelink	= change_end,
	.dellink	= remove_pair,
	.policy		= policy,
	.peer_type	= IFLA_LOWQ_LINK_PEER,
	.maxtype	= IFLA_LOWQ_LINK_MAX,
	.get_link_net	= net_of_peer,
};

static int __init link_init(void)
{
	int err = parallel_init();

	if (err)
		return err;
	err = rtnl_link_register(&rtnl_ops);
	if (err)
		parallel_exit();
	return err;
}

static void __exit link_exit(void)
{
	rtnl_link_unregister(&rtnl_ops);
	parallel_exit();
}

module_init(link_init);
module_exit(link_exit);

MODULE_DESCRIPTION("Network link with an exact rate, for lowq's lab");
MODULE_LICENSE("GPL");
MODULE_ALIAS_RTNL_LINK(LOWQ_LINK_KIND);
