/* SPDX-License-Identifier: GPL-2.0 */
/* What one server or one generator of flows does: a command line, or an entry of a plan */
#ifndef FLOWGEN_CONFIG_H
#define FLOWGEN_CONFIG_H

#include "../common/cdf.h"
#include "../common/types.h"
#include "address.h"

#define CC_LEN		16		/* TCP_CA_NAME_MAX */

enum mode { SERVE, LONG, RPC, INCAST, PLAN, UDP, PROGRAM };

extern const char *const mode_name[];

struct netns;

/* Who connects, and to whom */
struct path {
	struct netns *netns;	/* NULL: where the program was started */
	const char *server;	/* the host's name in a plan, or NULL */
	u32 host;		/* index into config.host */
	bool elsewhere;		/* another process has the client */
};

/* A flow of a list */
struct arrival {
	u64 at;			/* ns */
	u64 size;
	u64 id;
	u32 path;
};

/* A program in a node */
struct command {
	const char *node, *text;
	const char *name;		/* of the files of its output */
	const char *folder;		/* where it starts: the plan's */
	char **environment;		/* NAME=VALUE, ends with NULL */
	int status;			/* that it is to end with */
};

struct config {
	enum mode mode;
	const char *kind;		/* in results; NULL: the mode's name */
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
	struct path *path;		/* flows use all: in turn, or at random */
	unsigned int paths;
	struct arrival *list;		/* @flows of them, by time; or NULL */
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
	bool periodic, persist, print;
	bool first_byte;		/* report when the first byte of an answer is there */
	unsigned int closed;		/* requests kept outstanding; 0: an open loop */
	unsigned int fan;
	u64 count;			/* incast: rounds */
	u64 period;			/* ns; 0: a round when the last is over */
	u64 jitter;			/* ns: incast: requests start up to this later */
	/* of a plan */
	u64 stop;			/* ns: the latest end; 0: none */
	bool until_end;			/* ends with the last of those that are not so */
	struct netns **server;		/* udp: by path */
	u64 every, on, off;		/* udp: ns; @off 0: it always sends */
	unsigned int burst;		/* udp: packets */
	bool random;			/* udp: gaps are exponentially distributed */
	struct command command;
};

/* All that runs */
struct work {
	const char *plan;		/* PLAN: the file */
	u64 zero;			/* PLAN: when it starts, CLOCK_MONOTONIC, ns; 0: now */
	bool part;			/* PLAN: other processes have the rest of it */
	const char *out_path;		/* NULL: stdout */
	u64 seed;
	struct server *server;
	unsigned int servers;
	struct config *client;
	unsigned int clients;
};

/* Serves in @netns, NULL: where the program was started */
struct server {
	struct netns *netns;
	const struct config *cfg;
};

/* Reads the command line. A wrong one ends the program with exit status 2. */
void read_options(struct work *w, int argc, char **argv);

/* Reads w->plan, and fills in the rest */
void read_plan(struct work *w);

#endif
