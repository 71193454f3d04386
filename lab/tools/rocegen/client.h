/* SPDX-License-Identifier: GPL-2.0 */
#ifndef ROCEGEN_CLIENT_H
#define ROCEGEN_CLIENT_H

/* Connects, transfers, prints a line for each queue pair. Returns the exit status. */
int client(void);

#endif
