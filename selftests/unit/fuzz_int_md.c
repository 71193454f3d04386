// SPDX-License-Identifier: GPL-2.0
/*
 * Fuzzes include/int_md.h and what hpccpp_model.h makes of it: any two stacks of metadata, of nodes
 * that lie, as the samples of a flow. Nothing beyond a stack is read, and no value leaves its
 * range.
 */
#include "hpccpp_oracle.h"
#include "int_md.h"

static bool take(struct fuzz_input *in, struct int_msg *m)
{
	unsigned int words = MD_FIXED_WORDS + (unsigned int)fuzz_take(in, 1) % 250, i;
	u32 cell = 1 + (u32)fold(fuzz_take(in, 2), 65534), mbps = (u32)fuzz_take(in, 3);
	unsigned int end = MD_SHIM_LEN + words * 4;
	/* exactly that length, so that the sanitizer sees a byte too many */
	u8 *bytes = malloc(end);
	bool valid;

	memset(m, 0, sizeof(*m));
	md_build(bytes, (u8)fuzz_take(in, 1));
	bytes[1] = words;
	bytes[4] |= fuzz_take(in, 1) & 0xf;
	for (i = MD_HEADER_LEN; i < end; i++)
		bytes[i] = (u8)fuzz_take(in, 1);
	valid = md_valid(bytes);
	expect(valid, "%u words", words);
	md_read(m, bytes, md_taken(bytes), cell, fp_min(mbps, 1600000));
	expect(m->room <= INT_HOPS_MAX, "%u", m->room);
	expect(m->room == 0 || m->room == (words - MD_FIXED_WORDS) / MD_WORDS, "%u of %u", m->room,
	       words);
	expect(m->path_id >> 31, "%x", m->path_id);
	free(bytes);
	return valid;
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	fuzz_samples(data, size, take);
	return 0;
}
