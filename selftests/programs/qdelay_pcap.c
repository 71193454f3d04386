// SPDX-License-Identifier: GPL-2.0
/*
 * qdelay_pcap - writes captures with known content, for qdelay.sh
 *
 *   qdelay_pcap [-l eth|vlan|qinq|sll|sll2|raw] [-s SNAPLEN] [-S SNAPLEN]
 *               [-u] [-g] FILE < packets
 *
 * -s cuts packets and records that in the file's header, -S cuts them silently.
 * -u microseconds.  -g pcapng.
 *
 * One packet per line, time in ns:
 *
 *   TIME tcp|udp|NUMBER SRC:SPORT>DST:DPORT [KEY=VALUE...]
 *   TIME arp
 *
 * with [v6]:port for IPv6, ports 0 where the protocol has none.  Keys: len
 * (payload), ecn (0 not, 1 ECT(1), 2 ECT(0), 3 CE), ttl, id, frag (16 bits),
 * label, seq, ack, flags, ts, mss, fill (bytes of the payload), pad (after the
 * packet), ext (IPv6: a hop-by-hop header if 1).
 */
#include <arpa/inet.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BASE	1700000000ULL	/* seconds: time 0 of the description */
#define ROOM	70000

struct desc {
	unsigned long long t;
	unsigned long proto, sport, dport;
	bool v6, arp;
	unsigned char src[16], dst[16];
	unsigned long len, ecn, ttl, id, frag, label, seq, ack, flags, ts, mss;
	unsigned long fill, pad, ext;
};

static const struct link {
	const char *name;
	int type;
} links[] = {
	{ "eth", 1 }, { "vlan", 1 }, { "qinq", 1 }, { "sll", 113 },
	{ "sll2", 276 }, { "raw", 101 },
};

static const struct link *link_type = links;

static void __attribute__((noreturn)) fail(const char *what, const char *arg)
{
	fprintf(stderr, "qdelay_pcap: %s: %s\n", what, arg);
	exit(1);
}

static unsigned char *put8(unsigned char *p, unsigned int v)
{
	*p++ = v;
	return p;
}

static unsigned char *put16(unsigned char *p, unsigned int v)
{
	return put8(put8(p, v >> 8), v & 0xff);
}

static unsigned char *put32(unsigned char *p, unsigned long v)
{
	return put16(put16(p, v >> 16 & 0xffff), v & 0xffff);
}

static unsigned char *put_bytes(unsigned char *p, const void *v, size_t n)
{
	memcpy(p, v, n);
	return p + n;
}

static unsigned char *put_link(unsigned char *p, unsigned int type)
{
	const char *l = link_type->name;

	if (!strcmp(l, "raw"))
		return p;
	if (!strcmp(l, "sll2")) {
		p = put16(p, type);
		memset(p, 0, 18);
		return p + 18;
	}
	if (!strcmp(l, "sll")) {
		memset(p, 0, 14);
		return put16(p + 14, type);
	}
	memset(p, 2, 12);
	p += 12;
	if (!strcmp(l, "qinq"))
		p = put16(put16(p, 0x88a8), 7);
	if (strcmp(l, "eth"))
		p = put16(put16(p, 0x8100), 42);
	return put16(p, type);
}

static unsigned char *put_ip(unsigned char *p, const struct desc *d,
			     unsigned int n)
{
	if (!d->v6) {
		p = put8(put8(p, 0x45), 0xb8 | d->ecn);
		p = put16(put16(put16(p, n + 20), d->id), d->frag);
		p = put8(put8(p, d->ttl), d->proto);
		p = put16(p, d->ttl * 257);	/* stands for a checksum */
		p = put_bytes(p, d->src, 4);
		return put_bytes(p, d->dst, 4);
	}
	p = put32(p, 6UL << 28 | d->ecn << 20 | d->label);
	p = put16(p, n + (d->ext ? 8 : 0));
	p = put8(put8(p, d->ext ? 0 : d->proto), d->ttl);
	p = put_bytes(p, d->src, 16);
	p = put_bytes(p, d->dst, 16);
	if (d->ext) {
		p = put8(put8(p, d->proto), 0);
		p = put16(put32(p, 0x01040000), 0);
	}
	return p;
}

static unsigned char *put_l4(unsigned char *p, const struct desc *d)
{
	if (d->frag & 0x1fff)
		return p;
	if (d->proto == 6) {
		p = put16(put16(p, d->sport), d->dport);
		p = put32(put32(p, d->seq), d->ack);
		p = put16(p, ((d->ts ? 8U : 5U) + (d->mss ? 1 : 0)) << 12 | d->flags);
		p = put16(put32(p, 0x12340000), 0);
		if (d->ts)
			p = put32(put32(put32(p, 0x0101080a), d->ts), 1);
		if (d->mss)
			p = put16(put16(p, 0x0204), d->mss);
	} else if (d->proto == 17) {
		p = put16(put16(p, d->sport), d->dport);
		p = put16(put16(p, d->len + 8), d->ttl * 257);
	}
	return p;
}

static size_t build(unsigned char *buf, const struct desc *d)
{
	unsigned char *p, l4[44];
	size_t n = put_l4(l4, d) - l4, i;

	if (d->arp) {
		p = put_link(buf, 0x0806);
		memset(p, 1, 46);
		return p + 46 - buf;
	}
	p = put_link(buf, d->v6 ? 0x86dd : 0x0800);
	p = put_ip(p, d, n + d->len);
	p = put_bytes(p, l4, n);
	for (i = 0; i < d->len; i++)
		*p++ = d->fill >> (i % 4 * 8);
	memset(p, 0xee, d->pad);
	return p + d->pad - buf;
}

/* "1.2.3.4:5" or "[fd00::1]:5", changed while reading */
static void endpoint(char *s, unsigned char *addr, unsigned long *port, bool *v6)
{
	char *colon = strrchr(s, ':');

	if (!colon)
		fail("not ADDR:PORT", s);
	*colon = 0;
	*port = strtoul(colon + 1, NULL, 0);
	*v6 = *s == '[';
	if (*v6) {
		s[strlen(s) - 1] = 0;
		s++;
	}
	if (inet_pton(*v6 ? AF_INET6 : AF_INET, s, addr) != 1)
		fail("not an address", s);
}

static void set(struct desc *d, char *word)
{
	char *val = strchr(word, '=');
	struct {
		const char *key;
		unsigned long *to;
	} keys[] = {
		{ "len", &d->len }, { "ecn", &d->ecn }, { "ttl", &d->ttl },
		{ "id", &d->id }, { "frag", &d->frag }, { "label", &d->label },
		{ "seq", &d->seq }, { "ack", &d->ack }, { "flags", &d->flags },
		{ "ts", &d->ts }, { "mss", &d->mss }, { "fill", &d->fill }, { "pad", &d->pad },
		{ "ext", &d->ext },
	};
	size_t i;

	if (!val)
		fail("not KEY=VALUE", word);
	*val++ = 0;
	for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (strcmp(keys[i].key, word))
			continue;
		*keys[i].to = strtoul(val, NULL, 0);
		return;
	}
	fail("no such key", word);
}

/* False for an empty line or a comment. */
static bool parse(char *line, struct desc *d)
{
	char *w = strtok(line, " \t\n"), *to;

	memset(d, 0, sizeof(*d));
	d->ttl = 64;
	d->flags = 0x10;
	if (!w || *w == '#')
		return false;
	d->t = strtoull(w, NULL, 0);
	w = strtok(NULL, " \t\n");
	if (!w)
		fail("no protocol", line);
	if (!strcmp(w, "arp")) {
		d->arp = true;
		return true;
	}
	d->proto = !strcmp(w, "tcp") ? 6 : !strcmp(w, "udp") ? 17 :
		   strtoul(w, NULL, 0);
	w = strtok(NULL, " \t\n");
	to = w ? strchr(w, '>') : NULL;
	if (!to)
		fail("no flow", line);
	*to++ = 0;
	endpoint(w, d->src, &d->sport, &d->v6);
	endpoint(to, d->dst, &d->dport, &d->v6);
	while ((w = strtok(NULL, " \t\n")) != NULL)
		set(d, w);
	if (d->len > 65000 || d->pad > 1000)
		fail("too long", line);
	return true;
}

static void le32(FILE *f, unsigned long v)
{
	int i;

	for (i = 0; i < 4; i++)
		fputc(v >> 8 * i & 0xff, f);
}

static void header(FILE *f, bool ng, bool usec, unsigned long snap)
{
	if (!ng) {
		le32(f, usec ? 0xa1b2c3d4 : 0xa1b23c4d);
		le32(f, 2 | 4 << 16);
		le32(f, 0);
		le32(f, 0);
		le32(f, snap);
		le32(f, link_type->type);
		return;
	}
	le32(f, 0x0a0d0d0a);			/* section */
	le32(f, 28);
	le32(f, 0x1a2b3c4d);
	le32(f, 1);
	le32(f, 0xffffffff);
	le32(f, 0xffffffff);
	le32(f, 28);
	le32(f, 1);				/* interface */
	le32(f, 32);
	le32(f, link_type->type);
	le32(f, snap);
	le32(f, 9 | 1 << 16);			/* if_tsresol, 1 byte */
	le32(f, usec ? 6 : 9);
	le32(f, 0);
	le32(f, 32);
}

static void record(FILE *f, bool ng, bool usec, const struct desc *d,
		   const unsigned char *buf, size_t cap, size_t n)
{
	unsigned long long t = BASE * 1000000000 + d->t;
	size_t pad = -cap & 3;

	if (usec)
		t /= 1000;
	if (ng) {
		le32(f, 6);
		le32(f, 32 + cap + pad);
		le32(f, 0);
		le32(f, t >> 32);
		le32(f, t & 0xffffffff);
	} else {
		unsigned long unit = usec ? 1000000 : 1000000000;

		le32(f, t / unit);
		le32(f, t % unit);
	}
	le32(f, cap);
	le32(f, n);
	fwrite(buf, 1, cap, f);
	if (ng) {
		fwrite("\0\0\0", 1, pad, f);
		le32(f, 32 + cap + pad);
	}
}

int main(int argc, char **argv)
{
	static unsigned char buf[ROOM];
	unsigned long snap = 262144, cut = 262144;
	bool ng = false, usec = false;
	struct desc d;
	char line[512];
	size_t i, n;
	FILE *f;
	int c;

	while ((c = getopt(argc, argv, "l:s:S:ug")) != -1) {
		switch (c) {
		case 'l':
			for (i = 0; strcmp(links[i].name, optarg); i++) {
				if (i + 1 == sizeof(links) / sizeof(links[0]))
					fail("no such link type", optarg);
			}
			link_type = &links[i];
			break;
		case 's':
			snap = strtoul(optarg, NULL, 0);
			cut = snap;
			break;
		case 'S':
			cut = strtoul(optarg, NULL, 0);
			break;
		case 'u':
			usec = true;
			break;
		case 'g':
			ng = true;
			break;
		default:
			return 2;
		}
	}
	if (optind + 1 != argc)
		fail("usage", "qdelay_pcap [OPTIONS] FILE");
	f = fopen(argv[optind], "w");
	if (!f)
		fail("cannot write", argv[optind]);
	header(f, ng, usec, snap);
	while (fgets(line, sizeof(line), stdin)) {
		if (!parse(line, &d))
			continue;
		n = build(buf, &d);
		record(f, ng, usec, &d, buf, n < cut ? n : cut, n);
	}
	if (fclose(f))
		fail("cannot write", argv[optind]);
	return 0;
}
