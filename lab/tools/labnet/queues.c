// SPDX-License-Identifier: GPL-2.0
/*
 * A device of an exact link has the queue 2: alone. Others with a delay, a rate and a queue have
 * netem 3:, htb 1: below it and the queue 2: below that. A plan's words for a queue are tc's or
 * lowq-tc's. lowq-tc translates its words into tc's, except --exact, which it sets itself. One tc
 * sets all queues of a namespace.
 */
#include <err.h>
#include <fcntl.h>
#include <jansson.h>
#include <linux/pkt_sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../common/alloc.h"
#include "netlink.h"
#include "queues.h"
#include "undo.h"

#define PROFILE		"lowq-tc "	/* begins words of lowq-tc */
#define EXACT		"lowq-tc exact "	/* a command for what tc has no word for */

/**
 * struct words - tc for the queues of a namespace
 * @tc:		its input, NULL before there is one
 * @said:	its messages
 * @pid:	its process
 * @of:		whose queue each line of the input is for
 * @lines:	how many
 * @exact:	whose queues "lowq-tc exact" changes, when tc has made them
 * @n_exact:	how many
 */
struct words {
	FILE *tc;
	FILE *said;
	pid_t pid;
	const struct end **of;
	size_t lines;
	const struct end **exact;
	size_t n_exact;
};

/* Runs @argv; its standard output goes to @output */
static pid_t start(char *const argv[], int input, int output, int said)
{
	pid_t pid = fork();

	CHECK(pid >= 0, "fork");
	if (pid)
		return pid;
	if (input >= 0)
		dup2(input, STDIN_FILENO);
	if (output >= 0)
		dup2(output, STDOUT_FILENO);
	dup2(said, STDERR_FILENO);
	execvp(argv[0], argv);
	err(127, "%s", argv[0]);
}

static void start_tc(struct words *w)
{
	char *const argv[] = { "tc", "-batch", "-", NULL };
	int input[2], said = memfd_create("tc", MFD_CLOEXEC);

	CHECK(said >= 0 && !pipe2(input, O_CLOEXEC), "pipe");
	w->pid = start(argv, input[0], -1, said);
	close(input[0]);
	w->tc = fdopen(input[1], "w");
	w->said = fdopen(said, "r");
	CHECK(w->tc && w->said, "memory");
}

/* The line for tc that follows is for @e */
static FILE *line_for(struct words *w, const struct end *e)
{
	if (!w->tc)
		start_tc(w);
	w->of = xreallocarray(w->of, w->lines + 1, sizeof(*w->of));
	w->of[w->lines++] = e;
	return w->tc;
}

/* tc ends its messages with "Command failed -:LINE". */
static void finish_tc(struct words *w, const struct plan *p, const struct node *node)
{
	char line[512], why[512] = "";
	unsigned int failed = 0;
	int status;

	fclose(w->tc);
	if (waitpid(w->pid, &status, 0) == w->pid && !status) {
		fclose(w->said);
		free(w->of);
		return;
	}
	rewind(w->said);
	while (fgets(line, sizeof(line), w->said)) {
		line[strcspn(line, "\n")] = 0;
		if (sscanf(line, "Command failed -:%u", &failed) != 1 && !why[0])
			snprintf(why, sizeof(why), "%s", line);
	}
	if (!failed || failed > w->lines)
		give_up("%s: '%s': tc: %s", p->file, node->name, why);
	give_up("%s.queue: tc: %s", plan_place(p, w->of[failed - 1]), why);
}

/* lowq-tc's commands for a queue, known by all that they depend on */
static json_t *profiles;

/* Its words, and what the plan says of the device */
static char *profile_key(const struct end *e)
{
	char *key;
	int n = asprintf(&key, "%s --rate %.0fbit mtu %u offloads %d exact %d", e->queue,
			 e->rate, e->link->mtu, e->link->offloads, e->link->exact);

	CHECK(n > 0, "memory");
	return key;
}

/* Runs lowq-tc for @e's queue; what it says on standard output goes to @output */
static void run_lowq_tc(const struct plan *p, const struct end *e, char *const argv[], int output)
{
	int status, said = memfd_create("said", MFD_CLOEXEC);
	char why[256] = "";

	CHECK(said >= 0, "memory");
	if (waitpid(start(argv, -1, output, said), &status, 0) < 0 || status) {
		pread(said, why, sizeof(why) - 1, 0);
		why[strcspn(why, "\n")] = 0;
		give_up("%s.queue: %s", plan_place(p, e), why);
	}
	close(said);
}

/* Asks lowq-tc, which looks at the device; the commands are for @e->dev */
static json_t *ask_lowq_tc(const struct plan *p, const struct end *e)
{
	int output = memfd_create("lowq-tc", MFD_CLOEXEC);
	char *words = strdup(e->queue), *word, *rest = words, *argv[256], rate[32];
	char *const last[] = { "--rate", rate, e->link->exact ? "--no-shape" : "--shape",
			       "--no-rehearsal", "--dry-run", "--json", NULL };
	json_t *result, *commands;
	size_t n = 0;

	CHECK(output >= 0 && words, "memory");
	while ((word = strsep(&rest, " ")) != NULL && n < ARRAY_SIZE(argv) - 8) {
		if (!*word)
			continue;
		argv[n++] = word;
		if (n == 2)		/* lowq-tc PROFILE DEVICE */
			argv[n++] = (char *)e->dev;
	}
	snprintf(rate, sizeof(rate), "%.0fbit", e->rate);
	memcpy(&argv[n], last, sizeof(last));
	run_lowq_tc(p, e, argv, output);
	lseek(output, 0, SEEK_SET);
	result = json_loadfd(output, 0, NULL);
	commands = json_incref(json_object_get(result, "commands"));
	if (!commands)
		give_up("%s.queue: lowq-tc has no commands for it", plan_place(p, e));
	close(output);
	free(words);
	json_decref(result);
	return commands;
}

/* Where lowq-tc numbers queues, and where a plan's are. Its device is the word after "dev". */
static void put_command(FILE *tc, const struct end *e, const char *command)
{
	char *copy = strdup(command), *word, *rest = copy;
	const char *before = "";

	CHECK(copy, "memory");
	for (strsep(&rest, " "); (word = strsep(&rest, " ")) != NULL; before = word) {
		if (!strcmp(before, "dev"))
			fprintf(tc, "%s ", e->dev);
		else if (!strcmp(word, "root") && e->delay && !e->link->exact)
			fputs("parent 3:1 ", tc);
		else if (!strncmp(word, "10f0:", 5))
			fprintf(tc, "1:%s ", word + 5);
		else if (!strncmp(word, "10f1:", 5))
			fprintf(tc, "2:%s ", word + 5);
		else
			fprintf(tc, "%s ", word);
	}
	fputc('\n', tc);
	free(copy);
}

/* NULL: its queue is not lowq-tc's */
static json_t *profile_commands(const struct plan *p, const struct end *e)
{
	json_t *commands;
	char *key;

	if (!e->queue || strncmp(e->queue, PROFILE, strlen(PROFILE)))
		return NULL;
	key = profile_key(e);
	if (!profiles)
		profiles = json_object();
	commands = json_object_get(profiles, key);
	if (!commands) {
		commands = ask_lowq_tc(p, e);
		json_object_set_new(profiles, key, commands);
	}
	free(key);
	return commands;
}

static void queue_by_profile(struct words *w, const struct plan *p, const struct end *e,
			     json_t *commands)
{
	json_t *command;
	size_t i;

	json_array_foreach(commands, i, command) {
		const char *s = json_string_value(command);

		if (s && !strncmp(s, EXACT, strlen(EXACT))) {
			w->exact = xreallocarray(w->exact, w->n_exact + 1, sizeof(*w->exact));
			w->exact[w->n_exact++] = e;
			continue;
		}
		if (!s || strncmp(s, "tc ", 3))
			give_up("%s.queue: not tc's: '%s'", plan_place(p, e), s ? s : "");
		put_command(line_for(w, e), e, s);
	}
}

static void queue_exact(struct mnl_socket *nl, const struct plan *p, struct words *w,
			const struct end *e, json_t *commands)
{
	if (commands)
		queue_by_profile(w, p, e, commands);
	else if (e->queue)
		fprintf(line_for(w, e), "qdisc add dev %s root handle 2: %s\n", e->dev, e->queue);
	else if (e->rate || e->line.instant)
		CHECK(add_fifo(nl, e->index), "%s", plan_place(p, e));
}

static void queue_end(struct mnl_socket *nl, const struct plan *p, struct words *w,
		      const struct end *e)
{
	json_t *commands = profile_commands(p, e);
	u32 parent = TC_H_ROOT;

	if (e->link->exact) {
		queue_exact(nl, p, w, e, commands);
		return;
	}
	if (e->delay) {
		/* over a rate it has a handle, for htb as its child */
		u32 handle = e->rate ? TC_H_MAKE(3 << 16, 0) : 0;

		CHECK(add_delay(nl, e->index, parent, handle, e->delay), "%s.delay",
		      plan_place(p, e));
		parent = TC_H_MAKE(handle, 1);
	}
	if (commands) {
		queue_by_profile(w, p, e, commands);
		return;
	}
	if (e->rate)
		CHECK(add_rate(nl, e->index, parent, frame_bytes(e->link), e->rate), "%s.rate",
		      plan_place(p, e));
	if (e->queue)
		fprintf(line_for(w, e), "qdisc add dev %s parent 1:1 handle 2: %s\n", e->dev,
			e->queue);
}

void ask_for_queues(const struct plan *p, const struct node *node)
{
	for (size_t i = 0; i < node->n_ends; i++)
		profile_commands(p, node->end[i]);
}

void queue_node(const struct plan *p, const struct node *node)
{
	struct mnl_socket *nl = netlink_open();
	struct words w = { 0 };

	for (size_t i = 0; i < node->n_ends; i++)
		queue_end(nl, p, &w, node->end[i]);
	mnl_socket_close(nl);
	if (w.tc)
		finish_tc(&w, p, node);
	for (size_t i = 0; i < w.n_exact; i++) {
		char *const argv[] = { "lowq-tc", "exact", "dev", (char *)w.exact[i]->dev,
				       "handle", "1:", NULL };

		run_lowq_tc(p, w.exact[i], argv, -1);
	}
	free(w.exact);
}
