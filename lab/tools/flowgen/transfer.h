/* SPDX-License-Identifier: GPL-2.0 */
/* Transfers meaningless bytes with few system calls and wake-ups. */
#ifndef FLOWGEN_TRANSFER_H
#define FLOWGEN_TRANSFER_H

#include "netns.h"

#define TX_LOWAT_MAX	(4096U << 10)
#define RX_LOWAT_MAX	(1024U << 10)

/*
 * A request, on the wire: big endian. PULL: the server answers with size bytes. PUSH: size
 * bytes follow the request and the server answers with one byte.
 */
struct wire {
	u32 magic;
	u8 version;
	u8 op;
	u8 flags;
	u8 zero;
	u64 size;		/* 1 to SIZE_LIMIT, or UNLIMITED */
};

#define WIRE_MAGIC	0x4c514647	/* LQFG */
#define WIRE_VERSION	1
#define WIRE_LAST	1		/* flag: no request follows on this connection */
#define UNLIMITED	(~0ULL)		/* until the client closes */

enum { OP_PULL = 1, OP_PUSH = 2 };

/* All connections together queue about 128 MiB. These are the open and the expected ones. */
extern unsigned int connections_open, connections_planned;

/* State of a transfer. BROKEN leaves the reason in errno. */
enum { BROKEN = -2, CLOSED = -1, BLOCKED = 0, DONE = 1 };

/* Receiving: bytes are discarded. */
struct rx {
	u64 left;
	u32 lowat;		/* SO_RCVLOWAT now set on the socket */
	u32 room;		/* an eighth of the receive buffer; 0: buffer not enlarged */
};

/* Expects @n bytes. */
void rx_expect(int fd, struct rx *rx, u64 n, const struct config *cfg);
/* Reads all that is queued. */
int rx_drain(int fd, struct rx *rx);
/* @bytes: wake up once this many are queued */
void rx_lowat(int fd, struct rx *rx, u32 bytes);

/* Sending. */
struct tx {
	u64 left;
	u32 lowat;		/* TCP_NOTSENT_LOWAT, 0: not set */
};

/* Before the first byte of tx->left. */
void tx_tune(int fd, struct tx *tx, const struct config *cfg, struct netns *ns);
/* Sends what fits. @head: the last *@head_left bytes of it go first; both may be NULL */
int tx_pump(int fd, struct tx *tx, const struct wire *head, u8 *head_left);

#endif
