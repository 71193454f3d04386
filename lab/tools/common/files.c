// SPDX-License-Identifier: GPL-2.0
#include <sys/resource.h>

#include "files.h"

u64 allow_files(void)
{
	struct rlimit lim = { .rlim_cur = 1 << 20, .rlim_max = 1 << 20 };

	if (setrlimit(RLIMIT_NOFILE, &lim)) {
		getrlimit(RLIMIT_NOFILE, &lim);
		lim.rlim_cur = lim.rlim_max;
		setrlimit(RLIMIT_NOFILE, &lim);
	}
	getrlimit(RLIMIT_NOFILE, &lim);
	return lim.rlim_cur;
}
