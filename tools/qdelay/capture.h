/* SPDX-License-Identifier: GPL-2.0 */
/* Opens all sources and reads them to their end: files, or devices. */
#ifndef QDELAY_CAPTURE_H
#define QDELAY_CAPTURE_H

void files_open(void);
void files_run(void);

/* Until SIGINT, SIGTERM or --duration; says "ready" on stderr when it begins. */
void live_open(void);
void live_run(void);

#endif
