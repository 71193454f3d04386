/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One run of the lab in several processes, each of which has all devices and handles the packets
 * of its part. Also with one process, what arrives at one instant comes in the order of its links.
 */
#ifndef _LOWQ_LINK_PARALLEL_H
#define _LOWQ_LINK_PARALLEL_H

#include <linux/netdevice.h>
#include <linux/rbtree.h>
#include <linux/skbuff.h>

/**
 * struct link_due - when the next packet arrives over a way
 * @node:	in the tree of all
 * @at:		when, ns; 0: it is not in the tree
 * @id:		of the way, by which those of one instant are ordered
 * @arrive:	called then
 */
struct link_due {
	struct rb_node node;
	u64 at;
	u32 id;
	void (*arrive)(struct link_due *due);
};

/* main.c's: a packet that has left at @sent comes from another process */
void link_import(u32 id, struct sk_buff *skb, u64 sent, u64 at);

#ifdef LOWQ_PARALLEL
#include <linux/um_parallel.h>

/* Random numbers are drawn for this device's node; NULL: for nobody */
static inline void parallel_node(const struct net_device *dev)
{
	if (um_parallel)
		um_parallel_node = dev ? dev_net(dev)->net_cookie : 0;
}

/* @at 0: never */
void parallel_set(struct link_due *due, u64 at);
/* Makes packets alike that were made in another way in another process; false: no memory */
bool parallel_normalize(struct sk_buff *skb);
/* Hands the packet to the process @to, where it arrives over the way @id at @at. */
void parallel_send(u32 to, u32 id, struct sk_buff *skb, u64 at);
/* This process's number */
u32 parallel_me(void);
int parallel_init(void);
void parallel_exit(void);
#else
#define um_parallel false
static inline void parallel_node(const struct net_device *dev) { }
static inline void parallel_set(struct link_due *due, u64 at) { }
static inline bool parallel_normalize(struct sk_buff *skb) { return true; }
static inline void parallel_send(u32 to, u32 id, struct sk_buff *skb, u64 at) { }
static inline u32 parallel_me(void) { return 0; }
static inline int parallel_init(void) { return 0; }
static inline void parallel_exit(void) { }
#endif

#endif
