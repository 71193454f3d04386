/* SPDX-License-Identifier: GPL-2.0 */
/* The values of the command line. options.c writes them, all other files read them. */
#ifndef ROCEGEN_CONFIG_H
#define ROCEGEN_CONFIG_H

#include "../common/types.h"
#include "side.h"

struct config {
	bool serve;
	const char *dev;		/* RDMA device */
	const char *to;			/* client: the server's address */
	const char *port;		/* of TCP */
	const char *label;
	int gid;			/* index in the device's table */
	u64 messages;			/* per queue pair; 0: not given */
	u64 duration;			/* ns; 0: not given */
	u64 start;			/* ns before the first message */
	int timeout;			/* until a retransmission: 4.096 us * 2^timeout */
	struct hello h;			/* what the client asks of the server */
};

extern struct config cfg;

/* Reads the command line. A wrong one ends the program with exit status 2. */
void read_options(int argc, char **argv);

#endif
