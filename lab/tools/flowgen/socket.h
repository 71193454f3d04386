/* SPDX-License-Identifier: GPL-2.0 */
/* Socket options: those of the configuration, and how large a send buffer may be made. */
#ifndef FLOWGEN_SOCKET_H
#define FLOWGEN_SOCKET_H

#include "config.h"

#ifndef SO_BUF_LOCK		/* Linux 5.15 */
#define SO_BUF_LOCK	72
#endif

/* As setsockopt() and getsockopt(); get_int() returns -1 on an error. */
int set_int(int fd, int level, int opt, int val);
int get_int(int fd, int level, int opt);
/* @force: an option that needs CAP_NET_ADMIN and has no limit; it is tried before @opt */
void set_buf(int fd, int force, int opt, int val);

/*
 * Sets the socket options that @cfg has. Call it before connect() or listen(): whether the
 * handshake negotiates ECN depends on the congestion control. The name of what failed, or NULL.
 */
const char *socket_options(int fd, int family, const struct config *cfg);

/*
 * Sets the options on an unconnected socket, so that a mistake shows before anything is done. An
 * option that cannot be set ends the program with exit status 2.
 */
void probe_options(int family, const struct config *cfg);

/* Send buffers, in bytes as SO_SNDBUF reads. */
struct send_buffer {
	unsigned int fresh;		/* a new socket's; 0: it cannot be raised for a while */
	unsigned int most;		/* what SO_SNDBUF can raise it to */
	unsigned int autotuned;		/* limit of the kernel's autotuning, bytes */
};

/* Of the namespace that the program is in */
void probe_sndbuf(struct send_buffer *b);

/* Allows files for so many connections, or ends the program with exit status 2. */
void raise_file_limit(unsigned int connections);

#endif
