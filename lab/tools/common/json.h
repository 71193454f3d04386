/* SPDX-License-Identifier: GPL-2.0 */
/* Writes JSON as a stream. @key is NULL in an array and at the top level. */
#ifndef TOOLS_JSON_H
#define TOOLS_JSON_H

#include <stdio.h>

#include "types.h"

struct json {
	FILE *file;
	bool comma;	/* needed before the next value */
};

/* @bracket: '{' or '['; '}' or ']' to close */
void json_open(struct json *j, const char *key, char bracket);
void json_close(struct json *j, char bracket);
/* The next value of an array starts a new line. */
void json_newline(struct json *j);

void json_str(struct json *j, const char *key, const char *val);
void json_int(struct json *j, const char *key, u64 val);
/* null if @val is not finite. @digits: after the decimal point */
void json_real(struct json *j, const char *key, int digits, double val);
void json_null(struct json *j, const char *key);

#endif
