/* SPDX-License-Identifier: GPL-2.0 */
/* Waiting: what a program sleeps on, and the clock. What fails ends it with exit status 1. */
#ifndef TOOLS_EVENTS_H
#define TOOLS_EVENTS_H

#include <sys/epoll.h>
#include <time.h>

#include "types.h"

u64 clock_ns(clockid_t id);

/* By CLOCK_MONOTONIC: a step of the wall clock does not bend a duration. */
static inline u64 now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* @op, @events: as of epoll_ctl(). @who: comes back in data.ptr */
void watch(int epfd, int op, int fd, u32 events, void *who);

/* A descriptor that is readable after SIGINT or SIGTERM, which end nothing any more. */
int open_signals(void);

/* A timer by CLOCK_MONOTONIC. @flags: TFD_TIMER_ABSTIME, or 0 if @ns is from now on */
int open_timer(void);
void set_timer(int fd, int flags, u64 ns);

#endif
