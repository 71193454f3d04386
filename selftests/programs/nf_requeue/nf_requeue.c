// SPDX-License-Identifier: GPL-2.0
/*
 * Does to HPCC++'s messages what NFQUEUE does, without a program in user space: a rule in
 * PRE_ROUTING, ahead of the raw table, queues them, and a process gives them back. The hooks that
 * follow then run in that process, not in softirq, as after a verdict (nf_reinject()).
 *
 * /sys/module/nf_requeue/parameters/requeued is the number of messages; unprotected that of the
 * answers that left while softirqs were enabled: a softirq could have interrupted who sent them.
 */
#include <linux/ip.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/netfilter.h>
#include <linux/netfilter_ipv4.h>
#include <linux/preempt.h>
#include <linux/tcp.h>
#include <linux/unaligned.h>
#include <linux/workqueue.h>
#include <net/net_namespace.h>
#include <net/netfilter/nf_queue.h>
#include <net/tcp.h>

#define MAGIC		0x494e5431	/* "INT1", include/int_wire.h */
#define PROBE		1

static atomic_t requeued, unprotected;

static int count_get(char *buffer, const struct kernel_param *kp)
{
	return sysfs_emit(buffer, "%d\n", atomic_read(kp->arg));
}

static const struct kernel_param_ops count_ops = {
	.get = count_get,
};
module_param_cb(requeued, &count_ops, &requeued, 0444);
module_param_cb(unprotected, &count_ops, &unprotected, 0444);

/* The type of the message in @skb, IPv4 without options; 0 if there is none */
static int message(const struct sk_buff *skb)
{
	u8 buf[sizeof(struct iphdr) + sizeof(struct tcphdr) + 5];
	const u8 *p = skb_header_pointer(skb, 0, sizeof(buf), buf);
	const struct tcphdr *th;

	if (!p || ((const struct iphdr *)p)->protocol != IPPROTO_TCP)
		return 0;
	th = (const struct tcphdr *)(p + sizeof(struct iphdr));
	p = (const u8 *)(th + 1);
	return tcp_flag_byte(th) == TCPHDR_PSH && get_unaligned_be32(p) == MAGIC ? p[4] : 0;
}

static unsigned int queue_message(void *priv, struct sk_buff *skb,
				  const struct nf_hook_state *state)
{
	return message(skb) ? NF_QUEUE : NF_ACCEPT;
}

static unsigned int look_at_answer(void *priv, struct sk_buff *skb,
				   const struct nf_hook_state *state)
{
	if (message(skb) > PROBE && !softirq_count())
		atomic_inc(&unprotected);
	return NF_ACCEPT;
}

static const struct nf_hook_ops hooks[] = {
	{
		.hook = queue_message,
		.pf = NFPROTO_IPV4,
		.hooknum = NF_INET_PRE_ROUTING,
		.priority = NF_IP_PRI_RAW - 1,
	}, {
		.hook = look_at_answer,
		.pf = NFPROTO_IPV4,
		.hooknum = NF_INET_LOCAL_OUT,
		.priority = NF_IP_PRI_LAST,
	},
};

static LIST_HEAD(entries);
static DEFINE_SPINLOCK(entries_lock);	/* protects entries */

static struct nf_queue_entry *next_entry(void)
{
	struct nf_queue_entry *entry;

	spin_lock_bh(&entries_lock);
	entry = list_first_entry_or_null(&entries, struct nf_queue_entry, list);
	if (entry)
		list_del(&entry->list);
	spin_unlock_bh(&entries_lock);
	return entry;
}

/* As nf_reinject(): hooks see a process, with softirqs enabled. */
static void give_back(struct work_struct *work)
{
	struct nf_queue_entry *entry;
	struct nf_hook_state *state;

	rcu_read_lock();
	while ((entry = next_entry())) {
		state = &entry->state;
		atomic_inc(&requeued);
		if (nf_hook_slow(entry->skb, state,
				 rcu_dereference(state->net->nf.hooks_ipv4[state->hook]),
				 entry->hook_index + 1) == 1) {
			local_bh_disable();
			state->okfn(state->net, state->sk, entry->skb);
			local_bh_enable();
		}
		nf_queue_entry_free(entry);
	}
	rcu_read_unlock();
}

static DECLARE_WORK(give_back_work, give_back);

static int take(struct nf_queue_entry *entry, unsigned int queuenum)
{
	spin_lock_bh(&entries_lock);
	list_add_tail(&entry->list, &entries);
	spin_unlock_bh(&entries_lock);
	schedule_work(&give_back_work);
	return 0;
}

/* A hook of @net goes. Under RCU; messages of other namespaces may be lost, too. */
static void drop(struct net *net)
{
	struct nf_queue_entry *entry;

	while ((entry = next_entry())) {
		kfree_skb(entry->skb);
		nf_queue_entry_free(entry);
	}
}

static const struct nf_queue_handler handler = {
	.outfn = take,
	.nf_hook_drop = drop,
};

static int __net_init nf_requeue_net_init(struct net *net)
{
	return nf_register_net_hooks(net, hooks, ARRAY_SIZE(hooks));
}

static void __net_exit nf_requeue_net_exit(struct net *net)
{
	nf_unregister_net_hooks(net, hooks, ARRAY_SIZE(hooks));
}

static struct pernet_operations nf_requeue_net_ops = {
	.init = nf_requeue_net_init,
	.exit = nf_requeue_net_exit,
};

static int __init nf_requeue_init(void)
{
	int err;

	nf_unregister_queue_handler();	/* the kernel's own, which no program uses here */
	nf_register_queue_handler(&handler);
	err = register_pernet_subsys(&nf_requeue_net_ops);
	if (err)
		nf_unregister_queue_handler();
	return err;
}

static void __exit nf_requeue_exit(void)
{
	unregister_pernet_subsys(&nf_requeue_net_ops);
	nf_unregister_queue_handler();
	flush_work(&give_back_work);
}

module_init(nf_requeue_init);
module_exit(nf_requeue_exit);
MODULE_DESCRIPTION("Has HPCC++'s messages queued and given back by a process, for tests");
MODULE_LICENSE("GPL");
