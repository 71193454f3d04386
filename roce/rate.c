// SPDX-License-Identifier: GPL-2.0
/*
 * roce_rcm: the rate of a queue pair, by DCQCN (dcqcn_model.h) or LDCP for adapters
 * (ldcp_model.h). All functions are called under the queue pair's lock.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "cc_param.h"
#include "ldcp_model.h"
#include "roce_rcm.h"

CC_PARAM(rate_min_mbps, 10, 1, 1000000, 0644,
	 "below 10 Mb/s, 64 packets may take longer than a retransmission timeout",
	 "no CNP cuts a rate below this, Mb/s");
CC_PARAM(line_rate_mbps, 0, 0, 2000000, 0644, "0 asks the device",
	 "rate of the line, Mb/s, 0 is the speed that the device reports");
CC_PARAM(algorithm, 0, 0, 1, 0444, "0 is dcqcn, 1 is ldcp",
	 "reaction point: 0 is DCQCN, 1 is LDCP (draft 3.2)");
CC_PARAM(dcqcn_shift_g, 8, 1, 16, 0644, "g is 2^-1 to 2^-16", "DCQCN: g = 2^-dcqcn_shift_g");
CC_PARAM(dcqcn_cut, 512, 1, 1024, 0644, "1024 is the whole of alpha",
	 "DCQCN: a CNP cuts the rate by this part of alpha, in 1/1024");
CC_PARAM(dcqcn_alpha_us, 55, 1, 1000000, 0644, "microseconds, up to a second",
	 "DCQCN: K, period of alpha, microseconds");
CC_PARAM(dcqcn_timer_us, 55, 1, 1000000, 0644, "microseconds, up to a second",
	 "DCQCN: T, period of the rate, microseconds");
CC_PARAM(dcqcn_bytes_kb, 10000, 1, 4000000, 0644, "1 kB to 4 GB",
	 "DCQCN: B, byte counter, kB");
CC_PARAM(dcqcn_f, 5, 1, 1000, 0644, "1 to 1000", "DCQCN: F, counts of fast recovery");
CC_PARAM(dcqcn_ai_mbps, 40, 1, 1000000, 0644, "1 Mb/s to 1 Tb/s",
	 "DCQCN: additive increase R_AI, Mb/s");
CC_PARAM(dcqcn_hai_mbps, 200, 1, 1000000, 0644, "1 Mb/s to 1 Tb/s",
	 "DCQCN: hyper increase R_HAI, Mb/s");
CC_PARAM(ldcp_rtt_us, 50, 1, 1000000, 0644, "microseconds, up to a second",
	 "LDCP: round-trip time of the network, microseconds");
CC_PARAM(ldcp_alpha, 1024, 1, 1024, 0644, "1024 is a packet",
	 "LDCP: increase per RTT, packets in 1/1024");
CC_PARAM(ldcp_beta, 1024, 1, 1024, 0644, "1024 is a packet",
	 "LDCP: decrease per CNP, packets in 1/1024");
CC_PARAM(ldcp_eta, 512, 1, 1023, 0644, "512 is 1/2; 1024 would ignore CNPs",
	 "LDCP: factor of a decrease below one packet, in 1/1024");
CC_PARAM(ldcp_shift_gamma, 3, LDCP_SHIFT_GAMMA_MIN, LDCP_SHIFT_GAMMA_MAX, 0644,
	 "gamma is 1/4, 1/8 or 1/16",
	 "LDCP: gamma, smallest window and step below one packet, is 2^-shift_gamma");

static u64 mbps(const struct cc_param *p)
{
	return READ_ONCE(p->value) * 1000000ULL;
}

/* The parameters as they are now, for a line of @device_line bit/s; 0 if that is unknown. */
void rcm_rate_params(struct dcqcn_params *p, u64 device_line)
{
	u64 line = mbps(&line_rate_mbps) ?: device_line ?: RCM_LINE_UNKNOWN;

	*p = (struct dcqcn_params){
		.line = line,
		.floor = min(mbps(&rate_min_mbps), line),
		.ai = mbps(&dcqcn_ai_mbps),
		.hai = mbps(&dcqcn_hai_mbps),
		.bytes = READ_ONCE(dcqcn_bytes_kb.value) * 1000ULL,
		.alpha_ns = READ_ONCE(dcqcn_alpha_us.value) * NSEC_PER_USEC,
		.timer_ns = READ_ONCE(dcqcn_timer_us.value) * NSEC_PER_USEC,
		.f = READ_ONCE(dcqcn_f.value),
		.shift_g = READ_ONCE(dcqcn_shift_g.value),
		.cut = READ_ONCE(dcqcn_cut.value),
	};
}

/* --- LDCP ------------------------------------------------------------------ */

static struct ldcp_gains ldcp_gains(void)
{
	return (struct ldcp_gains){
		.alpha = READ_ONCE(ldcp_alpha.value), .beta = READ_ONCE(ldcp_beta.value),
		.eta = READ_ONCE(ldcp_eta.value), .shift_gamma = READ_ONCE(ldcp_shift_gamma.value),
	};
}

static void ldcp_set_rate(struct rcm_rate *rate, const struct dcqcn_params *p)
{
	u64 bps = 8 * ldcp_model_rate(rate->cw, READ_ONCE(rate->packet_bytes),
				      READ_ONCE(ldcp_rtt_us.value));

	rate->model.rate = clamp(bps, p->floor, p->line);
	rate->model.target = rate->model.rate;
}

/* The window for @bps */
static u64 ldcp_window(const struct rcm_rate *rate, u64 bps)
{
	return LDCP_CW_ONE * ldcp_model_bdp(div_u64(bps, 1000000), READ_ONCE(ldcp_rtt_us.value),
					    READ_ONCE(rate->packet_bytes));
}

static void ldcp_from_rate(struct rcm_rate *rate, u64 bps, u64 now)
{
	rate->cw = ldcp_window(rate, bps);
	rate->model.timer_due = now + READ_ONCE(ldcp_rtt_us.value) * NSEC_PER_USEC;
}

static void ldcp_advance(struct rcm_rate *rate, const struct dcqcn_params *p, u64 now)
{
	u64 rtt = READ_ONCE(ldcp_rtt_us.value) * NSEC_PER_USEC, rounds;
	struct ldcp_gains g = ldcp_gains();

	if (now < rate->model.timer_due)
		return;
	rounds = fp_div(now - rate->model.timer_due, rtt) + 1;
	rate->model.timer_due += rounds * rtt;
	for (; rounds && rate->cw < LDCP_CW_ONE; rounds--)
		rate->cw = ldcp_model_round(rate->cw, &g);
	/* above one packet every round adds the same; 2^20 packets exceed any line */
	rounds = fp_min(rounds, LDCP_CW_MAX >> LDCP_CW_Q);
	if (rounds)
		rate->cw = ldcp_model_round(rate->cw, &g) +
			   (((rounds - 1) * g.alpha) << (LDCP_CW_Q - LDCP_GAIN_Q));
	/* a larger one would be paced no faster, and ignore as many CNPs as it is too large by */
	rate->cw = fp_min(rate->cw, ldcp_window(rate, p->line));
	ldcp_set_rate(rate, p);
}

static void ldcp_cnp(struct rcm_rate *rate, const struct dcqcn_params *p)
{
	struct ldcp_gains g = ldcp_gains();

	rate->cw = ldcp_model_marked(rate->cw, 1, &g);
	ldcp_set_rate(rate, p);
}

/* --- both algorithms ---------------------------------------------------------------- */

/* The rate of a queue pair that has just been connected */
void rcm_rate_init(struct rcm_rate *rate, const struct dcqcn_params *p, u64 now)
{
	dcqcn_init(&rate->model, p, now);
	rate->starting = false;
}

/* A queue pair that is not paced: its rate has been the line's, or is from now on. */
void rcm_rate_from_line(struct rcm_rate *rate, const struct dcqcn_params *p, u64 now)
{
	rate->starting = false;
	rate->model.rate = p->line;
	rate->model.target = p->line;
	if (algorithm.value)
		ldcp_from_rate(rate, p->line, now);
}

static u64 period_ns(const struct dcqcn_params *p)
{
	return algorithm.value ? READ_ONCE(ldcp_rtt_us.value) * NSEC_PER_USEC : p->timer_ns;
}

/* Starts all periods at @now again, with @bps. */
static void restart(struct rcm_rate *rate, const struct dcqcn_params *p, u64 bps, u64 now)
{
	dcqcn_set_rate(&rate->model, p, bps, now);
	rate->model.target = rate->model.rate;
}

/*
 * Nothing is known of the path, or no longer: the rate starts with the line's, or with the share
 * of it that rcm_rate_share() sets, and doubles in each period until the first CNP.
 */
void rcm_rate_start(struct rcm_rate *rate, const struct dcqcn_params *p, u64 now)
{
	rcm_rate_from_line(rate, p, now);
	dcqcn_advance(&rate->model, p, now);	/* for alpha */
	rate->model.only_sent = true;
	restart(rate, p, p->line, now);
	rate->model.timer_due = now + period_ns(p);
	rate->share = p->line;
	rate->doublings = 0;
	rate->starting = true;
}

/* @rate, which is starting, started with @share. The first CNP will halve it. */
void rcm_rate_share(struct rcm_rate *rate, const struct dcqcn_params *p, u64 share)
{
	rate->share = share ?: 1;
	rate->model.rate = clamp(rate->share << rate->doublings, p->floor, p->line);
	rate->model.target = rate->model.rate;
	rate->model.alpha = DCQCN_ALPHA_ONE;
}

/* Ends the start at the rate that it has reached. */
static void end_start(struct rcm_rate *rate, const struct dcqcn_params *p, u64 now)
{
	u64 reached = rate->model.rate;

	rate->starting = false;
	restart(rate, p, reached, now);
	if (algorithm.value)
		ldcp_from_rate(rate, reached, now);
}

/* Periods of the start up to @now. Those in which hardly anything was sent do not count. */
static void start_advance(struct rcm_rate *rate, const struct dcqcn_params *p, u64 now)
{
	struct dcqcn_model *m = &rate->model;

	while (rate->starting && now >= m->timer_due) {
		u64 due = m->timer_due;

		if (m->sent < 2 * READ_ONCE(rate->packet_bytes)) {
			m->timer_due = now + period_ns(p);
			break;
		}
		m->sent = 0;
		m->timer_due += period_ns(p);
		if (m->rate >= p->line) {
			end_start(rate, p, due);
		} else {
			rate->doublings++;
			rcm_rate_share(rate, p, rate->share);
		}
	}
}

/* Brings @rate up to @now. */
void rcm_rate_advance(struct rcm_rate *rate, const struct dcqcn_params *p, u64 now)
{
	start_advance(rate, p, now);
	if (rate->starting)
		return;
	if (algorithm.value)
		ldcp_advance(rate, p, now);
	else
		dcqcn_advance(&rate->model, p, now);
}

/* May @rate grow before the next packet is sent? */
bool rcm_rate_grows(const struct rcm_rate *rate, const struct dcqcn_params *p)
{
	if (!dcqcn_limited(&rate->model, p))
		return false;
	return rate->starting || algorithm.value || !rate->model.only_sent ||
	       rate->model.timer_sent;
}

/* @bytes have been sent. */
void rcm_rate_sent(struct rcm_rate *rate, const struct dcqcn_params *p, u32 bytes)
{
	if (rate->starting)
		rate->model.sent += bytes;
	else if (!algorithm.value)
		dcqcn_sent(&rate->model, p, bytes);
}

/* A CNP arrives at @now, to which rcm_rate_advance() has brought @rate. */
void rcm_rate_cnp(struct rcm_rate *rate, const struct dcqcn_params *p, u64 now)
{
	if (rate->starting)
		end_start(rate, p, now);
	if (algorithm.value)
		ldcp_cnp(rate, p);
	else
		dcqcn_cnp(&rate->model, p, now);
}

/* A loss shows at @now, to which rcm_rate_advance() has brought @rate. */
void rcm_rate_loss(struct rcm_rate *rate, const struct dcqcn_params *p, u64 now)
{
	if (rate->starting)
		end_start(rate, p, now);
	if (algorithm.value)
		ldcp_cnp(rate, p);
	else
		dcqcn_loss(&rate->model, p, now);
}
