// SPDX-License-Identifier: GPL-2.0
/*
 * int_reflector - the data receiver of HPCC++: answers telemetry probes.
 *
 *	probe with the records of the nodes on its way -> response with these records
 *
 * Source: draft-miao-rtgwg-hpccplus-00, sections 6.2.2.2, 6.3 and 7.2; the format is
 * int_wire.h. A probe is answered only if it belongs to an established connection of this
 * host, and its checksum and sequence number are valid; a rate limit bounds the answers.
 * A response is never longer than its probe, and goes to the connection's peer only. It
 * returns the probe's cookie, by which the sender recognises its own probes.
 *
 * Receiver-based HPCC++ (6.3.2), if base_rtt_ns is set here and the probe asks for it:
 *	compute U and W as the sender would; the response is W
 * The probe reports the window under which the bytes since the previous probe were sent:
 * that is Wc, as in tcp_hpccpp. Probes come once per T, so each gets an answer.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/hash.h>
#include <linux/module.h>

#include "cc_param.h"
#include "hpccpp_model.h"
#include "hpccpp_param.h"
#include "int_host.h"

CC_PARAM(max_rate, 4000000, 1, 1000000000, 0644, "0 would answer nothing: unload the module",
	 "most responses per second in each network namespace");
CC_PARAM(base_rtt_ns, 0, 0, HPCCPP_T_MAX_NS, 0644, "0 leaves the window to the senders",
	 "base RTT T of receiver-based HPCC++ in nanoseconds, 0 is off (draft 6.3.2)");

CC_PARAM(old_format, 1, 0, 1, 0444, "0 is off, 1 is on",
	 "answer probes of the draft's own format, too, which takes netfilter hooks in all network namespaces (draft 7.2)");

enum {
	REFLECTOR_ANSWERED = INT_COUNT_SHARED,
	REFLECTOR_RATE,		/* above max_rate */
	REFLECTOR_UNSENT,	/* no memory, no way, or dropped by firewall or queue here */
	REFLECTOR_WINDOW,	/* answered with a window; also counted as answered */
};

static const char * const reflector_counters[] = {
	[INT_COUNT_MALFORMED]	= "Malformed",
	[INT_COUNT_CHECKSUM]	= "Checksum",
	[INT_COUNT_NO_SOCKET]	= "NoSocket",
	[INT_COUNT_SEQUENCE]	= "Sequence",
	[INT_COUNT_POLICY]	= "Policy",
	[REFLECTOR_ANSWERED]	= "Answered",
	[REFLECTOR_RATE]	= "OverRate",
	[REFLECTOR_UNSENT]	= "Unsent",
	[REFLECTOR_WINDOW]	= "Window",
	NULL
};

/**
 * struct reflector_net - the module's area in a network namespace
 * @counters:	what /proc/net/int_reflector shows
 * @next_ns:	see reflector_within_rate()
 */
struct reflector_net {
	struct int_counters counters;
	atomic64_t next_ns;
};

static unsigned int reflector_net_id;

static void reflector_count(const struct sock *sk, unsigned int counter)
{
	int_count(sock_net(sk), reflector_net_id, counter);
}

/* A token bucket: max_rate per second, with bursts of up to 1/64 of that. */
static bool reflector_within_rate(const struct net *net)
{
	struct reflector_net *n = net_generic(net, reflector_net_id);
	s64 now = ktime_get_ns(), old = atomic64_read(&n->next_ns), from;

	do {
		from = max_t(s64, old, now - NSEC_PER_SEC / 64);
		if (from > now)
			return false;
	} while (!atomic64_try_cmpxchg(&n->next_ns, &old,
				       from + NSEC_PER_SEC / READ_ONCE(max_rate.value)));
	return true;
}

/* --- receiver-based ------------------------------------------------------------ */

/*
 * The flows' models, by hash. Two flows in one slot reset each other's model on every
 * probe; they, and all flows without a window yet, get the telemetry itself as a response,
 * from which a sender computes its window.
 */
#define RX_FLOWS_BITS	12

/*
 * Ids that a flow's next probe may skip: as many as its sender remembers. A forged probe
 * has to guess the id within that distance, or it would hide the flow's real ones.
 */
#define RX_ID_JUMP	16

/**
 * struct rx_flow - a slot
 * @lock:	protects all fields
 * @sk:		the slot's connection, for comparison only
 * @hash:	hash of its addresses and ports: a new socket may have the address @sk
 * @id:		id of the latest probe
 * @probe_ns:	when that probe arrived
 * @model:	the algorithm's state
 */
struct rx_flow {
	spinlock_t lock;	/* one probe at a time */
	const struct sock *sk;
	u32 hash;
	u32 id;
	u64 probe_ns;
	struct hpccpp_model model;
};

static struct rx_flow *rx_flows;

/* Updates the model with the probe @m; 0 if that measured no window. */
static u64 rx_flow_step(struct rx_flow *f, const struct sock *sk, const struct int_msg *m,
			u64 elapsed_ns)
{
	u32 t_ns = max(READ_ONCE(base_rtt_ns.value), HPCCPP_T_MIN_NS);
	const struct hpccpp_sample sample = {
		.msg = m,
		.elapsed_ns = elapsed_ns,
		.sent_w = (u64)m->options << INT_OPTION_W_SHIFT,
		.settings = {
			.t_ns = t_ns,
			.fill_ns = t_ns,
			.eta_permille = READ_ONCE(eta_permille.value),
			.max_stage = READ_ONCE(max_stage.value),
			.flows = READ_ONCE(flows.value),
			.wc_previous = READ_ONCE(wc_previous.value),
			.queue_per_rtt = READ_ONCE(queue_per_rtt.value),
			.mss = READ_ONCE(tcp_sk(sk)->advmss),
			.w_limit = HPCCPP_W_MAX,
		},
	};

	return hpccpp_step(&f->model, &sample) == HPCCPP_MEASURED ? f->model.w : 0;
}

/* W for the sender of the probe @p, in units of the options; 0 if there is none. */
static noinline u32 rx_window(const struct sock *sk, const struct sk_buff *probe,
			      const struct int_segment *s, const u8 *p, unsigned int taken)
{
	struct rx_flow *f = &rx_flows[hash_ptr(sk, RX_FLOWS_BITS)];
	u64 now = ktime_get_ns(), elapsed, w = 0;
	struct int_msg m;

	int_host_parse(&m, probe, s, p, taken);
	spin_lock(&f->lock);
	elapsed = now - f->probe_ns;
	if (f->sk != sk || f->hash != sk->sk_hash || elapsed > NSEC_PER_SEC) {
		f->sk = sk;
		f->hash = sk->sk_hash;
		f->id = m.id - 1;
		hpccpp_model_init(&f->model, (u64)m.options << INT_OPTION_W_SHIFT);
	}
	if (m.id - f->id - 1 < RX_ID_JUMP) {
		/* A probe was lost, and with it the window that it reported. */
		if (m.id - f->id > 1)
			hpccpp_model_forget(&f->model);
		f->id = m.id;
		f->probe_ns = now;
		w = rx_flow_step(f, sk, &m, elapsed);
	}
	spin_unlock(&f->lock);
	return fp_min(w >> INT_OPTION_W_SHIFT, INT_OPTION_MAX);
}

/* To the source of @probe, in its format; the DSCP is the probe's, too. */
static struct int_way reflector_way(const struct sk_buff *probe, const struct int_segment *s)
{
	struct int_way way = { .ipv6 = s->ipv6, .format = s->format };

	if (s->ipv6) {
		way.ds = ipv6_get_dsfield(ipv6_hdr(probe));
		way.saddr6 = ipv6_hdr(probe)->daddr;
		way.daddr6 = ipv6_hdr(probe)->saddr;
	} else {
		way.ds = ip_hdr(probe)->tos;
		way.saddr4 = ip_hdr(probe)->daddr;
		way.daddr4 = ip_hdr(probe)->saddr;
	}
	way.ds &= ~INET_ECN_MASK;
	return way;
}

/* The probe's metadata go back, and nodes on the way add none. */
static void reflector_return_stack(struct sk_buff *skb, const struct sk_buff *probe,
				   const struct int_segment *s, u8 *answer, u32 stack,
				   unsigned int taken)
{
	u8 *md_header = int_host_md(skb, s->format);
	unsigned int len = s->stack - s->md;

	if (s->format == INT_FORMAT_IFA) {
		ifa_build(skb_transport_header(skb), md_header, stack / 4, 0);
		md_header[3] = stack / 4;
	} else {
		md_build(md_header, 0);
		md_header[1] += stack / 4;
	}
	memcpy(md_header + len, probe->data + s->stack, stack);
	int_put32(answer + INT_BASE_OFFSET, int_base_word(min(taken, INT_NHOP_MAX), 0));
}

static bool reflector_answer(struct sock *sk, const struct sk_buff *probe,
			     const struct int_segment *s, const u8 *p)
{
	unsigned int room = p[INT_ROOM_OFFSET], taken = int_host_taken(probe, s);
	u32 stack = s->stack_len, w = 0;
	const struct int_way way = reflector_way(probe, s);
	struct sk_buff *skb;
	u8 *answer;

	if (!reflector_within_rate(sock_net(sk))) {
		reflector_count(sk, REFLECTOR_RATE);
		return false;
	}
	if (p[INT_FLAGS_OFFSET] & INT_FLAG_RECEIVER && READ_ONCE(base_rtt_ns.value))
		w = rx_window(sk, probe, s, p, taken);
	if (w) {
		room = 0;
		stack = 0;
		reflector_count(sk, REFLECTOR_WINDOW);
	}
	skb = int_host_segment(sk, way.format, READ_ONCE(tcp_sk(sk)->snd_una), int_length(room),
			       stack, &answer);
	if (skb) {
		int_answer(answer, p, room, w);
		if (way.format)
			reflector_return_stack(skb, probe, s, answer, stack, taken);
		/* the rules of the socket's owner and cgroup are for its answers, too */
		skb_set_owner_w(skb, sk);
		skb->mark = READ_ONCE(sk->sk_mark);
	}
	if (!skb || int_host_send(sk, skb, &way)) {
		reflector_count(sk, REFLECTOR_UNSENT);
		return false;
	}
	reflector_count(sk, REFLECTOR_ANSWERED);
	return true;
}

static const struct int_handler reflector_handler = {
	.name = "int_reflector",
	.counters = reflector_counters,
	.net_id = &reflector_net_id,
	.types = BIT(INT_PROBE),
	.handle_message = reflector_answer,
};

static int __net_init reflector_net_init(struct net *net)
{
	int err = int_handler_proc_create(net, &reflector_handler);

	if (!err && old_format.value)
		int_host_get(net);
	return err;
}

static void __net_exit reflector_net_exit(struct net *net)
{
	if (old_format.value)
		int_host_put(net);
	int_handler_proc_remove(net, &reflector_handler);
}

static struct pernet_operations reflector_net_ops = {
	.init = reflector_net_init,
	.exit = reflector_net_exit,
	.id = &reflector_net_id,
	.size = sizeof(struct reflector_net),
};

static int __init int_reflector_init(void)
{
	unsigned int i;
	int err;

	rx_flows = kvcalloc(1 << RX_FLOWS_BITS, sizeof(*rx_flows), GFP_KERNEL);
	if (!rx_flows)
		return -ENOMEM;
	for (i = 0; i < 1 << RX_FLOWS_BITS; i++)
		spin_lock_init(&rx_flows[i].lock);
	err = register_pernet_subsys(&reflector_net_ops);
	if (err) {
		kvfree(rx_flows);
		return err;
	}
	int_handler_register(&reflector_handler);
	return 0;
}

static void __exit int_reflector_exit(void)
{
	int_handler_unregister(&reflector_handler);
	unregister_pernet_subsys(&reflector_net_ops);
	kvfree(rx_flows);
}

module_init(int_reflector_init);
module_exit(int_reflector_exit);

MODULE_AUTHOR("The lowq authors");
MODULE_DESCRIPTION("Answers telemetry probes of HPCC++");
MODULE_LICENSE("GPL");
MODULE_VERSION(LOWQ_VERSION);
