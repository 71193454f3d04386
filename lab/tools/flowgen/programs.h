/* SPDX-License-Identifier: GPL-2.0 */
#ifndef FLOWGEN_PROGRAMS_H
#define FLOWGEN_PROGRAMS_H

#include "flow.h"

extern const struct pattern programs;

/* Kills it at once. */
void programs_end(struct generator *g);

#endif
