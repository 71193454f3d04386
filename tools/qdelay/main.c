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
 *   report.c         prints the result (dist.c: distributions, output.c: files)
 *
 * Memory: one rec and two ring entries per packet in the queue, or per packet that came in during
 * the last --gap after a drop.
 */
#include "capture.h"
#include "options.h"
#include "output.h"
#include "report.h"
#include "source.h"

int main(int argc, char **argv)
{
	read_options(argc, argv);
	sources_init();
	if (opt.live)
		live_open();
	else
		files_open();
	outputs_open();
	if (opt.live)
		live_run();
	else
		files_run();
	return report();
}
