// SPDX-License-Identifier: GPL-2.0
#include <err.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "options.h"
#include "output.h"

struct outfile outfile[OUTFILES] = { [OUT_JSON] = { .path = "-" } };

static const char *const heading[OUTFILES] = {
	[OUT_SERIES] = "t_s,throughput_bps,qlen_pkts_mean,qlen_pkts_max,qlen_bytes_mean,qlen_bytes_max,delay_us_mean,delay_us_max,marked,dropped\n",
	[OUT_FLOW_SERIES] = "t_s,flow,throughput_bps\n",
	[OUT_PACKETS] = "t_in_ns,t_out_ns,delay_ns,flow,len,ecn_in,ecn_out,seq,payload\n",
};

/* At exit: removes files that are still open, because they hold half a result. */
static void discard(void)
{
	for (struct outfile *o = outfile; o < outfile + OUTFILES; o++) {
		if (o->f == stdout)
			__fpurge(stdout);
		else if (o->f && o->mine)
			unlink(o->path);
	}
}

static void open_out(struct outfile *o)
{
	struct stat st;

	if (!o->path)
		return;
	if (!strcmp(o->path, "-")) {
		o->f = stdout;
		return;
	}
	o->f = fopen(o->path, "w");
	if (!o->f)
		err(1, "%s", o->path);
	o->mine = !fstat(fileno(o->f), &st) && S_ISREG(st.st_mode);
}

void outputs_open(void)
{
	atexit(discard);
	for (int i = 0; i < OUTFILES; i++) {
		open_out(&outfile[i]);
		if (outfile[i].f && heading[i])
			fprintf(outfile[i].f, "%s%s", opt.plan ? "node,dev," : "", heading[i]);
	}
}

void outputs_close(void)
{
	for (struct outfile *o = outfile; o < outfile + OUTFILES; o++) {
		bool bad;

		if (!o->f)
			continue;
		bad = ferror(o->f) | fflush(o->f);
		if (o->f != stdout)
			bad |= fclose(o->f);
		if (bad)
			err(1, "%s: cannot write", o->path);
		o->f = NULL;
	}
}

/* Writes nothing for a side that did not see the packet. */
static void put(FILE *f, bool seen, u64 val)
{
	if (seen)
		fprintf(f, "%llu", val);
	fputc(',', f);
}

void packet_line(const struct pkt *in, const struct pkt *out)
{
	const struct pkt *p = in ? in : out;
	FILE *f = outfile[OUT_PACKETS].f;

	if (!f)
		return;
	put(f, in, in ? in->t : 0);
	put(f, out, out ? out->t : 0);
	put(f, in && out, in && out && out->t > in->t ? out->t - in->t : 0);
	fprintf(f, "%s,%u,", flow_name(p->flow), p->len);
	put(f, in, in ? in->ecn : 0);
	put(f, out, out ? out->ecn : 0);
	fprintf(f, "%u,%u\n", p->seq, p->payload);
}
