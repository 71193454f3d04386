/* SPDX-License-Identifier: GPL-2.0 */
#ifndef QDELAY_REPORT_H
#define QDELAY_REPORT_H

#include "account.h"

/* Writes the result of its one queue, and warnings to stderr; returns the exit status. */
int report(struct hop *h);
/* The same for a plan's queues: one document */
int report_all(struct hop *hops, u32 n);

#endif
