// SPDX-License-Identifier: GPL-2.0
/*
 * A packet takes at least a window, the shortest delay between two parts, from one process to
 * another. So each process may be up to a window ahead of the slowest one, and does not wait for
 * small differences in what they have to do. A process that has to wait says when its next event
 * is. When all wait, time passes to the first of these events.
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

#define RING		(32U << 20)	/* bytes, for what one has sent to another */
#define RING_NEAR	(RING / 2)	/* an empty one begins again from here, with as much room */
#define STEPS		8		/* a process says so often per window where it is */
#define SPINS		10000		/* of some ns each, before a process that waits sleeps */
#define END_STEP	1000000ULL	/* ns; longer than a window */
#define LEFT		U64_MAX		/* the clock of a process that takes no part any more */

struct part {
	u64 clock;		/* ns: it sends nothing before */
	u64 next;		/* it waits, and has nothing to do before; 0: it does not wait */
	u64 done;		/* when it has done what it had to do, 0: not yet */
	u32 said;		/* how often it has said these */
	u64 sent[LOWQ_LINK_PARTS_MAX];		/* bytes, to each */
	/* bytes, from each */
	u64 taken[LOWQ_LINK_PARTS_MAX] ____cacheline_aligned;
} ____cacheline_aligned;

struct shared {
	struct part part[LOWQ_LINK_PARTS_MAX];
	u32 sleepers;		/* some sleep until @woken changes */
	u32 woken;
};

struct frame {
	u32 bytes;			/* of all, a multiple of 8; 0: the ring begins again */
	u32 id;
	u64 at, sent;
	u32 headroom, head, end, truesize;
	u32 gso_type;
	u16 gso_size, gso_segs;
	u8 flags, frags;
	u8 headers[sizeof(((struct sk_buff *)0)->headers)];
	u32 frag[MAX_SKB_FRAGS];	/* bytes of each */
};

static struct {
	u32 me, parts;
	u64 window;			/* ns */
	u64 offset;			/* CLOCK_MONOTONIC is so much more than the kernel's time */
	u64 limit;			/* ns: what others still send arrives then or later */
	u32 heard;			/* how often all had said something before look() */
	bool busy;			/* it saw a process that does not wait */
	struct shared *shared;
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

static void *ring(u32 from, u32 to, u64 at)
{
	return (void *)run.shared + PAGE_ALIGN(sizeof(struct shared)) +
	       (from * run.parts + to) * (size_t)RING + at % RING;
}

/* Returns where @bytes for @to begin, after @sent */
static struct frame *room(u32 to, u32 bytes, u64 *sent)
{
	u32 used = *sent % RING;
	struct frame *f;
	u64 taken;

	/* of take(): the memory is free */
	taken = virt_load_acquire(&run.shared->part[to].taken[run.me]);
	if (used + bytes > RING || (taken == *sent && used > RING_NEAR)) {
		f = ring(run.me, to, *sent);
		f->bytes = 0;
		*sent += RING - used;
	}
	if (*sent + bytes - taken > RING)
		panic("lowq_link: more than %u MiB from one part to another in a window",
		      RING >> 20);
	return ring(run.me, to, *sent);
}

void parallel_send(u32 to, u32 id, struct sk_buff *skb, u64 at)
{
	u32 bytes = ALIGN(sizeof(struct frame) + skb->len, 8), i;
	struct part *mine = &run.shared->part[run.me];
	struct skb_shared_info *info = skb_shinfo(skb);
	u64 sent = mine->sent[to];
	struct frame *f = room(to, bytes, &sent);

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
	/* of take() */
	virt_store_release(&mine->sent[to], sent + bytes);
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

/* --- time ----------------------------------------------------------------------------------- */

/* Tells the others; @clock, @next: of struct part */
static void say(u64 clock, u64 next)
{
	struct part *mine = &run.shared->part[run.me];

	WRITE_ONCE(mine->done, run.done);
	WRITE_ONCE(mine->next, next);
	WRITE_ONCE(mine->clock, clock);
	/* of heard(): after what is said */
	virt_store_release(&mine->said, mine->said + 1);
	/* of sleep(): this process sees the sleeper, or that one what was said */
	virt_mb();
	if (READ_ONCE(run.shared->sleepers)) {
		WRITE_ONCE(run.shared->sleepers, 0);
		/* a number that it has not been before */
		virt_store_release(&run.shared->woken,
				   mine->said * LOWQ_LINK_PARTS_MAX + run.me);
		um_parallel_wake(&run.shared->woken);
	}
}

/* How often all have said something */
static u32 heard(void)
{
	u32 sum = 0, i;

	for (i = 0; i < run.parts; i++)
		/* of say(): before what is said is read */
		sum += virt_load_acquire(&run.shared->part[i].said);
	return sum;
}

/* Takes what @from has sent; false: nothing */
static bool take(u32 from)
{
	struct part *mine = &run.shared->part[run.me];
	u64 at = mine->taken[from], end;

	/* of parallel_send() */
	end = virt_load_acquire(&run.shared->part[from].sent[run.me]);
	if (at == end)
		return false;
	/* before the ring is empty: there may be an earlier event than this process has said */
	if (mine->next)
		say(mine->clock, 0);
	while (at != end) {
		const struct frame *f = ring(from, run.me, at);
		struct sk_buff *skb;

		at += f->bytes ?: RING - at % RING;
		if (!f->bytes)
			continue;
		skb = unpack(f);
		if (!skb)
			panic("lowq_link: no memory for packets of another part");
		link_import(f->id, skb, f->sent, f->at);
	}
	/* of room() and first_of_all(): the memory is free; what came has been counted */
	virt_store_release(&mine->taken[from], at);
	return true;
}

static void set_end(u64 last)
{
	run.end = (last / END_STEP + 2) * END_STEP;
	hrtimer_start(&run.end_timer, ns_to_ktime(run.end), HRTIMER_MODE_ABS);
}

/* Reads where the others are, and takes what they have sent. True: there are new events. */
static bool look(void)
{
	u64 limit = U64_MAX, last = run.done;
	bool came = false, done = run.done;
	u32 i;

	run.heard = heard();
	run.busy = false;
	for (i = 0; i < run.parts; i++) {
		const struct part *p = &run.shared->part[i];
		u64 clock;

		/* before what has been sent until then */
		clock = virt_load_acquire(&p->clock);
		if (i == run.me || clock == LEFT)
			continue;
		limit = min(limit, clock + run.window);
		run.busy |= !READ_ONCE(p->next);
		last = max(last, READ_ONCE(p->done));
		done &= !!READ_ONCE(p->done);
		came |= take(i);
	}
	run.limit = max(run.limit, limit);
	if (done && !run.end) {
		set_end(last);
		came = true;
	}
	return came;
}

/* The first event of all, if all wait and nothing is on the way between them; 0: they do not */
static u64 first_of_all(void)
{
	const struct part *p = run.shared->part;
	u32 before = heard(), i, k;
	bool done = !run.end;
	u64 first = LEFT;

	for (i = 0; i < run.parts; i++) {
		if (!READ_ONCE(p[i].next))
			return 0;
		first = min(first, READ_ONCE(p[i].next));
		done &= READ_ONCE(p[i].done) || READ_ONCE(p[i].clock) == LEFT;
		for (k = 0; k < run.parts; k++)
			if (READ_ONCE(p[k].clock) != LEFT &&
			    READ_ONCE(p[i].sent[k]) != READ_ONCE(p[k].taken[i]))
				return 0;
	}
	/* of say(), take() */
	virt_rmb();
	/* if all are done, look() has to set the end first */
	return done || heard() != before ? 0 : first;
}

/* Until one says something after look() */
static void sleep(void)
{
	u32 woken = READ_ONCE(run.shared->woken);

	/* of say(): after the word is read, before what is said is read */
	virt_store_mb(run.shared->sleepers, 1);
	if (heard() == run.heard)
		um_parallel_sleep(&run.shared->woken, woken);
}

/* Waits until time may pass to @next; false: there are new events */
static bool wait_until(u64 next)
{
	u64 clock = min(next, run.limit), first;
	u32 spins = 0;

	say(clock, next);
	while (!look()) {
		first = first_of_all();
		if (first)
			run.limit = max(run.limit, first + run.window);
		if (next < run.limit)
			return true;
		/* for those that do not wait; else it would only disturb first_of_all() */
		if (run.limit > clock && (first || run.busy)) {
			clock = run.limit;
			say(clock, next);
			spins = 0;
		}
		/* cpu_relax() lets time pass */
		if (spins++ < SPINS)
			native_pause();
		else
			sleep();
	}
	return false;
}

static void pass_time(u64 next)
{
	/* what arrives before run.limit has been taken */
	say(min(next, run.limit), 0);
	if (look())
		return;
	if (next >= run.limit && !wait_until(next)) {
		say(run.shared->part[run.me].clock, 0);
		return;
	}
	um_parallel_until = min(run.limit, next + run.window / STEPS + 1);
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
	if (parts == 1)
		return 0;
	run.shared = um_parallel_map(PAGE_ALIGN(sizeof(struct shared)) +
				     (size_t)parts * parts * RING);
	if (!run.shared)
		return -ENOMEM;
	um_parallel_wait = pass_time;
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
	say(LEFT, LEFT);
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
