/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A program's options as one table: getopt_long() reads them, --help prints them. -h, --help and
 * --version need no row. A wrong command line ends the program with one line and exit status 2.
 */
#ifndef TOOLS_OPTIONS_H
#define TOOLS_OPTIONS_H

#include "types.h"

enum option_type {
	OPT_FLAG,	/* bool, becomes true */
	OPT_TEXT,	/* const char *, @min to @max bytes */
	OPT_INT,	/* whole number of 2, 4 or 8 bytes, @min to @max */
	OPT_SIZE,	/* bytes, u64 or a smaller integer that holds @max */
	OPT_TIME,	/* ns, u64 */
	OPT_RATE,	/* bit/s, double; a number without a unit is allowed */
	OPT_UNIT_RATE,	/* bit/s, double; the unit is required */
	OPT_PER_SECOND,	/* number per second, double */
	OPT_CALL,	/* @call stores it */
};

/**
 * struct option_row - one option, or a line between options in --help
 * @name:	without "--"; NULL: the row is only @letter, or a heading if that is 0, too
 * @value:	how --help calls the value; "[=T]" if it can be left out; NULL: there is none
 * @type:	what the value is
 * @to:		where it goes; use TO()
 * @bytes:	size of *@to
 * @min:	smallest value
 * @max:	largest value; 0: as the type's parse function has it
 * @range:	the range in words, for sizes and times that have @min or @max
 * @call:	OPT_CALL: gets the option with its dashes, and the value or NULL
 * @modes:	set of modes (bits) in which the option is allowed; 0: all
 * @letter:	short name
 * @help:	what it does and, in parentheses, its default; may have several lines
 */
struct option_row {
	const char *name;
	const char *value;
	enum option_type type;
	void *to;
	size_t bytes;
	u64 min, max;
	const char *range;
	void (*call)(const char *option, char *value);
	unsigned int modes;
	char letter;
	const char *help;
};

#define TO(variable)	.to = &(variable), .bytes = sizeof(variable)

/**
 * struct option_table - all of a program's options
 * @program:	its name
 * @usage:	printed by --help before the options
 * @notes:	... and after them
 * @row:	the options, in the order of --help
 * @rows:	how many, at most OPTION_ROWS
 * @once:	no option may be given twice
 */
struct option_table {
	const char *program;
	const char *usage;
	const char *notes;
	const struct option_row *row;
	size_t rows;
	bool once;
};

#define OPTION_ROWS	80

/*
 * Reads the options in @argv, from argv[1] on. @mode: the bit of option_row.modes that holds;
 * @mode_name: for messages. Returns the index of the first argument that is no option; getopt
 * has moved these to the end.
 */
int options_read(const struct option_table *t, int argc, char **argv, unsigned int mode,
		 const char *mode_name);

void options_help(const struct option_table *t);
void options_version(const struct option_table *t);

#endif
