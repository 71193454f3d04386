// SPDX-License-Identifier: GPL-2.0
/* "observe": which queues are measured, and when; "record": what is kept besides */
#include <fnmatch.h>
#include <stdint.h>
#include <string.h>

#include "../common/alloc.h"
#include "document.h"
#include "plan.h"

#define BUFFER_MB	64
#define BUFFER_MAX	65536
#define RECORD_BIN	(NSEC / 1000)

struct port {
	const char *node, *dev;
	struct window window;
};

static const struct field port_fields[] = {
	NEEDED("node", read_string, offsetof(struct port, node)),
	FIELD("dev", read_string, offsetof(struct port, dev)),
	FIELD("from", read_time, offsetof(struct port, window.from)),
	FIELD("to", read_time, offsetof(struct port, window.to)),
	{ 0 }
};

static const struct plan *plan;

static void check_window(const struct place *at, const struct window *w)
{
	if (w->from >= w->to)
		refuse(at, "'from' is not before 'to'");
}

static void add_queue(const struct place *at, struct observe *o, const struct end *e,
		      const struct window *w)
{
	for (size_t i = 0; i < o->n_queues; i++) {
		const struct observed *q = &o->queue[i];

		if (q->end->node == e->node &&
		    (q->window.from != w->from || q->window.to != w->to))
			refuse(at, "'%s' has another window in an entry before", e->node->name);
		if (q->end == e)
			return;
	}
	o->queue[o->n_queues++] = (struct observed){ e, *w };
}

static void read_queues(const struct place *at, json_t *value, void *to)
{
	struct observe *o = to;
	size_t n = array(at, value, 1, SIZE_MAX);

	o->queue = xcalloc(2 * plan->n_links, sizeof(*o->queue));
	for (size_t i = 0; i < n; i++) {
		const struct place item = { at, NULL, i };
		struct port port = { .dev = "*", .window = o->window };
		size_t before = o->n_queues;
		struct nodes nodes;

		read_object(&item, json_array_get(value, i), port_fields, &port);
		check_window(&item, &port.window);
		nodes = nodes_matching(&item, plan, port.node);
		for (size_t j = 0; j < nodes.n; j++) {
			const struct node *node = nodes.at[j];

			if (node->n_ends < 2)
				refuse(&item, "'%s' forwards nothing: it has less than two devices",
				       node->name);
			for (size_t k = 0; k < node->n_ends; k++)
				if (!fnmatch(port.dev, node->end[k]->dev, 0))
					add_queue(&item, o, node->end[k], &port.window);
		}
		if (o->n_queues == before)
			refuse(&item, "no device '%s' that is not named before", port.dev);
		free(nodes.at);
	}
}

static void read_buffer(const struct place *at, json_t *value, void *to)
{
	*(u64 *)to = whole(at, value, 1, BUFFER_MAX);
}

static const struct field observe_fields[] = {
	/* before the queues, which take it over */
	FIELD("from", read_time, offsetof(struct observe, window.from)),
	FIELD("to", read_time, offsetof(struct observe, window.to)),
	NEEDED("queues", read_queues, 0),
	FIELD("bin", read_time, offsetof(struct observe, bin)),
	FIELD("buffer", read_buffer, offsetof(struct observe, buffer_mb)),
	{ 0 }
};

void observe_read(struct plan *p, const struct place *at, json_t *value)
{
	struct observe *o = &p->observe;

	plan = p;
	*o = (struct observe){ .window.to = NEVER, .buffer_mb = BUFFER_MB };
	read_object(at, value, observe_fields, o);
	check_window(at, &o->window);
}

/* Each port with a rate or a trace of a node that forwards, unless the plan names queues */
static void observe_all(struct plan *p, const struct place *at)
{
	struct observe *o = &p->observe;
	const struct window all = { 0, NEVER };

	if (!o->n_queues) {
		*o = (struct observe){ .window = all, .buffer_mb = BUFFER_MB };
		o->queue = xcalloc(2 * p->n_links, sizeof(*o->queue));
		for (size_t i = 0; i < 2 * p->n_links; i++) {
			const struct end *e = &p->links[i / 2].end[i % 2];

			if ((e->rate || e->line.instant) && e->node->n_ends > 1)
				add_queue(at, o, e, &all);
		}
	}
	if (!o->n_queues)
		refuse(at, "no node that forwards has a rate: there is no queue");
	if (!o->bin)
		o->bin = RECORD_BIN;
}

void record_read(struct plan *p, const struct place *at, json_t *value)
{
	static const char *const known[] = { "pcap", "acks", "queue", "ss" };
	size_t n = array(at, value, 0, SIZE_MAX), k;

	for (size_t i = 0; i < n; i++) {
		const struct place item = { at, NULL, i };
		const char *s = string(&item, json_array_get(value, i));

		for (k = 0; k < ARRAY_SIZE(known) && strcmp(s, known[k]); k++)
			;
		if (k == ARRAY_SIZE(known))
			refuse(&item, "'%s' is not pcap, acks, queue or ss", s);
		p->record |= 1U << k;
	}
	if (p->record & RECORD_QUEUE)
		observe_all(p, at);
	if (p->record & RECORD_PCAP && !p->observe.n_queues)
		refuse(at, "pcap is of observed queues, and there is none");
}
