/* SPDX-License-Identifier: GPL-2.0 */
/* Opens all sources, files or devices, and reads them to their end. */
#ifndef QDELAY_CAPTURE_H
#define QDELAY_CAPTURE_H

#include "account.h"

void files_open(void);
void files_run(void);

/* Runs until SIGINT, SIGTERM or --duration; prints "ready" on stderr when it starts. */
void live_open(void);
void live_run(struct hop *h);

#endif
