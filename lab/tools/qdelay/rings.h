/* SPDX-License-Identifier: GPL-2.0 */
#ifndef QDELAY_RINGS_H
#define QDELAY_RINGS_H

#include "account.h"

/* Captures what all devices of all hops get and send; @buffer_mb: memory for it, MiB */
void rings_open(struct hop *hops, u32 n, u64 buffer_mb);
/*
 * Runs until SIGINT or SIGTERM; prints "ready" on stderr when it starts. @zero: when --from and
 * --to count from, CLOCK_MONOTONIC, ns; 0: now
 */
void rings_run(u64 zero);

#endif
