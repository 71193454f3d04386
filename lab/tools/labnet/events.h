/* SPDX-License-Identifier: GPL-2.0 */
#ifndef LABNET_EVENTS_H
#define LABNET_EVENTS_H

#include "../plan/plan.h"

/*
 * Makes the plan's events happen in its network, at their times after @zero (CLOCK_MONOTONIC, ns;
 * 0: now). A failure ends the program with one line and exit status 1. @out: where what the plan
 * records goes, NULL: nowhere
 */
void run_events(const struct plan *p, u64 zero, const char *out);

#endif
