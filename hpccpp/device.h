/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The speeds of this host's devices. Only a caller that holds RTNL may ask a driver, so a notifier
 * asks when a device comes up or its link changes, and flows look the answer up.
 */
#ifndef _LOWQ_HPCCPP_DEVICE_H
#define _LOWQ_HPCCPP_DEVICE_H

#include <linux/netdevice.h>
#include <linux/rhashtable.h>

#include "cc_link.h"
#include "hpccpp_model.h"

/**
 * struct hpccpp_device - a device that has reported a speed
 * @node:	in hpccpp_devices
 * @dev:	the key. No reference: the entry is removed before the device is
 * @rcu:	frees the entry after flows that read it
 * @mbps:	its speed, 1 to HPCCPP_MBPS_MAX
 */
struct hpccpp_device {
	struct rhash_head node;
	const struct net_device *dev;
	struct rcu_head rcu;
	u32 mbps;
};

/* Changed under RTNL only. */
static struct rhashtable hpccpp_devices;
static const struct rhashtable_params hpccpp_devices_params = {
	.key_len = sizeof(const struct net_device *),
	.key_offset = offsetof(struct hpccpp_device, dev),
	.head_offset = offsetof(struct hpccpp_device, node),
	.automatic_shrinking = true,
};

/* Mb/s; 0: unknown. @dev is only compared. */
static inline u32 hpccpp_device_mbps(const struct net_device *dev)
{
	const struct hpccpp_device *d;
	u32 mbps;

	rcu_read_lock();
	d = rhashtable_lookup(&hpccpp_devices, &dev, hpccpp_devices_params);
	mbps = d ? READ_ONCE(d->mbps) : 0;
	rcu_read_unlock();
	return mbps;
}

static void hpccpp_device_forget(const struct net_device *dev)
{
	struct hpccpp_device *d = rhashtable_lookup_fast(&hpccpp_devices, &dev,
							 hpccpp_devices_params);

	if (!d)
		return;
	rhashtable_remove_fast(&hpccpp_devices, &d->node, hpccpp_devices_params);
	kfree_rcu(d, rcu);
}

/* If there is no memory, the speed stays unknown. */
static void hpccpp_device_learn(struct net_device *dev)
{
	u32 mbps = min(cc_link_mbps(dev), HPCCPP_MBPS_MAX);
	struct hpccpp_device *d;

	if (!mbps) {
		hpccpp_device_forget(dev);
		return;
	}
	d = rhashtable_lookup_fast(&hpccpp_devices, &dev, hpccpp_devices_params);
	if (d) {
		WRITE_ONCE(d->mbps, mbps);
		return;
	}
	d = kzalloc_obj(*d, GFP_KERNEL);
	if (!d)
		return;
	d->dev = dev;
	d->mbps = mbps;
	if (rhashtable_insert_fast(&hpccpp_devices, &d->node, hpccpp_devices_params))
		kfree(d);
}

/*
 * A device that moves to another namespace is unregistered in the old one. When the notifier is
 * registered or unregistered, the kernel calls it for all devices that are up.
 */
static int hpccpp_netdev_event(struct notifier_block *nb, unsigned long event, void *ptr)
{
	struct net_device *dev = netdev_notifier_info_to_dev(ptr);

	switch (event) {
	case NETDEV_UP:
	case NETDEV_CHANGE:
		hpccpp_device_learn(dev);
		break;
	case NETDEV_UNREGISTER:
		hpccpp_device_forget(dev);
		break;
	}
	return NOTIFY_DONE;
}

static struct notifier_block hpccpp_netdev_notifier = {
	.notifier_call = hpccpp_netdev_event,
};

#endif /* _LOWQ_HPCCPP_DEVICE_H */
