// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of include/dctcp_model.h, in its order, against RFC 8257 in floating
 * point (dctcp_oracle.h). D6, D7, D16, D18 are the requirements in RFC 8257 that
 * a test is about:
 *
 *	D6	3.3	alpha starts at 1, averages over bytes, window by window
 *	D7	3.3	the cut is cwnd * alpha / 2
 *	D16	4.2	alpha reaches 0, is never above the scale, resolves light marking
 *	D18	6	lost ACKs: alpha stays within bounds
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "dctcp_oracle.h"

/* 1 / x in Q30 */
#define ONE_IN(x)	(DCTCP_ALPHA_ONE / (x))

/* Any state of the model, including many that it cannot reach */
static struct dctcp_model any_model(void)
{
	struct dctcp_model m;

	m.alpha = rnd_upto(DCTCP_ALPHA_ONE);
	m.acked = rnd_upto(U32_MAX);
	m.marked = rnd_upto(U32_MAX);
	m.window_end = rnd_upto(U32_MAX);
	m.cut_frac = rnd_upto(DCTCP_ALPHA_ONE - 1);
	return m;
}

/* The RFC's initial alpha is 1 (D6); the parameter may say otherwise. */
static void dctcp_model_init__alpha(void **state)
{
	u64 alphas[EXTREMES];
	int i, n = extremes(U32_MAX, alphas);

	(void)state;
	for (i = 0; i < n; i++) {
		struct dctcp_model m;

		memset(&m, 0xff, sizeof(m));
		dctcp_model_init(&m, alphas[i], 4294967295U);
		assert_int_equal(m.alpha, fp_min(alphas[i], DCTCP_ALPHA_ONE));
		assert_int_equal(m.acked, 0);
		assert_int_equal(m.marked, 0);
		assert_int_equal(m.window_end, 4294967295U);
		assert_int_equal(m.cut_frac, 0);
	}
}

static void dctcp_model_ack_holds(const u64 v[4])
{
	struct dctcp_model m = { .acked = v[0], .marked = v[1] };

	dctcp_model_ack(&m, v[2], v[3]);
	expect(m.acked == saturate((u128)v[0] + v[2], U32_MAX), "%lu + %lu -> %u", v[0], v[2],
	       m.acked);
	expect(m.marked == saturate((u128)v[1] + v[3], U32_MAX), "%lu + %lu -> %u", v[1], v[3],
	       m.marked);
}

static const struct check dctcp_model_ack_exact = {
	dctcp_model_ack_holds, { U32_MAX, U32_MAX, U32_MAX, U32_MAX }
};

static void dctcp_model_ack__table(void **state)
{
	static const u64 lines[][4] = {
		{ 0, 0, 0, 0 },
		{ 0, 0, 1460, 1460 },
		{ 1 << 30, 0, 1 << 30, 1 << 30 },
		{ U32_MAX, U32_MAX, 1, 1 },
		{ U32_MAX - 1, U32_MAX - 1, 1, 2 },
		{ U32_MAX, U32_MAX, U32_MAX, U32_MAX },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(lines); i++)
		dctcp_model_ack_holds(lines[i]);
}

static void dctcp_model_ack__random(void **state)
{
	(void)state;
	check_random(&dctcp_model_ack_exact);
}

/* Which ACK of which window has ECE? */
enum pattern {
	NO_MARKS,
	ALL_MARKS,
	EVERY_100TH,
	EVERY_1000TH,
	EVERY_10000TH,
	BURSTS,			/* twenty of two hundred */
	EVERY_OTHER,
	EVERY_OTHER_WINDOW,
	RANDOM_MARKS,
	PATTERNS
};

static bool is_marked(enum pattern pattern, u64 ack, u64 window)
{
	switch (pattern) {
	case NO_MARKS:
		return false;
	case ALL_MARKS:
		return true;
	case EVERY_100TH:
		return ack % 100 == 99;
	case EVERY_1000TH:
		return ack % 1000 == 999;
	case EVERY_10000TH:
		return ack % 10000 == 9999;
	case BURSTS:
		return ack % 200 >= 180;
	case EVERY_OTHER:
		return ack % 2;
	case EVERY_OTHER_WINDOW:
		return window % 2;
	default:
		return rnd() & 1;
	}
}

/*
 * A sender that keeps up to @window bytes in flight gets @acks ACKs, each of one or
 * two segments. If @window is 0, up to 2^30 bytes are in flight, and an ACK covers any
 * part of them.
 */
static void run_stream(struct dctcp_pair *p, enum pattern pattern, u64 window, int acks)
{
	const u64 mss = 1460;
	u64 snd_nxt = p->rfc.snd_una, windows = 0;
	int i;

	for (i = 0; i < acks; i++) {
		u64 una = p->rfc.snd_una, flight = window ? window : rnd_range(1, TCP_MAX_WINDOW);

		/* the window does not shrink below what was sent */
		snd_nxt = fp_max(snd_nxt, una + flight);
		flight = snd_nxt - una;
		una += window ? fp_min(flight, mss * rnd_range(1, 2)) : rnd_range(1, flight);
		windows += dctcp_pair_ack(p, una, is_marked(pattern, i, windows), snd_nxt);
	}
}

/* Window ends at every distance up to half of the sequence space, from any position in it. */
static void dctcp_model_window_ended__table(void **state)
{
	static const struct {
		u32 end, una;
		bool ended;
	} lines[] = {
		{ 0, 0, false },
		{ 0, 1, true },
		{ 1, 0, false },
		{ 1000, 1000, false },
		{ 1000, 1001, true },
		/* where sequence numbers wrap */
		{ U32_MAX, U32_MAX, false },
		{ U32_MAX, 0, true },
		{ 0, U32_MAX, false },
		{ U32_MAX - 1460, 1460, true },
		{ 1460, U32_MAX - 1460, false },
		/* where their sign changes */
		{ 0x7fffffff, 0x80000000, true },
		{ 0x80000000, 0x7fffffff, false },
		/* the largest distance */
		{ 0, 0x7fffffff, true },
		{ 0x7fffffff, 0, false },
		{ 0, 0x80000001, false },
		{ 0x80000001, 0, true },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(lines); i++) {
		struct dctcp_model m = { .window_end = lines[i].end };

		expect(dctcp_model_window_ended(&m, lines[i].una) == lines[i].ended,
		       "end %u, una %u", lines[i].end, lines[i].una);
	}
}

/* v[0]: a position in an unwrapped sequence space; v[1], v[2]: distances behind and ahead */
static void dctcp_model_window_ended_holds(const u64 v[4])
{
	u64 end = v[0] + FP_ONE(32), behind = end - v[1], ahead = end + v[2];
	struct dctcp_model m = { .window_end = (u32)end };

	expect(!dctcp_model_window_ended(&m, (u32)behind), "end %lu, una %lu", end, behind);
	expect(dctcp_model_window_ended(&m, (u32)ahead) == (ahead > end), "end %lu, una %lu", end,
	       ahead);
}

static const struct check dctcp_model_window_ended_exact = {
	dctcp_model_window_ended_holds, { U32_MAX, 0x7fffffff, 0x7fffffff }
};

static void dctcp_model_window_ended__extremes(void **state)
{
	(void)state;
	check_extremes(&dctcp_model_window_ended_exact);
}

static void dctcp_model_window_ended__random(void **state)
{
	(void)state;
	check_random(&dctcp_model_window_ended_exact);
}

static void dctcp_model_window__opens_the_next(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < CASES; i++) {
		struct dctcp_model m = any_model(), before = m;
		unsigned int shift = rnd_range(0, DCTCP_SHIFT_G_MAX);
		u32 nxt = rnd_upto(U32_MAX), fraction;

		fraction = dctcp_model_window(&m, shift, nxt);
		assert_int_equal(m.acked, 0);
		assert_int_equal(m.marked, 0);
		assert_int_equal(m.window_end, nxt);
		assert_int_equal(m.cut_frac, before.cut_frac);
		assert_int_equal(fraction, fp_fraction(before.marked, before.acked, 30));
		assert_true(m.alpha <= DCTCP_ALPHA_ONE);
	}
}

static void dctcp_model_window__nothing_acked(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < 1000; i++) {
		struct dctcp_model m = any_model();
		u32 alpha = m.alpha;

		m.acked = 0;
		assert_int_equal(dctcp_model_window(&m, rnd_range(1, 10), 0), 0);
		assert_int_equal(m.alpha, alpha);
	}
}

/* With Accurate ECN marks may be counted ahead of the bytes: M is 1 at most (D16). */
static void dctcp_model_window__more_marked_than_acked(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < 100000; i++) {
		struct dctcp_model m = any_model();

		m.acked = fp_max(m.acked, 1);
		m.marked = rnd_range(m.acked, U32_MAX);
		m.alpha = i % 2 ? m.alpha : DCTCP_ALPHA_ONE;
		assert_int_equal(dctcp_model_window(&m, rnd_range(0, 10), 0), DCTCP_ALPHA_ONE);
		assert_true(m.alpha <= DCTCP_ALPHA_ONE);
	}
}

/* A fully marked window keeps alpha = 1; with g = 1 alpha is M itself. */
static void dctcp_model_window__extreme_gains(void **state)
{
	unsigned int shift;

	(void)state;
	for (shift = 0; shift <= DCTCP_SHIFT_G_MAX; shift++) {
		struct dctcp_model m;
		int i;

		dctcp_model_init(&m, DCTCP_ALPHA_ONE, 0);
		for (i = 0; i < 1000; i++) {
			dctcp_model_ack(&m, U32_MAX, U32_MAX);
			dctcp_model_window(&m, shift, 0);
			assert_int_equal(m.alpha, DCTCP_ALPHA_ONE);
		}
	}
	for (shift = 0; shift < 1000; shift++) {
		struct dctcp_model m = any_model();
		u32 fraction;

		m.acked = fp_max(m.acked, 1);
		fraction = dctcp_model_window(&m, 0, 0);
		assert_int_equal(m.alpha, fraction);
	}
}

/* D6: bytes count, not ACKs: one ACK of 9000 bytes counts as much as nine of 1000. */
static void dctcp_model_window__counts_bytes(void **state)
{
	struct dctcp_pair p = dctcp_pair_init(0, 4, 0);
	int i;

	(void)state;
	dctcp_pair_ack(&p, 1, false, 18001);
	for (i = 1; i < 9; i++)
		dctcp_pair_ack(&p, p.rfc.snd_una + 1000, false, 18001);
	dctcp_pair_ack(&p, 8001 + 9000, true, 18001);
	dctcp_pair_ack(&p, 18001, false, 18001);
	assert_int_equal(p.model.acked, 18000);
	assert_int_equal(p.model.marked, 9000);
	assert_true(dctcp_model_window(&p.model, 4, 0) == DCTCP_ALPHA_ONE / 2);
	assert_int_equal(p.model.alpha, DCTCP_ALPHA_ONE / 32);
}

/* Starts at sequence number 0, and shortly before the numbers wrap or change sign */
static void run_streams(enum pattern pattern, unsigned int shift, u32 alpha)
{
	static const u64 windows[] = { 2 * 1460, 10 * 1460, 1000 * 1460, 0 };
	static const u64 starts[] = { 0, (u64)U32_MAX - 5000, (1U << 31) - 5000 };
	size_t w, s;

	for (w = 0; w < ARRAY_SIZE(windows); w++) {
		for (s = 0; s < ARRAY_SIZE(starts); s++) {
			struct dctcp_pair p = dctcp_pair_init(alpha, shift, starts[s]);

			run_stream(&p, pattern, windows[w], 2000);
			expect(s != 1 || p.rfc.snd_una > U32_MAX, "no wrap: %lu", p.rfc.snd_una);
		}
	}
}

/*
 * D6, D16: the model and the RFC get the same ACKs, and alpha is within the bound after
 * each: every pattern, gain and initial alpha, windows of 2 packets to 2^30 bytes.
 */
static void dctcp_model_window__streams(void **state)
{
	static const u32 alphas[] = { 0, 1, ONE_IN(3), DCTCP_ALPHA_ONE };
	unsigned int shift;
	int pattern;
	size_t a;

	(void)state;
	for (pattern = 0; pattern < PATTERNS; pattern++)
		for (shift = DCTCP_SHIFT_G_MIN; shift <= DCTCP_SHIFT_G_MAX; shift++)
			for (a = 0; a < ARRAY_SIZE(alphas); a++)
				run_streams(pattern, shift, alphas[a]);
}

/* The same over random windows and with changes of pattern in between */
static void dctcp_model_window__random_streams(void **state)
{
	int run, part;

	(void)state;
	for (run = 0; run < CASES / 500; run++) {
		u32 alpha = rnd_upto(DCTCP_ALPHA_ONE);
		unsigned int shift = rnd_range(DCTCP_SHIFT_G_MIN, DCTCP_SHIFT_G_MAX);
		struct dctcp_pair p = dctcp_pair_init(alpha, shift, rnd_upto(U32_MAX));

		for (part = 0; part < 20; part++) {
			enum pattern pattern = rnd() % PATTERNS;
			u64 window = rnd_upto(TCP_MAX_WINDOW);

			run_stream(&p, pattern, window, rnd_range(1, 200));
		}
	}
}

/* The marks in a window of @acked bytes that move the model furthest from the RFC, up or down */
static u32 worst_marks(const struct dctcp_model *m, long double rfc, unsigned int shift,
		       u32 acked, long double sign)
{
	long double furthest = -LDBL_MAX;
	u32 any = rnd_upto(acked);
	u32 tries[] = {
		0, 1, any, acked >> (any & 31),
		/* as much as alpha says */
		fp_mul_shr(acked, m->alpha, DCTCP_ALPHA_Q),
		/* about 2^-shift, and what is 2^shift units after a shift, and less */
		acked >> shift,
		(u64)acked << (2 * shift) >> DCTCP_ALPHA_Q,
		fp_sub((u64)acked << (2 * shift) >> DCTCP_ALPHA_Q, 1),
	};
	u32 worst = 0;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(tries); i++) {
		long double d = (long double)tries[i] / acked - rfc;
		struct dctcp_model test = *m;

		dctcp_model_ack(&test, acked, tries[i]);
		dctcp_model_window(&test, shift, 0);
		d = rfc + ldexpl(d, -(int)shift);
		d = sign * (test.alpha - d * DCTCP_ALPHA_ONE);
		if (d > furthest) {
			furthest = d;
			worst = tries[i];
		}
	}
	return worst;
}

/* D16: an adversary chooses each window's marks to move the model away from the RFC */
static void dctcp_model_window__adversarial_marks(void **state)
{
	unsigned int shift;
	int run, i;

	(void)state;
	for (shift = DCTCP_SHIFT_G_MIN; shift <= DCTCP_SHIFT_G_MAX; shift++) {
		for (run = 0; run < 4; run++) {
			long double sign = run & 1 ? 1 : -1, rfc = run & 2 ? 1 : 0;
			struct dctcp_model m;

			dctcp_model_init(&m, run & 2 ? DCTCP_ALPHA_ONE : 0, 0);
			for (i = 0; i < CASES / 100; i++) {
				u32 acked = rnd_range(1, TCP_MAX_WINDOW);
				u32 marked = worst_marks(&m, rfc, shift, acked, sign);

				dctcp_model_ack(&m, acked, marked);
				dctcp_model_window(&m, shift, 0);
				rfc += ldexpl((long double)marked / acked - rfc, -(int)shift);
				dctcp_expect_alpha(m.alpha, rfc, shift);
			}
		}
	}
}

/* D16: a bounded number of windows without marks takes alpha to exactly 0. */
static void dctcp_model_window__reaches_zero(void **state)
{
	static const u32 alphas[] = { DCTCP_ALPHA_ONE, DCTCP_ALPHA_ONE - 1, ONE_IN(2), 1025,
				      1024, 1023, 17, 16, 15, 1 };
	unsigned int shift;
	size_t a;

	(void)state;
	for (shift = DCTCP_SHIFT_G_MIN; shift <= DCTCP_SHIFT_G_MAX; shift++) {
		for (a = 0; a < ARRAY_SIZE(alphas); a++) {
			u64 windows = 0, most = dctcp_windows_to_zero(shift);
			struct dctcp_model m;

			dctcp_model_init(&m, alphas[a], 0);
			for (; m.alpha && windows <= most; windows++) {
				dctcp_model_ack(&m, 14600, 0);
				dctcp_model_window(&m, shift, 0);
			}
			expect(!m.alpha, "shift %u: %u left of %u after %lu windows", shift,
			       m.alpha, alphas[a], windows);
			dctcp_model_ack(&m, 14600, 0);
			dctcp_model_window(&m, shift, 0);
			assert_int_equal(m.alpha, 0);
		}
	}
}

/* 1 / @one_in of all bytes are marked for a long time; @alpha: Q30, at the start */
static void follow(u32 one_in, u32 alpha)
{
	u32 marked = 1460, acked = marked * one_in;
	u32 mainline = alpha >> (DCTCP_ALPHA_Q - 10);
	unsigned int shift;
	u64 i;

	for (i = 0; i < dctcp_windows_to_zero(4); i++)
		mainline = dctcp_rfc_scaled(mainline, acked, marked, 1024, 4);
	assert_int_equal(mainline, 0);

	for (shift = DCTCP_SHIFT_G_MIN; shift <= DCTCP_SHIFT_G_MAX; shift++) {
		struct dctcp_model m;

		dctcp_model_init(&m, alpha, 0);
		for (i = 0; i < dctcp_windows_to_zero(shift); i++) {
			dctcp_model_ack(&m, acked, marked);
			dctcp_model_window(&m, shift, 0);
		}
		expect(near_rel(m.alpha, (long double)DCTCP_ALPHA_ONE / one_in, 0.1),
		       "shift %u, from %u: 1/%u is followed to %.9f", shift, alpha, one_in,
		       (double)m.alpha / DCTCP_ALPHA_ONE);
	}
}

/*
 * D16: alpha follows a constant marking fraction below 1/64 within 10 %, from 0 and
 * from 1, at every gain. The arithmetic of RFC 8257 4.2 with mainline's 10 bits,
 * SCF = 1024 and SHF = 4, gives 0: M = 1024 / 65 = 15 is lost in M >> 4.
 */
static void dctcp_model_window__light_marking(void **state)
{
	static const u32 one_in[] = { 65, 100, 1000, 10000, 100000 };
	size_t f;

	(void)state;
	for (f = 0; f < ARRAY_SIZE(one_in); f++) {
		follow(one_in[f], 0);
		follow(one_in[f], DCTCP_ALPHA_ONE);
	}
}

/* D16: the same with occasional single marks: on average within 10 % */
static void dctcp_model_window__light_random_marking(void **state)
{
	static const u32 one_in[] = { 65, 100, 1000, 10000 };
	const int windows = 200000, packets = 64;
	unsigned int shift;
	size_t f;
	int i, k;

	(void)state;
	for (shift = DCTCP_SHIFT_G_MIN; shift <= DCTCP_SHIFT_G_MAX; shift++) {
		for (f = 0; f < ARRAY_SIZE(one_in); f++) {
			long double alpha = 0, marks = 0;
			struct dctcp_model m;

			dctcp_model_init(&m, 0, 0);
			for (i = 0; i < windows; i++) {
				u32 marked = 0;

				for (k = 0; k < packets; k++)
					marked += rnd() % one_in[f] ? 0 : 1460;
				dctcp_model_ack(&m, packets * 1460, marked);
				dctcp_model_window(&m, shift, 0);
				alpha += (long double)m.alpha / DCTCP_ALPHA_ONE;
				marks += marked / 1460;
			}
			expect(near_rel(alpha / windows, marks / windows / packets, 0.1),
			       "shift %u: 1/%u is %.9f on average, not %.9f", shift, one_in[f],
			       (double)(alpha / windows), (double)(marks / windows / packets));
		}
	}
}

/*
 * D18: most ACKs are lost, and the next one covers their bytes, marked or not. The
 * estimate, like the RFC's, then depends on the ACKs that arrive. It stays within bounds,
 * and if all packets or none are marked, the losses make no difference.
 */
static void dctcp_model_window__lost_acks(void **state)
{
	int run, i, pattern;

	(void)state;
	for (run = 0; run < 300; run++) {
		for (pattern = 0; pattern < PATTERNS; pattern++) {
			u32 start = pattern == NO_MARKS ? 0 : DCTCP_ALPHA_ONE;
			unsigned int shift = rnd_range(DCTCP_SHIFT_G_MIN, DCTCP_SHIFT_G_MAX);
			struct dctcp_pair p = dctcp_pair_init(start, shift, rnd_upto(U32_MAX));
			u64 una = p.rfc.snd_una, windows = 0;

			for (i = 0; i < 2000; i++) {
				bool ece = is_marked(pattern, i, windows);

				una += 1460;
				/* 90 % lost, but never a whole window of 100 packets */
				if (rnd() % 10 && una - p.rfc.snd_una < 100 * 1460)
					continue;
				windows += dctcp_pair_ack(&p, una, ece, una + 100 * 1460);
			}
			if (pattern == NO_MARKS || pattern == ALL_MARKS)
				assert_int_equal(p.model.alpha, start);
		}
	}
}

/* D7 */
static void dctcp_model_cut__table(void **state)
{
	static const struct {
		u32 cwnd, alpha, want;
	} lines[] = {
		/* at most half */
		{ 100, DCTCP_ALPHA_ONE, 50 },
		{ U32_MAX, DCTCP_ALPHA_ONE, 1U << 31 },
		{ 1 << 30, DCTCP_ALPHA_ONE, 1 << 29 },
		{ 100, ONE_IN(2), 75 },
		{ 101, DCTCP_ALPHA_ONE, 51 },
		/* alpha is 0: no cut */
		{ 100, 0, 100 },
		{ U32_MAX, 0, U32_MAX },
		/* less than a packet is carried over, not cut */
		{ 100, ONE_IN(51), 100 },
		{ 100, ONE_IN(49), 99 },
		/* never below 2 packets, whatever the input */
		{ 4, DCTCP_ALPHA_ONE, 2 },
		{ 3, DCTCP_ALPHA_ONE, 2 },
		{ 2, DCTCP_ALPHA_ONE, 2 },
		{ 2, 0, 2 },
		{ 1, DCTCP_ALPHA_ONE, 2 },
		{ 1, 0, 2 },
		{ 0, DCTCP_ALPHA_ONE, 2 },
		{ 0, 0, 2 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(lines); i++) {
		struct dctcp_model m;

		dctcp_model_init(&m, lines[i].alpha, 0);
		assert_int_equal(dctcp_checked_cut(&m, lines[i].cwnd), lines[i].want);
		assert_int_equal(m.alpha, lines[i].alpha);
	}
}

/* v: cwnd, alpha, the fraction carried over from earlier cuts */
static void dctcp_model_cut_holds(const u64 v[4])
{
	struct dctcp_model m = { .alpha = v[1], .cut_frac = v[2] };

	dctcp_checked_cut(&m, v[0]);
}

static const struct check dctcp_model_cut_exact = {
	dctcp_model_cut_holds, { U32_MAX, DCTCP_ALPHA_ONE, DCTCP_ALPHA_ONE - 1 }
};

static void dctcp_model_cut__extremes(void **state)
{
	(void)state;
	check_extremes(&dctcp_model_cut_exact);
}

static void dctcp_model_cut__random(void **state)
{
	(void)state;
	check_random(&dctcp_model_cut_exact);
}

/* Windows of up to @most packets; @alpha: Q30, the largest */
static void sum_cuts(u32 most, u32 alpha)
{
	long double real = 0;
	const int cuts = 50000;
	struct dctcp_model m;
	u128 exact = 0;	/* units of 2^-31 packets */
	u64 cut = 0;
	int i;

	dctcp_model_init(&m, alpha, 0);
	for (i = 0; i < cuts; i++) {
		u32 cwnd = i % 2 ? most : rnd_range(4, most);

		m.alpha = i % 3 ? alpha : rnd_range(0, alpha);
		exact += (u128)cwnd * m.alpha;
		real += cwnd - dctcp_rfc_cut(cwnd, (long double)m.alpha / DCTCP_ALPHA_ONE);
		cut += cwnd - dctcp_checked_cut(&m, cwnd);
	}
	expect((u128)cut << 31 <= exact, "cwnd %u, alpha %u: %lu, not %Lf", most, alpha, cut, real);
	expect(exact - ((u128)cut << 31) < FP_ONE(31) + cuts,
	       "cwnd %u, alpha %u: %lu, not %Lf", most, alpha, cut, real);
	expect(near_abs(cut, real, 1 + ldexpl(cuts, -31)),
	       "cwnd %u, alpha %u: %lu, not %Lf", most, alpha, cut, real);
}

/*
 * D7: over many reductions the sum of the cuts is the sum of cwnd * alpha / 2, to within
 * one packet: less than one packet is carried over, and each of n cuts loses at most the
 * one bit that halving shifts out, 2^-31, in all 1 + n * 2^-31 packets. A cut leaves at
 * least half of the window, so from 4 packets on the minimum of 2 is not reached.
 */
static void dctcp_model_cut__sum(void **state)
{
	static const u32 most[] = { 4, 5, 10, 100, 10000, 1 << 20, 1 << 30, U32_MAX };
	static const u32 alphas[] = { 1, 1000, ONE_IN(10000), ONE_IN(100), ONE_IN(3),
				      DCTCP_ALPHA_ONE };
	size_t w, a;

	(void)state;
	for (w = 0; w < ARRAY_SIZE(most); w++)
		for (a = 0; a < ARRAY_SIZE(alphas); a++)
			sum_cuts(most[w], alphas[a]);
}

/* D7, D16: marking so light that each cut is less than a packet still shrinks the window. */
static void dctcp_model_cut__light_marking(void **state)
{
	struct dctcp_model m;
	u32 cut = 0;
	int i;

	(void)state;
	dctcp_model_init(&m, ONE_IN(1000), 0);
	for (i = 0; i < 10000; i++)
		cut += 10 - dctcp_model_cut(&m, 10);
	/* 10000 times 10 / 2000, less the fraction carried over */
	assert_in_range(cut, 49, 50);
}

/*
 * D7: a window that grows by 4 packets between cuts, and the RFC's window in bytes:
 * they stay within one packet. Let owed, 0 <= owed < 1, be the fraction that the model
 * carries over. The distance d of its (cwnd - owed) below the RFC's window becomes
 *
 *	d' = d * (1 - alpha / 2) + owed * alpha / 2
 *
 * and so stays between 0 and 1; cwnd itself is larger by owed. The bit that halving
 * shifts out adds 2^-31 per cut, 2^-30 / alpha in all.
 */
static void dctcp_model_cut__sawtooth(void **state)
{
	const long double mss = 1460;
	static const u32 one_in[] = { 1, 2, 10, 100, 1000 };
	size_t a;
	int i;

	(void)state;
	for (a = 0; a < ARRAY_SIZE(one_in); a++) {
		long double bytes = 40 * mss, alpha;
		struct dctcp_model m;
		u32 cwnd = 40;

		dctcp_model_init(&m, ONE_IN(one_in[a]), 0);
		alpha = (long double)m.alpha / DCTCP_ALPHA_ONE;
		for (i = 0; i < 100000; i++) {
			cwnd = dctcp_checked_cut(&m, cwnd + 4);
			bytes = dctcp_rfc_cut(bytes + 4 * mss, alpha);
			expect(near_abs(cwnd, bytes / mss, 1 + ldexpl(1, -30) / alpha),
			       "alpha 1/%u: %u, not %Lf",
			       one_in[a], cwnd, bytes / mss);
		}
	}
}

int main(void)
{
	const struct CMUnitTest dctcp_model[] = {
		cmocka_unit_test(dctcp_model_init__alpha),
		cmocka_unit_test(dctcp_model_ack__table),
		cmocka_unit_test(dctcp_model_ack__random),
		cmocka_unit_test(dctcp_model_window_ended__table),
		cmocka_unit_test(dctcp_model_window_ended__extremes),
		cmocka_unit_test(dctcp_model_window_ended__random),
		cmocka_unit_test(dctcp_model_window__opens_the_next),
		cmocka_unit_test(dctcp_model_window__nothing_acked),
		cmocka_unit_test(dctcp_model_window__more_marked_than_acked),
		cmocka_unit_test(dctcp_model_window__extreme_gains),
		cmocka_unit_test(dctcp_model_window__counts_bytes),
		cmocka_unit_test(dctcp_model_window__streams),
		cmocka_unit_test(dctcp_model_window__random_streams),
		cmocka_unit_test(dctcp_model_window__adversarial_marks),
		cmocka_unit_test(dctcp_model_window__reaches_zero),
		cmocka_unit_test(dctcp_model_window__light_marking),
		cmocka_unit_test(dctcp_model_window__light_random_marking),
		cmocka_unit_test(dctcp_model_window__lost_acks),
		cmocka_unit_test(dctcp_model_cut__table),
		cmocka_unit_test(dctcp_model_cut__extremes),
		cmocka_unit_test(dctcp_model_cut__random),
		cmocka_unit_test(dctcp_model_cut__sum),
		cmocka_unit_test(dctcp_model_cut__light_marking),
		cmocka_unit_test(dctcp_model_cut__sawtooth),
	};

	rnd_seed_from_env();
	return cmocka_run_group_tests(dctcp_model, NULL, NULL);
}
