// SPDX-License-Identifier: GPL-2.0
/* "traffic": a list of objects, each with a kind, which says what other fields there are */
#include <err.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "../common/alloc.h"
#include "../common/cdf.h"
#include "document.h"
#include "plan.h"

#define FLOWS_MAX	1000000
#define CONTROL_LEN	16	/* TCP_CA_NAME_MAX */
#define LABEL_LEN	64
#define BURST_MAX	1000
#define UDP_LEAST	16		/* a packet's number and when it was sent */
#define UDP_MOST	65507
#define UDP_SIZE	1472		/* fills a packet of 1500 bytes */

static const struct plan *plan;

/* A pattern, or a list of them: each node once */
static void read_nodes(const struct place *at, json_t *value, void *to)
{
	struct nodes *list = to;
	bool one = json_is_string(value);
	size_t n = one ? 1 : array(at, value, 1, SIZE_MAX);

	for (size_t i = 0; i < n; i++) {
		const struct place item = { at, NULL, i };
		const struct place *where = one ? at : &item;
		struct nodes more = nodes_matching(where, plan,
						   string(where, one ? value :
							  json_array_get(value, i)));

		list->at = xreallocarray(list->at, list->n + more.n, sizeof(*list->at));
		for (size_t j = 0; j < more.n; j++) {
			if (!node_address(more.at[j]))
				refuse(where, "'%s' has no address", more.at[j]->name);
			list->at[list->n++] = more.at[j];
		}
		free(more.at);
	}
}

static void read_control(const struct place *at, json_t *value, void *to)
{
	*(const char **)to = name(at, value, CONTROL_LEN - 1);
}

static const struct field side_fields[] = {
	FIELD("from", read_control, offsetof(struct sides, from)),
	FIELD("to", read_control, offsetof(struct sides, to)),
	{ 0 }
};

/* Of both sides, or an object with that of each */
static void read_sides(const struct place *at, json_t *value, void *to)
{
	struct sides *sides = to;

	if (json_is_object(value)) {
		read_object(at, value, side_fields, sides);
		return;
	}
	read_control(at, value, &sides->from);
	sides->to = sides->from;
}

static void read_label(const struct place *at, json_t *value, void *to)
{
	const char *s = string(at, value);

	if (strlen(s) > LABEL_LEN)
		refuse(at, "longer than %d bytes", LABEL_LEN);
	*(const char **)to = s;
}

static void read_flows(const struct place *at, json_t *value, void *to)
{
	*(u64 *)to = whole(at, value, 1, FLOWS_MAX);
}

static void read_rounds(const struct place *at, json_t *value, void *to)
{
	*(u64 *)to = whole(at, value, 1, 1000000000);
}

static void read_burst(const struct place *at, json_t *value, void *to)
{
	*(u64 *)to = whole(at, value, 1, BURST_MAX);
}

static void read_status(const struct place *at, json_t *value, void *to)
{
	*(u64 *)to = whole(at, value, 0, 255);
}

static void read_ecn(const struct place *at, json_t *value, void *to)
{
	static const char *const names[] = { "not-ect", "ect1", "ect0" };	/* by code point */
	const char *s = string(at, value);

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (!strcmp(names[i], s)) {
			*(u8 *)to = i;
			return;
		}
	}
	refuse(at, "'%s' is not not-ect, ect0 or ect1", s);
}

/* A time, or "end" */
static void read_stop(const struct place *at, json_t *value, void *to)
{
	struct traffic *t = to;

	t->until_end = json_is_string(value) && !strcmp(json_string_value(value), "end");
	if (t->until_end)
		return;
	read_time(at, value, &t->stop);
	if (!t->stop)
		refuse(at, "it would end before it starts");
}

static void check_variable(const struct place *at, const char *key)
{
	if (!*key || strchr(key, '='))
		refuse(at, "not the name of a variable");
}

static void read_environment(const struct place *at, json_t *value, void *to)
{
	read_values(at, value, to, check_variable);
}

static double positive(const struct place *at, json_t *value, double most)
{
	double v = json_number_value(value);

	if (!json_is_number(value) || !(v > 0 && v <= most))
		refuse(at, "not a number above 0, up to %g", most);
	return v;
}

static void read_per_second(const struct place *at, json_t *value, void *to)
{
	*(double *)to = positive(at, value, 1e9);
}

static void read_share(const struct place *at, json_t *value, void *to)
{
	*(double *)to = positive(at, value, 10);
}

static void read_tier(const struct place *at, json_t *value, void *to)
{
	const char *s = string(at, value);
	size_t i = 0;

	while (i < plan->n_links && (!plan->links[i].tier || strcmp(plan->links[i].tier, s)))
		i++;
	if (i == plan->n_links)
		refuse(at, "no link has the tier '%s'", s);
	*(const char **)to = s;
}

static const struct field load_fields[] = {
	NEEDED("tier", read_tier, offsetof(struct traffic, tier)),
	NEEDED("share", read_share, offsetof(struct traffic, share)),
	{ 0 }
};

static void read_load(const struct place *at, json_t *value, void *to)
{
	struct traffic *t = to;

	if (json_is_object(value))
		read_object(at, value, load_fields, t);
	else
		read_rate(at, value, &t->load);
}

/* A file's name counts from the plan's folder. */
static void read_cdf(const struct place *at, json_t *value, void *to)
{
	char *where = place_text(at), *file = file_beside(string(at, value));
	struct cdf cdf = { 0 };

	cdf_load(&cdf, where, file);
	free(cdf.bytes);
	free(cdf.frac);
	free(where);
	*(const char **)to = file;
}

/* --- a list ---------------------------------------------------------------------------------- */

struct list_row {
	struct nodes from, to;
	struct listed flow;
};

static const struct field list_fields[] = {
	NEEDED("from", read_nodes, offsetof(struct list_row, from)),
	NEEDED("to", read_nodes, offsetof(struct list_row, to)),
	NEEDED("size", read_bytes, offsetof(struct list_row, flow.size)),
	FIELD("start", read_time, offsetof(struct list_row, flow.start)),
	FIELD("control", read_control, offsetof(struct list_row, flow.control)),
	{ 0 }
};

static void read_list(const struct place *at, json_t *value, void *to)
{
	struct traffic *t = to;

	t->n_pairs = array(at, value, 1, SIZE_MAX);
	t->pairs = xcalloc(t->n_pairs, sizeof(*t->pairs));
	t->list = xcalloc(t->n_pairs, sizeof(*t->list));
	for (size_t i = 0; i < t->n_pairs; i++) {
		const struct place item = { at, NULL, i };
		struct list_row row = { 0 };

		read_object(&item, json_array_get(value, i), list_fields, &row);
		if (row.from.n != 1 || row.to.n != 1)
			refuse(&item, "a flow goes from one node to one node");
		if (row.from.at[0] == row.to.at[0])
			refuse(&item, "from '%s' to itself", row.from.at[0]->name);
		t->pairs[i] = (struct pair){ row.from.at[0], row.to.at[0] };
		t->list[i] = row.flow;
		free(row.from.at);
		free(row.to.at);
	}
}

/* --- kinds ----------------------------------------------------------------------------------- */

const char *const traffic_kind_name[] = {
	[TRAFFIC_LONG] = "long",
	[TRAFFIC_REQUESTS] = "requests",
	[TRAFFIC_FLOWS] = "flows",
	[TRAFFIC_INCAST] = "incast",
	[TRAFFIC_LIST] = "list",
	[TRAFFIC_UDP] = "udp",
	[TRAFFIC_PROGRAM] = "program",
};

#define K(kind)		(1U << (TRAFFIC_##kind))
#define RANDOM		(K(REQUESTS) | K(FLOWS))
#define TCP		(K(LONG) | RANDOM | K(INCAST) | K(LIST))
#define PAIRED		(K(LONG) | RANDOM | K(INCAST) | K(UDP))
#define STOPPED		(K(LONG) | K(UDP) | K(PROGRAM))
#define AT(member)	offsetof(struct traffic, member)
#define ONLY(set, key, function, to) \
	{ .name = key, .read = function, .offset = to, .kinds = set }

static void skip_kind(const struct place *at, json_t *value, void *to)
{
	(void)at;	/* traffic_read() has read it */
	(void)value;
	(void)to;
}

static const struct field fields[] = {
	FIELD("kind", skip_kind, 0),
	FIELD("label", read_label, AT(label)),
	FIELD("start", read_time, AT(start)),
	ONLY(TCP, "control", read_sides, AT(control)),
	ONLY(TCP | K(PROGRAM), "timeout", read_time, AT(timeout)),
	{ "from", read_nodes, AT(from), true, PAIRED },
	{ "to", read_nodes, AT(to), true, PAIRED },
	{ "size", read_bytes, AT(size), true, K(INCAST) },
	ONLY(K(LONG) | RANDOM | K(UDP), "size", read_bytes, AT(size)),
	ONLY(K(LONG) | RANDOM | K(UDP), "flows", read_flows, AT(flows)),
	ONLY(K(LONG) | RANDOM | K(UDP), "duration", read_time, AT(duration)),
	ONLY(STOPPED, "stop", read_stop, 0),
	ONLY(K(LONG), "stagger", read_time, AT(stagger)),
	ONLY(K(LONG), "pull", read_bool, AT(pull)),
	ONLY(RANDOM, "cdf", read_cdf, AT(cdf)),
	ONLY(RANDOM, "rate", read_per_second, AT(rate)),
	ONLY(RANDOM, "load", read_load, 0),
	ONLY(RANDOM, "periodic", read_bool, AT(periodic)),
	ONLY(K(REQUESTS), "closed", read_flows, AT(closed)),
	ONLY(K(REQUESTS), "persist", read_bool, AT(persist)),
	ONLY(K(INCAST), "fan", read_flows, AT(fan)),
	ONLY(K(INCAST), "rounds", read_rounds, AT(rounds)),
	ONLY(K(INCAST), "period", read_time, AT(period)),
	ONLY(K(INCAST), "jitter", read_time, AT(jitter)),
	ONLY(K(UDP), "rate", read_rate, AT(rate_bps)),
	ONLY(K(UDP), "every", read_time, AT(every)),
	ONLY(K(UDP), "burst", read_burst, AT(burst)),
	ONLY(K(UDP), "random", read_bool, AT(random)),
	ONLY(K(UDP), "on", read_time, AT(on)),
	ONLY(K(UDP), "off", read_time, AT(off)),
	ONLY(K(UDP), "ecn", read_ecn, AT(ecn)),
	{ "node", read_nodes, AT(from), true, K(PROGRAM) },
	{ "command", read_string, AT(command), true, K(PROGRAM) },
	ONLY(K(PROGRAM), "environment", read_environment, AT(environment)),
	ONLY(K(PROGRAM), "status", read_status, AT(status)),
	{ "flows", read_list, 0, true, K(LIST) },
	{ 0 }
};

/* Flow i goes from sender i to receiver i, each modulo their number. */
static void pair_in_turn(const struct place *at, struct traffic *t)
{
	if (!t->flows)
		t->flows = t->from.n > t->to.n ? t->from.n : t->to.n;
	t->n_pairs = t->flows;
	t->pairs = xcalloc(t->n_pairs, sizeof(*t->pairs));
	for (size_t i = 0; i < t->n_pairs; i++) {
		t->pairs[i] = (struct pair){ t->from.at[i % t->from.n], t->to.at[i % t->to.n] };
		if (t->pairs[i].from == t->pairs[i].to)
			refuse(at, "flow %zu goes from '%s' to itself", i, t->pairs[i].from->name);
	}
}

/* Each sender with each receiver */
static void pair_all(const struct place *at, struct traffic *t)
{
	t->pairs = xcalloc(t->from.n * t->to.n, sizeof(*t->pairs));
	for (size_t i = 0; i < t->from.n; i++)
		for (size_t j = 0; j < t->to.n; j++)
			if (t->from.at[i] != t->to.at[j])
				t->pairs[t->n_pairs++] = (struct pair){ t->from.at[i],
									t->to.at[j] };
	if (!t->n_pairs)
		refuse(at, "no flow has another node to go to");
}

static void check_stop(const struct place *at, struct traffic *t)
{
	if (t->stop && t->stop <= t->start)
		refuse(at, "'stop' is not after 'start'");
}

static void check_long(const struct place *at, struct traffic *t)
{
	if (t->size && t->duration)
		refuse(at, "takes one of 'size' and 'duration'");
	if (!t->size && !t->duration && !t->stop && !t->until_end)
		refuse(at, "needs one of 'size', 'duration' and 'stop'");
	if (t->duration && t->timeout)
		refuse(at, "'timeout' does not go with 'duration', which ends the flow");
	pair_in_turn(at, t);
}

static void check_random(const struct place *at, struct traffic *t)
{
	double capacity;

	if (!t->size == !t->cdf)
		refuse(at, "needs one of 'size' and 'cdf'");
	if (!!t->rate + !!t->load + !!t->tier + !!t->closed != 1)
		refuse(at, "needs one of 'rate' and 'load'%s",
		       t->kind == TRAFFIC_REQUESTS ? " and 'closed'" : "");
	if (!t->flows && !t->duration)
		refuse(at, "needs 'flows' or 'duration'");
	if (t->closed && t->periodic)
		refuse(at, "'periodic' does not go with 'closed', where answers set the time");
	pair_all(at, t);
	if (t->tier) {
		double crossings = tier_crossings(plan, t->tier, t->pairs, t->n_pairs, &capacity);

		if (!crossings)
			refuse(at, "no flow uses the tier '%s'", t->tier);
		t->load = t->share * capacity / crossings;
	}
}

static void check_incast(const struct place *at, struct traffic *t)
{
	if (t->to.n != 1)
		refuse(at, "an incast goes to one node");
	pair_all(at, t);
	if (!t->fan)
		t->fan = t->n_pairs;
	if (!t->rounds)
		t->rounds = 1;
}

static void check_udp(const struct place *at, struct traffic *t)
{
	if (!t->size)
		t->size = UDP_SIZE;
	if (t->size < UDP_LEAST || t->size > UDP_MOST)
		refuse(at, "a packet has %d to %d bytes", UDP_LEAST, UDP_MOST);
	if (!t->rate_bps == !t->every)
		refuse(at, "needs one of 'rate' and 'every'");
	if (!t->duration && !t->stop && !t->until_end)
		refuse(at, "needs 'duration' or 'stop'");
	if (!t->on != !t->off)
		refuse(at, "'on' and 'off' go together");
	if (!t->burst)
		t->burst = 1;
	pair_in_turn(at, t);
}

static void check_program(const struct place *at, struct traffic *t)
{
	if (!*t->command)
		refuse(at, "the command is empty");
	if (strchr(t->label, '/') || *t->label == '.')
		refuse(at, "the label is to name files, which '%s' cannot", t->label);
	if (t->timeout && (t->stop || t->until_end))
		refuse(at, "'timeout' does not go with 'stop', which ends the program");
}

/* A plan ends */
static void check_end(const struct plan *p, const struct place *at)
{
	for (size_t i = 0; i < p->n_traffic; i++)
		if (!p->traffic[i].until_end)
			return;
	if (p->n_traffic)
		refuse(at, "all of it stops at the end, and nothing has an end of its own");
}

void traffic_read(struct plan *p, const struct place *at, json_t *value)
{
	plan = p;
	p->n_traffic = array(at, value, 0, SIZE_MAX);
	p->traffic = xcalloc(p->n_traffic, sizeof(*p->traffic));
	for (size_t i = 0; i < p->n_traffic; i++) {
		const struct place item = { at, NULL, i }, in = { &item, "kind", 0 };
		json_t *object = json_array_get(value, i), *kind = json_object_get(object, "kind");
		struct traffic *t = &p->traffic[i];
		size_t k = 0;

		if (!json_is_object(object))
			refuse(&item, "not an object");
		if (!kind)
			refuse(&item, "'kind' is missing");
		while (k < TRAFFIC_KINDS && strcmp(traffic_kind_name[k], string(&in, kind)))
			k++;
		if (k == TRAFFIC_KINDS)
			refuse(&in, "'%s' is not long, requests, flows, incast, list, udp or program",
			       json_string_value(kind));
		t->kind = k;
		t->label = "";
		read_object_of(1U << k, &item, object, fields, t);
		switch (t->kind) {
		case TRAFFIC_LONG:
			check_long(&item, t);
			break;
		case TRAFFIC_REQUESTS:
		case TRAFFIC_FLOWS:
			check_random(&item, t);
			break;
		case TRAFFIC_INCAST:
			check_incast(&item, t);
			break;
		case TRAFFIC_UDP:
			check_udp(&item, t);
			break;
		case TRAFFIC_PROGRAM:
			check_program(&item, t);
			break;
		default:
			break;
		}
		check_stop(&item, t);
	}
	check_end(p, at);
}
