/* SPDX-License-Identifier: GPL-2.0 */
#ifndef FLOWGEN_SERVE_H
#define FLOWGEN_SERVE_H

/* Answers requests until SIGTERM, SIGINT or --once-idle; returns the exit status. */
int serve(void);

#endif
