// SPDX-License-Identifier: GPL-2.0
/*
 * count - a plugin for QEMU that counts the instructions of a guest's functions.
 *
 *	-plugin count.so,table=FILE,out=FILE
 *
 * The guest writes the table, once: lines "ADDRESS KIND NAME", the address in hexadecimal, and
 * "end" as the last line. Kinds:
 *	f	a function to count. What it calls is part of it.
 *	s	a function that is not part of its caller: softirqs, which may run on top of a
 *		counted function when it enables them.
 *	k	a function that a counted function calls, and that is counted apart: not part of
 *		its caller, without the counted functions that it calls. Called by others it is
 *		not counted.
 *	p	a function by which a counted function passes on a packet of the stack's: not part
 *		of its caller, nor counted, but part of a k below that.
 *	i	an entry of interrupts or exceptions. Everything up to its iret is not part of the
 *		function that it interrupts.
 *	m	a mark: each call of it appends one line to the output, and resets the counts.
 *
 * A line of the output is JSON: instructions executed since the last mark, and for each function
 * that was called: calls; instructions of all calls; the median and the extremes of a call; and
 * the same sums for the outer calls, those that no other counted function made.
 *
 * One CPU, x86-64. Nothing is added to what the guest executes, so with -icount the same guest
 * gives the same numbers. Functions start and end at the borders of translated blocks, so their
 * counts are exact. A block that a fault leaves early counts as a whole; counted functions do
 * not fault.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "qemu_plugin.h"

#define FUNCTIONS_MAX	4096
#define FRAMES_MAX	256
#define RETURNS		1024	/* a power of 2 */
#define HISTOGRAM	16384	/* instructions of a call, for the median; more counts as this */

enum ends { OTHER, CALL, RET, IRET };

/**
 * struct function - a line of the table, and what was counted since the last mark
 * @address:	of its first instruction
 * @kind:	f, s, k, p, i or m
 * @name:	for the output
 * @calls:	that have returned
 * @all:	instructions of these
 * @least:	instructions of the shortest call
 * @most:	instructions of the longest call
 * @lost:	calls whose return was not seen where it belongs; not counted
 * @outer:	calls that no counted function has made
 * @sum:	instructions of the outer calls
 * @histogram:	how many calls took that many instructions
 */
struct function {
	uint64_t address;
	char kind;
	char name[80];
	uint64_t calls, all, least, most, lost, outer, sum;
	uint32_t *histogram;
};

/**
 * struct block - instructions that QEMU has translated together
 * @next:	all blocks
 * @start:	address of the first instruction
 * @end:	address behind the last one
 * @count:	instructions
 * @ends:	what the last one is
 * @function:	which function starts here, or NULL
 */
struct block {
	struct block *next;
	uint64_t start, end;
	unsigned int count;
	enum ends ends;
	struct function *function;
};

/**
 * struct frame - a function or an interrupt that has not returned yet
 * @function:	which
 * @level:	value of level when it began: it has returned when there are fewer
 * @returns:	to this address
 * @start:	value of executed when it began
 * @stolen:	instructions since then that are not its own
 * @kept:	... but those of the k below it
 */
struct frame {
	struct function *function;
	uint64_t level, returns, start, stolen, kept;
};

QEMU_PLUGIN_EXPORT int qemu_plugin_version = QEMU_PLUGIN_VERSION;

static const char *table_path;
static FILE *out;
static bool table_read;
static struct function functions[FUNCTIONS_MAX];
static size_t n_functions;
static struct block *blocks;

static const struct block *last;	/* that was executed */
static uint64_t executed, mark_at;	/* instructions */
static uint64_t returns[RETURNS];	/* of calls, by level */
static uint64_t level = 1ULL << 32;	/* calls minus returns; task switches make it drift */
static struct frame frames[FRAMES_MAX];
static unsigned int depth;
static uint64_t lost;			/* of all functions */

/* --- the table --------------------------------------------------------------- */

static struct function *function_at(uint64_t address)
{
	size_t i;

	for (i = 0; i < n_functions; i++)
		if (functions[i].address == address)
			return &functions[i];
	return NULL;
}

/* Reads the table as soon as it is complete, also for the blocks that exist by then. */
static void read_table(void)
{
	static off_t size;
	struct stat st;
	struct block *b;
	char line[160];
	bool complete = false;
	size_t i;
	FILE *f;

	if (stat(table_path, &st) || st.st_size == size)
		return;
	size = st.st_size;
	f = fopen(table_path, "r");
	if (!f)
		return;
	n_functions = 0;
	while (!complete && fgets(line, sizeof(line), f)) {
		struct function *fn = &functions[n_functions];
		unsigned long long address;

		complete = !strncmp(line, "end", 3);
		if (!complete && n_functions < FUNCTIONS_MAX &&
		    sscanf(line, "%llx %c %79s", &address, &fn->kind, fn->name) == 3) {
			fn->address = address;
			n_functions++;
		}
	}
	fclose(f);
	if (!complete)
		return;
	for (i = 0; i < n_functions; i++) {
		functions[i].histogram = calloc(HISTOGRAM, sizeof(*functions[i].histogram));
		if (!functions[i].histogram)
			abort();
	}
	for (b = blocks; b; b = b->next)
		b->function = function_at(b->start);
	table_read = true;
}

/* --- counting ---------------------------------------------------------------- */

static uint64_t median(const struct function *fn)
{
	uint64_t seen = 0, i;

	for (i = 0; i < HISTOGRAM - 1; i++) {
		seen += fn->histogram[i];
		if (2 * seen >= fn->calls)
			break;
	}
	return i;
}

/* The frames from the @from-th on never return, as far as can be seen. */
static void lose(unsigned int from)
{
	while (depth > from) {
		frames[--depth].function->lost++;
		lost++;
	}
}

/* Appends a line to the output. No counted function calls a mark. */
static void mark(void)
{
	const char *comma = "";
	size_t i;

	lose(0);
	fprintf(out, "{\"instructions\": %llu, \"lost\": %llu, \"functions\": [",
		(unsigned long long)(executed - mark_at), (unsigned long long)lost);
	for (i = 0; i < n_functions; i++) {
		struct function *fn = &functions[i];

		if (!fn->calls && !fn->lost)
			continue;
		fprintf(out, "%s{\"name\": \"%s\", \"calls\": %llu, \"all\": %llu, \"median\": %llu, ",
			comma, fn->name, (unsigned long long)fn->calls,
			(unsigned long long)fn->all, (unsigned long long)median(fn));
		fprintf(out, "\"min\": %llu, \"max\": %llu, \"lost\": %llu, \"outer\": %llu, \"sum\": %llu}",
			(unsigned long long)fn->least, (unsigned long long)fn->most,
			(unsigned long long)fn->lost, (unsigned long long)fn->outer,
			(unsigned long long)fn->sum);
		comma = ", ";
		fn->calls = 0;
		fn->all = 0;
		fn->least = 0;
		fn->most = 0;
		fn->lost = 0;
		fn->outer = 0;
		fn->sum = 0;
		memset(fn->histogram, 0, HISTOGRAM * sizeof(*fn->histogram));
	}
	fprintf(out, "]}\n");
	fflush(out);
	mark_at = executed;
	lost = 0;
}

static void enter(struct function *fn)
{
	/* a loop back to the first instruction is no call */
	if (depth && frames[depth - 1].function == fn && frames[depth - 1].level == level)
		return;
	if (depth == FRAMES_MAX)
		lose(0);
	frames[depth++] = (struct frame) {
		.function = fn,
		.level = level,
		.returns = returns[level % RETURNS],
		.start = executed,
	};
}

/* The next @n instructions up to now were not those of the functions below. */
static void steal(uint64_t n)
{
	unsigned int i;

	for (i = depth; i-- && frames[i].function->kind == 'f';)
		frames[i].stolen += n;
}

/* Nor, where they were a softirq's or an interrupt's, those of what is counted apart. */
static void steal_foreign(uint64_t n)
{
	char top = depth ? frames[depth - 1].function->kind : 0;

	if (top == 'k' || top == 'p')
		frames[depth - 1].stolen += n;
	else
		steal(n);
}

/* The next @n instructions passed on a packet. */
static void keep(uint64_t n)
{
	unsigned int i;

	for (i = depth; i-- && frames[i].function->kind == 'f';)
		frames[i].kept += n;
}

/* The top frame, a function, has returned. */
static void leave(void)
{
	const struct frame *f = &frames[--depth];
	struct function *fn = f->function;
	uint64_t n = executed - f->start - f->stolen;

	char below = depth ? frames[depth - 1].function->kind : 0;

	if (fn->kind == 'k' && below == 'k') {	/* part of it */
		frames[depth - 1].stolen += f->stolen;
		return;
	}
	if (fn->kind == 'k')
		steal(executed - f->start);
	if (fn->kind == 'p') {
		steal(executed - f->start);
		keep(n);
		return;
	}
	if (fn->kind == 's') {
		steal_foreign(executed - f->start);
		return;
	}
	if (fn->kind == 'f' && below == 'k')
		frames[depth - 1].stolen += executed - f->start - f->kept;
	if (!fn->calls || n < fn->least)
		fn->least = n;
	if (!fn->calls || n > fn->most)
		fn->most = n;
	fn->calls++;
	fn->all += n;
	fn->histogram[n < HISTOGRAM ? n : HISTOGRAM - 1]++;
	if (below != 'f' || fn->kind == 'k') {
		fn->outer++;
		fn->sum += n;
	}
}

/* A ret is behind us, @next comes now: an interrupt's entry, or where the ret went to. */
static void after_return(const struct block *next)
{
	bool here = next->function && next->function->kind == 'i';

	level--;
	while (depth && frames[depth - 1].function->kind != 'i' &&
	       frames[depth - 1].level > level) {
		if (here || frames[depth - 1].returns == next->start)
			leave();
		else
			lose(depth - 1);
	}
}

/* The latest interrupt that began in a counted function, if any, is over. */
static void after_iret(void)
{
	unsigned int i = depth;

	while (i && frames[i - 1].function->kind != 'i')
		i--;
	if (!i)
		return;
	lose(i);
	depth = i - 1;
	level = frames[depth].level;
	steal_foreign(executed - frames[depth].start);
}

/* @data, a block, is about to run: the block before it has ended. */
static void run(unsigned int cpu, void *data)
{
	const struct block *b = data;

	(void)cpu;
	switch (last ? last->ends : OTHER) {
	case CALL:
		returns[++level % RETURNS] = last->end;
		break;
	case RET:
		after_return(b);
		break;
	case IRET:
		after_iret();
		break;
	case OTHER:
		break;
	}
	if (b->function) {
		switch (b->function->kind) {
		case 'f':
			enter(b->function);
			break;
		case 'p':
			if (depth && frames[depth - 1].function->kind == 'f')
				enter(b->function);
			break;
		case 'k':
			if (depth && (frames[depth - 1].function->kind == 'f' ||
				      frames[depth - 1].function->kind == 'k'))
				enter(b->function);
			break;
		case 's':
		case 'i':
			if (depth)
				enter(b->function);
			break;
		case 'm':
			mark();
			break;
		}
	}
	executed += b->count;
	last = b;
}

/* --- translation --------------------------------------------------------------- */

/* What the instruction of @size bytes at @p does to the stack of return addresses */
static enum ends ends_with(const uint8_t *p, size_t size)
{
	/* prefixes: bnd, rep, notrack, cs, and REX */
	while (size > 1 && (*p == 0xf2 || *p == 0xf3 || *p == 0x3e || *p == 0x2e ||
			    (*p & 0xf0) == 0x40)) {
		p++;
		size--;
	}
	if (*p == 0xe8 || (*p == 0xff && size > 1 && (p[1] >> 3 & 7) == 2))
		return CALL;
	if (*p == 0xc3 || *p == 0xc2)
		return RET;
	if (*p == 0xcf)
		return IRET;
	return OTHER;
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	struct block *b = calloc(1, sizeof(*b));
	const struct qemu_plugin_insn *insn;

	(void)id;
	if (!b)
		abort();
	if (!table_read)
		read_table();
	b->start = qemu_plugin_tb_vaddr(tb);
	b->count = qemu_plugin_tb_n_insns(tb);
	insn = qemu_plugin_tb_get_insn(tb, b->count - 1);
	b->end = qemu_plugin_insn_vaddr(insn) + qemu_plugin_insn_size(insn);
	b->ends = ends_with(qemu_plugin_insn_data(insn), qemu_plugin_insn_size(insn));
	b->function = table_read ? function_at(b->start) : NULL;
	b->next = blocks;
	blocks = b;
	qemu_plugin_register_vcpu_tb_exec_cb(tb, run, QEMU_PLUGIN_CB_NO_REGS, b);
}

int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc, char **argv)
{
	int i;

	(void)info;
	for (i = 0; i < argc; i++) {
		if (!strncmp(argv[i], "table=", 6))
			table_path = strdup(argv[i] + 6);
		else if (!strncmp(argv[i], "out=", 4))
			out = fopen(argv[i] + 4, "w");
	}
	if (!table_path || !out) {
		fprintf(stderr, "count: needs table=FILE,out=FILE\n");
		return 1;
	}
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	return 0;
}
