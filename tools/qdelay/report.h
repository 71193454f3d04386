/* SPDX-License-Identifier: GPL-2.0 */
#ifndef QDELAY_REPORT_H
#define QDELAY_REPORT_H

/* Writes the result, and warnings to stderr; returns the exit status. */
int report(void);

#endif
