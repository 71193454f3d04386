/* SPDX-License-Identifier: GPL-2.0 */
#ifndef LABNET_UNDO_H
#define LABNET_UNDO_H

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "../plan/plan.h"

/* Where the node's namespace has its name */
void node_path(const struct plan *p, const struct node *node, char path[PATH_MAX]);

/* give_up() removes this node and those before it in the plan, but none that existed already. */
void began(const struct plan *p, const struct node *node);

/* Says what failed, removes what was made (links go with their namespaces), ends the program */
void __attribute__((noreturn, format(printf, 1, 2))) give_up(const char *fmt, ...);

#define CHECK(done, fmt, ...) \
	do { \
		if (!(done)) \
			give_up(fmt ": %s", ##__VA_ARGS__, strerror(errno)); \
	} while (0)

#endif
