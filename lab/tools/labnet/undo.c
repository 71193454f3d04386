// SPDX-License-Identifier: GPL-2.0
/*
 * What was made so far, to be removed after a failure
 */
#include <err.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <unistd.h>

#include "netlink.h"
#include "undo.h"

static const struct plan *plan;
static size_t nodes;		/* so many of its nodes, from the first on */

void node_path(const struct plan *p, const struct node *node, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, NETNS_DIR "/%s%s", p->prefix, node->name);
}

void began(const struct plan *p, const struct node *node)
{
	plan = p;
	nodes = node - p->nodes + 1;
}

static void remove_node(const struct node *node)
{
	char path[PATH_MAX];

	node_path(plan, node, path);
	umount2(path, MNT_DETACH);
	unlink(path);
}

void give_up(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vwarnx(fmt, ap);
	va_end(ap);
	while (nodes--)
		if (!plan->nodes[nodes].exists)
			remove_node(&plan->nodes[nodes]);
	exit(1);
}
