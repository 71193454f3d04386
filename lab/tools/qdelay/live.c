// SPDX-License-Identifier: GPL-2.0
/* Live captures on interfaces. */
#include <assert.h>
#include <err.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../common/alloc.h"
#include "../common/events.h"
#include "capture.h"
#include "memory.h"
#include "options.h"
#include "source.h"

#define TIMEOUT_MS	50		/* after which the kernel hands over a block */
#define LIVE_LAG	(2 * NSEC)	/* the longest that this can take */

#define BLOCK_KIB		256	/* libpcap's rings are of blocks of this size */

/* Packets count between these times, when all sources capture; CLOCK_REALTIME, ns. */
static u64 start_ns, stop_ns = NEVER;

/*
 * A kernel filter that drops packets of the other direction before they are copied. libpcap's
 * pcap_setdirection() and "inbound" filter in user space, where a packet's direction is unknown,
 * and lose the first block. Packets captured before this filter are too old to count (start_ns).
 */
static void set_kernel_filter(struct source *s)
{
	const struct sock_filter head[] = {
		{ BPF_LD | BPF_B | BPF_ABS, 0, 0, SKF_AD_OFF + SKF_AD_PKTTYPE },
		{ BPF_JMP | BPF_JEQ | BPF_K, s->out, !s->out, PACKET_OUTGOING },
		{ BPF_RET | BPF_K, 0, 0, 0 },
	};
	struct sock_fprog all;
	struct bpf_program prog;

	static_assert(sizeof(*all.filter) == sizeof(*prog.bf_insns),
		      "one layout of instructions");
	source_compile(s, &prog);
	all.len = ARRAY_SIZE(head) + prog.bf_len;
	all.filter = xreallocarray(NULL, all.len, sizeof(*all.filter));
	memcpy(all.filter, head, sizeof(head));
	memcpy(all.filter + ARRAY_SIZE(head), prog.bf_insns,
	       prog.bf_len * sizeof(*prog.bf_insns));
	if (setsockopt(pcap_fileno(s->pcap), SOL_SOCKET, SO_ATTACH_FILTER,
		       &all, sizeof(all)))
		err(1, "%s: cannot set the filter", s->name);
	free(all.filter);
	pcap_freecode(&prog);
}

/*
 * Divides --buffer evenly among the devices. Returns the bytes for each, whole blocks of libpcap,
 * which rounds up.
 */
static int ring_bytes(void)
{
	if (opt.buffer_mb < opt.nsources)
		usage_error("--buffer: %u MiB are too few for %u devices: at least %u",
			    opt.buffer_mb, opt.nsources, opt.nsources);
	check_memory("--buffer", opt.buffer_mb);
	return opt.buffer_mb * (1024 / BLOCK_KIB) / opt.nsources * BLOCK_KIB * 1024;
}

static void open_live(struct source *s, int ring)
{
	char err[PCAP_ERRBUF_SIZE];
	int r;

	s->pcap = pcap_create(s->name, err);
	if (!s->pcap)
		errx(1, "%s: %s", s->name, err);
	pcap_set_snaplen(s->pcap, opt.snaplen ? opt.snaplen : 128);
	pcap_set_promisc(s->pcap, 0);
	pcap_set_timeout(s->pcap, TIMEOUT_MS);
	pcap_set_immediate_mode(s->pcap, 0);
	pcap_set_buffer_size(s->pcap, ring);
	if (pcap_set_tstamp_precision(s->pcap, PCAP_TSTAMP_PRECISION_NANO))
		errx(1, "%s: no time stamps in nanoseconds", s->name);
	r = pcap_activate(s->pcap);
	if (r < 0)
		errx(1, "%s: %s%s%s", s->name, pcap_statustostr(r),
		     *pcap_geterr(s->pcap) ? ": " : "", pcap_geterr(s->pcap));
	source_opened(s);
	if (s->dlt == DLT_LINUX_SLL || s->dlt == DLT_LINUX_SLL2) {
		if (pcap_setdirection(s->pcap, s->out ? PCAP_D_OUT : PCAP_D_IN))
			errx(1, "%s: %s", s->name, pcap_geterr(s->pcap));
		source_set_filter(s);
	} else {
		set_kernel_filter(s);
	}
	if (pcap_setnonblock(s->pcap, 1, err) < 0)
		errx(1, "%s: %s", s->name, err);
}

static void live_packet(u8 *user, const struct pcap_pkthdr *h, const u8 *data)
{
	struct source *s = (struct source *)user;

	u64 t = (u64)h->ts.tv_sec * NSEC + h->ts.tv_usec;

	s->got++;
	if (t > stop_ns && t > s->newest)
		s->newest = t;
	if (t >= start_ns && t <= stop_ns)
		source_add_packet(s, h, data);
}

/*
 * The kernel counts a packet when it puts it into a block, and hands the block over later. If
 * its counter equals the packets read, every later packet is newer than this check.
 */
static void look(struct source *s, u64 now)
{
	struct pcap_stat st;
	u64 t;

	if (pcap_stats(s->pcap, &st))
		errx(1, "%s: %s", s->name, pcap_geterr(s->pcap));
	s->drops = st.ps_drop;
	t = now - ((u32)s->got == st.ps_recv - st.ps_drop ? REORDER : LIVE_LAG);
	if (t > s->clear)
		s->clear = t;
}

void live_open(void)
{
	int ring = ring_bytes();
	struct source *s;

	for_each_source(s)
		open_live(s, ring);
}

/* True if more can be read without waiting. */
static bool drain(void)
{
	const int batch = 16384;
	struct source *s;
	bool more = false;
	/* one read of the clock for all: in the lab each one takes virtual time */
	u64 now = clock_ns(CLOCK_REALTIME);
	int r;

	for_each_source(s) {
		r = pcap_dispatch(s->pcap, batch, live_packet, (u8 *)s);
		if (r < 0)
			errx(1, "%s: after %llu packets: %s", s->name, s->packets,
			     pcap_geterr(s->pcap));
		if (r >= batch)
			more = true;
		else
			look(s, now);
	}
	sources_merge(NULL);
	return more;
}

/* True if all packets from before the stop have been read. */
static bool all_here(void)
{
	struct source *s;

	for_each_source(s) {
		if (source_complete(s) <= stop_ns)
			return false;
	}
	return true;
}

/*
 * Sleeps until the kernel hands over a block of packets. Edge-triggered, so that it cannot
 * spin.
 */
void live_run(struct hop *h)
{
	int ep = epoll_create1(EPOLL_CLOEXEC), sig = open_signals(), timer = open_timer(), i, n;
	bool over = false, more = false;
	struct signalfd_siginfo si;
	struct epoll_event ev[8];
	struct source *s;
	u64 ticks;

	if (ep < 0)
		err(1, "epoll_create");
	watch(ep, EPOLL_CTL_ADD, sig, EPOLLIN, &sig);
	watch(ep, EPOLL_CTL_ADD, timer, EPOLLIN, &timer);
	for_each_source(s)
		watch(ep, EPOLL_CTL_ADD, pcap_get_selectable_fd(s->pcap), EPOLLIN | EPOLLET, s);
	if (opt.duration)
		set_timer(timer, 0, opt.duration);
	start_ns = clock_ns(CLOCK_REALTIME);
	fprintf(stderr, "ready\n");

	while (!over) {
		bool sig_hit = false, timer_hit = false;

		n = epoll_wait(ep, ev, ARRAY_SIZE(ev), more ? 0 : -1);
		if (n < 0 && errno != EINTR)
			err(1, "epoll_wait");
		for (i = 0; i < n; i++) {
			if (ev[i].data.ptr == &sig)
				sig_hit = read(sig, &si, sizeof(si)) > 0;
			else if (ev[i].data.ptr == &timer)
				timer_hit = read(timer, &ticks, sizeof(ticks)) > 0;
		}
		more = drain();
		if (stop_ns == NEVER && (sig_hit || timer_hit)) {
			stop_ns = clock_ns(CLOCK_REALTIME);
		} else if (stop_ns != NEVER) {
			/* wait for the blocks that the kernel is still filling */
			over = sig_hit || all_here() ||
			       clock_ns(CLOCK_REALTIME) > stop_ns + LIVE_LAG;
		}
		if (stop_ns != NEVER && !over)
			set_timer(timer, 0, TIMEOUT_MS * 1000000ULL);
	}
	for_each_source(s)
		s->eof = true;
	sources_merge(NULL);
	account_time(h, stop_ns);
}
