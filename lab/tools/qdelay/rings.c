// SPDX-License-Identifier: GPL-2.0
/*
 * Live captures of all devices of many namespaces: one packet socket with a ring in each. libpcap
 * takes a ring for each device and direction.
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <pcap/dlt.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../common/alloc.h"
#include "../common/events.h"
#include "../common/files.h"
#include "../common/netns.h"
#include "account.h"
#include "memory.h"
#include "options.h"
#include "rings.h"

#define BLOCK		(64U << 10)	/* bytes that the kernel hands over at once */
#define BLOCKS_MIN	4		/* the kernel fills one while others are read */
#define TIMEOUT_MS	50		/* after which it hands over one that is not full */
#define SNAPLEN		128

struct capture {
	struct hop *hop;
	int fd;
	u8 *ring;
	u32 blocks, next;
};

/* Packets count between these times; CLOCK_REALTIME, ns. */
static u64 start_ns, stop_ns = NEVER;

static struct capture *captures;
static u32 n_captures;

static void open_ring(struct capture *c)
{
	struct sock_filter cut = { BPF_RET | BPF_K, 0, 0, SNAPLEN };
	struct sock_fprog filter = { 1, &cut };
	struct tpacket_req3 req = {
		.tp_block_size = BLOCK, .tp_block_nr = c->blocks, .tp_frame_size = BLOCK,
		.tp_frame_nr = c->blocks, .tp_retire_blk_tov = TIMEOUT_MS,
	};
	struct sockaddr_ll all = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL) };
	int version = TPACKET_V3;

	/* no packet before it is bound */
	c->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (c->fd < 0 ||
	    setsockopt(c->fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)) ||
	    setsockopt(c->fd, SOL_PACKET, PACKET_VERSION, &version, sizeof(version)) ||
	    setsockopt(c->fd, SOL_PACKET, PACKET_RX_RING, &req, sizeof(req)))
		err(1, "%s: packet socket", c->hop->name);
	c->ring = mmap(NULL, (size_t)BLOCK * c->blocks, PROT_READ | PROT_WRITE, MAP_SHARED, c->fd,
		       0);
	if (c->ring == MAP_FAILED || bind(c->fd, (struct sockaddr *)&all, sizeof(all)))
		err(1, "%s: packet socket", c->hop->name);
}

static void open_capture(struct capture *c)
{
	struct hop *h = c->hop;
	int ns = netns_fd(h->netns);

	netns_join(ns, h->netns);
	close(ns);
	for (u32 i = 0; i < h->queues; i++) {
		h->queue[i].ifindex = if_nametoindex(h->queue[i].dev);
		if (!h->queue[i].ifindex)
			err(1, "%s: %s", h->netns, h->queue[i].dev);
	}
	open_ring(c);
}

static struct queue *queue_at(struct hop *h, unsigned int ifindex)
{
	for (u32 i = 0; i < h->queues; i++)
		if (h->queue[i].ifindex == ifindex)
			return &h->queue[i];
	return NULL;
}

static void take_packet(struct hop *h, const struct tpacket3_hdr *p)
{
	const u8 *frame = (const u8 *)p;
	const struct sockaddr_ll *from = (void *)(frame + TPACKET_ALIGN(sizeof(*p)));
	struct queue *q = queue_at(h, from->sll_ifindex);
	u64 t = p->tp_sec * NSEC + p->tp_nsec;
	struct pkt pkt;

	if (!q || t < start_ns || t > stop_ns)
		return;
	switch (packet_parse(&pkt, &h->flows, DLT_EN10MB, SNAPLEN - link_room(DLT_EN10MB),
			     frame + p->tp_mac, p->tp_snaplen, p->tp_len)) {
	case PACKET:
		pkt.t = t;
		account_packet(h, from->sll_pkttype == PACKET_OUTGOING ? q : NULL, &pkt);
		break;
	case NO_PACKET:
		h->ignored++;
		break;
	case CUT:
		errx(1, "%s: a packet is cut after %u bytes", h->name, p->tp_snaplen);
	}
}

/* The packets of a ring are in order of time. */
static void drain(struct capture *c)
{
	for (;;) {
		struct tpacket_block_desc *block = (void *)(c->ring + (size_t)c->next * BLOCK);
		struct tpacket_hdr_v1 *head = &block->hdr.bh1;
		const u8 *at = (u8 *)block + head->offset_to_first_pkt;

		if (!(__atomic_load_n(&head->block_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER))
			return;
		for (u32 i = 0; i < head->num_pkts; i++) {
			const struct tpacket3_hdr *p = (const void *)at;

			take_packet(c->hop, p);
			at += p->tp_next_offset;
		}
		__atomic_store_n(&head->block_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
		c->next = (c->next + 1) % c->blocks;
	}
}

void rings_open(struct hop *hops, u32 n, u64 buffer_mb)
{
	u64 blocks = (buffer_mb << 20) / BLOCK / n, least = (n * BLOCKS_MIN * BLOCK >> 20) + 1;
	int home = netns_fd(NULL);

	if (blocks < BLOCKS_MIN)
		errx(1, "observe.buffer: %llu MiB are too few for %u nodes: at least %llu",
		     buffer_mb, n, least);
	check_memory("observe.buffer", buffer_mb);
	allow_files();
	captures = xcalloc(n, sizeof(*captures));
	n_captures = n;
	for (u32 i = 0; i < n; i++) {
		captures[i].hop = &hops[i];
		captures[i].blocks = blocks;
		open_capture(&captures[i]);
	}
	netns_join(home, "/proc/self/ns/net");
	close(home);
}

static void count_drops(struct capture *c)
{
	struct tpacket_stats_v3 stats;
	socklen_t len = sizeof(stats);

	if (getsockopt(c->fd, SOL_PACKET, PACKET_STATISTICS, &stats, &len))
		err(1, "%s: packet socket", c->hop->name);
	c->hop->drops = stats.tp_drops;
}

/* Sleeps until the kernel hands over blocks. Edge-triggered, so that it cannot spin. */
static void wait_for_end(int ep, int *sig, int *timer)
{
	struct epoll_event ev[64];

	for (;;) {
		int n = epoll_wait(ep, ev, ARRAY_SIZE(ev), -1);

		if (n < 0 && errno != EINTR)
			err(1, "epoll_wait");
		for (int i = 0; i < n; i++) {
			void *who = ev[i].data.ptr;

			if (who == timer)
				return;
			if (who != sig) {
				drain(who);
			} else if (stop_ns == NEVER) {
				stop_ns = clock_ns(CLOCK_REALTIME);
				/* blocks that the kernel is still filling */
				set_timer(*timer, 0, 4 * TIMEOUT_MS * 1000000ULL);
			}
		}
	}
}

void rings_run(u64 zero)
{
	int ep = epoll_create1(EPOLL_CLOEXEC), sig = open_signals(), timer = open_timer();
	u64 real = clock_ns(CLOCK_REALTIME), mono = now_ns();
	u32 i;

	if (ep < 0)
		err(1, "epoll_create");
	if (zero && mono > zero)
		errx(1, "--zero is %llu ns ago", mono - zero);
	watch(ep, EPOLL_CTL_ADD, sig, EPOLLIN | EPOLLET, &sig);
	watch(ep, EPOLL_CTL_ADD, timer, EPOLLIN | EPOLLET, &timer);
	for (i = 0; i < n_captures; i++)
		watch(ep, EPOLL_CTL_ADD, captures[i].fd, EPOLLIN | EPOLLET, &captures[i]);
	start_ns = real;
	for (i = 0; i < n_captures; i++)
		hop_start(captures[i].hop, real + (zero ? zero - mono : 0));
	fprintf(stderr, "ready\n");
	wait_for_end(ep, &sig, &timer);
	for (i = 0; i < n_captures; i++) {
		drain(&captures[i]);
		count_drops(&captures[i]);
		account_time(captures[i].hop, stop_ns);
		if (captures[i].hop->whole)
			captures[i].hop->last = stop_ns;
	}
}
