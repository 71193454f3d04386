// SPDX-License-Identifier: GPL-2.0
/*
 * flowgen - traffic source and sink for measuring congestion controls
 *
 *	flowgen serve			answers requests
 *	flowgen long | rpc | incast	makes requests; prints one line of JSON per finished flow
 *
 * One process, one epoll, no threads. Its cost per megabyte matters more than usual: if the
 * kernel runs in virtual time, most of the real time goes into system calls and wake-ups. Hence:
 *
 *  - The receiver sleeps until SO_RCVLOWAT bytes are queued (or all that is missing, if that is
 *    less), then discards them with one recv(MSG_TRUNC), which copies nothing.
 *  - The sender hands over megabytes with one sendmsg() of one small buffer repeated, and sleeps
 *    until half of it has left (TCP_NOTSENT_LOWAT).
 *  - Sockets are registered edge-triggered, once. A short read or a short write means "empty" or
 *    "full"; no second call is made to get EAGAIN.
 *    (In virtual time, User-Mode Linux also lets 1 us pass whenever a call returns an error. Only
 *    the EINPROGRESS of connect() cannot be avoided.)
 *  - Nothing polls. All waiting is in epoll_wait() without a timeout; a timerfd with absolute
 *    expiry (no timer slack) wakes it. The clock is read when a flow starts and when it ends.
 *
 *	options.c, cdf.c	the command line, a file of flow sizes: struct config cfg
 *	serve.c			the server
 *	client.c		the client's loop
 *	arrivals.c, incast.c	decide which requests there are, and when
 *	flow.c			one request, from connect() to its report
 *	report.c		lines of JSON
 *	transfer.c, socket.c	moving bytes, for both sides; socket options
 */
#include <err.h>

#include "arrivals.h"
#include "client.h"
#include "config.h"
#include "report.h"
#include "serve.h"
#include "socket.h"
#include "transfer.h"

int main(int argc, char **argv)
{
	int ret = 0;

	read_options(argc, argv);
	switch (cfg.mode) {
	case SERVE:
		break;
	case LONG:
		connections_planned = cfg.flows;
		break;
	case RPC:
		connections_planned = cfg.closed;
		break;
	case INCAST:
		connections_planned = cfg.fan;
		break;
	}
	raise_file_limit(connections_planned);
	probe_options(cfg.hosts ? cfg.host[0].sa.sa_family :
		      cfg.family ? cfg.family : AF_INET);
	if (cfg.mode == SERVE)
		return serve();
	report_open(cfg.out_path);
	if (cfg.plan)
		arrivals_plan();
	else
		ret = client();
	if (report_close())
		errx(1, "the output could not be written");
	return ret;
}
