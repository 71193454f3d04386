/* SPDX-License-Identifier: GPL-2.0 */
#ifndef FLOWGEN_CLIENT_H
#define FLOWGEN_CLIENT_H

/* Asks for what cfg says; returns the exit status. */
int client(void);

#endif
