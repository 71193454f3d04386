// SPDX-License-Identifier: GPL-2.0
/*
 * qdelay - what a queue did to each packet
 *
 * Reads the packets seen before and after a bottleneck queue, from capture
 * files or live from two sides of a forwarding node, pairs them, and reports
 * delay, queue length, marks, drops and rates.  See man/qdelay.1.
 *
 * The way of a packet:
 *
 *   source -> parse() -> struct pkt -> merge in time order
 *     in:  struct rec in the hash table + an entry of the ring `g.ins`
 *     out: finds and removes the oldest rec of the same fingerprint, settles
 *          its ring entry, adds an entry to the ring `g.outs`
 *   sweep() walks both rings in time order behind the packets, no further than
 *   the oldest packet whose fate is not known yet; it alone knows how long
 *   the queue was.
 *
 * Memory: one rec and two ring entries per packet in the queue, or per packet
 * that came in during the last --gap after a drop.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <linux/types.h>
#include <math.h>
#include <pcap/pcap.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define NSEC		1000000000ULL
#define MAX_SRC		64		/* captures */
#define MAX_FLOWS	(1U << 20)	/* beyond: lumped into one */
#define MAX_ROWS	2000000ULL	/* of a series */
#define MAX_HOLES	65536		/* missing ranges per flow and side */
#define PCAP_TMO_MS	50		/* the kernel hands a block over */
#define LIVE_LAG	(2 * NSEC)	/* at the latest then */
#define REORDER		1000000ULL	/* a capture may be out of order by that */
#define NEVER		(~0ULL)

enum { NOT_ECT, ECT1, ECT0, CE };

/* ---- what can go wrong ------------------------------------------------- */

struct outfile {
	const char *path;
	FILE *f;
	bool mine;		/* a plain file: removed if the run fails */
};

static struct outfile o_json, o_series, o_flows, o_packets;

static void __attribute__((noreturn, format(printf, 1, 2)))
usage_error(const char *fmt, ...)
{
	va_list ap;

	fputs("qdelay: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputs(" (see qdelay --help)\n", stderr);
	exit(2);
}

static void discard(struct outfile *o)
{
	if (o->f && o->mine)
		unlink(o->path);
}

static void __attribute__((noreturn, format(printf, 1, 2)))
die(const char *fmt, ...)
{
	va_list ap;

	fputs("qdelay: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	discard(&o_json);
	discard(&o_series);
	discard(&o_flows);
	discard(&o_packets);
	_exit(1);
}

static void __attribute__((format(printf, 1, 2))) warning(const char *fmt, ...)
{
	va_list ap;

	fputs("qdelay: warning: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

static void *grow(void *p, size_t n, size_t size)
{
	if (size && n > SIZE_MAX / size)
		die("out of memory");
	p = realloc(p, n * size);
	if (!p)
		die("out of memory");
	return p;
}

static void *zalloc(size_t n, size_t size)
{
	void *p = calloc(n, size);

	if (!p)
		die("out of memory");
	return p;
}

/* ---- a queue in memory: a ring that grows ------------------------------ */

struct ring {
	void *buf;
	u64 head, tail;		/* entries head..tail-1 are there */
	u64 cap;		/* a power of two, or 0 */
};

static void ring_grow(struct ring *r, size_t size)
{
	u64 cap = r->cap ? r->cap * 2 : 256, i;
	char *buf = grow(NULL, cap, size);

	for (i = r->head; i != r->tail; i++)
		memcpy(buf + (i & (cap - 1)) * size,
		       (char *)r->buf + (i & (r->cap - 1)) * size, size);
	free(r->buf);
	r->buf = buf;
	r->cap = cap;
}

static inline bool ring_empty(const struct ring *r)
{
	return r->head == r->tail;
}

#define ring_at(r, type, i)	((type *)(r)->buf + ((i) & ((r)->cap - 1)))
#define ring_front(r, type)	ring_at(r, type, (r)->head)

#define ring_push(r, type) ({					\
	struct ring *_r = (r);					\
	if (_r->tail - _r->head == _r->cap)			\
		ring_grow(_r, sizeof(type));			\
	ring_at(_r, type, _r->tail++);				\
})

/* ---- distributions ----------------------------------------------------- */

/*
 * Values are kept as they are up to `exact` of them.  Then, or from the start
 * with weights, they go to a log-linear histogram: 2^bits buckets per octave,
 * every value below 2^(bits + 1) has its own.  A percentile is the middle of
 * its bucket: off by at most 2^-(bits + 1).
 */
struct dist {
	u64 n;			/* sum of weights */
	u64 min, max;
	long double sum, sq;
	u64 *val;
	u32 nval, cap, exact;
	u32 bits;
	u64 **octave;
};

#define NOCTAVES(d)	(65 - (d)->bits)

static void dist_init(struct dist *d, u32 bits, u32 exact)
{
	memset(d, 0, sizeof(*d));
	d->bits = bits;
	d->exact = exact;
	d->min = NEVER;
}

static void dist_bucket(struct dist *d, u64 v, u64 weight)
{
	u32 o = 0;
	u64 i = v;

	if (v >> d->bits) {
		u32 shift = 63 - __builtin_clzll(v) - d->bits;

		o = shift + 1;
		i = (v >> shift) - (1ULL << d->bits);
	}
	if (!d->octave)
		d->octave = zalloc(NOCTAVES(d), sizeof(*d->octave));
	if (!d->octave[o])
		d->octave[o] = zalloc(1ULL << d->bits, sizeof(u64));
	d->octave[o][i] += weight;
}

static inline void dist_moments(struct dist *d, u64 v, u64 weight)
{
	long double x = v, w = weight;

	d->n += weight;
	d->sum += x * w;
	d->sq += x * x * w;
	if (v < d->min)
		d->min = v;
	if (v > d->max)
		d->max = v;
}

static void dist_weigh(struct dist *d, u64 v, u64 weight)
{
	dist_moments(d, v, weight);
	dist_bucket(d, v, weight);
}

static void dist_add(struct dist *d, u64 v)
{
	u32 i;

	dist_moments(d, v, 1);
	if (d->octave) {
		dist_bucket(d, v, 1);
		return;
	}
	if (d->nval == d->cap && d->cap < d->exact) {
		d->cap = d->cap ? d->cap * 4 : 16;
		d->val = grow(d->val, d->cap, sizeof(*d->val));
	}
	if (d->nval < d->cap) {
		d->val[d->nval++] = v;
		return;
	}
	for (i = 0; i < d->nval; i++)
		dist_bucket(d, d->val[i], 1);
	dist_bucket(d, v, 1);
	free(d->val);
	d->val = NULL;
	d->nval = 0;
}

static int cmp_u64(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return (x > y) - (x < y);
}

/* nearest rank: the smallest value that num/den of all do not exceed */
static double dist_pct(struct dist *d, u32 num, u32 den)
{
	u64 rank = d->n / den * num + (d->n % den * num + den - 1) / den;
	u64 seen = 0, size = 1ULL << d->bits, i;
	double v;
	u32 o;

	if (!d->octave) {
		qsort(d->val, d->nval, sizeof(*d->val), cmp_u64);
		return d->val[rank - 1];
	}
	for (o = 0; o < NOCTAVES(d); o++) {
		for (i = 0; d->octave[o] && i < size; i++) {
			seen += d->octave[o][i];
			if (seen < rank)
				continue;
			if (o < 2)
				return o ? size + i : i;
			v = ldexp(size + i, o - 1) + (ldexp(1, o - 1) - 1) / 2;
			if (v < d->min)
				return d->min;
			return v > d->max ? d->max : v;
		}
	}
	return d->max;
}

static double dist_mean(const struct dist *d)
{
	return d->sum / d->n;
}

static double dist_stddev(const struct dist *d)
{
	long double m = d->sum / d->n, var = d->sq / d->n - m * m;

	return var > 0 ? sqrtl(var) : 0;
}

/* ---- flows ------------------------------------------------------------- */

struct flow_key {
	u8 src[16], dst[16];
	u16 sport, dport;
	u8 proto, family;	/* family: 4, 6, or 0 for all beyond MAX_FLOWS */
	u8 zero[2];
};

struct range {
	u64 a, b;		/* [a, b) */
};

/* which part of a TCP sequence space went by on one side */
struct seen {
	bool init;
	u32 isn;		/* of the SYN, if there was one */
	bool syn;
	u64 top;		/* end of all that was seen */
	struct range *hole;	/* what is missing below, sorted */
	u32 holes, cap;
};

struct flow {
	struct flow_key key;
	u64 hash;
	char *name;
	u64 first;
	u64 packets, bytes, payload, fresh;		/* on out */
	u64 packets_in, retrans, marked, dropped;
	u64 unmatched_out;
	u32 max_in, max_out;				/* payload */
	u64 matched_pos;	/* end of what went out, in g.ins */
	u64 last_in, last_out;
	u64 bin_bytes;
	bool segmented;
	struct seen in, out;
	struct dist delay, gap_in, gap_out;
};

/* ---- packets ----------------------------------------------------------- */

struct pkt {
	u64 t;
	u64 fp[2];		/* fingerprint of all that a queue leaves alone */
	u32 flow;
	u32 len;		/* on the wire */
	u32 payload;
	u32 seq;		/* TCP's, else the IP id */
	u8 ecn;
	u8 seqspace;		/* SYN, FIN: take one number each */
	bool tcp, syn;
};

/* a packet that came in and did not go out so far */
struct rec {
	struct pkt p;
	u64 pos;		/* in g.ins */
	u32 next;		/* younger one in the same hash bucket */
};

struct bucket {
	u32 head, tail;		/* index of rec, 0: none */
};

/* fate of a packet in g.ins: a rec while open */
#define FATE_GONE	0xffffffffU	/* matched */
#define FATE_DROPPED	0xfffffffeU
#define FATE_OPEN	0xfffffffdU	/* not known at the end of the run */
#define FATE_MIN	FATE_OPEN

struct in_ev {
	u64 t;			/* never before that of the entry before */
	u32 len;
	u32 rec;
};

struct out_ev {
	u64 t;
	u64 delay;
	u32 len_in, len;
	u32 flow;
	bool matched, marked;
};

struct source {
	const char *name;
	bool out;
	pcap_t *pcap;
	int dlt;
	struct ring q;		/* struct pkt, parsed, by time, not merged yet */
	u64 packets, ignored;
	u64 late;		/* packets too old for their place */
	u64 newest, merged;	/* times: read, given away */
	u64 clear;		/* live: nothing older is to come */
	u64 got;		/* live: packets from the kernel */
	bool eof;
	u64 drops;
};

struct bin {
	u64 i;			/* covers [i, i+1) * g.bin from the window's start */
	u64 bytes, delay_n, delay_max, marked, dropped;
	long double delay_sum, qp, qb;
	u64 qp_max, qb_max, time;
};

static struct {
	/* options */
	struct source src[MAX_SRC];
	u32 nsrc;
	bool live, gaps;
	const char *filter;
	double rate;
	u32 overhead, prefix, snaplen, buffer_mb;
	u64 bin, from, to, gap, duration;

	u32 reach;		/* bytes from the IP header on that count */

	/* state */
	struct flow *flow;
	u32 nflows, flowcap, *flowtab, flowtabsize;
	struct rec *rec;
	u32 nrec, reccap, freerec;
	struct bucket *tab;
	u64 tabsize, open;
	struct ring ins, outs;
	bool started;
	u64 first, last;	/* packet of either side */
	u64 w0, w1;		/* window: [w0, w1) */
	u64 now;
	u64 start, stop;	/* live */
	u64 last_matched_in;

	/* counts */
	u64 in, in_all, out, out_all, bytes_out, matched, dropped, unresolved;
	u64 unmatched_out, queued_at_start, marked;
	u64 ecn_in[4], ecn_out[4], dropped_ecn[4];
	struct dist delay, qlen_p, qlen_b;

	/* sweep */
	u64 sw_t;
	u64 qp, qb;
	struct bin b;
	u32 *touched, ntouched, touchedcap;
} g = {
	.prefix = 32,
	.buffer_mb = 64,
	.bin = 1000000,
	.to = NEVER,
	.gap = NSEC,
	.stop = NEVER,
};

static inline bool in_window(u64 t)
{
	return t >= g.w0 && t < g.w1;
}

static inline u64 mix64(u64 h)
{
	h ^= h >> 33;
	h *= 0xff51afd7ed558ccdULL;
	h ^= h >> 33;
	h *= 0xc4ceb9fe1a85ec53ULL;
	return h ^ (h >> 33);
}

/* Two unlike 64-bit hashes in one: taken for the packet itself. */
static inline void fp_add(u64 fp[2], u64 w)
{
	fp[0] = (fp[0] ^ w) * 0x9e3779b97f4a7c15ULL;
	fp[0] ^= fp[0] >> 29;
	fp[1] = (fp[1] + w) * 0xc2b2ae3d27d4eb4fULL;
	fp[1] ^= fp[1] >> 32;
}

static void fp_bytes(u64 fp[2], const u8 *p, u32 n)
{
	u64 w;

	for (; n >= 8; n -= 8, p += 8) {
		memcpy(&w, p, 8);
		fp_add(fp, w);
	}
	w = (u64)n << 56;	/* fewer than 8 are left */
	memcpy(&w, p, n);
	fp_add(fp, w);
}

static u64 flow_hash(const struct flow_key *k)
{
	u64 w[5], h = 0;
	u32 i;

	static_assert(sizeof(w) == sizeof(*k), "flow_key has no holes");
	memcpy(w, k, sizeof(w));
	for (i = 0; i < ARRAY_SIZE(w); i++)
		h = mix64(h ^ w[i]) + i;
	return h;
}

static void flowtab_grow(void)
{
	u32 size = g.flowtabsize ? g.flowtabsize * 2 : 1024, i, j;

	free(g.flowtab);
	g.flowtab = zalloc(size, sizeof(*g.flowtab));
	g.flowtabsize = size;
	for (i = 0; i < g.nflows; i++) {
		for (j = g.flow[i].hash & (size - 1); g.flowtab[j];)
			j = (j + 1) & (size - 1);
		g.flowtab[j] = i + 1;
	}
}

static u32 flow_find(const struct flow_key *key, u64 *hash)
{
	static const struct flow_key other;
	static u32 recent;
	struct flow *f;
	u64 h;
	u32 j;

	if (recent < g.nflows &&
	    !memcmp(&g.flow[recent].key, key, sizeof(*key))) {
		*hash = g.flow[recent].hash;
		return recent;
	}
	h = flow_hash(key);
	*hash = h;
	if (g.nflows * 2 >= g.flowtabsize)
		flowtab_grow();
again:
	for (j = h & (g.flowtabsize - 1); g.flowtab[j];
	     j = (j + 1) & (g.flowtabsize - 1)) {
		f = &g.flow[g.flowtab[j] - 1];
		if (f->hash == h && !memcmp(&f->key, key, sizeof(*key))) {
			recent = g.flowtab[j] - 1;
			return recent;
		}
	}
	if (g.nflows >= MAX_FLOWS && key != &other) {
		key = &other;
		h = flow_hash(key);
		goto again;
	}
	if (g.nflows == g.flowcap) {
		g.flowcap = g.flowcap ? g.flowcap * 2 : 64;
		g.flow = grow(g.flow, g.flowcap, sizeof(*g.flow));
	}
	g.flowtab[j] = g.nflows + 1;
	f = &g.flow[g.nflows];
	memset(f, 0, sizeof(*f));
	f->key = *key;
	f->hash = h;
	f->first = NEVER;
	f->last_in = NEVER;
	f->last_out = NEVER;
	dist_init(&f->delay, 9, 256);
	dist_init(&f->gap_in, 9, 256);
	dist_init(&f->gap_out, 9, 256);
	return g.nflows++;
}

static const char *flow_name(struct flow *f)
{
	char a[INET6_ADDRSTRLEN], b[INET6_ADDRSTRLEN];
	const struct flow_key *k = &f->key;
	int n;

	if (f->name)
		return f->name;
	if (!k->family) {
		n = asprintf(&f->name, "other");
	} else {
		int af = k->family == 4 ? AF_INET : AF_INET6;

		inet_ntop(af, k->src, a, sizeof(a));
		inet_ntop(af, k->dst, b, sizeof(b));
		n = asprintf(&f->name, k->family == 4 ? "%s:%u>%s:%u" :
			     "[%s]:%u>[%s]:%u", a, k->sport, b, k->dport);
	}
	if (n < 0)
		die("out of memory");
	return f->name;
}

/* ---- parsing ----------------------------------------------------------- */

static inline u16 be16(const u8 *p)
{
	return p[0] << 8 | p[1];
}

static inline u32 be32(const u8 *p)
{
	return (u32)p[0] << 24 | p[1] << 16 | p[2] << 8 | p[3];
}

/* the most that can be in front of an IP header */
static int link_room(int dlt)
{
	switch (dlt) {
	case DLT_EN10MB:
		return 14 + 8;
	case DLT_LINUX_SLL:
		return 16 + 8;
	case DLT_LINUX_SLL2:
		return 20 + 8;
	case DLT_NULL:
	case DLT_LOOP:
		return 4;
	case DLT_RAW:
	case DLT_IPV4:
	case DLT_IPV6:
		return 0;
	}
	return -1;
}

/* Offset of the IP header, -1 if there is none. */
static int link_skip(int dlt, const u8 *d, u32 n)
{
	u32 off, tags;
	u16 type;

	switch (dlt) {
	case DLT_EN10MB:
		off = 14;
		break;
	case DLT_LINUX_SLL:
		off = 16;
		break;
	case DLT_LINUX_SLL2:
		off = 20;
		break;
	case DLT_NULL:
	case DLT_LOOP:
		return n >= 4 ? 4 : -1;
	default:
		return 0;
	}
	if (n < off)
		return -1;
	type = be16(d + (dlt == DLT_LINUX_SLL2 ? 0 : off - 2));
	for (tags = 0; type == 0x8100 || type == 0x88a8 || type == 0x9100;
	     tags++) {
		if (n < off + 4 || tags == 2)
			return -1;
		type = be16(d + off + 2);
		off += 4;
	}
	return type == 0x0800 || type == 0x86dd ? (int)off : -1;
}

/*
 * What is visible of an IP packet: `end` bytes.  Both sides must look at the
 * same bytes, so nothing beyond g.reach is used even if it was captured, and
 * something below g.reach that was not captured is an error (`cut`).
 */
struct view {
	const u8 *d;
	u32 end;		/* bytes to look at */
	u32 wire;		/* bytes that there were */
	bool cut;
};

static inline bool have(struct view *v, u32 n)
{
	if (n <= v->end)
		return true;
	if (n <= g.reach && n <= v->wire)
		v->cut = true;
	return false;
}

/* How many of the bytes [off, off + n) to look at. */
static inline u32 part(struct view *v, u32 off, u32 n)
{
	u32 want = off + n;

	if (want > g.reach)
		want = g.reach;
	if (want > v->wire)
		want = v->wire;
	if (want <= off)
		return 0;
	if (want > v->end) {
		v->cut = true;
		return 0;
	}
	return want - off;
}

/* Between neighbours only, never through a router: not the queue's. */
static bool link_control(u8 proto, const u8 *d, u32 n)
{
	if (proto == IPPROTO_IGMP)
		return true;
	return proto == IPPROTO_ICMPV6 && n &&
	       ((d[0] >= 130 && d[0] <= 137) || d[0] == 143);
}

/* True if the packet counts; then *p is filled but for its time. */
static bool parse(const struct source *s, const u8 *data, u32 caplen, u32 len,
		  struct pkt *p, bool *cut)
{
	u32 l4, l4len, id = 0, frag = 0, label = 0, total, hdr, n, i;
	struct flow_key key;
	struct view v = { 0 };
	const u8 *d;
	u64 hash;
	int off;
	u8 proto;

	*cut = false;
	off = link_skip(s->dlt, data, caplen);
	if (off < 0 || (u32)off >= caplen)
		return false;
	d = data + off;
	v.d = d;
	v.end = caplen - off < g.reach ? caplen - off : g.reach;
	v.wire = len - off;
	memset(&key, 0, sizeof(key));
	memset(p, 0, sizeof(*p));
	p->len = len + g.overhead;

	switch (d[0] >> 4) {
	case 4:
		l4 = (d[0] & 15) * 4;
		if (l4 < 20 || !have(&v, 20))
			goto no;
		total = be16(d + 2);
		if (!total)		/* longer than 64 KiB */
			total = v.wire;
		if (total < l4)
			goto no;
		l4len = total - l4;
		p->ecn = d[1] & 3;
		id = be16(d + 4);
		frag = be16(d + 6);
		proto = d[9];
		memcpy(key.src, d + 12, 4);
		memcpy(key.dst, d + 16, 4);
		key.family = 4;
		break;
	case 6:
		if (!have(&v, 40))
			goto no;
		p->ecn = d[1] >> 4 & 3;
		label = be32(d) & 0xfffff;
		l4len = be16(d + 4);
		proto = d[6];
		if (!l4len && v.wire > 40)	/* jumbogram */
			l4len = v.wire - 40;
		memcpy(key.src, d + 8, 16);
		memcpy(key.dst, d + 24, 16);
		key.family = 6;
		l4 = 40;
		for (i = 0; i < 8; i++) {
			if (proto != IPPROTO_HOPOPTS &&
			    proto != IPPROTO_ROUTING &&
			    proto != IPPROTO_DSTOPTS &&
			    proto != IPPROTO_FRAGMENT)
				break;
			if (l4len < 8 || !have(&v, l4 + 8))
				break;
			if (proto == IPPROTO_FRAGMENT) {
				frag = be16(d + l4 + 2);
				/* same shape as in IPv4 */
				frag = frag >> 3 | (frag & 1) << 13;
				id = be32(d + l4 + 4);
				n = 8;
			} else {
				n = (d[l4 + 1] + 1) * 8;
			}
			if (n > l4len)
				break;
			proto = d[l4];
			l4 += n;
			l4len -= n;
			if (frag & 0x1fff)
				break;
		}
		break;
	default:
		return false;
	}

	key.proto = proto;
	p->payload = l4len;
	p->seq = id;
	hdr = 0;
	if (!(frag & 0x1fff)) {
		if (link_control(proto, d + l4, part(&v, l4, l4len ? 1 : 0)))
			goto no;
		if (proto == IPPROTO_TCP && l4len >= 20 && have(&v, l4 + 20)) {
			hdr = (d[l4 + 12] >> 4) * 4;
			if (hdr < 20 || hdr > l4len)
				hdr = 0;
			else
				p->tcp = true;
		} else if (proto == IPPROTO_UDP && l4len >= 8 &&
			   have(&v, l4 + 8)) {
			hdr = 8;
		}
	}
	if (hdr) {
		key.sport = be16(d + l4);
		key.dport = be16(d + l4 + 2);
		p->payload = l4len - hdr;
	}
	p->flow = flow_find(&key, &hash);

	p->fp[0] = hash;
	p->fp[1] = ~hash;
	fp_add(p->fp, (u64)id << 32 | frag << 16);
	fp_add(p->fp, (u64)label << 32 | p->payload);
	if (p->tcp) {
		u16 flags = be16(d + l4 + 12) & 0xfff;

		p->seq = be32(d + l4 + 4);
		p->syn = flags & 2;
		p->seqspace = p->syn + (flags & 1);
		fp_add(p->fp, (u64)p->seq << 32 | be32(d + l4 + 8));
		fp_add(p->fp, flags);
		/* timestamps, SACK: tell copies of a segment apart */
		n = part(&v, l4 + 20, hdr - 20);
		fp_bytes(p->fp, d + l4 + 20, n);
	} else {
		n = p->payload < g.prefix ? p->payload : g.prefix;
		n = part(&v, l4 + hdr, n);
		fp_bytes(p->fp, d + l4 + hdr, n);
	}
	p->fp[0] = mix64(p->fp[0]);
	*cut = v.cut;
	return true;
no:
	*cut = v.cut;
	return false;
}

/*
 * To its place by time.  On a machine with several CPUs a packet may get its
 * time stamp before another one and its place in the capture after it.
 */
static void enqueue(struct source *s, const struct pkt *p)
{
	u64 i;

	ring_push(&s->q, struct pkt);
	for (i = s->q.tail - 1; i != s->q.head; i--) {
		if (ring_at(&s->q, struct pkt, i - 1)->t <= p->t)
			break;
		*ring_at(&s->q, struct pkt, i) =
			*ring_at(&s->q, struct pkt, i - 1);
	}
	*ring_at(&s->q, struct pkt, i) = *p;
	if (p->t > s->newest)
		s->newest = p->t;
	if (p->t < s->merged)
		s->late++;
}

/* A packet of a capture: to the source's own queue. */
static void take(struct source *s, const struct pcap_pkthdr *h, const u8 *data)
{
	u32 len = h->len < h->caplen ? h->caplen : h->len;
	u32 caplen = h->caplen;
	struct pkt p;
	bool cut;
	u64 t;

	if (g.live) {
		/* where not all sources watched yet, or any more */
		t = (u64)h->ts.tv_sec * NSEC + h->ts.tv_usec;
		if (t > g.stop && t > s->newest)
			s->newest = t;
		if (t < g.start || t > g.stop)
			return;
	}
	s->packets++;
	if (h->ts.tv_sec < 0 || h->ts.tv_sec > 9000000000LL ||
	    h->ts.tv_usec < 0 || h->ts.tv_usec >= (long)NSEC)
		die("%s: packet %llu has an impossible time: corrupt capture",
		    s->name, s->packets);
	if (len > 1U << 30)
		die("%s: packet %llu has an impossible length: corrupt capture",
		    s->name, s->packets);
	if (g.snaplen && caplen > g.snaplen)
		caplen = g.snaplen;
	t = h->ts.tv_sec * NSEC + h->ts.tv_usec;	/* it is nanoseconds */
	if (!parse(s, data, caplen, len, &p, &cut)) {
		s->ignored++;
		if (!cut)
			return;
	}
	if (cut)
		die("%s: packet %llu has only %u of its %u bytes: if the capture is cut to that size, say --snaplen %u",
		    s->name, s->packets, caplen, len, caplen);
	p.t = t;
	enqueue(s, &p);
}

/* ---- sequence space ---------------------------------------------------- */

static void hole_add(struct seen *s, u32 at, u64 a, u64 b)
{
	if (s->holes == MAX_HOLES)
		return;		/* taken for seen */
	if (s->holes == s->cap) {
		s->cap = s->cap ? s->cap * 2 : 8;
		s->hole = grow(s->hole, s->cap, sizeof(*s->hole));
	}
	memmove(&s->hole[at + 1], &s->hole[at],
		(s->holes - at) * sizeof(*s->hole));
	s->hole[at].a = a;
	s->hole[at].b = b;
	s->holes++;
}

/* Adds [seq, seq + n) to what was seen; returns how much of it is new. */
static u32 seen_add(struct seen *s, const struct pkt *p, u32 n)
{
	u32 fresh = 0, lo, hi, mid;
	u64 a, b, x, y;

	if (!s->init || (p->syn && !(s->syn && s->isn == p->seq))) {
		/* the first, or a new connection between the same ports */
		s->init = true;
		s->top = (1ULL << 32) + p->seq;
		s->holes = 0;
		s->syn = p->syn;
		s->isn = p->seq;
	}
	a = s->top + (int)(p->seq - (u32)s->top);
	b = a + n;
	if (a > s->top && n) {
		hole_add(s, s->holes, s->top, a);
		s->top = a;
	}
	if (b > s->top) {
		fresh = b - s->top;
		x = s->top;
		s->top = b;
		b = x;
	}
	if (a >= b || !s->holes)
		return fresh;
	/* the first hole that ends after a */
	for (lo = 0, hi = s->holes; lo < hi;) {
		mid = (lo + hi) / 2;
		if (s->hole[mid].b > a)
			hi = mid;
		else
			lo = mid + 1;
	}
	while (lo < s->holes && s->hole[lo].a < b) {
		struct range h = s->hole[lo];

		x = a > h.a ? a : h.a;
		y = b < h.b ? b : h.b;
		fresh += y - x;
		if (h.a < x && y < h.b) {
			s->hole[lo].b = x;
			hole_add(s, lo + 1, y, h.b);
			break;
		}
		if (y < h.b) {
			s->hole[lo].a = y;
			break;
		}
		if (h.a < x) {
			s->hole[lo++].b = x;
			continue;
		}
		s->holes--;
		memmove(&s->hole[lo], &s->hole[lo + 1],
			(s->holes - lo) * sizeof(*s->hole));
	}
	return fresh;
}

/* ---- packets in flight ------------------------------------------------- */

static void tab_append(struct bucket *b, u32 i)
{
	g.rec[i].next = 0;
	if (b->head)
		g.rec[b->tail].next = i;
	else
		b->head = i;
	b->tail = i;
}

static void tab_grow(void)
{
	u64 size = g.tabsize ? g.tabsize * 2 : 4096, k;
	struct bucket *tab = zalloc(size, sizeof(*tab));
	u32 i, next;

	for (k = 0; k < g.tabsize; k++) {
		for (i = g.tab[k].head; i; i = next) {
			next = g.rec[i].next;
			tab_append(&tab[g.rec[i].p.fp[0] & (size - 1)], i);
		}
	}
	free(g.tab);
	g.tab = tab;
	g.tabsize = size;
}

static inline struct bucket *bucket(const struct pkt *p)
{
	return &g.tab[p->fp[0] & (g.tabsize - 1)];
}

static u32 rec_new(const struct pkt *p, u64 pos)
{
	u32 i;

	if (g.open >= g.tabsize)
		tab_grow();
	if (g.freerec) {
		i = g.freerec;
		g.freerec = g.rec[i].next;
	} else {
		if (g.nrec + 1 >= g.reccap) {
			if (g.reccap >= 1U << 31)
				die("more than 2^31 packets in the queue");
			g.reccap = g.reccap ? g.reccap * 2 : 4096;
			g.rec = grow(g.rec, g.reccap, sizeof(*g.rec));
		}
		i = ++g.nrec;
	}
	g.rec[i].p = *p;
	g.rec[i].pos = pos;
	tab_append(bucket(p), i);
	g.open++;
	return i;
}

static void tab_remove(struct bucket *b, u32 i, u32 prev)
{
	if (prev)
		g.rec[prev].next = g.rec[i].next;
	else
		b->head = g.rec[i].next;
	if (b->tail == i)
		b->tail = prev;
	g.open--;
}

/*
 * Takes the oldest rec that is like *p out of the table, 0 if there is none.
 * But a flow stays in order as a rule: one that is older than what already
 * went out (a lost segment, of which *p is the retransmission) comes last.
 */
static u32 rec_match(const struct pkt *p)
{
	u64 after = g.flow[p->flow].matched_pos;
	u32 i, prev = 0, oldest = 0, oldest_prev = 0, tries = 16;
	struct bucket *b;

	if (!g.tabsize)
		return 0;
	b = bucket(p);
	for (i = b->head; i && tries; prev = i, i = g.rec[i].next) {
		if (g.rec[i].p.fp[0] != p->fp[0] ||
		    g.rec[i].p.fp[1] != p->fp[1])
			continue;
		if (g.rec[i].pos >= after) {
			tab_remove(b, i, prev);
			return i;
		}
		if (!oldest) {
			oldest = i;
			oldest_prev = prev;
		}
		tries--;
	}
	if (oldest)
		tab_remove(b, oldest, oldest_prev);
	return oldest;
}

static void rec_remove(u32 want)
{
	struct bucket *b = bucket(&g.rec[want].p);
	u32 i, prev = 0;

	for (i = b->head; i != want; i = g.rec[i].next)
		prev = i;
	tab_remove(b, i, prev);
}

static void rec_free(u32 i)
{
	g.rec[i].next = g.freerec;
	g.freerec = i;
}

/* ---- one line per packet ----------------------------------------------- */

static char *put_num(char *p, u64 v, char end)
{
	char tmp[20];
	int n = 0;

	do {
		tmp[n++] = '0' + v % 10;
		v /= 10;
	} while (v);
	while (n)
		*p++ = tmp[--n];
	*p++ = end;
	return p;
}

/* in or out may be missing */
static void packet_line(const struct pkt *in, const struct pkt *out)
{
	const struct pkt *p = in ? in : out;
	char line[256], *s = line;
	const char *name;
	u64 t = p->t;

	if (!o_packets.f || !in_window(t))
		return;
	if (in)
		s = put_num(s, in->t, ',');
	else
		*s++ = ',';
	if (out)
		s = put_num(s, out->t, ',');
	else
		*s++ = ',';
	if (in && out)
		s = put_num(s, out->t > in->t ? out->t - in->t : 0, ',');
	else
		*s++ = ',';
	name = flow_name(&g.flow[p->flow]);
	s = stpcpy(s, name);
	*s++ = ',';
	s = put_num(s, p->len, ',');
	if (in)
		*s++ = '0' + in->ecn;
	*s++ = ',';
	if (out)
		*s++ = '0' + out->ecn;
	*s++ = ',';
	s = put_num(s, p->seq, ',');
	s = put_num(s, p->payload, '\n');
	fwrite(line, 1, s - line, o_packets.f);
}

/* ---- the sweep: how long the queue was --------------------------------- */

static void series_row(double t)
{
	const struct bin *b = &g.b;

	fprintf(o_series.f, "%.9f,%.3f,", t,
		(double)b->bytes * 8 * NSEC / g.bin);
	if (b->time)
		fprintf(o_series.f, "%.6f,%llu,%.3f,%llu,",
			(double)(b->qp / b->time), b->qp_max,
			(double)(b->qb / b->time), b->qb_max);
	else
		fprintf(o_series.f, "%llu,%llu,%llu,%llu,", g.qp, g.qp,
			g.qb, g.qb);
	if (b->delay_n)
		fprintf(o_series.f, "%.6f,%.3f,",
			(double)(b->delay_sum / b->delay_n) / 1e3,
			b->delay_max / 1e3);
	else
		fputs(",,", o_series.f);	/* nothing came out */
	fprintf(o_series.f, "%llu,%llu\n", b->marked, b->dropped);
}

static void bin_flush(void)
{
	struct bin *b = &g.b;
	double t = (double)(g.from + b->i * g.bin) / NSEC;
	u32 i;

	if (o_series.f)
		series_row(t);
	for (i = 0; i < g.ntouched; i++) {
		struct flow *f = &g.flow[g.touched[i]];

		fprintf(o_flows.f, "%.9f,%s,%.3f\n", t, flow_name(f),
			(double)f->bin_bytes * 8 * NSEC / g.bin);
		f->bin_bytes = 0;
	}
	g.ntouched = 0;
	i = b->i + 1;
	memset(b, 0, sizeof(*b));
	b->i = i;
}

static inline u64 bin_end(void)
{
	return g.w0 + (g.b.i + 1) * g.bin;
}

static void bin_check(u64 t)
{
	if (t > g.w0 && (t - g.w0) / g.bin >= MAX_ROWS)
		die("the series gets more than %llu rows: take a longer --bin",
		    MAX_ROWS);
}

/* The queue stayed as it is up to t. */
static void sweep_to(u64 t)
{
	u64 a = g.sw_t > g.w0 ? g.sw_t : g.w0, end = t < g.w1 ? t : g.w1, b;

	if (t <= g.sw_t)
		return;
	g.sw_t = t;
	if (a >= end)
		return;
	dist_weigh(&g.qlen_p, g.qp, end - a);
	dist_weigh(&g.qlen_b, g.qb, end - a);
	if (!o_series.f && !o_flows.f)
		return;
	bin_check(end);
	while (a < end) {
		struct bin *s = &g.b;

		if (a >= bin_end()) {
			bin_flush();
			continue;
		}
		b = end < bin_end() ? end : bin_end();
		s->time += b - a;
		s->qp += (long double)g.qp * (b - a);
		s->qb += (long double)g.qb * (b - a);
		if (g.qp > s->qp_max)
			s->qp_max = g.qp;
		if (g.qb > s->qb_max)
			s->qb_max = g.qb;
		a = b;
	}
}

/* The bin of an event at t, or NULL if nobody wants to know. */
static struct bin *bin_at(u64 t)
{
	if ((!o_series.f && !o_flows.f) || !in_window(t))
		return NULL;
	bin_check(t);
	while (t >= bin_end())
		bin_flush();
	return &g.b;
}

static void sweep_in(const struct in_ev *e)
{
	struct bin *b;

	sweep_to(e->t);
	if (e->rec == FATE_GONE) {
		g.qp++;
		g.qb += e->len;
	} else if (e->rec == FATE_DROPPED) {
		b = bin_at(e->t);
		if (b)
			b->dropped++;
	}
}

static void sweep_out(const struct out_ev *e)
{
	struct flow *f = &g.flow[e->flow];
	struct bin *b;

	sweep_to(e->t);
	if (e->matched) {
		g.qp--;
		g.qb -= e->len_in;
	}
	b = bin_at(e->t);
	if (!b)
		return;
	b->bytes += e->len;
	b->marked += e->marked;
	if (e->matched) {
		b->delay_n++;
		b->delay_sum += e->delay;
		if (e->delay > b->delay_max)
			b->delay_max = e->delay;
	}
	if (!o_flows.f)
		return;
	if (!f->bin_bytes) {
		if (g.ntouched == g.touchedcap) {
			g.touchedcap = g.touchedcap ? g.touchedcap * 2 : 64;
			g.touched = grow(g.touched, g.touchedcap,
					 sizeof(*g.touched));
		}
		g.touched[g.ntouched++] = e->flow;
	}
	f->bin_bytes += e->len;
}

static void lose(struct in_ev *e)
{
	u32 i = e->rec;
	struct pkt *p = &g.rec[i].p;

	rec_remove(i);
	if (in_window(p->t)) {
		g.dropped++;
		g.dropped_ecn[p->ecn]++;
		g.flow[p->flow].dropped++;
	}
	packet_line(p, NULL);
	e->rec = FATE_DROPPED;
	rec_free(i);
}

/*
 * Goes on as far as every packet's fate is known.  What comes later happens
 * at g.now or after.  At the same time, in goes before out: a state that does
 * not last does not count, and no packet goes out before it came in.
 */
static void sweep(void)
{
	struct in_ev *in = NULL;
	struct out_ev *out;

	for (;;) {
		in = NULL;
		if (!ring_empty(&g.ins)) {
			in = ring_front(&g.ins, struct in_ev);
			if (in->rec < FATE_MIN && g.now > in->t &&
			    g.now - in->t > g.gap)
				lose(in);
		}
		if (!ring_empty(&g.outs)) {
			out = ring_front(&g.outs, struct out_ev);
			if (!in || out->t < in->t) {
				sweep_out(out);
				g.outs.head++;
				continue;
			}
		}
		if (!in || in->rec < FATE_MIN)
			return;
		sweep_in(in);
		g.ins.head++;
	}
}

/* ---- packets in time order --------------------------------------------- */

static void start(u64 t)
{
	g.started = true;
	g.first = t;
	g.w0 = t + g.from;
	g.w1 = g.to == NEVER ? NEVER : t + g.to;
	g.sw_t = t;
}

static void on_in(const struct pkt *p)
{
	struct flow *f = &g.flow[p->flow];
	u64 pos = g.ins.tail;
	struct in_ev *e;
	u32 n = p->payload + p->seqspace;
	bool again = false;

	e = ring_push(&g.ins, struct in_ev);
	e->t = g.now;
	e->len = p->len;
	e->rec = rec_new(p, pos);
	if (p->tcp && n)
		again = seen_add(&f->in, p, n) < n;
	if (p->payload > f->max_in)
		f->max_in = p->payload;
	g.in_all++;
	if (!in_window(p->t))
		return;
	g.in++;
	g.ecn_in[p->ecn]++;
	f->packets_in++;
	f->retrans += again;
	if (g.gaps) {
		if (f->last_in != NEVER && p->t >= f->last_in)
			dist_add(&f->gap_in, p->t - f->last_in);
		f->last_in = p->t;
	}
}

static void on_out(const struct pkt *p)
{
	struct flow *f = &g.flow[p->flow];
	u32 i = rec_match(p), n = p->payload + p->seqspace, fresh;
	struct out_ev *e = ring_push(&g.outs, struct out_ev);

	memset(e, 0, sizeof(*e));
	e->t = g.now;
	e->len = p->len;
	e->flow = p->flow;
	fresh = n;
	if (p->tcp && n)
		fresh = seen_add(&f->out, p, n);
	if (fresh > p->payload)
		fresh = p->payload;
	if (p->payload > f->max_out)
		f->max_out = p->payload;
	g.out_all++;

	if (i) {
		const struct pkt *in = &g.rec[i].p;

		if (!g.last_matched_in) {
			/* all before this one was in the queue already */
			g.queued_at_start = g.unmatched_out;
			g.unmatched_out = 0;
			for (n = 0; n < g.nflows; n++)
				g.flow[n].unmatched_out = 0;
		}
		if (in->t >= g.last_matched_in)
			g.last_matched_in = in->t + 1;
		if (g.rec[i].pos >= f->matched_pos)
			f->matched_pos = g.rec[i].pos + 1;
		e->matched = true;
		e->len_in = in->len;
		e->marked = p->ecn == CE && in->ecn != CE;
		e->delay = p->t > in->t ? p->t - in->t : 0;
		ring_at(&g.ins, struct in_ev, g.rec[i].pos)->rec = FATE_GONE;
		if (in_window(in->t)) {
			g.matched++;
			dist_add(&g.delay, e->delay);
			dist_add(&f->delay, e->delay);
			g.marked += e->marked;
			f->marked += e->marked;
		}
		packet_line(in, p);
		rec_free(i);
	} else {
		if (in_window(p->t)) {
			g.unmatched_out++;
			f->unmatched_out++;
		}
		packet_line(NULL, p);
	}
	if (!in_window(p->t))
		return;
	g.out++;
	g.bytes_out += p->len;
	g.ecn_out[p->ecn]++;
	f->packets++;
	f->bytes += p->len;
	f->payload += p->payload;
	f->fresh += fresh;
	if (g.gaps) {
		if (f->last_out != NEVER && p->t >= f->last_out)
			dist_add(&f->gap_out, p->t - f->last_out);
		f->last_out = p->t;
	}
}

static void on_packet(const struct source *s, const struct pkt *p)
{
	if (!g.started)
		start(p->t);
	if (p->t > g.now)
		g.now = p->t;
	if (p->t > g.last)
		g.last = p->t;
	if (g.flow[p->flow].first == NEVER)
		g.flow[p->flow].first = p->t;
	if (s->out)
		on_out(p);
	else
		on_in(p);
	sweep();
}

/* All older packets of the source are in its queue. */
static u64 complete(const struct source *s)
{
	u64 t = s->newest > REORDER ? s->newest - REORDER : 0;

	if (s->eof)
		return NEVER;
	return t > s->clear ? t : s->clear;
}

/*
 * Takes the oldest packet of all sources as long as none older can come.  At
 * equal times what comes in comes first (sources are sorted so).
 */
static void merge(void (*refill)(struct source *s))
{
	struct source *s, *best;
	u64 t, limit;

	for (;;) {
		best = NULL;
		t = NEVER;
		limit = NEVER;
		for (s = g.src; s < g.src + g.nsrc; s++) {
			while (refill && !s->eof &&
			       (ring_empty(&s->q) ||
				ring_front(&s->q, struct pkt)->t >= complete(s)))
				refill(s);
			if (complete(s) < limit)
				limit = complete(s);
			if (!ring_empty(&s->q) &&
			    ring_front(&s->q, struct pkt)->t < t) {
				t = ring_front(&s->q, struct pkt)->t;
				best = s;
			}
		}
		if (!best || t >= limit)
			return;
		on_packet(best, ring_front(&best->q, struct pkt));
		if (t > best->merged)
			best->merged = t;
		best->q.head++;
	}
}

/* ---- captures in files ------------------------------------------------- */

static void refill_file(struct source *s)
{
	struct pcap_pkthdr *h;
	const u8 *data;
	int r = pcap_next_ex(s->pcap, &h, &data);

	if (r == 1)
		take(s, h, data);
	else if (r == PCAP_ERROR_BREAK)
		s->eof = true;
	else
		die("%s: after %llu packets: %s", s->name, s->packets,
		    pcap_geterr(s->pcap));
}

static void compile(struct source *s, struct bpf_program *prog)
{
	if (pcap_compile(s->pcap, prog, g.filter ? g.filter : "", 1,
			 PCAP_NETMASK_UNKNOWN))
		usage_error("--filter: %s", pcap_geterr(s->pcap));
}

static void set_filter(struct source *s)
{
	struct bpf_program prog;

	compile(s, &prog);
	if (pcap_setfilter(s->pcap, &prog))
		die("%s: cannot set the filter: %s", s->name,
		    pcap_geterr(s->pcap));
	pcap_freecode(&prog);
}

/* After opening: what both sides are sure to show. */
static void set_reach(struct source *s)
{
	int room, snap = pcap_snapshot(s->pcap);

	s->dlt = pcap_datalink(s->pcap);
	room = link_room(s->dlt);
	if (room < 0) {
		const char *name = pcap_datalink_val_to_name(s->dlt);

		die("%s: link type %s (%d) is not one of Ethernet, Linux cooked, raw IP, null",
		    s->name, name ? name : "unknown", s->dlt);
	}
	if (snap <= 0 || snap > 1 << 20)
		snap = 1 << 20;
	if (g.snaplen && snap > (int)g.snaplen)
		snap = g.snaplen;
	snap -= room;
	if (snap < 60)
		die("%s: snapshot length too small: at least %d is needed",
		    s->name, 60 + room);
	if (!g.reach || (u32)snap < g.reach)
		g.reach = snap;
}

static void open_file(struct source *s)
{
	char err[PCAP_ERRBUF_SIZE];
	struct stat st;

	if (!stat(s->name, &st) && S_ISREG(st.st_mode) && !st.st_size)
		die("%s: empty file", s->name);
	s->pcap = pcap_open_offline_with_tstamp_precision(s->name,
							  PCAP_TSTAMP_PRECISION_NANO,
							  err);
	if (!s->pcap) {
		/* libpcap says the name itself if the file is not there */
		if (!strncmp(err, s->name, strlen(s->name)))
			die("%s", err);
		die("%s: %s", s->name, err);
	}
	set_reach(s);
	if (g.filter)
		set_filter(s);
}

/* ---- captures of interfaces -------------------------------------------- */

/*
 * Throws the other direction away before it is copied.  libpcap does that in
 * user space, and its "inbound" must not be used: it runs a new filter there
 * too for what may have been captured before, where a packet's direction is
 * not known and the first block is lost.  What was captured before this
 * filter is too old to count (g.start).
 */
static void set_kernel_filter(struct source *s)
{
	const struct sock_filter head[] = {
		{ BPF_LD | BPF_B | BPF_ABS, 0, 0, SKF_AD_OFF + SKF_AD_PKTTYPE },
		{ BPF_JMP | BPF_JEQ | BPF_K, s->out, !s->out, PACKET_OUTGOING },
		{ BPF_RET | BPF_K, 0, 0, 0 },
	};
	struct sock_fprog all;
	struct bpf_program prog;

	static_assert(sizeof(*all.filter) == sizeof(*prog.bf_insns),
		      "one layout of instructions");
	compile(s, &prog);
	all.len = ARRAY_SIZE(head) + prog.bf_len;
	all.filter = grow(NULL, all.len, sizeof(*all.filter));
	memcpy(all.filter, head, sizeof(head));
	memcpy(all.filter + ARRAY_SIZE(head), prog.bf_insns,
	       prog.bf_len * sizeof(*prog.bf_insns));
	if (setsockopt(pcap_fileno(s->pcap), SOL_SOCKET, SO_ATTACH_FILTER,
		       &all, sizeof(all)))
		die("%s: cannot set the filter: %s", s->name, strerror(errno));
	free(all.filter);
	pcap_freecode(&prog);
}

static void open_live(struct source *s)
{
	char err[PCAP_ERRBUF_SIZE];
	int r;

	s->pcap = pcap_create(s->name, err);
	if (!s->pcap)
		die("%s: %s", s->name, err);
	pcap_set_snaplen(s->pcap, g.snaplen ? g.snaplen : 128);
	pcap_set_promisc(s->pcap, 0);
	pcap_set_timeout(s->pcap, PCAP_TMO_MS);
	pcap_set_immediate_mode(s->pcap, 0);
	pcap_set_buffer_size(s->pcap, g.buffer_mb << 20);
	if (pcap_set_tstamp_precision(s->pcap, PCAP_TSTAMP_PRECISION_NANO))
		die("%s: no time stamps in nanoseconds", s->name);
	r = pcap_activate(s->pcap);
	if (r < 0)
		die("%s: %s%s%s", s->name, pcap_statustostr(r),
		    *pcap_geterr(s->pcap) ? ": " : "", pcap_geterr(s->pcap));
	set_reach(s);
	if (s->dlt == DLT_LINUX_SLL || s->dlt == DLT_LINUX_SLL2) {
		if (pcap_setdirection(s->pcap, s->out ? PCAP_D_OUT : PCAP_D_IN))
			die("%s: %s", s->name, pcap_geterr(s->pcap));
		set_filter(s);
	} else {
		set_kernel_filter(s);
	}
	if (pcap_setnonblock(s->pcap, 1, err) < 0)
		die("%s: %s", s->name, err);
}

static u64 realtime(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return ts.tv_sec * NSEC + ts.tv_nsec;
}

static void live_packet(u8 *user, const struct pcap_pkthdr *h, const u8 *data)
{
	struct source *s = (struct source *)user;

	s->got++;
	take(s, h, data);
}

/*
 * The kernel counts a packet when it puts it into a block, and hands the block
 * over later.  So the counter tells whether there is more than what was read;
 * if not, what comes has a time after the last look.
 */
static void look(struct source *s, u64 now)
{
	struct pcap_stat st;
	u64 t;

	if (pcap_stats(s->pcap, &st))
		die("%s: %s", s->name, pcap_geterr(s->pcap));
	s->drops = st.ps_drop;
	t = now - ((u32)s->got == st.ps_recv - st.ps_drop ? REORDER : LIVE_LAG);
	if (t > s->clear)
		s->clear = t;
}

/* True if there may be more at once. */
static bool drain(void)
{
	const int batch = 16384;
	struct source *s;
	bool more = false;
	u64 now = realtime();	/* once for all: the lab charges for it, and links stand still */
	int r;

	for (s = g.src; s < g.src + g.nsrc; s++) {
		r = pcap_dispatch(s->pcap, batch, live_packet, (u8 *)s);
		if (r < 0)
			die("%s: after %llu packets: %s", s->name, s->packets,
			    pcap_geterr(s->pcap));
		if (r >= batch)
			more = true;
		else
			look(s, now);
	}
	merge(NULL);
	return more;
}

static void arm(int fd, u64 ns)
{
	struct itimerspec it = {
		.it_value = { .tv_sec = ns / NSEC, .tv_nsec = ns % NSEC },
	};

	if (timerfd_settime(fd, 0, &it, NULL))
		die("timerfd: %s", strerror(errno));
}

static void watch(int ep, int fd, u32 events, void *ptr)
{
	struct epoll_event ev = { .events = events, .data.ptr = ptr };

	if (fd < 0 || epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev))
		die("epoll: %s", strerror(errno));
}

/* All that came before the stop is here. */
static bool all_here(void)
{
	struct source *s;

	for (s = g.src; s < g.src + g.nsrc; s++) {
		if (complete(s) <= g.stop)
			return false;
	}
	return true;
}

/*
 * Sleeps until the kernel hands over a block of packets: edge-triggered, so
 * that there is no way to spin.
 */
static void run_live(void)
{
	int ep = epoll_create1(EPOLL_CLOEXEC), sig, timer, i, n;
	bool over = false, more = false;
	struct signalfd_siginfo si;
	struct epoll_event ev[8];
	struct source *s;
	sigset_t set;
	u64 ticks;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	sig = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	watch(ep, sig, EPOLLIN, &sig);
	watch(ep, timer, EPOLLIN, &timer);
	for (s = g.src; s < g.src + g.nsrc; s++)
		watch(ep, pcap_get_selectable_fd(s->pcap), EPOLLIN | EPOLLET, s);
	if (g.duration)
		arm(timer, g.duration);
	g.start = realtime();
	fprintf(stderr, "ready\n");

	while (!over) {
		bool sig_hit = false, timer_hit = false;

		n = epoll_wait(ep, ev, ARRAY_SIZE(ev), more ? 0 : -1);
		if (n < 0 && errno != EINTR)
			die("epoll: %s", strerror(errno));
		for (i = 0; i < n; i++) {
			if (ev[i].data.ptr == &sig)
				sig_hit = read(sig, &si, sizeof(si)) > 0;
			else if (ev[i].data.ptr == &timer)
				timer_hit = read(timer, &ticks, sizeof(ticks)) > 0;
		}
		more = drain();
		if (g.stop == NEVER && (sig_hit || timer_hit)) {
			g.stop = realtime();
		} else if (g.stop != NEVER) {
			/* blocks that the kernel still fills: wait for them */
			over = sig_hit || all_here() ||
			       realtime() > g.stop + LIVE_LAG;
		}
		if (g.stop != NEVER && !over)
			arm(timer, PCAP_TMO_MS * 1000000ULL);
	}
	for (s = g.src; s < g.src + g.nsrc; s++)
		s->eof = true;
	merge(NULL);
	if (g.stop > g.now)
		g.now = g.stop;
	close(sig);
	close(timer);
	close(ep);
}

/* ---- results ----------------------------------------------------------- */

static void finish(void)
{
	struct in_ev *e;
	u64 i;

	/* whatever overtook it: it is not coming any more */
	for (i = g.ins.head; i != g.ins.tail; i++) {
		e = ring_at(&g.ins, struct in_ev, i);
		if (e->rec >= FATE_MIN)
			continue;
		if (e->t + 1 < g.last_matched_in ||
		    (g.now > e->t && g.now - e->t > g.gap)) {
			lose(e);
			continue;
		}
		g.unresolved += in_window(e->t);
		e->rec = FATE_OPEN;
	}
	sweep();
	sweep_to(g.last);
	if (g.b.time || g.b.bytes || g.b.dropped)
		bin_flush();
}

/* A number, or null where there is none. */
static void json_num(FILE *f, bool there, int digits, double v)
{
	if (there && isfinite(v))
		fprintf(f, "%.*f", digits, v);
	else
		fputs("null", f);
}

struct pct {
	const char *name;
	u32 num, den;
};

static const struct pct pcts[] = {
	{ "p50", 1, 2 }, { "p90", 9, 10 }, { "p99", 99, 100 },
	{ "p999", 999, 1000 },
};

static void json_us(FILE *f, struct dist *d, bool all)
{
	u32 i;

	fputs("{\"mean\":", f);
	json_num(f, d->n, 6, dist_mean(d) / 1e3);
	for (i = 0; i < ARRAY_SIZE(pcts); i++) {
		if (!all && strcmp(pcts[i].name, "p99"))
			continue;
		fprintf(f, ",\"%s\":", pcts[i].name);
		json_num(f, d->n, 3, d->n ? dist_pct(d, pcts[i].num,
						     pcts[i].den) / 1e3 : 0);
	}
	if (all) {
		fputs(",\"max\":", f);
		json_num(f, d->n, 3, d->max / 1e3);
		fputs(",\"min\":", f);
		json_num(f, d->n, 3, d->min / 1e3);
	}
	fputc('}', f);
}

static void json_qlen(FILE *f, struct dist *d)
{
	fputs("{\"mean\":", f);
	json_num(f, d->n, 6, dist_mean(d));
	fputs(",\"p99\":", f);
	json_num(f, d->n, 1, d->n ? dist_pct(d, 99, 100) : 0);
	fputs(",\"max\":", f);
	json_num(f, d->n, 0, d->max);
	fputs(",\"stddev\":", f);
	json_num(f, d->n, 6, dist_stddev(d));
	fputc('}', f);
}

static void json_ecn(FILE *f, const u64 *n)
{
	fprintf(f, "{\"not_ect\":%llu,\"ect0\":%llu,\"ect1\":%llu,\"ce\":%llu}",
		n[NOT_ECT], n[ECT0], n[ECT1], n[CE]);
}

static const char *proto_name(u8 proto)
{
	static char num[4];

	switch (proto) {
	case IPPROTO_TCP:
		return "tcp";
	case IPPROTO_UDP:
		return "udp";
	case IPPROTO_ICMP:
		return "icmp";
	case IPPROTO_ICMPV6:
		return "icmp6";
	}
	snprintf(num, sizeof(num), "%u", proto);
	return num;
}

static void json_flow(FILE *f, struct flow *w, u64 duration)
{
	fprintf(f, "{\"flow\":\"%s\",\"proto\":\"%s\",\"packets\":%llu",
		flow_name(w), proto_name(w->key.proto), w->packets);
	fprintf(f, ",\"packets_in\":%llu,\"bytes\":%llu,\"payload_bytes\":%llu",
		w->packets_in, w->bytes, w->payload);
	fputs(",\"goodput_bps\":", f);
	json_num(f, duration, 3, (double)w->fresh * 8 * NSEC / duration);
	fprintf(f, ",\"marked\":%llu,\"dropped\":", w->marked);
	json_num(f, !w->segmented, 0, w->dropped);
	fprintf(f, ",\"unmatched_out\":%llu,\"retransmitted\":%llu,\"delay_us\":",
		w->unmatched_out, w->retrans);
	json_us(f, &w->delay, false);
	if (g.gaps) {
		fputs(",\"gap_us\":", f);
		json_us(f, &w->gap_out, true);
		fputs(",\"gap_in_us\":", f);
		json_us(f, &w->gap_in, true);
	}
	fputc('}', f);
}

static int cmp_flow(const void *a, const void *b)
{
	struct flow *x = &g.flow[*(const u32 *)a], *y = &g.flow[*(const u32 *)b];

	if (x->first != y->first)
		return x->first < y->first ? -1 : 1;
	return strcmp(flow_name(x), flow_name(y));
}

static void json(FILE *f, u64 segmented, u64 drops)
{
	u64 duration = 0, end = g.last < g.w1 ? g.last : g.w1, ignored = 0, n = 0;
	long double sum = 0, sq = 0, bps;
	const char *sep = "\n";
	u32 i, *order;

	if (end > g.w0)
		duration = end - g.w0;
	for (i = 0; i < g.nsrc; i++)
		ignored += g.src[i].ignored;
	bps = (long double)g.bytes_out * 8 * NSEC / duration;

	fprintf(f, "{\"packets_in\":%llu,\"packets_out\":%llu,\"bytes_out\":%llu,\"matched\":%llu,\"dropped\":",
		g.in, g.out, g.bytes_out, g.matched);
	json_num(f, !segmented, 0, g.dropped);
	fprintf(f, ",\"unresolved\":%llu,\"unmatched_out\":%llu,\"queued_at_start\":%llu",
		g.unresolved, g.unmatched_out, g.queued_at_start);
	fprintf(f, ",\"segmented\":%llu,\"ignored\":%llu,\"capture_drops\":%llu",
		segmented, ignored, drops);
	fprintf(f, ",\"duration_ns\":%llu,\"first_ns\":%llu,\"utilisation\":",
		duration, g.first);
	json_num(f, g.rate > 0 && duration, 6, bps / g.rate);
	fputs(",\"throughput_bps\":", f);
	json_num(f, duration, 3, bps);
	fputs(",\"delay_us\":", f);
	json_us(f, &g.delay, true);
	fputs(",\"qlen_pkts\":", f);
	json_qlen(f, &g.qlen_p);
	fputs(",\"qlen_bytes\":", f);
	json_qlen(f, &g.qlen_b);
	fputs(",\"ecn\":{\"in\":", f);
	json_ecn(f, g.ecn_in);
	fputs(",\"out\":", f);
	json_ecn(f, g.ecn_out);
	fprintf(f, "},\"marked\":%llu,\"mark_fraction\":", g.marked);
	json_num(f, g.matched, 9, (double)g.marked / g.matched);
	fprintf(f, ",\"dropped_not_ect\":%llu,\"dropped_ect0\":%llu",
		g.dropped_ecn[NOT_ECT], g.dropped_ecn[ECT0]);
	fprintf(f, ",\"dropped_ect1\":%llu,\"dropped_ce\":%llu,\"jain\":",
		g.dropped_ecn[ECT1], g.dropped_ecn[CE]);

	order = zalloc(g.nflows + 1, sizeof(*order));
	for (i = 0; i < g.nflows; i++) {
		long double x = g.flow[i].fresh;

		order[i] = i;
		if (!g.flow[i].fresh)
			continue;
		n++;
		sum += x;
		sq += x * x;
	}
	json_num(f, n, 6, sum * sum / (n * sq));
	fputs(",\"flows\":[", f);
	qsort(order, g.nflows, sizeof(*order), cmp_flow);
	for (i = 0; i < g.nflows; i++) {
		struct flow *w = &g.flow[order[i]];

		if (!w->packets && !w->packets_in)
			continue;
		fputs(sep, f);
		sep = ",\n";
		json_flow(f, w, duration);
	}
	fputs("]}\n", f);
	free(order);
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
		die("%s: %s", o->path, strerror(errno));
	o->mine = !fstat(fileno(o->f), &st) && S_ISREG(st.st_mode);
}

static void close_out(struct outfile *o)
{
	bool bad;

	if (!o->f)
		return;
	bad = ferror(o->f) | fflush(o->f);
	if (o->f != stdout)
		bad |= fclose(o->f);
	if (bad)
		die("%s: cannot write: %s", o->path, strerror(errno));
	o->f = NULL;
}

static void free_seen(struct seen *s)
{
	free(s->hole);
}

static void free_dist(struct dist *d)
{
	u32 o;

	free(d->val);
	for (o = 0; d->octave && o < NOCTAVES(d); o++)
		free(d->octave[o]);
	free(d->octave);
}

static void free_all(void)
{
	u32 i;

	for (i = 0; i < g.nflows; i++) {
		free(g.flow[i].name);
		free_seen(&g.flow[i].in);
		free_seen(&g.flow[i].out);
		free_dist(&g.flow[i].delay);
		free_dist(&g.flow[i].gap_in);
		free_dist(&g.flow[i].gap_out);
	}
	for (i = 0; i < g.nsrc; i++) {
		pcap_close(g.src[i].pcap);
		free(g.src[i].q.buf);
	}
	free_dist(&g.delay);
	free_dist(&g.qlen_p);
	free_dist(&g.qlen_b);
	free(g.flow);
	free(g.flowtab);
	free(g.rec);
	free(g.tab);
	free(g.ins.buf);
	free(g.outs.buf);
	free(g.touched);
}

/* Is there anything to tell at all? */
static void check_empty(void)
{
	struct source *s;
	bool out;
	int side;
	u64 usable, all;

	for (side = 0; side < 2; side++) {
		const char *name = NULL;

		out = side;
		usable = 0;
		all = 0;
		for (s = g.src; s < g.src + g.nsrc; s++) {
			if (s->out != out)
				continue;
			name = s->name;
			all += s->packets;
			usable += s->packets - s->ignored;
		}
		if (usable)
			continue;
		if (all)
			die("%s: none of %llu packets is IP", name, all);
		die("%s: no packets%s", name,
		    g.filter ? " that pass --filter" : "");
	}
}

static int report(void)
{
	u64 segmented = 0, drops = 0;
	struct source *s;
	int ret = 0;
	u32 i;

	check_empty();
	finish();
	for (i = 0; i < g.nflows; i++) {
		struct flow *f = &g.flow[i];

		if (f->unmatched_out && f->max_in != f->max_out) {
			f->segmented = true;
			segmented += f->unmatched_out;
		}
	}
	for (s = g.src; s < g.src + g.nsrc; s++) {
		drops += s->drops;
		if (s->late)
			warning("%s: %llu packets are out of order by more than 1 ms: queue lengths may be off",
				s->name, s->late);
	}
	json(o_json.f, segmented, drops);
	close_out(&o_json);
	close_out(&o_series);
	close_out(&o_flows);
	close_out(&o_packets);

	if (segmented) {
		fprintf(stderr, "qdelay: %llu packets unmatched because segmented on one side only: turn offloads off (ethtool -K DEV tso off gso off gro off)\n",
			segmented);
		ret = 1;
	} else if (g.unmatched_out) {
		warning("%llu packets came out that did not go in: other traffic, changed on the way, or longer in the queue than --gap",
			g.unmatched_out);
	}
	for (s = g.src; s < g.src + g.nsrc; s++) {
		if (!s->drops)
			continue;
		fprintf(stderr, "qdelay: %s: the kernel lost %llu packets of the capture: take a larger --buffer\n",
			s->name, s->drops);
		ret = 1;
	}
	return ret;
}

/* ---- options ----------------------------------------------------------- */

struct unit {
	const char *name;
	double factor;
};

static double number(const char *opt, const char *arg, const struct unit *unit)
{
	char *end;
	double v;

	errno = 0;
	v = strtod(arg, &end);
	if (end == arg || errno || !isfinite(v) || v < 0)
		usage_error("%s: '%s' is not a number", opt, arg);
	for (; unit->name; unit++) {
		if (!strcmp(end, unit->name))
			return v * unit->factor;
	}
	if (!*end && v == 0)
		return 0;
	usage_error("%s: '%s' needs a unit: %s", opt, arg,
		    unit->factor ? "kbit, mbit, gbit" : "ns, us, ms, s");
}

static u64 get_time(const char *opt, const char *arg)
{
	static const struct unit units[] = {
		{ "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 }, { 0 },
	};
	double v = number(opt, arg, units);

	if (v > 1e18)
		usage_error("%s: '%s' is too long", opt, arg);
	return llround(v);
}

static double get_rate(const char *opt, const char *arg)
{
	static const struct unit units[] = {
		{ "", 1 }, { "bit", 1 }, { "kbit", 1e3 }, { "mbit", 1e6 },
		{ "gbit", 1e9 }, { NULL, 1 },
	};

	return number(opt, arg, units);
}

static u32 get_int(const char *opt, const char *arg, u32 min, u32 max)
{
	unsigned long v;
	char *end;

	errno = 0;
	v = strtoul(arg, &end, 10);
	if (end == arg || *end || errno || *arg == '-' || v < min || v > max)
		usage_error("%s: '%s' is not a number from %u to %u", opt, arg,
			    min, max);
	return v;
}

static void add_sources(char *list, bool out)
{
	char *name;

	while ((name = strsep(&list, ",")) != NULL) {
		if (!*name)
			usage_error("--%s: empty name", out ? "out" : "in");
		if (g.nsrc == MAX_SRC)
			usage_error("more than %d captures", MAX_SRC);
		g.src[g.nsrc].name = name;
		g.src[g.nsrc++].out = out;
	}
}

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
"  --gap T             not out after T: lost (1s)\n"
"  --bin T             width of a bin of the series (1ms)\n"
"  --gaps              time between packets, per flow\n"
"  --json FILE         result (-: standard output, the default)\n"
"  --series FILE       CSV: one line per bin\n"
"  --flow-series FILE  CSV: one line per bin and flow\n"
"  --packets FILE      CSV: one line per packet\n"
"  --help\n"
"T: ns, us, ms, s.  R: bit, kbit, mbit, gbit per second.\n"
"Exit status: 0, 1 if a capture is unusable or incomplete, 2 if called wrong.\n";

enum {
	OPT_IN = 256, OPT_OUT, OPT_LIVE, OPT_DURATION, OPT_BUFFER, OPT_FILTER,
	OPT_SNAPLEN, OPT_PREFIX, OPT_RATE, OPT_OVERHEAD, OPT_FROM, OPT_TO,
	OPT_GAP, OPT_BIN, OPT_GAPS, OPT_JSON, OPT_SERIES, OPT_FLOW_SERIES,
	OPT_PACKETS, OPT_HELP,
};

static const struct option options[] = {
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
	{ "gap", required_argument, NULL, OPT_GAP },
	{ "bin", required_argument, NULL, OPT_BIN },
	{ "gaps", no_argument, NULL, OPT_GAPS },
	{ "json", required_argument, NULL, OPT_JSON },
	{ "series", required_argument, NULL, OPT_SERIES },
	{ "flow-series", required_argument, NULL, OPT_FLOW_SERIES },
	{ "packets", required_argument, NULL, OPT_PACKETS },
	{ "help", no_argument, NULL, OPT_HELP },
	{ NULL, 0, NULL, 0 },
};

static void get_options(int argc, char **argv)
{
	struct outfile *outs[] = { &o_json, &o_series, &o_flows, &o_packets };
	char *in = NULL, *out = NULL;
	u32 i, to_stdout = 0;
	int c;

	o_json.path = "-";
	while ((c = getopt_long(argc, argv, ":", options, NULL)) != -1) {
		switch (c) {
		case OPT_IN:
			add_sources(optarg, false);
			in = optarg;
			break;
		case OPT_OUT:
			if (out)
				usage_error("--out: only one");
			out = optarg;
			break;
		case OPT_LIVE:
			g.live = true;
			break;
		case OPT_DURATION:
			g.duration = get_time("--duration", optarg);
			if (!g.duration)
				usage_error("--duration: must be more than 0");
			break;
		case OPT_BUFFER:
			g.buffer_mb = get_int("--buffer", optarg, 1, 2047);
			break;
		case OPT_FILTER:
			g.filter = optarg;
			break;
		case OPT_SNAPLEN:
			g.snaplen = get_int("--snaplen", optarg, 60, 262144);
			break;
		case OPT_PREFIX:
			g.prefix = get_int("--prefix", optarg, 0, 65535);
			break;
		case OPT_RATE:
			g.rate = get_rate("--rate", optarg);
			if (g.rate <= 0)
				usage_error("--rate: must be more than 0");
			break;
		case OPT_OVERHEAD:
			g.overhead = get_int("--overhead", optarg, 0, 65535);
			break;
		case OPT_FROM:
			g.from = get_time("--from", optarg);
			break;
		case OPT_TO:
			g.to = get_time("--to", optarg);
			break;
		case OPT_GAP:
			g.gap = get_time("--gap", optarg);
			break;
		case OPT_BIN:
			g.bin = get_time("--bin", optarg);
			if (!g.bin)
				usage_error("--bin: must be more than 0");
			break;
		case OPT_GAPS:
			g.gaps = true;
			break;
		case OPT_JSON:
			o_json.path = optarg;
			break;
		case OPT_SERIES:
			o_series.path = optarg;
			break;
		case OPT_FLOW_SERIES:
			o_flows.path = optarg;
			break;
		case OPT_PACKETS:
			o_packets.path = optarg;
			break;
		case OPT_HELP:
			fputs(help, stdout);
			exit(0);
		case ':':
			usage_error("%s needs a value", argv[optind - 1]);
		default:
			usage_error("%s: no such option", argv[optind - 1]);
		}
	}
	if (optind < argc)
		usage_error("'%s': what is it?", argv[optind]);
	if (!in || !out)
		usage_error("--in and --out are needed");
	if (strchr(out, ','))
		usage_error("--out: only one");
	add_sources(out, true);		/* after all that comes in */
	if (g.from >= g.to)
		usage_error("--from must be before --to");
	if (g.duration && !g.live)
		usage_error("--duration is for --live");
	for (i = 0; i < ARRAY_SIZE(outs); i++)
		to_stdout += outs[i]->path && !strcmp(outs[i]->path, "-");
	if (to_stdout > 1)
		usage_error("only one result can go to standard output");
}

int main(int argc, char **argv)
{
	struct source *s;
	int ret;

	get_options(argc, argv);
	dist_init(&g.delay, 12, 65536);
	dist_init(&g.qlen_p, 12, 0);
	dist_init(&g.qlen_b, 12, 0);
	for (s = g.src; s < g.src + g.nsrc; s++) {
		if (g.live)
			open_live(s);
		else
			open_file(s);
	}
	open_out(&o_json);
	open_out(&o_series);
	open_out(&o_flows);
	open_out(&o_packets);
	if (o_series.f)
		fputs("t_s,throughput_bps,qlen_pkts_mean,qlen_pkts_max,qlen_bytes_mean,qlen_bytes_max,delay_us_mean,delay_us_max,marked,dropped\n",
		      o_series.f);
	if (o_flows.f)
		fputs("t_s,flow,throughput_bps\n", o_flows.f);
	if (o_packets.f)
		fputs("t_in_ns,t_out_ns,delay_ns,flow,len,ecn_in,ecn_out,seq,payload\n",
		      o_packets.f);
	if (g.live)
		run_live();
	else
		merge(refill_file);
	ret = report();
	free_all();
	return ret;
}
