// SPDX-License-Identifier: GPL-2.0
/* roce_rcm: counters and queue pairs in debugfs, directory roce_rcm */
#include <linux/debugfs.h>
#include <linux/seq_file.h>

#include "roce_rcm.h"

static const char * const counter_names[] = {
	[RCM_NOT_A_QP] = "not_a_qp",
	[RCM_ECT_SET] = "ect_set",
	[RCM_PACED] = "paced",
	[RCM_HELD_TOO_LONG] = "held_too_long",
	[RCM_LET_GO] = "let_go",
	[RCM_STALE_DROPPED] = "stale_dropped",
	[RCM_LOSSES] = "losses",
	[RCM_FIFO_DROPPED] = "fifo_dropped",
	[RCM_CE_RECEIVED] = "ce_received",
	[RCM_CE_NOT_UNICAST] = "ce_not_unicast",
	[RCM_CE_POLICY] = "ce_policy",
	[RCM_CE_INVALID] = "ce_invalid",
	[RCM_CE_BAD_ICRC] = "ce_bad_icrc",
	[RCM_CE_UNKNOWN_QP] = "ce_unknown_qp",
	[RCM_CE_WRONG_SOURCE] = "ce_wrong_source",
	[RCM_CE_COALESCED] = "ce_coalesced",
	[RCM_CNP_SENT] = "cnp_sent",
	[RCM_CNP_LIMITED] = "cnp_limited",
	[RCM_CNP_UNSENT] = "cnp_unsent",
	[RCM_CNP_RECEIVED] = "cnp_received",
	[RCM_CNP_HANDLED] = "cnp_handled",
	[RCM_CNP_POLICY] = "cnp_policy",
	[RCM_CNP_MALFORMED] = "cnp_malformed",
	[RCM_CNP_UNKNOWN_QP] = "cnp_unknown_qp",
	[RCM_CNP_WRONG_SOURCE] = "cnp_wrong_source",
	[RCM_CNP_BAD_ICRC] = "cnp_bad_icrc",
	[RCM_CNP_TOO_SOON] = "cnp_too_soon",
	[RCM_CNP_NOTHING_SENT] = "cnp_nothing_sent",
	[RCM_TABLE_FULL] = "table_full",
	[RCM_ASKED] = "asked",
	[RCM_ASKED_LINE] = "asked_line",
};

static struct dentry *dir;

static int counters_show(struct seq_file *m, void *v)
{
	int i, cpu;

	for (i = 0; i < RCM_COUNTERS; i++) {
		unsigned long sum = 0;

		for_each_possible_cpu(cpu)
			sum += READ_ONCE(per_cpu(rcm_counters, cpu)[i]);
		seq_printf(m, "%s %lu\n", counter_names[i], sum);
	}
	seq_printf(m, "local_qps %u\nremote_qps %u\nfifo_bytes %ld\n", rcm_qps_known(false),
		   rcm_qps_known(true), rcm_pace_memory());
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(counters);

/* One line per queue pair. The position in the file is the bucket of the hash table. */
static void *qps_start(struct seq_file *m, loff_t *pos)
{
	if (!*pos)
		return SEQ_START_TOKEN;
	return *pos <= HASH_SIZE(rcm_qp_table) ? &rcm_qp_table[*pos - 1] : NULL;
}

static void *qps_next(struct seq_file *m, void *v, loff_t *pos)
{
	++*pos;
	return qps_start(m, pos);
}

static void qps_stop(struct seq_file *m, void *v)
{
}

/*
 * A line about @qp. The rate is what it has grown to by now, computed on a copy: reading
 * leaves the queue pair's own state as it is.
 */
static void qp_show(struct seq_file *m, struct rcm_qp *qp)
{
	struct dcqcn_params p;
	struct rcm_rate rate;

	spin_lock_bh(&qp->lock);
	/* its namespace is going, and struct rcm_net may be freed already */
	if (qp->dead)
		goto out;
	rcm_pace_params(qp, &p);
	rate = qp->rate;
	if (qp->limited)
		rcm_rate_advance(&rate, &p, ktime_get_ns());
	seq_printf(m, "%u %s %pI6c %u ", qp->netns, qp->remote ? "remote" : "local",
		   &qp->addr, qp->number);
	if (qp->remote)
		seq_puts(m, "- - - - -");
	else
		seq_printf(m, "%pI6c %u %llu %llu %u.%03u", &qp->peer_addr[0],
			   qp->kind == RCM_CONNECTED ? qp->peer_qp : 0,
			   div_u64(qp->limited ? rate.model.rate : p.line, 1000000),
			   div_u64(qp->limited ? rate.model.target : p.line, 1000000),
			   rate.model.alpha >> DCQCN_ALPHA_Q,
			   (u32)((u64)rate.model.alpha * 1000 >> DCQCN_ALPHA_Q) % 1000);
	seq_printf(m, " %llu %llu %u %llu %llu\n", qp->cnps_in, qp->cnps_out,
		   rcm_pace_waiting(qp), qp->fifo_bytes >> 10, qp->dropped);
out:
	spin_unlock_bh(&qp->lock);
}

static int qps_show(struct seq_file *m, void *v)
{
	struct hlist_head *bucket = v;
	struct rcm_qp *qp;

	if (v == SEQ_START_TOKEN) {
		seq_puts(m, "netns side addr qp peer peer_qp rate_mbps target_mbps alpha cnps_in cnps_out fifo_packets fifo_kb dropped\n");
		return 0;
	}
	rcu_read_lock();
	hlist_for_each_entry_rcu(qp, bucket, node)
		qp_show(m, qp);
	rcu_read_unlock();
	return 0;
}

static const struct seq_operations qps_sops = {
	.start = qps_start,
	.next = qps_next,
	.stop = qps_stop,
	.show = qps_show,
};
DEFINE_SEQ_ATTRIBUTE(qps);

void rcm_debugfs_init(void)
{
	dir = debugfs_create_dir("roce_rcm", NULL);
	debugfs_create_file("counters", 0444, dir, NULL, &counters_fops);
	debugfs_create_file("qps", 0444, dir, NULL, &qps_fops);
}

void rcm_debugfs_exit(void)
{
	debugfs_remove(dir);
}
