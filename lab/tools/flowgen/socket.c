// SPDX-License-Identifier: GPL-2.0
#include <err.h>
#include <errno.h>
#include <limits.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../common/files.h"
#include "socket.h"
#include "transfer.h"

int set_int(int fd, int level, int opt, int val)
{
	return setsockopt(fd, level, opt, &val, sizeof(val));
}

int get_int(int fd, int level, int opt)
{
	int val = 0;
	socklen_t len = sizeof(val);

	return getsockopt(fd, level, opt, &val, &len) ? -1 : val;
}

void set_buf(int fd, int force, int opt, int val)
{
	if (set_int(fd, SOL_SOCKET, force, val))
		set_int(fd, SOL_SOCKET, opt, val);
}

const char *socket_options(int fd, int family, const struct config *cfg)
{
	if (cfg->cc && setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, cfg->cc, strlen(cfg->cc)))
		return "--cc";
	if (cfg->mss && set_int(fd, IPPROTO_TCP, TCP_MAXSEG, cfg->mss))
		return "--mss";
	if (cfg->tos >= 0 && (family == AF_INET6 ?
			     set_int(fd, IPPROTO_IPV6, IPV6_TCLASS, cfg->tos) :
			     set_int(fd, IPPROTO_IP, IP_TOS, cfg->tos)))
		return "--tos";
	if (cfg->sndbuf)
		set_buf(fd, SO_SNDBUFFORCE, SO_SNDBUF, cfg->sndbuf);
	if (cfg->rcvbuf)
		set_buf(fd, SO_RCVBUFFORCE, SO_RCVBUF, cfg->rcvbuf);
	return NULL;
}

static int open_socket(int family)
{
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		err(1, "socket");
	return fd;
}

void probe_sndbuf(struct send_buffer *b)
{
	FILE *fp = fopen("/proc/sys/net/ipv4/tcp_wmem", "re");
	int fd = open_socket(AF_INET);

	b->autotuned = UINT_MAX;
	if (fp) {
		if (fscanf(fp, "%*u %*u %u", &b->autotuned) != 1)
			b->autotuned = UINT_MAX;
		fclose(fp);
	}
	b->fresh = get_int(fd, SOL_SOCKET, SO_SNDBUF);
	set_buf(fd, SO_SNDBUFFORCE, SO_SNDBUF, 2 * TX_LOWAT_MAX);
	b->most = get_int(fd, SOL_SOCKET, SO_SNDBUF);
	/* Linux before 5.15 cannot lift the lock. */
	if (set_int(fd, SOL_SOCKET, SO_BUF_LOCK, 0))
		b->fresh = 0;
	close(fd);
}

void probe_options(int family, const struct config *cfg)
{
	int fd = open_socket(family);
	const char *bad;
	int got;

	bad = socket_options(fd, family, cfg);
	if (bad && errno == ENOENT)
		errx(2, "%s: no congestion control '%s' in this kernel", bad, cfg->cc);
	if (bad && errno == EPERM)
		errx(2, "%s: '%s' is not for this user (net.ipv4.tcp_allowed_congestion_control)",
		     bad, cfg->cc);
	if (bad)
		err(2, "%s", bad);
	/* The kernel doubles the value, to allow for its own overhead. */
	got = get_int(fd, SOL_SOCKET, SO_SNDBUF);
	if (cfg->sndbuf && got < 2 * cfg->sndbuf)
		warnx("--sndbuf: the kernel gives %d only (net.core.wmem_max)", got / 2);
	got = get_int(fd, SOL_SOCKET, SO_RCVBUF);
	if (cfg->rcvbuf && got < 2 * cfg->rcvbuf)
		warnx("--rcvbuf: the kernel gives %d only (net.core.rmem_max)", got / 2);
	close(fd);
}

void raise_file_limit(unsigned int connections)
{
	u64 limit = allow_files();

	if (connections + 16 > limit)
		errx(2, "%u connections need more open files than the limit of %llu",
		     connections, limit);
}
