/* SPDX-License-Identifier: GPL-2.0 */
/* The part of a TCP sequence space that one side has seen. */
#ifndef QDELAY_SEEN_H
#define QDELAY_SEEN_H

#include "../common/types.h"

struct range {
	u64 a, b;		/* [a, b) */
};

struct seen {
	bool init;
	u32 isn;		/* of the SYN, if @syn */
	bool syn;
	u64 base;		/* start of what was seen */
	u64 top;		/* end of what was seen */
	struct range *hole;	/* what is missing in between, sorted */
	u32 holes, cap;
};

/*
 * Adds [seq, seq + n) to what was seen; returns how much of it is new. @n: 1 or more.
 * @syn: starts a new connection and forgets the old one, unless it repeats the last SYN
 */
u32 seen_add(struct seen *s, u32 seq, u32 n, bool syn);
/* True if all of [seq, seq + n) has been seen. */
bool seen_has(const struct seen *s, u32 seq, u32 n);

#endif
