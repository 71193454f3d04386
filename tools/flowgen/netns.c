// SPDX-License-Identifier: GPL-2.0
#include <err.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>

#include "../common/alloc.h"
#include "netns.h"

static struct netns home = { .fd = -1 }, *current = &home;

static int open_fd(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		err(1, "%s", path);
	return fd;
}

struct netns *netns_open(const char *name)
{
	struct netns *ns = xcalloc(1, sizeof(*ns));
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "/run/netns/%s", name);
	ns->name = name;
	ns->fd = open_fd(path);
	return ns;
}

void netns_enter(struct netns *ns)
{
	if (!ns)
		ns = &home;
	if (ns == current)
		return;
	if (home.fd < 0)
		home.fd = open_fd("/proc/self/ns/net");
	if (setns(ns->fd, CLONE_NEWNET))
		err(1, "%s: cannot enter the namespace", ns->name);
	current = ns;
}

const struct send_buffer *netns_send_buffer(struct netns *ns)
{
	struct send_buffer *b = ns ? &ns->send_buffer : &home.send_buffer;

	if (!b->most) {
		netns_enter(ns);
		probe_sndbuf(b);
	}
	return b;
}
