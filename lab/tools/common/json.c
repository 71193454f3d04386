// SPDX-License-Identifier: GPL-2.0
#include <math.h>

#include "json.h"

static void put_str(FILE *f, const char *s)
{
	fputc('"', f);
	for (; *s; s++) {
		unsigned char c = *s;

		if (c == '"' || c == '\\')
			fprintf(f, "\\%c", c);
		else if (c < 0x20 || c == 0x7f)
			fprintf(f, "\\u%04x", c);
		else
			fputc(c, f);
	}
	fputc('"', f);
}

static void comma(struct json *j)
{
	if (j->comma)
		fputc(',', j->file);
	j->comma = false;
}

/* Writes comma and key; the value must follow. */
static void begin(struct json *j, const char *key)
{
	comma(j);
	if (key) {
		put_str(j->file, key);
		fputc(':', j->file);
	}
	j->comma = true;
}

void json_open(struct json *j, const char *key, char bracket)
{
	begin(j, key);
	fputc(bracket, j->file);
	j->comma = false;
}

void json_close(struct json *j, char bracket)
{
	fputc(bracket, j->file);
	j->comma = true;
}

void json_newline(struct json *j)
{
	comma(j);
	fputc('\n', j->file);
}

void json_str(struct json *j, const char *key, const char *val)
{
	begin(j, key);
	put_str(j->file, val);
}

void json_int(struct json *j, const char *key, u64 val)
{
	begin(j, key);
	fprintf(j->file, "%llu", val);
}

void json_real(struct json *j, const char *key, int digits, double val)
{
	if (!isfinite(val)) {
		json_null(j, key);
		return;
	}
	begin(j, key);
	fprintf(j->file, "%.*f", digits, val);
}

void json_null(struct json *j, const char *key)
{
	begin(j, key);
	fputs("null", j->file);
}
