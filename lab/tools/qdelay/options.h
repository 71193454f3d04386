/* SPDX-License-Identifier: GPL-2.0 */
/* The values of the command line. options.c writes them, all other files read them. */
#ifndef QDELAY_OPTIONS_H
#define QDELAY_OPTIONS_H

#include <err.h>

#include "../common/types.h"

#define MAX_SOURCES	64

struct options {
	char *source[MAX_SOURCES];	/* names: those of --in, then that of --out */
	u32 nsources;
	const char *plan;	/* NULL: none */
	u64 zero;		/* CLOCK_MONOTONIC, ns; 0: now */
	bool live;
	bool gaps;
	const char *filter;	/* NULL: all */
	double rate;		/* bit/s; 0: not given */
	u32 overhead;		/* bytes per packet */
	u32 mss;		/* MSS of all flows, bytes; 0: by the SYNs */
	u32 prefix;		/* bytes of payload that identify a packet other than TCP */
	u32 snaplen;		/* bytes; 0: not given */
	u32 buffer_mb;		/* MiB for all devices */
	u64 bin;		/* ns */
	u64 from, to;		/* ns from the first packet; to: NEVER if not given */
	u64 gap;		/* ns */
	u64 duration;		/* ns; 0: not given */
};

extern struct options opt;

/* Reads the command line and sets outfile[]. A wrong one ends the program with exit status 2. */
void read_options(int argc, char **argv);

#define usage_error(fmt, ...) \
	errx(2, fmt " (see qdelay --help)", ##__VA_ARGS__)

#endif
