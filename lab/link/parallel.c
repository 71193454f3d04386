// SPDX-License-Identifier: GPL-2.0
/*
 * Time passes in windows, at most as long as the shortest delay between two parts: what one sends
 * in a window arrives at another after it. At a window's end each process says when its next event
 * is, its own or one that it has sent, and waits for all others; the next window begins with the
 * first of these. Memory that all share has a pair of buffers for each direction, used in turn.
 */
#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/reboot.h>
#include <linux/um_parallel.h>

#include "lowq_link.h"
#include "parallel.h"

#define BUFFER		(16U << 20)	/* for what one sends to another in a window */
#define SPINS		20000		/* of some ns each, before a process that waits sleeps */
#define END_STEP	1000000ULL	/* ns; longer than a window */

/* What a process says at a window's end; two, because one may read them when another has gone on */
struct say {
	u64 next;		/* ns: its next event */
	u64 done;		/* when it has done what it had to do, 0: not yet */
	u32 bytes[LOWQ_LINK_PARTS_MAX];	/* that it has sent to each */
};

struct part {
	u32 seq;		/* windows that it has ended */
	u32 sleepers;		/* others sleep until it has ended one more */
	u32 left;		/* it takes no part any more */
	struct say say[2];
} ____cacheline_aligned;

struct shared {
	struct part part[LOWQ_LINK_PARTS_MAX];
};

struct frame {
	u64 at, sent;
	u32 id, bytes;			/* of all of it, a multiple of 8 */
	u32 headroom, head, end, truesize;
	u32 gso_type;
	u16 gso_size, gso_segs;
	u8 flags, frags;
	u8 headers[sizeof(((struct sk_buff *)0)->headers)];
	u32 frag[MAX_SKB_FRAGS];	/* bytes of each */
};

static struct {
	u32 me, parts, seq;
	u64 window;			/* ns */
	u64 offset;			/* CLOCK_MONOTONIC is so much more than the kernel's time */
	struct shared *shared;
	u64 sent;			/* when the first of what was sent in this window arrives */
	u32 bytes[LOWQ_LINK_PARTS_MAX];
	u64 done, end;
	struct completion ended;
	struct hrtimer end_timer;
} run;

/* --- arrivals ------------------------------------------------------------------------------- */

static struct {
	struct rb_root_cached tree;
	struct hrtimer timer;
	struct tasklet_struct tasklet;
	bool busy;
} arrivals;

static bool before(struct rb_node *a, const struct rb_node *b)
{
	const struct link_due *x = rb_entry(a, struct link_due, node);
	const struct link_due *y = rb_entry(b, struct link_due, node);

	return x->at != y->at ? x->at < y->at : x->id < y->id;
}

static struct link_due *first_due(void)
{
	return rb_entry_safe(rb_first_cached(&arrivals.tree), struct link_due, node);
}

static void set_first(void)
{
	struct link_due *first = first_due();

	if (!first || arrivals.busy)
		return;
	if (!hrtimer_is_queued(&arrivals.timer) ||
	    hrtimer_get_expires(&arrivals.timer) != ns_to_ktime(first->at))
		hrtimer_start(&arrivals.timer, ns_to_ktime(first->at), HRTIMER_MODE_ABS_HARD);
}

void parallel_set(struct link_due *due, u64 at)
{
	unsigned long flags;

	local_irq_save(flags);
	if (due->at)
		rb_erase_cached(&due->node, &arrivals.tree);
	due->at = at;
	if (at)
		rb_add_cached(&due->node, &arrivals.tree, before);
	set_first();
	local_irq_restore(flags);
}

/* Before all other softirqs of the instant */
static void arrive(struct tasklet_struct *unused)
{
	u64 now = ktime_get_ns();
	struct link_due *due;

	arrivals.busy = true;
	while ((due = first_due()) && due->at <= now) {
		rb_erase_cached(&due->node, &arrivals.tree);
		due->at = 0;
		due->arrive(due);
	}
	arrivals.busy = false;
	set_first();
}

static enum hrtimer_restart arrivals_begin(struct hrtimer *timer)
{
	tasklet_hi_schedule(&arrivals.tasklet);
	return HRTIMER_NORESTART;
}

/* --- packets between processes -------------------------------------------------------------- */

bool parallel_normalize(struct sk_buff *skb)
{
	if (skb_has_frag_list(skb) && skb_linearize(skb))
		return false;
	if (skb_cloned(skb) || skb->head_frag)
		return !pskb_expand_head(skb, 0, 0, GFP_ATOMIC);
	return true;
}

static void *buffer(u32 from, u32 to, u32 seq)
{
	size_t i = (from * run.parts + to) * 2 + (seq & 1);

	return (void *)run.shared + PAGE_ALIGN(sizeof(struct shared)) + i * BUFFER;
}

void parallel_send(u32 to, u32 id, struct sk_buff *skb, u64 at)
{
	u32 bytes = ALIGN(sizeof(struct frame) + skb->len, 8), i;
	struct skb_shared_info *info = skb_shinfo(skb);
	struct frame *f;

	if (run.bytes[to] + bytes > BUFFER)
		panic("lowq_link: more than %u MiB from one part to another in a window",
		      BUFFER >> 20);
	f = buffer(run.me, to, run.seq + 1) + run.bytes[to];
	run.bytes[to] += bytes;
	run.sent = min(run.sent, at - run.offset);
	*f = (struct frame){
		.at = at, .sent = ktime_get_ns(), .id = id, .bytes = bytes,
		.headroom = skb_headroom(skb), .head = skb_headlen(skb),
		.end = skb_end_offset(skb), .truesize = skb->truesize,
		.gso_type = info->gso_type, .gso_size = info->gso_size,
		.gso_segs = info->gso_segs, .flags = info->flags, .frags = info->nr_frags,
	};
	memcpy(f->headers, &skb->headers, sizeof(f->headers));
	for (i = 0; i < info->nr_frags; i++)
		f->frag[i] = skb_frag_size(&info->frags[i]);
	skb_copy_bits(skb, 0, f + 1, skb->len);
	kfree_skb(skb);
}

static struct sk_buff *unpack(const struct frame *f)
{
	struct sk_buff *skb = alloc_skb(f->end, GFP_ATOMIC | __GFP_NOWARN);
	const void *data = f + 1;
	struct page *page;
	u32 i;

	if (!skb)
		return NULL;
	skb_set_end_offset(skb, f->end);
	skb_reserve(skb, f->headroom);
	skb_put_data(skb, data, f->head);
	data += f->head;
	for (i = 0; i < f->frags; i++) {
		page = alloc_pages(GFP_ATOMIC | __GFP_COMP | __GFP_NOWARN, get_order(f->frag[i]));
		if (!page) {
			kfree_skb(skb);
			return NULL;
		}
		memcpy(page_address(page), data, f->frag[i]);
		data += f->frag[i];
		skb_add_rx_frag(skb, i, page, 0, f->frag[i], 0);
	}
	memcpy(&skb->headers, f->headers, sizeof(f->headers));
	skb->truesize = f->truesize;
	skb_shinfo(skb)->flags = f->flags;
	skb_shinfo(skb)->gso_type = f->gso_type;
	skb_shinfo(skb)->gso_size = f->gso_size;
	skb_shinfo(skb)->gso_segs = f->gso_segs;
	return skb;
}

static void import(u32 from, u32 bytes)
{
	const void *at = buffer(from, run.me, run.seq), *end = at + bytes;

	for (; at < end; at += ((const struct frame *)at)->bytes) {
		const struct frame *f = at;
		struct sk_buff *skb = unpack(f);

		if (!skb)
			panic("lowq_link: no memory for packets of another part");
		link_import(f->id, skb, f->sent, f->at);
	}
}

/* --- windows -------------------------------------------------------------------------------- */

static void wait_for(struct part *p)
{
	u32 spins = 0, seq;

	/* of leave() */
	while (!smp_load_acquire(&p->left)) {
		/* of end_window(): what it said before */
		seq = smp_load_acquire(&p->seq);
		if ((s32)(seq - run.seq) >= 0)
			return;
		if (spins++ < SPINS) {
			/* cpu_relax() lets time pass */
			native_pause();
			continue;
		}
		WRITE_ONCE(p->sleepers, 1);
		/* of go_on(): it sees the sleeper, or this its new number */
		smp_mb();
		if (READ_ONCE(p->seq) == seq && !READ_ONCE(p->left))
			um_parallel_sleep(&p->seq, seq);
	}
}

static void go_on(struct part *p)
{
	/* of wait_for() */
	smp_mb();
	if (READ_ONCE(p->sleepers)) {
		WRITE_ONCE(p->sleepers, 0);
		um_parallel_wake(&p->seq);
	}
}

static void set_end(u64 last)
{
	run.end = (last / END_STEP + 2) * END_STEP;
	hrtimer_start(&run.end_timer, ns_to_ktime(run.end), HRTIMER_MODE_ABS);
}

static void end_window(u64 next)
{
	struct part *p = run.shared->part, *mine = &p[run.me];
	u64 first = U64_MAX, last = 0;
	bool done = true;
	struct say *say;
	u32 i;

	say = &mine->say[++run.seq & 1];
	say->next = min(next, run.sent);
	say->done = run.done;
	memcpy(say->bytes, run.bytes, sizeof(say->bytes));
	memset(run.bytes, 0, sizeof(run.bytes));
	run.sent = U64_MAX;
	/* of wait_for(): after what is said */
	smp_store_release(&mine->seq, run.seq);
	go_on(mine);
	for (i = 0; i < run.parts; i++) {
		if (i != run.me)
			wait_for(&p[i]);
		if (READ_ONCE(p[i].left))
			continue;
		say = &p[i].say[run.seq & 1];
		first = min(first, say->next);
		last = max(last, say->done);
		done &= !!say->done;
		if (i != run.me)
			import(i, say->bytes[run.me]);
	}
	if (done && !run.end) {
		set_end(last);
		first = min(first, run.end - run.offset);
	}
	um_parallel_until = first + run.window;
}

u32 parallel_me(void)
{
	return run.me;
}

/* "ME PARTS WINDOW": which process this is, of how many, and ns */
static int set_part(const char *value, const struct kernel_param *unused)
{
	u32 me, parts;
	u64 window;

	if (sscanf(value, "%u %u %llu", &me, &parts, &window) != 3 || parts > LOWQ_LINK_PARTS_MAX ||
	    me >= parts || !window || window >= END_STEP / 2)
		return -EINVAL;
	if (!um_parallel || run.parts)
		return -EBUSY;
	run.me = me;
	run.parts = parts;
	run.window = window;
	run.offset = ktime_get_ns() - um_parallel_now();
	run.sent = U64_MAX;
	if (parts == 1)
		return 0;
	run.shared = um_parallel_map(PAGE_ALIGN(sizeof(struct shared)) +
				     2UL * parts * parts * BUFFER);
	if (!run.shared)
		return -ENOMEM;
	um_parallel_wait = end_window;
	um_parallel_until = 0;
	return 0;
}

static enum hrtimer_restart has_ended(struct hrtimer *timer)
{
	complete_all(&run.ended);
	return HRTIMER_NORESTART;
}

/* This process has done what it had to do. Waits for all, and to an instant that all know. */
static int get_end(char *to, const struct kernel_param *unused)
{
	if (!run.parts)
		return -EBUSY;
	if (!run.done)
		run.done = ktime_get_ns();
	if (run.parts == 1 && !run.end)
		set_end(run.done);
	if (wait_for_completion_interruptible(&run.ended))
		return -EINTR;
	return sprintf(to, "%llu\n", run.end);
}

static const struct kernel_param_ops part_ops = { .set = set_part };
static const struct kernel_param_ops end_ops = { .get = get_end };

module_param_cb(part, &part_ops, NULL, 0200);
module_param_cb(end, &end_ops, NULL, 0400);

/* The others wait no more. */
static int leave(struct notifier_block *unused, unsigned long action, void *data)
{
	if (!run.shared)
		return NOTIFY_DONE;
	um_parallel_until = U64_MAX;
	/* of wait_for() */
	smp_store_release(&run.shared->part[run.me].left, 1);
	go_on(&run.shared->part[run.me]);
	return NOTIFY_DONE;
}

static struct notifier_block at_reboot = { .notifier_call = leave };

int parallel_init(void)
{
	arrivals.tree = RB_ROOT_CACHED;
	hrtimer_setup(&arrivals.timer, arrivals_begin, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_HARD);
	hrtimer_setup(&run.end_timer, has_ended, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
	tasklet_setup(&arrivals.tasklet, arrive);
	init_completion(&run.ended);
	return register_reboot_notifier(&at_reboot);
}

void parallel_exit(void)
{
	leave(NULL, 0, NULL);
	unregister_reboot_notifier(&at_reboot);
	hrtimer_cancel(&arrivals.timer);
	hrtimer_cancel(&run.end_timer);
	tasklet_kill(&arrivals.tasklet);
}
