/* SPDX-License-Identifier: GPL-2.0 */
#ifndef QDELAY_REPORT_H
#define QDELAY_REPORT_H

/* Writes the result, and what is wrong with it to stderr; returns the exit status. */
int report(void);

#endif
