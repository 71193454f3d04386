// SPDX-License-Identifier: GPL-2.0
/*
 * Has IP protocol 253, which IFA wants, as another experiment may: over IPv4, or over IPv6
 * (family=6).
 */
#include <linux/module.h>
#include <linux/skbuff.h>
#include <net/protocol.h>

static uint family = 4;
module_param(family, uint, 0444);

static int take(struct sk_buff *skb)
{
	kfree_skb(skb);
	return 0;
}

static const struct net_protocol protocol = {
	.handler = take,
};

static const struct inet6_protocol protocol6 = {
	.handler = take,
};

static int __init ip253_init(void)
{
	return family == 6 ? inet6_add_protocol(&protocol6, 253) :
			     inet_add_protocol(&protocol, 253);
}

static void __exit ip253_exit(void)
{
	if (family == 6)
		inet6_del_protocol(&protocol6, 253);
	else
		inet_del_protocol(&protocol, 253);
}

module_init(ip253_init);
module_exit(ip253_exit);

MODULE_DESCRIPTION("Another user of IP protocol 253");
MODULE_LICENSE("GPL");
