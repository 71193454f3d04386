// SPDX-License-Identifier: GPL-2.0
#include <err.h>
#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>

#include "events.h"

u64 clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return ts.tv_sec * NSEC + ts.tv_nsec;
}

void sleep_until(u64 at)
{
	const struct timespec t = { at / NSEC, at % NSEC };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

void watch(int epfd, int op, int fd, u32 events, void *who)
{
	struct epoll_event ev = { .events = events, .data.ptr = who };

	if (epoll_ctl(epfd, op, fd, &ev))
		err(1, "epoll_ctl");
}

int open_signals(void)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (fd < 0)
		err(1, "signalfd");
	return fd;
}

int open_timer(void)
{
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);

	if (fd < 0)
		err(1, "timerfd_create");
	return fd;
}

void set_timer(int fd, int flags, u64 ns)
{
	struct itimerspec its = {
		.it_value = { .tv_sec = ns / NSEC, .tv_nsec = ns % NSEC },
	};

	if (timerfd_settime(fd, flags, &its, NULL))
		err(1, "timerfd_settime");
}
