// SPDX-License-Identifier: GPL-2.0
/*
 * Which process of a run has which node. No packet notices: it only matters for the time that it
 * takes. Parts are about as large as each other, few links lead from one to another, and the
 * shortest delay of these is as long as can be.
 */
#include <err.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../link/lowq_link.h"
#include "../common/alloc.h"
#include "plan.h"

#define WINDOW_MAX	100000		/* ns: as much as its buffers have room for */
#define HOST		4		/* what a host takes, in ends of a switch */
#define NONE		UINT32_MAX
#define SHOWN		8		/* links in a message */

/* Nodes that have to be in one part */
static struct piece {
	u32 root;	/* of each node: another one of its piece, or itself. At the root: */
	u32 hosts;
	u32 weight;
	u32 level;	/* so many links from a host; as many as nodes: no host is near */
	bool seen;
} *at;

static struct {
	struct plan *plan;
	u32 *order;			/* pieces, neighbours one after the other */
	u32 pieces;
	u64 load[LOWQ_LINK_PARTS_MAX];	/* weight of each part */
} cut;

static u32 number(const struct node *node)
{
	return node - cut.plan->nodes;
}

/* Where the piece of a node has its root */
static u32 piece(const struct node *node)
{
	u32 i = number(node);

	while (at[i].root != i)
		i = at[i].root;
	return i;
}

/* The shortest in either direction, at any time */
static u64 delay_of(const struct link *l)
{
	const struct plan *p = cut.plan;
	u64 delay = l->end[0].delay < l->end[1].delay ? l->end[0].delay : l->end[1].delay;

	for (size_t i = 0; i < p->n_events; i++)
		if (p->events[i].kind == EVENT_DELAY && p->events[i].end->link == l &&
		    p->events[i].delay < delay)
			delay = p->events[i].delay;
	return delay;
}

/* Pieces, of which a link with less delay than @least joins both ends */
static void join(u64 least)
{
	const struct plan *p = cut.plan;

	cut.pieces = p->n_nodes;
	for (u32 i = 0; i < p->n_nodes; i++) {
		bool host = p->nodes[i].n_ends <= 1;

		p->nodes[i].part = NONE;
		at[i] = (struct piece){ i, host, host ? HOST : p->nodes[i].n_ends, 0, false };
	}
	for (size_t i = 0; i < p->n_links; i++) {
		const struct link *l = &p->links[i];
		u32 a = piece(l->end[0].node), b = piece(l->end[1].node);

		if (delay_of(l) >= least || a == b)
			continue;
		at[b].root = a;
		at[a].hosts += at[b].hosts;
		at[a].weight += at[b].weight;
		cut.pieces--;
	}
}

static void find_levels(void)
{
	const struct plan *p = cut.plan;
	bool changed = true;

	for (u32 i = 0; i < p->n_nodes; i++)
		at[i].level = at[i].hosts ? 0 : p->n_nodes;
	while (changed) {
		changed = false;
		for (size_t i = 0; i < 2 * p->n_links; i++) {
			const struct end *e = &p->links[i / 2].end[i % 2];
			u32 near = at[piece(e->node)].level, *far = &at[piece(e->far->node)].level;

			if (*far <= near || *far - near == 1)
				continue;
			*far = near + 1;
			changed = true;
		}
	}
}

/* What a piece leads to: the hosts' side first, so that a rack and a pod stay together */
static void visit(u32 from)
{
	const struct plan *p = cut.plan;

	at[from].seen = true;
	cut.order[cut.pieces++] = from;
	for (int step = -1; step <= 1; step++)
		for (size_t i = 0; i < 2 * p->n_links; i++) {
			const struct end *e = &p->links[i / 2].end[i % 2];
			u32 to = piece(e->far->node);

			if (!at[to].seen && piece(e->node) == from &&
			    (int)(at[to].level - at[from].level) == step)
				visit(to);
		}
}

/* Gives each part its share of all hosts, or of all pieces. False: one gets nothing */
static bool deal(bool hosts)
{
	struct plan *p = cut.plan;
	u32 last = NONE, used = 0;
	u64 total = 0, sum = 0;

	for (u32 i = 0; i < cut.pieces; i++)
		total += hosts ? at[cut.order[i]].hosts : 1;
	for (u32 i = 0; i < cut.pieces; i++) {
		u32 of = cut.order[i], n = hosts ? at[of].hosts : 1;

		if (!n)
			continue;
		p->nodes[of].part = (2 * sum + n) * p->parts / (2 * total);
		sum += n;
		used += p->nodes[of].part != last;
		last = p->nodes[of].part;
	}
	return used == p->parts;
}

/* Where most of its links lead to, or of such parts the one with least to do */
static void follow(u32 who)
{
	struct plan *p = cut.plan;
	u32 links[LOWQ_LINK_PARTS_MAX] = { 0 }, best = 0;

	for (size_t i = 0; i < 2 * p->n_links; i++) {
		const struct end *e = &p->links[i / 2].end[i % 2];
		u32 part = p->nodes[piece(e->far->node)].part;

		if (part != NONE && piece(e->node) == who)
			links[part]++;
	}
	for (u32 part = 1; part < p->parts; part++)
		if (links[part] > links[best] ||
		    (links[part] == links[best] && cut.load[part] < cut.load[best]))
			best = part;
	p->nodes[who].part = best;
}

/*
 * Each part has as many hosts as others, and the switches nearest to them. Returns the largest
 * part's weight; 0: there are too few pieces
 */
static u64 divide(u64 least)
{
	struct plan *p = cut.plan;
	u64 largest = 0;

	join(least);
	if (cut.pieces < p->parts)
		return 0;
	find_levels();
	cut.pieces = 0;
	for (u32 i = 0; i < p->n_nodes; i++)
		if (at[i].root == i && !at[i].seen)
			visit(i);
	if (!deal(true))
		deal(false);
	memset(cut.load, 0, sizeof(cut.load));
	for (u32 level = 0; level <= p->n_nodes; level++)
		for (u32 i = 0; i < p->n_nodes; i++) {
			if (at[i].root != i || at[i].level != level)
				continue;
			if (p->nodes[i].part == NONE)
				follow(i);
			cut.load[p->nodes[i].part] += at[i].weight;
		}
	for (u32 part = 0; part < p->parts; part++)
		if (cut.load[part] > largest)
			largest = cut.load[part];
	for (u32 i = 0; i < p->n_nodes; i++)
		p->nodes[i].part = p->nodes[piece(&p->nodes[i])].part;
	return largest;
}

static int by_delay(const void *a, const void *b)
{
	const u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? 1 : x > y ? -1 : 0;
}

/* Ends with the names of the links that cannot be cut */
static void __attribute__((noreturn)) refuse_cut(void)
{
	const struct plan *p = cut.plan;
	size_t n = 0, used = 0;
	char text[1024] = "";

	if (p->n_nodes < p->parts)
		errx(2, "%s: %u processes for %zu nodes", p->file, p->parts, p->n_nodes);
	for (size_t i = 0; i < p->n_links; i++) {
		if (delay_of(&p->links[i]) || n++ >= SHOWN || used >= sizeof(text))
			continue;
		used += snprintf(text + used, sizeof(text) - used, " %s-%s",
				 p->links[i].end[0].node->name, p->links[i].end[1].node->name);
	}
	errx(2, "%s: cannot be cut in %u: links without a delay in both directions:%s%s", p->file,
	     p->parts, n ? text : " none", n > SHOWN ? " ..." : "");
}

/* What one process has to see as a whole */
static void check_traffic(void)
{
	const struct plan *p = cut.plan;

	for (size_t i = 0; i < p->n_traffic; i++) {
		const struct traffic *t = &p->traffic[i];

		if (t->until_end)
			errx(2, "%s: traffic[%zu] ends with the rest, which several processes cannot know",
			     p->file, i);
		for (size_t k = 0; k < t->n_pairs; k++) {
			const struct pair *a = &t->pairs[0], *b = &t->pairs[k];
			const struct node *one = t->kind == TRAFFIC_UDP ? a->from : a->to;

			if (t->kind != TRAFFIC_UDP && t->kind != TRAFFIC_INCAST && !t->closed)
				break;
			if (one->part != b->to->part)
				errx(2, "%s: traffic[%zu]: %s sees both '%s' and '%s', which are in two processes",
				     p->file, i, traffic_kind_name[t->kind], one->name,
				     b->to->name);
			if (t->kind == TRAFFIC_UDP && one->part != b->from->part)
				errx(2, "%s: traffic[%zu]: udp sees both '%s' and '%s', which are in two processes",
				     p->file, i, one->name, b->from->name);
		}
	}
}

bool plan_has(const struct plan *p, const struct node *node)
{
	return !p->parts || node->part == p->me;
}

void plan_cut(struct plan *p)
{
	const char *words = getenv("LOWQ_PART");
	u64 *delay, best = 0, chosen = 0;
	size_t n;

	if (!words || !*words)
		return;
	if (sscanf(words, "%u/%u", &p->me, &p->parts) != 2 || !p->parts ||
	    p->parts > LOWQ_LINK_PARTS_MAX || p->me >= p->parts)
		errx(2, "LOWQ_PART is not a part such as 0/2");
	for (size_t i = 0; i < p->n_links; i++)
		if (!p->links[i].exact)
			errx(2, "%s: links[%zu] is not exact, as several processes need it",
			     p->file, i);
	cut.plan = p;
	at = xcalloc(p->n_nodes, sizeof(*at));
	cut.order = xcalloc(p->n_nodes, sizeof(*cut.order));
	delay = xcalloc(p->n_links + 1, sizeof(*delay));
	for (size_t i = 0; i < p->n_links; i++)
		delay[i] = delay_of(&p->links[i]);
	qsort(delay, p->n_links, sizeof(*delay), by_delay);
	/* the longest window whose parts are not much less even than those of a shorter one */
	for (n = 0; n < p->n_links && delay[n]; n++) {
		u64 largest;

		if (n && delay[n] == delay[n - 1])
			continue;
		largest = divide(delay[n]);
		if (largest && (!best || largest * 10 < best * 9)) {
			best = largest;
			chosen = delay[n];
		}
	}
	if (p->parts == 1)
		chosen = 1;
	if (!chosen)
		refuse_cut();
	divide(chosen);
	p->window = chosen < WINDOW_MAX ? chosen : WINDOW_MAX;
	check_traffic();
	free(delay);
	free(at);
	free(cut.order);
	n = 0;
	for (size_t i = 0; i < p->observe.n_queues; i++)
		if (plan_has(p, p->observe.queue[i].end->node))
			p->observe.queue[n++] = p->observe.queue[i];
	p->observe.n_queues = n;
}
