// SPDX-License-Identifier: GPL-2.0
#include <string.h>

#include "../common/options.h"
#include "options.h"
#include "output.h"

/* There are two devices at least, and libpcap takes at most 2^31 - 1 bytes for each. */
#define BUFFER_MAX	(2 * 2047)	/* MiB */

struct options opt = {
	.prefix = 32,
	.buffer_mb = 64,
	.bin = 1000000,
	.to = NEVER,
	.gap = NSEC,
};

/* Adds the names in @list, which commas separate; @option is for messages. */
static void add_sources(const char *option, char *list)
{
	char *name;

	while ((name = strsep(&list, ",")) != NULL) {
		if (!*name)
			usage_error("%s: empty name", option);
		if (opt.nsources == MAX_SOURCES)
			usage_error("more than %d captures", MAX_SOURCES);
		opt.source[opt.nsources++] = name;
	}
}

static void set_in(const char *option, char *value)
{
	add_sources(option, value);
}

static char *out;

static void set_out(const char *option, char *value)
{
	if (out || strchr(value, ','))
		usage_error("%s: only one", option);
	out = value;
}

static const struct option_row rows[] = {
	{ "in", "LIST", OPT_CALL, .call = set_in,
	  .help = "capture files, or devices whose received packets count" },
	{ "out", "NAME", OPT_CALL, .call = set_out,
	  .help = "capture file, or device whose sent packets count" },
	{ "live", NULL, OPT_FLAG, TO(opt.live),
	  .help = "they are devices: until SIGTERM, SIGINT or --duration" },
	{ "plan", "FILE", OPT_TEXT, TO(opt.plan),
	  .help = "the queues that this plan observes (labnet), all at once" },
	{ "zero", "T", OPT_TIME, TO(opt.zero), .min = 1, .range = "more than 0",
	  .help = "plan: its times count from T of CLOCK_MONOTONIC (now)" },
	{ "duration", "T", OPT_TIME, TO(opt.duration), .min = 1, .range = "more than 0",
	  .help = "live: stop after T" },
	{ "buffer", "MIB", OPT_INT, TO(opt.buffer_mb), 1, BUFFER_MAX,
	  .help = "live: kernel buffers of all devices together (64)" },
	{ "filter", "BPF", OPT_TEXT, TO(opt.filter),
	  .help = "count only these packets (pcap-filter)" },
	{ "snaplen", "N", OPT_INT, TO(opt.snaplen), 60, 262144,
	  .help = "use only the first N bytes of packets (live: 128)" },
	{ "prefix", "N", OPT_INT, TO(opt.prefix), 0, 65535,
	  .help = "bytes of payload that identify a packet other than TCP (32)" },
	{ "rate", "R", OPT_RATE, TO(opt.rate),
	  .help = "rate of the link, for the utilisation" },
	{ "overhead", "N", OPT_INT, TO(opt.overhead), 0, 65535,
	  .help = "bytes that the link adds to each packet (0)" },
	{ "from", "T", OPT_TIME, TO(opt.from),
	  .help = "count only packets from T on, since the first packet" },
	{ "to", "T", OPT_TIME, TO(opt.to),
	  .help = "... and only packets before T" },
	{ "mss", "N", OPT_INT, TO(opt.mss), 88, 65495,
	  .help = "MSS of all flows, to count segments of super-packets (from SYNs)" },
	{ "gap", "T", OPT_TIME, TO(opt.gap),
	  .help = "a packet that has not left after T is lost (1s)" },
	{ "bin", "T", OPT_TIME, TO(opt.bin), .min = 1, .range = "more than 0",
	  .help = "width of a bin of the series (1ms)" },
	{ "gaps", NULL, OPT_FLAG, TO(opt.gaps), .help = "time between packets, per flow" },
	{ "json", "FILE", OPT_TEXT, TO(outfile[OUT_JSON].path),
	  .help = "result (-: standard output, the default)" },
	{ "series", "FILE", OPT_TEXT, TO(outfile[OUT_SERIES].path),
	  .help = "CSV: one line per bin" },
	{ "flow-series", "FILE", OPT_TEXT, TO(outfile[OUT_FLOW_SERIES].path),
	  .help = "CSV: one line per bin and flow" },
	{ "packets", "FILE", OPT_TEXT, TO(outfile[OUT_PACKETS].path),
	  .help = "CSV: one line per packet" },
};

static const struct option_table table = {
	.program = "qdelay",
	.usage = "usage: qdelay --in FILE[,FILE...] --out FILE [OPTION...]\n"
	"       qdelay --live --in DEV[,DEV...] --out DEV [OPTION...]\n"
	"       qdelay --plan FILE [OPTION...]\n"
	"What a queue did to each packet, from captures before and after it.\n"
	"\n",
	.notes = "T: ns, us, ms, s.  R: bit, kbit, mbit, gbit per second.\n"
	"Exit status: 0, 1 if a capture is unusable or incomplete, 2 if called wrong.\n",
	.row = rows,
	.rows = ARRAY_SIZE(rows),
};

/* The plan says what is captured, and when. */
static void check_plan(void)
{
	if (opt.nsources || out || opt.live || opt.filter || opt.from || opt.to != NEVER ||
	    opt.rate || opt.snaplen)
		usage_error("--plan does not go with options that a plan sets");
	if (outfile[OUT_PACKETS].path)
		usage_error("--plan has no --packets");
}

void read_options(int argc, char **argv)
{
	u32 i, to_stdout = 0;
	int rest = options_read(&table, argc, argv, 0, NULL);

	if (rest < argc)
		usage_error("unexpected argument '%s'", argv[rest]);
	if (opt.plan) {
		check_plan();
	} else {
		if (!opt.nsources || !out)
			usage_error("--in and --out are needed");
		add_sources("--out", out);
	}
	if (opt.zero && !opt.plan)
		usage_error("--zero is for --plan");
	if (opt.from >= opt.to)
		usage_error("--from must be before --to");
	if (opt.duration && !opt.live)
		usage_error("--duration is for --live");
	for (i = 0; i < OUTFILES; i++)
		to_stdout += outfile[i].path && !strcmp(outfile[i].path, "-");
	if (to_stdout > 1)
		usage_error("only one result can go to standard output");
}
