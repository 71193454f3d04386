// SPDX-License-Identifier: GPL-2.0
/* What a link does to packets beyond rate and delay: from JSON to struct line */
#include <ctype.h>
#include <err.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../../link/lowq_link.h"
#include "../common/alloc.h"
#include "document.h"
#include "plan.h"

#define TRACE_MIB	64
#define TRACE_MS_MAX	4000000		/* instants are microseconds of 32 bits */

static void read_probability(const struct place *at, json_t *value, void *to)
{
	double p = json_number_value(value);

	if (!json_is_number(value) || !(p >= 0 && p <= 1))
		refuse(at, "not a probability from 0 to 1");
	*(u64 *)to = p * CERTAIN + 0.5;
}

void read_jitter(const struct place *at, json_t *value, void *to)
{
	read_delay(at, value, &((struct line *)to)->jitter);
}

void read_duplicate(const struct place *at, json_t *value, void *to)
{
	read_probability(at, value, &((struct line *)to)->duplicate);
}

void read_corrupt(const struct place *at, json_t *value, void *to)
{
	read_probability(at, value, &((struct line *)to)->corrupt);
}

static const struct field loss_fields[] = {
	FIELD("good", read_probability, offsetof(struct line, loss[0])),
	FIELD("bad", read_probability, offsetof(struct line, loss[1])),
	NEEDED("p", read_probability, offsetof(struct line, loss[2])),
	NEEDED("r", read_probability, offsetof(struct line, loss[3])),
	{ 0 }
};

void read_loss(const struct place *at, json_t *value, void *to)
{
	struct line *l = to;

	memset(l->loss, 0, sizeof(l->loss));
	if (json_is_number(value)) {
		read_probability(at, value, &l->loss[0]);
		return;
	}
	l->loss[1] = CERTAIN;
	read_object(at, value, loss_fields, l);
}

static const struct field reorder_fields[] = {
	NEEDED("share", read_probability, offsetof(struct line, late)),
	NEEDED("by", read_delay, offsetof(struct line, late_by)),
	{ 0 }
};

void read_reorder(const struct place *at, json_t *value, void *to)
{
	read_object(at, value, reorder_fields, to);
}

/* One line: when a packet of 1500 bytes can leave, in ms */
static u32 parse_instant(const struct place *at, const char *file, size_t line, char *s, u32 last)
{
	double ms;
	char *end;

	s[strcspn(s, "\n")] = 0;
	ms = strtod(s, &end);
	if (!isdigit((unsigned char)*s) || *end || strspn(s, "0123456789.") != strlen(s))
		refuse(at, "%s:%zu: '%.40s' is not a number of milliseconds", file, line, s);
	if (ms > TRACE_MS_MAX)
		refuse(at, "%s:%zu: %s ms is more than %d", file, line, s, TRACE_MS_MAX);
	if ((u32)(ms * 1000 + 0.5) < last)
		refuse(at, "%s:%zu: %s ms is before the last line's", file, line, s);
	return ms * 1000 + 0.5;
}

void read_trace(const struct place *at, json_t *value, void *to)
{
	char *file = file_beside(string(at, value)), *s = NULL;
	struct line *l = to;
	size_t room = 0, size = 0;
	struct stat stat;
	u32 last = 0;
	FILE *f = fopen(file, "r");

	if (!f || fstat(fileno(f), &stat))
		err(2, "%s: %s", place_text(at), file);
	if (stat.st_size > TRACE_MIB << 20)
		refuse(at, "%s has more than %d MiB", file, TRACE_MIB);
	l->n_instants = 0;
	l->instant = NULL;
	while (getline(&s, &size, f) > 0) {
		if (l->n_instants == LOWQ_LINK_TRACE_MAX)
			refuse(at, "%s has more than %d lines", file, LOWQ_LINK_TRACE_MAX);
		if (l->n_instants == room) {
			room = room ? 2 * room : 1024;
			l->instant = xreallocarray(l->instant, room, sizeof(*l->instant));
		}
		last = parse_instant(at, file, l->n_instants + 1, s, last);
		l->instant[l->n_instants++] = last;
	}
	if (ferror(f))
		err(2, "%s: %s", place_text(at), file);
	if (!last)
		refuse(at, "%s has no instant after 0", file);
	free(s);
	fclose(f);
	free(file);
}

bool line_used(const struct line *l)
{
	return l->jitter || l->loss[0] || l->loss[2] || l->late || l->duplicate || l->corrupt ||
	       l->instant;
}
