// SPDX-License-Identifier: GPL-2.0
/* The plan's traffic as flowgen's servers and generators */
#include <err.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>

#include "../common/alloc.h"
#include "../flowgen/config.h"
#include "../flowgen/netns.h"
#include "plan.h"

#define PORT		5201	/* of the first congestion control; each has its own */
#define UDP_PORT	5401	/* of the first flow */
#define PROGRAM_NS	(600 * NSEC)	/* timeout of a program that states none */
#define FRAME_BYTES	42	/* of Ethernet's, IPv4's and UDP's headers */

/* A server's control is that of its port, because it is set before listening. */
struct control {
	const char *name;	/* NULL: the system's */
	u16 port;
};

static struct {
	const struct plan *plan;
	struct work *work;
	struct netns **netns;		/* by node, NULL: not opened yet */
	json_t *hosts;			/* "NODE CONTROL": index into work->server */
	struct control *control;
	unsigned int controls;
	unsigned int udp;		/* flows so far */
	json_t *programs;		/* names of their files */
} made;

static struct netns *netns_of(const struct node *node)
{
	struct netns **ns = &made.netns[node - made.plan->nodes];

	if (!*ns)
		*ns = netns_open(plan_netns(made.plan, node));
	return *ns;
}

static bool same(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

/* Of flow @i of a list */
static struct sides listed_sides(const struct traffic *t, size_t i)
{
	const char *own = t->list[i].control;

	return own ? (struct sides){ own, own } : t->control;
}

static u16 port_of(const char *control)
{
	unsigned int i = 0;

	while (i < made.controls && !same(made.control[i].name, control))
		i++;
	if (i == made.controls) {
		made.control = xreallocarray(made.control, i + 1, sizeof(*made.control));
		made.control[made.controls++] = (struct control){ control, PORT + i };
	}
	return made.control[i].port;
}

static void fill_address(union addr *a, const struct node *node, u16 port)
{
	const struct address *from = node_address(node);

	memset(a, 0, sizeof(*a));
	a->sa.sa_family = from->family;
	if (from->family == AF_INET6) {
		memcpy(&a->v6.sin6_addr, from->ip, from->bytes);
		a->v6.sin6_port = htons(port);
	} else {
		memcpy(&a->v4.sin_addr, from->ip, from->bytes);
		a->v4.sin_port = htons(port);
	}
}

static void add_server(const struct node *node, const char *control)
{
	struct work *w = made.work;
	char key[128];
	struct config *cfg;

	snprintf(key, sizeof(key), "%s %s", node->name, control ? control : "");
	if (!index_new(made.hosts, key, w->servers))
		return;
	cfg = xcalloc(1, sizeof(*cfg));
	*cfg = (struct config){
		.mode = SERVE, .family = node_address(node)->family, .cc = control,
		.port = port_of(control), .tos = -1, .ready_fd = -1,
	};
	w->server = xreallocarray(w->server, w->servers + 1, sizeof(*w->server));
	w->server[w->servers++] = (struct server){ netns_of(node), cfg };
}

/* The index of a pair's server among the hosts of @cfg, which has room for it */
static u32 host_index(struct config *cfg, json_t *index, const struct node *node,
		      const char *control)
{
	u32 i = cfg->hosts;

	if (!index_new(index, node->name, i))
		return index_get(index, node->name);
	fill_address(&cfg->host[cfg->hosts++], node, port_of(control));
	add_server(node, control);
	return i;
}

/* @sides: the controls of these flows; of a list, those that have them */
static void add_paths(struct config *cfg, const struct traffic *t, struct sides sides)
{
	const char *control = cfg->pull ? sides.from : sides.to;	/* the server's */
	json_t *index = json_object();

	cfg->host = xcalloc(made.plan->n_nodes, sizeof(*cfg->host));
	cfg->path = xcalloc(t->n_pairs, sizeof(*cfg->path));
	for (size_t i = 0; i < t->n_pairs; i++) {
		const struct node *client = cfg->pull ? t->pairs[i].to : t->pairs[i].from;
		const struct node *server = cfg->pull ? t->pairs[i].from : t->pairs[i].to;

		if (t->list && (!same(listed_sides(t, i).from, sides.from) ||
				!same(listed_sides(t, i).to, sides.to)))
			continue;
		cfg->path[cfg->paths] = (struct path){
			netns_of(client), server->name, host_index(cfg, index, server, control)
		};
		if (t->list)
			cfg->list[cfg->flows++] = (struct arrival){
				.at = t->list[i].start, .size = t->list[i].size, .id = i,
				.path = cfg->paths,
			};
		cfg->paths++;
	}
	json_decref(index);
}

static struct config *add_client(const struct traffic *t, struct sides sides)
{
	static const struct {
		enum mode mode;
		bool pull;
	} of[] = {
		[TRAFFIC_LONG] = { LONG, false },
		[TRAFFIC_REQUESTS] = { RPC, true },
		[TRAFFIC_FLOWS] = { RPC, false },
		[TRAFFIC_INCAST] = { INCAST, true },
		[TRAFFIC_LIST] = { RPC, false },
		[TRAFFIC_UDP] = { UDP, false },
		[TRAFFIC_PROGRAM] = { PROGRAM, false },
	};
	const bool pull = of[t->kind].pull || t->pull;
	struct work *w = made.work;
	struct config *cfg;

	w->client = xreallocarray(w->client, w->clients + 1, sizeof(*w->client));
	cfg = &w->client[w->clients++];
	*cfg = (struct config){
		.mode = of[t->kind].mode, .pull = pull,
		.kind = traffic_kind_name[t->kind],
		.cc = pull ? sides.to : sides.from,
		.tos = -1, .ready_fd = -1, .label = t->label,
		/* entries draw different flows from one seed */
		.seed = w->seed + 1000000007ULL * (w->clients - 1),
		.size = t->size, .start = t->start, .duration = t->duration,
		.timeout = t->timeout, .stagger = t->stagger, .rate = t->rate,
		.periodic = t->periodic, .persist = t->persist || t->kind == TRAFFIC_INCAST,
		.closed = t->closed, .flows = t->flows, .fan = t->fan, .count = t->rounds,
		.period = t->period, .jitter = t->jitter,
		.stop = t->stop, .until_end = t->until_end,
	};
	return cfg;
}

static int by_time(const void *a, const void *b)
{
	const struct arrival *x = a, *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

/* A generator for each control: it is set on the sockets of a whole configuration. */
static void add_list(const struct traffic *t)
{
	json_t *known = json_object();

	for (size_t i = 0; i < t->n_pairs; i++) {
		const struct sides sides = listed_sides(t, i);
		struct config *cfg;
		char key[64];

		snprintf(key, sizeof(key), "%s %s", sides.from ? sides.from : "",
			 sides.to ? sides.to : "");
		if (!index_new(known, key, i))
			continue;
		cfg = add_client(t, sides);
		cfg->list = xcalloc(t->n_pairs, sizeof(*cfg->list));
		add_paths(cfg, t, sides);
		qsort(cfg->list, cfg->flows, sizeof(*cfg->list), by_time);
	}
	json_decref(known);
}

/* The server's side is udp.c's. */
static void add_udp(const struct traffic *t)
{
	struct config *cfg = add_client(t, t->control);

	cfg->tos = t->ecn;
	cfg->burst = t->burst;
	cfg->random = t->random;
	cfg->on = t->on;
	cfg->off = t->off;
	cfg->every = t->every ? t->every :
		     (u64)((t->size + FRAME_BYTES) * 8.0 * t->burst / t->rate_bps * NSEC + 0.5);
	if (!cfg->every)
		errx(2, "%s: udp: a rate of less than a packet per nanosecond", made.plan->file);
	cfg->host = xcalloc(t->n_pairs, sizeof(*cfg->host));
	cfg->path = xcalloc(t->n_pairs, sizeof(*cfg->path));
	cfg->server = xcalloc(t->n_pairs, sizeof(struct netns *));
	cfg->hosts = t->n_pairs;
	cfg->paths = t->n_pairs;
	for (size_t i = 0; i < t->n_pairs; i++) {
		fill_address(&cfg->host[i], t->pairs[i].to, UDP_PORT + made.udp++);
		cfg->server[i] = netns_of(t->pairs[i].to);
		cfg->path[i] = (struct path){ netns_of(t->pairs[i].from), t->pairs[i].to->name, i };
	}
}

static char **environment_of(const struct traffic *t)
{
	char **all = xcalloc(t->environment.n + 1, sizeof(*all));

	for (size_t i = 0; i < t->environment.n; i++)
		if (asprintf(&all[i], "%s=%s", t->environment.at[i].name,
			     t->environment.at[i].value) < 0)
			err(1, "memory");
	return all;
}

/* One for each node. Files are named by the label or the node, from the second on with a number. */
static void add_programs(const struct traffic *t)
{
	char *copy = strdup(made.plan->file), *folder = dirname(copy);

	for (size_t i = 0; i < t->from.n; i++) {
		const struct node *node = t->from.at[i];
		struct config *cfg = add_client(t, t->control);
		const char *stem = *t->label && t->from.n == 1 ? t->label : node->name;
		char *name;
		size_t n = 1;

		if (asprintf(&name, "%s", stem) < 0)
			err(1, "memory");
		while (!index_new(made.programs, name, 0)) {
			free(name);
			if (asprintf(&name, "%s-%zu", stem, ++n) < 0)
				err(1, "memory");
		}
		cfg->command = (struct command){
			.node = node->name, .text = t->command, .name = name, .folder = folder,
			.environment = environment_of(t), .status = t->status,
		};
		if (!cfg->timeout && !cfg->stop && !cfg->until_end)
			cfg->timeout = PROGRAM_NS;
		cfg->path = xcalloc(1, sizeof(*cfg->path));
		cfg->path->netns = netns_of(node);
	}
}

static void add_traffic(const struct traffic *t)
{
	struct config *cfg;

	switch (t->kind) {
	case TRAFFIC_LIST:
		add_list(t);
		return;
	case TRAFFIC_UDP:
		add_udp(t);
		return;
	case TRAFFIC_PROGRAM:
		add_programs(t);
		return;
	default:
		break;
	}
	cfg = add_client(t, t->control);
	add_paths(cfg, t, t->control);
	if (cfg->mode == RPC && !cfg->flows)
		cfg->flows = NEVER;
	if (t->cdf)
		cdf_load(&cfg->cdf, made.plan->file, t->cdf);
	if (t->load)
		cfg->rate = t->load / 8 / (t->size ? (double)t->size : cfg->cdf.mean);
}

void read_plan(struct work *w)
{
	static struct plan plan;

	plan_read(&plan, w->plan);
	if (!plan.n_traffic)
		errx(2, "%s: has no traffic", plan.file);
	made.plan = &plan;
	made.work = w;
	made.netns = xcalloc(plan.n_nodes, sizeof(*made.netns));
	made.hosts = json_object();
	made.programs = json_object();
	for (size_t i = 0; i < plan.n_traffic; i++)
		add_traffic(&plan.traffic[i]);
}
