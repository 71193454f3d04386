/* SPDX-License-Identifier: GPL-2.0 */
/* Writes JSON as it goes. @key is NULL in an array, and for what stands alone. */
#ifndef TOOLS_JSON_H
#define TOOLS_JSON_H

#include <stdio.h>

#include "types.h"

struct json {
	FILE *file;
	bool comma;	/* is due before what comes next */
};

/* @bracket: '{' or '[', and the one that closes it */
void json_open(struct json *j, const char *key, char bracket);
void json_close(struct json *j, char bracket);
/* What comes next in an array begins a line. */
void json_newline(struct json *j);

void json_str(struct json *j, const char *key, const char *val);
void json_int(struct json *j, const char *key, u64 val);
/* Null where @val is not finite. @digits: after the point */
void json_real(struct json *j, const char *key, int digits, double val);
void json_null(struct json *j, const char *key);

#endif
