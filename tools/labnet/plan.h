/* SPDX-License-Identifier: GPL-2.0 */
/* A plan, as docs/plan.schema.json describes it. Strings are those of the JSON document. */
#ifndef LABNET_PLAN_H
#define LABNET_PLAN_H

#include <netinet/in.h>

#include "../common/types.h"

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
 * @queue:	tc's words for the queue that @rate makes, or NULL
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
	const char *queue;
};

/**
 * struct link - a veth pair
 * @end:	both devices
 * @mtu:	bytes, 0: the kernel's default
 * @txqueuelen:	packets
 * @offloads:	packets of up to 64 KiB, for segmentation later
 * @neighbours:	each end knows the other's MAC address without ARP
 */
struct link {
	struct end end[2];
	u32 mtu;
	u32 txqueuelen;
	bool offloads;
	bool neighbours;
};

struct plan {
	const char *file;
	const char *prefix;
	struct sysctls machine;		/* set where the program is started */
	struct sysctls sysctls;		/* in each new namespace */
	struct node *nodes;
	size_t n_nodes;
	struct link *links;
	size_t n_links;
};

/* Reads and checks @file, "-" for standard input. A fault ends the program with one line. */
void plan_read(struct plan *p, const char *file);

/* "links[3].ends[0]": a place in the plan, for messages. In a static buffer. */
const char *plan_place(const struct plan *p, const struct end *e);

#endif
