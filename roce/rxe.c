// SPDX-License-Identifier: GPL-2.0
/*
 * roce_rcm: what a packet or a network device shows of rdma_rxe, without sleeping. ask.c has the
 * questions that may sleep.
 */
#include <linux/if_vlan.h>
#include <net/inet_sock.h>
#include <rdma/ib_verbs.h>

#include "roce_rcm.h"

/*
 * The queue pair that sends @skb, or NULL. rdma_rxe gives each queue pair a kernel UDP
 * socket that is never bound; no other sender to this port has one like that. The socket's
 * user data is the driver's queue pair, whose first member is the RDMA core's.
 */
const struct ib_qp *rcm_rxe_qp(const struct sk_buff *skb)
{
	const struct sock *sk = skb->sk;
	const struct ib_qp *ibqp;

	if (!sk || !sk_fullsock(sk) || !sk->sk_kern_sock || sk->sk_type != SOCK_DGRAM ||
	    sk->sk_protocol != IPPROTO_UDP || inet_sk(sk)->inet_num || !skb->destructor)
		return NULL;
	ibqp = READ_ONCE(sk->sk_user_data);
	if (!ibqp || (uintptr_t)ibqp & 7 || ibqp->device->ops.driver_id != RDMA_DRIVER_RXE)
		return NULL;
	return ibqp;
}

/*
 * Is @ibqp being destroyed? The RDMA core then waits until rdma_rxe has its packets back.
 * From 7.3 on it first drops its own reference. On older kernels the only sign is that user
 * space's object, the first member of uobject, is locked for writing.
 */
bool rcm_rxe_destroyed(const struct ib_qp *ibqp)
{
	const struct ib_uobject *object = (const void *)READ_ONCE(ibqp->uobject);

	return !kref_read(&ibqp->res.kref) || (object && atomic_read(&object->usecnt) < 0);
}

/*
 * The soft-RoCE device of @dev, or of the device below a VLAN; NULL if there is none. The caller
 * puts it. In any context.
 */
struct ib_device *rcm_rxe_device(struct net_device *dev)
{
	struct ib_device *ibdev = ib_device_get_by_netdev(dev, RDMA_DRIVER_RXE);

	if (!ibdev && is_vlan_dev(dev))
		ibdev = ib_device_get_by_netdev(vlan_dev_real_dev(dev), RDMA_DRIVER_RXE);
	return ibdev;
}
