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

enum cc_hook_state {
	CC_HOOK_IDLE,		/* only users need it */
	CC_HOOK_NEEDED,		/* cc_hook_need(): it stays */
	CC_HOOK_LEAVING,	/* the namespace or the module goes: no new work */
};

/**
 * struct cc_hook - the hooks of a module in a namespace
 * @net:	the namespace
 * @ops:	the hooks
 * @n:		their number
 * @work:	registers or unregisters them
 * @lock:	protects @state
 * @state:	enum cc_hook_state
 * @users:	cc_hook_get() less cc_hook_put()
 * @registered:	the hooks are there; written by @work, or while that cannot run
 */
struct cc_hook {
	struct net *net;
	const struct nf_hook_ops *ops;
	unsigned int n;
	struct delayed_work work;
	spinlock_t lock;	/* see above */
	enum cc_hook_state state;
	atomic_t users;
	bool registered;
};

/* May sleep. 0, or an error */
static inline int cc_hook_register(struct cc_hook *h)
{
	int err = nf_register_net_hooks(h->net, h->ops, h->n);

	WRITE_ONCE(h->registered, !err);
	return err;
}

/* If there is no memory, the next one who needs the hooks tries again. */
static void cc_hook_work(struct work_struct *work)
{
	struct cc_hook *h = container_of(to_delayed_work(work), struct cc_hook, work);
	bool stays = READ_ONCE(h->state) == CC_HOOK_NEEDED;

	if (!h->registered) {
		if (stays || atomic_read(&h->users))
			cc_hook_register(h);
		return;
	}
	if (stays)
		return;
	WRITE_ONCE(h->registered, false);
	smp_mb();	/* pairs with cc_hook_get(): it sees this, or is seen here */
	if (atomic_read(&h->users))
		WRITE_ONCE(h->registered, true);
	else
		nf_unregister_net_hooks(h->net, h->ops, h->n);
}

static inline void cc_hook_init(struct cc_hook *h, struct net *net, const struct nf_hook_ops *ops,
				unsigned int n)
{
	h->net = net;
	h->ops = ops;
	h->n = n;
	INIT_DELAYED_WORK(&h->work, cc_hook_work);
	spin_lock_init(&h->lock);
	h->state = CC_HOOK_IDLE;
	atomic_set(&h->users, 0);
	h->registered = false;
}

/* Schedules the work item, and @state is the new state, unless they are leaving. */
static inline void cc_hook_schedule(struct cc_hook *h, enum cc_hook_state state,
				    unsigned long delay)
{
	unsigned long flags;

	spin_lock_irqsave(&h->lock, flags);
	if (h->state != CC_HOOK_LEAVING) {
		WRITE_ONCE(h->state, state);
		schedule_delayed_work(&h->work, delay);
	}
	spin_unlock_irqrestore(&h->lock, flags);
}

/*
 * The namespace needs the hooks, until it or the module goes. In any context; they are there soon,
 * not at once.
 */
static inline void cc_hook_need(struct cc_hook *h)
{
	if (unlikely(!READ_ONCE(h->registered)))
		cc_hook_schedule(h, CC_HOOK_NEEDED, 0);
}

/* Likewise, until the user calls cc_hook_put(). A module calls these two, or the one above. */
static inline void cc_hook_get(struct cc_hook *h)
{
	atomic_inc(&h->users);
	smp_mb__after_atomic();	/* pairs with cc_hook_work() */
	if (unlikely(!READ_ONCE(h->registered)))
		cc_hook_schedule(h, CC_HOOK_IDLE, 0);
}

static inline void cc_hook_put(struct cc_hook *h)
{
	if (atomic_dec_and_test(&h->users))
		cc_hook_schedule(h, CC_HOOK_IDLE, CC_HOOK_STAYS);
}

/* May sleep. For .pre_exit, before the grace period in which the last packets leave the hooks. */
static inline void cc_hook_leave(struct cc_hook *h)
{
	unsigned long flags;

	spin_lock_irqsave(&h->lock, flags);
	WRITE_ONCE(h->state, CC_HOOK_LEAVING);
	spin_unlock_irqrestore(&h->lock, flags);
	cancel_delayed_work_sync(&h->work);
	if (h->registered)
		nf_unregister_net_hooks(h->net, h->ops, h->n);
}

#endif /* _LOWQ_CC_HOOK_H */
