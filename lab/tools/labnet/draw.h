/* SPDX-License-Identifier: GPL-2.0 */
#ifndef LABNET_DRAW_H
#define LABNET_DRAW_H

#include "../plan/plan.h"

/* Prints the plan as a graph for graphviz's dot */
void draw(const struct plan *p);

#endif
