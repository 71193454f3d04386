/* SPDX-License-Identifier: GPL-2.0 */
/* The output files. If the program fails, files that are not closed yet are removed. */
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

/* Opens all files and writes the header lines of CSV files. */
void outputs_open(void);
void outputs_close(void);

/* Writes a line of --packets; @in or @out is NULL if that side did not see the packet. */
void packet_line(const struct pkt *in, const struct pkt *out);

#endif
