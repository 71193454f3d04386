/* SPDX-License-Identifier: GPL-2.0 */
/*
 * RoCEv2's wire format, the part that congestion management needs: Base Transport
 * Header, Congestion Notification Packet, invariant CRC (InfiniBand Architecture
 * Specification, volume 1, 9.2 and annex A17).
 *
 *	IP | UDP to 4791 | BTH 12 | further headers and payload | ICRC 4
 *	CNP:		   BTH 12 | 16 reserved bytes, 0	| ICRC 4
 *
 * All functions work on bytes: they assume no alignment and no byte order. In user
 * space, the file that includes this one provides crc32_le().
 */
#ifndef _LOWQ_ROCE_WIRE_H
#define _LOWQ_ROCE_WIRE_H

#ifdef __KERNEL__
#include <linux/crc32.h>
#include <linux/string.h>
#include <linux/types.h>
#else
#include <string.h>
#endif

#define ROCE_UDP_PORT		4791
#define ROCE_UDP_BYTES		8
#define ROCE_BTH_BYTES		12
#define ROCE_DETH_BYTES		8
#define ROCE_ICRC_BYTES		4
#define ROCE_CNP_RESERVED	16
/* a CNP's UDP datagram, including the UDP header */
#define ROCE_CNP_UDP_BYTES	(ROCE_UDP_BYTES + ROCE_BTH_BYTES + ROCE_CNP_RESERVED + \
				 ROCE_ICRC_BYTES)

#define ROCE_OPCODE_CNP		0x81
/* the upper three bits of an opcode: the transport */
#define ROCE_TRANSPORT(opcode)	((opcode) >> 5)
#define ROCE_RC			0
#define ROCE_UC			1
#define ROCE_UD			3
/* the lower five: the operation; 13 to 18 are sent by the responder */
#define ROCE_OPERATION(opcode)	((opcode) & 0x1f)
#define ROCE_READ_FIRST		13
#define ROCE_READ_ONLY		16
#define ROCE_ACKNOWLEDGE	17
#define ROCE_ATOMIC_ACK		18
#define ROCE_READ_REQUEST	12
#define ROCE_COMPARE_SWAP	19
#define ROCE_FETCH_ADD		20

/**
 * struct roce_bth - fields of a BTH
 * @dest_qp:	number of the destination queue pair, 24 bits
 * @psn:	packet sequence number, 24 bits
 * @opcode:	transport and operation
 * @tver:	transport header version, 0
 * @becn:	backward explicit congestion notification
 */
struct roce_bth {
	u32 dest_qp;
	u32 psn;
	u8 opcode;
	u8 tver;
	bool becn;
};

static inline u16 roce_get16(const u8 *b)
{
	return b[0] << 8 | b[1];
}

static inline u32 roce_get24(const u8 *b)
{
	return (u32)b[0] << 16 | (u32)b[1] << 8 | b[2];
}

static inline void roce_bth_read(struct roce_bth *bth, const u8 b[ROCE_BTH_BYTES])
{
	bth->opcode = b[0];
	bth->tver = b[1] & 0xf;
	bth->becn = b[4] & 0x40;
	bth->dest_qp = roce_get24(b + 5);
	bth->psn = roce_get24(b + 9);
}

/**
 * struct roce_packet - fields of a RoCEv2 packet
 * @bth:	transport header
 * @source_qp:	UD: the sender's queue pair, from the datagram header; else 0
 * @sport:	UDP source port
 * @ib_bytes:	from the BTH to the end of the ICRC
 */
struct roce_packet {
	struct roce_bth bth;
	u32 source_qp;
	u16 sport;
	u16 ib_bytes;
};

/* roce_read() reads no more bytes than this */
#define ROCE_READ_BYTES		(ROCE_UDP_BYTES + ROCE_BTH_BYTES + ROCE_DETH_BYTES)

/*
 * Is the datagram that begins with the UDP header @udp a complete RoCEv2 packet? If so,
 * fills in *@p. @left: bytes received of it; @udp holds those, or the first
 * ROCE_READ_BYTES.
 */
static inline bool roce_read(struct roce_packet *p, const u8 *udp, unsigned int left)
{
	const u8 *bth = udp + ROCE_UDP_BYTES;
	unsigned int len;

	if (left < ROCE_UDP_BYTES + ROCE_BTH_BYTES + ROCE_ICRC_BYTES ||
	    roce_get16(udp + 2) != ROCE_UDP_PORT)
		return false;
	len = roce_get16(udp + 4);
	if (len > left || len < ROCE_UDP_BYTES + ROCE_BTH_BYTES + ROCE_ICRC_BYTES)
		return false;
	roce_bth_read(&p->bth, bth);
	p->source_qp = 0;
	if (ROCE_TRANSPORT(p->bth.opcode) == ROCE_UD) {
		if (len < ROCE_READ_BYTES + ROCE_ICRC_BYTES)
			return false;
		p->source_qp = roce_get24(bth + ROCE_BTH_BYTES + 5);
	}
	p->sport = roce_get16(udp);
	p->ib_bytes = len - ROCE_UDP_BYTES;
	return true;
}

/* Is it sent by the responder to the requester? Those have their own sequence numbers. */
static inline bool roce_is_response(u8 opcode)
{
	return ROCE_TRANSPORT(opcode) == ROCE_RC &&
	       ROCE_OPERATION(opcode) >= ROCE_READ_FIRST &&
	       ROCE_OPERATION(opcode) <= ROCE_ATOMIC_ACK;
}

/* How far PSN @a, of 24 bits, is after PSN @b; negative: before */
static inline int roce_psn_after(u32 a, u32 b)
{
	return (int)((a - b) << 8) >> 8;
}

/* Has it no payload? ACKs and requests for data have headers only. */
static inline bool roce_is_bare(u8 opcode)
{
	u8 operation = ROCE_OPERATION(opcode);

	return ROCE_TRANSPORT(opcode) == ROCE_RC &&
	       (operation == ROCE_ACKNOWLEDGE || operation == ROCE_ATOMIC_ACK ||
		operation == ROCE_READ_REQUEST || operation == ROCE_COMPARE_SWAP ||
		operation == ROCE_FETCH_ADD);
}

/* Is it the first response of a READ? */
static inline bool roce_starts_read(u8 opcode)
{
	u8 operation = ROCE_OPERATION(opcode);

	return ROCE_TRANSPORT(opcode) == ROCE_RC &&
	       (operation == ROCE_READ_FIRST || operation == ROCE_READ_ONLY);
}

/* Writes BTH and reserved bytes of a CNP for @qp. The caller adds the ICRC. */
static inline void roce_cnp_write(u8 b[ROCE_BTH_BYTES + ROCE_CNP_RESERVED], u32 qp)
{
	memset(b, 0, ROCE_BTH_BYTES + ROCE_CNP_RESERVED);
	b[0] = ROCE_OPCODE_CNP;
	b[2] = 0xff;	/* the default partition */
	b[3] = 0xff;
	b[4] = 0x40;	/* BECN */
	b[5] = qp >> 16 & 0xff;
	b[6] = qp >> 8 & 0xff;
	b[7] = qp & 0xff;
}

/* CRC of eight bytes 0xff, which take the place of InfiniBand's link header */
#define ROCE_ICRC_SEED		0xdebb20e3

/*
 * CRC of the headers, from the IP header to the end of the BTH. @ip_bytes: length of
 * the IP header, 20 for IPv4, 40 for IPv6. Fields that routers change are replaced by
 * ones: TOS, TTL, flow label, checksums, and the byte with FECN and BECN.
 */
static inline u32 roce_icrc_headers(const u8 *ip, unsigned int ip_bytes)
{
	u8 h[40 + ROCE_UDP_BYTES + ROCE_BTH_BYTES];
	unsigned int all = ip_bytes + ROCE_UDP_BYTES + ROCE_BTH_BYTES;

	memcpy(h, ip, all);
	if (ip_bytes == 20) {
		h[1] = 0xff;
		h[8] = 0xff;
		h[10] = 0xff;
		h[11] = 0xff;
	} else {
		h[0] |= 0x0f;
		h[1] = 0xff;
		h[2] = 0xff;
		h[3] = 0xff;
		h[7] = 0xff;
	}
	h[ip_bytes + 6] = 0xff;
	h[ip_bytes + 7] = 0xff;
	h[ip_bytes + ROCE_UDP_BYTES + 4] = 0xff;
	return crc32_le(ROCE_ICRC_SEED, h, all);
}

/* Writes the ICRC; @crc: of all bytes before it */
static inline void roce_icrc_write(u8 b[ROCE_ICRC_BYTES], u32 crc)
{
	crc = ~crc;
	b[0] = crc & 0xff;
	b[1] = crc >> 8 & 0xff;
	b[2] = crc >> 16 & 0xff;
	b[3] = crc >> 24;
}

static inline bool roce_icrc_ok(const u8 b[ROCE_ICRC_BYTES], u32 crc)
{
	u8 want[ROCE_ICRC_BYTES];

	roce_icrc_write(want, crc);
	return !memcmp(b, want, ROCE_ICRC_BYTES);
}

#endif /* _LOWQ_ROCE_WIRE_H */
