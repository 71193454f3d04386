// SPDX-License-Identifier: GPL-2.0
/*
 * flowgen - traffic source and sink for measuring congestion controls
 *
 *	flowgen serve			answers requests
 *	flowgen long | rpc | incast	asks for them, one line of JSON per finished flow
 *
 * One process, one epoll, no threads. What it costs per megabyte matters more than usual: in a
 * simulation where the kernel runs in virtual time, a system call or a wake-up is what costs
 * real time. Hence:
 *
 *  - The receiver sleeps until SO_RCVLOWAT bytes are queued (or all that is missing, if that is
 *    less), then discards them with one recv(MSG_TRUNC), which copies nothing.
 *  - The sender hands over megabytes with one sendmsg() of one small buffer repeated, and sleeps
 *    until TCP_NOTSENT_LOWAT says that half of it has left.
 *  - Sockets are registered edge-triggered, once. A short read or a short write means "empty" or
 *    "full"; there is no second call to hear EAGAIN.
 *    (User-Mode Linux in virtual time also lets 1 us pass whenever a call returns an error. The
 *    one that cannot be avoided is the EINPROGRESS of connect().)
 *  - Nothing polls. All waiting is in epoll_wait() without a timeout; a timerfd with absolute
 *    expiry (no timer slack) wakes it. The clock is read when a flow starts and when it ends.
 *
 * A request is 16 bytes, struct wire. PULL: the server answers with size bytes. PUSH: size bytes
 * follow the request and the server answers with one byte. Requests on one connection follow one
 * another; they do not overlap. A header that is not exactly right ends its connection.
 *
 * Clients close with a reset (SO_LINGER 0). By then every byte that counts has been acknowledged
 * or given up; what a reset saves is the draining of a long flow's buffers, and TIME_WAIT, which
 * would use up the ports after 28,000 short connections.
 */
#define _GNU_SOURCE
#define __SANE_USERSPACE_TYPES__
#include <arpa/inet.h>
#include <ctype.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <linux/tcp.h>
#include <linux/types.h>
#include <math.h>
#include <netdb.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#ifndef SO_BUF_LOCK
#define SO_BUF_LOCK	72
#endif
#ifndef SOCK_RCVBUF_LOCK
#define SOCK_RCVBUF_LOCK 2
#endif

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define NSEC		1000000000ULL
#define NEVER		UINT64_MAX	/* a time that does not come */
#define UNLIMITED	UINT64_MAX	/* a size: until the client closes */
#define SIZE_LIMIT	0x1000000000000000ULL
#define DEFAULT_PORT	5201
#define CC_LEN		16		/* TCP_CA_NAME_MAX */
#define MAX_FLOWS	1000000

/* Wake-ups: fewer with larger values; all connections together queue about SHARED_BYTES. */
#define RX_LOWAT_MAX	(1024U << 10)
#define TX_LOWAT_MAX	(4096U << 10)
#define LOWAT_MIN	(64U << 10)
#define SHARED_BYTES	(131072U << 10)
#define RX_UNTUNED	(32U << 10)	/* a new socket's receive buffer is good for this */
#define TX_UNTUNED	(64U << 10)	/* less than this is one sendmsg(), or nearly */
#define ONE_SEGMENT	1400U

#define EVENTS		256		/* taken from epoll at a time */
#define HANDSHAKES	256		/* under way at once when connections are made ahead */
#define RETRY_NS	1000000ULL	/* rpc --closed: pause of a slot after a failure */

static const char prog[] = "flowgen";

/* ---- errors ---------------------------------------------------------------------------- */

/* Bad input or an impossible wish: one line, and nothing has been done. */
__attribute__((format(printf, 1, 2)))
static _Noreturn void refuse(const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "%s: ", prog);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(2);
}

/* Something failed underneath us. */
static _Noreturn void fail(const char *what)
{
	fprintf(stderr, "%s: %s: %s\n", prog, what, strerror(errno));
	exit(1);
}

static void *xcalloc(size_t n, size_t size)
{
	void *p = calloc(n, size);

	if (!p)
		fail("memory");
	return p;
}

/* ---- time ------------------------------------------------------------------------------ */

static __u64 real_minus_mono;	/* added to a time for output */

static __u64 clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return ts.tv_sec * NSEC + ts.tv_nsec;
}

/* Times are CLOCK_MONOTONIC, so that a step of the wall clock does not bend a duration. */
static __u64 now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* ---- random numbers -------------------------------------------------------------------- */

/* splitmix64. One stream for each use, so that drawing more of one does not change another. */
struct rng {
	__u64 state;
};

static __u64 rng_next(struct rng *r)
{
	__u64 z = r->state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

static void rng_seed(struct rng *r, __u64 seed, __u64 stream)
{
	r->state = stream;
	r->state = seed ^ rng_next(r);
	r->state = rng_next(r);
}

/* Uniform in [0, 1). */
static double rng_unit(struct rng *r)
{
	return (rng_next(r) >> 11) / 9007199254740992.0;	/* 2^53 */
}

/* ---- numbers with units ---------------------------------------------------------------- */

struct unit {
	const char *name;
	double factor;
};

static const struct unit size_units[] = {
	{ "", 1 }, { "k", 1e3 }, { "K", 1e3 }, { "M", 1e6 }, { "G", 1e9 }, { "T", 1e12 },
	{ "Ki", 1LL << 10 }, { "Mi", 1LL << 20 }, { "Gi", 1LL << 30 }, { "Ti", 1LL << 40 },
	{ NULL, 0 },
};

static const struct unit time_units[] = {
	{ "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 }, { NULL, 0 },
};

static const struct unit rate_units[] = {
	{ "bit", 1 }, { "kbit", 1e3 }, { "mbit", 1e6 }, { "gbit", 1e9 }, { "tbit", 1e12 },
	{ NULL, 0 },
};

/* The leading decimal number of @s; *@end is what follows. No sign, exponent, hex, inf, nan. */
static bool parse_decimal(const char *s, double *val, const char **end)
{
	size_t digits = strspn(s, "0123456789.");
	char buf[64];
	char *stop;

	if (!digits || digits >= sizeof(buf))
		return false;
	memcpy(buf, s, digits);
	buf[digits] = 0;
	*val = strtod(buf, &stop);
	*end = s + digits;
	return !*stop && isdigit((unsigned char)buf[strcspn(buf, "0123456789")]);
}

static double parse_units(const char *opt, const char *s, const struct unit *u,
			  int (*cmp)(const char *, const char *), const char *wanted)
{
	const char *end;
	double val;

	if (!parse_decimal(s, &val, &end))
		refuse("%s: '%s' is not %s", opt, s, wanted);
	for (; u->name; u++)
		if (!cmp(end, u->name))
			return val * u->factor;
	refuse(*end ? "%s: '%s' has an unknown unit, want %s" : "%s: '%s' has no unit, want %s",
	       opt, s, wanted);
}

static __u64 parse_size(const char *opt, const char *s)
{
	static const char wanted[] = "a size in bytes such as 1448, 20k or 4Mi";
	char buf[72];
	size_t len = strlen(s);
	double val;

	/* A final B is decoration: 20kB, 4MiB. */
	if (len > 1 && len < sizeof(buf) && s[len - 1] == 'B') {
		memcpy(buf, s, len - 1);
		buf[len - 1] = 0;
		val = parse_units(opt, buf, size_units, strcmp, wanted);
	} else {
		val = parse_units(opt, s, size_units, strcmp, wanted);
	}
	if (val < 1 || val > (double)SIZE_LIMIT)
		refuse("%s: '%s' is out of range (1 byte to 2^60)", opt, s);
	return (__u64)(val + 0.5);
}

static __u64 parse_time(const char *opt, const char *s)
{
	double val;

	if (!strcmp(s, "0"))
		return 0;
	val = parse_units(opt, s, time_units, strcmp, "a time such as 10us, 1.5ms or 2s");
	if (val > 1e17)
		refuse("%s: '%s' is too long", opt, s);
	return (__u64)(val + 0.5);
}

static double parse_rate(const char *opt, const char *s)
{
	double val = parse_units(opt, s, rate_units, strcasecmp,
				 "a rate such as 800kbit, 40mbit or 2.5gbit");

	if (val < 1 || val > 1e15)
		refuse("%s: '%s' is out of range (1bit to 1000tbit)", opt, s);
	return val;
}

static __u64 parse_int(const char *opt, const char *s, __u64 min, __u64 max)
{
	unsigned long long val;
	char *end;

	errno = 0;
	val = strtoull(s, &end, 10);
	if (!isdigit((unsigned char)*s) || *end || errno || val < min || val > max)
		refuse("%s: '%s' is not a whole number from %llu to %llu",
		       opt, s, min, max);
	return val;
}

/* ---- flow size distribution ------------------------------------------------------------ */

struct cdf {
	size_t n;
	double *bytes;
	double *frac;
	double mean;
};

/* Two columns, bytes and the fraction of flows that are no larger; straight lines between. */
static void cdf_load(struct cdf *c, const char *path)
{
	FILE *fp = fopen(path, "re");
	size_t room = 0, len = 0, no = 0;
	char *line = NULL;
	double b, f;
	char junk;
	int got;

	if (!fp)
		refuse("--cdf: %s: %s", path, strerror(errno));
	while (getline(&line, &len, fp) >= 0) {
		no++;
		line[strcspn(line, "#\n")] = 0;
		if (!line[strspn(line, " \t\r")])
			continue;
		got = sscanf(line, "%lf %lf %c", &b, &f, &junk);
		if (got != 2)
			refuse("--cdf: %s:%zu: want two numbers, bytes and fraction", path, no);
		if (!(b >= 0 && b <= (double)SIZE_LIMIT))
			refuse("--cdf: %s:%zu: bytes out of range", path, no);
		if (!(f >= 0 && f <= 1))
			refuse("--cdf: %s:%zu: the fraction must be from 0 to 1", path, no);
		if (c->n && (b < c->bytes[c->n - 1] || f < c->frac[c->n - 1]))
			refuse("--cdf: %s:%zu: bytes and fraction must not fall", path, no);
		if (c->n == room) {
			room = room ? 2 * room : 32;
			c->bytes = realloc(c->bytes, room * sizeof(double));
			c->frac = realloc(c->frac, room * sizeof(double));
			if (!c->bytes || !c->frac)
				fail("memory");
		}
		c->bytes[c->n] = b;
		c->frac[c->n] = f;
		/* The first point, if above 0, is a lump of flows of that size. */
		c->mean += c->n ? (f - c->frac[c->n - 1]) * (b + c->bytes[c->n - 1]) / 2 : f * b;
		c->n++;
	}
	if (ferror(fp))
		refuse("--cdf: %s: %s", path, strerror(errno));
	free(line);
	fclose(fp);
	if (!c->n)
		refuse("--cdf: %s: no points in it", path);
	if (c->frac[c->n - 1] != 1)
		refuse("--cdf: %s: the last fraction is %g, want 1", path, c->frac[c->n - 1]);
	if (c->bytes[c->n - 1] < 1)
		refuse("--cdf: %s: no flow is larger than 0 bytes", path);
}

static __u64 cdf_draw(const struct cdf *c, double u)
{
	size_t lo = 0, hi = c->n - 1;	/* the first point with frac > u lies in (lo, hi] */
	double b;

	if (u < c->frac[0] || !hi) {
		b = c->bytes[0];
	} else {
		while (hi - lo > 1) {
			size_t mid = lo + (hi - lo) / 2;

			if (c->frac[mid] > u)
				hi = mid;
			else
				lo = mid;
		}
		b = c->bytes[lo] + (u - c->frac[lo]) / (c->frac[hi] - c->frac[lo]) *
				   (c->bytes[hi] - c->bytes[lo]);
	}
	return b < 1 ? 1 : (__u64)(b + 0.5);
}

/* ---- configuration --------------------------------------------------------------------- */

enum mode { SERVE, LONG, RPC, INCAST };

static const char *const mode_name[] = { "serve", "long", "rpc", "incast" };

union addr {
	struct sockaddr sa;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static struct {
	enum mode mode;
	int family;			/* AF_UNSPEC, AF_INET, AF_INET6 */
	__u16 port;
	const char *cc;
	int tos;			/* -1: leave */
	int mss;			/* 0: leave, as for the two buffers */
	int sndbuf, rcvbuf;
	/* serve */
	const char *bind;
	int ready_fd;
	bool once_idle;
	__u64 idle_ns;
	/* clients */
	union addr *host;
	unsigned int hosts;
	bool pull;
	__u64 size;			/* 0: not given, draw from cdf */
	struct cdf cdf;
	__u64 seed;
	char label[512];		/* as JSON */
	__u64 start, timeout, interval;
	__u64 duration;			/* 0: not given */
	__u64 flows;			/* long: how many; rpc: how many requests or NEVER */
	__u64 stagger;
	double rate;			/* rpc: requests per second */
	bool periodic, persist, plan;
	unsigned int closed;
	unsigned int fan;
	__u64 count, period;
	FILE *out;
} cfg = {
	.port = DEFAULT_PORT,
	.tos = -1,
	.ready_fd = -1,
	.seed = 1,
	.flows = 1,
	.count = 1,
};

static struct {
	unsigned int fresh;		/* a new socket's SO_SNDBUF, 0: leave send buffers alone */
	unsigned int most;		/* what SO_SNDBUF can raise it to */
	unsigned int autotuned;		/* what the kernel may let it grow to by itself */
} sndbuf;
static unsigned int live;		/* connections open */
static unsigned int planned;		/* connections that will be, as far as known */

/* ---- sockets --------------------------------------------------------------------------- */

static socklen_t addr_len(const union addr *a)
{
	return a->sa.sa_family == AF_INET6 ? sizeof(a->v6) : sizeof(a->v4);
}

static unsigned int addr_port(const union addr *a)
{
	return ntohs(a->sa.sa_family == AF_INET6 ? a->v6.sin6_port : a->v4.sin_port);
}

static const char *addr_text(const union addr *a, char *buf, size_t len)
{
	const void *ip = a->sa.sa_family == AF_INET6 ? (const void *)&a->v6.sin6_addr
						     : (const void *)&a->v4.sin_addr;

	return inet_ntop(a->sa.sa_family, ip, buf, len) ? buf : "";
}

static int set_int(int fd, int level, int opt, int val)
{
	return setsockopt(fd, level, opt, &val, sizeof(val));
}

static int get_int(int fd, int level, int opt)
{
	int val = 0;
	socklen_t len = sizeof(val);

	return getsockopt(fd, level, opt, &val, &len) ? -1 : val;
}

static void set_buf(int fd, int force, int opt, int val)
{
	if (set_int(fd, SOL_SOCKET, force, val))
		set_int(fd, SOL_SOCKET, opt, val);
}

/*
 * What was asked for on the command line. Must come before connect() or listen(): whether the
 * handshake negotiates ECN depends on the congestion control. The name of what failed, or NULL.
 */
static const char *socket_options(int fd, int family)
{
	if (cfg.cc && setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, cfg.cc, strlen(cfg.cc)))
		return "--cc";
	if (cfg.mss && set_int(fd, IPPROTO_TCP, TCP_MAXSEG, cfg.mss))
		return "--mss";
	if (cfg.tos >= 0 && (family == AF_INET6 ?
			     set_int(fd, IPPROTO_IPV6, IPV6_TCLASS, cfg.tos) :
			     set_int(fd, IPPROTO_IP, IP_TOS, cfg.tos)))
		return "--tos";
	if (cfg.sndbuf)
		set_buf(fd, SO_SNDBUFFORCE, SO_SNDBUF, cfg.sndbuf);
	if (cfg.rcvbuf)
		set_buf(fd, SO_RCVBUFFORCE, SO_RCVBUF, cfg.rcvbuf);
	return NULL;
}

static void probe_sndbuf(int fd)
{
	FILE *fp = fopen("/proc/sys/net/ipv4/tcp_wmem", "re");

	sndbuf.autotuned = UINT_MAX;
	if (fp) {
		if (fscanf(fp, "%*u %*u %u", &sndbuf.autotuned) != 1)
			sndbuf.autotuned = UINT_MAX;
		fclose(fp);
	}
	if (!cfg.sndbuf)
		sndbuf.fresh = get_int(fd, SOL_SOCKET, SO_SNDBUF);
	set_buf(fd, SO_SNDBUFFORCE, SO_SNDBUF, 2 * TX_LOWAT_MAX);
	sndbuf.most = get_int(fd, SOL_SOCKET, SO_SNDBUF);
	/* Linux before 5.15 cannot lift the lock. */
	if (set_int(fd, SOL_SOCKET, SO_BUF_LOCK, 0))
		sndbuf.fresh = 0;
}

/* Try it all on a socket that goes nowhere, so that a mistake shows before anything is done. */
static void probe_options(int family)
{
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const char *bad;
	int got;

	if (fd < 0)
		fail("socket");
	probe_sndbuf(fd);
	bad = socket_options(fd, family);
	if (bad && errno == ENOENT)
		refuse("%s: no congestion control '%s' in this kernel", bad, cfg.cc);
	if (bad && errno == EPERM)
		refuse("%s: '%s' is not for this user (net.ipv4.tcp_allowed_congestion_control)",
		       bad, cfg.cc);
	if (bad)
		refuse("%s: %s", bad, strerror(errno));
	/* The kernel keeps double of what is asked, to allow for its own overhead. */
	got = get_int(fd, SOL_SOCKET, SO_SNDBUF);
	if (cfg.sndbuf && got < 2 * cfg.sndbuf)
		fprintf(stderr, "%s: --sndbuf: the kernel gives %d only (net.core.wmem_max)\n",
			prog, got / 2);
	got = get_int(fd, SOL_SOCKET, SO_RCVBUF);
	if (cfg.rcvbuf && got < 2 * cfg.rcvbuf)
		fprintf(stderr, "%s: --rcvbuf: the kernel gives %d only (net.core.rmem_max)\n",
			prog, got / 2);
	close(fd);
}

static void raise_file_limit(void)
{
	struct rlimit lim = { .rlim_cur = 1 << 20, .rlim_max = 1 << 20 };

	if (setrlimit(RLIMIT_NOFILE, &lim)) {
		getrlimit(RLIMIT_NOFILE, &lim);
		lim.rlim_cur = lim.rlim_max;
		setrlimit(RLIMIT_NOFILE, &lim);
	}
	getrlimit(RLIMIT_NOFILE, &lim);
	if (planned + 16 > lim.rlim_cur)
		refuse("%u connections need more open files than the limit of %llu",
		       planned, (__u64)lim.rlim_cur);
}

/* One connection's part of SHARED_BYTES. */
static __u32 shared(__u32 max)
{
	unsigned int n = live > planned ? live : planned;
	__u32 part = SHARED_BYTES / (n ? n : 1);

	if (part < LOWAT_MIN)
		part = LOWAT_MIN;
	return part < max ? part : max;
}

static __u32 min_u64(__u64 a, __u32 b)
{
	return a < b ? a : b;
}

enum { BROKEN = -2, CLOSED = -1, BLOCKED = 0, DONE = 1 };

/*
 * Receiving. @left bytes are expected and thrown away. The low-water mark stays well below what
 * the receive buffer holds, else the window would close while the reader sleeps.
 */
struct rx {
	__u64 left;
	__u32 lowat;		/* in force on the socket */
	__u32 room;		/* an eighth of the receive buffer; 0 if it is as it came */
};

static void rx_lowat(int fd, struct rx *rx, __u32 val)
{
	if (val != rx->lowat && !set_int(fd, SOL_SOCKET, SO_RCVLOWAT, val))
		rx->lowat = val;
}

/*
 * The kernel sizes the receive buffer by what is read per round trip. Of a reader that sleeps
 * through many round trips it gets a wrong idea, and the window would hold the sender up. So open
 * it at once as far as net.ipv4.tcp_rmem allows: setting a mark enlarges the buffer to fit it.
 */
static void rx_open(int fd, struct rx *rx)
{
	int buf;

	if (!cfg.rcvbuf)
		rx_lowat(fd, rx, INT_MAX / 2);
	buf = get_int(fd, SOL_SOCKET, SO_RCVBUF);
	rx->room = buf / 8;
	if (buf < 0 || rx->room < RX_UNTUNED)
		rx->room = RX_UNTUNED;
}

static void rx_expect(int fd, struct rx *rx, __u64 n)
{
	__u32 want = min_u64(n, shared(RX_LOWAT_MAX));

	rx->left = n;
	if (want > RX_UNTUNED && !rx->room)
		rx_open(fd, rx);
	if (want > RX_UNTUNED && want > rx->room)
		want = rx->room;
	if (want > ONE_SEGMENT || rx->lowat > want)
		rx_lowat(fd, rx, want);
}

static int rx_drain(int fd, struct rx *rx)
{
	size_t len;
	ssize_t n;

	do {
		len = min_u64(rx->left, 1U << 30);
		n = recv(fd, NULL, len, MSG_TRUNC | MSG_DONTWAIT);
		if (n < 0)
			return errno == EAGAIN || errno == EINTR ? BLOCKED : BROKEN;
		if (!n)
			return CLOSED;
		rx->left -= n;
	} while (rx->left && (size_t)n == len);

	if (!rx->left)
		return DONE;
	if (rx->left < rx->lowat)
		rx_lowat(fd, rx, rx->left);
	else if (rx->lowat / 2 > shared(RX_LOWAT_MAX))
		rx_lowat(fd, rx, shared(RX_LOWAT_MAX));
	return BLOCKED;
}

/*
 * Sending. One buffer of zeros, named many times over by the vector.
 */
struct wire {			/* a request; big endian */
	__u32 magic;
	__u8 version;
	__u8 op;
	__u8 flags;
	__u8 zero;
	__u64 size;
};

#define WIRE_MAGIC	0x4c514647	/* LQFG */
#define WIRE_VERSION	1
#define WIRE_LAST	1		/* flag: no request follows on this connection */

enum { OP_PULL = 1, OP_PUSH = 2 };

struct tx {
	__u64 left;
	__u32 lowat;		/* TCP_NOTSENT_LOWAT, 0: not set */
};

#define TX_VECS		64
static char tx_data[128 << 10];

/*
 * A large transfer needs few wake-ups: let much be queued and not sent, and enlarge the send
 * buffer to hold that. SO_SNDBUF stops the kernel's own growth of the buffer, so lift that lock
 * again where the kernel could grow it further than this.
 */
static void tx_tune(int fd, struct tx *tx)
{
	__u32 buf;

	if (tx->lowat || tx->left <= TX_UNTUNED)
		return;
	tx->lowat = shared(TX_LOWAT_MAX);
	set_int(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, tx->lowat);
	buf = min_u64(sndbuf.most, 4 * tx->lowat);
	if (!sndbuf.fresh || buf <= sndbuf.fresh)
		return;
	set_buf(fd, SO_SNDBUFFORCE, SO_SNDBUF, buf / 2);
	if (buf < sndbuf.autotuned)
		set_int(fd, SOL_SOCKET, SO_BUF_LOCK, cfg.rcvbuf ? SOCK_RCVBUF_LOCK : 0);
}

/* @head: the last *@head_left bytes of a struct wire go first. */
static int tx_pump(int fd, struct tx *tx, const struct wire *head, __u8 *head_left)
{
	struct iovec vec[TX_VECS + 1];
	struct msghdr msg = { .msg_iov = vec };
	__u64 body;
	size_t total, h;
	ssize_t n;

	do {
		h = head_left ? *head_left : 0;
		total = h;
		msg.msg_iovlen = 0;
		if (h)
			vec[msg.msg_iovlen++] = (struct iovec) {
				.iov_base = (char *)head + sizeof(*head) - h,
				.iov_len = h,
			};
		for (body = tx->left; body && msg.msg_iovlen < ARRAY_SIZE(vec);) {
			size_t part = min_u64(body, sizeof(tx_data));

			vec[msg.msg_iovlen++] = (struct iovec) {
				.iov_base = tx_data,
				.iov_len = part,
			};
			body -= part;
			total += part;
		}
		n = sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0)
			return errno == EAGAIN || errno == EINTR ? BLOCKED : BROKEN;
		if (h) {
			size_t took = (size_t)n < h ? (size_t)n : h;

			*head_left -= took;
			tx->left -= n - took;
		} else {
			tx->left -= n;
		}
	} while (tx->left && (size_t)n == total);

	if (!tx->left && !(head_left && *head_left))
		return DONE;
	if (tx->lowat / 2 > shared(TX_LOWAT_MAX)) {
		tx->lowat = shared(TX_LOWAT_MAX);
		set_int(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, tx->lowat);
	}
	return BLOCKED;
}

/* ---- epoll ----------------------------------------------------------------------------- */

static int epfd;

static void watch(int op, int fd, __u32 events, void *who)
{
	struct epoll_event ev = { .events = events, .data.ptr = who };

	if (epoll_ctl(epfd, op, fd, &ev))
		fail("epoll_ctl");
}

static int open_signals(void)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (fd < 0)
		fail("signalfd");
	return fd;
}

/* ---- serve ----------------------------------------------------------------------------- */

enum { S_HEAD, S_RECV, S_SEND };

struct conn {
	struct conn *next;		/* free or dead list */
	int fd;				/* -1: closed, events of this batch are stale */
	__u8 state;
	__u8 got;			/* bytes of head */
	bool out_watched;
	bool in_missed;			/* input came while sending; edge-triggered, so noted */
	bool last;
	struct rx rx;
	struct tx tx;
	struct wire head;
};

static struct {
	struct conn *free, *dead;
	int fd[2];
	int fds;
	bool stalled;			/* out of files or memory: not accepting */
	bool served;
	unsigned int complaints;
} srv;

static void srv_listen_events(__u32 events)
{
	for (int i = 0; i < srv.fds; i++)
		watch(EPOLL_CTL_MOD, srv.fd[i], events, &srv.fd[i]);
}

static void conn_close(struct conn *c)
{
	close(c->fd);
	c->fd = -1;
	c->next = srv.dead;
	srv.dead = c;
	live--;
}

static void conn_reap(void)
{
	struct conn *c;

	while ((c = srv.dead)) {
		srv.dead = c->next;
		c->next = srv.free;
		srv.free = c;
	}
}

/* Whatever came as a header: act on it only if every field is one of ours. */
static bool conn_request(struct conn *c)
{
	const struct wire *w = &c->head;
	__u64 size = be64toh(w->size);

	if (w->magic != htobe32(WIRE_MAGIC) || w->version != WIRE_VERSION ||
	    (w->flags & ~WIRE_LAST) || w->zero)
		return false;
	if (!size || (size > SIZE_LIMIT && size != UNLIMITED))
		return false;
	c->last = w->flags & WIRE_LAST;
	switch (w->op) {
	case OP_PULL:
		c->state = S_SEND;
		c->tx.left = size;
		tx_tune(c->fd, &c->tx);
		return true;
	case OP_PUSH:
		c->state = S_RECV;
		rx_expect(c->fd, &c->rx, size);
		return true;
	}
	return false;
}

static int conn_read_head(struct conn *c)
{
	ssize_t n = recv(c->fd, (char *)&c->head + c->got, sizeof(c->head) - c->got,
			 MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? BLOCKED : BROKEN;
	if (!n)
		return CLOSED;
	c->got += n;
	if (c->got < sizeof(c->head)) {
		rx_lowat(c->fd, &c->rx, sizeof(c->head) - c->got);
		return BLOCKED;
	}
	c->got = 0;
	if (!conn_request(c)) {
		if (srv.complaints++ < 10)
			fprintf(stderr, "%s: a connection that sent no valid request is closed\n",
				prog);
		return BROKEN;
	}
	return DONE;
}

static void conn_event(struct conn *c, __u32 ev)
{
	int r;

	if (ev & EPOLLERR) {
		conn_close(c);
		return;
	}
	if (c->state == S_SEND) {
		if (ev & (EPOLLIN | EPOLLHUP))
			c->in_missed = true;
		if (!(ev & (EPOLLOUT | EPOLLHUP)))
			return;
	} else if (!(ev & (EPOLLIN | EPOLLHUP))) {
		return;
	}
	for (;;) {
		switch (c->state) {
		case S_HEAD:
			r = conn_read_head(c);
			break;
		case S_RECV:
			r = rx_drain(c->fd, &c->rx);
			if (r == DONE) {
				c->state = S_SEND;
				c->tx.left = 1;
			}
			break;
		default:
			r = tx_pump(c->fd, &c->tx, NULL, NULL);
			if (r == BLOCKED && !c->out_watched) {
				c->out_watched = true;
				watch(EPOLL_CTL_MOD, c->fd, EPOLLIN | EPOLLOUT | EPOLLET, c);
			}
			if (r == DONE) {
				c->state = S_HEAD;
				if (!c->last)
					rx_lowat(c->fd, &c->rx, sizeof(c->head));
				if (!c->in_missed)
					return;
				c->in_missed = false;
			}
			break;
		}
		if (r < 0)
			conn_close(c);
		if (r != DONE)
			return;
	}
}

static void srv_accept(int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct conn *c = srv.free;

	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
			srv.stalled = true;
			srv_listen_events(0);
		}
		return;
	}
	if (c)
		srv.free = c->next;
	else
		c = xcalloc(1, sizeof(*c));
	*c = (struct conn) { .fd = fd, .rx.lowat = sizeof(struct wire) };
	watch(EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLET, c);
	srv.served = true;
	live++;
}

/* False if the address family is not there and need not be. */
static bool srv_listen(const union addr *a, bool optional)
{
	int fd = socket(a->sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	const char *bad;

	if (fd < 0) {
		if (optional)
			return false;
		fail("socket");
	}
	set_int(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	if (a->sa.sa_family == AF_INET6)
		set_int(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
	bad = socket_options(fd, a->sa.sa_family);
	if (bad)
		fail(bad);
	/* Accepted sockets inherit these: a whole header wakes us, the one-byte answer is sent. */
	set_int(fd, SOL_SOCKET, SO_RCVLOWAT, sizeof(struct wire));
	set_int(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	if (bind(fd, &a->sa, addr_len(a))) {
		if (optional && errno == EADDRNOTAVAIL) {
			close(fd);
			return false;
		}
		fail("bind");
	}
	if (listen(fd, 65535))
		fail("listen");
	srv.fd[srv.fds++] = fd;
	return true;
}

static void srv_open(void)
{
	union addr a;

	if (cfg.bind) {
		srv_listen(&cfg.host[0], false);
	} else {
		/* Two sockets, so that IPv4 is served by IPv4 sockets and not by mapped ones. */
		if (cfg.family != AF_INET6) {
			a.v4 = (struct sockaddr_in) {
				.sin_family = AF_INET,
				.sin_port = htons(cfg.port),
			};
			srv_listen(&a, false);
		}
		if (cfg.family != AF_INET) {
			a.v6 = (struct sockaddr_in6) {
				.sin6_family = AF_INET6,
				.sin6_port = htons(cfg.port),
				.sin6_addr = IN6ADDR_ANY_INIT,
			};
			srv_listen(&a, cfg.family == AF_UNSPEC);
		}
	}
	for (int i = 0; i < srv.fds; i++)
		watch(EPOLL_CTL_ADD, srv.fd[i], EPOLLIN, &srv.fd[i]);
}

static void srv_ready(void)
{
	static const char line[] = "ready\n";
	int fd = cfg.ready_fd >= 0 ? cfg.ready_fd : STDOUT_FILENO;

	if (write(fd, line, sizeof(line) - 1) < 0)
		fail("ready");
	if (cfg.ready_fd >= 0)
		close(fd);
}

static int serve(void)
{
	struct epoll_event ev[EVENTS];
	int sig = open_signals();

	watch(EPOLL_CTL_ADD, sig, EPOLLIN, &sig);
	srv_open();
	srv_ready();
	for (;;) {
		bool idle = cfg.once_idle && srv.served && !live;
		int wait = idle ? (int)(cfg.idle_ns / 1000000) : srv.stalled ? 100 : -1;
		int n = epoll_wait(epfd, ev, EVENTS, wait);

		if (n < 0 && errno != EINTR)
			fail("epoll_wait");
		if (!n && idle)
			return 0;
		for (int i = 0; i < n; i++) {
			void *who = ev[i].data.ptr;

			if (who == &sig)
				return 0;
			if (who == &srv.fd[0] || who == &srv.fd[1])
				srv_accept(*(int *)who);
			else if (((struct conn *)who)->fd >= 0)
				conn_event(who, ev[i].events);
		}
		if (srv.stalled && (srv.dead || n <= 0)) {
			srv.stalled = false;
			srv_listen_events(EPOLLIN);
		}
		conn_reap();
	}
}

/* ---- client: flows --------------------------------------------------------------------- */

enum { F_CONNECT, F_SEND, F_RECV, F_IDLE };

/* What only the data's sender knows; totals of a connection, from its TCP_INFO. */
struct sender {
	__u64 retrans;			/* segments */
	__u64 rwnd_limited;		/* us that the receive window held it up */
	__u64 sndbuf_limited;		/* the same for its own send buffer */
};

struct flow {
	struct flow *prev, *next;	/* active list; or next alone: idle, dead, free */
	int fd;				/* -1: closed */
	__u8 state;
	__u8 head_left;
	bool out_watched;		/* EPOLLOUT is among the events */
	bool prep;			/* incast: connecting ahead, no request yet */
	bool idle_listed;
	__u32 host;
	__u32 slot;			/* rpc --closed, incast */
	__u64 id;
	__u64 size;			/* asked for */
	__u64 start;			/* ns */
	__u64 tx_before;		/* bytes of earlier requests on this connection */
	__u64 rx_before;
	__u64 mark_bytes;		/* --interval: reported so far, until when */
	__u64 mark_ns;
	struct sender before;		/* of earlier requests */
	union addr src;
	char cc[CC_LEN];
	struct rx rx;
	struct tx tx;
	struct wire head;
};

struct verdict {
	enum { OK, TIMEOUT, ERROR } what;
	const char *why;		/* for ERROR */
};

static struct {
	struct flow *first, *last;	/* active, oldest first: so deadlines are in order */
	struct flow *dead, *free;
	struct flow **idle;		/* per host: connections kept by --persist */
	__u64 deadline;			/* from a flow's start, NEVER if none */
	__u64 t0;			/* when the run begins */
	__u64 armed;			/* expiry set on the timer, NEVER if none */
	__u64 tick;			/* next --interval */
	int timer;
	bool timer_fired;
	/* results */
	__u64 ok, failed, bytes, first_start, last_end, late_max;
} cl = {
	.armed = NEVER,
	.tick = NEVER,
	.first_start = NEVER,
};

static void mode_flow_over(struct flow *f, const struct verdict *v);
static void prep_over(struct flow *f, const struct verdict *v);

static void flow_link(struct flow *f)
{
	f->next = NULL;
	f->prev = cl.last;
	if (cl.last)
		cl.last->next = f;
	else
		cl.first = f;
	cl.last = f;
}

static void flow_unlink(struct flow *f)
{
	if (f->prev)
		f->prev->next = f->next;
	else
		cl.first = f->next;
	if (f->next)
		f->next->prev = f->prev;
	else
		cl.last = f->prev;
}

static struct flow *flow_new(__u32 host, __u32 slot)
{
	struct flow *f = cl.free;

	if (f)
		cl.free = f->next;
	else
		f = xcalloc(1, sizeof(*f));
	*f = (struct flow) { .fd = -1, .host = host, .slot = slot, .rx.lowat = 1 };
	return f;
}

/* Not in any list any more. Its memory rests until this batch of events is through. */
static void flow_drop(struct flow *f)
{
	if (f->fd >= 0) {
		close(f->fd);
		live--;
	}
	f->fd = -1;
	f->next = cl.dead;
	cl.dead = f;
}

static void flow_reap(void)
{
	struct flow *f;

	while ((f = cl.dead)) {
		cl.dead = f->next;
		f->next = cl.free;
		cl.free = f;
	}
}

static void flow_idle(struct flow *f)
{
	f->idle_listed = true;
	f->next = cl.idle[f->host];
	cl.idle[f->host] = f;
}

/* An idle connection that the server has closed. */
static void flow_unidle(struct flow *f)
{
	struct flow **p = &cl.idle[f->host];

	while (*p != f)
		p = &(*p)->next;
	*p = f->next;
	f->idle_listed = false;
}

/* As struct tcp_info of the running kernel, as far as it goes. False: nothing known. */
static bool flow_info(const struct flow *f, struct tcp_info *info)
{
	socklen_t len = sizeof(*info);

	memset(info, 0, sizeof(*info));
	return f->fd >= 0 && !getsockopt(f->fd, IPPROTO_TCP, TCP_INFO, info, &len);
}

static __u64 minus(__u64 a, __u64 b)
{
	return a > b ? a - b : 0;
}

/* What has arrived of the present request's payload, at its receiver as far as known here. */
static __u64 flow_moved(const struct flow *f, const struct tcp_info *info)
{
	__u64 n;

	if (f->state == F_CONNECT)
		return 0;
	if (cfg.pull)
		n = minus(info->tcpi_bytes_received, f->rx_before);
	else	/* our SYN counts as one byte */
		n = minus(info->tcpi_bytes_acked, f->tx_before + 1 + sizeof(struct wire));
	return n < f->size ? n : f->size;
}

/* ---- client: output -------------------------------------------------------------------- */

/* @src as the inside of a JSON string. */
static void json_escape(char *dst, size_t room, const char *src)
{
	for (; *src && room > 7; src++) {
		unsigned char c = *src;
		int n;

		if (c == '"' || c == '\\')
			n = snprintf(dst, room, "\\%c", c);
		else if (c < 0x20 || c == 0x7f)
			n = snprintf(dst, room, "\\u%04x", c);
		else
			n = snprintf(dst, room, "%c", c);
		dst += n;
		room -= n;
	}
	*dst = 0;
}

/* A line: json_open(), then fields, then json_close(). Strings must be escaped already. */
static void json_open(const char *type)
{
	fprintf(cfg.out, "{\"type\":\"%s\",\"label\":\"%s\",\"kind\":\"%s\"", type, cfg.label,
		mode_name[cfg.mode]);
}

static void json_close(void)
{
	fputs("}\n", cfg.out);
}

static void json_num(const char *key, __u64 val)
{
	fprintf(cfg.out, ",\"%s\":%llu", key, val);
}

static void json_null(const char *key)
{
	fprintf(cfg.out, ",\"%s\":null", key);
}

static void json_str(const char *key, const char *val)
{
	fprintf(cfg.out, ",\"%s\":\"%s\"", key, val);
}

static void json_span(__u64 start, __u64 end, __u64 bytes)
{
	json_num("start_ns", start + real_minus_mono);
	json_num("end_ns", end + real_minus_mono);
	json_num("duration_ns", end - start);
	if (end > start)
		json_num("goodput_bps", (__u64)(bytes * 8.0 * NSEC / (end - start)));
	else
		json_null("goodput_bps");
}

static void put_interval(struct flow *f, __u64 now, const struct tcp_info *info, __u64 moved)
{
	__u64 delta = minus(moved, f->mark_bytes);

	if (now <= f->mark_ns)
		return;
	json_open("interval");
	json_num("id", f->id);
	json_num("bytes", delta);
	json_span(f->mark_ns, now, delta);
	if (cfg.pull) {
		json_null("rtt_us");
		json_null("cwnd");
		json_null("retrans");
	} else {
		json_num("rtt_us", info->tcpi_rtt);
		json_num("cwnd", info->tcpi_snd_cwnd);
		json_num("retrans", info->tcpi_total_retrans);
	}
	json_close();
	f->mark_bytes += delta;
	f->mark_ns = now;
}

/* @s: totals at the end, NULL if not known. */
static void put_flow(const struct flow *f, __u64 now, __u64 moved, const struct sender *s,
		     const struct verdict *v)
{
	const union addr *dst = &cfg.host[f->host];
	char ip[INET6_ADDRSTRLEN], text[128];

	json_open("flow");
	json_num("id", f->id);
	if (cfg.mode == INCAST)
		json_num("round", f->id / cfg.fan);
	if (f->src.sa.sa_family == AF_UNSPEC) {
		json_null("src");
		json_null("sport");
	} else {
		json_str("src", addr_text(&f->src, ip, sizeof(ip)));
		json_num("sport", addr_port(&f->src));
	}
	json_str("dst", addr_text(dst, ip, sizeof(ip)));
	json_num("dport", addr_port(dst));
	json_escape(text, sizeof(text), f->cc);
	json_str("cc", text);
	json_str("dir", cfg.pull ? "pull" : "push");
	json_num("size", moved);
	json_span(f->start, now, moved);
	if (s) {
		json_num("retrans", s->retrans - f->before.retrans);
		json_num("rwnd_limited_us", s->rwnd_limited - f->before.rwnd_limited);
		json_num("sndbuf_limited_us", s->sndbuf_limited - f->before.sndbuf_limited);
	} else {
		json_null("retrans");
		json_null("rwnd_limited_us");
		json_null("sndbuf_limited_us");
	}
	if (v->what == ERROR) {
		snprintf(text, sizeof(text), "error: %s", v->why);
		json_str("status", text);
	} else {
		json_str("status", v->what == OK ? "ok" : "timeout");
	}
	json_close();
}

/* Into the totals; called once for each flow line. */
static void count_flow(__u64 start, __u64 end, __u64 bytes, bool ok)
{
	if (ok)
		cl.ok++;
	else
		cl.failed++;
	cl.bytes += bytes;
	if (start < cl.first_start)
		cl.first_start = start;
	if (end > cl.last_end)
		cl.last_end = end;
}

static void put_summary(void)
{
	__u64 start = cl.first_start == NEVER ? cl.t0 : cl.first_start;
	__u64 end = cl.last_end ? cl.last_end : start;

	json_open("summary");
	json_num("seed", cfg.seed);
	json_num("flows", cl.ok + cl.failed);
	json_num("ok", cl.ok);
	json_num("failed", cl.failed);
	json_num("bytes", cl.bytes);
	json_span(start, end, cl.bytes);
	json_num("late_max_ns", cl.late_max);
	json_close();
}

/* ---- client: one flow's life ----------------------------------------------------------- */

/*
 * The request is over, well or not, at @now. Reports it, then keeps or closes the connection.
 */
static void flow_over(struct flow *f, __u64 now, struct verdict v)
{
	struct tcp_info info = { 0 };
	bool known = false;
	const struct sender *sender = NULL;
	struct sender s;
	__u64 moved;
	socklen_t len;

	flow_unlink(f);
	if (f->prep) {
		prep_over(f, &v);
		return;
	}
	if (!cfg.pull || v.what != OK || f->size == UNLIMITED)
		known = flow_info(f, &info);
	if (v.what == OK && f->size != UNLIMITED)
		moved = f->size;
	else
		moved = known ? flow_moved(f, &info) : 0;
	if (!cfg.pull && known) {
		s.retrans = info.tcpi_total_retrans;
		s.rwnd_limited = info.tcpi_rwnd_limited;
		s.sndbuf_limited = info.tcpi_sndbuf_limited;
		sender = &s;
	}
	/* A control may change in the handshake (a fallback for want of ECN), not after. */
	if (f->fd >= 0 && !f->cc[0]) {
		len = sizeof(f->cc) - 1;
		if (getsockopt(f->fd, IPPROTO_TCP, TCP_CONGESTION, f->cc, &len))
			f->cc[0] = 0;
	}
	if (cfg.interval && (known || cfg.pull))
		put_interval(f, now, &info, moved);
	put_flow(f, now, moved, sender, &v);
	if (sender)
		f->before = s;
	count_flow(f->start, now, moved, v.what == OK);

	f->state = F_IDLE;
	if (v.what == OK && cfg.persist) {
		f->tx_before += sizeof(struct wire) + (cfg.pull ? 0 : f->size);
		f->rx_before += cfg.pull ? f->size : 1;
	} else {
		if (f->fd >= 0) {
			close(f->fd);
			live--;
		}
		f->fd = -1;
	}
	mode_flow_over(f, &v);
}

static void flow_failed(struct flow *f, const char *why)
{
	flow_over(f, now_ns(), (struct verdict) { ERROR, why });
}

static void flow_broken(struct flow *f, int how)
{
	flow_failed(f, how == CLOSED ? "closed by the server" : strerror(errno));
}

static void flow_watch(struct flow *f, int op, bool out)
{
	if (op == EPOLL_CTL_MOD && out == f->out_watched)
		return;
	f->out_watched = out;
	watch(op, f->fd, EPOLLIN | EPOLLRDHUP | EPOLLET | (out ? EPOLLOUT : 0), f);
}

/* The connection stands: send the request, and what belongs to it. */
static void flow_send(struct flow *f)
{
	int r = tx_pump(f->fd, &f->tx, &f->head, &f->head_left);

	if (r < 0) {
		flow_broken(f, r);
	} else if (r == BLOCKED) {
		flow_watch(f, EPOLL_CTL_MOD, true);
	} else {
		f->state = F_RECV;
		/*
		 * Data that comes between two reads leaves an event behind. With nothing to read
		 * it would still wake us, to say that the socket is writable.
		 */
		if (f->rx.left > RX_LOWAT_MAX)
			flow_watch(f, EPOLL_CTL_MOD, false);
	}
}

static void flow_request(struct flow *f)
{
	f->state = F_SEND;
	f->head = (struct wire) {
		.magic = htobe32(WIRE_MAGIC),
		.version = WIRE_VERSION,
		.op = cfg.pull ? OP_PULL : OP_PUSH,
		.flags = cfg.persist ? 0 : WIRE_LAST,
		.size = htobe64(f->size),
	};
	f->head_left = sizeof(f->head);
	if (cfg.pull) {
		f->tx.left = 0;
		rx_expect(f->fd, &f->rx, f->size);
	} else {
		f->tx.left = f->size;
		f->rx.left = 1;
		tx_tune(f->fd, &f->tx);
	}
	flow_send(f);
}

static const char *flow_socket(struct flow *f)
{
	const union addr *dst = &cfg.host[f->host];
	static const struct linger reset = { .l_onoff = 1 };
	static char why[80];
	const char *bad;
	socklen_t len = sizeof(f->src);

	f->fd = socket(dst->sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (f->fd < 0)
		return strerror(errno);
	live++;
	setsockopt(f->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	bad = socket_options(f->fd, dst->sa.sa_family);
	if (bad) {
		snprintf(why, sizeof(why), "%s: %s", bad, strerror(errno));
		return why;
	}
	if (!cfg.pull)
		set_int(f->fd, IPPROTO_TCP, TCP_NODELAY, 1);
	if (connect(f->fd, &dst->sa, addr_len(dst)) && errno != EINPROGRESS)
		return strerror(errno);
	getsockname(f->fd, &f->src.sa, &len);
	flow_watch(f, EPOLL_CTL_ADD, true);
	return NULL;
}

/* @now: fresh, and what counts as the flow's start. */
static void flow_start(struct flow *f, __u64 now)
{
	const char *bad;

	f->start = now;
	f->mark_ns = now;
	flow_link(f);
	if (f->fd >= 0) {
		flow_request(f);
		return;
	}
	f->state = F_CONNECT;
	bad = flow_socket(f);
	if (bad)
		flow_over(f, now, (struct verdict) { ERROR, bad });
}

static void flow_event(struct flow *f, __u32 ev)
{
	int r, err;

	if (ev & EPOLLERR) {
		err = get_int(f->fd, SOL_SOCKET, SO_ERROR);
		if (f->state != F_IDLE) {
			flow_failed(f, strerror(err > 0 ? err : EIO));
			return;
		}
	}
	switch (f->state) {
	case F_CONNECT:
		if (!(ev & EPOLLOUT))
			return;
		if (f->prep)
			flow_over(f, 0, (struct verdict) { OK, NULL });
		else
			flow_request(f);
		return;
	case F_SEND:
		if (ev & (EPOLLRDHUP | EPOLLHUP))
			flow_broken(f, CLOSED);
		else if (ev & EPOLLOUT)
			flow_send(f);
		return;
	case F_RECV:
		if (!(ev & (EPOLLIN | EPOLLRDHUP | EPOLLHUP)))
			return;
		r = rx_drain(f->fd, &f->rx);
		if (r < 0)
			flow_broken(f, r);
		else if (r == DONE)
			flow_over(f, now_ns(), (struct verdict) { OK, NULL });
		return;
	case F_IDLE:
		/* Nothing should come. The server has gone, or talks out of turn. */
		if (!(ev & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)))
			return;
		if (f->idle_listed) {
			flow_unidle(f);
			flow_drop(f);
		} else {
			close(f->fd);
			live--;
			f->fd = -1;
		}
		return;
	}
}

/* ---- client: long and rpc, arrivals ---------------------------------------------------- */

static struct {
	struct rng gap_rng, size_rng, host_rng;
	__u64 n;			/* flows drawn so far, less the pending one */
	__u64 issued;			/* rpc --closed */
	double at;			/* of the pending flow, ns after t0 */
	__u64 size;
	__u32 host;
	bool over;			/* no more arrivals */
	/* rpc --closed: slots that wait after a failure; a ring, as all wait equally long */
	__u32 *ring;
	__u64 *ring_due;
	unsigned int ring_at, ring_n;
	unsigned int active;
} gen;

static __u64 draw_size(void)
{
	return cfg.size ? cfg.size : cdf_draw(&cfg.cdf, rng_unit(&gen.size_rng));
}

static __u32 draw_host(void)
{
	return cfg.hosts > 1 ? (__u32)(rng_unit(&gen.host_rng) * cfg.hosts) : 0;
}

/* Draw the pending flow, number gen.n. */
static void gen_draw(void)
{
	if (cfg.mode == LONG) {
		gen.at = (double)gen.n * cfg.stagger;
		gen.size = cfg.size ? cfg.size : UNLIMITED;
		gen.host = gen.n % cfg.hosts;
		gen.over = gen.n >= cfg.flows;
		return;
	}
	if (cfg.periodic)
		gen.at = gen.n * 1e9 / cfg.rate;
	else
		gen.at -= log(1.0 - rng_unit(&gen.gap_rng)) * 1e9 / cfg.rate;
	gen.size = draw_size();
	gen.host = draw_host();
	gen.over = gen.n >= cfg.flows || (cfg.duration && gen.at >= (double)cfg.duration);
}

static void gen_init(void)
{
	rng_seed(&gen.gap_rng, cfg.seed, 1);
	rng_seed(&gen.size_rng, cfg.seed, 2);
	rng_seed(&gen.host_rng, cfg.seed, 3);
	if (cfg.closed) {
		gen.ring = xcalloc(cfg.closed, sizeof(*gen.ring));
		gen.ring_due = xcalloc(cfg.closed, sizeof(*gen.ring_due));
		for (; gen.ring_n < cfg.closed; gen.ring_n++) {
			gen.ring[gen.ring_n] = gen.ring_n;
			gen.ring_due[gen.ring_n] = cl.t0;
		}
	} else {
		gen_draw();
	}
}

static __u64 gen_due(void)
{
	if (cfg.closed)
		return gen.ring_n && !gen.over ? gen.ring_due[gen.ring_at] : NEVER;
	return gen.over ? NEVER : cl.t0 + (__u64)(gen.at + 0.5);
}

static void closed_start(struct flow *f, __u32 slot, __u64 now)
{
	if (gen.issued >= cfg.flows || (cfg.duration && now >= cl.t0 + cfg.duration))
		gen.over = true;
	if (gen.over) {
		if (f)
			flow_drop(f);
		return;
	}
	if (!f)
		f = flow_new(slot % cfg.hosts, slot);
	f->id = gen.issued++;
	f->size = draw_size();
	gen.active++;
	flow_start(f, now);
}

static void open_start(__u64 now)
{
	struct flow *f = cl.idle[gen.host];
	__u64 late = minus(now, gen_due());

	if (f)
		flow_unidle(f);
	else
		f = flow_new(gen.host, 0);
	f->id = gen.n;
	f->size = gen.size;
	if (late > cl.late_max)
		cl.late_max = late;
	gen.n++;
	gen_draw();
	gen.active++;
	flow_start(f, now);
}

static void gen_run(__u64 now)
{
	while (gen_due() <= now) {
		if (cfg.closed) {
			__u32 slot = gen.ring[gen.ring_at];

			gen.ring_at = (gen.ring_at + 1) % cfg.closed;
			gen.ring_n--;
			closed_start(NULL, slot, now);
		} else {
			open_start(now);
		}
		now = now_ns();
	}
}

static void gen_flow_over(struct flow *f, const struct verdict *v)
{
	__u32 slot = f->slot;

	gen.active--;
	if (!cfg.closed) {
		if (f->fd >= 0)
			flow_idle(f);
		else
			flow_drop(f);
		return;
	}
	if (v->what == OK) {
		if (f->fd < 0) {
			flow_drop(f);
			f = NULL;
		}
		closed_start(f, slot, now_ns());
		return;
	}
	/* Try again, but not at once: the failure may take no time. */
	flow_drop(f);
	gen.ring[(gen.ring_at + gen.ring_n) % cfg.closed] = slot;
	gen.ring_due[(gen.ring_at + gen.ring_n) % cfg.closed] = now_ns() + RETRY_NS;
	gen.ring_n++;
}

static bool gen_finished(void)
{
	return !gen.active && gen_due() == NEVER;
}

/* --plan: the arrivals as they are drawn. Nothing is sent. */
static void gen_plan(void)
{
	char ip[INET6_ADDRSTRLEN];

	cl.t0 = 0;
	gen_init();
	for (; !gen.over; gen.n++, gen_draw()) {
		const union addr *dst = &cfg.host[gen.host];

		json_open("plan");
		json_num("id", gen.n);
		json_num("at_ns", gen_due());
		json_str("dst", addr_text(dst, ip, sizeof(ip)));
		json_num("dport", addr_port(dst));
		json_num("size", gen.size);
		json_close();
	}
}

/* ---- client: incast -------------------------------------------------------------------- */

/*
 * Each round: PREPARE makes the connections that are missing (all, the first time), WAIT is for
 * the round's time, RUN is the round itself.
 */
static struct {
	enum { PREPARE, WAIT, RUN, OVER } phase;
	struct flow **slot;
	const char **why;		/* per slot: why there is no connection */
	unsigned int next;		/* PREPARE: slot to look at next */
	unsigned int busy;		/* PREPARE: handshakes; RUN: requests */
	__u64 round;
	__u64 base;			/* the first round's time */
	__u64 due;			/* WAIT */
	__u64 start, bytes, ok;		/* RUN */
} inc;

static void incast_prepare(void)
{
	while (inc.busy < HANDSHAKES && inc.next < cfg.fan) {
		unsigned int i = inc.next++;
		struct flow *f = inc.slot[i];

		if (f && f->fd >= 0)
			continue;
		if (f)
			flow_drop(f);
		f = flow_new(i % cfg.hosts, i);
		inc.slot[i] = f;
		f->prep = true;
		inc.busy++;
		flow_start(f, now_ns());
	}
	if (inc.phase == PREPARE && !inc.busy && inc.next == cfg.fan) {
		inc.phase = WAIT;
		if (!inc.round) {
			inc.base = now_ns();
			if (inc.base < cl.t0)
				inc.base = cl.t0;
		}
		inc.due = inc.base + inc.round * cfg.period;
	}
}

/* May run inside incast_prepare(), which then goes on. */
static void prep_over(struct flow *f, const struct verdict *v)
{
	f->prep = false;
	f->state = F_IDLE;
	inc.busy--;
	inc.why[f->slot] = v->what == TIMEOUT ? strerror(ETIMEDOUT) : v->why;
	if (v->what != OK && f->fd >= 0) {
		close(f->fd);
		live--;
		f->fd = -1;
	}
}

static void incast_round_over(__u64 end)
{
	json_open("round");
	json_num("round", inc.round);
	json_num("fan", cfg.fan);
	json_num("size", cfg.size);
	json_num("ok", inc.ok);
	json_num("failed", cfg.fan - inc.ok);
	json_num("bytes", inc.bytes);
	json_span(inc.start, end, inc.bytes);
	json_close();
	inc.phase = ++inc.round < cfg.count ? PREPARE : OVER;
	inc.next = 0;
	inc.busy = 0;
}

static void incast_flow_over(struct flow *f, const struct verdict *v)
{
	inc.busy--;
	if (v->what == OK) {
		inc.ok++;
		inc.bytes += f->size;
	}
	if (!inc.busy)
		incast_round_over(cl.last_end);
}

static void incast_run(__u64 now)
{
	__u64 late = minus(now, inc.due);

	if (cfg.period && late > cl.late_max)
		cl.late_max = late;
	inc.phase = RUN;
	inc.start = now;
	inc.bytes = 0;
	inc.ok = 0;
	/* One more than there are, so that the round is not over before all have begun. */
	inc.busy = cfg.fan + 1;
	for (unsigned int i = 0; i < cfg.fan; i++) {
		struct flow *f = inc.slot[i];

		f->id = inc.round * cfg.fan + i;
		f->size = cfg.size;
		if (f->fd >= 0) {
			flow_start(f, now);
			continue;
		}
		f->start = now;
		flow_link(f);
		flow_over(f, now, (struct verdict) {
			ERROR, inc.why[i] ? inc.why[i] : "closed by the server" });
	}
	if (!--inc.busy)
		incast_round_over(cl.last_end);
}

/* ---- client: the loop ------------------------------------------------------------------ */

static void mode_flow_over(struct flow *f, const struct verdict *v)
{
	if (cfg.mode == INCAST)
		incast_flow_over(f, v);
	else
		gen_flow_over(f, v);
}

static bool mode_finished(void)
{
	return cfg.mode == INCAST ? inc.phase == OVER : gen_finished();
}

static __u64 mode_due(void)
{
	if (cfg.mode == INCAST)
		return inc.phase == WAIT ? inc.due : NEVER;
	return gen_due();
}

static void mode_run(__u64 now)
{
	if (cfg.mode != INCAST)
		gen_run(now);
	else if (inc.phase == WAIT && inc.due <= now)
		incast_run(now);
}

static __u64 flow_deadline(const struct flow *f)
{
	return cl.deadline == NEVER ? NEVER : f->start + cl.deadline;
}

/* Flows whose time is up: the proper end of a timed long flow, a timeout of any other. */
static void flow_deadlines(__u64 now)
{
	while (cl.first && flow_deadline(cl.first) <= now) {
		struct flow *f = cl.first;
		bool proper = cfg.mode == LONG && cfg.duration && f->state != F_CONNECT;

		flow_over(f, now, (struct verdict) { proper ? OK : TIMEOUT, NULL });
	}
}

/* --interval: at the same times for all flows, so that their lines can be added up. */
static void flow_ticks(__u64 now)
{
	struct tcp_info info;

	if (cl.tick > now)
		return;
	for (struct flow *f = cl.first; f; f = f->next)
		if (f->state != F_CONNECT && flow_info(f, &info))
			put_interval(f, now, &info, flow_moved(f, &info));
	cl.tick += (1 + (now - cl.tick) / cfg.interval) * cfg.interval;
}

static void arm_timer(void)
{
	__u64 next = mode_due();
	struct itimerspec its = { 0 };

	if (cl.first && flow_deadline(cl.first) < next)
		next = flow_deadline(cl.first);
	if (cl.tick < next)
		next = cl.tick;
	/* Set for something earlier that is no longer wanted: then it wakes us once in vain. */
	if (next == NEVER || cl.armed <= next)
		return;
	cl.armed = next;
	its.it_value.tv_sec = next / NSEC;
	its.it_value.tv_nsec = next % NSEC;
	if (timerfd_settime(cl.timer, TFD_TIMER_ABSTIME, &its, NULL))
		fail("timerfd_settime");
}

static void interrupted(void)
{
	__u64 now = now_ns();

	gen.over = true;
	cfg.count = 0;		/* no further round */
	while (cl.first)
		flow_over(cl.first, now, (struct verdict) { ERROR, "interrupted" });
}

static void client_init(void)
{
	cl.timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (cl.timer < 0)
		fail("timerfd_create");
	/* Edge-triggered: setting it anew clears it, so it need not be read. */
	watch(EPOLL_CTL_ADD, cl.timer, EPOLLIN | EPOLLET, &cl.timer);
	cl.idle = xcalloc(cfg.hosts, sizeof(*cl.idle));
	cl.deadline = cfg.mode == LONG && cfg.duration ? cfg.duration :
		      cfg.timeout ? cfg.timeout : NEVER;
	cl.t0 = now_ns() + cfg.start;
	if (cfg.interval)
		cl.tick = cl.t0 + cfg.interval;
	if (cfg.mode == INCAST) {
		inc.slot = xcalloc(cfg.fan, sizeof(*inc.slot));
		inc.why = xcalloc(cfg.fan, sizeof(*inc.why));
	} else {
		gen_init();
	}
}

static int client(void)
{
	struct epoll_event ev[EVENTS];
	int sig = open_signals();
	bool stop = false;

	watch(EPOLL_CTL_ADD, sig, EPOLLIN, &sig);
	client_init();
	if (!cfg.start)
		mode_run(cl.t0);
	while (!stop) {
		int n;

		if (cfg.mode == INCAST && inc.phase == PREPARE)
			incast_prepare();
		if (mode_finished())
			break;
		arm_timer();
		n = epoll_wait(epfd, ev, EVENTS, -1);
		if (n < 0 && errno != EINTR)
			fail("epoll_wait");
		for (int i = 0; i < n; i++) {
			void *who = ev[i].data.ptr;

			if (who == &sig)
				stop = true;
			else if (who == &cl.timer)
				cl.timer_fired = true;
			else if (((struct flow *)who)->fd >= 0)
				flow_event(who, ev[i].events);
		}
		if (cl.timer_fired) {
			__u64 now = now_ns();

			cl.timer_fired = false;
			cl.armed = NEVER;
			flow_deadlines(now);
			flow_ticks(now);
			mode_run(now);
		}
		flow_reap();
	}
	if (stop)
		interrupted();
	put_summary();
	return cl.failed || stop;
}

/* ---- command line ---------------------------------------------------------------------- */

#define M(mode)		(1U << (mode))
#define CLIENTS		(M(LONG) | M(RPC) | M(INCAST))
#define ANY		(CLIENTS | M(SERVE))

enum {
	O_HELP = 256, O_BIND, O_PORT, O_CC, O_READY_FD, O_ONCE_IDLE, O_TO, O_FLOWS, O_STAGGER,
	O_DURATION, O_SIZE, O_PULL, O_PUSH, O_CDF, O_RATE, O_LOAD, O_CLOSED, O_POISSON,
	O_PERIODIC, O_REQUESTS, O_PERSIST, O_PLAN, O_FAN, O_COUNT, O_PERIOD, O_SEED, O_LABEL,
	O_START, O_TIMEOUT, O_TOS, O_DSCP, O_MSS, O_SNDBUF, O_RCVBUF, O_OUT, O_INTERVAL, O_LAST,
};

static const struct option options[] = {
	{ "help", no_argument, NULL, O_HELP },
	{ "bind", required_argument, NULL, O_BIND },
	{ "port", required_argument, NULL, O_PORT },
	{ "cc", required_argument, NULL, O_CC },
	{ "ready-fd", required_argument, NULL, O_READY_FD },
	{ "once-idle", optional_argument, NULL, O_ONCE_IDLE },
	{ "to", required_argument, NULL, O_TO },
	{ "flows", required_argument, NULL, O_FLOWS },
	{ "stagger", required_argument, NULL, O_STAGGER },
	{ "duration", required_argument, NULL, O_DURATION },
	{ "size", required_argument, NULL, O_SIZE },
	{ "pull", no_argument, NULL, O_PULL },
	{ "push", no_argument, NULL, O_PUSH },
	{ "cdf", required_argument, NULL, O_CDF },
	{ "rate", required_argument, NULL, O_RATE },
	{ "load", required_argument, NULL, O_LOAD },
	{ "closed", required_argument, NULL, O_CLOSED },
	{ "poisson", no_argument, NULL, O_POISSON },
	{ "periodic", no_argument, NULL, O_PERIODIC },
	{ "requests", required_argument, NULL, O_REQUESTS },
	{ "persist", no_argument, NULL, O_PERSIST },
	{ "plan", no_argument, NULL, O_PLAN },
	{ "fan", required_argument, NULL, O_FAN },
	{ "count", required_argument, NULL, O_COUNT },
	{ "period", required_argument, NULL, O_PERIOD },
	{ "seed", required_argument, NULL, O_SEED },
	{ "label", required_argument, NULL, O_LABEL },
	{ "start", required_argument, NULL, O_START },
	{ "timeout", required_argument, NULL, O_TIMEOUT },
	{ "tos", required_argument, NULL, O_TOS },
	{ "dscp", required_argument, NULL, O_DSCP },
	{ "mss", required_argument, NULL, O_MSS },
	{ "sndbuf", required_argument, NULL, O_SNDBUF },
	{ "rcvbuf", required_argument, NULL, O_RCVBUF },
	{ "out", required_argument, NULL, O_OUT },
	{ "interval", required_argument, NULL, O_INTERVAL },
	{ NULL, 0, NULL, 0 },
};

/* Which modes an option belongs to. */
static const unsigned int option_modes[O_LAST - O_HELP] = {
	[O_HELP - O_HELP] = ANY,	[O_BIND - O_HELP] = M(SERVE),
	[O_PORT - O_HELP] = ANY,	[O_CC - O_HELP] = ANY,
	[O_READY_FD - O_HELP] = M(SERVE), [O_ONCE_IDLE - O_HELP] = M(SERVE),
	[O_TO - O_HELP] = CLIENTS,	[O_FLOWS - O_HELP] = M(LONG),
	[O_STAGGER - O_HELP] = M(LONG),	[O_DURATION - O_HELP] = M(LONG) | M(RPC),
	[O_SIZE - O_HELP] = CLIENTS,	[O_PULL - O_HELP] = M(LONG),
	[O_PUSH - O_HELP] = M(RPC),	[O_CDF - O_HELP] = M(RPC),
	[O_RATE - O_HELP] = M(RPC),	[O_LOAD - O_HELP] = M(RPC),
	[O_CLOSED - O_HELP] = M(RPC),	[O_POISSON - O_HELP] = M(RPC),
	[O_PERIODIC - O_HELP] = M(RPC),	[O_REQUESTS - O_HELP] = M(RPC),
	[O_PERSIST - O_HELP] = M(RPC),	[O_PLAN - O_HELP] = M(RPC),
	[O_FAN - O_HELP] = M(INCAST),	[O_COUNT - O_HELP] = M(INCAST),
	[O_PERIOD - O_HELP] = M(INCAST), [O_SEED - O_HELP] = CLIENTS,
	[O_LABEL - O_HELP] = CLIENTS,	[O_START - O_HELP] = CLIENTS,
	[O_TIMEOUT - O_HELP] = CLIENTS,	[O_TOS - O_HELP] = ANY,
	[O_DSCP - O_HELP] = ANY,	[O_MSS - O_HELP] = ANY,
	[O_SNDBUF - O_HELP] = ANY,	[O_RCVBUF - O_HELP] = ANY,
	[O_OUT - O_HELP] = CLIENTS,	[O_INTERVAL - O_HELP] = M(LONG),
};

static void help(void)
{
	fputs("Usage:\n"
	"  flowgen serve  [--bind ADDR] [--port P] [--ready-fd N] [--once-idle[=T]] [common]\n"
	"  flowgen long   --to HOSTS (--duration T | --size B) [--flows N] [--stagger T] [--pull]\n"
	"                 [--interval T] [client] [common]\n"
	"  flowgen rpc    --to HOSTS (--size B | --cdf FILE)\n"
	"                 (--rate PER_SECOND | --load BITRATE | --closed N) [--poisson | --periodic]\n"
	"                 [--requests N] [--duration T] [--persist] [--push] [--plan]\n"
	"                 [client] [common]\n"
	"  flowgen incast --to HOSTS --fan N --size B [--count K] [--period T] [client] [common]\n"
	"\n"
	"serve: answer requests until SIGTERM or SIGINT; prints \"ready\" when listening\n"
	"  --bind ADDR       listen on this address only\n"
	"  --ready-fd N      write \"ready\" to this descriptor instead of stdout\n"
	"  --once-idle[=T]   exit when no connection has been left for T (1s)\n"
	"long: bulk transfers, this side sends\n"
	"  --flows N         how many (1); flow i goes to host i modulo their number\n"
	"  --stagger T       start one every T\n"
	"  --duration T      end each T after its start; its size is what was acknowledged\n"
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

static void resolve(union addr *a, const char *host, __u16 port, const char *opt)
{
	struct addrinfo hints = { .ai_family = cfg.family, .ai_socktype = SOCK_STREAM };
	struct addrinfo *res;
	int err = getaddrinfo(host, NULL, &hints, &res);

	if (err)
		refuse("%s: cannot resolve '%s': %s", opt, host,
		       err == EAI_SYSTEM ? strerror(errno) : gai_strerror(err));
	memset(a, 0, sizeof(*a));
	memcpy(a, res->ai_addr, res->ai_addrlen);
	freeaddrinfo(res);
	if (a->sa.sa_family == AF_INET6)
		a->v6.sin6_port = htons(port);
	else
		a->v4.sin_port = htons(port);
}

/* HOST, HOST:PORT, [ADDR], [ADDR]:PORT, or an IPv6 address as it is. @s is chopped up. */
static void parse_host(char *s)
{
	__u16 port = cfg.port;
	char *colon = strchr(s, ':');
	char *host = s;
	char *rest = NULL;

	if (*s == '[') {
		char *end = strchr(s, ']');

		if (!end || (end[1] && end[1] != ':'))
			refuse("--to: '%s' is not [ADDR] or [ADDR]:PORT", s);
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
		refuse("--to: an empty destination");
	cfg.host = realloc(cfg.host, (cfg.hosts + 1) * sizeof(*cfg.host));
	if (!cfg.host)
		fail("memory");
	resolve(&cfg.host[cfg.hosts++], host, port, "--to");
}

static void parse_hosts(const char *list)
{
	char *copy, *s, *item;

	if (!list)
		refuse("%s needs --to", mode_name[cfg.mode]);
	copy = strdup(list);
	if (!copy)
		fail("memory");
	for (s = copy; (item = strsep(&s, ","));)
		parse_host(item);
	free(copy);
}

/* What was given, for the checks that involve more than one option. */
static struct {
	const char *to, *cdf, *out, *label;
	double load;
	bool seen[O_LAST - O_HELP];
} given;

static bool has(int opt)
{
	return given.seen[opt - O_HELP];
}

static bool more_than_one(int a, int b, int c)
{
	return has(a) + has(b) + has(c) > 1;
}

static void parse_option(int opt, const char *name, const char *arg)
{
	const char *end;

	switch (opt) {
	case O_BIND:
		cfg.bind = arg;
		break;
	case O_PORT:
		cfg.port = parse_int(name, arg, 1, 65535);
		break;
	case O_CC:
		if (!*arg || strlen(arg) >= CC_LEN)
			refuse("%s: '%s' is not a congestion control's name", name, arg);
		cfg.cc = arg;
		break;
	case O_READY_FD:
		cfg.ready_fd = parse_int(name, arg, 0, INT_MAX);
		if (fcntl(cfg.ready_fd, F_GETFD) < 0)
			refuse("%s: %s is not an open descriptor", name, arg);
		break;
	case O_ONCE_IDLE:
		cfg.once_idle = true;
		cfg.idle_ns = arg ? parse_time(name, arg) : NSEC;
		if (cfg.idle_ns > 86400 * NSEC)
			refuse("%s: '%s' is more than a day", name, arg);
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
			refuse("%s: must be more than 0", name);
		break;
	case O_SIZE:
		cfg.size = parse_size(name, arg);
		break;
	case O_CDF:
		given.cdf = arg;
		break;
	case O_RATE:
		if (!parse_decimal(arg, &cfg.rate, &end) || *end)
			refuse("%s: '%s' is not a number per second", name, arg);
		if (!(cfg.rate >= 0.000001 && cfg.rate <= 1e9))
			refuse("%s: '%s' is out of range (0.000001 to 1000000000)", name, arg);
		break;
	case O_LOAD:
		given.load = parse_rate(name, arg);
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
	case O_SEED:
		cfg.seed = parse_int(name, arg, 0, UINT64_MAX);
		break;
	case O_LABEL:
		if (strlen(arg) > 64)
			refuse("%s: longer than 64 bytes", name);
		json_escape(cfg.label, sizeof(cfg.label), arg);
		break;
	case O_START:
		cfg.start = parse_time(name, arg);
		break;
	case O_TIMEOUT:
		cfg.timeout = parse_time(name, arg);
		if (!cfg.timeout)
			refuse("%s: must be more than 0", name);
		break;
	case O_TOS:
		cfg.tos = parse_int(name, arg, 0, 255);
		if (cfg.tos & 3)
			refuse("%s: the two lowest bits are ECN, which TCP sets itself", name);
		break;
	case O_DSCP:
		cfg.tos = parse_int(name, arg, 0, 63) << 2;
		break;
	case O_MSS:
		cfg.mss = parse_int(name, arg, 88, 32767);
		break;
	case O_SNDBUF:
	case O_RCVBUF: {
		__u64 val = parse_size(name, arg);

		if (val < 4096 || val > 1 << 30)
			refuse("%s: '%s' is out of range (4Ki to 1Gi)", name, arg);
		*(opt == O_SNDBUF ? &cfg.sndbuf : &cfg.rcvbuf) = val;
		break;
	}
	case O_OUT:
		given.out = arg;
		break;
	case O_INTERVAL:
		cfg.interval = parse_time(name, arg);
		if (cfg.interval < 10000)
			refuse("%s: must be 10us or more", name);
		break;
	}
}

static void check_serve(void)
{
	if (cfg.bind) {
		cfg.host = xcalloc(1, sizeof(*cfg.host));
		resolve(&cfg.host[0], cfg.bind, cfg.port, "--bind");
		cfg.family = cfg.host[0].sa.sa_family;
	}
}

static void check_long(void)
{
	if (has(O_SIZE) == has(O_DURATION))
		refuse("long needs one of --duration and --size");
	if (cfg.duration && cfg.timeout)
		refuse("--timeout does not go with --duration, which ends the flow");
	cfg.pull = has(O_PULL);
}

static void check_rpc(void)
{
	double mean;

	if (has(O_SIZE) == has(O_CDF))
		refuse("rpc needs one of --size and --cdf");
	if (more_than_one(O_RATE, O_LOAD, O_CLOSED) ||
	    !(has(O_RATE) || has(O_LOAD) || has(O_CLOSED)))
		refuse("rpc needs one of --rate, --load and --closed");
	if (has(O_POISSON) + has(O_PERIODIC) + has(O_CLOSED) > 1)
		refuse("only one of --poisson, --periodic and --closed is possible");
	if (!has(O_REQUESTS) && !has(O_DURATION))
		refuse("rpc needs --requests or --duration");
	if (cfg.plan && cfg.closed)
		refuse("--plan does not go with --closed, where answers set the time");
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
		refuse("incast needs --fan and --size");
	cfg.pull = true;
	cfg.persist = true;
}

static void open_output(void)
{
	static char buf[1 << 16];

	cfg.out = given.out ? fopen(given.out, "we") : stdout;
	if (!cfg.out)
		refuse("--out: %s: %s", given.out, strerror(errno));
	if (!isatty(fileno(cfg.out)))
		setvbuf(cfg.out, buf, _IOFBF, sizeof(buf));
}

static void parse_mode(const char *s)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(mode_name); i++) {
		if (!strcmp(s, mode_name[i])) {
			cfg.mode = i;
			return;
		}
	}
	refuse("'%s' is not serve, long, rpc or incast (see flowgen --help)", s);
}

static void parse_command_line(int argc, char **argv)
{
	char name[32];
	int opt, i;

	opterr = 0;
	for (;;) {
		i = -1;
		opt = getopt_long(argc, argv, "+:46h", options, &i);
		if (opt < 0)
			break;
		switch (opt) {
		case 'h':
		case O_HELP:
			help();
			exit(0);
		case '4':
		case '6':
			if (cfg.family)
				refuse("-4 and -6 exclude each other");
			cfg.family = opt == '4' ? AF_INET : AF_INET6;
			continue;
		case ':':
			refuse("%s needs a value", argv[optind - 1]);
		case '?':
			refuse("unknown option '%s' (see flowgen --help)", argv[optind - 1]);
		}
		snprintf(name, sizeof(name), "--%s", options[i].name);
		if (!(option_modes[opt - O_HELP] & M(cfg.mode)))
			refuse("%s has no place in %s", name, mode_name[cfg.mode]);
		if (given.seen[opt - O_HELP])
			refuse("%s is given twice", name);
		given.seen[opt - O_HELP] = true;
		parse_option(opt, name, optarg);
	}
	if (optind < argc)
		refuse("'%s' is one argument too many", argv[optind]);
	if (has(O_TOS) && has(O_DSCP))
		refuse("--tos and --dscp exclude each other");
}

int main(int argc, char **argv)
{
	int ret;

	if (argc < 2)
		refuse("say what to do: serve, long, rpc or incast (see flowgen --help)");
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
		help();
		return 0;
	}
	parse_mode(argv[1]);
	parse_command_line(argc - 1, argv + 1);
	switch (cfg.mode) {
	case SERVE:
		check_serve();
		break;
	case LONG:
		check_long();
		planned = cfg.flows;
		break;
	case RPC:
		check_rpc();
		planned = cfg.closed;
		break;
	case INCAST:
		check_incast();
		planned = cfg.fan;
		break;
	}
	if (cfg.mode != SERVE)
		parse_hosts(given.to);
	raise_file_limit();
	probe_options(cfg.hosts ? cfg.host[0].sa.sa_family :
		      cfg.family ? cfg.family : AF_INET);
	if (cfg.mode != SERVE)
		open_output();
	real_minus_mono = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC);
	if (cfg.plan) {
		gen_plan();
		ret = 0;
	} else {
		epfd = epoll_create1(EPOLL_CLOEXEC);
		if (epfd < 0)
			fail("epoll_create");
		ret = cfg.mode == SERVE ? serve() : client();
	}
	if (cfg.out && (ferror(cfg.out) || fclose(cfg.out))) {
		fprintf(stderr, "%s: the output could not be written\n", prog);
		return 1;
	}
	return ret;
}
