// SPDX-License-Identifier: GPL-2.0
#include <ctype.h>
#include <err.h>
#include <libgen.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "../common/alloc.h"
#include "../common/units.h"
#include "document.h"

#define RATE_MIN	1e3	/* bit/s */
#define RATE_MAX	2e12
#define DELAY_MAX	(100 * NSEC)

static const char *file;

json_t *document_load(const char *path)
{
	bool input = !strcmp(path, "-");
	json_error_t error;
	json_t *document;
	FILE *f;

	file = input ? "standard input" : path;
	f = input ? stdin : fopen(path, "r");
	if (!f)
		err(2, "%s", file);
	document = json_loadf(f, JSON_REJECT_DUPLICATES, &error);
	if (!document)
		errx(2, "%s:%d:%d: not JSON: %s", file, error.line, error.column, error.text);
	if (!input)
		fclose(f);
	return document;
}

const char *document_name(void)
{
	return file;
}

char *file_beside(const char *s)
{
	char *copy = strdup(file), *path;

	if (!copy || asprintf(&path, "%s%s%s", *s == '/' ? "" : dirname(copy),
			      *s == '/' ? "" : "/", s) < 0)
		err(1, "memory");
	free(copy);
	return path;
}

static void put_place(FILE *f, const struct place *at)
{
	if (!at)
		return;
	put_place(f, at->in);
	if (!at->key)
		fprintf(f, "[%zu]", at->index);
	else
		fprintf(f, "%s%s", at->in ? "." : "", at->key);
}

char *place_text(const struct place *at)
{
	char *text;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		err(1, "memory");
	fprintf(f, "%s%s", file, at ? ": " : "");
	put_place(f, at);
	if (fclose(f))
		err(1, "memory");
	return text;
}

void refuse(const struct place *at, const char *fmt, ...)
{
	char why[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	errx(2, "%s: %s", place_text(at), why);
}

static bool belongs(const struct field *f, unsigned int kind)
{
	return !f->kinds || f->kinds & kind;
}

static void check_key(unsigned int kind, const struct place *at, const struct field *fields)
{
	const struct field *f;
	char known[512] = "";

	for (f = fields; f->name; f++) {
		if (!belongs(f, kind))
			continue;
		if (!strcmp(f->name, at->key))
			return;
		snprintf(known + strlen(known), sizeof(known) - strlen(known), "%s%s",
			 known[0] ? ", " : "", f->name);
	}
	refuse(at, "unknown field; there are %s", known);
}

void read_object(const struct place *at, json_t *value, const struct field *fields, void *to)
{
	read_object_of(0, at, value, fields, to);
}

void read_object_of(unsigned int kind, const struct place *at, json_t *value,
		    const struct field *fields, void *to)
{
	const struct field *f;
	const char *key;
	json_t *item;

	if (!json_is_object(value))
		refuse(at, "not an object");
	json_object_foreach(value, key, item) {
		const struct place in = { at, key, 0 };

		check_key(kind, &in, fields);
	}
	for (f = fields; f->name; f++) {
		const struct place in = { at, f->name, 0 };

		if (!belongs(f, kind))
			continue;
		item = json_object_get(value, f->name);
		if (item)
			f->read(&in, item, (char *)to + f->offset);
		else if (f->required)
			refuse(at, "'%s' is missing", f->name);
	}
}

const char *string(const struct place *at, json_t *value)
{
	if (!json_is_string(value))
		refuse(at, "not a string");
	return json_string_value(value);
}

size_t array(const struct place *at, json_t *value, size_t least, size_t most)
{
	size_t n = json_array_size(value);

	if (!json_is_array(value))
		refuse(at, "not an array");
	if (n < least || n > most)
		refuse(at, "%zu of them, not %zu%s", n, least, least == most ? "" : " or more");
	return n;
}

u64 whole(const struct place *at, json_t *value, u64 min, u64 max)
{
	json_int_t v = json_integer_value(value);

	if (!json_is_integer(value) || v < 0 || (u64)v < min || (u64)v > max)
		refuse(at, "not a whole number from %llu to %llu", min, max);
	return v;
}

const char *name(const struct place *at, json_t *value, size_t most)
{
	const char *s = string(at, value);

	if (!*s || strlen(s) > most)
		refuse(at, "'%s' has not 1 to %zu characters", s, most);
	for (size_t i = 0; s[i]; i++)
		if (!isalnum((unsigned char)s[i]) && (!i || !strchr("._-", s[i])))
			refuse(at,
			       "'%s' has other characters than letters, digits and, not first, . _ -",
			       s);
	return s;
}

void read_bool(const struct place *at, json_t *value, void *to)
{
	if (!json_is_boolean(value))
		refuse(at, "neither true nor false");
	*(bool *)to = json_is_true(value);
}

void read_string(const struct place *at, json_t *value, void *to)
{
	*(const char **)to = string(at, value);
}

void read_rate(const struct place *at, json_t *value, void *to)
{
	const char *s = string(at, value);
	char *where = place_text(at);
	double rate = parse_rate(where, s, false);

	free(where);
	if (rate < RATE_MIN || rate > RATE_MAX)
		refuse(at, "'%s' is out of range (1kbit to 2tbit)", s);
	*(double *)to = rate;
}

void read_time(const struct place *at, json_t *value, void *to)
{
	char *where = place_text(at);

	*(u64 *)to = parse_time(where, string(at, value));
	free(where);
}

void read_delay(const struct place *at, json_t *value, void *to)
{
	u64 delay;

	read_time(at, value, &delay);
	if (delay > DELAY_MAX)
		refuse(at, "'%s' is out of range (0 to 100s)", json_string_value(value));
	*(u64 *)to = delay;
}

void read_bytes(const struct place *at, json_t *value, void *to)
{
	char *where;

	if (!json_is_string(value)) {
		*(u64 *)to = whole(at, value, 1, SIZE_LIMIT);
		return;
	}
	where = place_text(at);
	*(u64 *)to = parse_size(where, json_string_value(value));
	free(where);
}

bool index_new(json_t *index, const char *key, size_t value)
{
	if (json_object_get(index, key))
		return false;
	if (json_object_set_new_nocheck(index, key, json_integer(value)))
		err(1, "memory");
	return true;
}

long long index_get(json_t *index, const char *key)
{
	json_t *value = json_object_get(index, key);

	return value ? json_integer_value(value) : -1;
}
