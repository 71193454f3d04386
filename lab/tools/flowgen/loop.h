/* SPDX-License-Identifier: GPL-2.0 */
#ifndef FLOWGEN_LOOP_H
#define FLOWGEN_LOOP_H

#include "config.h"

/* What epoll watches; the first member of a struct. @event: gets what epoll_wait() returned */
struct watched {
	void (*event)(struct watched *w, u32 events);
};

/* Serves and makes all flows; returns the exit status. */
int run(const struct work *w);

#endif
