// SPDX-License-Identifier: GPL-2.0
/* The command line. Options that depend on each other are checked after all are read. */
#include <err.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "../common/alloc.h"
#include "../common/units.h"
#include "config.h"

#define DEFAULT_PORT	5201
#define MAX_FLOWS	1000000
#define MAX_LABEL	64		/* bytes */

const char *const mode_name[] = { "serve", "long", "rpc", "incast" };

struct config cfg = {
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
#define ANY		(CLIENTS | M(SERVE))

enum {
	O_HELP, O_PORT, O_CC, O_READY_FD, O_ONCE_IDLE, O_TO, O_FLOWS, O_STAGGER, O_DURATION,
	O_SIZE, O_PULL, O_PUSH, O_CDF, O_RATE, O_LOAD, O_CLOSED, O_POISSON, O_PERIODIC,
	O_REQUESTS, O_PERSIST, O_PLAN, O_FAN, O_COUNT, O_PERIOD, O_JITTER, O_SEED, O_LABEL,
	O_START, O_TIMEOUT, O_TOS, O_DSCP, O_MSS, O_SNDBUF, O_RCVBUF, O_OUT, O_INTERVAL,
	OPTIONS,
};

#define GETOPT_BASE	256		/* what getopt_long() returns for option 0 */

static const struct {
	const char *name;
	int has_arg;
	unsigned int modes;		/* in which the option is allowed */
} option_table[OPTIONS] = {
	[O_HELP] = { "help", no_argument, ANY },
	[O_PORT] = { "port", required_argument, ANY },
	[O_CC] = { "cc", required_argument, ANY },
	[O_READY_FD] = { "ready-fd", required_argument, M(SERVE) },
	[O_ONCE_IDLE] = { "once-idle", optional_argument, M(SERVE) },
	[O_TO] = { "to", required_argument, CLIENTS },
	[O_FLOWS] = { "flows", required_argument, M(LONG) },
	[O_STAGGER] = { "stagger", required_argument, M(LONG) },
	[O_DURATION] = { "duration", required_argument, M(LONG) | M(RPC) },
	[O_SIZE] = { "size", required_argument, CLIENTS },
	[O_PULL] = { "pull", no_argument, M(LONG) },
	[O_PUSH] = { "push", no_argument, M(RPC) },
	[O_CDF] = { "cdf", required_argument, M(RPC) },
	[O_RATE] = { "rate", required_argument, M(RPC) },
	[O_LOAD] = { "load", required_argument, M(RPC) },
	[O_CLOSED] = { "closed", required_argument, M(RPC) },
	[O_POISSON] = { "poisson", no_argument, M(RPC) },
	[O_PERIODIC] = { "periodic", no_argument, M(RPC) },
	[O_REQUESTS] = { "requests", required_argument, M(RPC) },
	[O_PERSIST] = { "persist", no_argument, M(RPC) },
	[O_PLAN] = { "plan", no_argument, M(RPC) },
	[O_FAN] = { "fan", required_argument, M(INCAST) },
	[O_COUNT] = { "count", required_argument, M(INCAST) },
	[O_PERIOD] = { "period", required_argument, M(INCAST) },
	[O_JITTER] = { "jitter", required_argument, M(INCAST) },
	[O_SEED] = { "seed", required_argument, CLIENTS },
	[O_LABEL] = { "label", required_argument, CLIENTS },
	[O_START] = { "start", required_argument, CLIENTS },
	[O_TIMEOUT] = { "timeout", required_argument, CLIENTS },
	[O_TOS] = { "tos", required_argument, ANY },
	[O_DSCP] = { "dscp", required_argument, ANY },
	[O_MSS] = { "mss", required_argument, ANY },
	[O_SNDBUF] = { "sndbuf", required_argument, ANY },
	[O_RCVBUF] = { "rcvbuf", required_argument, ANY },
	[O_OUT] = { "out", required_argument, CLIENTS },
	[O_INTERVAL] = { "interval", required_argument, M(LONG) },
};

static void help(void)
{
	fputs("Usage:\n"
	"  flowgen serve  [--port P] [--ready-fd N] [--once-idle[=T]] [common]\n"
	"  flowgen long   --to HOSTS (--duration T | --size B) [--flows N] [--stagger T] [--pull]\n"
	"                 [--interval T] [client] [common]\n"
	"  flowgen rpc    --to HOSTS (--size B | --cdf FILE)\n"
	"                 (--rate PER_SECOND | --load BITRATE | --closed N) [--poisson | --periodic]\n"
	"                 [--requests N] [--duration T] [--persist] [--push] [--plan]\n"
	"                 [client] [common]\n"
	"  flowgen incast --to HOSTS --fan N --size B [--count K] [--period T] [--jitter T]\n"
	"                 [client] [common]\n"
	"  flowgen --version\n"
	"\n"
	"serve: answer requests until SIGTERM or SIGINT; prints \"ready\" when listening\n"
	"  --ready-fd N      write \"ready\" to this descriptor instead of stdout\n"
	"  --once-idle[=T]   exit when no connection has been left for T (1s)\n"
	"long: bulk transfers, this side sends\n"
	"  --flows N         how many (1); flow i goes to host i modulo their number\n"
	"  --stagger T       start one every T\n"
	"  --duration T      end each flow T after its start; its size: the acknowledged bytes\n"
	"  --size B          or end each after B bytes\n"
	"  --pull            the server sends\n"
	"  --interval T      progress lines as well\n"
	"rpc: requests, the server answers with data; one connection each\n"
	"  --size B, --cdf FILE          size of the answers: fixed, or drawn\n"
	"  --rate R, --load BITRATE      requests per second, or as many as make that load\n"
	"  --poisson, --periodic         time between them: exponential (the rule), or even\n"
	"  --closed N                    or keep N outstanding\n"
	"  --requests N, --duration T    stop after so many, or so long\n"
	"  --persist         use connections again\n"
	"  --push            this side sends the data, the server answers with one byte\n"
	"  --plan            print what would be requested when, and do nothing\n"
	"incast: N requests at one instant, on connections made before\n"
	"  --fan N           how many; spread over HOSTS\n"
	"  --size B          each answer\n"
	"  --count K         rounds (1)\n"
	"  --period T        a round every T; without it, when the last one is over\n"
	"  --jitter T        each request starts up to T after its round, at random (0)\n"
	"client: options of long, rpc and incast\n"
	"  --to HOST[:PORT][,...]   servers; [ADDR]:PORT for IPv6\n"
	"  --seed N          of the random draws (1)\n"
	"  --label STR       put into each line\n"
	"  --start T         wait before the first flow\n"
	"  --timeout T       a flow that takes longer has failed (none)\n"
	"  --out FILE        instead of stdout\n"
	"common:\n"
	"  --port P          5201\n"
	"  --cc NAME         congestion control, set before the handshake\n"
	"  --tos N, --dscp N, --mss B, --sndbuf B, --rcvbuf B, -4, -6\n"
	"\n"
	"Sizes are bytes with k, M, G, T (1000) or Ki, Mi, Gi, Ti (1024). Times need ns, us, ms or\n"
	"s. Rates need bit, kbit, mbit, gbit or tbit.\n"
	"Exit status: 0 all flows ok, 1 a flow failed, 2 bad usage.\n", stdout);
}

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
}

/* Options given, for checks that involve more than one. */
static struct {
	const char *to, *cdf;
	double load;
	bool seen[OPTIONS];
} given;

static bool has(int opt)
{
	return given.seen[opt];
}

static void parse_option(int opt, const char *name, const char *arg)
{
	switch (opt) {
	case O_PORT:
		cfg.port = parse_int(name, arg, 1, 65535);
		break;
	case O_CC:
		if (!*arg || strlen(arg) >= CC_LEN)
			errx(2, "%s: '%s' is not a congestion control's name", name, arg);
		cfg.cc = arg;
		break;
	case O_READY_FD:
		cfg.ready_fd = parse_int(name, arg, 0, INT_MAX);
		if (fcntl(cfg.ready_fd, F_GETFD) < 0)
			errx(2, "%s: %s is not an open descriptor", name, arg);
		break;
	case O_ONCE_IDLE:
		cfg.once_idle = true;
		cfg.idle_ns = arg ? parse_time(name, arg) : NSEC;
		if (cfg.idle_ns > 86400 * NSEC)
			errx(2, "%s: '%s' is more than a day", name, arg);
		break;
	case O_TO:
		given.to = arg;
		break;
	case O_FLOWS:
		cfg.flows = parse_int(name, arg, 1, MAX_FLOWS);
		break;
	case O_STAGGER:
		cfg.stagger = parse_time(name, arg);
		break;
	case O_DURATION:
		cfg.duration = parse_time(name, arg);
		if (!cfg.duration)
			errx(2, "%s: must be more than 0", name);
		break;
	case O_SIZE:
		cfg.size = parse_size(name, arg);
		break;
	case O_CDF:
		given.cdf = arg;
		break;
	case O_RATE:
		cfg.rate = parse_frequency(name, arg);
		break;
	case O_LOAD:
		given.load = parse_rate(name, arg, false);
		break;
	case O_CLOSED:
		cfg.closed = parse_int(name, arg, 1, MAX_FLOWS);
		break;
	case O_PERIODIC:
		cfg.periodic = true;
		break;
	case O_REQUESTS:
		cfg.flows = parse_int(name, arg, 1, 1000000000000ULL);
		break;
	case O_PERSIST:
		cfg.persist = true;
		break;
	case O_PLAN:
		cfg.plan = true;
		break;
	case O_FAN:
		cfg.fan = parse_int(name, arg, 1, MAX_FLOWS);
		break;
	case O_COUNT:
		cfg.count = parse_int(name, arg, 1, 1000000000);
		break;
	case O_PERIOD:
		cfg.period = parse_time(name, arg);
		break;
	case O_JITTER:
		cfg.jitter = parse_time(name, arg);
		break;
	case O_SEED:
		cfg.seed = parse_int(name, arg, 0, UINT64_MAX);
		break;
	case O_LABEL:
		if (strlen(arg) > MAX_LABEL)
			errx(2, "%s: longer than %d bytes", name, MAX_LABEL);
		cfg.label = arg;
		break;
	case O_START:
		cfg.start = parse_time(name, arg);
		break;
	case O_TIMEOUT:
		cfg.timeout = parse_time(name, arg);
		if (!cfg.timeout)
			errx(2, "%s: must be more than 0", name);
		break;
	case O_TOS:
		cfg.tos = parse_int(name, arg, 0, 255);
		if (cfg.tos & 3)
			errx(2, "%s: the two lowest bits are ECN, which TCP sets itself", name);
		break;
	case O_DSCP:
		cfg.tos = parse_int(name, arg, 0, 63) << 2;
		break;
	case O_MSS:
		cfg.mss = parse_int(name, arg, 88, 32767);
		break;
	case O_SNDBUF:
	case O_RCVBUF: {
		u64 val = parse_size(name, arg);

		if (val < 4096 || val > 1 << 30)
			errx(2, "%s: '%s' is out of range (4Ki to 1Gi)", name, arg);
		*(opt == O_SNDBUF ? &cfg.sndbuf : &cfg.rcvbuf) = val;
		break;
	}
	case O_OUT:
		cfg.out_path = arg;
		break;
	case O_INTERVAL:
		cfg.interval = parse_time(name, arg);
		if (cfg.interval < 10000)
			errx(2, "%s: must be 10us or more", name);
		break;
	}
}

static void check_long(void)
{
	if (has(O_SIZE) == has(O_DURATION))
		errx(2, "long needs one of --duration and --size");
	if (cfg.duration && cfg.timeout)
		errx(2, "--timeout does not go with --duration, which ends the flow");
	cfg.pull = has(O_PULL);
}

static void check_rpc(void)
{
	double mean;

	if (has(O_SIZE) == has(O_CDF))
		errx(2, "rpc needs one of --size and --cdf");
	if (has(O_RATE) + has(O_LOAD) + has(O_CLOSED) != 1)
		errx(2, "rpc needs one of --rate, --load and --closed");
	if (has(O_POISSON) + has(O_PERIODIC) + has(O_CLOSED) > 1)
		errx(2, "only one of --poisson, --periodic and --closed is possible");
	if (!has(O_REQUESTS) && !has(O_DURATION))
		errx(2, "rpc needs --requests or --duration");
	if (cfg.plan && cfg.closed)
		errx(2, "--plan does not go with --closed, where answers set the time");
	if (!has(O_REQUESTS))
		cfg.flows = NEVER;
	cfg.pull = !has(O_PUSH);
	if (given.cdf)
		cdf_load(&cfg.cdf, given.cdf);
	mean = cfg.size ? (double)cfg.size : cfg.cdf.mean;
	if (has(O_LOAD))
		cfg.rate = given.load / 8 / mean;
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
	errx(2, "'%s' is not serve, long, rpc or incast (see flowgen --help)", s);
}

static void fill_options(struct option *o)
{
	for (int i = 0; i < OPTIONS; i++)
		*o++ = (struct option) {
			option_table[i].name, option_table[i].has_arg, NULL, GETOPT_BASE + i
		};
	*o = (struct option) { 0 };
}

static void parse_command_line(int argc, char **argv)
{
	struct option options[OPTIONS + 1];
	char name[32];
	int opt;

	fill_options(options);
	opterr = 0;
	while ((opt = getopt_long(argc, argv, "+:46h", options, NULL)) >= 0) {
		switch (opt) {
		case 'h':
		case GETOPT_BASE + O_HELP:
			help();
			exit(0);
		case '4':
		case '6':
			if (cfg.family)
				errx(2, "-4 and -6 exclude each other");
			cfg.family = opt == '4' ? AF_INET : AF_INET6;
			continue;
		case ':':
			errx(2, "%s needs a value", argv[optind - 1]);
		case '?':
			errx(2, "unknown option '%s' (see flowgen --help)", argv[optind - 1]);
		}
		opt -= GETOPT_BASE;
		snprintf(name, sizeof(name), "--%s", option_table[opt].name);
		if (!(option_table[opt].modes & M(cfg.mode)))
			errx(2, "%s has no place in %s", name, mode_name[cfg.mode]);
		if (given.seen[opt])
			errx(2, "%s is given twice", name);
		given.seen[opt] = true;
		parse_option(opt, name, optarg);
	}
	if (optind < argc)
		errx(2, "'%s' is one argument too many", argv[optind]);
	if (has(O_TOS) && has(O_DSCP))
		errx(2, "--tos and --dscp exclude each other");
}

void read_options(int argc, char **argv)
{
	if (argc < 2)
		errx(2, "say what to do: serve, long, rpc or incast (see flowgen --help)");
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
		help();
		exit(0);
	}
	if (!strcmp(argv[1], "--version")) {
		puts("flowgen " LOWQ_VERSION);
		exit(0);
	}
	parse_mode(argv[1]);
	parse_command_line(argc - 1, argv + 1);
	switch (cfg.mode) {
	case SERVE:
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
}
