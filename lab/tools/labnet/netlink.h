/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Requests to rtnetlink, one at a time (main.c says why). Those that fail return false and leave
 * errno.
 */
#ifndef LABNET_NETLINK_H
#define LABNET_NETLINK_H

#include <libmnl/libmnl.h>

#include "../plan/plan.h"

/* A request in the making */
struct request {
	char buf[4096];
	struct nlmsghdr *h;
};

struct mnl_socket *netlink_open(void);

/* The link @e->link, made from any namespace. @ns: descriptors of its ends' namespaces */
bool add_link(struct mnl_socket *nl, const struct link *l, const int ns[2]);

/* For an exact link, before the device is up: what @e says. @seed: of what happens by chance */
bool set_line(struct mnl_socket *nl, const struct plan *p, const struct end *e, u64 seed);
/* Later on, one value: IFLA_LOWQ_LINK_RATE ... */
bool change_line(struct mnl_socket *nl, unsigned int dev, int what, u64 value);

#define NETNS_DIR	"/run/netns"	/* where ip has the names of namespaces */

/* In the namespace where @nl was opened: */
bool set_up(struct mnl_socket *nl, const char *dev, bool up);
/* Returns 0 if there is no such device. @mac: its address */
unsigned int find_dev(struct mnl_socket *nl, const char *dev, u8 mac[ETH_BYTES]);
bool add_address(struct mnl_socket *nl, unsigned int dev, const struct address *a);
bool add_neighbour(struct mnl_socket *nl, unsigned int dev, const struct address *a,
		   const u8 mac[ETH_BYTES]);
bool add_route(struct mnl_socket *nl, const struct route *r);
bool replace_route(struct mnl_socket *nl, const struct route *r);
/* netem: @ns of delay, as @parent's child or (TC_H_ROOT) as the device's queue */
bool add_delay(struct mnl_socket *nl, unsigned int dev, u32 parent, u32 handle, u64 ns);
/* htb with one class, 1:1, which sends packet by packet at @rate */
bool add_rate(struct mnl_socket *nl, unsigned int dev, u32 parent, u32 frame, double rate);

/* A FIFO of txqueuelen packets as the device's queue */
bool add_fifo(struct mnl_socket *nl, unsigned int dev);

/* What add_delay() has added as the device's queue, and add_rate() */
bool change_delay(struct mnl_socket *nl, unsigned int dev, u64 ns);
bool change_rate(struct mnl_socket *nl, unsigned int dev, u32 frame, double rate);

/* The largest packet of a link with Ethernet's header */
u32 frame_bytes(const struct link *l);

/* Removes what was added at roots and at ingresses */
void del_queues(struct mnl_socket *nl);

/* TCP connections of the caller's namespace that have packets to send or to get before they end */
size_t connections(void);

#endif
