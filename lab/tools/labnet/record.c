// SPDX-License-Identifier: GPL-2.0
/*
 * "record": a process that reads the kernel's trace of ACKs and asks ss in turn, and a tcpdump for
 * each queue.
 */
#include <ctype.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../common/alloc.h"
#include "../common/events.h"
#include "../common/netns.h"
#include "record.h"

#define TRACING		"/sys/kernel/tracing/"
#define INSTANCE	TRACING "instances/lowq/"
#define BUFFER_KB	"32768"		/* for more ACKs than there are in a step */
#define STEP_NS		(10 * 1000 * 1000ULL)
#define SS_STEPS	10		/* every 100 ms */

static struct {
	const struct plan *plan;
	const char *out;
	u64 zero;
	pid_t *child;		/* readers first */
	size_t children, readers;
} record;

/* SIGTERM comes while this process sleeps. */
static void end_all(int signal)
{
	struct timespec left = { .tv_sec = 2 };
	int status, failed = 0;

	(void)signal;
	for (size_t i = 0; i < record.children; i++) {
		/* tcpdump gets the last packets when the kernel ends a block, after 1 s */
		while (i == record.readers && nanosleep(&left, &left))
			;
		kill(record.child[i], SIGTERM);
	}
	for (size_t i = 0; i < record.children; i++) {
		waitpid(record.child[i], &status, 0);
		if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
			warnx("record: pcap: there is no tcpdump");
		failed |= status;
	}
	_exit(!!failed);
}

static FILE *create(const char *name)
{
	char path[PATH_MAX];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", record.out, name);
	f = fopen(path, "we");
	if (!f)
		err(1, "record: %s", path);
	return f;
}

static void tell(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		err(1, "record: acks: %s", path);
	close(fd);
}

/* --- ACKs ----------------------------------------------------------------------------------- */

static int open_trace(void)
{
	int fd, status = system("modprobe -q lowq_acks");

	if (status)
		errx(1, "record: acks: this kernel has no module lowq_acks, which is the lab's");
	if (mkdir(INSTANCE, 0700) && errno != EEXIST)
		err(1, "record: acks: %s", INSTANCE);
	tell(INSTANCE "buffer_size_kb", BUFFER_KB);
	tell(INSTANCE "trace_options", "nocontext-info");
	tell(INSTANCE "events/lowq/lowq_ack/enable", "1");
	fd = open(INSTANCE "trace_pipe", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		err(1, "record: acks: trace_pipe");
	return fd;
}

/* "lowq_ack: NS,...": ns after the traffic's start */
static void write_ack(FILE *to, const char *line)
{
	const char *row = strstr(line, ": ");
	unsigned long long at;
	int n;

	if (row && sscanf(row + 2, "%llu%n", &at, &n) == 1)
		fprintf(to, "%lld%s\n", (long long)(at - record.zero), row + 2 + n);
	else if (*line)
		errx(1, "record: acks: %s", line);
}

static void read_acks(int from, FILE *to)
{
	static char text[1 << 16];
	static size_t held;
	char *line, *next;
	ssize_t n;

	while ((n = read(from, text + held, sizeof(text) - held - 1)) > 0) {
		text[held + n] = 0;
		for (line = text; (next = strchr(line, '\n')); line = next + 1) {
			*next = 0;
			write_ack(to, line);
		}
		held = strlen(line);
		memmove(text, line, held);
	}
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		err(1, "record: acks: trace_pipe");
}

/* --- ss ------------------------------------------------------------------------------------- */

static void ask_ss(FILE *to, const struct node *node, u64 now)
{
	char *netns = plan_netns(record.plan, node), command[PATH_MAX], line[4096];
	FILE *from;

	snprintf(command, sizeof(command), "ss -N %s -tinHO", netns);
	free(netns);
	from = popen(command, "re");
	if (!from)
		err(1, "record: ss");
	while (fgets(line, sizeof(line), from)) {
		size_t end = strlen(line);

		/* ss fills up all lines except the last */
		while (end && isspace((unsigned char)line[end - 1]))
			end--;
		fprintf(to, "%lld %s %.*s\n", (long long)(now - record.zero), node->name, (int)end,
			line);
	}
	if (pclose(from) > 0)
		errx(1, "record: '%s' failed", command);
}

static void ask_all(FILE *to)
{
	u64 now = now_ns();

	for (size_t i = 0; i < record.plan->n_nodes; i++)
		if (record.plan->nodes[i].n_ends == 1 &&
		    plan_has(record.plan, &record.plan->nodes[i]))
			ask_ss(to, &record.plan->nodes[i], now);
}

/* --- processes ------------------------------------------------------------------------------ */

/* Waits until @at, or until SIGTERM has come */
static bool told_to_end(const sigset_t *end, u64 at)
{
	u64 now = now_ns(), left = at > now ? at - now : 0;
	const struct timespec time = { left / NSEC, left % NSEC };

	return sigtimedwait(end, NULL, &time) == SIGTERM;
}

static void __attribute__((noreturn)) reader(void)
{
	unsigned int which = record.plan->record, step = 0;
	FILE *acks = NULL, *ss = NULL;
	u64 at = record.zero;
	int trace = -1;
	sigset_t end;

	sigemptyset(&end);
	sigaddset(&end, SIGTERM);
	sigprocmask(SIG_BLOCK, &end, NULL);
	if (which & RECORD_ACKS) {
		acks = create("acks.csv");
		fputs("t_ns,flow,acked_bytes,cwnd,ssthresh,srtt_us,pacing_bps,delivery_bps,inflight,delivered,marked,retrans\n",
		      acks);
		trace = open_trace();
	}
	if (which & RECORD_SS)
		ss = create("ss.txt");
	sleep_until(at);
	do {
		if (ss && step++ % SS_STEPS == 0)
			ask_all(ss);
		if (acks)
			read_acks(trace, acks);
		at += STEP_NS;
	} while (!told_to_end(&end, at));
	if (acks)
		read_acks(trace, acks);
	if ((acks && fclose(acks)) || (ss && fclose(ss)))
		err(1, "record: %s", record.out);
	close(trace);
	rmdir(INSTANCE);
	exit(0);
}

static void __attribute__((noreturn)) capture(const struct end *e)
{
	char *netns = plan_netns(record.plan, e->node), *path;

	netns_join(netns_fd(netns), netns);
	if (asprintf(&path, "%s/%s-%s.pcap", record.out, e->node->name, e->dev) < 0)
		err(1, "memory");
	/* it says how many it has seen */
	if (!freopen("/dev/null", "w", stderr))
		err(1, "/dev/null");
	execlp("tcpdump", "tcpdump", "-i", e->dev, "-s", "128", "-B", "65536", "-n", "-U", "-Q",
	       "out", "-Z", "root", "--time-stamp-precision=nano", "-w", path, (char *)NULL);
	_exit(127);
}

/* True in the new process, which ends with this one */
static bool new_child(void)
{
	pid_t pid = fork();

	if (pid < 0)
		err(1, "record: fork");
	if (pid) {
		record.child[record.children++] = pid;
		return false;
	}
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	return true;
}

void record_start(const struct plan *p, u64 zero, const char *out)
{
	const struct sigaction on_end = { .sa_handler = end_all };

	record.plan = p;
	record.zero = zero;
	record.out = out;
	record.child = xcalloc(p->observe.n_queues + 1, sizeof(pid_t));
	if (p->record & (RECORD_ACKS | RECORD_SS) && new_child())
		reader();
	record.readers = record.children;
	for (size_t i = 0; p->record & RECORD_PCAP && i < p->observe.n_queues; i++)
		if (new_child())
			capture(p->observe.queue[i].end);
	sigaction(SIGTERM, &on_end, NULL);
}

void record_wait(void)
{
	while (record.children)
		pause();
}
