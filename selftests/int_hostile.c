// SPDX-License-Identifier: GPL-2.0
/*
 * int_hostile - an attacker on the path of HPCC++'s telemetry, for tests.
 *
 *	int_hostile RATE SECONDS
 *
 * Listens to probes and responses that pass through this host (IPv4), and sends RATE
 * altered copies of the latest ones per second: replayed, with a wrong cookie, a wrong
 * checksum, truncated, over-long, of a wrong flow (another port, or from a third host),
 * with an id of the future, with a sequence number out of the window. Prints how many of
 * each kind, as lines of "TYPE KIND NUMBER".
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "int_wire.h"

enum kind {
	REPLAY,
	COOKIE,
	CHECKSUM,
	TRUNCATED,
	OVERLONG,
	FLOW,
	FUTURE,
	SEQUENCE,
	KINDS,
};

static const char * const kind_name[KINDS] = {
	"replay", "cookie", "checksum", "truncated", "overlong", "flow", "future", "sequence",
};

#define HEADERS		(sizeof(struct iphdr) + sizeof(struct tcphdr))

/* An IP packet with a message, and room for a longer one */
struct packet {
	size_t len;	/* 0: none yet */
	u8 data[HEADERS + INT_MAX_LEN + 64];
};

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static u32 sum16(const u8 *p, size_t len, u32 sum)
{
	size_t i;

	for (i = 0; i + 1 < len; i += 2)
		sum += (u32)p[i] << 8 | p[i + 1];
	if (len & 1)
		sum += (u32)p[len - 1] << 8;
	return sum;
}

/* Length and checksums as they would be right */
static void mend(struct packet *p)
{
	struct iphdr *ip = (struct iphdr *)p->data;
	struct tcphdr *th = (struct tcphdr *)(p->data + sizeof(*ip));
	size_t tcp_len = p->len - sizeof(*ip);
	u32 sum;

	ip->tot_len = htons(p->len);
	th->check = 0;
	sum = sum16((u8 *)&ip->saddr, 8, IPPROTO_TCP + tcp_len);
	sum = sum16((u8 *)th, tcp_len, sum);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	th->check = htons(~sum & 0xffff);
}

/* Takes what has passed by; keeps the latest probe and response. */
static void listen_to(int fd, struct packet latest[2])
{
	struct packet p;
	ssize_t n;

	while ((n = recv(fd, p.data, sizeof(p.data), MSG_DONTWAIT | MSG_TRUNC)) >= 0) {
		const struct iphdr *ip = (struct iphdr *)p.data;
		const u8 *m = p.data + HEADERS;

		if ((size_t)n < HEADERS + INT_HEAD_LEN || (size_t)n > sizeof(p.data) - 64 ||
		    ip->version != 4 || ip->ihl != 5 || ip->protocol != IPPROTO_TCP ||
		    p.data[sizeof(*ip) + 13] != 0x08 || !int_head_valid(m, n - HEADERS))
			continue;
		p.len = n;
		if (m[4] == INT_PROBE)
			latest[0] = p;
		else
			latest[1] = p;
	}
	if (errno != EAGAIN)
		die("recv");
}

static void alter(struct packet *p, enum kind kind)
{
	struct iphdr *ip = (struct iphdr *)p->data;
	struct tcphdr *th = (struct tcphdr *)(p->data + sizeof(*ip));
	u8 *m = p->data + HEADERS;

	switch (kind) {
	case COOKIE:
		m[12 + rand() % 8] ^= 1 + rand() % 255;
		break;
	case TRUNCATED:
		p->len = HEADERS + rand() % (p->len - HEADERS);
		break;
	case OVERLONG:
		memset(p->data + p->len, rand(), 64);
		p->len += 1 + rand() % 64;
		break;
	case FLOW:
		if (rand() & 1)
			th->source = htons(1 + rand() % 1000);
		else
			ip->saddr = htonl(ntohl(ip->saddr) ^ (0x200 + (rand() & 0xff)));
		break;
	case FUTURE:
		int_put32(m + 8, int_get32(m + 8) + 1 + rand() % 1000);
		break;
	case SEQUENCE:
		th->seq = htonl(ntohl(th->seq) + (1u << 30) + rand());
		break;
	default:
		break;
	}
	mend(p);
	if (kind == CHECKSUM)
		th->check ^= htons(1 + rand() % 65534);
}

int main(int argc, char **argv)
{
	long rate = argc == 3 ? atol(argv[1]) : 0, count[2][KINDS] = { { 0 } };
	double seconds = argc == 3 ? atof(argv[2]) : 0;
	struct packet latest[2] = { { 0 } };
	struct timespec next;
	int in, out, t, k;
	long i;

	if (rate < 1 || rate > 1000000000 || seconds <= 0) {
		fprintf(stderr, "usage: int_hostile RATE SECONDS\n");
		return 2;
	}
	in = socket(AF_PACKET, SOCK_DGRAM, htons(ETH_P_IP));
	out = socket(AF_INET, SOCK_RAW, IPPROTO_RAW);
	if (in < 0 || out < 0)
		die("socket");
	clock_gettime(CLOCK_MONOTONIC, &next);
	for (i = 0; i < rate * seconds; i++) {
		enum kind kind = i / 2 % KINDS;
		struct sockaddr_in to = { .sin_family = AF_INET };
		struct packet p;

		next.tv_nsec += 1000000000 / rate;
		if (next.tv_nsec >= 1000000000) {
			next.tv_nsec -= 1000000000;
			next.tv_sec++;
		}
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
		listen_to(in, latest);
		p = latest[i % 2];
		if (!p.len)
			continue;
		alter(&p, kind);
		to.sin_addr.s_addr = ((struct iphdr *)p.data)->daddr;
		if (sendto(out, p.data, p.len, 0, (struct sockaddr *)&to, sizeof(to)) < 0)
			die("sendto");
		count[i % 2][kind]++;
	}
	for (t = 0; t < 2; t++)
		for (k = 0; k < KINDS; k++)
			printf("%s %s %ld\n", t ? "response" : "probe", kind_name[k], count[t][k]);
	return 0;
}
