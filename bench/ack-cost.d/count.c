// SPDX-License-Identifier: GPL-2.0
/*
 * count - a plugin for QEMU that counts the instructions of a guest's functions.
 *
 *	-plugin count.so,table=FILE,out=FILE
 *
 * The guest writes the table, once: lines "ADDRESS KIND NAME", the address in hexadecimal, and
 * "end" as the last line. Kinds:
 *	f	a function to count. What it calls is part of it.
 *	i	an entry of interrupts or exceptions. What runs until its iret is not counted as a
 *		part of the functions that it interrupts.
 *	m	a mark: each call of it appends one line to the output, and starts counting anew.
 *
 * A line of the output is JSON: instructions executed since the last mark, and for each function
 * that was called: calls; outer, those calls that no counted function has made; instructions of
 * the outer calls; median of all calls.
 *
 * One CPU, without preemption. The guest is x86-64. Nothing is added to what it executes, so with
 * -icount the same guest gives the same numbers.
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
 * @kind:	f, i or m
 * @calls:	that have returned
 * @outer:	of these, calls that no counted function has made
 * @sum:	instructions of the outer calls
 * @histogram:	how many calls took that many instructions
 */
struct function {
	uint64_t address;
	char kind;
	char name[80];
	uint64_t calls, outer, sum;
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
 * @returns:	to this address
 * @start:	value of executed when it began
 * @stolen:	instructions of interrupts since then
 */
struct frame {
	struct function *function;
	uint64_t returns, start, stolen;
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
static uint64_t returns[RETURNS];	/* of calls, the latest on top */
static unsigned int top;
static struct frame frames[FRAMES_MAX];
static unsigned int depth;
static uint64_t lost;			/* frames dropped because something did not return */

/* --- the table --------------------------------------------------------------- */

static struct function *function_at(uint64_t address)
{
	size_t i;

	for (i = 0; i < n_functions; i++)
		if (functions[i].address == address)
			return &functions[i];
	return NULL;
}

/* Reads the table as soon as it is complete, for what is translated by now as well. */
static void read_table(void)
{
	static off_t size;
	struct stat st;
	struct block *b;
	char line[160];
	bool complete = false;
	FILE *f;

	if (stat(table_path, &st) || st.st_size == size)
		return;
	size = st.st_size;
	f = fopen(table_path, "r");
	if (!f)
		return;
	n_functions = 0;
	while (fgets(line, sizeof(line), f) && !complete) {
		struct function *fn = &functions[n_functions];
		unsigned long long address;

		complete = !strncmp(line, "end", 3);
		if (n_functions < FUNCTIONS_MAX &&
		    sscanf(line, "%llx %c %79s", &address, &fn->kind, fn->name) == 3) {
			fn->address = address;
			n_functions++;
		}
	}
	fclose(f);
	if (!complete)
		return;
	table_read = true;
	for (size_t i = 0; i < n_functions; i++)
		functions[i].histogram = calloc(HISTOGRAM, sizeof(*functions[i].histogram));
	for (b = blocks; b; b = b->next)
		b->function = function_at(b->start);
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

static void mark(void)
{
	const char *comma = "";

	fprintf(out, "{\"instructions\": %llu, \"lost\": %llu, \"functions\": [",
		(unsigned long long)(executed - mark_at), (unsigned long long)lost);
	for (size_t i = 0; i < n_functions; i++) {
		struct function *fn = &functions[i];

		if (!fn->calls)
			continue;
		fprintf(out, "%s{\"name\": \"%s\", \"calls\": %llu, \"outer\": %llu, \"sum\": %llu, \"median\": %llu}",
			comma, fn->name, (unsigned long long)fn->calls,
			(unsigned long long)fn->outer, (unsigned long long)fn->sum,
			(unsigned long long)median(fn));
		comma = ", ";
		fn->calls = 0;
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
	if (depth == FRAMES_MAX) {
		lost += depth;
		depth = 0;
	}
	frames[depth++] = (struct frame) {
		.function = fn,
		.returns = returns[(top - 1) % RETURNS],
		.start = executed,
	};
}

/* The top frame's function has returned. */
static void leave(void)
{
	struct frame *f = &frames[--depth];
	struct function *fn = f->function;
	uint64_t n = executed - f->start - f->stolen;

	fn->calls++;
	fn->histogram[n < HISTOGRAM ? n : HISTOGRAM - 1]++;
	if (!depth || frames[depth - 1].function->kind == 'i') {
		fn->outer++;
		fn->sum += n;
	}
}

/* The latest interrupt is over: not a part of the functions below it, up to the next interrupt. */
static void end_interrupt(void)
{
	uint64_t n;

	/* what has not returned until now never will */
	while (depth && frames[depth - 1].function->kind != 'i') {
		depth--;
		lost++;
	}
	if (!depth)
		return;
	n = executed - frames[--depth].start;
	for (unsigned int i = depth; i-- && frames[i].function->kind != 'i';)
		frames[i].stolen += n;
}

static bool interrupted(void)
{
	for (unsigned int i = depth; i--;)
		if (frames[i].function->kind == 'i')
			return true;
	return false;
}

/* @data, a block, is about to run: the block before it has ended. */
static void run(unsigned int cpu, void *data)
{
	const struct block *b = data;

	(void)cpu;
	switch (last ? last->ends : OTHER) {
	case CALL:
		returns[top++ % RETURNS] = last->end;
		break;
	case RET:
		top--;
		while (depth && frames[depth - 1].function->kind == 'f' &&
		       frames[depth - 1].returns == b->start)
			leave();
		break;
	case IRET:
		if (interrupted())
			end_interrupt();
		break;
	case OTHER:
		break;
	}
	if (b->function && b->function->kind == 'f')
		enter(b->function);
	else if (b->function && b->function->kind == 'i' && depth)
		enter(b->function);
	else if (b->function && b->function->kind == 'm')
		mark();
	executed += b->count;
	last = b;
}

/* --- translation --------------------------------------------------------------- */

/* What the instruction @p of @size bytes does to the stack of return addresses */
static enum ends ends_with(const uint8_t *p, size_t size)
{
	/* prefixes: notrack, bnd, rep, and REX, which only iret needs */
	bool rex_w = false;

	while (size > 1 && (*p == 0x2e || *p == 0x3e || *p == 0xf2 || *p == 0xf3 ||
			    (*p & 0xf0) == 0x40)) {
		rex_w |= (*p & 0xf8) == 0x48;
		p++;
		size--;
	}
	if (*p == 0xe8 || (*p == 0xff && size > 1 && (p[1] >> 3 & 7) == 2))
		return CALL;
	if (*p == 0xc3 || *p == 0xc2)
		return RET;
	if (*p == 0xcf && rex_w)
		return IRET;
	return OTHER;
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	struct block *b = calloc(1, sizeof(*b));
	const struct qemu_plugin_insn *insn;

	(void)id;
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
	(void)info;
	for (int i = 0; i < argc; i++) {
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
