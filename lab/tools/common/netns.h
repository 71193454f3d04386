/* SPDX-License-Identifier: GPL-2.0 */
#ifndef TOOLS_NETNS_H
#define TOOLS_NETNS_H

/* A descriptor of the network namespace that ip knows as @name; NULL: of the program's own */
int netns_fd(const char *name);
/* Enters it. A failure of either ends the program with exit status 1. */
void netns_join(int fd, const char *name);

#endif
