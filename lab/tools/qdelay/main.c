// SPDX-License-Identifier: GPL-2.0
/*
 * qdelay - what a queue did to each packet
 *
 * Reads the packets seen before and after a bottleneck queue, from capture files or live from two
 * sides of a forwarding node, pairs them, and reports delay, queue length, marks, drops and rates.
 * See man/qdelay.1.
 *
 * The path of a packet through the files:
 *
 *   file.c, live.c   take it from libpcap
 *   packet.c         reads its headers: struct pkt, of a struct flow (flow.c)
 *   source.c         merges the sources in order of time
 *   account.c        before the queue: adds a rec to the table (match.c) and an entry to the
 *                    ring `ins`; after it: finds the oldest rec of the same fingerprint, settles
 *                    its entry, adds one to the ring `outs`; counts everything
 *   timeline.c       gets both rings in order of time, up to the oldest packet whose fate is
 *                    still open; it alone computes the queue length
 *   rings.c          of a plan: takes packets from the kernel, of all devices of many namespaces,
 *                    already in order of time, to account.c
 *   ../plan/qdelay.c which queues these are
 *   report.c         prints the result (dist.c: distributions, output.c: files)
 *
 * Memory: one rec and two ring entries per packet in the queue, or per packet that came in during
 * the last --gap after a drop.
 */
#include "capture.h"
#include "options.h"
#include "output.h"
#include "plan.h"
#include "report.h"
#include "rings.h"
#include "source.h"

static int run_plan(void)
{
#ifdef WITH_PLAN
	struct hop *hops;
	u64 buffer_mb;
	u32 n = observed(&hops, &buffer_mb);

	if (!n)
		return 0;
	if (!opt.bin) {
		outfile[OUT_SERIES].path = NULL;
		outfile[OUT_FLOW_SERIES].path = NULL;
	}
	rings_open(hops, n, buffer_mb);
	outputs_open();
	rings_run(opt.zero);
	return report_all(hops, n);
#else
	errx(2, "--plan: built without libjansson-dev");
#endif
}

int main(int argc, char **argv)
{
	static struct hop hop;

	read_options(argc, argv);
	if (opt.plan)
		return run_plan();
	sources_init(&hop);
	if (opt.live)
		live_open();
	else
		files_open();
	outputs_open();
	if (opt.live)
		live_run(&hop);
	else
		files_run();
	return report(&hop);
}
