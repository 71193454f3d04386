// SPDX-License-Identifier: GPL-2.0
/*
 * roce_rcm: the table of queue pairs, and who their peers are.
 *
 * A data packet names its destination queue pair only. The queue pair that a CNP must
 * name is learned from packets of the local queue pair (RC: the first ACK shows its
 * peer), read from the datagram header (UD), or the RDMA core is asked for it (UC), from
 * a work item in ask.c. The RDMA core also tells that a UD queue pair exists.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/if_ether.h>
#include <linux/jhash.h>
#include <linux/jiffies.h>
#include <linux/random.h>
#include <linux/workqueue.h>
#include <net/ipv6.h>
#include <net/net_namespace.h>
#include <net/netns/hash.h>

#include "cc_compat.h"
#include "cc_param.h"
#include "roce_rcm.h"

CC_PARAM(max_qps, 16384, 1, 1000000, 0644, "1 to 1000000",
	 "size of the table of queue pairs, of local and of remote ones each");
CC_PARAM(idle_s, 10, 1, 3600, 0644, "1 s to an hour",
	 "a queue pair that was not used for this time is forgotten, seconds");

DEFINE_HASHTABLE(rcm_qp_table, RCM_QP_TABLE_BITS);
static DEFINE_SPINLOCK(table_lock);	/* additions to and removals from rcm_qp_table */
static unsigned int known[2];		/* by @remote; written under table_lock */
static u32 hash_seed __read_mostly;

unsigned int rcm_qps_known(bool remote)
{
	return READ_ONCE(known[remote]);
}

/* The network chooses addresses and numbers of remote queue pairs, so their hash has a secret. */
static u32 qp_hash(const struct net *net, const struct in6_addr *addr, u32 number, bool remote)
{
	if (!remote)
		return number ^ net_hash_mix(net);
	return jhash_3words(jhash2((const u32 *)addr->s6_addr32, 4, hash_seed), number,
			    net_hash_mix(net), 0);
}

/* Under RCU. */
struct rcm_qp *rcm_qp_find(const struct net *net, const struct in6_addr *addr, u32 number,
			   bool remote)
{
	struct rcm_qp *qp;

	hash_for_each_possible_rcu(rcm_qp_table, qp, node, qp_hash(net, addr, number, remote))
		if (qp->number == number && qp->net == net && qp->remote == remote &&
		    ipv6_addr_equal(&qp->addr, addr))
			return qp;
	return NULL;
}

/* Adds it, unless it is known; NULL if there is no room. Under RCU, not in hardirq. */
struct rcm_qp *rcm_qp_add(struct net *net, const struct in6_addr *addr, u32 number, bool remote)
{
	struct rcm_qp *qp, *other;

	qp = kzalloc_obj(*qp, GFP_ATOMIC | __GFP_NOWARN);
	if (!qp)
		return NULL;
	qp->net = net;
	qp->netns = net->ns.inum;
	qp->addr = *addr;
	qp->number = number;
	qp->remote = remote;
	qp->used = jiffies;
	qp->line_until = jiffies;
	qp->sent_at = jiffies - RCM_START_AFTER;
	qp->rate.packet_bytes = ETH_ZLEN;
	qp->response_psn = RCM_NO_PSN;
	qp->missing_psn = RCM_NO_PSN;
	spin_lock_init(&qp->lock);
	rcm_pace_init(qp);

	spin_lock_bh(&table_lock);
	other = rcm_qp_find(net, addr, number, remote);
	if (other || known[remote] >= READ_ONCE(max_qps.value)) {
		spin_unlock_bh(&table_lock);
		kfree(qp);
		if (!other)
			rcm_count(RCM_TABLE_FULL);
		return other;
	}
	WRITE_ONCE(known[remote], known[remote] + 1);
	hash_add_rcu(rcm_qp_table, &qp->node, qp_hash(net, addr, number, remote));
	spin_unlock_bh(&table_lock);
	return qp;
}

/* Does @qp send to @addr? Under its lock. */
bool rcm_qp_is_peer(const struct rcm_qp *qp, const struct in6_addr *addr)
{
	int i;

	for (i = 0; i < qp->peers; i++)
		if (ipv6_addr_equal(&qp->peer_addr[i], addr))
			return true;
	return false;
}

/* A new peer. Restart at line rate if no packet of this queue pair is held back. */
static void qp_connect(struct rcm_qp *qp, const struct in6_addr *addr, u32 number,
		       enum rcm_kind kind)
{
	struct dcqcn_params p;

	qp->kind = kind;
	qp->peer_qp = number;
	qp->peer_addr[0] = *addr;
	qp->peer_next = 1;
	WRITE_ONCE(qp->peers, 1);
	WRITE_ONCE(qp->response_psn, RCM_NO_PSN);
	qp->missing_psn = RCM_NO_PSN;
	if (!rcm_pace_idle(qp))
		return;
	rcm_rate_params(&p, READ_ONCE(qp->line));
	rcm_rate_init(&qp->rate, &p, ktime_get_ns());
	qp->next_ns = 0;
	WRITE_ONCE(qp->sent_at, jiffies - RCM_START_AFTER);
	WRITE_ONCE(qp->limited, false);
}

/* As rcm_qp_learn(), where something may have changed */
void rcm_qp_learn_peer(struct rcm_qp *qp, const struct in6_addr *addr, u32 number,
		       enum rcm_kind kind)
{
	spin_lock_bh(&qp->lock);
	if (!qp->peers || kind == RCM_CONNECTED || qp->kind == RCM_CONNECTED) {
		qp_connect(qp, addr, number, kind);
	} else if (!rcm_qp_is_peer(qp, addr)) {
		qp->peer_addr[qp->peer_next] = *addr;
		qp->peers = max(qp->peers, qp->peer_next + 1);
		qp->peer_next = (qp->peer_next + 1) % RCM_UD_PEERS;
	}
	spin_unlock_bh(&qp->lock);
}

/* --- removal ----------------------------------------------------------- */

/*
 * Removes all queue pairs of @net from the table, or, if that is NULL, those that were not
 * used for @idle jiffies.
 */
static void forget(const struct net *net, unsigned long idle)
{
	struct hlist_head gone = HLIST_HEAD_INIT;
	struct hlist_node *next;
	struct rcm_qp *qp;
	int i;

	for (i = 0; i < HASH_SIZE(rcm_qp_table); i++) {
		spin_lock_bh(&table_lock);
		hlist_for_each_entry_safe(qp, next, &rcm_qp_table[i], node) {
			if (net ? qp->net != net :
				  time_before(jiffies, READ_ONCE(qp->used) + idle))
				continue;
			spin_lock(&qp->lock);
			qp->dead = net || rcm_pace_idle(qp);
			spin_unlock(&qp->lock);
			if (!qp->dead)
				continue;
			hash_del_rcu(&qp->node);
			WRITE_ONCE(known[qp->remote], known[qp->remote] - 1);
			hlist_add_head(&qp->dying, &gone);
		}
		spin_unlock_bh(&table_lock);
	}
	hlist_for_each_entry_safe(qp, next, &gone, dying) {
		rcm_pace_stop(qp);
		kfree_rcu(qp, rcu);
	}
}

/* Removes all of @net, which no hook uses any more. */
void rcm_qps_forget(const struct net *net)
{
	forget(net, 0);
}

/* Sends everything of @net that is held back, and ends pacing there. */
void rcm_qps_drain(const struct net *net)
{
	struct rcm_qp *qp;
	int i;

	rcu_read_lock();
	hash_for_each_rcu(rcm_qp_table, i, qp, node)
		if (qp->net == net)
			rcm_pace_drain(qp);
	rcu_read_unlock();
}

static void age(struct work_struct *work);
static DECLARE_DELAYED_WORK(age_work, age);

static void age(struct work_struct *work)
{
	forget(NULL, READ_ONCE(idle_s.value) * HZ);
	schedule_delayed_work(&age_work, HZ);
}

/* Called before there are queue pairs. */
void rcm_qps_init(void)
{
	hash_seed = get_random_u32();
	schedule_delayed_work(&age_work, HZ);
}

/* Stops removing idle queue pairs. */
void rcm_qps_exit(void)
{
	cancel_delayed_work_sync(&age_work);
}
