/* SPDX-License-Identifier: GPL-2.0 */
/*
 * DCTCP's congestion estimate and window cut as arithmetic on plain values
 * (RFC 8257 3.3 and 4.2). No socket, no packet, no clock.
 *
 *	on an ACK:		acked += bytes; marked += bytes if ECE
 *	at a window's end:	M = marked / acked
 *				alpha = alpha * (1 - g) + g * M
 *	on congestion:		cwnd = cwnd * (1 - alpha / 2)
 */
#ifndef _LOWQ_DCTCP_MODEL_H
#define _LOWQ_DCTCP_MODEL_H

#include "fixedpoint.h"

/* alpha's format: the RFC's scaling factor SCF is 2^30 (its example: 2^16) */
#define DCTCP_ALPHA_Q		30
#define DCTCP_ALPHA_ONE		((u32)FP_ONE(DCTCP_ALPHA_Q))

/* The gain is g = 2^-shift_g; a shift of 0 would be g = 1, which does not smooth at all. */
#define DCTCP_SHIFT_G_MIN	1
#define DCTCP_SHIFT_G_MAX	10
#define DCTCP_SHIFT_G_DEFAULT	4

#define DCTCP_MIN_CWND		2U	/* packets: the smallest window that a cut leaves */

/**
 * struct dctcp_model - the sender's estimate of congestion on one connection
 * @alpha:	DCTCP.Alpha, Q30, 0 to DCTCP_ALPHA_ONE (RFC 8257 3.3)
 * @acked:	DCTCP.BytesAcked of this window, bytes. TCP's window is at most
 *		2^30 bytes and one ACK adds at most another window, so 32 bits hold
 * @marked:	DCTCP.BytesMarked of this window, bytes; saturates
 * @window_end:	DCTCP.WindowEnd, a sequence number
 * @cut_frac:	fraction of a packet by which earlier cuts were rounded, Q31, below 1.0
 */
struct dctcp_model {
	u32 alpha;
	u32 acked;
	u32 marked;
	u32 window_end;
	u32 cut_frac;
};

/* @alpha: Q30, clamped to 1.0; @una: SND.UNA */
static inline void dctcp_model_init(struct dctcp_model *m, u32 alpha, u32 una)
{
	m->alpha = fp_min(alpha, DCTCP_ALPHA_ONE);
	m->acked = 0;
	m->marked = 0;
	m->window_end = una;
	m->cut_frac = 0;
}

/* Steps 1 to 3: @acked bytes were acknowledged, @marked of them had CE marks. */
static inline void dctcp_model_ack(struct dctcp_model *m, u32 acked, u32 marked)
{
	m->acked = fp_add32(m->acked, acked);
	if (marked)
		m->marked = fp_add32(m->marked, marked);
}

/* Step 4: does an ACK of @una end the observation window? Compares sequence numbers. */
static inline bool dctcp_model_window_ended(const struct dctcp_model *m, u32 una)
{
	return (s32)(una - m->window_end) > 0;
}

/*
 * Steps 5 to 8: updates alpha at the end of a window and starts the next one, which
 * ends at @nxt (SND.NXT). Returns M, the marked fraction, Q30. A window in which
 * nothing was acknowledged does not change alpha.
 */
static inline u32 dctcp_model_window(struct dctcp_model *m, unsigned int shift_g, u32 nxt)
{
	u32 fraction = fp_fraction(m->marked, m->acked, DCTCP_ALPHA_Q);

	if (m->acked)
		m->alpha = fp_min(fp_ewma(m->alpha, fraction, shift_g), DCTCP_ALPHA_ONE);
	m->acked = 0;
	m->marked = 0;
	m->window_end = nxt;
	return fraction;
}

/*
 * Step 9: the window after a congestion signal, packets; at least DCTCP_MIN_CWND.
 * The RFC counts bytes. Here a cut is rounded down to whole packets, and the fraction
 * is added to the next cut, so that light marking shrinks small windows too. What
 * the minimum prevents is not carried over. cwnd * alpha <= 2^32 * 2^30.
 */
static inline u32 dctcp_model_cut(struct dctcp_model *m, u32 cwnd)
{
	u64 cut = fp_carry(&m->cut_frac, (u64)cwnd * m->alpha, DCTCP_ALPHA_Q + 1);

	return fp_max(fp_sub(cwnd, cut), DCTCP_MIN_CWND);
}

#endif /* _LOWQ_DCTCP_MODEL_H */
