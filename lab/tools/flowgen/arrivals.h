/* SPDX-License-Identifier: GPL-2.0 */
#ifndef FLOWGEN_ARRIVALS_H
#define FLOWGEN_ARRIVALS_H

#include "config.h"

/* --plan: prints the arrivals as they are drawn. Nothing is sent. */
void arrivals_print(const struct config *cfg);

#endif
