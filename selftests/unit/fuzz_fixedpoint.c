// SPDX-License-Identifier: GPL-2.0
/*
 * Fuzzes include/fixedpoint.h: the input is a list of operations, one byte that
 * chooses a property of fixedpoint_oracle.h (or steps of a running average or
 * carry), then its operands.
 */
#include "fixedpoint_oracle.h"

static const struct check * const checks[] = {
	&fp_min_exact,
	&fp_max_exact,
	&fp_add32_exact,
	&fp_add_exact,
	&fp_add_monotone,
	&fp_sub_exact,
	&fp_sub_monotone,
	&fp_mul_wide_exact,
	&fp_mul_shr_exact,
	&fp_mul_shr_monotone,
	&fp_mul_div_exact,
	&fp_mul_div_at_limit,
	&fp_mul_div_monotone,
	&fp_fraction_exact,
	&fp_fraction_monotone,
	&fp_ewma_step,
	&fp_ewma_monotone,
	&fp_carry_exact,
};

/* The operations after the checks */
enum {
	EWMA_START = ARRAY_SIZE(checks),
	EWMA_STEPS,
	CARRY,
	OPERATIONS,
};

#define CARRY_Q	30

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct fuzz_input in = { data, size };
	struct ewma_pair ewma = ewma_pair_init(0, 4);
	u128 added = 0, taken = 0;
	u32 frac = 0;

	while (in.size) {
		unsigned int op = fuzz_take(&in, 1) % OPERATIONS;
		u64 v[4], x;
		int k, times;

		switch (op) {
		case EWMA_START:
			x = fuzz_take(&in, 4);
			ewma = ewma_pair_init(x, fuzz_take(&in, 1) % 17);
			break;
		case EWMA_STEPS:
			x = fuzz_take(&in, 4);
			for (times = fuzz_take(&in, 1) % 32; times >= 0; times--)
				ewma_pair_step(&ewma, x);
			break;
		case CARRY:
			x = fp_min(fuzz_take(&in, 8), U64_MAX - (FP_ONE(CARRY_Q) - 1));
			added += x;
			taken += fp_carry(&frac, x, CARRY_Q);
			expect((taken << CARRY_Q) + frac == added, "after %lu", x);
			break;
		default:
			for (k = 0; k < 4; k++) {
				u64 max = checks[op]->max[k];

				v[k] = max ? fold(fuzz_take(&in, 8), max) : 0;
			}
			checks[op]->holds(v);
		}
	}
	return 0;
}
