/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Netfilter hooks in those network namespaces that need them. A hook makes every packet of its
 * namespace pass nf_hook_slow(), so it is only where a socket needs it. Registering sleeps, and
 * sockets appear in softirq: a work item does that.
 */
#ifndef _LOWQ_CC_HOOK_H
#define _LOWQ_CC_HOOK_H

#include <linux/netfilter.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <net/net_namespace.h>

enum cc_hook_state {
	CC_HOOK_IDLE,		/* nobody has needed it */
	CC_HOOK_NEEDED,		/* it is there, or about to be */
	CC_HOOK_LEAVING,	/* the namespace or the module goes: no new work */
};

/**
 * struct cc_hook - the hooks of a module in a namespace
 * @net:	the namespace
 * @ops:	the hooks
 * @n:		their number
 * @work:	registers them
 * @lock:	protects @state
 * @state:	enum cc_hook_state
 * @registered:	the hooks are there; cc_hook_leave() reads it after @work has ended
 */
struct cc_hook {
	struct net *net;
	const struct nf_hook_ops *ops;
	unsigned int n;
	struct work_struct work;
	spinlock_t lock;	/* see above */
	enum cc_hook_state state;
	bool registered;
};

/* May sleep. 0, or an error */
static inline int cc_hook_register(struct cc_hook *h)
{
	int err = nf_register_net_hooks(h->net, h->ops, h->n);

	h->registered = !err;
	return err;
}

static void cc_hook_work(struct work_struct *work)
{
	struct cc_hook *h = container_of(work, struct cc_hook, work);
	unsigned long flags;

	if (!cc_hook_register(h))
		return;
	/* no memory: the next one who needs it tries again */
	spin_lock_irqsave(&h->lock, flags);
	if (h->state == CC_HOOK_NEEDED)
		h->state = CC_HOOK_IDLE;
	spin_unlock_irqrestore(&h->lock, flags);
}

static inline void cc_hook_init(struct cc_hook *h, struct net *net, const struct nf_hook_ops *ops,
				unsigned int n)
{
	h->net = net;
	h->ops = ops;
	h->n = n;
	INIT_WORK(&h->work, cc_hook_work);
	spin_lock_init(&h->lock);
	h->state = CC_HOOK_IDLE;
	h->registered = false;
}

/*
 * The namespace needs the hooks, until it or the module goes. In any context; they are there soon,
 * not at once.
 */
static inline void cc_hook_need(struct cc_hook *h)
{
	unsigned long flags;

	if (likely(READ_ONCE(h->state) != CC_HOOK_IDLE))
		return;
	spin_lock_irqsave(&h->lock, flags);
	if (h->state == CC_HOOK_IDLE) {
		WRITE_ONCE(h->state, CC_HOOK_NEEDED);
		schedule_work(&h->work);
	}
	spin_unlock_irqrestore(&h->lock, flags);
}

/* May sleep. For .pre_exit, before the grace period in which the last packets leave the hooks. */
static inline void cc_hook_leave(struct cc_hook *h)
{
	unsigned long flags;

	spin_lock_irqsave(&h->lock, flags);
	WRITE_ONCE(h->state, CC_HOOK_LEAVING);
	spin_unlock_irqrestore(&h->lock, flags);
	cancel_work_sync(&h->work);
	if (h->registered)
		nf_unregister_net_hooks(h->net, h->ops, h->n);
}

#endif /* _LOWQ_CC_HOOK_H */
