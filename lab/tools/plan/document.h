/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Reads JSON by tables of fields. A fault ends the program with exit status 2 and one line: the
 * file, the place in it, the reason. Strings stay those of the document, which is never freed.
 */
#ifndef PLAN_DOCUMENT_H
#define PLAN_DOCUMENT_H

#include <jansson.h>

#include "../common/types.h"

/* Where in the document: a list from the innermost to the whole */
struct place {
	const struct place *in;
	const char *key;	/* or else @index */
	size_t index;
};

struct field {
	const char *name;
	void (*read)(const struct place *at, json_t *value, void *to);
	size_t offset;
	bool required;
	unsigned int kinds;	/* of objects that have it, a set of bits; 0: all */
};

/* @to: the value's offset; 0 for a function that stores several values of the object */
#define FIELD(key, function, to)	{ .name = key, .read = function, .offset = to }
#define NEEDED(key, function, to) \
	{ .name = key, .read = function, .offset = to, .required = true }

/* Parses @path, "-" for standard input */
json_t *document_load(const char *path);
/* What messages call the file */
const char *document_name(void);

/* The path of a file that the document names, from its folder on. To be freed */
char *file_beside(const char *name);

/* "FILE: PLACE", to be freed */
char *place_text(const struct place *at);
void __attribute__((noreturn, format(printf, 2, 3)))
refuse(const struct place *at, const char *fmt, ...);

/* The fields of the object @value, in the table's order; { 0 } ends @fields */
void read_object(const struct place *at, json_t *value, const struct field *fields, void *to);
/* @kind: a bit of field.kinds */
void read_object_of(unsigned int kind, const struct place *at, json_t *value,
		    const struct field *fields, void *to);

const char *string(const struct place *at, json_t *value);
/* Its length, which must be from @least to @most */
size_t array(const struct place *at, json_t *value, size_t least, size_t most);
u64 whole(const struct place *at, json_t *value, u64 min, u64 max);
/* A name of up to @most characters that ip and the file system accept */
const char *name(const struct place *at, json_t *value, size_t most);

void read_bool(const struct place *at, json_t *value, void *to);	/* bool */
void read_string(const struct place *at, json_t *value, void *to);	/* const char * */
void read_rate(const struct place *at, json_t *value, void *to);	/* double, bit/s */
void read_time(const struct place *at, json_t *value, void *to);	/* u64, ns */
void read_delay(const struct place *at, json_t *value, void *to);	/* ... up to 100 s */
/* u64, bytes: a whole number, or a string such as "20k" */
void read_bytes(const struct place *at, json_t *value, void *to);

/*
 * Whether @key is new in @index, an object of what is known by name; adds it with @value then.
 * index_get() returns the value, -1 if there is none.
 */
bool index_new(json_t *index, const char *key, size_t value);
long long index_get(json_t *index, const char *key);

#endif
