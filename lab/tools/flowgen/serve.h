/* SPDX-License-Identifier: GPL-2.0 */
#ifndef FLOWGEN_SERVE_H
#define FLOWGEN_SERVE_H

#include "config.h"

/* Listens for all of w->server, and says so. @epfd: the epoll instance */
void serve(const struct work *w, int epfd);
/* For epoll_wait(), ms */
int serve_timeout(void);
/* Frees closed connections; @n: what epoll_wait() returned. True: --once-idle ends the program */
bool serve_reap(int n);

#endif
