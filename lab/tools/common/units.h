/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Numbers on the command line. Each function takes the option's name, for its message, and its
 * value. A wrong value ends the program with one line and exit status 2.
 * Numbers are decimal and may have a fraction, but no sign and no exponent.
 */
#ifndef TOOLS_UNITS_H
#define TOOLS_UNITS_H

#include "types.h"

/* Bytes, 1 to SIZE_LIMIT: 1448, 20k, 20kB, 4Mi, 4MiB. */
#define SIZE_LIMIT	(1ULL << 60)
u64 parse_size(const char *opt, const char *s);

/* Nanoseconds, 0 to 1e17: 10us, 1.5ms, 2s, and 0. */
u64 parse_time(const char *opt, const char *s);

/* Bits per second, 1 to 1e15: 800kbit, 2.5Gbit. @bare: a plain number is allowed. */
double parse_rate(const char *opt, const char *s, bool bare);

/* A number of something per second, 1e-6 to 1e9, without a unit. */
double parse_frequency(const char *opt, const char *s);

/* A whole number from @min to @max. */
u64 parse_int(const char *opt, const char *s, u64 min, u64 max);

#endif
