// SPDX-License-Identifier: GPL-2.0
/*
 * labnet - builds a network of namespaces from a plan
 *
 * One process builds it all: starting a program for each object would take longer than what the
 * kernel does for it.
 *
 *	../plan		from JSON to struct plan, checked
 *	build.c		from struct plan to namespaces, links, addresses, routes, queues
 *	queues.c	... the queues
 *	netlink.c	the requests for it
 *	draw.c		from struct plan to a drawing
 *	events.c	changes the network while it is used
 *	record.c	... and keeps what the plan says
 *	remove.c	removes namespaces, with their processes and connections
 *
 * Requests go one at a time. Batches, of which only the last request is acknowledged, would save
 * 4 to 6 % of the CPU time that setting up a fat-tree takes: too little for failures that are
 * harder to name.
 *
 * It is C because Python starts too slowly: 25 ms of CPU time in the lab, with the modules that a
 * builder needs. labnet starts and checks a plan of 16 hosts in 2.7 ms.
 */
#include <err.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "../common/options.h"
#include "build.h"
#include "draw.h"
#include "events.h"
#include "remove.h"

static bool check, dot, events;
static const char *prefix, *out;
static u64 zero, seed;

static const struct option_row rows[] = {
	{ "check", NULL, OPT_FLAG, TO(check),
	  .help = "only check the plan, and say how large it is" },
	{ "dot", NULL, OPT_FLAG, TO(dot),
	  .help = "only print it as a graph for graphviz's dot" },
	{ "events", NULL, OPT_FLAG, TO(events),
	  .help = "make the plan's events happen in its network, which is built" },
	{ "zero", "T", OPT_TIME, TO(zero),
	  .help = "events: their times count from T of CLOCK_MONOTONIC (now);\n"
		  "otherwise: queues are made at T" },
	{ "record", "DIR", OPT_TEXT, TO(out), 1, 4095,
	  .help = "events: also record there what the plan says, until SIGTERM" },
	{ "seed", "N", OPT_INT, TO(seed), 0, UINT32_MAX,
	  .help = "of what links do by chance (0)" },
	{ "remove", "PREFIX", OPT_TEXT, TO(prefix), 1, 255,
	  .help = "remove the namespaces whose names begin with PREFIX,\n"
		  "with their processes and TCP connections" },
};

static const struct option_table table = {
	.program = "labnet",
	.usage = "usage: labnet [--check | --dot | [--events [--record DIR]] [--zero T] [--seed N]] PLAN\n"
	"       labnet --remove PREFIX\n"
	"Builds the network namespaces, links, addresses, routes and queues of a plan, a JSON file\n"
	"(- for standard input).\n"
	"\n",
	.notes = "Exit status: 0 built, 1 it could not be built and nothing is left of it,\n"
	"2 the plan is wrong, or if called wrong.\n",
	.row = rows,
	.rows = ARRAY_SIZE(rows),
	.once = true,
};

static void say_size(const struct plan *p)
{
	size_t own = 0, cut = 0;

	printf("%zu nodes, %zu links, about %llu MiB of memory\n", p->n_nodes, p->n_links,
	       (plan_memory(p) >> 20) + 1);
	if (p->parts < 2)
		return;
	for (size_t i = 0; i < p->n_nodes; i++)
		own += plan_has(p, &p->nodes[i]);
	for (size_t i = 0; i < p->n_links; i++)
		cut += p->links[i].end[0].node->part != p->links[i].end[1].node->part;
	printf("part %u of %u: %zu nodes; %zu links are cut; windows of %llu ns\n", p->me + 1,
	       p->parts, own, cut, p->window);
}

int main(int argc, char **argv)
{
	int first = options_read(&table, argc, argv, 0, NULL);
	struct plan plan;

	if (prefix) {
		if (check || dot || events || first < argc || strpbrk(prefix, "/*?[\\"))
			errx(2, "--remove takes a prefix and nothing else");
		remove_network(prefix);
		return 0;
	}
	if (argc - first != 1)
		errx(2, "takes one plan (see labnet --help)");
	if (check + dot + events > 1)
		errx(2, "--check, --dot and --events exclude each other");
	if (out && !events)
		errx(2, "--record goes with --events");
	if (zero && (check || dot))
		errx(2, "--zero is for building and for --events");
	plan_read(&plan, argv[first]);
	if (dot)
		draw(&plan);
	else if (check)
		say_size(&plan);
	else if (events)
		run_events(&plan, zero, out);
	else
		build(&plan, zero, seed);
	return 0;
}
