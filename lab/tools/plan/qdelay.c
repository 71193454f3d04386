// SPDX-License-Identifier: GPL-2.0
/* What a plan wants to be observed, as qdelay's hops and queues */
#include "../common/alloc.h"
#include "../qdelay/options.h"
#include "../qdelay/plan.h"
#include "plan.h"

/* netem's, in ns */
#define STEP	64

static void fill_queue(struct queue *q, const struct end *e)
{
	q->dev = e->dev;
	q->rate = e->rate;
	/* an exact link's delay comes after the queue */
	q->delay = e->link->exact ? 0 : e->delay / STEP * STEP;
	if (asprintf((char **)&q->timeline.name, "%s,%s", e->node->name, e->dev) < 0)
		err(1, "memory");
}

static void fill_hop(struct hop *h, const struct plan *p, const struct node *node)
{
	hop_init(h, node->n_ends);
	h->name = node->name;
	h->netns = plan_netns(p, node);
	for (size_t i = 0; i < node->n_ends; i++)
		fill_queue(&h->queue[i], node->end[i]);
}

static struct queue *queue_of(struct hop *h, const struct end *e)
{
	size_t i = 0;

	while (e->node->end[i] != e)
		i++;
	return &h->queue[i];
}

u32 observed(struct hop **hops, u64 *buffer_mb)
{
	static struct plan p;
	const struct observe *o = &p.observe;
	struct hop **of_node;
	u32 n = 0;

	plan_read(&p, opt.plan);
	*buffer_mb = o->buffer_mb;
	opt.bin = o->bin;
	*hops = xcalloc(p.n_nodes, sizeof(**hops));
	of_node = xcalloc(p.n_nodes, sizeof(*of_node));
	for (size_t i = 0; i < o->n_queues; i++) {
		const struct end *e = o->queue[i].end;
		struct hop **h = &of_node[e->node - p.nodes];

		if (!*h) {
			*h = &(*hops)[n++];
			fill_hop(*h, &p, e->node);
			(*h)->from = o->queue[i].window.from;
			(*h)->to = o->queue[i].window.to;
			(*h)->whole = p.parts;
		}
		queue_of(*h, e)->reported = true;
	}
	free(of_node);
	return n;
}
