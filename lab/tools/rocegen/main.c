// SPDX-License-Identifier: GPL-2.0
/*
 * rocegen - RDMA traffic for measuring congestion management, like flowgen for TCP
 *
 *	rocegen serve			the other side, for any number of clients
 *	rocegen send | write | read | uc-send | uc-write | ud-send
 *					prints one line of JSON per queue pair at the end
 *
 * It sleeps on a completion channel when there is nothing to do. perftest polls, which
 * never ends in a simulation whose time stands still while programs run. The clock is read
 * when messages begin and when they end.
 *
 * Client and server set up their queue pairs over TCP: struct hello, then from each side a
 * struct qp_info per queue pair, then a byte when ready; at the end a byte from the client,
 * and from the server the bytes that each of its queue pairs has received. The server forks
 * a process per client. Both hosts must have the same byte order.
 *
 *	options.c	the command line: struct config cfg
 *	serve.c		the server
 *	client.c	the client: messages until the end, and its report
 *	side.c		what both do: queue pairs over the verbs, and their set-up over TCP
 */
#include "client.h"
#include "config.h"
#include "serve.h"

int main(int argc, char **argv)
{
	read_options(argc, argv);
	return cfg.serve ? serve() : client();
}
