/* SPDX-License-Identifier: GPL-2.0 */
/* Lines of JSON. */
#ifndef FLOWGEN_REPORT_H
#define FLOWGEN_REPORT_H

#include "../common/json.h"
#include "flow.h"

/* Opens the output: @path, or stdout if that is NULL. */
void report_open(const char *path);
/* Where files beside the output go */
const char *report_folder(void);
/* Returns -1 if something could not be written. */
int report_close(void);

/* Starts a line with its type, label and kind. Fields follow, then report_line_end(). */
struct json report_line(const char *type, const struct config *cfg);
void report_span(struct json *j, u64 start, u64 end, u64 bytes);
void report_line_end(struct json *j);

/* Lines that several patterns have. @moved: bytes of the request that arrived */
void report_interval(struct flow *f, u64 now, const struct tcp_info *info, u64 moved);
/* @s: totals at the end, NULL if not known */
void report_flow(const struct flow *f, u64 now, u64 moved, const struct sender *s,
		 const struct verdict *v);
/* @cfg: whose label it gets; @t0: when the run began */
void report_summary(const struct config *cfg, u64 t0);

/* Adds a flow or a program to the totals; to be called once per line */
void count_flow(u64 start, u64 end, u64 bytes, bool ok);

/* Sums over all lines. */
struct totals {
	u64 ok, failed, bytes;
	u64 first_start, last_end;	/* ns; NEVER and 0 if there was none */
	u64 late_max;			/* ns, of a flow's start */
};

extern struct totals totals;

/* A flow that was due at @due starts at @now. */
void report_late(u64 now, u64 due);

#endif
