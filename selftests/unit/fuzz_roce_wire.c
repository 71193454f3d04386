// SPDX-License-Identifier: GPL-2.0
/*
 * Fuzzes roce/roce_wire.h: any bytes as an IP header and what follows it. The result of
 * parsing agrees with a second parser; nothing beyond the end is read, which the sanitizer
 * checks; a CNP built in answer is parsed as that CNP.
 */
#include "oracle.h"
#include "crc32_oracle.h"
#include "roce_wire.h"

/* A big-endian number of @n bytes */
static u64 number(const u8 *b, int n)
{
	u64 x = 0;

	while (n--)
		x = x * 256 + *b++;
	return x;
}

/* Only the bytes that the code under test may read: the sanitizer sees a byte too many. */
static u8 *copy(const u8 *data, size_t size)
{
	u8 *bytes = malloc(size ? size : 1);

	memcpy(bytes, data, size);
	return bytes;
}

static void answer(u8 *packet, unsigned int ip_bytes, u32 qp)
{
	u8 *udp = packet + ip_bytes, *bth = udp + ROCE_UDP_BYTES;
	u8 *icrc = bth + ROCE_BTH_BYTES + ROCE_CNP_RESERVED;
	struct roce_packet p;
	u32 crc;

	udp[2] = ROCE_UDP_PORT >> 8;
	udp[3] = ROCE_UDP_PORT & 0xff;
	udp[4] = 0;
	udp[5] = ROCE_CNP_UDP_BYTES;
	roce_cnp_write(bth, qp);
	crc = crc32_le(roce_icrc_headers(packet, ip_bytes), bth + ROCE_BTH_BYTES,
		       ROCE_CNP_RESERVED);
	roce_icrc_write(icrc, crc);
	expect(roce_read(&p, udp, ROCE_CNP_UDP_BYTES), "a CNP of our own");
	expect(p.bth.opcode == ROCE_OPCODE_CNP && p.bth.dest_qp == qp && p.bth.becn &&
	       !p.bth.psn && !p.bth.tver && !p.source_qp, "%u", p.bth.dest_qp);
	/* after any router, too */
	packet[1] ^= ip_bytes == 20 ? 0xff : 0;
	packet[ip_bytes == 20 ? 8 : 7] ^= 0x55;
	crc = crc32_le(roce_icrc_headers(packet, ip_bytes), bth + ROCE_BTH_BYTES,
		       ROCE_CNP_RESERVED);
	expect(roce_icrc_ok(icrc, crc), "ICRC");
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	unsigned int ip_bytes = size && data[0] & 1 ? 20 : 40;
	struct roce_packet p;
	u8 *udp, *packet;
	bool ud, want;
	size_t left;

	if (size < ip_bytes + 1)
		return 0;
	data++;
	left = size - 1 - ip_bytes;
	udp = copy(data + ip_bytes, left < ROCE_READ_BYTES ? left : ROCE_READ_BYTES);
	ud = left > 8 && udp[8] / 32 == 3;
	want = left >= 24 && number(udp + 2, 2) == 4791 && number(udp + 4, 2) <= left &&
	       number(udp + 4, 2) >= (ud ? 32 : 24);
	expect(roce_read(&p, udp, (u32)left) == want, "%zu bytes", left);
	if (want) {
		u64 transport = number(udp + 8, 8);

		expect(p.bth.opcode == transport >> 56, "%x", p.bth.opcode);
		expect(p.bth.tver == (transport >> 48 & 15), "%x", p.bth.tver);
		expect(p.bth.becn == (transport >> 30 & 1), "%d", p.bth.becn);
		expect(p.bth.dest_qp == (transport & 0xffffff), "%x", p.bth.dest_qp);
		expect(p.bth.psn == number(udp + 17, 3), "%x", p.bth.psn);
		expect(p.source_qp == (ud ? number(udp + 25, 3) : 0), "%x", p.source_qp);
		expect(p.sport == number(udp, 2), "%u", p.sport);
		expect(p.ib_bytes == number(udp + 4, 2) - 8, "%u", p.ib_bytes);
		expect(p.ib_bytes >= ROCE_BTH_BYTES + ROCE_ICRC_BYTES && p.ib_bytes + 8U <= left,
		       "%u of %zu", p.ib_bytes, left);
		packet = calloc(1, ip_bytes + ROCE_CNP_UDP_BYTES);
		memcpy(packet, data, ip_bytes);
		answer(packet, ip_bytes, p.bth.dest_qp);
		free(packet);
	}
	free(udp);
	return 0;
}
