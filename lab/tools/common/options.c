// SPDX-License-Identifier: GPL-2.0
#include <assert.h>
#include <err.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"
#include "units.h"

/* What getopt_long() returns: row i is ROW + i. */
enum { HELP = 256, VERSION, ROW };

static bool is_option(const struct option_row *r)
{
	return r->name || r->letter;
}

static bool value_optional(const struct option_row *r)
{
	return r->value && r->value[0] == '[';
}

/* "--name VALUE", as --help shows it */
static int option_text(const struct option_row *r, char *buf, size_t size)
{
	if (!r->name)
		return snprintf(buf, size, "-%c", r->letter);
	return snprintf(buf, size, "--%s%s%s", r->name, r->value && !value_optional(r) ? " " : "",
			r->value ? r->value : "");
}

/* Prints @text; its second and later lines begin in @column. */
static void print_lines(const char *text, int column)
{
	const char *end;

	while ((end = strchr(text, '\n')) != NULL) {
		printf("%.*s\n%*s", (int)(end - text), text, column, "");
		text = end + 1;
	}
	puts(text);
}

void options_help(const struct option_table *t)
{
	const struct option_row *r;
	int width = strlen("--version"), len;
	char text[64];

	for (r = t->row; r < t->row + t->rows; r++) {
		len = is_option(r) ? option_text(r, text, sizeof(text)) : 0;
		if (len > width)
			width = len;
	}
	fputs(t->usage, stdout);
	for (r = t->row; r < t->row + t->rows; r++) {
		if (is_option(r)) {
			option_text(r, text, sizeof(text));
			printf("  %-*s  ", width, text);
			print_lines(r->help, width + 4);
		} else {
			puts(r->help);
		}
	}
	printf("  %-*s  print this and exit\n", width, "-h, --help");
	printf("  %-*s  print the version and exit\n", width, "--version");
	fputs(t->notes, stdout);
}

void options_version(const struct option_table *t)
{
	printf("%s %s\n", t->program, LOWQ_VERSION);
}

static void store_int(const struct option_row *r, u64 value)
{
	u16 v16 = value;
	u32 v32 = value;

	if (r->bytes == sizeof(v16))
		memcpy(r->to, &v16, sizeof(v16));
	else if (r->bytes == sizeof(v32))
		memcpy(r->to, &v32, sizeof(v32));
	else
		memcpy(r->to, &value, sizeof(value));
}

static void store_in_range(const struct option_row *r, const char *option, const char *text,
			   u64 value)
{
	if (value < r->min || (r->max && value > r->max))
		errx(2, "%s: '%s' is out of range (%s)", option, text, r->range);
	store_int(r, value);
}

static void store_text(const struct option_row *r, const char *option, const char *text)
{
	size_t len = strlen(text);

	if (len < r->min)
		errx(2, "%s: shorter than %llu bytes", option, r->min);
	if (r->max && len > r->max)
		errx(2, "%s: longer than %llu bytes", option, r->max);
	*(const char **)r->to = text;
}

static void store(const struct option_row *r, const char *option, char *text)
{
	switch (r->type) {
	case OPT_FLAG:
		*(bool *)r->to = true;
		break;
	case OPT_TEXT:
		store_text(r, option, text);
		break;
	case OPT_INT:
		store_int(r, parse_int(option, text, r->min, r->max));
		break;
	case OPT_SIZE:
		store_in_range(r, option, text, parse_size(option, text));
		break;
	case OPT_TIME:
		store_in_range(r, option, text, parse_time(option, text));
		break;
	case OPT_RATE:
		*(double *)r->to = parse_rate(option, text, true);
		break;
	case OPT_UNIT_RATE:
		*(double *)r->to = parse_rate(option, text, false);
		break;
	case OPT_PER_SECOND:
		*(double *)r->to = parse_frequency(option, text);
		break;
	case OPT_CALL:
		r->call(option, text);
		break;
	}
}

/* The table as getopt_long() wants it */
static void fill(const struct option_table *t, struct option *o, char *letters)
{
	size_t i;

	assert(t->rows <= OPTION_ROWS);
	*letters++ = ':';
	*letters++ = 'h';
	*o++ = (struct option){ "help", no_argument, NULL, HELP };
	*o++ = (struct option){ "version", no_argument, NULL, VERSION };
	for (i = 0; i < t->rows; i++) {
		const struct option_row *r = &t->row[i];

		if (r->letter)
			*letters++ = r->letter;
		if (r->name)
			*o++ = (struct option){
				r->name, value_optional(r) ? optional_argument :
					 r->value ? required_argument : no_argument,
				NULL, ROW + i
			};
	}
	*o = (struct option){ 0 };
	*letters = 0;
}

static size_t row_of_letter(const struct option_table *t, char letter)
{
	size_t i = 0;

	while (t->row[i].letter != letter)
		i++;
	return i;
}

int options_read(const struct option_table *t, int argc, char **argv, unsigned int mode,
		 const char *mode_name)
{
	struct option long_options[OPTION_ROWS + 3];
	char letters[OPTION_ROWS + 3];
	bool seen[OPTION_ROWS] = { 0 };
	int c;

	fill(t, long_options, letters);
	opterr = 0;
	while ((c = getopt_long(argc, argv, letters, long_options, NULL)) != -1) {
		const struct option_row *r;
		char option[32];
		size_t i;

		switch (c) {
		case 'h':
		case HELP:
			options_help(t);
			exit(0);
		case VERSION:
			options_version(t);
			exit(0);
		case ':':
			errx(2, "%s needs a value (see %s --help)", argv[optind - 1], t->program);
		case '?':
			errx(2, "unknown option '%s' (see %s --help)", argv[optind - 1],
			     t->program);
		}
		i = c < ROW ? row_of_letter(t, c) : (size_t)(c - ROW);
		r = &t->row[i];
		snprintf(option, sizeof(option), r->name ? "--%s" : "-%.1s",
			 r->name ? r->name : &r->letter);
		if (r->modes && !(r->modes & mode))
			errx(2, "%s has no place in %s", option, mode_name);
		if (t->once && seen[i])
			errx(2, "%s is given twice", option);
		seen[i] = true;
		store(r, option, optarg);
	}
	return optind;
}
