// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>

#include "draw.h"

/* @value with the largest unit that it is one or more of */
static void put_units(double value, const char *const units[], size_t n)
{
	size_t i = 0;

	for (; i + 1 < n && value >= 1000; i++)
		value /= 1000;
	printf("%g %s", value, units[i]);
}

static void put_queue(const struct end *e)
{
	static const char *const rates[] = { "bit/s", "kb/s", "Mb/s", "Gb/s", "Tb/s" };
	static const char *const times[] = { "ns", "us", "ms", "s" };

	if (e->rate)
		put_units(e->rate, rates, ARRAY_SIZE(rates));
	if (e->rate && e->delay)
		printf(", ");
	if (e->delay)
		put_units(e->delay, times, ARRAY_SIZE(times));
	if (e->queue)
		printf("\\n%.24s", e->queue);
}

static bool same_queue(const struct end *a, const struct end *b)
{
	return a->rate == b->rate && a->delay == b->delay && a->queue == b->queue;
}

/* What is the same in both directions is said once, in the middle. */
static void draw_link(const struct link *l)
{
	const struct end *e = l->end;
	bool same = same_queue(&e[0], &e[1]);

	printf("  \"%s\" -- \"%s\" [taillabel=\"%s", e[0].node->name, e[1].node->name, e[0].dev);
	if (!same && (e[0].rate || e[0].delay)) {
		printf("\\n");
		put_queue(&e[0]);
	}
	printf("\", headlabel=\"%s", e[1].dev);
	if (!same && (e[1].rate || e[1].delay)) {
		printf("\\n");
		put_queue(&e[1]);
	}
	printf("\", label=\"");
	if (same)
		put_queue(&e[0]);
	printf("\"];\n");
}

static void draw_node(const struct node *node)
{
	printf("  \"%s\" [label=\"%s", node->name, node->name);
	for (size_t i = 0; i < node->n_ends && node->n_ends == 1; i++)
		for (size_t j = 0; j < node->end[i]->addresses.n; j++)
			printf("\\n%s", node->end[i]->addresses.at[j].text);
	/* a host has one link */
	printf("\", shape=%s];\n", node->n_ends > 1 ? "box" : "ellipse");
}

void draw(const struct plan *p)
{
	printf("graph plan {\n  rankdir=LR;\n  nodesep=0.5;\n  ranksep=2;\n");
	printf("  node [fontname=\"sans-serif\", fontsize=11];\n");
	printf("  edge [fontname=\"sans-serif\", fontsize=9];\n");
	for (size_t i = 0; i < p->n_nodes; i++)
		draw_node(&p->nodes[i]);
	for (size_t i = 0; i < p->n_links; i++)
		draw_link(&p->links[i]);
	printf("}\n");
}
