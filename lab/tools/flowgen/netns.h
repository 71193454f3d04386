/* SPDX-License-Identifier: GPL-2.0 */
/* Network namespaces by name: a socket belongs to the one in which it was made. */
#ifndef FLOWGEN_NETNS_H
#define FLOWGEN_NETNS_H

#include "socket.h"

struct netns {
	const char *name;
	int fd;
	struct send_buffer send_buffer;
};

/* Opens it: a name that ip knows. A failure ends the program with exit status 1. */
struct netns *netns_open(const char *name);

/* NULL: the namespace where the program was started */
void netns_enter(struct netns *ns);
const struct send_buffer *netns_send_buffer(struct netns *ns);

#endif
