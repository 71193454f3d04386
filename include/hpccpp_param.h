/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The algorithm's parameters that both ends have: the sender, and a receiver that
 * computes the sender's window (draft-miao-rtgwg-hpccplus-00, 5 and 6.3.2).
 */
#ifndef _LOWQ_HPCCPP_PARAM_H
#define _LOWQ_HPCCPP_PARAM_H

#include "cc_param.h"

CC_PARAM(eta_permille, 950, 100, 1000, 0644, "above 1000 queues would be the target",
	 "target utilisation eta in 1/1000, 100 to 1000 (draft 5)");
CC_PARAM(max_stage, 1, 0, 255, 0644, "8 bits",
	 "additive increases before a multiplicative one, 0 to 255; 5 in the draft (5)");
CC_PARAM(flows, 0, 0, 1000000, 0644, "W_ai is W_init * (1 - eta) / flows",
	 "N, flows on a link at which queues are still near zero (draft 5); 0: by U's mean");
CC_PARAM(wc_previous, 0, 0, 1, 0644, "0 is the window of the measured bytes, 1 the previous W",
	 "1: Wc is the previous W (draft 4.2); 0: the window that the measured bytes left under");
CC_PARAM(queue_per_rtt, 0, 0, 1, 0644, "0 is per packet below a packet, 1 per RTT",
	 "1: with a window below a packet, too, the queue counts against B * T (draft 4.2)");

#endif /* _LOWQ_HPCCPP_PARAM_H */
