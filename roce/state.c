// SPDX-License-Identifier: GPL-2.0
/* roce_rcm: what all its files share. It calls none of them. */
#include "roce_rcm.h"

bool rcm_stopping;
unsigned int rcm_net_id;
DEFINE_PER_CPU(unsigned long [RCM_COUNTERS], rcm_counters);
