/* SPDX-License-Identifier: GPL-2.0 */
#ifndef LABNET_QUEUES_H
#define LABNET_QUEUES_H

#include "../plan/plan.h"

/* Delays, rates and queues of the node's devices; the program is in its namespace. */
void queue_node(const struct plan *p, const struct node *node);

#endif
