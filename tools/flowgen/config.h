/* SPDX-License-Identifier: GPL-2.0 */
/* The values of the command line. options.c writes them, all other files read them. */
#ifndef FLOWGEN_CONFIG_H
#define FLOWGEN_CONFIG_H

#include "../common/types.h"
#include "address.h"
#include "cdf.h"

#define CC_LEN		16		/* TCP_CA_NAME_MAX */

enum mode { SERVE, LONG, RPC, INCAST };

extern const char *const mode_name[];

struct config {
	enum mode mode;
	int family;			/* AF_UNSPEC, AF_INET, AF_INET6 */
	u16 port;
	const char *cc;
	int tos;			/* -1: the default */
	int mss;			/* bytes; 0: the default, also for the two buffers */
	int sndbuf, rcvbuf;		/* bytes */
	/* serve */
	int ready_fd;			/* -1: stdout */
	bool once_idle;
	u64 idle_ns;			/* --once-idle: how long */
	/* clients */
	union addr *host;
	unsigned int hosts;
	bool pull;			/* the server sends the data */
	u64 size;			/* bytes; 0: not given, draw from cdf */
	struct cdf cdf;
	u64 seed;
	const char *label;
	u64 start, timeout, interval;	/* ns; 0: none */
	u64 duration;			/* ns; 0: not given */
	u64 flows;			/* long: number of flows; rpc: of requests, or NEVER */
	u64 stagger;			/* ns */
	double rate;			/* rpc: requests per second */
	bool periodic, persist, plan;
	unsigned int closed;		/* requests kept outstanding; 0: an open loop */
	unsigned int fan;
	u64 count;			/* incast: rounds */
	u64 period;			/* ns; 0: a round when the last is over */
	u64 jitter;			/* ns: incast: requests start up to this later */
	const char *out_path;		/* NULL: stdout */
};

extern struct config cfg;

/* Reads the command line. A wrong one ends the program with exit status 2. */
void read_options(int argc, char **argv);

#endif
