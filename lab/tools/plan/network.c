// SPDX-License-Identifier: GPL-2.0
/* From JSON to struct plan: nodes and links. traffic.c and observe.c read the rest. */
#include <arpa/inet.h>
#include <ctype.h>
#include <err.h>
#include <fnmatch.h>
#include <limits.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "../common/alloc.h"
#include "document.h"
#include "plan.h"

#define MTU_MIN		1280	/* what IPv6 needs */
#define MTU_MAX		65535
#define QUEUE_MAX	32767		/* Linux 7 */
#define WORDS_MAX	1000	/* bytes of tc's words */
#define TXQUEUELEN	10000
#define WORD		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"

static void read_mtu(const struct place *at, json_t *value, void *to)
{
	*(u32 *)to = whole(at, value, MTU_MIN, MTU_MAX);
}

static void read_txqueuelen(const struct place *at, json_t *value, void *to)
{
	*(u32 *)to = whole(at, value, 1, QUEUE_MAX);
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

bool same_net(const struct address *a, const struct address *b, unsigned int bits)
{
	size_t whole_bytes = bits / CHAR_BIT;
	u8 mask = 0xff00 >> bits % CHAR_BIT;

	return a->family == b->family && !memcmp(a->ip, b->ip, whole_bytes) &&
	       (!(bits % CHAR_BIT) || !((a->ip[whole_bytes] ^ b->ip[whole_bytes]) & mask));
}

bool same_address(const struct address *a, const struct address *b)
{
	return same_net(a, b, a->bytes * CHAR_BIT);
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

/* A string of one line, or a whole number */
static const char *value_text(const struct place *at, json_t *value)
{
	const char *s;
	char *text;

	if (json_is_integer(value)) {
		if (asprintf(&text, "%lld", (long long)json_integer_value(value)) < 0)
			err(1, "memory");
		return text;
	}
	s = string(at, value);
	if (strchr(s, '\n'))
		refuse(at, "has a line feed");
	return s;
}

void read_values(const struct place *at, json_t *value, struct sysctls *list,
		 void (*check)(const struct place *at, const char *key))
{
	const char *key;
	json_t *item;

	if (!json_is_object(value))
		refuse(at, "not an object");
	list->at = xcalloc(json_object_size(value), sizeof(*list->at));
	json_object_foreach(value, key, item) {
		const struct place in = { at, key, 0 };

		check(&in, key);
		list->at[list->n++] = (struct sysctl){ key, value_text(&in, item) };
	}
}

static void check_sysctl(const struct place *at, const char *key)
{
	if (strncmp(key, "net.", 4) || strstr(key, "..") || key[strlen(key) - 1] == '.')
		refuse(at, "not a name below net.");
	for (const char *c = key; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("._-", *c))
			refuse(at, "not a name of letters, digits, . _ -");
}

static void read_sysctls(const struct place *at, json_t *value, void *to)
{
	read_values(at, value, to, check_sysctl);
}

static void check_word(const struct place *at, const char *key)
{
	if (!*key || strspn(key, WORD) != strlen(key))
		refuse(at, "not a name of letters, digits and _");
}

static void read_modules(const struct place *at, json_t *value, void *to)
{
	struct plan *p = to;
	const char *key;
	json_t *item;

	if (!json_is_object(value))
		refuse(at, "not an object");
	p->modules = xcalloc(json_object_size(value), sizeof(*p->modules));
	json_object_foreach(value, key, item) {
		const struct place in = { at, key, 0 };
		struct module *m = &p->modules[p->n_modules++];

		check_word(&in, key);
		m->name = key;
		read_values(&in, item, &m->parameters, check_word);
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

void read_route(const struct place *at, json_t *value, void *to)
{
	struct route *r = to;

	read_object(at, value, route_fields, r);
	if (!r->to.family) {
		r->to.family = r->via.at[0].family;
		r->to.bytes = r->via.at[0].bytes;
	}
	if (r->to.family != r->via.at[0].family)
		refuse(at, "'%s' and '%s' are not of one family", r->to.text, r->via.at[0].text);
}

static void read_routes(const struct place *at, json_t *value, void *to)
{
	struct node *node = to;

	node->n_routes = array(at, value, 0, SIZE_MAX);
	node->routes = xcalloc(node->n_routes, sizeof(*node->routes));
	for (size_t i = 0; i < node->n_routes; i++) {
		const struct place item = { at, NULL, i };

		read_route(&item, json_array_get(value, i), &node->routes[i]);
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

static void read_nodes(const struct place *at, json_t *value, void *to)
{
	struct plan *p = to;

	p->n_nodes = array(at, value, 1, SIZE_MAX);
	p->nodes = xcalloc(p->n_nodes, sizeof(*p->nodes));
	for (size_t i = 0; i < p->n_nodes; i++) {
		const struct place item = { at, NULL, i };
		struct node *node = &p->nodes[i];

		read_object(&item, json_array_get(value, i), node_fields, node);
		if (!index_new(node_index, node->name, i))
			refuse(&item, "'%s' is another node's name", node->name);
		if (node->exists && node->sysctls.n)
			refuse(&item, "sysctl has no place in a node that exists");
	}
}

static struct plan *the_plan;

const struct node *node_named(const struct place *at, const char *s)
{
	long long index = index_get(node_index, s);

	if (index < 0)
		refuse(at, "no node '%s'", s);
	return &the_plan->nodes[index];
}

static void read_end_node(const struct place *at, json_t *value, void *to)
{
	*(const struct node **)to = node_named(at, string(at, value));
}

static const struct field end_fields[] = {
	NEEDED("node", read_end_node, offsetof(struct end, node)),
	NEEDED("dev", read_dev, offsetof(struct end, dev)),
	FIELD("mac", read_mac, 0),
	FIELD("addresses", read_addresses, offsetof(struct end, addresses)),
	FIELD("rate", read_rate, offsetof(struct end, rate)),
	FIELD("delay", read_delay, offsetof(struct end, delay)),
	FIELD("jitter", read_jitter, offsetof(struct end, line)),
	FIELD("loss", read_loss, offsetof(struct end, line)),
	FIELD("reorder", read_reorder, offsetof(struct end, line)),
	FIELD("duplicate", read_duplicate, offsetof(struct end, line)),
	FIELD("corrupt", read_corrupt, offsetof(struct end, line)),
	FIELD("trace", read_trace, offsetof(struct end, line)),
	FIELD("queue", read_queue, offsetof(struct end, queue)),
	{ 0 }
};

static void check_end(const struct place *at, struct end *e, size_t link)
{
	const struct place addresses = { at, "addresses", 0 };
	char key[IFNAMSIZ + 80];

	snprintf(key, sizeof(key), "%s %s", e->node->name, e->dev);
	if (!index_new(dev_index, key, link))
		refuse(at, "'%s' has a device '%s' already: links[%lld]", e->node->name, e->dev,
		       index_get(dev_index, key));
	if (e->rate && e->line.instant)
		refuse(at, "a rate and a trace exclude each other");
	if (e->queue && !e->rate && !e->line.instant)
		refuse(at, "a queue needs a rate: without one no packet waits");
	for (size_t i = 0; i < e->addresses.n; i++) {
		const struct place item = { &addresses, NULL, i };
		const struct address *a = &e->addresses.at[i];
		char ip[INET6_ADDRSTRLEN];

		inet_ntop(a->family, a->ip, ip, sizeof(ip));
		if (!index_new(address_index, ip, link))
			refuse(&item, "'%s' is used twice: links[%lld]", ip,
			       index_get(address_index, ip));
	}
}

static void read_ends(const struct place *at, json_t *value, void *to)
{
	struct link *l = to;

	array(at, value, 2, 2);
	l->end[1] = l->end[0];
	for (int i = 0; i < 2; i++) {
		const struct place item = { at, NULL, i };
		struct end *e = &l->end[i];

		read_object(&item, json_array_get(value, i), end_fields, e);
		e->link = l;
		e->far = &l->end[!i];
		check_end(&item, e, l - the_plan->links);
	}
}

static void read_tier(const struct place *at, json_t *value, void *to)
{
	*(const char **)to = name(at, value, 64);
}

/* in the table's order: the ends come when their defaults are known */
static const struct field link_fields[] = {
	FIELD("rate", read_rate, offsetof(struct link, end[0].rate)),
	FIELD("delay", read_delay, offsetof(struct link, end[0].delay)),
	FIELD("jitter", read_jitter, offsetof(struct link, end[0].line)),
	FIELD("loss", read_loss, offsetof(struct link, end[0].line)),
	FIELD("reorder", read_reorder, offsetof(struct link, end[0].line)),
	FIELD("duplicate", read_duplicate, offsetof(struct link, end[0].line)),
	FIELD("corrupt", read_corrupt, offsetof(struct link, end[0].line)),
	FIELD("trace", read_trace, offsetof(struct link, end[0].line)),
	FIELD("queue", read_queue, offsetof(struct link, end[0].queue)),
	NEEDED("ends", read_ends, 0),
	FIELD("mtu", read_mtu, offsetof(struct link, mtu)),
	FIELD("txqueuelen", read_txqueuelen, offsetof(struct link, txqueuelen)),
	FIELD("offloads", read_bool, offsetof(struct link, offloads)),
	FIELD("neighbours", read_bool, offsetof(struct link, neighbours)),
	FIELD("tier", read_tier, offsetof(struct link, tier)),
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
		l->exact = p->exact || line_used(&l->end[0].line) || line_used(&l->end[1].line);
		check_link(&item, l);
	}
}

static void keep(const struct place *at, json_t *value, void *to)
{
	(void)at;
	*(json_t **)to = value;
}

static const struct field plan_fields[] = {
	FIELD("prefix", read_prefix, offsetof(struct plan, prefix)),
	FIELD("modules", read_modules, 0),
	FIELD("machine_sysctl", read_sysctls, offsetof(struct plan, machine)),
	FIELD("sysctl", read_sysctls, offsetof(struct plan, sysctls)),
	FIELD("exact", read_bool, offsetof(struct plan, exact)),
	NEEDED("nodes", read_nodes, 0),
	FIELD("links", read_links, 0),
	/* these name nodes and devices: read when all are known */
	FIELD("traffic", keep, offsetof(struct plan, document.traffic)),
	FIELD("observe", keep, offsetof(struct plan, document.observe)),
	FIELD("record", keep, offsetof(struct plan, document.record)),
	FIELD("events", keep, offsetof(struct plan, document.events)),
	FIELD("must", keep, offsetof(struct plan, document.must)),
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

bool is_next_hop(const struct node *node, const struct address *via)
{
	for (size_t i = 0; i < node->n_ends; i++) {
		const struct addresses *far = &node->end[i]->far->addresses;
		const struct addresses *own = &node->end[i]->addresses;

		for (size_t j = 0; j < far->n; j++)
			for (size_t k = 0; k < own->n; k++)
				if (same_address(&far->at[j], via) &&
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

/* Where there is traffic; without it, links may come in a later plan. */
static void check_reached(const struct plan *p)
{
	static const struct place nodes = { NULL, "nodes", 0 };

	for (size_t i = 0; i < p->n_nodes && p->document.traffic; i++) {
		const struct place in = { &nodes, NULL, i };

		if (!p->nodes[i].n_ends && !p->nodes[i].exists)
			refuse(&in, "no link reaches '%s'", p->nodes[i].name);
	}
}

static void read_rest(struct plan *p, const char *key, json_t *value,
		      void (*read)(struct plan *p, const struct place *at, json_t *value))
{
	const struct place at = { NULL, key, 0 };

	if (value)
		read(p, &at, value);
}

void plan_read(struct plan *p, const char *path)
{
	json_t *document = document_load(path);

	node_index = json_object();
	dev_index = json_object();
	address_index = json_object();
	*p = (struct plan){ .file = document_name(), .prefix = "", .exact = true };
	the_plan = p;
	read_object(NULL, document, plan_fields, p);
	find_ends(p);
	check_routes(p);
	check_reached(p);
	read_rest(p, "traffic", p->document.traffic, traffic_read);
	read_rest(p, "observe", p->document.observe, observe_read);
	read_rest(p, "record", p->document.record, record_read);
	read_rest(p, "events", p->document.events, events_read);
	read_rest(p, "must", p->document.must, must_read);
}

const char *plan_place(const struct plan *p, const struct end *e)
{
	static char text[PATH_MAX];

	snprintf(text, sizeof(text), "%s: links[%td].ends[%d]", p->file, e->link - p->links,
		 e == &e->link->end[1]);
	return text;
}

char *plan_netns(const struct plan *p, const struct node *node)
{
	char *text;

	if (asprintf(&text, "%s%s", p->prefix, node->name) < 0)
		err(1, "memory");
	return text;
}

const struct address *node_address(const struct node *node)
{
	for (size_t i = 0; i < node->n_ends; i++)
		if (node->end[i]->addresses.n)
			return &node->end[i]->addresses.at[0];
	return NULL;
}

struct nodes nodes_matching(const struct place *at, const struct plan *p, const char *pattern)
{
	struct nodes found = { xcalloc(p->n_nodes, sizeof(*found.at)), 0 };

	for (size_t i = 0; i < p->n_nodes; i++)
		if (!fnmatch(pattern, p->nodes[i].name, 0))
			found.at[found.n++] = &p->nodes[i];
	if (!found.n)
		refuse(at, "no node '%s'", pattern);
	return found;
}
