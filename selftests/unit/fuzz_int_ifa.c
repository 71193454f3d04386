// SPDX-License-Identifier: GPL-2.0
/*
 * Fuzzes include/int_ifa.h and what hpccpp_model.h makes of it: any two stacks of metadata, of
 * nodes that lie, as the samples of a flow. Nothing beyond a stack is read, and no value leaves
 * its range.
 */
#include "hpccpp_oracle.h"
#include "int_ifa.h"

static bool take(struct fuzz_input *in, struct int_msg *m)
{
	unsigned int words = (unsigned int)fuzz_take(in, 1);
	unsigned int taken = (unsigned int)fuzz_take(in, 1), i;
	unsigned int end = IFA_MD_HEADER_LEN + words * 4;
	u32 speeds[IFA_CODES], cell = 1 + (u32)fold(fuzz_take(in, 2), 65534);
	/* exactly that length, so that the sanitizer sees a byte too many */
	u8 *bytes = malloc(end);

	memset(m, 0, sizeof(*m));
	for (i = 0; i < end; i++)
		bytes[i] = (u8)fuzz_take(in, 1);
	bytes[3] = words;
	/* layouts that are known, mostly */
	for (i = IFA_MD_HEADER_LEN; i + IFA_MD_LEN <= end && taken & 1; i += IFA_MD_LEN)
		bytes[i] = 0x10 | (bytes[i] & 0xf);
	for (i = 0; i < IFA_CODES; i++)
		speeds[i] = taken & 0x10 ? (u32)fuzz_take(in, 4) : ifa_speed_mbps(i);
	ifa_read(m, bytes, taken & 0xf, cell, speeds);
	expect(m->room <= INT_HOPS_MAX && m->nhop <= 255 / IFA_MD_WORDS, "%u %u", m->room, m->nhop);
	expect(m->room == 0 || m->room == words / IFA_MD_WORDS, "%u of %u", m->room, words);
	expect(m->path_id >> 31, "%x", m->path_id);
	for (i = 0; i < m->room; i++)
		expect(m->hop[i].ts_bits == 40 && m->hop[i].tx_bits == 32 &&
		       m->hop[i].mbps <= IFA_MBPS_MAX, "%u", i);
	free(bytes);
	return true;
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	fuzz_samples(data, size, take);
	return 0;
}
