// SPDX-License-Identifier: GPL-2.0
/* roce_rcm: which flows take part, by destination and by UDP source port. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/inet.h>
#include <linux/string.h>
#include <net/ipv6.h>

#include "cc_param.h"
#include "roce_rcm.h"

CC_PARAM(sport_min, 0, 0, 65535, 0644, "a UDP port",
	 "only flows from UDP source ports from this one on are injected and paced");
CC_PARAM(sport_max, 65535, 0, 65535, 0644, "a UDP port", "... and up to this one");

/* Most destination prefixes in the list; an empty list means all destinations */
#define PREFIXES	16

/**
 * struct prefixes - a list of prefixes
 * @n:		number of prefixes
 * @addr:	the addresses; IPv4 as ::ffff:a.b.c.d
 * @bits:	length of each prefix, bits of @addr
 */
struct prefixes {
	int n;
	struct in6_addr addr[PREFIXES];
	u8 bits[PREFIXES];
};

/* One list is in use, the other is for writing, under the lock of the parameters */
static struct prefixes destination_lists[2];
static struct prefixes __rcu *destinations = RCU_INITIALIZER(&destination_lists[0]);

/* Reads one prefix, such as "10.0.0.0/8" or "fd00::1", up to a comma or the end. */
static bool prefix_parse(const char *text, const char **end, struct in6_addr *addr, u8 *bits)
{
	unsigned int most = 128, len;
	int used = 0;
	__be32 v4;

	if (in4_pton(text, -1, (u8 *)&v4, -1, end)) {
		most = 32;
		ipv6_addr_set_v4mapped(v4, addr);
	} else if (!in6_pton(text, -1, addr->s6_addr, -1, end)) {
		return false;
	}
	if (sscanf(*end, "/%3u%n", &len, &used) < 1)
		len = most;
	*end += used;
	*bits = 128 - most + len;
	return len <= most;
}

static int destinations_set(const char *val, const struct kernel_param *kp)
{
	struct prefixes *now = rcu_dereference_protected(destinations, 1);
	struct prefixes *list = &destination_lists[now == &destination_lists[0]];
	const char *at = skip_spaces(val);

	for (list->n = 0; *at && *at != '\n'; list->n++) {
		if (list->n == PREFIXES ||
		    !prefix_parse(at, &at, &list->addr[list->n], &list->bits[list->n]) ||
		    !strchr(",\n", *at)) {
			pr_err("%s=%.*s refused: takes up to %d prefixes, such as 10.0.0.0/8,fd00::/64; stays as it was\n",
			       kp->name, (int)strcspn(val, "\n"), val, PREFIXES);
			return -EINVAL;
		}
		if (*at == ',')
			at++;
	}
	rcu_assign_pointer(destinations, list);
	synchronize_rcu();	/* after this no reader uses the other list */
	return 0;
}

static int destinations_get(char *buffer, const struct kernel_param *kp)
{
	const struct prefixes *list = rcu_dereference_protected(destinations, 1);
	int i, len = 0;

	for (i = 0; i < list->n; i++) {
		const struct in6_addr *a = &list->addr[i];

		if (ipv6_addr_v4mapped(a) && list->bits[i] >= 96)
			len += sysfs_emit_at(buffer, len, "%s%pI4/%d", i ? "," : "",
					     &a->s6_addr32[3], list->bits[i] - 96);
		else
			len += sysfs_emit_at(buffer, len, "%s%pI6c/%d", i ? "," : "", a,
					     list->bits[i]);
	}
	return len + sysfs_emit_at(buffer, len, "\n");
}

static const struct kernel_param_ops destinations_ops = {
	.set = destinations_set,
	.get = destinations_get,
};

module_param_cb(destinations, &destinations_ops, NULL, 0644);
MODULE_PARM_DESC(destinations,
		 "only flows to these prefixes, separated by commas, are injected and paced (default all)");

/* Under RCU. */
static bool is_destination(const struct in6_addr *addr)
{
	const struct prefixes *list = rcu_dereference(destinations);
	int i;

	for (i = 0; i < list->n; i++)
		if (ipv6_prefix_equal(&list->addr[i], addr, list->bits[i]))
			return true;
	return !list->n;
}

/* Does the flow of @p take part in congestion management? Under RCU. */
bool rcm_takes_part(const struct rcm_packet *p)
{
	return p->roce.sport >= READ_ONCE(sport_min.value) &&
	       p->roce.sport <= READ_ONCE(sport_max.value) && is_destination(&p->daddr);
}
