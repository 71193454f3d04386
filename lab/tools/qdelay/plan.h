/* SPDX-License-Identifier: GPL-2.0 */
#ifndef QDELAY_PLAN_H
#define QDELAY_PLAN_H

#include "account.h"

/*
 * Reads opt.plan; returns how many *@hops it wants to be observed, each with its
 * window. Sets the bin in opt, which is 0 if no series is wanted
 */
u32 observed(struct hop **hops, u64 *buffer_mb);

#endif
