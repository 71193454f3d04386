// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <limits.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "transfer.h"

#ifndef SOCK_RCVBUF_LOCK
#define SOCK_RCVBUF_LOCK 2
#endif

/* Wake-ups: fewer with larger values, and with larger RX_LOWAT_MAX and TX_LOWAT_MAX. */
#define LOWAT_MIN	(64U << 10)
#define SHARED_BYTES	(131072U << 10)
#define RX_UNTUNED	(32U << 10)	/* fits into a new socket's receive buffer */
#define TX_UNTUNED	(64U << 10)	/* below this about one sendmsg() is enough */
#define ONE_SEGMENT	1400U

#define TX_VECS		64
static char tx_data[128 << 10];		/* zeros; the vector points to it many times */

unsigned int connections_open, connections_planned;

/* One connection's share of SHARED_BYTES. */
static u32 shared(u32 max)
{
	unsigned int n = connections_open;
	u32 part;

	if (n < connections_planned)
		n = connections_planned;
	part = SHARED_BYTES / (n ? n : 1);
	if (part < LOWAT_MIN)
		part = LOWAT_MIN;
	return part < max ? part : max;
}

static u32 min_u64(u64 a, u32 b)
{
	return a < b ? a : b;
}

void rx_lowat(int fd, struct rx *rx, u32 bytes)
{
	if (bytes != rx->lowat && !set_int(fd, SOL_SOCKET, SO_RCVLOWAT, bytes))
		rx->lowat = bytes;
}

/*
 * The kernel sizes the receive buffer by the bytes read per round trip. A reader that sleeps
 * through many round trips misleads it, and the window would limit the sender. So open the window
 * at once as far as net.ipv4.tcp_rmem allows: setting SO_RCVLOWAT enlarges the buffer.
 */
static void rx_open(int fd, struct rx *rx, const struct config *cfg)
{
	int buf;

	if (!cfg->rcvbuf)
		rx_lowat(fd, rx, INT_MAX / 2);
	buf = get_int(fd, SOL_SOCKET, SO_RCVBUF);
	rx->room = buf / 8;
	if (buf < 0 || rx->room < RX_UNTUNED)
		rx->room = RX_UNTUNED;
}

/*
 * Keep the low-water mark well below the size of the receive buffer, or the window would close
 * while the reader sleeps.
 */
void rx_expect(int fd, struct rx *rx, u64 n, const struct config *cfg)
{
	u32 want = min_u64(n, shared(RX_LOWAT_MAX));

	rx->left = n;
	if (want > RX_UNTUNED && !rx->room)
		rx_open(fd, rx, cfg);
	if (want > RX_UNTUNED && want > rx->room)
		want = rx->room;
	if (want > ONE_SEGMENT || rx->lowat > want)
		rx_lowat(fd, rx, want);
}

int rx_drain(int fd, struct rx *rx)
{
	size_t len;
	ssize_t n;

	do {
		len = min_u64(rx->left, 1U << 30);
		n = recv(fd, NULL, len, MSG_TRUNC | MSG_DONTWAIT);
		if (n < 0)
			return errno == EAGAIN || errno == EINTR ? BLOCKED : BROKEN;
		if (!n)
			return CLOSED;
		rx->left -= n;
	} while (rx->left && (size_t)n == len);

	if (!rx->left)
		return DONE;
	if (rx->left < rx->lowat)
		rx_lowat(fd, rx, rx->left);
	else if (rx->lowat / 2 > shared(RX_LOWAT_MAX))
		rx_lowat(fd, rx, shared(RX_LOWAT_MAX));
	return BLOCKED;
}

/*
 * A large transfer needs few wake-ups if much unsent data is queued: enlarge the send buffer to
 * hold it. SO_SNDBUF disables the kernel's autotuning, so it is enabled again where the kernel
 * could grow the buffer further.
 */
void tx_tune(int fd, struct tx *tx, const struct config *cfg, struct netns *ns)
{
	const struct send_buffer *b;
	u32 buf;

	if (tx->lowat || tx->left <= TX_UNTUNED)
		return;
	b = netns_send_buffer(ns);
	tx->lowat = shared(TX_LOWAT_MAX);
	set_int(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, tx->lowat);
	buf = min_u64(b->most, 4 * tx->lowat);
	if (cfg->sndbuf || !b->fresh || buf <= b->fresh)
		return;
	set_buf(fd, SO_SNDBUFFORCE, SO_SNDBUF, buf / 2);
	if (buf < b->autotuned)
		set_int(fd, SOL_SOCKET, SO_BUF_LOCK, cfg->rcvbuf ? SOCK_RCVBUF_LOCK : 0);
}

int tx_pump(int fd, struct tx *tx, const struct wire *head, u8 *head_left)
{
	struct iovec vec[TX_VECS + 1];
	struct msghdr msg = { .msg_iov = vec };
	u64 body;
	size_t total, h;
	ssize_t n;

	do {
		h = head_left ? *head_left : 0;
		total = h;
		msg.msg_iovlen = 0;
		if (h)
			vec[msg.msg_iovlen++] = (struct iovec) {
				.iov_base = (char *)head + sizeof(*head) - h,
				.iov_len = h,
			};
		for (body = tx->left; body && msg.msg_iovlen < ARRAY_SIZE(vec);) {
			size_t part = min_u64(body, sizeof(tx_data));

			vec[msg.msg_iovlen++] = (struct iovec) {
				.iov_base = tx_data,
				.iov_len = part,
			};
			body -= part;
			total += part;
		}
		n = sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0)
			return errno == EAGAIN || errno == EINTR ? BLOCKED : BROKEN;
		if (h) {
			size_t took = (size_t)n < h ? (size_t)n : h;

			*head_left -= took;
			tx->left -= n - took;
		} else {
			tx->left -= n;
		}
	} while (tx->left && (size_t)n == total);

	if (!tx->left && !(head_left && *head_left))
		return DONE;
	if (tx->lowat / 2 > shared(TX_LOWAT_MAX)) {
		tx->lowat = shared(TX_LOWAT_MAX);
		set_int(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, tx->lowat);
	}
	return BLOCKED;
}
