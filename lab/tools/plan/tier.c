// SPDX-License-Identifier: GPL-2.0
/* How much of the flows' traffic the links of a tier carry: follows the plan's routes. */
#include <err.h>
#include <stdlib.h>
#include <string.h>

#include "../common/alloc.h"
#include "document.h"
#include "plan.h"

#define HOPS	32	/* more are a loop */

struct search {
	const char *tier;
	const struct pair *pair;
	const struct address *to;
	const struct node *nodes;
	double *known;		/* crossings from each node to there, 0: not known yet */
};

static bool is_at(const struct node *node, const struct address *a)
{
	for (size_t i = 0; i < node->n_ends; i++)
		for (size_t j = 0; j < node->end[i]->addresses.n; j++)
			if (same_address(&node->end[i]->addresses.at[j], a))
				return true;
	return false;
}

/* The node's device towards its neighbour @via, or NULL */
static const struct end *towards(const struct node *node, const struct address *via)
{
	for (size_t i = 0; i < node->n_ends; i++) {
		const struct addresses *far = &node->end[i]->far->addresses;

		for (size_t j = 0; j < far->n; j++)
			if (same_address(&far->at[j], via))
				return node->end[i];
	}
	return NULL;
}

static const struct route *route_to(const struct node *node, const struct address *to)
{
	const struct route *best = NULL;

	for (size_t i = 0; i < node->n_routes; i++) {
		const struct route *r = &node->routes[i];

		if (same_net(&r->to, to, r->to.prefix) && (!best || r->to.prefix > best->to.prefix))
			best = r;
	}
	return best;
}

static double crossings(const struct search *s, const struct node *node, int hops);

static double over(const struct search *s, const struct end *e, int hops)
{
	if (!e)
		return 0;
	return (e->link->tier && !strcmp(e->link->tier, s->tier)) +
	       crossings(s, e->far->node, hops - 1);
}

static double crossings(const struct search *s, const struct node *node, int hops)
{
	const struct end *direct = towards(node, s->to);
	double *known = &s->known[node - s->nodes], sum = 0;
	const struct route *r;

	if (*known || is_at(node, s->to))
		return *known;
	if (direct)
		return over(s, direct, hops);
	r = route_to(node, s->to);
	if (!r || !hops)
		errx(2, "%s: no path from '%s' to '%s'", document_name(), s->pair->from->name,
		     s->pair->to->name);
	for (size_t i = 0; i < r->via.n; i++)
		sum += over(s, towards(node, &r->via.at[i]), hops);
	*known = sum / r->via.n;
	return *known;
}

double tier_crossings(const struct plan *p, const char *tier, const struct pair *pairs, size_t n,
		      double *capacity)
{
	double *known = xcalloc(p->n_nodes * p->n_nodes, sizeof(*known)), sum = 0;

	*capacity = 0;
	for (size_t i = 0; i < 2 * p->n_links; i++) {
		const struct end *e = &p->links[i / 2].end[i % 2];

		if (!e->link->tier || strcmp(e->link->tier, tier))
			continue;
		if (!e->rate)
			errx(2, "%s: tier '%s' has no capacity: no rate", plan_place(p, e), tier);
		*capacity += e->rate;
	}
	for (size_t i = 0; i < n; i++) {
		struct search s = {
			tier, &pairs[i], node_address(pairs[i].to), p->nodes,
			known + (pairs[i].to - p->nodes) * p->n_nodes
		};

		sum += crossings(&s, pairs[i].from, HOPS);
	}
	free(known);
	return sum / n;
}
