/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Netfilter hooks in those network namespaces that need them. A hook makes every packet of its
 * namespace pass nf_hook_slow(), so it is only where a socket needs it. Registering sleeps, and
 * sockets appear in softirq: a work item does that.
 */
#ifndef _LOWQ_CC_HOOK_H
#define _LOWQ_CC_HOOK_H

#include <linux/atomic.h>
#include <linux/netfilter.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <net/net_namespace.h>

/*
 * Jiffies for which hooks stay when their last user has gone. Another may follow soon; and when a
 * hook goes, Linux drops the packets of its namespace that NFQUEUE holds.
 */
#define CC_HOOK_STAYS	(60 * HZ)

/**
 * struct cc_hook - the hooks of a module in a namespace
 * @net:	the namespace
 * @ops:	the hooks
 * @n:		their number
 * @work:	registers or unregisters them
 * @lock:	protects @leaving
 * @leaving:	the namespace or the module goes away: no new work
 * @users:	calls of cc_hook_get() minus those of cc_hook_put()
 * @used:	when the last of them went, jiffies
 * @registered:	the hooks are there; written by @work, or while that cannot run
 */
struct cc_hook {
	struct net *net;
	const struct nf_hook_ops *ops;
	unsigned int n;
	struct delayed_work work;
	spinlock_t lock;	/* see above */
	bool leaving;
	atomic_t users;
	unsigned long used;
	bool registered;
};

/* May sleep. 0, or an error */
static inline int cc_hook_register(struct cc_hook *h)
{
	int err = nf_register_net_hooks(h->net, h->ops, h->n);

	WRITE_ONCE(h->registered, !err);
	return err;
}

/* Schedules the work item, unless they are leaving. */
static inline void cc_hook_schedule(struct cc_hook *h, unsigned long delay)
{
	unsigned long flags;

	spin_lock_irqsave(&h->lock, flags);
	if (!h->leaving)
		schedule_delayed_work(&h->work, delay);
	spin_unlock_irqrestore(&h->lock, flags);
}

/* Jiffies for which the hooks stay if nobody needs them from now on */
static inline unsigned long cc_hook_stays(const struct cc_hook *h)
{
	unsigned long end = READ_ONCE(h->used) + CC_HOOK_STAYS, now = jiffies;

	return time_after(end, now) ? end - now : 0;
}

/* Without memory the hooks stay away until somebody needs them again. */
static void cc_hook_work(struct work_struct *work)
{
	struct cc_hook *h = container_of(to_delayed_work(work), struct cc_hook, work);
	unsigned long stays = cc_hook_stays(h);

	if (!h->registered) {
		if (atomic_read(&h->users) || stays)
			cc_hook_register(h);
	} else if (!stays) {
		WRITE_ONCE(h->registered, false);
		smp_mb();	/* pairs with cc_hook_get(): either side sees the other's write */
		if (atomic_read(&h->users))
			WRITE_ONCE(h->registered, true);
		else
			nf_unregister_net_hooks(h->net, h->ops, h->n);
	}
	if (stays)
		cc_hook_schedule(h, stays);
}

static inline void cc_hook_init(struct cc_hook *h, struct net *net, const struct nf_hook_ops *ops,
				unsigned int n)
{
	h->net = net;
	h->ops = ops;
	h->n = n;
	INIT_DELAYED_WORK(&h->work, cc_hook_work);
	spin_lock_init(&h->lock);
	h->leaving = false;
	atomic_set(&h->users, 0);
	h->used = jiffies - CC_HOOK_STAYS;
	h->registered = false;
}

/*
 * The namespace needs the hooks until the user calls cc_hook_put(). In any context; they are there
 * soon, not at once.
 */
static inline void cc_hook_get(struct cc_hook *h)
{
	atomic_inc(&h->users);
	smp_mb__after_atomic();	/* pairs with cc_hook_work() */
	if (unlikely(!READ_ONCE(h->registered)))
		cc_hook_schedule(h, 0);
}

/* Likewise, until the namespace or the module goes: a user that stays */
static inline void cc_hook_need(struct cc_hook *h)
{
	if (unlikely(!READ_ONCE(h->registered)))
		cc_hook_get(h);
}

static inline void cc_hook_put(struct cc_hook *h)
{
	if (!atomic_dec_and_test(&h->users))
		return;
	WRITE_ONCE(h->used, jiffies);
	cc_hook_schedule(h, CC_HOOK_STAYS);
}

/* May sleep. For .pre_exit, before the grace period in which the last packets leave the hooks. */
static inline void cc_hook_leave(struct cc_hook *h)
{
	unsigned long flags;

	spin_lock_irqsave(&h->lock, flags);
	h->leaving = true;
	spin_unlock_irqrestore(&h->lock, flags);
	cancel_delayed_work_sync(&h->work);
	if (h->registered)
		nf_unregister_net_hooks(h->net, h->ops, h->n);
}

#endif /* _LOWQ_CC_HOOK_H */
