// SPDX-License-Identifier: GPL-2.0
/*
 * int_hostile - an attacker on the path of HPCC++'s telemetry, for tests.
 *
 *	int_hostile [-6] RATE SECONDS
 *	int_hostile -l DEV MAC RATE SECONDS
 *
 * Captures probes and responses that pass through this host, over IPv4 or IPv6, and sends
 * RATE copies of the latest ones per second: unchanged, with a wrong cookie, a wrong
 * checksum, truncated, too long, of a wrong flow (another port, or from a third host), with
 * a later id, with a sequence number outside the window, behind IP options (IPv6: an
 * extension header), or as a fragment. With -l: copies of probes (IPv4) as frames to MAC on
 * DEV: unchanged, with one, two or ten VLAN tags, or broadcast or multicast. Prints how many
 * of each kind it has sent, in lines of "TYPE KIND NUMBER".
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
#include <net/if.h>
#include <netinet/ether.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
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
	OPTIONS,
	FRAGMENT,
	KINDS,
};

enum link_kind {
	UNICAST,
	VLAN,
	QINQ,
	TEN_TAGS,
	BROADCAST,
	MULTICAST_FRAME,	/* to a multicast MAC address, with the host's IP address */
	MULTICAST,		/* both */
	LINK_KINDS,
};

static const char * const kind_name[KINDS] = {
	"replay", "cookie", "checksum", "truncated", "overlong", "flow", "future", "sequence",
	"options", "fragment",
};

static const char * const link_kind_name[LINK_KINDS] = {
	"unicast", "vlan", "qinq", "ten_tags", "broadcast", "multicast_frame", "multicast",
};

#define SPARE		256U	/* more than the longest message has */
#define TAGS_MAX	10

/* An IP packet with a message, and room for a longer one */
struct packet {
	size_t len;	/* 0: none yet */
	size_t th;	/* where the TCP header is */
	u8 data[sizeof(struct ip6_hdr) + sizeof(struct tcphdr) + INT_MSG_LEN_MAX + SPARE];
};

static bool ipv6;

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

static struct tcphdr *tcp(struct packet *p)
{
	return (struct tcphdr *)(p->data + p->th);
}

static u8 *message(struct packet *p)
{
	return p->data + p->th + sizeof(struct tcphdr);
}

/* Sets length and checksum to the correct values. */
static void mend(struct packet *p)
{
	struct iphdr *ip = (struct iphdr *)p->data;
	struct ip6_hdr *ip6 = (struct ip6_hdr *)p->data;
	struct tcphdr *th = tcp(p);
	size_t tcp_len = p->len - p->th;
	u32 sum;

	if (ipv6)
		ip6->ip6_plen = htons(p->len - sizeof(*ip6));
	else
		ip->tot_len = htons(p->len);
	th->check = 0;
	sum = sum16(ipv6 ? (u8 *)&ip6->ip6_src : (u8 *)&ip->saddr, ipv6 ? 32 : 8,
		    IPPROTO_TCP + tcp_len);
	sum = sum16((u8 *)th, tcp_len, sum);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	th->check = htons(~sum & 0xffff);
}

/* Reads what was captured; keeps the latest probe and response. */
static void listen_to(int fd, struct packet latest[2])
{
	struct packet p = { .th = ipv6 ? sizeof(struct ip6_hdr) : sizeof(struct iphdr) };
	ssize_t n;

	while ((n = recv(fd, p.data, sizeof(p.data), MSG_DONTWAIT | MSG_TRUNC)) >= 0) {
		const struct iphdr *ip = (struct iphdr *)p.data;
		const struct ip6_hdr *ip6 = (struct ip6_hdr *)p.data;
		const u8 *m = message(&p);

		if (n < m + INT_HEAD_LEN - p.data || (size_t)n > sizeof(p.data) - SPARE ||
		    (ipv6 ? ip6->ip6_nxt : ip->protocol) != IPPROTO_TCP ||
		    (!ipv6 && ip->ihl != 5) || p.data[p.th + 13] != 0x08 ||
		    !int_head_valid(m, p.data + n - m))
			continue;
		p.len = n;
		mend(&p);	/* a veth leaves the checksum to the last device */
		if (m[4] == INT_PROBE)
			latest[0] = p;
		else
			latest[1] = p;
	}
	if (errno != EAGAIN)
		die("recv");
}

/* @len bytes at @from between the IP header and TCP's; IPv6: a header of @type */
static void insert(struct packet *p, u8 type, const void *from, size_t len)
{
	struct iphdr *ip = (struct iphdr *)p->data;
	struct ip6_hdr *ip6 = (struct ip6_hdr *)p->data;

	memmove(p->data + p->th + len, p->data + p->th, p->len - p->th);
	memcpy(p->data + p->th, from, len);
	if (ipv6)
		ip6->ip6_nxt = type;
	else
		ip->ihl += len / 4;
	p->th += len;
	p->len += len;
}

static void alter(struct packet *p, enum kind kind)
{
	static const u8 nops[4] = { 1, 1, 1, 1 }, padded[8] = { IPPROTO_TCP, 0, 1, 4 },
		first[8] = { IPPROTO_TCP, 0, 0, 1, 1, 2, 3, 4 };
	struct iphdr *ip = (struct iphdr *)p->data;
	struct ip6_hdr *ip6 = (struct ip6_hdr *)p->data;
	struct tcphdr *th = tcp(p);
	u8 *m = message(p);

	switch (kind) {
	case COOKIE:
		m[12 + rand() % 8] ^= 1 + rand() % 255;
		break;
	case TRUNCATED:
		p->len = m - p->data + rand() % (p->data + p->len - m);
		break;
	case OVERLONG:
		memset(p->data + p->len, rand(), SPARE);
		p->len += 1 + rand() % SPARE;
		break;
	case FLOW:
		if (rand() & 1)
			th->source = htons(1 + rand() % 1000);
		else if (ipv6)
			ip6->ip6_src.s6_addr[14] ^= 1 + rand() % 255;
		else
			ip->saddr = htonl(ntohl(ip->saddr) ^ (0x200 + (rand() & 0xff)));
		break;
	case FUTURE:
		int_put32(m + 8, int_get32(m + 8) + 1 + rand() % 0x7fffffff);
		break;
	case SEQUENCE:
		th->seq = htonl(ntohl(th->seq) + (1u << 30) + rand());
		break;
	case OPTIONS:
		if (ipv6)
			insert(p, IPPROTO_DSTOPTS, padded, sizeof(padded));
		else
			insert(p, 0, nops, sizeof(nops));
		break;
	case FRAGMENT:
		if (ipv6)
			insert(p, IPPROTO_FRAGMENT, first, sizeof(first));
		else
			ip->frag_off = htons(IP_MF);
		break;
	default:
		break;
	}
	mend(p);
	if (kind == CHECKSUM)
		th->check ^= htons(1 + rand() % 65534);
}

/* Sends @p as a frame of @kind to @mac on the device @to->sll_ifindex. */
static void send_frame(int out, const struct sockaddr_ll *to, const u8 *mac, struct packet *p,
		       enum link_kind kind)
{
	static const u8 all[ETH_ALEN] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff },
		group[ETH_ALEN] = { 0x01, 0x00, 0x5e, 0x00, 0x00, 0x01 };
	int tags = kind == VLAN ? 1 : kind == QINQ ? 2 : kind == TEN_TAGS ? TAGS_MAX : 0;
	u8 frame[ETH_HLEN + 4 * TAGS_MAX + sizeof(p->data)] = { 0 }, *at = frame;

	if (kind == BROADCAST)
		mac = all;
	if (kind == MULTICAST_FRAME || kind == MULTICAST)
		mac = group;
	if (kind == MULTICAST) {
		((struct iphdr *)p->data)->daddr = htonl(INADDR_ALLHOSTS_GROUP);
		mend(p);
	}
	memcpy(at, mac, ETH_ALEN);
	at += 2 * ETH_ALEN;
	while (tags--) {
		int_put32(at, (tags ? ETH_P_8021AD : ETH_P_8021Q) << 16 | 7);
		at += 4;
	}
	*at++ = ETH_P_IP >> 8;
	*at++ = ETH_P_IP & 0xff;
	memcpy(at, p->data, p->len);
	if (sendto(out, frame, at + p->len - frame, 0, (const void *)to, sizeof(*to)) < 0)
		die("sendto");
}

/* Sleeps until the next of @rate instants per second. */
static void wait_turn(struct timespec *next, long rate)
{
	next->tv_nsec += 1000000000 / rate;
	if (next->tv_nsec >= 1000000000) {
		next->tv_nsec -= 1000000000;
		next->tv_sec++;
	}
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, next, NULL);
}

static void flood_link(const char *dev, const char *mac, int in, long rate, double seconds)
{
	struct sockaddr_ll to = { .sll_family = AF_PACKET, .sll_ifindex = if_nametoindex(dev) };
	const struct ether_addr *addr = ether_aton(mac);
	long count[LINK_KINDS] = { 0 }, i;
	struct packet latest[2] = { { 0 } };
	int out = socket(AF_PACKET, SOCK_RAW, 0), k;
	struct timespec next;

	if (out < 0 || !to.sll_ifindex || !addr)
		die("device or address");
	clock_gettime(CLOCK_MONOTONIC, &next);
	for (i = 0; i < rate * seconds; i++) {
		struct packet p;

		wait_turn(&next, rate);
		listen_to(in, latest);
		p = latest[0];
		if (!p.len)
			continue;
		send_frame(out, &to, addr->ether_addr_octet, &p, i % LINK_KINDS);
		count[i % LINK_KINDS]++;
	}
	for (k = 0; k < LINK_KINDS; k++)
		printf("probe %s %ld\n", link_kind_name[k], count[k]);
}

int main(int argc, char **argv)
{
	long rate, count[2][KINDS] = { { 0 } };
	struct packet latest[2] = { { 0 } };
	const char *dev = NULL, *mac = NULL;
	struct timespec next;
	double seconds;
	int in, out, t, k;
	long i;

	if (argc > 1 && !strcmp(argv[1], "-6")) {
		ipv6 = true;
		argc--;
		argv++;
	} else if (argc > 3 && !strcmp(argv[1], "-l")) {
		dev = argv[2];
		mac = argv[3];
		argc -= 3;
		argv += 3;
	}
	rate = argc == 3 ? atol(argv[1]) : 0;
	seconds = argc == 3 ? atof(argv[2]) : 0;
	if (rate < 1 || rate > 1000000000 || seconds <= 0) {
		fprintf(stderr, "usage: int_hostile [-6 | -l DEV MAC] RATE SECONDS\n");
		return 2;
	}
	in = socket(AF_PACKET, SOCK_DGRAM, htons(ipv6 ? ETH_P_IPV6 : ETH_P_IP));
	out = socket(ipv6 ? AF_INET6 : AF_INET, SOCK_RAW, IPPROTO_RAW);
	if (in < 0 || out < 0)
		die("socket");
	if (dev) {
		flood_link(dev, mac, in, rate, seconds);
		return 0;
	}
	clock_gettime(CLOCK_MONOTONIC, &next);
	for (i = 0; i < rate * seconds; i++) {
		enum kind kind = i / 2 % KINDS;
		struct sockaddr_in to = { .sin_family = AF_INET };
		struct sockaddr_in6 to6 = { .sin6_family = AF_INET6 };
		struct packet p;

		wait_turn(&next, rate);
		listen_to(in, latest);
		p = latest[i % 2];
		if (!p.len)
			continue;
		alter(&p, kind);
		to.sin_addr.s_addr = ((struct iphdr *)p.data)->daddr;
		to6.sin6_addr = ((struct ip6_hdr *)p.data)->ip6_dst;
		if (sendto(out, p.data, p.len, 0,
			   ipv6 ? (struct sockaddr *)&to6 : (struct sockaddr *)&to,
			   ipv6 ? sizeof(to6) : sizeof(to)) < 0)
			die("sendto");
		count[i % 2][kind]++;
	}
	for (t = 0; t < 2; t++)
		for (k = 0; k < KINDS; k++)
			printf("%s %s %ld\n", t ? "response" : "probe", kind_name[k], count[t][k]);
	return 0;
}
