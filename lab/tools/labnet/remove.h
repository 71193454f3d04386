/* SPDX-License-Identifier: GPL-2.0 */
#ifndef LABNET_REMOVE_H
#define LABNET_REMOVE_H

/* Removes the namespaces whose names begin with @prefix, with their processes and connections. */
void remove_network(const char *prefix);

#endif
