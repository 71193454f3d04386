// SPDX-License-Identifier: GPL-2.0
#include <err.h>
#include <errno.h>
#include <limits.h>
#include <linux/if_addr.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/inet_diag.h>
#include <linux/neighbour.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/veth.h>
#include <math.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <string.h>

#include "../../link/lowq_link.h"
#include "netlink.h"

#define NETEM_LIMIT	1000000		/* packets; netem must not drop */
#define NETEM_TICK	64		/* ns, in which tc gives delays: the same here and there */
#define HTB_DIRECT	100000		/* packets that no class takes */
#define HTB_QUANTUM	10		/* not used: the class has a quantum */
#define GSO_SEGMENTS	65535

#define HEADER		14	/* of Ethernet */
#define MTU		1500

struct mnl_socket *netlink_open(void)
{
	struct mnl_socket *nl = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);

	if (!nl || mnl_socket_bind(nl, 0, MNL_SOCKET_AUTOPID))
		err(1, "netlink");
	return nl;
}

/* Begins a request; returns the header of its type, of @bytes */
static void *begin(struct request *r, int type, int flags, size_t bytes)
{
	static unsigned int seq;

	r->h = mnl_nlmsg_put_header(r->buf);
	r->h->nlmsg_type = type;
	r->h->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | flags;
	r->h->nlmsg_seq = ++seq;
	return mnl_nlmsg_put_extra_header(r->h, bytes);
}

/* Sends it; @answer gets the messages that come before the final one */
static bool ask(struct mnl_socket *nl, const struct request *r, mnl_cb_t answer, void *data)
{
	char buf[32768];
	ssize_t n;
	int more;

	if (mnl_socket_sendto(nl, r->h, r->h->nlmsg_len) < 0)
		return false;
	do {
		n = mnl_socket_recvfrom(nl, buf, sizeof(buf));
		if (n < 0)
			return false;
		more = mnl_cb_run(buf, n, r->h->nlmsg_seq, mnl_socket_get_portid(nl), answer, data);
	} while (more > 0);
	return !more;
}

static bool send_request(struct mnl_socket *nl, const struct request *r)
{
	return ask(nl, r, NULL, NULL);
}

static void put_end(struct request *r, const struct end *e, int ns)
{
	mnl_attr_put_strz(r->h, IFLA_IFNAME, e->dev);
	mnl_attr_put_u32(r->h, IFLA_NET_NS_FD, ns);
	mnl_attr_put_u32(r->h, IFLA_GSO_MAX_SEGS, e->link->offloads ? GSO_SEGMENTS : 1);
	mnl_attr_put_u32(r->h, IFLA_TXQLEN, e->link->txqueuelen);
	if (e->link->mtu)
		mnl_attr_put_u32(r->h, IFLA_MTU, e->link->mtu);
	if (e->has_mac)
		mnl_attr_put(r->h, IFLA_ADDRESS, ETH_BYTES, e->mac);
}

bool add_link(struct mnl_socket *nl, const struct link *l, const int ns[2])
{
	struct nlattr *info, *data, *peer;
	struct request r;

	begin(&r, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, sizeof(struct ifinfomsg));
	put_end(&r, &l->end[0], ns[0]);
	info = mnl_attr_nest_start(r.h, IFLA_LINKINFO);
	mnl_attr_put_str(r.h, IFLA_INFO_KIND, l->exact ? LOWQ_LINK_KIND : "veth");
	data = mnl_attr_nest_start(r.h, IFLA_INFO_DATA);
	peer = mnl_attr_nest_start(r.h, l->exact ? IFLA_LOWQ_LINK_PEER : VETH_INFO_PEER);
	mnl_nlmsg_put_extra_header(r.h, sizeof(struct ifinfomsg));
	put_end(&r, &l->end[1], ns[1]);
	mnl_attr_nest_end(r.h, peer);
	mnl_attr_nest_end(r.h, data);
	mnl_attr_nest_end(r.h, info);
	return send_request(nl, &r);
}

/* Begins a change of an end of a link; end_line() sends it */
static struct nlattr *begin_line(struct request *r, unsigned int dev, struct nlattr **info)
{
	struct ifinfomsg *i = begin(r, RTM_NEWLINK, 0, sizeof(*i));

	i->ifi_index = dev;
	*info = mnl_attr_nest_start(r->h, IFLA_LINKINFO);
	mnl_attr_put_str(r->h, IFLA_INFO_KIND, LOWQ_LINK_KIND);
	return mnl_attr_nest_start(r->h, IFLA_INFO_DATA);
}

static bool end_line(struct mnl_socket *nl, struct request *r, struct nlattr *info,
		     struct nlattr *data)
{
	mnl_attr_nest_end(r->h, data);
	mnl_attr_nest_end(r->h, info);
	return send_request(nl, r);
}

bool change_line(struct mnl_socket *nl, unsigned int dev, int what, u64 value)
{
	struct nlattr *info, *data;
	struct request r;

	data = begin_line(&r, dev, &info);
	mnl_attr_put_u64(r.h, what, value);
	return end_line(nl, &r, info, data);
}

/* As many instants as a message has room for */
static bool add_instants(struct mnl_socket *nl, const struct end *e)
{
	const size_t most = (sizeof(((struct request *)0)->buf) - 256) / sizeof(u32);
	size_t n, left;

	for (left = e->line.n_instants; left; left -= n) {
		struct nlattr *info, *data;
		struct request r;

		n = left < most ? left : most;
		data = begin_line(&r, e->index, &info);
		mnl_attr_put(r.h, IFLA_LOWQ_LINK_TRACE, n * sizeof(u32),
			     e->line.instant + e->line.n_instants - left);
		if (!end_line(nl, &r, info, data))
			return false;
	}
	return true;
}

bool set_line(struct mnl_socket *nl, const struct end *e, u64 seed)
{
	const struct line *l = &e->line;
	const struct lowq_link_loss loss = { l->loss[0], l->loss[1], l->loss[2], l->loss[3] };
	const struct lowq_link_late late = { l->late, l->late_by };
	struct nlattr *info, *data;
	struct request r;

	data = begin_line(&r, e->index, &info);
	if (e->rate)
		mnl_attr_put_u64(r.h, IFLA_LOWQ_LINK_RATE, llrint(e->rate));
	if (l->instant)
		mnl_attr_put_u32(r.h, IFLA_LOWQ_LINK_TRACE_SIZE, l->n_instants);
	mnl_attr_put_u64(r.h, IFLA_LOWQ_LINK_DELAY, e->delay);
	mnl_attr_put_u64(r.h, IFLA_LOWQ_LINK_JITTER, l->jitter);
	mnl_attr_put_u64(r.h, IFLA_LOWQ_LINK_SEED, seed);
	mnl_attr_put(r.h, IFLA_LOWQ_LINK_LOSS, sizeof(loss), &loss);
	mnl_attr_put(r.h, IFLA_LOWQ_LINK_LATE, sizeof(late), &late);
	mnl_attr_put_u64(r.h, IFLA_LOWQ_LINK_DUPLICATE, l->duplicate);
	mnl_attr_put_u64(r.h, IFLA_LOWQ_LINK_CORRUPT, l->corrupt);
	return end_line(nl, &r, info, data) && add_instants(nl, e);
}

bool set_up(struct mnl_socket *nl, const char *dev, bool up)
{
	struct ifinfomsg *i;
	struct request r;

	i = begin(&r, RTM_NEWLINK, 0, sizeof(*i));
	i->ifi_change = IFF_UP;
	i->ifi_flags = up ? IFF_UP : 0;
	mnl_attr_put_strz(r.h, IFLA_IFNAME, dev);
	return send_request(nl, &r);
}

struct found {
	unsigned int dev;
	u8 *mac;
};

static int found_dev(const struct nlmsghdr *h, void *data)
{
	const struct ifinfomsg *i = mnl_nlmsg_get_payload(h);
	struct found *f = data;
	struct nlattr *a;

	f->dev = i->ifi_index;
	mnl_attr_for_each(a, h, sizeof(*i))
		if (mnl_attr_get_type(a) == IFLA_ADDRESS &&
		    mnl_attr_get_payload_len(a) == ETH_BYTES)
			memcpy(f->mac, mnl_attr_get_payload(a), ETH_BYTES);
	return MNL_CB_OK;
}

unsigned int find_dev(struct mnl_socket *nl, const char *dev, u8 mac[ETH_BYTES])
{
	struct found f = { .mac = mac };
	struct request r;

	begin(&r, RTM_GETLINK, 0, sizeof(struct ifinfomsg));
	mnl_attr_put_strz(r.h, IFLA_IFNAME, dev);
	return ask(nl, &r, found_dev, &f) ? f.dev : 0;
}

bool add_address(struct mnl_socket *nl, unsigned int dev, const struct address *a)
{
	struct ifaddrmsg *m;
	struct request r;

	m = begin(&r, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, sizeof(*m));
	m->ifa_family = a->family;
	m->ifa_prefixlen = a->prefix;
	m->ifa_index = dev;
	if (a->family == AF_INET6)
		m->ifa_flags = IFA_F_NODAD;
	mnl_attr_put(r.h, IFA_LOCAL, a->bytes, a->ip);
	mnl_attr_put(r.h, IFA_ADDRESS, a->bytes, a->ip);
	return send_request(nl, &r);
}

bool add_neighbour(struct mnl_socket *nl, unsigned int dev, const struct address *a,
		   const u8 mac[ETH_BYTES])
{
	struct ndmsg *m;
	struct request r;

	m = begin(&r, RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE, sizeof(*m));
	m->ndm_family = a->family;
	m->ndm_ifindex = dev;
	m->ndm_state = NUD_PERMANENT;
	mnl_attr_put(r.h, NDA_DST, a->bytes, a->ip);
	mnl_attr_put(r.h, NDA_LLADDR, ETH_BYTES, mac);
	return send_request(nl, &r);
}

static bool put_route(struct mnl_socket *nl, const struct route *route, int flags)
{
	const struct addresses *via = &route->via;
	struct nlattr *hops, *gateway;
	struct rtmsg *m;
	struct request r;

	m = begin(&r, RTM_NEWROUTE, NLM_F_CREATE | flags, sizeof(*m));
	m->rtm_family = route->to.family;
	m->rtm_dst_len = route->to.prefix;
	m->rtm_table = RT_TABLE_MAIN;
	m->rtm_protocol = RTPROT_BOOT;
	m->rtm_scope = RT_SCOPE_UNIVERSE;
	m->rtm_type = RTN_UNICAST;
	if (route->to.prefix)
		mnl_attr_put(r.h, RTA_DST, route->to.bytes, route->to.ip);
	if (via->n == 1) {
		mnl_attr_put(r.h, RTA_GATEWAY, via->at->bytes, via->at->ip);
		return send_request(nl, &r);
	}
	hops = mnl_attr_nest_start(r.h, RTA_MULTIPATH);
	for (size_t i = 0; i < via->n; i++) {
		struct rtnexthop *hop;

		if (r.h->nlmsg_len > sizeof(r.buf) - 64) {
			errno = EMSGSIZE;
			return false;
		}
		hop = mnl_nlmsg_put_extra_header(r.h, sizeof(*hop));
		gateway = mnl_nlmsg_get_payload_tail(r.h);
		mnl_attr_put(r.h, RTA_GATEWAY, via->at[i].bytes, via->at[i].ip);
		hop->rtnh_len = sizeof(*hop) + MNL_ALIGN(gateway->nla_len);
	}
	mnl_attr_nest_end(r.h, hops);
	return send_request(nl, &r);
}

bool add_route(struct mnl_socket *nl, const struct route *route)
{
	return put_route(nl, route, NLM_F_EXCL);
}

bool replace_route(struct mnl_socket *nl, const struct route *route)
{
	return put_route(nl, route, NLM_F_REPLACE);
}

#define ADD	(NLM_F_CREATE | NLM_F_EXCL)
#define CHANGE	0

static struct tcmsg *begin_queue(struct request *r, int type, int flags, unsigned int dev,
				 u32 parent, u32 handle, const char *kind)
{
	struct tcmsg *m = begin(r, type, flags, sizeof(*m));

	m->tcm_family = AF_UNSPEC;
	m->tcm_ifindex = dev;
	m->tcm_parent = parent;
	m->tcm_handle = handle;
	mnl_attr_put_strz(r->h, TCA_KIND, kind);
	return m;
}

static bool put_delay(struct mnl_socket *nl, int flags, unsigned int dev, u32 parent, u32 handle,
		      u64 ns)
{
	const struct tc_netem_qopt opt = { .limit = NETEM_LIMIT };
	struct nlattr *options;
	struct request r;

	begin_queue(&r, RTM_NEWQDISC, flags, dev, parent, handle, "netem");
	options = mnl_attr_nest_start(r.h, TCA_OPTIONS);
	options->nla_type &= ~NLA_F_NESTED;
	memcpy(mnl_nlmsg_put_extra_header(r.h, sizeof(opt)), &opt, sizeof(opt));
	mnl_attr_put_u64(r.h, TCA_NETEM_LATENCY64, ns - ns % NETEM_TICK);
	mnl_attr_nest_end(r.h, options);
	return send_request(nl, &r);
}

bool add_delay(struct mnl_socket *nl, unsigned int dev, u32 parent, u32 handle, u64 ns)
{
	return put_delay(nl, ADD, dev, parent, handle, ns);
}

bool add_fifo(struct mnl_socket *nl, unsigned int dev)
{
	struct request r;

	begin_queue(&r, RTM_NEWQDISC, ADD, dev, TC_H_ROOT, TC_H_MAKE(2 << 16, 0), "pfifo");
	return send_request(nl, &r);
}

bool change_delay(struct mnl_socket *nl, unsigned int dev, u64 ns)
{
	return put_delay(nl, CHANGE, dev, TC_H_ROOT, 0, ns);
}

u32 frame_bytes(const struct link *l)
{
	return (l->mtu ? l->mtu : MTU) + HEADER;
}

/*
 * htb's buffers are times, in units of 64 ns. As with tc it is that of whole microseconds: less
 * than a frame takes, so that after a pause a second one does not leave together with the first.
 */
static u32 ticks(double bytes, double bytes_per_s)
{
	u64 us = bytes / bytes_per_s * 1e6;

	return us * 1000 / 64;
}

static bool put_class(struct mnl_socket *nl, int flags, unsigned int dev, u32 frame, double rate)
{
	u64 bytes_per_s = rate / CHAR_BIT;
	bool wide = bytes_per_s > UINT32_MAX;
	struct tc_htb_opt opt = {
		.rate = {
			.linklayer = TC_LINKLAYER_ETHERNET,
			.rate = wide ? UINT32_MAX : bytes_per_s,
		},
		.buffer = ticks(frame, bytes_per_s),
		.cbuffer = ticks(frame, bytes_per_s),
		.quantum = frame,
	};
	struct nlattr *options;
	struct request r;

	opt.ceil = opt.rate;
	begin_queue(&r, RTM_NEWTCLASS, flags, dev, TC_H_MAKE(1 << 16, 0), TC_H_MAKE(1 << 16, 1),
		    "htb");
	options = mnl_attr_nest_start(r.h, TCA_OPTIONS);
	if (wide) {
		mnl_attr_put_u64(r.h, TCA_HTB_RATE64, bytes_per_s);
		mnl_attr_put_u64(r.h, TCA_HTB_CEIL64, bytes_per_s);
	}
	mnl_attr_put(r.h, TCA_HTB_PARMS, sizeof(opt), &opt);
	mnl_attr_nest_end(r.h, options);
	return send_request(nl, &r);
}

bool add_rate(struct mnl_socket *nl, unsigned int dev, u32 parent, u32 frame, double rate)
{
	const struct tc_htb_glob glob = { .version = 3, .rate2quantum = HTB_QUANTUM, .defcls = 1 };
	struct nlattr *options;
	struct request r;

	begin_queue(&r, RTM_NEWQDISC, ADD, dev, parent, TC_H_MAKE(1 << 16, 0), "htb");
	options = mnl_attr_nest_start(r.h, TCA_OPTIONS);
	mnl_attr_put(r.h, TCA_HTB_INIT, sizeof(glob), &glob);
	mnl_attr_put_u32(r.h, TCA_HTB_DIRECT_QLEN, HTB_DIRECT);
	mnl_attr_nest_end(r.h, options);
	return send_request(nl, &r) && put_class(nl, ADD, dev, frame, rate);
}

bool change_rate(struct mnl_socket *nl, unsigned int dev, u32 frame, double rate)
{
	return put_class(nl, CHANGE, dev, frame, rate);
}

static int del_queue(const struct nlmsghdr *h, void *data)
{
	const struct tcmsg *queue = mnl_nlmsg_get_payload(h);
	struct nlattr *a, *kind = NULL;
	struct tcmsg *m;
	struct request r;

	mnl_attr_for_each(a, h, sizeof(*queue))
		if (mnl_attr_get_type(a) == TCA_KIND)
			kind = a;
	if (!kind || (queue->tcm_parent != TC_H_ROOT && queue->tcm_parent != TC_H_INGRESS) ||
	    !queue->tcm_handle)		/* the kernel's own */
		return MNL_CB_OK;
	m = begin(&r, RTM_DELQDISC, 0, sizeof(*m));
	m->tcm_ifindex = queue->tcm_ifindex;
	m->tcm_parent = queue->tcm_parent;
	mnl_attr_put(r.h, TCA_KIND, mnl_attr_get_payload_len(kind), mnl_attr_get_payload(kind));
	send_request(data, &r);		/* or it is gone already */
	return MNL_CB_OK;
}

void del_queues(struct mnl_socket *nl)
{
	struct mnl_socket *other = netlink_open();
	struct request r;

	begin(&r, RTM_GETQDISC, NLM_F_DUMP, sizeof(struct tcmsg));
	ask(nl, &r, del_queue, other);
	mnl_socket_close(other);
}

static int count(const struct nlmsghdr *h, void *data)
{
	(void)h;
	++*(size_t *)data;
	return MNL_CB_OK;
}

size_t connections(void)
{
	struct mnl_socket *nl = mnl_socket_open2(NETLINK_SOCK_DIAG, SOCK_CLOEXEC);
	static const u8 families[] = { AF_INET, AF_INET6 };
	size_t n = 0;

	if (!nl || mnl_socket_bind(nl, 0, MNL_SOCKET_AUTOPID))
		err(1, "netlink");
	for (size_t i = 0; i < ARRAY_SIZE(families); i++) {
		struct inet_diag_req_v2 *m;
		struct request r;

		m = begin(&r, SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, sizeof(*m));
		m->sdiag_family = families[i];
		m->sdiag_protocol = IPPROTO_TCP;
		m->idiag_states = 1 << TCP_ESTABLISHED | 1 << TCP_FIN_WAIT1 |
				  1 << TCP_CLOSE_WAIT | 1 << TCP_LAST_ACK | 1 << TCP_CLOSING;
		ask(nl, &r, count, &n);
	}
	mnl_socket_close(nl);
	return n;
}
