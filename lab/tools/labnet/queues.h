/* SPDX-License-Identifier: GPL-2.0 */
#ifndef LABNET_QUEUES_H
#define LABNET_QUEUES_H

#include "../plan/plan.h"

/* Asks lowq-tc for the commands of the node's queues; the program is in its namespace. */
void ask_for_queues(const struct plan *p, const struct node *node);
/* Delays, rates and queues of the node's devices; the program is in its namespace. */
void queue_node(const struct plan *p, const struct node *node);

#endif
