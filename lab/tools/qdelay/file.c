// SPDX-License-Identifier: GPL-2.0
/* Captures from files. */
#include <err.h>
#include <string.h>
#include <sys/stat.h>

#include "capture.h"
#include "options.h"
#include "source.h"

static void open_file(struct source *s)
{
	char err[PCAP_ERRBUF_SIZE];
	struct stat st;

	if (!stat(s->name, &st) && S_ISREG(st.st_mode) && !st.st_size)
		errx(1, "%s: empty file", s->name);
	s->pcap = pcap_open_offline_with_tstamp_precision(s->name,
							  PCAP_TSTAMP_PRECISION_NANO,
							  err);
	if (!s->pcap) {
		/* the message of libpcap names a missing file itself */
		if (!strncmp(err, s->name, strlen(s->name)))
			errx(1, "%s", err);
		errx(1, "%s: %s", s->name, err);
	}
	source_opened(s);
	if (opt.filter)
		source_set_filter(s);
}

static void refill(struct source *s)
{
	struct pcap_pkthdr *h;
	const u8 *data;
	int r = pcap_next_ex(s->pcap, &h, &data);

	if (r == 1)
		source_add_packet(s, h, data);
	else if (r == PCAP_ERROR_BREAK)
		s->eof = true;
	else
		errx(1, "%s: after %llu packets: %s", s->name, s->packets,
		     pcap_geterr(s->pcap));
}

void files_open(void)
{
	struct source *s;

	for_each_source(s)
		open_file(s);
}

void files_run(void)
{
	sources_merge(refill);
}
