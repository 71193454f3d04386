// SPDX-License-Identifier: GPL-2.0
#include <err.h>
#include <errno.h>
#include <unistd.h>

#include "../common/alloc.h"
#include "../common/events.h"
#include "../common/netns.h"
#include "../../link/lowq_link.h"
#include "events.h"
#include "netlink.h"
#include "record.h"

static struct mnl_socket *enter(const struct plan *p, const struct node *node)
{
	char *name = plan_netns(p, node);
	int fd = netns_fd(name);

	netns_join(fd, name);
	close(fd);
	free(name);
	return netlink_open();
}

/* What the kernel removes when a device goes down: IPv6 addresses, neighbours, routes */
static bool restore(struct mnl_socket *nl, const struct end *e)
{
	const struct node *node = e->node;
	size_t i, j, k;

	for (i = 0; i < e->addresses.n; i++)
		if (!add_address(nl, e->index, &e->addresses.at[i]) && errno != EEXIST)
			return false;
	for (i = 0; e->link->neighbours && i < e->far->addresses.n; i++)
		if (!add_neighbour(nl, e->index, &e->far->addresses.at[i], e->far->mac))
			return false;
	for (i = 0; i < node->n_routes; i++) {
		const struct addresses *via = &node->routes[i].via;
		bool uses = false;

		for (j = 0; j < via->n; j++)
			for (k = 0; k < e->far->addresses.n; k++)
				uses |= same_address(&via->at[j], &e->far->addresses.at[k]);
		if (uses && !replace_route(nl, &node->routes[i]))
			return false;
	}
	return true;
}

/* Both ends, as of a cable */
static bool set_link(const struct plan *p, struct link *l, bool up)
{
	bool done = true;

	for (int i = 0; i < 2 && done; i++) {
		struct mnl_socket *nl = enter(p, l->end[i].node);

		l->end[i].index = find_dev(nl, l->end[i].dev, l->end[i].mac);
		done = l->end[i].index && set_up(nl, l->end[i].dev, up);
		mnl_socket_close(nl);
	}
	for (int i = 0; i < 2 && done && up; i++) {
		struct mnl_socket *nl = enter(p, l->end[i].node);

		done = restore(nl, &l->end[i]);
		mnl_socket_close(nl);
	}
	return done;
}

static bool happen(const struct plan *p, const struct event *e)
{
	struct mnl_socket *nl;
	u8 mac[ETH_BYTES];
	unsigned int dev;
	bool done;

	if (e->kind == EVENT_UP || e->kind == EVENT_DOWN)
		return set_link(p, e->end->link, e->kind == EVENT_UP);
	nl = enter(p, e->node);
	if (e->kind == EVENT_ROUTE) {
		done = replace_route(nl, &e->route);
	} else {
		dev = find_dev(nl, e->end->dev, mac);
		if (e->end->link->exact)
			done = dev && (e->kind == EVENT_RATE ?
				       change_line(nl, dev, IFLA_LOWQ_LINK_RATE, e->rate) :
				       change_line(nl, dev, IFLA_LOWQ_LINK_DELAY, e->delay));
		else
			done = dev && (e->kind == EVENT_RATE ?
				       change_rate(nl, dev, frame_bytes(e->end->link), e->rate) :
				       change_delay(nl, dev, e->delay));
	}
	mnl_socket_close(nl);
	return done;
}

/* A trace begins with the traffic; before, packets have used it since the network was built. */
static void start_traces(const struct plan *p, u64 zero)
{
	u8 mac[ETH_BYTES];

	for (size_t i = 0; i < 2 * p->n_links; i++) {
		const struct end *e = &p->links[i / 2].end[i % 2];
		struct mnl_socket *nl;

		if (!e->line.instant)
			continue;
		nl = enter(p, e->node);
		sleep_until(zero);
		if (!change_line(nl, find_dev(nl, e->dev, mac), IFLA_LOWQ_LINK_TRACE_START, zero))
			err(1, "%s.trace", plan_place(p, e));
		mnl_socket_close(nl);
	}
}

void run_events(const struct plan *p, u64 zero, const char *out)
{
	if (!zero)
		zero = now_ns();
	if (out && p->record)
		record_start(p, zero, out);
	start_traces(p, zero);
	for (size_t i = 0; i < p->n_events; i++) {
		sleep_until(zero + p->events[i].at);
		if (!happen(p, &p->events[i]))
			err(1, "%s: event at %llu ns, '%s'", p->file, p->events[i].at,
			    p->events[i].node->name);
	}
	if (out && p->record)
		record_wait();
}
