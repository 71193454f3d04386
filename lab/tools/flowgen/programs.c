// SPDX-License-Identifier: GPL-2.0
/*
 * The pattern of program: a command in a node. It is a process group, whose output goes to files
 * beside the results. When it ends, or is to end, nothing of the group is left.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../common/alloc.h"
#include "../common/events.h"
#include "flow.h"
#include "programs.h"
#include "report.h"

#define GRACE_NS	NSEC		/* from SIGTERM to SIGKILL */
#define FILE_MOST	(256 << 20)	/* bytes of a file that a program writes */

#ifndef SYS_pidfd_open
#define SYS_pidfd_open	434
#endif

struct program {
	struct watched watched;		/* first: epoll's pointer is to it */
	struct generator *gen;
	enum { WAITS, RUNS, ENDS, KILLED, OVER } state;
	bool late;			/* it has reached its timeout */
	pid_t pid;
	int fd;
	u64 start, kill_at;
};

/* /sys is that of the network namespace, as "ip netns exec" has it */
static void own_sys(void)
{
	if (unshare(CLONE_NEWNS) || mount("", "/", "none", MS_SLAVE | MS_REC, NULL))
		return;
	umount2("/sys", MNT_DETACH);
	mount("sysfs", "/sys", "sysfs", 0, NULL);
}

static int output(const struct command *c, const char *end)
{
	char *path;
	int fd;

	if (asprintf(&path, "%s/%s.%s", report_folder(), c->name, end) < 0)
		err(127, "memory");
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0)
		err(127, "%s", path);
	free(path);
	return fd;
}

static void __attribute__((noreturn)) child(const struct config *cfg, u64 now)
{
	const struct command *c = &cfg->command;
	const struct rlimit files = { FILE_MOST, FILE_MOST }, cores = { 0, 0 };
	int in, out = output(c, "out"), bad = output(c, "err");
	char started[24];
	sigset_t none;

	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	in = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (in < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(bad, 2) < 0)
		err(127, "program");
	own_sys();
	setrlimit(RLIMIT_FSIZE, &files);
	setrlimit(RLIMIT_CORE, &cores);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setenv("OUT", report_folder(), 1);
	snprintf(started, sizeof(started), "%llu", now);
	setenv("START_NS", started, 1);
	for (char **e = c->environment; *e; e++)
		putenv(*e);
	if (chdir(c->folder))
		err(127, "%s", c->folder);
	execl("/bin/sh", "sh", "-c", c->text, (char *)NULL);
	err(127, "/bin/sh");
}

static void program_event(struct watched *w, u32 events);

static void program_start(struct generator *g, u64 now)
{
	struct program *p = g->state;

	netns_enter(g->cfg->path->netns);
	p->start = now;
	p->pid = fork();
	if (p->pid < 0)
		err(1, "program '%s': fork", g->cfg->command.name);
	if (!p->pid)
		child(g->cfg, now);
	setpgid(p->pid, p->pid);	/* the child does it, too: either may run first */
	p->fd = syscall(SYS_pidfd_open, p->pid, 0);
	if (p->fd < 0)
		err(1, "program '%s': pidfd", g->cfg->command.name);
	p->state = RUNS;
	p->kill_at = g->cfg->timeout ? now + g->cfg->timeout : NEVER;
	watch(epoll_of_flows(), EPOLL_CTL_ADD, p->fd, EPOLLIN, &p->watched);
}

static void program_init(struct generator *g)
{
	struct program *p = xcalloc(1, sizeof(*p));

	p->watched.event = program_event;
	p->gen = g;
	p->kill_at = NEVER;
	g->state = p;
}

static u64 program_due(const struct generator *g)
{
	const struct program *p = g->state;

	return p->state == WAITS ? g->t0 : p->state < KILLED ? p->kill_at : NEVER;
}

static void program_run(struct generator *g, u64 now)
{
	struct program *p = g->state;

	if (program_due(g) > now)
		return;
	if (p->state == WAITS) {
		program_start(g, now);
		return;
	}
	p->late = p->state == RUNS;
	p->state = KILLED;
	kill(-p->pid, SIGKILL);
}

/* Why it is not as expected; "": it is */
static void why(const struct program *p, int status, char text[64])
{
	const struct command *c = &p->gen->cfg->command;

	*text = 0;
	if (p->late)
		snprintf(text, 64, "timeout");
	else if (p->state >= ENDS)
		return;			/* it was told to */
	else if (WIFSIGNALED(status))
		snprintf(text, 64, "error: signal %d, %s", WTERMSIG(status),
			 strsignal(WTERMSIG(status)));
	else if (WEXITSTATUS(status) != c->status)
		snprintf(text, 64, "error: exit status %d, not %d", WEXITSTATUS(status), c->status);
}

/* One line of its own says what went wrong. */
static void drop_empty(const struct command *c)
{
	struct stat st;
	char *path;

	if (asprintf(&path, "%s/%s.err", report_folder(), c->name) < 0)
		err(1, "memory");
	if (!stat(path, &st) && !st.st_size)
		unlink(path);
	free(path);
}

static void program_event(struct watched *w, u32 events)
{
	struct program *p = (struct program *)w;
	const struct config *cfg = p->gen->cfg;
	u64 now = now_ns();
	struct json j;
	char text[64];
	int status;

	(void)events;
	if (p->state == OVER || waitpid(p->pid, &status, WNOHANG) != p->pid)
		return;
	kill(-p->pid, SIGKILL);		/* what it has left */
	close(p->fd);
	why(p, status, text);
	p->state = OVER;
	drop_empty(&cfg->command);
	j = report_line("program", cfg);
	json_str(&j, "name", cfg->command.name);
	json_str(&j, "node", cfg->command.node);
	if (WIFEXITED(status))
		json_int(&j, "exit", WEXITSTATUS(status));
	else
		json_null(&j, "exit");
	report_span(&j, p->start, now, 0);
	json_str(&j, "status", *text ? text : "ok");
	report_line_end(&j);
	count_flow(p->start, now, 0, !*text);
	if (*text)
		warnx("program '%s': %s", cfg->command.name, text);
	p->gen->last_end = now;
}

static bool program_finished(const struct generator *g)
{
	const struct program *p = g->state;

	return p->state == OVER;
}

static void program_stop(struct generator *g)
{
	struct program *p = g->state;

	if (p->state == WAITS)
		p->state = OVER;
	if (p->state != RUNS)
		return;
	p->state = ENDS;
	p->kill_at = now_ns() + GRACE_NS;
	kill(-p->pid, SIGTERM);
}

void programs_end(struct generator *g)
{
	struct program *p = g->state;

	if (p->state != WAITS && p->state != OVER)
		kill(-p->pid, SIGKILL);
}

const struct pattern programs = {
	.init = program_init,
	.due = program_due,
	.run = program_run,
	.finished = program_finished,
	.stop = program_stop,
};
