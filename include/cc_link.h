/* SPDX-License-Identifier: GPL-2.0 */
/* The speed of a device's link, as its driver reports it. */
#ifndef _LOWQ_CC_LINK_H
#define _LOWQ_CC_LINK_H

#include "cc_compat.h"

/* Mb/s; 0 is unknown. For callers in a qdisc or a netdevice notifier. */
static inline u32 cc_link_mbps(struct net_device *dev)
{
	struct ethtool_link_ksettings link;

	if (cc_get_link_ksettings(dev, &link) || link.base.speed == (u32)SPEED_UNKNOWN)
		return 0;
	return link.base.speed;
}

#endif /* _LOWQ_CC_LINK_H */
