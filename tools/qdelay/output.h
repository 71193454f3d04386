/* SPDX-License-Identifier: GPL-2.0 */
/* The files that results go to. If the program fails, none that is not closed stays. */
#ifndef QDELAY_OUTPUT_H
#define QDELAY_OUTPUT_H

#include <stdio.h>

#include "packet.h"

struct outfile {
	const char *path;	/* NULL: not wanted; "-": stdout */
	FILE *f;		/* NULL: not wanted, not open yet, or closed */
	bool mine;		/* a plain file: removed if the run fails */
};

enum { OUT_JSON, OUT_SERIES, OUT_FLOW_SERIES, OUT_PACKETS, OUTFILES };

extern struct outfile outfile[OUTFILES];

/* With the first lines of those that are CSV. */
void outputs_open(void);
void outputs_close(void);

/* A line of --packets; @in or @out may be NULL: not seen there. */
void packet_line(const struct pkt *in, const struct pkt *out);

#endif
