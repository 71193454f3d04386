/* SPDX-License-Identifier: GPL-2.0 */
#ifndef ROCEGEN_SERVE_H
#define ROCEGEN_SERVE_H

/* Serves clients, each in a process of its own, until a signal ends it. */
int serve(void);

#endif
