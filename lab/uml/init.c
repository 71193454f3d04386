// SPDX-License-Identifier: GPL-2.0
/*
 * init - the first process of the lab's guest.
 *
 * The guest's root is the host's root, read-only (hostfs). init lays a private
 * writable layer over it (overlayfs on tmpfs), mounts what a Linux system has,
 * runs one command, writes its exit status to the run directory and powers off.
 *
 * The kernel passes the unknown boot parameter "lab=DIR" on as an environment
 * variable. DIR is the run directory on the host, the only place beside the
 * --out directory that the guest can write to:
 *
 *   DIR/argv     the command, each word ended by a NUL
 *   DIR/env      its environment, likewise
 *   DIR/cwd      where to run it
 *   DIR/project  the project's path on the host; the guest also sees it as /lowq
 *   DIR/tools    the path of this program; its directory is also /run/lab
 *   DIR/modules  the path of the tree for /lib/modules/RELEASE, where there is one
 *   DIR/outdir   the path of the --out directory, where there is one; also /out
 *   DIR/leaks    present: ask kmemleak before powering off
 *   DIR/status   written: the command's exit status as a shell would see it
 *   DIR/stat     written: /proc/stat when the command had ended
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <net/if.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define STAGE	"/tmp"			/* where the new root is put together */
#define RUN	STAGE "/run"		/* the run directory, seen by the guest */
#define ROOT	STAGE "/root"		/* the new root, before it becomes one */
#define ARGS	4096			/* words of the command or environment */
#define KMEMLEAK_AGE_S	6		/* kmemleak ignores objects younger than 5 s */

/*
 * When the command starts, or later. Booting takes no virtual time, and TCP takes the instant 0
 * for "never".
 */
static const struct timespec start_at = { .tv_sec = 1 };

#define STATUS_INIT	125		/* init itself failed */
#define STATUS_NOEXEC	126
#define STATUS_NOTFOUND	127

/* init writes its messages to the kernel's log, apart from the command's output. */
static void kmsg(const char *fmt, ...)
{
	char buf[512];
	va_list ap;
	int fd, n;

	va_start(ap, fmt);
	n = vsnprintf(buf, sizeof(buf), fmt, ap);
	va_end(ap);
	fd = open("/dev/kmsg", O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		fd = dup(STDERR_FILENO);
	if (write(fd, buf, n) < 0)
		_exit(STATUS_INIT);
	close(fd);
}

static void poweroff(void)
{
	sync();
	reboot(RB_POWER_OFF);
	_exit(STATUS_INIT);
}

static void die(const char *what)
{
	kmsg("lab: init: %s: %s\n", what, strerror(errno));
	poweroff();
}

static void xmount(const char *type, const char *source, const char *target,
		   unsigned long flags, const char *data)
{
	mkdir(target, 0755);
	if (mount(source, target, type, flags, data))
		die(target);
}

/* For what only some kernels have (debugfs, tracefs). */
static void try_mount(const char *type, const char *target)
{
	if (mount(type, target, type, 0, NULL) && errno != ENODEV && errno != ENOENT)
		die(target);
}

/* Reads RUN/name whole; NULL if it is not there. */
static char *slurp(const char *name, size_t *len)
{
	char path[PATH_MAX];
	struct stat st;
	ssize_t n;
	char *buf;
	int fd;

	snprintf(path, sizeof(path), RUN "/%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	if (fstat(fd, &st))
		die(path);
	buf = calloc(1, st.st_size + 1);
	if (!buf)
		die("memory");
	for (*len = 0; *len < (size_t)st.st_size; *len += n) {
		n = read(fd, buf + *len, st.st_size - *len);
		if (n <= 0)
			die(path);
	}
	close(fd);
	return buf;
}

/* Mounts the directory that RUN/name holds the path of at @target as well, if there is one. */
static void bind_to(const char *name, const char *target)
{
	char source[PATH_MAX], *dir;
	size_t len;

	dir = slurp(name, &len);
	if (!dir)
		return;
	snprintf(source, sizeof(source), ROOT "%s", dir);
	mkdir(target, 0755);
	if (mount(source, target, NULL, MS_BIND, NULL))
		die(target);
	free(dir);
}

/* Splits a NUL-separated file into a NULL-ended vector. */
static char **words(const char *name)
{
	static char *none[1];
	char **vec, *buf, *p;
	size_t len, n = 0;

	buf = slurp(name, &len);
	if (!buf)
		return none;
	vec = calloc(ARGS + 1, sizeof(*vec));
	if (!vec)
		die("memory");
	for (p = buf; p < buf + len && n < ARGS; p += strlen(p) + 1)
		vec[n++] = p;
	return vec;
}

static void mkdirs(char *path)
{
	char *p;

	for (p = path + 1; (p = strchr(p, '/')); p++) {
		*p = 0;
		mkdir(path, 0755);
		*p = '/';
	}
	mkdir(path, 0755);
}

/* The host's root below, a tmpfs above; from here on "/" is private. */
static void build_root(const char *rundir)
{
	char path[PATH_MAX], *dir;
	size_t len;

	xmount("tmpfs", "tmpfs", STAGE, 0, "mode=0755");
	xmount("hostfs", "hostfs", RUN, MS_NOSUID, rundir);
	dir = slurp("outdir", &len);
	mkdir(STAGE "/upper", 0755);
	mkdir(STAGE "/work", 0755);
	xmount("overlay", "overlay", ROOT, 0,
	       "lowerdir=/,upperdir=" STAGE "/upper,workdir=" STAGE "/work");
	xmount("proc", "proc", ROOT "/proc", 0, NULL);
	xmount("sysfs", "sysfs", ROOT "/sys", 0, NULL);
	xmount("devtmpfs", "devtmpfs", ROOT "/dev", 0, NULL);
	xmount("devpts", "devpts", ROOT "/dev/pts", 0, NULL);
	xmount("tmpfs", "tmpfs", ROOT "/dev/shm", 0, NULL);
	xmount("tmpfs", "tmpfs", ROOT "/run", 0, NULL);
	mkdir(ROOT "/run/netns", 0755);
	mkdir(ROOT "/run/lock", 0755);
	try_mount("debugfs", ROOT "/sys/kernel/debug");
	try_mount("tracefs", ROOT "/sys/kernel/tracing");
	if (symlink("/proc/self/fd", ROOT "/dev/fd") ||
	    symlink("fd/0", ROOT "/dev/stdin") ||
	    symlink("fd/1", ROOT "/dev/stdout") ||
	    symlink("fd/2", ROOT "/dev/stderr"))
		die("/dev/std*");
	if (dir) {
		snprintf(path, sizeof(path), ROOT "%s", dir);
		if (mount("hostfs", path, "hostfs", MS_NOSUID, dir))
			die(dir);
		free(dir);
	}
}

/*
 * A read fault on a file's page costs several switches between processes of the host; mapping a
 * page beside it that is in memory costs next to nothing, as pages that lie together in memory are
 * mapped by one call.
 */
static void map_more_at_once(void)
{
	static const char bytes[] = "1048576";
	int fd = open(ROOT "/sys/kernel/debug/fault_around_bytes", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (write(fd, bytes, sizeof(bytes) - 1) < 0)
		die("fault_around_bytes");
	close(fd);
}

/* What a command sees does not depend on where the project lies on the host. */
static void bind_fixed_paths(void)
{
	char target[PATH_MAX];
	struct utsname uts;

	uname(&uts);
	snprintf(target, sizeof(target), ROOT "/lib/modules/%s", uts.release);
	mkdirs(target);
	bind_to("modules", target);
	bind_to("project", ROOT "/lowq");
	bind_to("tools", ROOT "/run/lab");
	bind_to("outdir", ROOT "/out");
}

static void loopback_up(void)
{
	struct ifreq ifr = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &ifr))
		die("lo");
	close(fd);
}

/* A console as a plain byte stream: what the command writes is what arrives. */
static void open_stream(const char *tty, int flags, int as)
{
	struct termios t;
	int fd = open(tty, flags | O_NOCTTY);

	if (fd < 0)
		die(tty);
	if (!tcgetattr(fd, &t)) {
		cfmakeraw(&t);
		tcsetattr(fd, TCSANOW, &t);
	}
	if (fd != as) {
		if (dup2(fd, as) < 0)
			die(tty);
		close(fd);
	}
}

static pid_t start(char **argv, char **env, const char *cwd)
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (pid)
		return pid;
	setsid();
	open_stream("/dev/null", O_RDONLY, STDIN_FILENO);
	open_stream("/dev/tty0", O_WRONLY, STDOUT_FILENO);
	open_stream("/dev/tty1", O_WRONLY, STDERR_FILENO);
	if (chdir(cwd)) {
		fprintf(stderr, "lab: %s: %s\n", cwd, strerror(errno));
		_exit(STATUS_NOEXEC);
	}
	environ = env;
	execvp(argv[0], argv);
	fprintf(stderr, "lab: %s: %s\n", argv[0], strerror(errno));
	_exit(errno == ENOENT ? STATUS_NOTFOUND : STATUS_NOEXEC);
}

/* Reaps everybody until the command ends. */
static int wait_for(pid_t pid)
{
	int status;
	pid_t who;

	while ((who = wait(&status)) != pid)
		if (who < 0 && errno != EINTR)
			return STATUS_INIT;
	if (WIFSIGNALED(status))
		return 128 + WTERMSIG(status);
	return WEXITSTATUS(status);
}

/* kmemleak writes its report to a file of its own: bring it into the log. */
static void report_leaks(void)
{
	static const char file[] = "/sys/kernel/debug/kmemleak";
	char line[256];
	FILE *f;
	int fd, i;

	fd = open(file, O_WRONLY);
	if (fd < 0)
		return;
	sleep(KMEMLEAK_AGE_S);
	for (i = 0; i < 2; i++)		/* one scan alone gives false alarms */
		if (write(fd, "scan", 4) < 0)
			die(file);
	close(fd);
	f = fopen(file, "r");
	while (f && fgets(line, sizeof(line), f))
		kmsg("kmemleak: %s", line);
}

/* Copies /proc/stat: how many processes the guest has started, and its context switches */
static void save_stat(FILE *to)
{
	FILE *from = fopen("/proc/stat", "r");
	char line[512];

	if (!from)
		die("/proc/stat");
	while (fgets(line, sizeof(line), from))
		fputs(line, to);
	fclose(from);
	if (fclose(to))
		die("stat");
}

static void forget_old_leaks(void)
{
	int fd = open("/sys/kernel/debug/kmemleak", O_WRONLY);

	if (fd < 0)
		return;
	if (write(fd, "clear", 5) < 0)
		kmsg("lab: kmemleak cannot be cleared\n");
	close(fd);
}

int main(void)
{
	const char *rundir = getenv("lab");
	char **argv, **env, *cwd, num[8];
	FILE *stat;
	int status, fd, leaks;
	size_t len;

	if (!rundir) {
		errno = EINVAL;
		die("no lab= on the command line");
	}
	build_root(rundir);
	bind_fixed_paths();
	map_more_at_once();
	argv = words("argv");
	env = words("env");
	cwd = slurp("cwd", &len);
	leaks = !access(RUN "/leaks", F_OK);
	fd = open(RUN "/status", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	stat = fopen(RUN "/stat", "we");
	if (!argv[0] || !cwd || fd < 0 || !stat)
		die("run directory");
	if (chroot(ROOT) || chdir("/"))
		die("chroot");
	if (sethostname("lab", 3))
		die("hostname");
	loopback_up();
	if (leaks)
		forget_old_leaks();

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &start_at, NULL);
	kmsg("lab: command starts\n");
	status = wait_for(start(argv, env, cwd));
	kill(-1, SIGKILL);
	while (wait(NULL) > 0)
		;
	save_stat(stat);
	if (leaks)
		report_leaks();
	kmsg("lab: command ended with status %d\n", status);
	if (write(fd, num, snprintf(num, sizeof(num), "%d\n", status)) < 0 || fsync(fd))
		die("status");
	close(fd);
	poweroff();
}
