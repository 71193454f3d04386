// SPDX-License-Identifier: GPL-2.0
/* "must": a list of bounds. lab/uml/must.jq applies them to the results. */
#include <stdint.h>
#include <string.h>

#include "document.h"
#include "plan.h"

struct bound {
	json_t *flows, *queue;
	const char *value;
	bool most, least;
};

struct chosen {
	const char *label, *kind, *node, *dev;
};

static void keep(const struct place *at, json_t *value, void *to)
{
	(void)at;
	*(json_t **)to = value;
}

static void read_limit(const struct place *at, json_t *value, void *to)
{
	if (!json_is_number(value))
		refuse(at, "not a number");
	*(bool *)to = true;
}

static void read_of(const struct place *at, json_t *value, void *to)
{
	static const char *const known[] = { "min", "mean", "max", "count", "p50", "p90", "p99",
					     "p999" };

	(void)to;
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (!strcmp(known[i], string(at, value)))
			return;
	refuse(at, "'%s' is not min, mean, max, count, p50, p90, p99 or p999",
	       json_string_value(value));
}

static const struct field bound_fields[] = {
	FIELD("flows", keep, offsetof(struct bound, flows)),
	FIELD("queue", keep, offsetof(struct bound, queue)),
	NEEDED("value", read_string, offsetof(struct bound, value)),
	FIELD("of", read_of, 0),
	FIELD("most", read_limit, offsetof(struct bound, most)),
	FIELD("least", read_limit, offsetof(struct bound, least)),
	{ 0 }
};

static const struct field flows_fields[] = {
	FIELD("label", read_string, offsetof(struct chosen, label)),
	FIELD("kind", read_string, offsetof(struct chosen, kind)),
	{ 0 }
};

static const struct field queue_fields[] = {
	NEEDED("node", read_string, offsetof(struct chosen, node)),
	NEEDED("dev", read_string, offsetof(struct chosen, dev)),
	{ 0 }
};

static void check_flows(const struct plan *p, const struct place *at, json_t *object)
{
	struct chosen c = { 0 };

	read_object(at, object, flows_fields, &c);
	for (size_t i = 0; i < p->n_traffic; i++)
		if ((!c.label || !strcmp(c.label, p->traffic[i].label)) &&
		    (!c.kind || !strcmp(c.kind, traffic_kind_name[p->traffic[i].kind])))
			return;
	refuse(at, "no such traffic");
}

static void check_queue(const struct plan *p, const struct place *at, json_t *object)
{
	struct chosen c = { 0 };

	read_object(at, object, queue_fields, &c);
	for (size_t i = 0; i < p->observe.n_queues; i++)
		if (!strcmp(c.node, p->observe.queue[i].end->node->name) &&
		    !strcmp(c.dev, p->observe.queue[i].end->dev))
			return;
	refuse(at, "'%s' of '%s' is not observed", c.dev, c.node);
}

static void check_bound(const struct plan *p, const struct place *at, json_t *value)
{
	const struct place flows = { at, "flows", 0 }, queue = { at, "queue", 0 };
	struct bound b = { 0 };

	read_object(at, value, bound_fields, &b);
	if (!b.flows == !b.queue)
		refuse(at, "needs one of 'flows' and 'queue'");
	if (!b.most && !b.least)
		refuse(at, "needs 'most' or 'least'");
	if (b.flows)
		check_flows(p, &flows, b.flows);
	if (b.queue)
		check_queue(p, &queue, b.queue);
	if (b.flows && !json_object_get(value, "of"))
		refuse(at, "'of' is missing");
	if (b.queue && json_object_get(value, "of"))
		refuse(at, "'of' has no place with 'queue'");
}

void must_read(struct plan *p, const struct place *at, json_t *value)
{
	size_t n = array(at, value, 0, SIZE_MAX);

	for (size_t i = 0; i < n; i++) {
		const struct place item = { at, NULL, i };

		check_bound(p, &item, json_array_get(value, i));
	}
}
