// SPDX-License-Identifier: GPL-2.0
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <netdb.h>
#include <string.h>

#include "address.h"

static void set_port(union addr *a, u16 port)
{
	if (a->sa.sa_family == AF_INET6)
		a->v6.sin6_port = htons(port);
	else
		a->v4.sin_port = htons(port);
}

void addr_resolve(union addr *a, int family, const char *host, u16 port, const char *opt)
{
	struct addrinfo hints = { .ai_family = family, .ai_socktype = SOCK_STREAM };
	struct addrinfo *res;
	int error = getaddrinfo(host, NULL, &hints, &res);

	if (error)
		errx(2, "%s: cannot resolve '%s': %s", opt, host,
		     error == EAI_SYSTEM ? strerror(errno) : gai_strerror(error));
	memset(a, 0, sizeof(*a));
	memcpy(a, res->ai_addr, res->ai_addrlen);
	freeaddrinfo(res);
	set_port(a, port);
}

void addr_any(union addr *a, int family, u16 port)
{
	memset(a, 0, sizeof(*a));	/* INADDR_ANY, in6addr_any */
	a->sa.sa_family = family;
	set_port(a, port);
}

socklen_t addr_len(const union addr *a)
{
	return a->sa.sa_family == AF_INET6 ? sizeof(a->v6) : sizeof(a->v4);
}

unsigned int addr_port(const union addr *a)
{
	return ntohs(a->sa.sa_family == AF_INET6 ? a->v6.sin6_port : a->v4.sin_port);
}

const char *addr_text(const union addr *a, char *buf)
{
	const void *ip = a->sa.sa_family == AF_INET6 ? (const void *)&a->v6.sin6_addr
						     : (const void *)&a->v4.sin_addr;

	return inet_ntop(a->sa.sa_family, ip, buf, INET6_ADDRSTRLEN) ? buf : "";
}
