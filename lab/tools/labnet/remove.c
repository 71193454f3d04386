// SPDX-License-Identifier: GPL-2.0
/*
 * Processes first, then queues that hold or drop packets; now connections can end. If the path went
 * first, they would retransmit for two minutes, and hold their namespace and the control's module.
 */
#include <ctype.h>
#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <linux/pkt_sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../common/alloc.h"
#include "netlink.h"
#include "remove.h"

struct removed {
	char *path;
	int fd;
	struct stat id;
};

static bool is_in(pid_t pid, const struct removed *ns, size_t n)
{
	char path[64];
	struct stat id;

	snprintf(path, sizeof(path), "/proc/%d/ns/net", pid);
	if (stat(path, &id))
		return false;
	while (n--)
		if (ns[n].id.st_ino == id.st_ino && ns[n].id.st_dev == id.st_dev)
			return true;
	return false;
}

static void kill_processes(const struct removed *ns, size_t n)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;

	if (!proc)
		err(1, "/proc");
	while ((entry = readdir(proc)) != NULL) {
		pid_t pid = atoi(entry->d_name);

		if (isdigit((unsigned char)entry->d_name[0]) && is_in(pid, ns, n))
			kill(pid, SIGKILL);
	}
	closedir(proc);
}

static void enter(const struct removed *ns)
{
	if (setns(ns->fd, CLONE_NEWNET))
		err(1, "%s", ns->path);
}

static void remove_queues(const struct removed *ns)
{
	struct mnl_socket *nl;

	enter(ns);
	nl = netlink_open();
	del_queues(nl);
	mnl_socket_close(nl);
}

static size_t all_connections(const struct removed *ns, size_t n)
{
	size_t open = 0;

	while (n--) {
		enter(&ns[n]);
		open += connections();
	}
	return open;
}

static void wait_for_connections(const struct removed *ns, size_t n)
{
	static const unsigned int ms[] = { 10, 30, 100, 300, 500, 1000, 1000 };

	for (size_t i = 0; i < ARRAY_SIZE(ms) && all_connections(ns, n); i++) {
		const struct timespec t = { ms[i] / 1000, ms[i] % 1000 * 1000000L };

		nanosleep(&t, NULL);
	}
}

void remove_network(const char *prefix)
{
	char pattern[PATH_MAX];
	struct removed *ns;
	glob_t found;
	size_t i;
	int home;

	snprintf(pattern, sizeof(pattern), NETNS_DIR "/%s*", prefix);
	if (glob(pattern, 0, NULL, &found))
		return;
	home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (home < 0)
		err(1, "/proc/self/ns/net");
	ns = xcalloc(found.gl_pathc, sizeof(*ns));
	for (i = 0; i < found.gl_pathc; i++) {
		ns[i].path = found.gl_pathv[i];
		ns[i].fd = open(ns[i].path, O_RDONLY | O_CLOEXEC);
		if (ns[i].fd < 0 || fstat(ns[i].fd, &ns[i].id))
			err(1, "%s", ns[i].path);
	}
	kill_processes(ns, i);
	for (i = 0; i < found.gl_pathc; i++)
		remove_queues(&ns[i]);
	wait_for_connections(ns, i);
	if (setns(home, CLONE_NEWNET))
		err(1, "/proc/self/ns/net");
	for (i = 0; i < found.gl_pathc; i++) {
		close(ns[i].fd);
		umount2(ns[i].path, MNT_DETACH);
		unlink(ns[i].path);
	}
	close(home);
	globfree(&found);
	free(ns);
}
