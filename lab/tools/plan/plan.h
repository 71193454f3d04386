/* SPDX-License-Identifier: GPL-2.0 */
/* A plan, as labnet(1) describes it. Strings are those of the JSON document. */
#ifndef PLAN_PLAN_H
#define PLAN_PLAN_H

#include <netinet/in.h>

#include "../common/types.h"
#include "document.h"

#define ETH_BYTES	6

struct address {
	int family;		/* AF_INET or AF_INET6 */
	u8 prefix;		/* bits */
	size_t bytes;		/* of @ip */
	u8 ip[sizeof(struct in6_addr)];
	const char *text;
};

struct sysctl {
	const char *name;
	const char *value;
};

struct sysctls {
	struct sysctl *at;
	size_t n;
};

/* A kernel module, and values of its parameters */
struct module {
	const char *name;
	struct sysctls parameters;
};

struct addresses {
	struct address *at;
	size_t n;
};

/* Towards @to, by any of @via */
struct route {
	struct address to;
	struct addresses via;
};

/**
 * struct node - a network namespace
 * @name:	without the plan's prefix
 * @exists:	an earlier plan made it
 * @sysctls:	set before it has devices
 * @routes:	added after its devices and addresses
 * @n_routes:	how many
 * @end:	its ends of links, in the plan's order
 * @n_ends:	how many
 */
struct node {
	const char *name;
	bool exists;
	struct sysctls sysctls;
	struct route *routes;
	size_t n_routes;
	struct end **end;
	size_t n_ends;
};

#define CERTAIN	(1ULL << 32)	/* probabilities are in Q32 */

/**
 * struct line - what happens to packets that a device sends, where the kernel has lowq_link
 * @jitter:	ns: up to so much more delay, in order
 * @loss:	of a packet in the good and in the bad state, of becoming bad and good
 * @late:	share of packets that others overtake
 * @late_by:	... by ns
 * @duplicate:	probability
 * @corrupt:	probability of a wrong bit
 * @instant:	of a trace, us, NULL: none
 * @n_instants:	how many
 */
struct line {
	u64 jitter;
	u64 loss[4];
	u64 late, late_by;
	u64 duplicate, corrupt;
	u32 *instant;
	size_t n_instants;
};

/**
 * struct end - a device, and what it does with packets that it sends
 * @node:	where it is
 * @link:	whose end it is
 * @far:	the other end
 * @dev:	its name
 * @has_mac:	@mac is given; the kernel chooses one otherwise
 * @mac:	its MAC address
 * @index:	the kernel's number of the device, when it is made
 * @addresses:	its IP addresses
 * @rate:	bit/s, 0: not limited
 * @delay:	ns
 * @line:	the rest
 * @queue:	tc's words for the queue that @rate or a trace makes, or NULL
 */
struct end {
	struct node *node;
	struct link *link;
	struct end *far;
	const char *dev;
	bool has_mac;
	u8 mac[ETH_BYTES];
	unsigned int index;
	struct addresses addresses;
	double rate;
	u64 delay;
	struct line line;
	const char *queue;
};

/**
 * struct link - a pair of devices
 * @end:	both
 * @exact:	by the kernel's lowq_link; otherwise veth, with netem and htb above
 * @mtu:	bytes, 0: the kernel's default
 * @txqueuelen:	packets
 * @offloads:	packets of up to 64 KiB, for segmentation later
 * @neighbours:	each end knows the other's MAC address without ARP
 * @tier:	a name for a set of links, or NULL
 */
struct link {
	struct end end[2];
	bool exact;
	u32 mtu;
	u32 txqueuelen;
	bool offloads;
	bool neighbours;
	const char *tier;
};

struct nodes {
	struct node **at;
	size_t n;
};

enum traffic_kind {
	TRAFFIC_LONG, TRAFFIC_REQUESTS, TRAFFIC_FLOWS, TRAFFIC_INCAST, TRAFFIC_LIST, TRAFFIC_UDP,
	TRAFFIC_PROGRAM, TRAFFIC_KINDS
};

extern const char *const traffic_kind_name[TRAFFIC_KINDS];

/* Data goes from the one node to the other. */
struct pair {
	const struct node *from, *to;
};

/* A flow of a list: its pair has the same index */
struct listed {
	u64 start;		/* ns */
	u64 size;		/* bytes */
	const char *control;	/* NULL: the traffic's */
};

/* Congestion control of those that send data and of those that receive it, NULL: the system's */
struct sides {
	const char *from, *to;
};

/**
 * struct traffic - flows of one kind
 * @kind:	how they arise. The receiver opens the connections of requests and incast; the
 *		sender opens all others
 * @label:	for their results, or ""
 * @control:	of its sockets
 * @pairs:	whom flows go between: long and incast: in turn; requests and flows: at random;
 *		list: each flow's
 * @n_pairs:	how many
 * @list:	the flows of a list, @n_pairs of them
 * @from, @to:	as the plan has them
 * @size:	bytes, 0: by @cdf, or without an end
 * @cdf:	file of a distribution of sizes, or NULL
 * @start:	of the first flow, ns
 * @duration:	ns: how long each long flow takes, how long others start; 0: no limit
 * @timeout:	ns after which a flow has failed; 0: none
 * @stagger:	ns between starts of long flows
 * @flows:	how many; 0: no limit
 * @rate:	flows per second, or
 * @load:	bit/s, or
 * @closed:	requests kept outstanding
 * @periodic:	equal times between flows, not exponentially distributed ones
 * @persist:	connections are kept
 * @pull:	receivers open the connections
 * @fan:	incast: answers per round
 * @rounds:	incast: how many
 * @period:	incast: ns from round to round; 0: when the last one is over
 * @jitter:	incast: ns within which requests start
 * @stop:	when long and udp flows and programs end at the latest, ns; 0: no limit
 * @until_end:	they end when all that has an end of its own has ended
 * @ecn:	udp: the ECN field
 * @burst:	udp: packets sent together
 * @every:	udp: ns from burst to burst; or by @rate_bps, bit/s of Ethernet frames
 * @random:	udp: gaps are exponentially distributed
 * @on, @off:	udp: ns of sending and of silence, in turn; 0: it always sends
 * @command:	program: for a shell, in @from
 * @environment: program: variables
 * @status:	program: the exit status that is expected
 */
struct traffic {
	enum traffic_kind kind;
	const char *label;
	struct sides control;
	struct pair *pairs;
	size_t n_pairs;
	struct listed *list;
	struct nodes from, to;
	u64 size;
	const char *cdf;
	u64 start, duration, timeout, stagger, flows;
	double rate, load;
	const char *tier;
	double share;
	u64 closed;
	bool periodic, persist, pull;
	u64 fan, rounds, period, jitter;
	u64 stop;
	bool until_end;
	u8 ecn;
	bool random;
	u64 burst, every, on, off;
	double rate_bps;
	const char *command;
	struct sysctls environment;
	u64 status;
};

/* A window in ns after the traffic's start; @to: NEVER: until it ends */
struct window {
	u64 from, to;
};

/* @window: the same for all queues of a node */
struct observed {
	const struct end *end;
	struct window window;
};

/**
 * struct observe - the queues that are measured
 * @queue:	which, and when
 * @n_queues:	how many
 * @window:	of those that have none of their own
 * @bin:	ns of a row of the series, 0: no series
 * @buffer_mb:	memory for captured packets of all queues together, MiB
 */
struct observe {
	struct observed *queue;
	size_t n_queues;
	struct window window;
	u64 bin;
	u64 buffer_mb;
};

/* What is recorded besides, a set */
#define RECORD_PCAP	(1U << 0)	/* the packets of each observed queue */
#define RECORD_ACKS	(1U << 1)	/* each ACK with its sender's state */
#define RECORD_QUEUE	(1U << 2)	/* each queue over time */
#define RECORD_SS	(1U << 3)	/* ss, in each host */

enum event_kind { EVENT_RATE, EVENT_DELAY, EVENT_DOWN, EVENT_UP, EVENT_ROUTE };

/* What changes while traffic runs */
struct event {
	u64 at;			/* ns after the traffic's start */
	enum event_kind kind;
	const struct node *node;
	const struct end *end;	/* EVENT_ROUTE: NULL */
	double rate;		/* the new one, bit/s */
	u64 delay;		/* the new one, ns */
	struct route route;	/* replaces one to the same network */
};

struct plan {
	const char *file;
	const char *prefix;
	struct module *modules;
	size_t n_modules;
	struct sysctls machine;		/* set where the program is started */
	struct sysctls sysctls;		/* in each new namespace */
	bool exact;			/* links are, unless said otherwise */
	struct node *nodes;
	size_t n_nodes;
	struct link *links;
	size_t n_links;
	struct traffic *traffic;
	size_t n_traffic;
	struct observe observe;
	unsigned int record;
	struct event *events;		/* by time */
	size_t n_events;
	struct {
		json_t *traffic, *observe, *record, *events, *must;
	} document;			/* until they are read */
};

/* Reads and checks @file, "-" for standard input. A fault ends the program with one line. */
void plan_read(struct plan *p, const char *file);

/* "links[3].ends[0]": a place in the plan, for messages. In a static buffer. */
const char *plan_place(const struct plan *p, const struct end *e);

/* "prefix" and the node's name: its network namespace. To be freed */
char *plan_netns(const struct plan *p, const struct node *node);

/* Where others reach @node: its first address, or NULL */
const struct address *node_address(const struct node *node);

/* Whether the first @bits of both are the same */
bool same_net(const struct address *a, const struct address *b, unsigned int bits);
bool same_address(const struct address *a, const struct address *b);

/* The nodes, in the plan's order, whose names match @pattern, as file names in a shell do */
struct nodes nodes_matching(const struct place *at, const struct plan *p, const char *pattern);

/* An object of names and values */
void read_values(const struct place *at, json_t *value, struct sysctls *list,
		 void (*check)(const struct place *at, const char *key));

/* Fields of struct end's line, read by these */
void read_jitter(const struct place *at, json_t *value, void *to);	/* struct line */
void read_loss(const struct place *at, json_t *value, void *to);
void read_reorder(const struct place *at, json_t *value, void *to);
void read_duplicate(const struct place *at, json_t *value, void *to);
void read_corrupt(const struct place *at, json_t *value, void *to);
void read_trace(const struct place *at, json_t *value, void *to);
/* Whether it needs an exact link */
bool line_used(const struct line *l);

/* Parts of plan_read(): */
void traffic_read(struct plan *p, const struct place *at, json_t *value);
void observe_read(struct plan *p, const struct place *at, json_t *value);
void record_read(struct plan *p, const struct place *at, json_t *value);
void events_read(struct plan *p, const struct place *at, json_t *value);
/* Only checks it */
void must_read(struct plan *p, const struct place *at, json_t *value);

/* The node of this name, or a refusal */
const struct node *node_named(const struct place *at, const char *name);
/* An object with "to" and "via": to struct route */
void read_route(const struct place *at, json_t *value, void *to);
/* Whether the other end of one of the node's links has this address */
bool is_next_hop(const struct node *node, const struct address *via);

/*
 * How many bit/s all links of the tier carry, in both directions, for each bit/s of flows between
 * @pairs, if all pairs are equally likely and next hops share evenly. @capacity: of the tier
 */
double tier_crossings(const struct plan *p, const char *tier, const struct pair *pairs, size_t n,
		      double *capacity);

#endif
