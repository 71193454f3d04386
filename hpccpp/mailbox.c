// SPDX-License-Identifier: GPL-2.0
/*
 * hpccpp: responses to probes. int_host checks each response and puts it into its flow's mailbox,
 * in softirq and without the socket's lock; the flow's next ACK reads it. A later response replaces
 * an earlier one.
 */
#include <linux/random.h>
#include <linux/siphash.h>

#include "hpccpp.h"

static const char * const hpccpp_counters[] = {
	[INT_COUNT_MALFORMED]	= "Malformed",
	[INT_COUNT_CHECKSUM]	= "Checksum",
	[INT_COUNT_NO_SOCKET]	= "NoSocket",
	[INT_COUNT_SEQUENCE]	= "Sequence",
	[INT_COUNT_POLICY]	= "Policy",
	[HPCCPP_COUNT_PROBES]	= "Probes",
	[HPCCPP_COUNT_UNSENT]	= "Unsent",
	[HPCCPP_COUNT_ACCEPTED]	= "Accepted",
	[HPCCPP_COUNT_NOT_OURS]	= "NotOurs",
	[HPCCPP_COUNT_COOKIE]	= "Cookie",
	[HPCCPP_COUNT_OLD_ID]	= "Stale",
	[HPCCPP_COUNT_PARTIAL]	= "Partial",
	[HPCCPP_COUNT_FALLBACKS] = "Fallbacks",
	[HPCCPP_COUNT_RETURNS]	= "Returns",
	[HPCCPP_COUNT_UNSTAMPED] = "Unstamped",
	[HPCCPP_COUNT_TRANSLATED] = "Translated",
	[HPCCPP_COUNT_REFUSED]	= "Refused",
	[HPCCPP_COUNT_OLD_FORMAT] = "OldFormat",
	NULL
};

unsigned int hpccpp_net_id;

static siphash_key_t hpccpp_cookie_key __read_mostly;

/* For a flow that begins at @now. Keyed: nobody else can compute it, and no two flows share it. */
u64 hpccpp_secret(const struct sock *sk, u64 now)
{
	return siphash_2u64((unsigned long)sk, now, &hpccpp_cookie_key);
}

u64 hpccpp_cookie(const struct hpccpp_flow *f, u32 id)
{
	return siphash_2u64(f->secret, id, &hpccpp_cookie_key);
}

/* Is it the cookie of a recent probe, the one with this id? */
static bool hpccpp_cookie_fits(const struct hpccpp_flow *f, u32 id, u64 cookie)
{
	return f->sent_id - id < HPCCPP_PROBES_KEPT &&
	       f->probe[id % HPCCPP_PROBES_KEPT].cookie == cookie;
}

/* int_host's: accepts the response @p for @sk, or counts why not. In softirq. */
static bool hpccpp_handle_response(struct sock *sk, const struct sk_buff *skb,
				   const struct int_segment *s, const u8 *p)
{
	unsigned int verdict = HPCCPP_COUNT_ACCEPTED;
	u32 id = int_get32(p + INT_ID_OFFSET);
	struct hpccpp_flow *f;

	rcu_read_lock();
	f = hpccpp_flow_find(sk);
	if (!f) {
		verdict = HPCCPP_COUNT_NOT_OURS;
	} else {
		spin_lock(&f->lock);
		if (!hpccpp_cookie_fits(f, id, int_get64(p + INT_COOKIE_OFFSET))) {
			verdict = HPCCPP_COUNT_COOKIE;
		} else if ((s32)(id - f->got_id) > 0) {
			int_host_parse(&f->response, skb, s, p,
				       int_get32(p + INT_BASE_OFFSET) >> 28);
			f->response_ns = ktime_get_ns();
			f->got_id = id;
			f->full = true;
			f->answered = true;
		} else {
			verdict = HPCCPP_COUNT_OLD_ID;
		}
		spin_unlock(&f->lock);
	}
	rcu_read_unlock();
	hpccpp_count(sk, verdict);
	return verdict == HPCCPP_COUNT_ACCEPTED;
}

/*
 * int_host's: a RST for @sk that acknowledges up to @ack. Who sends a RST knows no such connection:
 * the probe went where NAT would have sent the data elsewhere. A path whose probes were answered is
 * no such path.
 */
static bool hpccpp_handle_reset(const struct sock *sk, u32 ack)
{
	struct hpccpp_flow *f;
	bool ours = false;
	unsigned int i;

	rcu_read_lock();
	f = hpccpp_flow_find(sk);
	if (f) {
		spin_lock(&f->lock);
		for (i = 0; i < HPCCPP_PROBES_KEPT && !f->answered; i++)
			ours |= f->probe[i].sent_ns && f->probe[i].end == ack;
		if (ours && !f->refused) {
			WRITE_ONCE(f->refused, true);
			hpccpp_count(sk, HPCCPP_COUNT_REFUSED);
		}
		spin_unlock(&f->lock);
	}
	rcu_read_unlock();
	return ours;
}

static const struct int_handler hpccpp_handler = {
	.name = "hpccpp",
	.counters = hpccpp_counters,
	.net_id = &hpccpp_net_id,
	.types = BIT(INT_RESPONSE) | BIT(INT_WINDOW),
	.handle_message = hpccpp_handle_response,
	.handle_reset = hpccpp_handle_reset,
};

static int __net_init hpccpp_net_init(struct net *net)
{
	return int_handler_proc_create(net, &hpccpp_handler);
}

static void __net_exit hpccpp_net_exit(struct net *net)
{
	int_handler_proc_remove(net, &hpccpp_handler);
}

static struct pernet_operations hpccpp_net_ops = {
	.init = hpccpp_net_init,
	.exit = hpccpp_net_exit,
	.id = &hpccpp_net_id,
	.size = sizeof(struct int_counters),
};

/* Of both controls. Older kernels call it for sockets that init() has not seen, too. */
void hpccpp_release(struct sock *sk)
{
	struct hpccpp *ca = inet_csk_ca(sk);

	hpccpp_flow_release(sk);
	if (ca->needs_hook)
		int_host_put(sock_net(sk));
	ca->needs_hook = false;
}

/* Moves the response out of the mailbox into @m; false if there is none. */
bool hpccpp_read_response(struct hpccpp_flow *f, struct int_msg *m)
{
	bool full;

	if (!READ_ONCE(f->full))
		return false;
	spin_lock_bh(&f->lock);
	full = f->full;
	*m = f->response;
	f->arrived_ns = f->response_ns;
	f->full = false;
	spin_unlock_bh(&f->lock);
	return full;
}

int hpccpp_mailbox_init(void)
{
	int err;

	BUILD_BUG_ON(ARRAY_SIZE(hpccpp_counters) > INT_COUNTERS_MAX);

	get_random_bytes(&hpccpp_cookie_key, sizeof(hpccpp_cookie_key));
	err = register_pernet_subsys(&hpccpp_net_ops);
	if (!err)
		int_handler_register(&hpccpp_handler);
	return err;
}

void hpccpp_mailbox_exit(void)
{
	int_handler_unregister(&hpccpp_handler);
	unregister_pernet_subsys(&hpccpp_net_ops);
}
