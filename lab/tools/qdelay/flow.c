// SPDX-License-Identifier: GPL-2.0
#include <arpa/inet.h>
#include <search.h>
#include <stdio.h>
#include <string.h>

#include "../common/alloc.h"
#include "flow.h"

#define MAX_FLOWS	(1U << 20)	/* all further flows are counted as one */

static int cmp_key(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct flow_key));
}

static struct flow *flow_new(struct flows *all, const struct flow_key *key)
{
	struct flow *f = xcalloc(1, sizeof(*f));

	f->key = *key;
	f->of = all;
	f->first = NEVER;
	f->last_in = NEVER;
	f->last_out = NEVER;
	dist_init(&f->delay, 9, 256);
	dist_init(&f->gap_in, 9, 256);
	dist_init(&f->gap_out, 9, 256);
	if (!(all->n & (all->n - 1)))	/* the room is a power of two: full */
		all->at = xreallocarray(all->at, all->n ? 2 * all->n : 1, sizeof(f));
	all->at[all->n++] = f;
	return f;
}

struct flow *flow_find(struct flows *all, const struct flow_key *key)
{
	static const struct flow_key other;
	struct flow **node;

	if (all->recent && !cmp_key(&all->recent->key, key))
		return all->recent;
	if (all->n >= MAX_FLOWS && !tfind(key, &all->tree, cmp_key))
		key = &other;
	/* A flow starts with its key, so the tree can hold either. */
	node = tsearch(key, &all->tree, cmp_key);
	if (!node)
		err(1, "memory");
	if ((const void *)*node == key)
		*node = flow_new(all, key);
	all->recent = *node;
	return all->recent;
}

struct flow *flow_reverse(const struct flow *f)
{
	struct flow_key key = f->key;
	struct flow **node;

	memcpy(key.src, f->key.dst, sizeof(key.src));
	memcpy(key.dst, f->key.src, sizeof(key.dst));
	key.sport = f->key.dport;
	key.dport = f->key.sport;
	node = tfind(&key, &f->of->tree, cmp_key);
	return node ? *node : NULL;
}

const char *flow_name(struct flow *f)
{
	char a[INET6_ADDRSTRLEN], b[INET6_ADDRSTRLEN];
	const struct flow_key *k = &f->key;
	int n;

	if (f->name)
		return f->name;
	if (!k->family) {
		n = asprintf(&f->name, "other");
	} else {
		int af = k->family == 4 ? AF_INET : AF_INET6;

		inet_ntop(af, k->src, a, sizeof(a));
		inet_ntop(af, k->dst, b, sizeof(b));
		n = asprintf(&f->name, k->family == 4 ? "%s:%u>%s:%u" :
			     "[%s]:%u>[%s]:%u", a, k->sport, b, k->dport);
	}
	if (n < 0)
		err(1, "memory");
	return f->name;
}

static int cmp_flow(const void *a, const void *b)
{
	struct flow *x = *(struct flow **)a, *y = *(struct flow **)b;

	if (x->first != y->first)
		return x->first < y->first ? -1 : 1;
	return strcmp(flow_name(x), flow_name(y));
}

void flows_sort(struct flows *all)
{
	qsort(all->at, all->n, sizeof(*all->at), cmp_flow);
}
