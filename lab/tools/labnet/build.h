/* SPDX-License-Identifier: GPL-2.0 */
#ifndef LABNET_BUILD_H
#define LABNET_BUILD_H

#include "../plan/plan.h"

/* Bytes of kernel memory that a plan takes, about */
u64 plan_memory(const struct plan *p);

/*
 * Makes everything in the plan, in this process; queues at @zero (CLOCK_MONOTONIC, ns), or as soon
 * as may be, since some have timers, whose phase would be that of the set-up. @seed: of what exact
 * links do by chance. A failure removes what was made, and ends the program with one line and exit
 * status 1.
 */
void build(const struct plan *p, u64 zero, u64 seed);

#endif
