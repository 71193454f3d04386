/* SPDX-License-Identifier: GPL-2.0 */
/* Waiting and clocks. A failure ends the program with exit status 1. */
#ifndef TOOLS_EVENTS_H
#define TOOLS_EVENTS_H

#include <sys/epoll.h>
#include <time.h>

#include "types.h"

u64 clock_ns(clockid_t id);

/* CLOCK_MONOTONIC, so that steps of the wall clock do not change durations. */
static inline u64 now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* Sleeps until CLOCK_MONOTONIC has reached @at, ns */
void sleep_until(u64 at);

/* @op, @events: as for epoll_ctl(). @who: returned in data.ptr */
void watch(int epfd, int op, int fd, u32 events, void *who);

/* A descriptor that becomes readable on SIGINT or SIGTERM; they no longer end the program. */
int open_signals(void);

/* Sets a CLOCK_MONOTONIC timer. @flags: TFD_TIMER_ABSTIME; 0: @ns from now */
int open_timer(void);
void set_timer(int fd, int flags, u64 ns);

#endif
