// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <string.h>

#include "draw.h"

#define LINE	24	/* characters of a queue's words */

/* @value with the largest unit that it is one or more of */
static void put_units(double value, const char *const units[], size_t n)
{
	size_t i = 0;

	for (; i + 1 < n && value >= 1000; i++)
		value /= 1000;
	printf("%g %s", value, units[i]);
}

/* All of @text's words, in lines that are not much longer than the rest of the label */
static void put_words(const char *text)
{
	size_t used = LINE, n;

	for (text += strspn(text, " "); *text; text += n + strspn(text + n, " ")) {
		n = strcspn(text, " ");
		used += 1 + n;
		if (used > LINE)
			used = n;
		printf("%s%.*s", used == n ? "\\n" : " ", (int)n, text);
	}
}

static void put_line(const struct end *e)
{
	static const char *const rates[] = { "bit/s", "kb/s", "Mb/s", "Gb/s", "Tb/s" };
	static const char *const times[] = { "ns", "us", "ms", "s" };

	if (e->rate)
		put_units(e->rate, rates, ARRAY_SIZE(rates));
	if (e->rate && e->delay)
		printf(", ");
	if (e->delay)
		put_units(e->delay, times, ARRAY_SIZE(times));
}

static bool same_queue(const struct end *a, const struct end *b)
{
	return a->rate == b->rate && a->delay == b->delay && a->queue == b->queue;
}

/*
 * What is the same in both directions is written once, in the middle. So are queues, because dot
 * makes room only for that label.
 */
static void draw_link(const struct link *l)
{
	static const char *const at[] = { "taillabel", "headlabel" };
	const struct end *e = l->end;
	bool same = same_queue(&e[0], &e[1]);

	printf("  \"%s\" -- \"%s\" [", e[0].node->name, e[1].node->name);
	for (size_t i = 0; i < 2; i++) {
		printf("%s=\"%s", at[i], e[i].dev);
		if (!same && (e[i].rate || e[i].delay)) {
			printf("\\n");
			put_line(&e[i]);
		}
		printf("\", ");
	}
	printf("label=\"");
	if (same)
		put_line(&e[0]);
	for (size_t i = 0; i < (same ? 1 : 2); i++) {
		if (!e[i].queue)
			continue;
		if (!same)
			printf("\\n%s %s:", e[i].node->name, e[i].dev);
		put_words(e[i].queue);
	}
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
