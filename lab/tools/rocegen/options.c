// SPDX-License-Identifier: GPL-2.0
#include <err.h>
#include <string.h>

#include "../common/options.h"
#include "config.h"

struct config cfg = {
	.gid = 1, .port = "5301", .label = "", .timeout = 14,
	.h = { .magic = MAGIC, .qps = 1, .size = 65536, .depth = 4 },
};

#define SERVE		1U	/* modes */
#define CLIENT		2U

static bool both, read_back;

static const struct option_row rows[] = {
	{ .help = "serve and clients:" },
	{ "dev", "DEV", OPT_TEXT, TO(cfg.dev), .help = "RDMA device, as rdma link shows it" },
	{ "gid", "N", OPT_INT, TO(cfg.gid), 0, 255,
	  .help = "index of the GID, which is the IP address and RoCE's version (1)" },
	{ "port", "P", OPT_TEXT, TO(cfg.port), .help = "of TCP, for the set-up (5301)" },
	{ "timeout", "N", OPT_INT, TO(cfg.timeout), 0, 31,
	  .help = "retransmit after 4.096 us * 2^N (14); 0: never" },
	{ .help = "clients:" },
	{ "to", "ADDR", OPT_TEXT, TO(cfg.to), .modes = CLIENT, .help = "the server" },
	{ "qps", "N", OPT_INT, TO(cfg.h.qps), 1, MAX_QPS, .modes = CLIENT,
	  .help = "queue pairs (1)" },
	{ "size", "B", OPT_SIZE, TO(cfg.h.size), 1, MAX_SIZE, "1 to 256Mi", .modes = CLIENT,
	  .help = "bytes of a message (64Ki); ud-send: at most the MTU" },
	{ "depth", "N", OPT_INT, TO(cfg.h.depth), 1, MAX_DEPTH, .modes = CLIENT,
	  .help = "messages in flight per queue pair (4)" },
	{ "duration", "T", OPT_TIME, TO(cfg.duration), .min = 1, .range = "more than 0",
	  .modes = CLIENT, .help = "post messages for this long" },
	{ "messages", "N", OPT_INT, TO(cfg.messages), 1, UINT64_MAX, .modes = CLIENT,
	  .help = "or so many per queue pair" },
	{ "start", "T", OPT_TIME, TO(cfg.start), .modes = CLIENT,
	  .help = "wait before the first message" },
	{ "both", NULL, OPT_FLAG, TO(both), .modes = CLIENT,
	  .help = "write, uc-write: the server writes as well, on the same queue pairs" },
	{ "read-back", NULL, OPT_FLAG, TO(read_back), .modes = CLIENT,
	  .help = "write: the server reads as well" },
	{ "label", "STR", OPT_TEXT, TO(cfg.label), .modes = CLIENT,
	  .help = "put into each line" },
};

static const struct option_table table = {
	.program = "rocegen",
	.usage = "usage: rocegen serve --dev DEV [OPTION...]\n"
	"       rocegen send|write|read|uc-send|uc-write|ud-send --dev DEV --to ADDR\n"
	"               (--duration T | --messages N) [OPTION...]\n"
	"RDMA traffic; prints one line of JSON per queue pair.\n"
	"\n",
	.notes = "T: ns, us, ms, s.  B: bytes with k, M, G (1000) or Ki, Mi, Gi (1024).\n"
	"Exit status: 0 all messages completed, 1 a queue pair failed, 2 if called wrong.\n",
	.row = rows,
	.rows = ARRAY_SIZE(rows),
};

#define usage_error(fmt, ...) \
	errx(2, fmt " (see rocegen --help)", ##__VA_ARGS__)

static enum op parse_op(const char *name)
{
	unsigned int i;

	for (i = 0; i < OPS; i++)
		if (!strcmp(name, op_names[i]))
			return i;
	usage_error("'%s' is not serve, send, write, read, uc-send, uc-write or ud-send", name);
}

static void check_client(void)
{
	if (!cfg.to)
		usage_error("%s needs --to", op_names[cfg.h.op]);
	if (!cfg.duration == !cfg.messages)
		usage_error("%s needs one of --duration and --messages", op_names[cfg.h.op]);
	if (both && read_back)
		usage_error("--both and --read-back exclude each other");
	if (both && cfg.h.op != WRITE && cfg.h.op != UC_WRITE)
		usage_error("--both takes write or uc-write");
	if (read_back && cfg.h.op != WRITE)
		usage_error("--read-back takes write");
	cfg.h.both = both ? BOTH_WRITE : read_back ? BOTH_READ : BOTH_NONE;
}

void read_options(int argc, char **argv)
{
	int rest;

	if (argc < 2)
		usage_error("say what to do: serve, send, write, read, uc-send, uc-write or ud-send");
	if (*argv[1] == '-') {	/* --help, --version */
		options_read(&table, argc, argv, SERVE | CLIENT, NULL);
		usage_error("say first what to do: serve, send, write, ...");
	}
	cfg.serve = !strcmp(argv[1], "serve");
	if (!cfg.serve)
		cfg.h.op = parse_op(argv[1]);
	rest = options_read(&table, argc - 1, argv + 1, cfg.serve ? SERVE : CLIENT, argv[1]);
	if (rest < argc - 1)
		usage_error("'%s' is one argument too many", argv[1 + rest]);
	if (!cfg.dev)
		usage_error("%s needs --dev", argv[1]);
	if (!cfg.serve)
		check_client();
}
