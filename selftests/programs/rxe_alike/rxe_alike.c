// SPDX-License-Identifier: GPL-2.0
/*
 * Sends RoCE packets as rdma_rxe does, from a kernel socket that is never bound, but the socket's
 * user data is not what rdma_rxe has there today: roce_rcm must not follow it. Loading it sends
 * the packets, from 10.9.9.1 to 10.9.9.2.
 */
#include <linux/in.h>
#include <linux/module.h>
#include <linux/net.h>
#include <linux/skbuff.h>
#include <linux/slab.h>
#include <linux/udp.h>
#include <linux/vmalloc.h>
#include <net/ip.h>
#include <net/net_namespace.h>
#include <net/route.h>
#include <net/sock.h>

#define BYTES	(12 + 16 + 4)	/* base transport header, payload, ICRC */

static void freed(struct sk_buff *skb)
{
}

/* A SEND of one packet, to queue pair 17 */
static int send_one(struct socket *sock)
{
	struct flowi4 fl4 = {
		.saddr = htonl(0x0a090901),
		.daddr = htonl(0x0a090902),
		.flowi4_proto = IPPROTO_UDP,
	};
	struct rtable *rt = ip_route_output_key(&init_net, &fl4);
	struct sk_buff *skb;
	struct udphdr *udp;
	struct iphdr *ip;
	u8 *bth;

	if (IS_ERR(rt))
		return PTR_ERR(rt);
	skb = alloc_skb(LL_MAX_HEADER + sizeof(*ip) + sizeof(*udp) + BYTES, GFP_KERNEL);
	if (!skb) {
		ip_rt_put(rt);
		return -ENOMEM;
	}
	skb_reserve(skb, LL_MAX_HEADER + sizeof(*ip) + sizeof(*udp));
	bth = skb_put_zero(skb, BYTES);
	bth[0] = 4;		/* RC, SEND only */
	bth[2] = 0xff;		/* P_Key */
	bth[3] = 0xff;
	bth[7] = 17;
	udp = skb_push(skb, sizeof(*udp));
	udp->source = htons(50000);
	udp->dest = htons(4791);
	udp->len = htons(skb->len);
	udp->check = 0;
	skb_reset_transport_header(skb);
	ip = skb_push(skb, sizeof(*ip));
	skb_reset_network_header(skb);
	*ip = (struct iphdr){
		.version = 4, .ihl = 5, .ttl = 64,
		.protocol = IPPROTO_UDP, .frag_off = htons(IP_DF),
		.saddr = fl4.saddr, .daddr = fl4.daddr,
	};
	skb->protocol = htons(ETH_P_IP);
	skb->sk = sock->sk;
	skb->destructor = freed;
	skb_dst_set(skb, &rt->dst);
	return ip_local_out(&init_net, sock->sk, skb);
}

static int __init rxe_alike_init(void)
{
	char *zero = kzalloc(PAGE_SIZE, GFP_KERNEL), *mapped = vzalloc(PAGE_SIZE);
	char *ones = kmalloc(PAGE_SIZE, GFP_KERNEL);
	void *user_data[] = { (void *)8, zero + 1, zero, ones, mapped };
	int i, err = -ENOMEM;
	struct socket *sock;

	if (zero && mapped && ones) {
		memset(ones, 0xff, PAGE_SIZE);
		err = sock_create_kern(&init_net, AF_INET, SOCK_DGRAM, IPPROTO_UDP, &sock);
	}
	if (!err) {
		for (i = 0; i < ARRAY_SIZE(user_data) && !err; i++) {
			sock->sk->sk_user_data = user_data[i];
			err = send_one(sock);
		}
		sock->sk->sk_user_data = NULL;
		sock_release(sock);
	}
	kfree(zero);
	kfree(ones);
	vfree(mapped);
	return err;
}

static void __exit rxe_alike_exit(void)
{
}

module_init(rxe_alike_init);
module_exit(rxe_alike_exit);
MODULE_DESCRIPTION("Sends as rdma_rxe does, with other structures, for tests of roce_rcm");
MODULE_LICENSE("GPL");
