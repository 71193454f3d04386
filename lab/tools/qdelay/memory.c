// SPDX-License-Identifier: GPL-2.0
#include <err.h>
#include <stdio.h>

#include "memory.h"

/* Memory that the kernel could give out without swapping, in MiB; unlimited if it does not say */
static u64 available_mb(void)
{
	FILE *f = fopen("/proc/meminfo", "re");
	u64 kib = NEVER;
	char line[128];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "MemAvailable: %llu", &kib) == 1)
			break;
	if (f)
		fclose(f);
	return kib / 1024;
}

void check_memory(const char *option, u64 mb)
{
	u64 available = available_mb();

	if (mb > available / 2)
		errx(1, "%s: %llu MiB do not fit: at most half of the %llu MiB of memory that are available",
		     option, mb, available);
}
