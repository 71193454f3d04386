// SPDX-License-Identifier: GPL-2.0
/* "events": a list of changes */
#include <stdint.h>
#include <string.h>

#include "../common/alloc.h"
#include "document.h"
#include "plan.h"

struct row {
	u64 at;
	const char *node, *dev;
	double rate;
	u64 delay;
	bool up;
	struct route route;
};

static const struct field row_fields[] = {
	NEEDED("at", read_time, offsetof(struct row, at)),
	NEEDED("node", read_string, offsetof(struct row, node)),
	FIELD("dev", read_string, offsetof(struct row, dev)),
	FIELD("rate", read_rate, offsetof(struct row, rate)),
	FIELD("delay", read_delay, offsetof(struct row, delay)),
	FIELD("up", read_bool, offsetof(struct row, up)),
	FIELD("route", read_route, offsetof(struct row, route)),
	{ 0 }
};

static const struct end *end_of(const struct place *at, const struct node *node, const char *dev)
{
	if (!dev)
		refuse(at, "'dev' is missing");
	for (size_t i = 0; i < node->n_ends; i++)
		if (!strcmp(node->end[i]->dev, dev))
			return node->end[i];
	refuse(at, "'%s' has no device '%s'", node->name, dev);
}

static enum event_kind kind_of(const struct place *at, json_t *object)
{
	static const struct {
		const char *key;
		enum event_kind kind;
	} keys[] = {
		{ "rate", EVENT_RATE }, { "delay", EVENT_DELAY }, { "up", EVENT_DOWN },
		{ "route", EVENT_ROUTE },
	};
	size_t found = 0, which = 0;

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		if (json_object_get(object, keys[i].key)) {
			found++;
			which = i;
		}
	}
	if (found != 1)
		refuse(at, "needs one of 'rate', 'delay', 'up' and 'route'");
	return keys[which].kind;
}

static void read_event(const struct place *at, json_t *value, struct event *e)
{
	struct row row = { 0 };

	read_object(at, value, row_fields, &row);
	*e = (struct event){
		.at = row.at, .kind = kind_of(at, value), .node = node_named(at, row.node),
		.rate = row.rate, .delay = row.delay, .route = row.route,
	};
	if (e->kind == EVENT_DOWN && row.up)
		e->kind = EVENT_UP;
	if (e->kind == EVENT_ROUTE) {
		if (row.dev)
			refuse(at, "'dev' has no place with 'route'");
		for (size_t i = 0; i < row.route.via.n; i++)
			if (!is_next_hop(e->node, &row.route.via.at[i]))
				refuse(at, "no link of '%s' leads to %s", e->node->name,
				       row.route.via.at[i].text);
		return;
	}
	e->end = end_of(at, e->node, row.dev);
	if (e->kind == EVENT_RATE && !e->end->rate)
		refuse(at, "'%s' of '%s' has no rate that could change", row.dev, row.node);
	if (e->kind == EVENT_DELAY && !e->end->delay && !e->end->link->exact)
		refuse(at, "'%s' of '%s' has no delay that could change", row.dev, row.node);
}

/* Events at the same time stay in the plan's order. */
static void sort(struct event *events, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		struct event e = events[i];
		size_t k = i;

		for (; k && events[k - 1].at > e.at; k--)
			events[k] = events[k - 1];
		events[k] = e;
	}
}

void events_read(struct plan *p, const struct place *at, json_t *value)
{
	p->n_events = array(at, value, 0, SIZE_MAX);
	p->events = xcalloc(p->n_events, sizeof(*p->events));
	for (size_t i = 0; i < p->n_events; i++) {
		const struct place item = { at, NULL, i };

		read_event(&item, json_array_get(value, i), &p->events[i]);
	}
	sort(p->events, p->n_events);
}
