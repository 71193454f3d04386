// SPDX-License-Identifier: GPL-2.0
#include <err.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>

#include "netns.h"

int netns_fd(const char *name)
{
	char path[PATH_MAX] = "/proc/self/ns/net";
	int fd;

	if (name)
		snprintf(path, sizeof(path), "/run/netns/%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		err(1, "%s", path);
	return fd;
}

void netns_join(int fd, const char *name)
{
	if (setns(fd, CLONE_NEWNET))
		err(1, "%s: cannot enter the namespace", name);
}
