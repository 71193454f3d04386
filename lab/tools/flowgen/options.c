// SPDX-License-Identifier: GPL-2.0
/* The command line. Options that depend on each other are checked after all are read. */
#include <err.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>

#include "../common/alloc.h"
#include "../common/options.h"
#include "../common/units.h"
#include "config.h"

#define DEFAULT_PORT	5201
#define MAX_FLOWS	1000000
#define MAX_LABEL	64		/* bytes */

const char *const mode_name[] = { "serve", "long", "rpc", "incast", "plan", "udp", "program" };

static struct config cfg = {
	.port = DEFAULT_PORT,
	.tos = -1,
	.ready_fd = -1,
	.label = "",
	.seed = 1,
	.flows = 1,
	.count = 1,
};

#define M(mode)		(1U << (mode))
#define CLIENTS		(M(LONG) | M(RPC) | M(INCAST))
#define SOCKETS		(CLIENTS | M(SERVE))

/* Values that become part of cfg when all options are known. */
static struct {
	const char *to, *cdf, *out_path;
	u64 zero;
	double load;
	u64 requests;
	bool pull, push, poisson;
	int dscp;
} given = { .dscp = -1 };

static void set_family(const char *option, char *value)
{
	(void)value;
	if (cfg.family)
		errx(2, "-4 and -6 exclude each other");
	cfg.family = option[1] == '4' ? AF_INET : AF_INET6;
}

static void set_cc(const char *option, char *value)
{
	if (!*value || strlen(value) >= CC_LEN)
		errx(2, "%s: '%s' is not a congestion control's name", option, value);
	cfg.cc = value;
}

static void set_once_idle(const char *option, char *value)
{
	cfg.once_idle = true;
	cfg.idle_ns = value ? parse_time(option, value) : NSEC;
	if (cfg.idle_ns > 86400 * NSEC)
		errx(2, "%s: '%s' is more than a day", option, value);
}

static const struct option_row rows[] = {
	{ .help = "serve: answer requests until SIGTERM or SIGINT; print \"ready\" first" },
	{ "ready-fd", "N", OPT_INT, TO(cfg.ready_fd), 0, INT_MAX, .modes = M(SERVE),
	  .help = "write \"ready\" to this descriptor instead of stdout" },
	{ "once-idle", "[=T]", OPT_CALL, .call = set_once_idle, .modes = M(SERVE),
	  .help = "exit when no connection has been left for T (1s)" },
	{ .help = "long: bulk transfers, this side sends" },
	{ "flows", "N", OPT_INT, TO(cfg.flows), 1, MAX_FLOWS, .modes = M(LONG),
	  .help = "how many (1); flow i goes to host i modulo their number" },
	{ "stagger", "T", OPT_TIME, TO(cfg.stagger), .modes = M(LONG),
	  .help = "start one every T (0)" },
	{ "pull", NULL, OPT_FLAG, TO(given.pull), .modes = M(LONG), .help = "the server sends" },
	{ "interval", "T", OPT_TIME, TO(cfg.interval), .min = 10000, .range = "10us or more",
	  .modes = M(LONG), .help = "progress lines as well" },
	{ .help = "rpc: requests, the server answers with data; one connection each" },
	{ "cdf", "FILE", OPT_TEXT, TO(given.cdf), .modes = M(RPC),
	  .help = "draw the size of answers from this distribution" },
	{ "rate", "R", OPT_PER_SECOND, TO(cfg.rate), .modes = M(RPC),
	  .help = "requests per second" },
	{ "load", "BITRATE", OPT_UNIT_RATE, TO(given.load), .modes = M(RPC),
	  .help = "or as many requests as make that load" },
	{ "poisson", NULL, OPT_FLAG, TO(given.poisson), .modes = M(RPC),
	  .help = "time between requests: exponentially distributed (the default)" },
	{ "periodic", NULL, OPT_FLAG, TO(cfg.periodic), .modes = M(RPC),
	  .help = "... or always the same" },
	{ "closed", "N", OPT_INT, TO(cfg.closed), 1, MAX_FLOWS, .modes = M(RPC),
	  .help = "keep N requests outstanding" },
	{ "requests", "N", OPT_INT, TO(given.requests), 1, 1000000000000ULL, .modes = M(RPC),
	  .help = "stop after so many" },
	{ "persist", NULL, OPT_FLAG, TO(cfg.persist), .modes = M(RPC),
	  .help = "reuse connections" },
	{ "first-byte", NULL, OPT_FLAG, TO(cfg.first_byte), .modes = M(RPC),
	  .help = "also report when the first byte of an answer has arrived" },
	{ "push", NULL, OPT_FLAG, TO(given.push), .modes = M(RPC),
	  .help = "this side sends the data, the server answers with one byte" },
	{ "plan", NULL, OPT_FLAG, TO(cfg.print), .modes = M(RPC),
	  .help = "print what would be requested when, and do nothing" },
	{ .help = "incast: N requests at one instant, on connections made before" },
	{ "fan", "N", OPT_INT, TO(cfg.fan), 1, MAX_FLOWS, .modes = M(INCAST),
	  .help = "how many; spread over HOSTS" },
	{ "count", "K", OPT_INT, TO(cfg.count), 1, 1000000000, .modes = M(INCAST),
	  .help = "rounds (1)" },
	{ "period", "T", OPT_TIME, TO(cfg.period), .modes = M(INCAST),
	  .help = "a round every T; without it, when the last one is over" },
	{ "jitter", "T", OPT_TIME, TO(cfg.jitter), .modes = M(INCAST),
	  .help = "each request starts up to T after its round, at random (0)" },
	{ .help = "plan FILE: the traffic of a plan (labnet), in all of its namespaces" },
	{ "zero", "T", OPT_TIME, TO(given.zero), .modes = M(PLAN),
	  .help = "start at T of CLOCK_MONOTONIC (now)" },
	{ .help = "long, rpc and incast:" },
	{ "to", "HOSTS", OPT_TEXT, TO(given.to), .modes = CLIENTS,
	  .help = "servers: HOST[:PORT][,...]; [ADDR]:PORT for IPv6" },
	{ "size", "B", OPT_SIZE, TO(cfg.size), .modes = CLIENTS,
	  .help = "long: end each flow after B bytes; rpc, incast: size of each answer" },
	{ "duration", "T", OPT_TIME, TO(cfg.duration), .min = 1, .range = "more than 0",
	  .modes = M(LONG) | M(RPC),
	  .help = "long: end each flow T after its start; rpc: stop after T" },
	{ "seed", "N", OPT_INT, TO(cfg.seed), 0, UINT64_MAX, .modes = CLIENTS | M(PLAN),
	  .help = "of the random draws (1)" },
	{ "label", "STR", OPT_TEXT, TO(cfg.label), .max = MAX_LABEL, .modes = CLIENTS,
	  .help = "put into each line" },
	{ "start", "T", OPT_TIME, TO(cfg.start), .modes = CLIENTS,
	  .help = "wait before the first flow" },
	{ "timeout", "T", OPT_TIME, TO(cfg.timeout), .min = 1, .range = "more than 0",
	  .modes = CLIENTS, .help = "a flow that takes longer has failed (none)" },
	{ "out", "FILE", OPT_TEXT, TO(given.out_path), .modes = CLIENTS | M(PLAN),
	  .help = "instead of stdout" },
	{ .help = "all but plan:" },
	{ "port", "P", OPT_INT, TO(cfg.port), 1, 65535, .modes = SOCKETS,
	  .help = "of the server (5201)" },
	{ "cc", "NAME", OPT_CALL, .call = set_cc, .modes = SOCKETS,
	  .help = "congestion control, set before the handshake (the system's)" },
	{ "tos", "N", OPT_INT, TO(cfg.tos), 0, 255, .modes = SOCKETS,
	  .help = "TOS or traffic class, without ECN" },
	{ "dscp", "N", OPT_INT, TO(given.dscp), 0, 63, .modes = SOCKETS,
	  .help = "or its upper six bits" },
	{ "mss", "B", OPT_INT, TO(cfg.mss), 88, 32767, .modes = SOCKETS,
	  .help = "maximum segment size" },
	{ "sndbuf", "B", OPT_SIZE, TO(cfg.sndbuf), 4096, 1 << 30, "4Ki to 1Gi",
	  .modes = SOCKETS,
	  .help = "fixed socket buffer of the sender" },
	{ "rcvbuf", "B", OPT_SIZE, TO(cfg.rcvbuf), 4096, 1 << 30, "4Ki to 1Gi",
	  .modes = SOCKETS,
	  .help = "... and of the receiver" },
	{ .letter = '4', .type = OPT_CALL, .call = set_family, .modes = SOCKETS,
	  .help = "only IPv4" },
	{ .letter = '6', .type = OPT_CALL, .call = set_family, .modes = SOCKETS,
	  .help = "only IPv6" },
};

static const struct option_table table = {
	.program = "flowgen",
	.usage = "Usage:\n"
	"  flowgen serve  [OPTION...]\n"
	"  flowgen long   --to HOSTS (--duration T | --size B) [OPTION...]\n"
	"  flowgen rpc    --to HOSTS (--size B | --cdf FILE)\n"
	"                 (--rate R | --load BITRATE | --closed N) [OPTION...]\n"
	"  flowgen incast --to HOSTS --fan N --size B [OPTION...]\n"
	"  flowgen plan   FILE [OPTION...]\n"
	"\n",
	.notes = "\n"
	"Sizes are bytes with k, M, G, T (1000) or Ki, Mi, Gi, Ti (1024). Times need ns, us, ms or\n"
	"s. Rates need bit, kbit, mbit, gbit or tbit.\n"
	"Exit status: 0 all flows ok, 1 a flow failed, 2 bad usage.\n",
	.row = rows,
	.rows = ARRAY_SIZE(rows),
	.once = true,
};

/* HOST, HOST:PORT, [ADDR], [ADDR]:PORT, or a bare IPv6 address. @s is modified. */
static void parse_host(char *s)
{
	u16 port = cfg.port;
	char *colon = strchr(s, ':');
	char *host = s;
	char *rest = NULL;

	if (*s == '[') {
		char *end = strchr(s, ']');

		if (!end || (end[1] && end[1] != ':'))
			errx(2, "--to: '%s' is not [ADDR] or [ADDR]:PORT", s);
		host = s + 1;
		*end = 0;
		if (end[1])
			rest = end + 2;
	} else if (colon && colon == strrchr(s, ':')) {
		*colon = 0;
		rest = colon + 1;
	}
	if (rest)
		port = parse_int("--to: port", rest, 1, 65535);
	if (!*host)
		errx(2, "--to: an empty destination");
	cfg.host = xreallocarray(cfg.host, cfg.hosts + 1, sizeof(*cfg.host));
	addr_resolve(&cfg.host[cfg.hosts++], cfg.family, host, port, "--to");
}

static void parse_hosts(const char *list)
{
	char *copy, *s, *item;

	if (!list)
		errx(2, "%s needs --to", mode_name[cfg.mode]);
	copy = strdup(list);
	if (!copy)
		err(1, "memory");
	for (s = copy; (item = strsep(&s, ","));)
		parse_host(item);
	free(copy);
	cfg.paths = cfg.hosts;
	cfg.path = xcalloc(cfg.paths, sizeof(*cfg.path));
	for (unsigned int i = 0; i < cfg.paths; i++)
		cfg.path[i].host = i;
}

static void check_common(void)
{
	if (cfg.ready_fd >= 0 && fcntl(cfg.ready_fd, F_GETFD) < 0)
		errx(2, "--ready-fd: %d is not an open descriptor", cfg.ready_fd);
	if (cfg.tos >= 0 && given.dscp >= 0)
		errx(2, "--tos and --dscp exclude each other");
	if (cfg.tos > 0 && cfg.tos & 3)
		errx(2, "--tos: the two lowest bits are ECN, which TCP sets itself");
	if (given.dscp >= 0)
		cfg.tos = given.dscp << 2;
}

static void check_long(void)
{
	if (!cfg.size == !cfg.duration)
		errx(2, "long needs one of --duration and --size");
	if (cfg.duration && cfg.timeout)
		errx(2, "--timeout does not go with --duration, which ends the flow");
	cfg.pull = given.pull;
}

static void check_rpc(void)
{
	if (!cfg.size == !given.cdf)
		errx(2, "rpc needs one of --size and --cdf");
	if (!!cfg.rate + !!given.load + !!cfg.closed != 1)
		errx(2, "rpc needs one of --rate, --load and --closed");
	if (given.poisson + cfg.periodic + !!cfg.closed > 1)
		errx(2, "only one of --poisson, --periodic and --closed is possible");
	if (!given.requests && !cfg.duration)
		errx(2, "rpc needs --requests or --duration");
	if (cfg.print && cfg.closed)
		errx(2, "--plan does not go with --closed, where answers set the time");
	cfg.flows = given.requests ? given.requests : NEVER;
	cfg.pull = !given.push;
	if (cfg.first_byte && given.push)
		errx(2, "--first-byte is of answers: not with --push");
	if (given.cdf)
		cdf_load(&cfg.cdf, "--cdf", given.cdf);
	if (given.load)
		cfg.rate = given.load / 8 / (cfg.size ? (double)cfg.size : cfg.cdf.mean);
}

static void check_incast(void)
{
	if (!cfg.fan || !cfg.size)
		errx(2, "incast needs --fan and --size");
	cfg.pull = true;
	cfg.persist = true;
}

static void parse_mode(const char *s)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(mode_name); i++) {
		if (!strcmp(s, mode_name[i])) {
			cfg.mode = i;
			return;
		}
	}
	errx(2, "'%s' is not serve, long, rpc, incast or plan (see flowgen --help)", s);
}

static struct server server = { .cfg = &cfg };

void read_options(struct work *w, int argc, char **argv)
{
	int rest;

	if (argc < 2)
		errx(2, "say what to do: serve, long, rpc, incast or plan (see flowgen --help)");
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
		options_help(&table);
		exit(0);
	}
	if (!strcmp(argv[1], "--version")) {
		options_version(&table);
		exit(0);
	}
	parse_mode(argv[1]);
	rest = options_read(&table, argc - 1, argv + 1, M(cfg.mode), argv[1]);
	*w = (struct work){ .zero = given.zero, .out_path = given.out_path, .seed = cfg.seed };
	if (cfg.mode == PLAN) {
		if (rest == argc - 1)
			errx(2, "plan needs a file");
		w->plan = argv[1 + rest++];
	}
	if (rest < argc - 1)
		errx(2, "'%s' is one argument too many", argv[1 + rest]);
	check_common();
	switch (cfg.mode) {
	case UDP:
	case PROGRAM:
	case PLAN:
		return;
	case SERVE:
		w->server = &server;
		w->servers = 1;
		return;
	case LONG:
		check_long();
		break;
	case RPC:
		check_rpc();
		break;
	case INCAST:
		check_incast();
		break;
	}
	parse_hosts(given.to);
	w->client = &cfg;
	w->clients = 1;
}
