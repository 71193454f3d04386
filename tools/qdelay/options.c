// SPDX-License-Identifier: GPL-2.0
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "../common/units.h"
#include "options.h"
#include "output.h"

struct options opt = {
	.prefix = 32,
	.buffer_mb = 64,
	.bin = 1000000,
	.to = NEVER,
	.gap = NSEC,
};

static const char help[] =
"usage: qdelay --in FILE[,FILE...] --out FILE [OPTION...]\n"
"       qdelay --live --in DEV[,DEV...] --out DEV [OPTION...]\n"
"What a queue did to each packet, from captures before and after it.\n"
"\n"
"  --in LIST           capture files, or devices whose received packets count\n"
"  --out NAME          capture file, or device whose sent packets count\n"
"  --live              they are devices: until SIGTERM, SIGINT or --duration\n"
"  --duration T        live: stop after T\n"
"  --buffer MIB        live: kernel buffer per device (64)\n"
"  --filter BPF        count only these packets (pcap-filter)\n"
"  --snaplen N         use only the first N bytes of packets (live: 128)\n"
"  --prefix N          bytes of payload that identify a packet other than TCP (32)\n"
"  --rate R            rate of the link, for the utilisation\n"
"  --overhead N        bytes that the link adds to each packet (0)\n"
"  --from T, --to T    count only packets between these times from the first one\n"
"  --mss N             MSS of all flows, to count segments of super-packets (from SYNs)\n"
"  --gap T             a packet that has not left after T is lost (1s)\n"
"  --bin T             width of a bin of the series (1ms)\n"
"  --gaps              time between packets, per flow\n"
"  --json FILE         result (-: standard output, the default)\n"
"  --series FILE       CSV: one line per bin\n"
"  --flow-series FILE  CSV: one line per bin and flow\n"
"  --packets FILE      CSV: one line per packet\n"
"  --help, --version\n"
"T: ns, us, ms, s.  R: bit, kbit, mbit, gbit per second.\n"
"Exit status: 0, 1 if a capture is unusable or incomplete, 2 if called wrong.\n";

enum {
	OPT_IN = 256, OPT_OUT, OPT_LIVE, OPT_DURATION, OPT_BUFFER, OPT_FILTER,
	OPT_SNAPLEN, OPT_PREFIX, OPT_RATE, OPT_OVERHEAD, OPT_FROM, OPT_TO,
	OPT_MSS, OPT_GAP, OPT_BIN, OPT_GAPS, OPT_JSON, OPT_SERIES, OPT_FLOW_SERIES,
	OPT_PACKETS, OPT_HELP, OPT_VERSION,
};

static const struct option long_options[] = {
	{ "in", required_argument, NULL, OPT_IN },
	{ "out", required_argument, NULL, OPT_OUT },
	{ "live", no_argument, NULL, OPT_LIVE },
	{ "duration", required_argument, NULL, OPT_DURATION },
	{ "buffer", required_argument, NULL, OPT_BUFFER },
	{ "filter", required_argument, NULL, OPT_FILTER },
	{ "snaplen", required_argument, NULL, OPT_SNAPLEN },
	{ "prefix", required_argument, NULL, OPT_PREFIX },
	{ "rate", required_argument, NULL, OPT_RATE },
	{ "overhead", required_argument, NULL, OPT_OVERHEAD },
	{ "from", required_argument, NULL, OPT_FROM },
	{ "to", required_argument, NULL, OPT_TO },
	{ "mss", required_argument, NULL, OPT_MSS },
	{ "gap", required_argument, NULL, OPT_GAP },
	{ "bin", required_argument, NULL, OPT_BIN },
	{ "gaps", no_argument, NULL, OPT_GAPS },
	{ "json", required_argument, NULL, OPT_JSON },
	{ "series", required_argument, NULL, OPT_SERIES },
	{ "flow-series", required_argument, NULL, OPT_FLOW_SERIES },
	{ "packets", required_argument, NULL, OPT_PACKETS },
	{ "help", no_argument, NULL, OPT_HELP },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ NULL, 0, NULL, 0 },
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

void read_options(int argc, char **argv)
{
	char *out = NULL;
	u32 i, to_stdout = 0;
	int c;

	while ((c = getopt_long(argc, argv, ":", long_options, NULL)) != -1) {
		switch (c) {
		case OPT_IN:
			add_sources("--in", optarg);
			break;
		case OPT_OUT:
			if (out)
				usage_error("--out: only one");
			out = optarg;
			break;
		case OPT_LIVE:
			opt.live = true;
			break;
		case OPT_DURATION:
			opt.duration = parse_time("--duration", optarg);
			if (!opt.duration)
				usage_error("--duration: must be more than 0");
			break;
		case OPT_BUFFER:
			opt.buffer_mb = parse_int("--buffer", optarg, 1, 2047);
			break;
		case OPT_FILTER:
			opt.filter = optarg;
			break;
		case OPT_SNAPLEN:
			opt.snaplen = parse_int("--snaplen", optarg, 60, 262144);
			break;
		case OPT_PREFIX:
			opt.prefix = parse_int("--prefix", optarg, 0, 65535);
			break;
		case OPT_RATE:
			opt.rate = parse_rate("--rate", optarg, true);
			break;
		case OPT_OVERHEAD:
			opt.overhead = parse_int("--overhead", optarg, 0, 65535);
			break;
		case OPT_FROM:
			opt.from = parse_time("--from", optarg);
			break;
		case OPT_TO:
			opt.to = parse_time("--to", optarg);
			break;
		case OPT_MSS:
			opt.mss = parse_int("--mss", optarg, 88, 65495);
			break;
		case OPT_GAP:
			opt.gap = parse_time("--gap", optarg);
			break;
		case OPT_BIN:
			opt.bin = parse_time("--bin", optarg);
			if (!opt.bin)
				usage_error("--bin: must be more than 0");
			break;
		case OPT_GAPS:
			opt.gaps = true;
			break;
		case OPT_JSON:
			outfile[OUT_JSON].path = optarg;
			break;
		case OPT_SERIES:
			outfile[OUT_SERIES].path = optarg;
			break;
		case OPT_FLOW_SERIES:
			outfile[OUT_FLOW_SERIES].path = optarg;
			break;
		case OPT_PACKETS:
			outfile[OUT_PACKETS].path = optarg;
			break;
		case OPT_HELP:
			fputs(help, stdout);
			exit(0);
		case OPT_VERSION:
			puts("qdelay " LOWQ_VERSION);
			exit(0);
		case ':':
			usage_error("%s needs a value", argv[optind - 1]);
		default:
			usage_error("%s: no such option", argv[optind - 1]);
		}
	}
	if (optind < argc)
		usage_error("unexpected argument '%s'", argv[optind]);
	if (!opt.nsources || !out)
		usage_error("--in and --out are needed");
	if (strchr(out, ','))
		usage_error("--out: only one");
	add_sources("--out", out);
	if (opt.from >= opt.to)
		usage_error("--from must be before --to");
	if (opt.duration && !opt.live)
		usage_error("--duration is for --live");
	for (i = 0; i < OUTFILES; i++)
		to_stdout += outfile[i].path && !strcmp(outfile[i].path, "-");
	if (to_stdout > 1)
		usage_error("only one result can go to standard output");
}
