// SPDX-License-Identifier: GPL-2.0
/*
 * From JSON to struct plan. An object is read by a table of its fields. Every message names the
 * file, the place in it and the reason.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <err.h>
#include <jansson.h>
#include <limits.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "../common/alloc.h"
#include "../common/units.h"
#include "plan.h"

#define MTU_MIN		1280	/* what IPv6 needs */
#define MTU_MAX		65535
#define QUEUE_MAX	10000000
#define RATE_MIN	1e3	/* bit/s */
#define RATE_MAX	1e12	/* 125 bytes take 1 ns, the step of the clock */
#define DELAY_MAX	(100 * NSEC)
#define WORDS_MAX	1000	/* bytes of tc's words */
#define TXQUEUELEN	10000

/* Where in the document: a list from the innermost to the whole */
struct place {
	const struct place *in;
	const char *key;	/* or else @index */
	size_t index;
};

struct field {
	const char *name;
	void (*read)(const struct place *at, json_t *value, void *to);
	size_t offset;
	bool required;
};

/* @to: the value's offset; 0 for a function that stores several values of the object */
#define FIELD(key, function, to)	{ .name = key, .read = function, .offset = to }
#define NEEDED(key, function, to) \
	{ .name = key, .read = function, .offset = to, .required = true }

static const char *file;

static void put_place(FILE *f, const struct place *at)
{
	if (!at)
		return;
	put_place(f, at->in);
	if (!at->key)
		fprintf(f, "[%zu]", at->index);
	else
		fprintf(f, "%s%s", at->in ? "." : "", at->key);
}

/* "FILE: PLACE", to be freed */
static char *place_text(const struct place *at)
{
	char *text;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		err(1, "memory");
	fprintf(f, "%s%s", file, at ? ": " : "");
	put_place(f, at);
	if (fclose(f))
		err(1, "memory");
	return text;
}

static void __attribute__((noreturn, format(printf, 2, 3)))
refuse(const struct place *at, const char *fmt, ...)
{
	char why[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	errx(2, "%s: %s", place_text(at), why);
}

/* --- values --------------------------------------------------------------------------------- */

static const char *string(const struct place *at, json_t *value)
{
	if (!json_is_string(value))
		refuse(at, "not a string");
	return json_string_value(value);
}

static size_t array(const struct place *at, json_t *value, size_t least, size_t most)
{
	size_t n = json_array_size(value);

	if (!json_is_array(value))
		refuse(at, "not an array");
	if (n < least || n > most)
		refuse(at, "%zu of them, not %zu%s", n, least, least == most ? "" : " or more");
	return n;
}

static void read_bool(const struct place *at, json_t *value, void *to)
{
	if (!json_is_boolean(value))
		refuse(at, "neither true nor false");
	*(bool *)to = json_is_true(value);
}

static u32 whole(const struct place *at, json_t *value, u32 min, u32 max)
{
	if (!json_is_integer(value) || json_integer_value(value) < min ||
	    json_integer_value(value) > max)
		refuse(at, "not a whole number from %u to %u", min, max);
	return json_integer_value(value);
}

static void read_mtu(const struct place *at, json_t *value, void *to)
{
	*(u32 *)to = whole(at, value, MTU_MIN, MTU_MAX);
}

static void read_txqueuelen(const struct place *at, json_t *value, void *to)
{
	*(u32 *)to = whole(at, value, 1, QUEUE_MAX);
}

static void read_rate(const struct place *at, json_t *value, void *to)
{
	const char *s = string(at, value);
	char *where = place_text(at);
	double rate = parse_rate(where, s, false);

	free(where);
	if (rate < RATE_MIN || rate > RATE_MAX)
		refuse(at, "'%s' is out of range (1kbit to 1tbit)", s);
	*(double *)to = rate;
}

static void read_delay(const struct place *at, json_t *value, void *to)
{
	const char *s = string(at, value);
	char *where = place_text(at);
	u64 delay = parse_time(where, s);

	free(where);
	if (delay > DELAY_MAX)
		refuse(at, "'%s' is out of range (0 to 100s)", s);
	*(u64 *)to = delay;
}

/* A name that ip and the file system accept */
static const char *name(const struct place *at, json_t *value, size_t most)
{
	const char *s = string(at, value);

	if (!*s || strlen(s) > most)
		refuse(at, "'%s' has not 1 to %zu characters", s, most);
	for (size_t i = 0; s[i]; i++)
		if (!isalnum((unsigned char)s[i]) && (!i || !strchr("._-", s[i])))
			refuse(at,
			       "'%s' has other characters than letters, digits and, not first, . _ -",
			       s);
	return s;
}

static void read_prefix(const struct place *at, json_t *value, void *to)
{
	const char *s = string(at, value);

	*(const char **)to = *s ? name(at, value, 64) : s;
}

static void read_node_name(const struct place *at, json_t *value, void *to)
{
	*(const char **)to = name(at, value, 64);
}

static void read_dev(const struct place *at, json_t *value, void *to)
{
	const char *dev = name(at, value, IFNAMSIZ - 1);

	if (!strcmp(dev, "lo") || !strcmp(dev, "all") || !strcmp(dev, "default"))
		refuse(at, "'%s' is taken by the kernel", dev);
	*(const char **)to = dev;
}

static void read_mac(const struct place *at, json_t *value, void *to)
{
	const char *s = string(at, value);
	static const u8 none[ETH_BYTES];
	struct end *e = to;
	int used = 0;

	if (strlen(s) != 17 ||
	    sscanf(s, "%2hhx:%2hhx:%2hhx:%2hhx:%2hhx:%2hhx%n", &e->mac[0], &e->mac[1], &e->mac[2],
		   &e->mac[3], &e->mac[4], &e->mac[5], &used) != ETH_BYTES || used != 17)
		refuse(at, "'%s' is not a MAC address such as 02:00:00:00:01:fe", s);
	if (e->mac[0] & 1 || !memcmp(e->mac, none, ETH_BYTES))
		refuse(at, "'%s' is not the MAC address of one device", s);
	e->has_mac = true;
}

static bool multicast(const struct address *a)
{
	return a->family == AF_INET ? a->ip[0] >> 4 == 14 : a->ip[0] == 0xff;
}

static void parse_ip(const struct place *at, const char *s, size_t len, struct address *a)
{
	char ip[INET6_ADDRSTRLEN];

	a->text = s;
	a->family = memchr(s, ':', len) ? AF_INET6 : AF_INET;
	a->bytes = a->family == AF_INET6 ? sizeof(struct in6_addr) : sizeof(struct in_addr);
	a->prefix = a->bytes * CHAR_BIT;
	if (len < sizeof(ip)) {
		memcpy(ip, s, len);
		ip[len] = 0;
	}
	if (len >= sizeof(ip) || inet_pton(a->family, ip, a->ip) != 1)
		refuse(at, "'%s' is not an IP address", s);
}

/* ADDRESS/PREFIX */
static void parse_cidr(const struct place *at, const char *s, struct address *a)
{
	const char *slash = strchr(s, '/');
	unsigned int prefix;
	char end;

	if (!slash)
		refuse(at, "'%s' has no prefix length such as /24", s);
	parse_ip(at, s, slash - s, a);
	if (!isdigit((unsigned char)slash[1]) || sscanf(slash + 1, "%u%c", &prefix, &end) != 1 ||
	    prefix > a->prefix)
		refuse(at, "'%s' has no prefix length of 0 to %u", s, a->prefix);
	a->prefix = prefix;
}

static bool same_net(const struct address *a, const struct address *b, unsigned int bits)
{
	size_t whole_bytes = bits / CHAR_BIT;
	u8 mask = 0xff00 >> bits % CHAR_BIT;

	return a->family == b->family && !memcmp(a->ip, b->ip, whole_bytes) &&
	       (!(bits % CHAR_BIT) || !((a->ip[whole_bytes] ^ b->ip[whole_bytes]) & mask));
}

static void read_addresses(const struct place *at, json_t *value, void *to)
{
	struct addresses *list = to;

	list->n = array(at, value, 0, SIZE_MAX);
	list->at = xcalloc(list->n, sizeof(*list->at));
	for (size_t i = 0; i < list->n; i++) {
		const struct place item = { at, NULL, i };
		struct address *a = &list->at[i];

		parse_cidr(&item, string(&item, json_array_get(value, i)), a);
		if (multicast(a))
			refuse(&item, "'%s' is a multicast address", a->text);
	}
}

/* tc's words are one line for "tc -batch" */
static void read_queue(const struct place *at, json_t *value, void *to)
{
	const char *s = string(at, value);

	if (!*s || strlen(s) > WORDS_MAX || s[strcspn(s, "\n\\#\"'")])
		refuse(at, "not 1 to %d characters of tc's words, such as \"red limit 1000000 ...\"",
		       WORDS_MAX);
	*(const char **)to = s;
}

static void read_sysctls(const struct place *at, json_t *value, void *to)
{
	struct sysctls *list = to;
	const char *key;
	json_t *item;

	if (!json_is_object(value))
		refuse(at, "not an object");
	list->at = xcalloc(json_object_size(value), sizeof(*list->at));
	json_object_foreach(value, key, item) {
		const struct place in = { at, key, 0 };
		struct sysctl *s = &list->at[list->n++];
		char *text;

		if (strncmp(key, "net.", 4) || strstr(key, "..") || key[strlen(key) - 1] == '.')
			refuse(&in, "not a name below net.");
		for (const char *c = key; *c; c++)
			if (!isalnum((unsigned char)*c) && !strchr("._-", *c))
				refuse(&in, "not a name of letters, digits, . _ -");
		s->name = key;
		if (json_is_integer(item)) {
			if (asprintf(&text, "%lld", (long long)json_integer_value(item)) < 0)
				err(1, "memory");
			s->value = text;
		} else {
			s->value = string(&in, item);
			if (strchr(s->value, '\n'))
				refuse(&in, "has a line feed");
		}
	}
}

/* --- objects -------------------------------------------------------------------------------- */

static void read_object(const struct place *at, json_t *value, const struct field *fields,
			void *to)
{
	const struct field *f;
	const char *key;
	json_t *item;

	if (!json_is_object(value))
		refuse(at, "not an object");
	json_object_foreach(value, key, item) {
		const struct place in = { at, key, 0 };
		char known[256] = "";

		for (f = fields; f->name && strcmp(f->name, key); f++)
			snprintf(known + strlen(known), sizeof(known) - strlen(known), "%s%s",
				 f > fields ? ", " : "", f->name);
		if (!f->name)
			refuse(&in, "unknown field; there are %s", known);
	}
	/* in the table's order: a link's values are its ends' defaults */
	for (f = fields; f->name; f++) {
		const struct place in = { at, f->name, 0 };

		item = json_object_get(value, f->name);
		if (item)
			f->read(&in, item, (char *)to + f->offset);
		else if (f->required)
			refuse(at, "'%s' is missing", f->name);
	}
}

static void read_to(const struct place *at, json_t *value, void *to)
{
	const char *s = string(at, value);
	struct route *r = to;
	u8 zero[sizeof(r->to.ip)] = { 0 };
	struct address net;

	if (!strcmp(s, "default")) {
		r->to.text = s;		/* the family is that of the first "via" */
		return;
	}
	parse_cidr(at, s, &r->to);
	net = r->to;
	for (unsigned int bit = net.prefix; bit < net.bytes * CHAR_BIT; bit++)
		if (net.ip[bit / CHAR_BIT] & 0x80 >> bit % CHAR_BIT)
			refuse(at, "'%s' has bits beyond its prefix", s);
	if (multicast(&net) && memcmp(net.ip, zero, net.bytes))
		refuse(at, "'%s' is a multicast network", s);
}

static void read_via(const struct place *at, json_t *value, void *to)
{
	struct addresses *list = to;
	bool one = json_is_string(value);

	list->n = one ? 1 : array(at, value, 1, SIZE_MAX);
	list->at = xcalloc(list->n, sizeof(*list->at));
	for (size_t i = 0; i < list->n; i++) {
		const struct place item = { at, NULL, i };
		const struct place *where = one ? at : &item;
		const char *s = string(where, one ? value : json_array_get(value, i));

		parse_ip(where, s, strlen(s), &list->at[i]);
		if (list->at[i].family != list->at[0].family)
			refuse(where, "'%s' and '%s' are not of one family", list->at[0].text, s);
	}
}

static const struct field route_fields[] = {
	NEEDED("to", read_to, 0),
	NEEDED("via", read_via, offsetof(struct route, via)),
	{ 0 }
};

static void read_routes(const struct place *at, json_t *value, void *to)
{
	struct node *node = to;

	node->n_routes = array(at, value, 0, SIZE_MAX);
	node->routes = xcalloc(node->n_routes, sizeof(*node->routes));
	for (size_t i = 0; i < node->n_routes; i++) {
		const struct place item = { at, NULL, i };
		struct route *r = &node->routes[i];

		read_object(&item, json_array_get(value, i), route_fields, r);
		if (!r->to.family) {
			r->to.family = r->via.at[0].family;
			r->to.bytes = r->via.at[0].bytes;
		}
		if (r->to.family != r->via.at[0].family)
			refuse(&item, "'%s' and '%s' are not of one family", r->to.text,
			       r->via.at[0].text);
	}
}

static const struct field node_fields[] = {
	NEEDED("name", read_node_name, offsetof(struct node, name)),
	FIELD("exists", read_bool, offsetof(struct node, exists)),
	FIELD("sysctl", read_sysctls, offsetof(struct node, sysctls)),
	FIELD("routes", read_routes, 0),
	{ 0 }
};

/* What is known by name while the document is read: json_t integers, the index */
static json_t *node_index, *dev_index, *address_index;

/* Whether @key is new in @index; adds it then */
static bool is_new(json_t *index, const char *key, size_t value)
{
	if (json_object_get(index, key))
		return false;
	if (json_object_set_new_nocheck(index, key, json_integer(value)))
		err(1, "memory");
	return true;
}

static void read_nodes(const struct place *at, json_t *value, void *to)
{
	struct plan *p = to;

	p->n_nodes = array(at, value, 1, SIZE_MAX);
	p->nodes = xcalloc(p->n_nodes, sizeof(*p->nodes));
	for (size_t i = 0; i < p->n_nodes; i++) {
		const struct place item = { at, NULL, i };
		struct node *node = &p->nodes[i];

		read_object(&item, json_array_get(value, i), node_fields, node);
		if (!is_new(node_index, node->name, i))
			refuse(&item, "'%s' is another node's name", node->name);
		if (node->exists && node->sysctls.n)
			refuse(&item, "sysctl has no place in a node that exists");
	}
}

static struct plan *the_plan;

static void read_end_node(const struct place *at, json_t *value, void *to)
{
	const char *s = string(at, value);
	json_t *index = json_object_get(node_index, s);

	if (!index)
		refuse(at, "no node '%s'", s);
	*(struct node **)to = &the_plan->nodes[json_integer_value(index)];
}

static const struct field end_fields[] = {
	NEEDED("node", read_end_node, offsetof(struct end, node)),
	NEEDED("dev", read_dev, offsetof(struct end, dev)),
	FIELD("mac", read_mac, 0),
	FIELD("addresses", read_addresses, offsetof(struct end, addresses)),
	FIELD("rate", read_rate, offsetof(struct end, rate)),
	FIELD("delay", read_delay, offsetof(struct end, delay)),
	FIELD("queue", read_queue, offsetof(struct end, queue)),
	{ 0 }
};

static void check_end(const struct place *at, struct end *e, size_t link)
{
	const struct place addresses = { at, "addresses", 0 };
	char key[IFNAMSIZ + 80];

	snprintf(key, sizeof(key), "%s %s", e->node->name, e->dev);
	if (!is_new(dev_index, key, link))
		refuse(at, "'%s' has a device '%s' already: links[%lld]", e->node->name, e->dev,
		       (long long)json_integer_value(json_object_get(dev_index, key)));
	if (e->queue && !e->rate)
		refuse(at, "a queue needs a rate: without one no packet waits");
	for (size_t i = 0; i < e->addresses.n; i++) {
		const struct place item = { &addresses, NULL, i };
		const struct address *a = &e->addresses.at[i];
		char ip[INET6_ADDRSTRLEN];

		inet_ntop(a->family, a->ip, ip, sizeof(ip));
		if (!is_new(address_index, ip, link))
			refuse(&item, "'%s' is used twice: links[%lld]", ip,
			       (long long)json_integer_value(json_object_get(address_index, ip)));
	}
}

static void read_ends(const struct place *at, json_t *value, void *to)
{
	struct link *l = to;

	array(at, value, 2, 2);
	for (int i = 0; i < 2; i++) {
		const struct place item = { at, NULL, i };
		struct end *e = &l->end[i];

		read_object(&item, json_array_get(value, i), end_fields, e);
		e->link = l;
		e->far = &l->end[!i];
		check_end(&item, e, l - the_plan->links);
	}
}

static void read_both_rates(const struct place *at, json_t *value, void *to)
{
	struct link *l = to;

	read_rate(at, value, &l->end[0].rate);
	l->end[1].rate = l->end[0].rate;
}

static void read_both_delays(const struct place *at, json_t *value, void *to)
{
	struct link *l = to;

	read_delay(at, value, &l->end[0].delay);
	l->end[1].delay = l->end[0].delay;
}

static void read_both_queues(const struct place *at, json_t *value, void *to)
{
	struct link *l = to;

	read_queue(at, value, &l->end[0].queue);
	l->end[1].queue = l->end[0].queue;
}

static const struct field link_fields[] = {
	FIELD("rate", read_both_rates, 0),
	FIELD("delay", read_both_delays, 0),
	FIELD("queue", read_both_queues, 0),
	NEEDED("ends", read_ends, 0),
	FIELD("mtu", read_mtu, offsetof(struct link, mtu)),
	FIELD("txqueuelen", read_txqueuelen, offsetof(struct link, txqueuelen)),
	FIELD("offloads", read_bool, offsetof(struct link, offloads)),
	FIELD("neighbours", read_bool, offsetof(struct link, neighbours)),
	{ 0 }
};

static void check_link(const struct place *at, const struct link *l)
{
	const struct end *e = l->end;

	if (e[0].has_mac && e[1].has_mac && !memcmp(e[0].mac, e[1].mac, ETH_BYTES))
		refuse(at, "both ends have the same MAC address");
}

static void read_links(const struct place *at, json_t *value, void *to)
{
	struct plan *p = to;

	p->n_links = array(at, value, 0, SIZE_MAX);
	p->links = xcalloc(p->n_links, sizeof(*p->links));
	for (size_t i = 0; i < p->n_links; i++) {
		const struct place item = { at, NULL, i };
		struct link *l = &p->links[i];

		l->txqueuelen = TXQUEUELEN;
		read_object(&item, json_array_get(value, i), link_fields, l);
		check_link(&item, l);
	}
}

static const struct field plan_fields[] = {
	FIELD("prefix", read_prefix, offsetof(struct plan, prefix)),
	FIELD("machine_sysctl", read_sysctls, offsetof(struct plan, machine)),
	FIELD("sysctl", read_sysctls, offsetof(struct plan, sysctls)),
	NEEDED("nodes", read_nodes, 0),
	FIELD("links", read_links, 0),
	{ 0 }
};

/* --- the whole ------------------------------------------------------------------------------ */

static void find_ends(struct plan *p)
{
	size_t i, *room = xcalloc(p->n_nodes, sizeof(*room));
	struct end *e;

	for (i = 0; i < 2 * p->n_links; i++)
		room[p->links[i / 2].end[i % 2].node - p->nodes]++;
	for (i = 0; i < p->n_nodes; i++)
		p->nodes[i].end = xcalloc(room[i], sizeof(struct end *));
	for (i = 0; i < 2 * p->n_links; i++) {
		e = &p->links[i / 2].end[i % 2];
		e->node->end[e->node->n_ends++] = e;
	}
	free(room);
}

/* Does the other end of one of the node's links have this address? */
static bool is_next_hop(const struct node *node, const struct address *via)
{
	for (size_t i = 0; i < node->n_ends; i++) {
		const struct addresses *far = &node->end[i]->far->addresses;
		const struct addresses *own = &node->end[i]->addresses;

		for (size_t j = 0; j < far->n; j++)
			for (size_t k = 0; k < own->n; k++)
				if (same_net(&far->at[j], via, via->bytes * CHAR_BIT) &&
				    same_net(&own->at[k], via, own->at[k].prefix))
					return true;
	}
	return false;
}

/* The neighbours of a node that exists may be in an earlier plan. */
static void check_routes(const struct plan *p)
{
	static const struct place nodes = { NULL, "nodes", 0 };

	for (size_t i = 0; i < p->n_nodes; i++) {
		const struct node *node = &p->nodes[i];
		const struct place in = { &nodes, NULL, i }, routes = { &in, "routes", 0 };

		for (size_t j = 0; j < node->n_routes && !node->exists; j++) {
			const struct place item = { &routes, NULL, j };
			const struct addresses *via = &node->routes[j].via;

			for (size_t k = 0; k < via->n; k++)
				if (!is_next_hop(node, &via->at[k]))
					refuse(&item, "no link of '%s' leads to %s", node->name,
					       via->at[k].text);
		}
	}
}

void plan_read(struct plan *p, const char *path)
{
	bool input = !strcmp(path, "-");
	json_error_t error;
	json_t *document;
	FILE *f;

	file = input ? "standard input" : path;
	f = input ? stdin : fopen(path, "r");
	if (!f)
		err(2, "%s", file);
	document = json_loadf(f, JSON_REJECT_DUPLICATES, &error);
	if (!document)
		errx(2, "%s:%d:%d: not JSON: %s", file, error.line, error.column, error.text);
	node_index = json_object();
	dev_index = json_object();
	address_index = json_object();
	*p = (struct plan){ .file = file, .prefix = "" };
	the_plan = p;
	read_object(NULL, document, plan_fields, p);
	find_ends(p);
	check_routes(p);
}

const char *plan_place(const struct plan *p, const struct end *e)
{
	static char text[PATH_MAX];

	snprintf(text, sizeof(text), "%s: links[%td].ends[%d]", p->file, e->link - p->links,
		 e == &e->link->end[1]);
	return text;
}
