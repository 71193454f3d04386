// SPDX-License-Identifier: GPL-2.0
/*
 * hpccpp: the state of a connection, the table in which the hook for responses finds it, and W
 * over time.
 */
#include <linux/rhashtable.h>

#include "hpccpp.h"

static struct rhashtable hpccpp_flows;
static const struct rhashtable_params hpccpp_flows_params = {
	.key_len = sizeof(const struct sock *),
	.key_offset = offsetof(struct hpccpp_flow, sk),
	.head_offset = offsetof(struct hpccpp_flow, node),
	.automatic_shrinking = true,
};

/* The caller holds the RCU read lock. */
struct hpccpp_flow *hpccpp_flow_find(const struct sock *sk)
{
	return rhashtable_lookup(&hpccpp_flows, &sk, hpccpp_flows_params);
}

/* Ids begin anywhere: who forges probes has to guess them. NULL if there is no memory */
struct hpccpp_flow *hpccpp_flow_new(const struct sock *sk, u64 secret)
{
	struct hpccpp_flow *f = kzalloc(sizeof(*f), GFP_ATOMIC | __GFP_NOWARN | __GFP_ACCOUNT);

	if (!f)
		return NULL;
	f->sk = sk;
	f->secret = secret;
	spin_lock_init(&f->lock);
	f->sent_id = (u32)secret;
	f->got_id = f->sent_id;
	if (rhashtable_insert_fast(&hpccpp_flows, &f->node, hpccpp_flows_params)) {
		kfree(f);
		return NULL;
	}
	return f;
}

static void hpccpp_flow_free(struct hpccpp_flow *f)
{
	rhashtable_remove_fast(&hpccpp_flows, &f->node, hpccpp_flows_params);
	kfree_rcu(f, rcu);
}

void hpccpp_flow_release(struct sock *sk)
{
	struct hpccpp *ca = inet_csk_ca(sk);
	struct hpccpp_flow *f = ca->flow;

	if (!f)
		return;
	ca->flow = NULL;
	cc_gso_release(sk, &f->gso);
	hpccpp_flow_free(f);
}

/* --- W over time ----------------------------------------------------------------- */

/*
 * To be called before W changes. A new W takes effect when the next packet leaves; that time is
 * already set, and with a window below a packet it may be many RTTs away. If the integral took up
 * the new W at once, flows would react to the same load twice: 1000 flows then oscillate.
 */
void hpccpp_integrate_window(const struct sock *sk, struct hpccpp_flow *f, u64 now)
{
	u64 old_ns = fp_sub(fp_min(now, f->paced_ns), f->integral_ns);

	f->integral += (f->paced_w >> HPCCPP_W_Q) * old_ns +
		       (f->model.w >> HPCCPP_W_Q) * (now - f->integral_ns - old_ns);
	f->integral_ns = now;
	if (now >= f->paced_ns) {
		f->paced_w = f->model.w;
		f->paced_ns = tcp_sk(sk)->tcp_wstamp_ns;
	}
}

/*
 * The window under which the bytes between two probes were sent: the mean of W between
 * them. After a cut of W, more than W may still be in flight: then the smaller of the two
 * probes' bytes in flight counts.
 */
u64 hpccpp_window_between(const struct hpccpp_probe *a, const struct hpccpp_probe *b)
{
	u64 mean = div64_u64(b->integral - a->integral, max_t(u64, b->sent_ns - a->sent_ns, 1));

	return max(mean << HPCCPP_W_Q, min(a->inflight, b->inflight));
}

int hpccpp_flows_init(void)
{
	return rhashtable_init(&hpccpp_flows, &hpccpp_flows_params);
}

void hpccpp_flows_exit(void)
{
	rhashtable_destroy(&hpccpp_flows);
}
