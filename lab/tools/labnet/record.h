/* SPDX-License-Identifier: GPL-2.0 */
#ifndef LABNET_RECORD_H
#define LABNET_RECORD_H

#include "../plan/plan.h"

/*
 * What the plan records, into the folder @out, from now on until SIGTERM ends this program: times
 * count from @zero (CLOCK_MONOTONIC, ns). A failure ends it with one line and exit status 1.
 */
void record_start(const struct plan *p, u64 zero, const char *out);
/* Until then, if there is something to record */
void record_wait(void);

#endif
