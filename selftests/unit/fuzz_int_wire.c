// SPDX-License-Identifier: GPL-2.0
/*
 * Fuzzes include/int_wire.h: any bytes as a message. An accepted message is built again from
 * its fields and must be the same; nothing beyond its end is read, which the sanitizer checks.
 */
#include "int_wire_oracle.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	u8 *bytes = malloc(size ? size : 1), again[INT_MSG_LEN_MAX];
	struct int_msg m, back;

	/* exactly that length, so that the sanitizer sees a byte too many */
	memcpy(bytes, data, size);
	if (int_parse(&m, bytes, (u32)size)) {
		expect(m.room <= INT_HOPS_MAX && m.nhop <= 15, "%u %u", m.room, m.nhop);
		expect(size == int_length(m.room), "%zu", size);
		int_build(again, &m);
		expect(int_parse(&back, again, int_length(m.room)), "room %u", m.room);
		int_msg_expect_equal(&m, &back);
		/* the head except for a reserved byte, pathID and nHop are unchanged */
		expect(!memcmp(bytes, again, 7), "head");
		expect(!memcmp(bytes + 8, again + 8, INT_BASE_OFFSET + 2 - 8), "head");
	}
	free(bytes);
	return 0;
}
