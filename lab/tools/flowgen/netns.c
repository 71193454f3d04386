// SPDX-License-Identifier: GPL-2.0
#include "../common/alloc.h"
#include "../common/netns.h"
#include "netns.h"

static struct netns home = { .name = "/proc/self/ns/net", .fd = -1 }, *current = &home;

struct netns *netns_open(const char *name)
{
	struct netns *ns = xcalloc(1, sizeof(*ns));

	ns->name = name;
	ns->fd = netns_fd(name);
	return ns;
}

void netns_enter(struct netns *ns)
{
	if (!ns)
		ns = &home;
	if (ns == current)
		return;
	if (home.fd < 0)
		home.fd = netns_fd(NULL);
	netns_join(ns->fd, ns->name);
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
