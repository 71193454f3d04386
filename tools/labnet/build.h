/* SPDX-License-Identifier: GPL-2.0 */
#ifndef LABNET_BUILD_H
#define LABNET_BUILD_H

#include <errno.h>
#include <string.h>

#include "../plan/plan.h"

/* Bytes of kernel memory that a plan takes, about */
u64 plan_memory(const struct plan *p);

/*
 * Makes everything in the plan, in this process. A failure removes what was made, and ends the
 * program with one line and exit status 1.
 */
void build(const struct plan *p);

/* Says what failed, removes what was made (links go with their namespaces), ends the program */
void __attribute__((noreturn, format(printf, 1, 2))) give_up(const char *fmt, ...);

#define CHECK(done, fmt, ...) \
	do { \
		if (!(done)) \
			give_up(fmt ": %s", ##__VA_ARGS__, strerror(errno)); \
	} while (0)

#endif
