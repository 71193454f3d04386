// SPDX-License-Identifier: GPL-2.0
/*
 * lab-start - begins an experiment in the lab's guest at a fixed instant.
 *
 *	lab-start [--now] [SEED]
 *
 * Sleeps until the guest's uptime is a whole number of minutes, at least a second from now,
 * then sets the kernel's random generator from that number and SEED ($LOWQ_SEED by default).
 * How long the set-up took, and how much randomness it drew, no longer matters.
 *
 * --now: without sleeping, from the seconds of this instant. For programs that wait for the
 * traffic's start: what a C library draws while it loads differs between distributions.
 *
 * Where the clock is the real one it does not sleep. On a kernel without the lab's patches it
 * changes nothing.
 */
#include <err.h>
#include <fcntl.h>
#include <linux/random.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define GRID_S		60
#define KEY_WORDS	4

static int virtual_time(void)
{
	char line[4096] = "";
	FILE *f = fopen("/proc/cmdline", "r");

	if (!f || !fgets(line, sizeof(line), f))
		err(1, "/proc/cmdline");
	fclose(f);
	return !!strstr(line, "time-travel=");
}

static uint64_t splitmix64(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15ULL);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

int main(int argc, char **argv)
{
	int now = argc > 1 && !strcmp(argv[1], "--now"), fd, i;
	const char *seed = argc > 1 + now ? argv[1 + now] : getenv("LOWQ_SEED");
	uint64_t key[KEY_WORDS], state;
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	if (!now)
		t.tv_sec = ((t.tv_sec + 1) / GRID_S + 1) * GRID_S;
	t.tv_nsec = 0;
	if (!now && virtual_time() && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL))
		errx(1, "the sleep was interrupted");

	state = seed ? strtoull(seed, NULL, 10) : 0;
	state = splitmix64(&state) + t.tv_sec;
	for (i = 0; i < KEY_WORDS; i++)
		key[i] = splitmix64(&state);
	fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		err(1, "/dev/urandom");
	if (ioctl(fd, RNDCLEARPOOL, key))
		err(1, "RNDCLEARPOOL");
	return 0;
}
