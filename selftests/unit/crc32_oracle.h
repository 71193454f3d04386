/* SPDX-License-Identifier: GPL-2.0 */
/* The reflected CRC-32, bit by bit, with the result of the kernel's crc32_le() */
#ifndef _LOWQ_CRC32_ORACLE_H
#define _LOWQ_CRC32_ORACLE_H

#include "oracle.h"

static u32 crc32_le(u32 crc, const void *p, size_t len)
{
	const u8 *b = p;
	int k;

	for (; len; len--) {
		crc ^= *b++;
		for (k = 0; k < 8; k++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	}
	return crc;
}

#endif /* _LOWQ_CRC32_ORACLE_H */
