// SPDX-License-Identifier: GPL-2.0
/*
 * Fuzzes include/int_wire.h: any bytes as a message. What is taken is what would be
 * built again; nothing beyond the end is read (the sanitizer sees to that).
 */
#include "int_wire_oracle.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	u8 *bytes = malloc(size ? size : 1), again[INT_MSG_LEN_MAX];
	struct int_msg m, back;

	/* of that length exactly, so that a byte too many is seen */
	memcpy(bytes, data, size);
	if (int_parse(&m, bytes, (u32)size)) {
		expect(m.room <= INT_HOPS_MAX && m.nhop <= 15, "%u %u", m.room, m.nhop);
		expect(size == int_length(m.room), "%zu", size);
		int_build(again, &m);
		expect(int_parse(&back, again, int_length(m.room)), "room %u", m.room);
		int_msg_expect_equal(&m, &back);
		/* the head but for a reserved byte, pathID and nHop are as they came */
		expect(!memcmp(bytes, again, 7), "head");
		expect(!memcmp(bytes + 8, again + 8, INT_BASE_OFFSET + 2 - 8), "head");
	}
	free(bytes);
	return 0;
}
