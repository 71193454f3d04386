// SPDX-License-Identifier: GPL-2.0
#include <ctype.h>
#include <err.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "units.h"

struct unit {
	const char *name;
	double factor;
};

static const struct unit size_units[] = {
	{ "", 1 }, { "k", 1e3 }, { "K", 1e3 }, { "M", 1e6 }, { "G", 1e9 }, { "T", 1e12 },
	{ "Ki", 1LL << 10 }, { "Mi", 1LL << 20 }, { "Gi", 1LL << 30 }, { "Ti", 1LL << 40 },
	{ NULL, 0 },
};

static const struct unit time_units[] = {
	{ "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 }, { NULL, 0 },
};

static const struct unit rate_units[] = {
	{ "", 1 },	/* first, so that it can be skipped where a unit is required */
	{ "bit", 1 }, { "kbit", 1e3 }, { "mbit", 1e6 }, { "gbit", 1e9 }, { "tbit", 1e12 },
	{ NULL, 0 },
};

/* Parses the leading decimal number of @s and sets *@end. No sign, exponent, hex, inf, nan. */
static bool parse_decimal(const char *s, double *val, const char **end)
{
	size_t digits = strspn(s, "0123456789.");
	char buf[64];
	char *stop;

	if (!digits || digits >= sizeof(buf))
		return false;
	memcpy(buf, s, digits);
	buf[digits] = 0;
	*val = strtod(buf, &stop);
	*end = s + digits;
	return !*stop && isdigit((unsigned char)buf[strcspn(buf, "0123456789")]);
}

static double parse_units(const char *opt, const char *s, const struct unit *u,
			  int (*cmp)(const char *, const char *), const char *wanted)
{
	const char *end;
	double val;

	if (!parse_decimal(s, &val, &end))
		errx(2, "%s: '%s' is not %s", opt, s, wanted);
	for (; u->name; u++)
		if (!cmp(end, u->name))
			return val * u->factor;
	if (*end)
		errx(2, "%s: '%s' has an unknown unit, want %s", opt, s, wanted);
	errx(2, "%s: '%s' has no unit, want %s", opt, s, wanted);
}

u64 parse_size(const char *opt, const char *s)
{
	static const char wanted[] = "a size in bytes such as 1448, 20k or 4Mi";
	char buf[72];
	size_t len = strlen(s);
	double val;

	/* A final B is ignored: 20kB, 4MiB. */
	if (len > 1 && len < sizeof(buf) && s[len - 1] == 'B') {
		memcpy(buf, s, len - 1);
		buf[len - 1] = 0;
		val = parse_units(opt, buf, size_units, strcmp, wanted);
	} else {
		val = parse_units(opt, s, size_units, strcmp, wanted);
	}
	if (val < 1 || val > (double)SIZE_LIMIT)
		errx(2, "%s: '%s' is out of range (1 byte to 2^60)", opt, s);
	return (u64)(val + 0.5);
}

u64 parse_time(const char *opt, const char *s)
{
	double val;

	if (!strcmp(s, "0"))
		return 0;
	val = parse_units(opt, s, time_units, strcmp, "a time such as 10us, 1.5ms or 2s");
	if (val > 1e17)
		errx(2, "%s: '%s' is too long", opt, s);
	return (u64)(val + 0.5);
}

double parse_rate(const char *opt, const char *s, bool bare)
{
	double val = parse_units(opt, s, rate_units + !bare, strcasecmp,
				 "a rate such as 800kbit, 40mbit or 2.5gbit");

	if (val < 1 || val > 1e15)
		errx(2, "%s: '%s' is out of range (1bit to 1000tbit)", opt, s);
	return val;
}

double parse_frequency(const char *opt, const char *s)
{
	const char *end;
	double val;

	if (!parse_decimal(s, &val, &end) || *end)
		errx(2, "%s: '%s' is not a number per second", opt, s);
	if (!(val >= 0.000001 && val <= 1e9))
		errx(2, "%s: '%s' is out of range (0.000001 to 1000000000)", opt, s);
	return val;
}

u64 parse_int(const char *opt, const char *s, u64 min, u64 max)
{
	unsigned long long val;
	char *end;

	errno = 0;
	val = strtoull(s, &end, 10);
	if (!isdigit((unsigned char)*s) || *end || errno || val < min || val > max)
		errx(2, "%s: '%s' is not a whole number from %llu to %llu", opt, s, min, max);
	return val;
}
