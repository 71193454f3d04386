/* SPDX-License-Identifier: GPL-2.0 */
#ifndef FLOWGEN_CLIENT_H
#define FLOWGEN_CLIENT_H

/* Runs the requests that cfg describes; returns the exit status. */
int client(void);

#endif
