/* SPDX-License-Identifier: GPL-2.0 */
#ifndef FLOWGEN_ADDRESS_H
#define FLOWGEN_ADDRESS_H

#include <netinet/in.h>
#include <sys/socket.h>

#include "../common/types.h"

union addr {
	struct sockaddr sa;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

/*
 * The first address of @host of family @family; AF_UNSPEC: of any family. If there is none,
 * the program ends with exit status 2; @opt is the option that the message names.
 */
void addr_resolve(union addr *a, int family, const char *host, u16 port, const char *opt);

/* The wildcard address of @family. */
void addr_any(union addr *a, int family, u16 port);

socklen_t addr_len(const union addr *a);
unsigned int addr_port(const union addr *a);
/* Returns @buf, which has room for INET6_ADDRSTRLEN. */
const char *addr_text(const union addr *a, char *buf);

#endif
