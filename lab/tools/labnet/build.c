// SPDX-License-Identifier: GPL-2.0
/*
 * The order is that of "ip" in scripts: all namespaces; all links; then one namespace after the
 * other its devices, addresses, neighbours and routes; then the queues.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../common/alloc.h"
#include "../common/events.h"
#include "build.h"
#include "netlink.h"
#include "queues.h"
#include "undo.h"

#define NODE_BYTES	(450 << 10)	/* measured in the lab, rounded up */
#define LINK_BYTES	(100 << 10)	/* with a delay and a rate at both ends */

static int home;		/* the namespace where the program was started */

static void enter(int ns)
{
	CHECK(!setns(ns, CLONE_NEWNET), "cannot enter a namespace");
}

/* Each namespace holds a descriptor until its links are made. */
static void allow_descriptors(size_t n)
{
	struct rlimit limit = { n + 100, n + 100 }, now;

	if (!getrlimit(RLIMIT_NOFILE, &now) && now.rlim_cur >= limit.rlim_cur)
		return;
	if (now.rlim_max > limit.rlim_max)
		limit.rlim_max = now.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit))
		err(1, "%zu namespaces need as many open files", n);
}

u64 plan_memory(const struct plan *p)
{
	size_t n = 0;

	for (size_t i = 0; i < p->n_nodes; i++)
		n += !p->nodes[i].exists;
	return (u64)n * NODE_BYTES + (u64)p->n_links * LINK_BYTES;
}

static void check_memory(const struct plan *p)
{
	u64 need = plan_memory(p) >> 10, available = 0;
	FILE *f = fopen("/proc/meminfo", "r");
	char line[128];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "MemAvailable: %llu", &available) == 1)
			break;
	if (f)
		fclose(f);
	if (available && need > available)
		errx(1, "%s: %zu nodes and %zu links need about %llu MiB of memory; %llu are available",
		     p->file, p->n_nodes, p->n_links, need >> 10, available >> 10);
}

/* Mounts must be seen in other mount namespaces, as with "ip netns add". */
static void share_directory(void)
{
	static bool shared;

	if (shared)
		return;
	if (mkdir(NETNS_DIR, 0755) && errno != EEXIST)
		err(1, NETNS_DIR);
	while (mount("", NETNS_DIR, "none", MS_SHARED | MS_REC, NULL)) {
		if (errno != EINVAL || shared)
			err(1, NETNS_DIR);
		if (mount(NETNS_DIR, NETNS_DIR, "none", MS_BIND | MS_REC, NULL))
			err(1, NETNS_DIR);
		shared = true;
	}
	shared = true;
}

static void write_sysctls(const struct sysctls *list, const char *where)
{
	for (size_t i = 0; i < list->n; i++) {
		const struct sysctl *s = &list->at[i];
		char path[PATH_MAX];
		ssize_t n = -1;
		int fd;

		snprintf(path, sizeof(path), "/proc/sys/%s", s->name);
		for (char *c = path; *c; c++)
			if (*c == '.')
				*c = '/';
		fd = open(path, O_WRONLY | O_CLOEXEC);
		if (fd >= 0)
			n = write(fd, s->value, strlen(s->value));
		CHECK(n >= 0, "%s: %s = %s", where, s->name, s->value);
		close(fd);
	}
}

static bool has_sysctl(const struct sysctls *list, const char *name)
{
	for (size_t i = 0; i < list->n; i++)
		if (!strcmp(list->at[i].name, name))
			return true;
	return false;
}

/* Runs modprobe; its first message is put into @why */
static bool modprobe(char *const argv[], char *why, size_t size)
{
	int said = memfd_create("modprobe", MFD_CLOEXEC), status;
	ssize_t n;
	pid_t pid = fork();

	CHECK(said >= 0 && pid >= 0, "fork");
	if (!pid) {
		dup2(said, STDERR_FILENO);
		execvp(argv[0], argv);
		err(127, "%s", argv[0]);
	}
	if (waitpid(pid, &status, 0) != pid)
		status = -1;
	n = pread(said, why, size - 1, 0);
	why[n > 0 ? n : 0] = 0;
	why[strcspn(why, "\n")] = 0;
	close(said);
	return !status;
}

/* The kernel ignores parameters that a module does not have, so look whether they are there. */
static void load_module(const struct module *m)
{
	char **argv = xcalloc(m->parameters.n + 3, sizeof(*argv)), why[256], path[PATH_MAX];
	const struct sysctl *s;

	argv[0] = "modprobe";
	argv[1] = (char *)m->name;
	for (size_t i = 0; i < m->parameters.n; i++) {
		s = &m->parameters.at[i];
		CHECK(asprintf(&argv[i + 2], "%s=%s", s->name, s->value) > 0, "memory");
	}
	if (!modprobe(argv, why, sizeof(why)))
		give_up("modules.%s: %s", m->name, why);
	for (size_t i = 0; i < m->parameters.n; i++) {
		s = &m->parameters.at[i];
		snprintf(path, sizeof(path), "/sys/module/%s/parameters/%s", m->name, s->name);
		CHECK(!access(path, F_OK), "modules.%s.%s", m->name, s->name);
		free(argv[i + 2]);
	}
	free(argv);
}

/* Makes the namespace and opens it, or opens it */
static int open_node(const struct plan *p, const struct node *node)
{
	char path[PATH_MAX];
	int fd;

	node_path(p, node, path);
	if (!node->exists) {
		fd = open(path, O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0);
		CHECK(fd >= 0, "%s", path);
		close(fd);
		began(p, node);
		CHECK(!unshare(CLONE_NEWNET), "%s", path);
		CHECK(!mount("/proc/self/ns/net", path, "none", MS_BIND, NULL), "%s", path);
	}
	fd = open(path, O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0, "%s", path);
	return fd;
}

/* Before neighbours, which need the other end's MAC address */
static void find_devs(const struct plan *p, const struct node *node)
{
	struct mnl_socket *nl = netlink_open();

	for (size_t i = 0; i < node->n_ends; i++) {
		struct end *e = node->end[i];

		e->index = find_dev(nl, e->dev, e->mac);
		CHECK(e->index, "%s", plan_place(p, e));
	}
	mnl_socket_close(nl);
}

/* No two ends have the same losses. */
static u64 seed_of(const struct plan *p, const struct end *e, u64 seed)
{
	return seed << 32 | end_number(p, e);
}

static void configure_end(struct mnl_socket *nl, const struct plan *p, const struct end *e,
			  u64 seed)
{
	CHECK(!e->link->exact || set_line(nl, p, e, seed_of(p, e, seed)), "%s", plan_place(p, e));
	CHECK(set_up(nl, e->dev, true), "%s", plan_place(p, e));
	for (size_t i = 0; i < e->addresses.n; i++)
		CHECK(add_address(nl, e->index, &e->addresses.at[i]), "%s.addresses[%zu]",
		      plan_place(p, e), i);
	for (size_t i = 0; e->link->neighbours && i < e->far->addresses.n; i++)
		CHECK(add_neighbour(nl, e->index, &e->far->addresses.at[i], e->far->mac),
		      "%s: neighbour", plan_place(p, e));
}

static void configure_node(const struct plan *p, const struct node *node, u64 seed)
{
	struct mnl_socket *nl = netlink_open();

	if (!node->exists)
		CHECK(set_up(nl, "lo", true), "%s: lo", node->name);
	for (size_t i = 0; i < node->n_ends; i++)
		configure_end(nl, p, node->end[i], seed);
	for (size_t i = 0; i < node->n_routes; i++)
		CHECK(add_route(nl, &node->routes[i]), "%s: nodes[%td].routes[%zu]", p->file,
		      node - p->nodes, i);
	mnl_socket_close(nl);
}

/*
 * A device that came up before its other end drops what it shall send until a kworker has noticed
 * that the other end is up. In Linux 7 a request for the device's state (rtnl_getlink) updates it
 * at once.
 */
static void activate_node(const struct plan *p, const struct node *node)
{
	struct mnl_socket *nl = netlink_open();
	u8 mac[ETH_BYTES];

	for (size_t i = 0; i < node->n_ends; i++)
		CHECK(find_dev(nl, node->end[i]->dev, mac), "%s", plan_place(p, node->end[i]));
	mnl_socket_close(nl);
}

/* Switches spread flows each in its own way, unless the plan says how. Linux before 6.11 cannot. */
static void seed_multipath(const struct plan *p, const struct node *node)
{
	static const char name[] = "net.ipv4.fib_multipath_hash_seed";
	u32 hash = 2166136261;		/* FNV-1a */
	bool several = false;
	char value[16];
	int fd;

	for (size_t i = 0; i < node->n_routes; i++)
		several |= node->routes[i].via.n > 1;
	if (!several || has_sysctl(&p->sysctls, name) || has_sysctl(&node->sysctls, name))
		return;
	for (const char *c = node->name; *c; c++)
		hash = (hash ^ (u8)*c) * 16777619;
	fd = open("/proc/sys/net/ipv4/fib_multipath_hash_seed", O_WRONLY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return;
	snprintf(value, sizeof(value), "%u", hash | 1);
	CHECK(fd >= 0 && write(fd, value, strlen(value)) > 0, "%s: %s", node->name, name);
	close(fd);
}

/* From now on time passes in windows. */
static void begin_part(const struct plan *p)
{
	static struct sysctl everything[] = {
		{ "net.core.netdev_budget", "1000000000" },
		{ "net.core.dev_weight", "1000000" },
		{ "net.core.netdev_max_backlog", "1000000" },
	};
	struct module link = { .name = "lowq_link" };
	FILE *f;

	if (!p->parts)
		return;
	load_module(&link);
	/* what one node receives must not wait for how much others do */
	write_sysctls(&(struct sysctls){ everything, ARRAY_SIZE(everything) }, "machine_sysctl");
	f = fopen("/sys/module/lowq_link/parameters/part", "we");
	if (!f || fprintf(f, "%u %u %llu", p->me, p->parts, p->window) < 0 || fclose(f))
		give_up("this kernel has no runs of several processes; the lab's has");
}

void build(const struct plan *p, u64 zero, u64 seed)
{
	int *ns = xcalloc(p->n_nodes, sizeof(*ns));
	struct mnl_socket *nl;
	size_t i;

	check_memory(p);
	allow_descriptors(p->n_nodes);
	home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (home < 0)
		err(1, "/proc/self/ns/net");
	for (i = 0; i < p->n_modules; i++)
		load_module(&p->modules[i]);
	write_sysctls(&p->machine, "machine_sysctl");
	begin_part(p);
	share_directory();
	for (i = 0; i < p->n_nodes; i++)
		ns[i] = open_node(p, &p->nodes[i]);
	/* before there are devices, which take over some of it */
	for (i = 0; i < p->n_nodes; i++) {
		if (p->nodes[i].exists)
			continue;
		enter(ns[i]);
		write_sysctls(&p->sysctls, p->nodes[i].name);
		write_sysctls(&p->nodes[i].sysctls, p->nodes[i].name);
		seed_multipath(p, &p->nodes[i]);
	}
	enter(home);
	nl = netlink_open();
	for (i = 0; i < p->n_links; i++) {
		const struct end *e = p->links[i].end;
		const int both[] = { ns[e[0].node - p->nodes], ns[e[1].node - p->nodes] };

		if (add_link(nl, &p->links[i], both))
			continue;
		if (p->links[i].exact && errno == EOPNOTSUPP)
			give_up("%s: links[%zu]: this kernel has no exact links; \"exact\": false makes others",
				p->file, i);
		CHECK(false, "%s: links[%zu]", p->file, i);
	}
	mnl_socket_close(nl);
	for (i = 0; i < p->n_nodes; i++) {
		enter(ns[i]);
		find_devs(p, &p->nodes[i]);
	}
	for (i = 0; i < p->n_nodes; i++) {
		enter(ns[i]);
		configure_node(p, &p->nodes[i], seed);
		ask_for_queues(p, &p->nodes[i]);
	}
	sleep_until(zero);
	for (i = 0; i < p->n_nodes; i++) {
		enter(ns[i]);
		queue_node(p, &p->nodes[i]);
		activate_node(p, &p->nodes[i]);
		close(ns[i]);
	}
	enter(home);
	free(ns);
}
