/* SPDX-License-Identifier: GPL-2.0 */
/* Which part of a TCP sequence space went by on one side. */
#ifndef QDELAY_SEEN_H
#define QDELAY_SEEN_H

#include "../common/types.h"

struct range {
	u64 a, b;		/* [a, b) */
};

struct seen {
	bool init;
	u32 isn;		/* of the SYN, if there was one */
	bool syn;
	u64 top;		/* end of all that was seen */
	struct range *hole;	/* what is missing below, sorted */
	u32 holes, cap;
};

/*
 * Adds [seq, seq + n) to what was seen; returns how much of it is new. @n: 1 or more.
 * @syn: it begins a connection, and the sequence space anew, unless it repeats the last one
 */
u32 seen_add(struct seen *s, u32 seq, u32 n, bool syn);

#endif
