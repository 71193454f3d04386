// SPDX-License-Identifier: GPL-2.0
/*
 * hpccpp: the rate at which a connection's data can leave the host: as given, or the speed of its
 * device. Only a caller that holds RTNL may ask a driver, so a notifier asks when a device comes up
 * or its link changes, and flows look the answer up.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/netdevice.h>
#include <linux/rhashtable.h>

#include "cc_compat.h"
#include "cc_link.h"
#include "hpccpp.h"

CC_PARAM(line_rate_mbps, 0, 0, HPCCPP_MBPS_MAX, 0644, "0 is line_rate_device's",
	 "the host's rate in Mb/s, at which flows start (draft 5); 0: see line_rate_device");
CC_PARAM(line_rate_device, 0, 0, 1, 0644, "0 starts with the initial window",
	 "1: flows start at the speed of the device that they leave by; 0: with TCP's initial window");

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
static u32 hpccpp_device_mbps(const struct net_device *dev)
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

/* The rate that was given, Mb/s; 0: none */
u32 hpccpp_line_given(void)
{
	return READ_ONCE(line_rate_mbps.value);
}

/* The rate at which the connection's data can leave the host, Mb/s; 0: not known, or not wanted */
u32 hpccpp_line_mbps(struct sock *sk)
{
	const struct dst_entry *dst = __sk_dst_get(sk);
	u32 mbps = READ_ONCE(line_rate_mbps.value);

	if (mbps || !READ_ONCE(line_rate_device.value) || !dst)
		return mbps;
	return hpccpp_device_mbps(READ_ONCE(dst->dev));
}

int hpccpp_devices_init(void)
{
	int err = rhashtable_init(&hpccpp_devices, &hpccpp_devices_params);

	if (err)
		return err;
	err = register_netdevice_notifier(&hpccpp_netdev_notifier);
	if (err)
		rhashtable_destroy(&hpccpp_devices);
	return err;
}

void hpccpp_devices_exit(void)
{
	unregister_netdevice_notifier(&hpccpp_netdev_notifier);
	rhashtable_destroy(&hpccpp_devices);
}
