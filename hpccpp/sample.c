// SPDX-License-Identifier: GPL-2.0
/*
 * hpccpp: what a response does to a flow: the model takes its records as a sample, or,
 * receiver-based, its window. Used under HPCC++ and in fallback.
 */
#include "hpccpp.h"
#include "trace.h"

static void hpccpp_settings_of(const struct sock *sk, struct hpccpp_settings *s)
{
	const struct hpccpp_flow *f = ((const struct hpccpp *)inet_csk_ca(sk))->flow;

	hpccpp_given_settings(s);
	s->t_ns = hpccpp_base_rtt_ns(f);
	/* the measured minimum is rounded down to a microsecond */
	s->fill_ns = max(s->t_ns, hpccpp_min_rtt_ns(f)) + NSEC_PER_USEC;
	s->mss = max_t(u32, tcp_sk(sk)->mss_cache, 1);
	s->w_limit = tcp_sk(sk)->snd_cwnd_clamp * hpccpp_mss_q8(sk);
	s->carried = f->carried;
	s->line_mbps = hpccpp_line_given();
}

/* The old path's base RTT says nothing about the new path's. */
static void hpccpp_new_path(struct hpccpp_flow *f)
{
	hpccpp_rtt_init(&f->rtt, f->rtt.latest_us);
}

/* Receiver-based: the window that a response carries, bytes in Q8 */
static u64 hpccpp_window_of(const struct int_msg *m)
{
	return (u64)m->options << INT_OPTION_W_SHIFT;
}

/*
 * A response arrived whose probe was sent at @sent_ns: are losses and marks of the packets that
 * it covers explained by its records @m? Those packets left between this probe and the one
 * before, and their losses were detected between the two responses.
 */
static void hpccpp_update_doubt(const struct sock *sk, struct hpccpp_flow *f,
				const struct int_msg *m, u64 sent_ns)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	const struct hpccpp_tally old = f->tally;
	u32 delivered, most = U32_MAX, t_ns = hpccpp_base_rtt_ns(f);
	bool suffered;

	f->carried = 0;
	f->tally = (struct hpccpp_tally){
		.sent_ns = sent_ns, .arrived_ns = f->arrived_ns, .delivered = tp->delivered,
		.marked = tp->delivered_ce, .lost = tp->lost,
	};
	if (!old.sent_ns || !t_ns)
		return;
	delivered = tp->delivered - old.delivered;
	f->carried = hpccpp_carried(delivered * hpccpp_mss_q8(sk),
				    f->arrived_ns - old.arrived_ns, t_ns);
	suffered = hpccpp_suffered(delivered, tp->lost - old.lost, tp->delivered_ce - old.marked);
	f->clean += delivered;
	if (!suffered && f->clean < HPCCPP_DOUBT_PACKETS)
		return;
	f->clean = 0;
	if (suffered && m->type == INT_WINDOW)
		/* no records: if the window may grow, the load is below eta */
		most = hpccpp_window_of(m) > f->model.w ? 0 : U32_MAX;
	else if (suffered)
		most = hpccpp_most_load(&f->model, m, t_ns, sent_ns - old.sent_ns);
	f->doubt = hpccpp_doubt(f->doubt, suffered, most,
				hpccpp_eta());
}

/* Receiver-based: the response is the window itself. */
static bool hpccpp_on_window(struct sock *sk, const struct int_msg *m, u64 now)
{
	const struct hpccpp *ca = inet_csk_ca(sk);
	struct hpccpp_flow *f = ca->flow;
	u64 w = hpccpp_window_of(m);

	if (!hpccpp_receiver_based() || !w)
		return false;
	f->telemetry = true;
	f->partial = 0;
	f->unmeasured = 0;
	hpccpp_integrate_window(sk, f, now);
	f->model.w = min3(max(w, hpccpp_mss_q8(sk) >> HPCCPP_W_MIN_SHIFT), (u64)HPCCPP_W_MAX,
			  tcp_sk(sk)->snd_cwnd_clamp * hpccpp_mss_q8(sk));
	f->model.reference = f->model.w;
	trace_hpccpp_window(sk, "receiver", &f->model, hpccpp_base_rtt_ns(f));
	return true;
}

/* Returns true if the response set the window. */
bool hpccpp_on_response(struct sock *sk, const struct int_msg *m, u64 now)
{
	const struct hpccpp *ca = inet_csk_ca(sk);
	struct hpccpp_flow *f = ca->flow;
	const struct hpccpp_probe *probe = &f->probe[m->id % HPCCPP_PROBES_KEPT];
	struct hpccpp_sample sample = { .msg = m };
	enum hpccpp_result result;
	u64 before_w = f->model.w;
	u32 before_us = f->queued_us;

	f->unanswered = 0;
	f->answer_ns = now;
	hpccpp_update_doubt(sk, f, m, probe->sent_ns);
	if (m->type == INT_WINDOW)
		return hpccpp_on_window(sk, m, now);
	if (f->sample.sent_ns)
		hpccpp_rtt_unqueued(&f->rtt,
				    div_u64(f->arrived_ns - probe->sent_ns, NSEC_PER_USEC),
				    hpccpp_standing_us(&f->model, m));
	hpccpp_settings_of(sk, &sample.settings);
	if (!sample.settings.t_ns)
		return false;
	if (f->sample.sent_ns) {
		sample.elapsed_ns = probe->sent_ns - f->sample.sent_ns;
		sample.sent_w = hpccpp_window_between(&f->sample, probe);
	} else {
		hpccpp_model_forget(&f->model);
	}
	hpccpp_integrate_window(sk, f, now);
	result = hpccpp_step(&f->model, &sample);
	f->queued_us = hpccpp_queued_us(&f->model);
	f->comparable_ns = hpccpp_comparable_ns(&f->model);
	trace_hpccpp_sample(sk, &f->model, m, result, sample.elapsed_ns);
	if (result == HPCCPP_PARTIAL) {
		hpccpp_count(sk, HPCCPP_COUNT_PARTIAL);
		f->partial++;
		f->tally.sent_ns = 0;
		return false;
	}
	f->partial = 0;
	f->sample = *probe;
	if (result != HPCCPP_MEASURED) {
		/* After a reduction of W a sample is the first one again: that is no fault. */
		if (sample.elapsed_ns || !f->telemetry)
			f->unmeasured++;
		if (result == HPCCPP_BASELINE && sample.elapsed_ns)
			hpccpp_new_path(f);
		return false;
	}
	hpccpp_rtt_follow(&f->rtt, f->queued_us);
	/*
	 * A jump that leaves an unstamped queue behind would overflow it: the records may allow a
	 * hundred times the window for which it has room. The probe may have waited for what was in
	 * a node's queue before it, or behind it.
	 */
	if (f->model.w > 2 * before_w &&
	    hpccpp_waits_unstamped(f->arrived_ns - probe->sent_ns, sample.settings.fill_ns,
				   (u64)before_us + f->queued_us))
		f->model.w = before_w + hpccpp_mss_q8(sk);
	f->telemetry = true;
	f->unmeasured = 0;
	trace_hpccpp_window(sk, "telemetry", &f->model, sample.settings.t_ns);
	return true;
}
