// SPDX-License-Identifier: GPL-2.0
#include <string.h>

#include "../common/alloc.h"
#include "seen.h"

#define MAX_HOLES	65536		/* further ones count as seen */
/* Without a SYN: how far below the first segment earlier, reordered ones may start, bytes. */
#define REORDER_BYTES	(1U << 20)

static void hole_add(struct seen *s, u32 at, u64 a, u64 b)
{
	if (s->holes == MAX_HOLES)
		return;
	if (s->holes == s->cap) {
		s->cap = s->cap ? s->cap * 2 : 8;
		s->hole = xreallocarray(s->hole, s->cap, sizeof(*s->hole));
	}
	memmove(&s->hole[at + 1], &s->hole[at],
		(s->holes - at) * sizeof(*s->hole));
	s->hole[at].a = a;
	s->hole[at].b = b;
	s->holes++;
}

/* The first hole that ends after @a, or s->holes. */
static u32 hole_after(const struct seen *s, u64 a)
{
	u32 lo = 0, hi = s->holes, mid;

	while (lo < hi) {
		mid = (lo + hi) / 2;
		if (s->hole[mid].b > a)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

bool seen_has(const struct seen *s, u32 seq, u32 n)
{
	u64 a = s->top + (int)(seq - (u32)s->top), b = a + n;
	u32 i;

	if (!s->init || a < s->base || b > s->top)
		return false;
	i = hole_after(s, a);
	return i == s->holes || s->hole[i].a >= b;
}

u32 seen_add(struct seen *s, u32 seq, u32 n, bool syn)
{
	u32 fresh = 0, lo;
	u64 a, b, x, y;

	if (!s->init || (syn && !(s->syn && s->isn == seq))) {
		/* the first segment, or a new connection between the same ports */
		s->init = true;
		s->base = (1ULL << 32) + seq;
		s->top = s->base;
		s->holes = 0;
		s->syn = syn;
		s->isn = seq;
	}
	a = s->top + (int)(seq - (u32)s->top);
	b = a + n;
	if (!s->syn && a < s->base && s->base - a <= REORDER_BYTES) {
		/* the capture began in mid-flow, with a segment that overtook this one */
		hole_add(s, 0, a, s->base);
		s->base = a;
	}
	if (a > s->top) {
		hole_add(s, s->holes, s->top, a);
		s->top = a;
	}
	if (b > s->top) {
		fresh = b - s->top;
		x = s->top;
		s->top = b;
		b = x;
	}
	if (a >= b || !s->holes)
		return fresh;
	lo = hole_after(s, a);
	while (lo < s->holes && s->hole[lo].a < b) {
		struct range h = s->hole[lo];

		x = a > h.a ? a : h.a;
		y = b < h.b ? b : h.b;
		fresh += y - x;
		if (h.a < x && y < h.b) {
			s->hole[lo].b = x;
			hole_add(s, lo + 1, y, h.b);
			break;
		}
		if (y < h.b) {
			s->hole[lo].a = y;
			break;
		}
		if (h.a < x) {
			s->hole[lo++].b = x;
			continue;
		}
		s->holes--;
		memmove(&s->hole[lo], &s->hole[lo + 1],
			(s->holes - lo) * sizeof(*s->hole));
	}
	return fresh;
}
