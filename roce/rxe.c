// SPDX-License-Identifier: GPL-2.0
/*
 * roce_rcm: what a packet or a network device shows of rdma_rxe, without sleeping. ask.c has the
 * questions that may sleep.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/build_bug.h>
#include <linux/if_vlan.h>
#include <linux/mm.h>
#include <net/dst.h>
#include <net/inet_sock.h>
#include <rdma/ib_verbs.h>

#include "roce_rcm.h"

/* What the headers show of what is assumed here; is_queue_pair() checks the rest. */
static_assert(__same_type(((struct ib_qp *)0)->device, struct ib_device *));
static_assert(__same_type(((struct ib_qp *)0)->uobject, struct ib_uqp_object *));
static_assert(__same_type(((struct ib_qp *)0)->qp_num, u32));
static_assert(__same_type(((struct ib_qp *)0)->res, struct rdma_restrack_entry));
static_assert(__same_type(((struct rdma_restrack_entry *)0)->kref, struct kref));
static_assert(__same_type(((struct ib_uobject *)0)->usecnt, atomic_t));

/* Are the @bytes at @p an object in memory that the kernel has mapped? */
static bool mapped(const void *p, size_t bytes)
{
	return !((uintptr_t)p & (sizeof(long) - 1)) && virt_addr_valid(p) &&
	       virt_addr_valid((const char *)p + bytes - 1);
}

/*
 * Is @ibqp, to which the socket of @skb points, a queue pair of soft-RoCE? rdma_rxe's structures
 * are its own, and another kernel may have other ones: so nothing is believed before its
 * address, its device, its type and its number agree with what the RDMA core knows.
 */
static bool is_queue_pair(const struct ib_qp *ibqp, const struct sk_buff *skb)
{
	struct ib_device *device, *own;

	if (!mapped(ibqp, sizeof(*ibqp)))
		return false;
	device = READ_ONCE(ibqp->device);
	own = rcm_rxe_device(skb_dst(skb)->dev);
	if (own)	/* not in a VRF, where packets leave by another device */
		ib_device_put(own);
	if (own ? own != device :
		  !mapped(device, sizeof(*device)) || device->ops.driver_id != RDMA_DRIVER_RXE)
		return false;
	return (ibqp->qp_type == IB_QPT_RC || ibqp->qp_type == IB_QPT_UC ||
		ibqp->qp_type == IB_QPT_UD || ibqp->qp_type == IB_QPT_GSI) &&
	       ibqp->res.type == RDMA_RESTRACK_QP &&
	       (ibqp->qp_type == IB_QPT_GSI || ibqp->res.id == ibqp->qp_num);
}

/* The first packets show whether this kernel is as assumed. */
static bool layout_known(const struct ib_qp *ibqp, const struct sk_buff *skb)
{
	static bool known;

	if (READ_ONCE(known))
		return true;
	if (is_queue_pair(ibqp, skb)) {
		WRITE_ONCE(known, true);
		return true;
	}
	rcm_count(RCM_NOT_A_QP);
	pr_warn_once("rdma_rxe's queue pairs are not what this module expects: they are not managed\n");
	return false;
}

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
	if (!ibqp || !layout_known(ibqp, skb) || ibqp->device->ops.driver_id != RDMA_DRIVER_RXE)
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
