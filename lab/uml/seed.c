// SPDX-License-Identifier: GPL-2.0
/*
 * seed - makes the host's randomness repeatable for the lab's kernel.
 *
 * Preloaded into the UML process. The kernel seeds its generator from the
 * host's getrandom(); this answers from a splitmix64 stream that starts at
 * $LOWQ_SEED. Boot-time hash keys, ports, sequence numbers, address layout and
 * /dev/urandom of the guest all follow from it. Nothing else uses it: this is
 * no source of secrets.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/types.h>

static uint64_t state;
static int seeded;

static uint64_t splitmix64(void)
{
	uint64_t z = (state += 0x9e3779b97f4a7c15ULL);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

ssize_t getrandom(void *buf, size_t len, unsigned int flags)
{
	unsigned char *p = buf;
	size_t left = len;

	(void)flags;
	if (!seeded) {
		const char *s = getenv("LOWQ_SEED");

		state = s ? strtoull(s, NULL, 10) : 0;
		seeded = 1;
	}
	while (left) {
		uint64_t r = splitmix64();
		size_t n = left < sizeof(r) ? left : sizeof(r);

		memcpy(p, &r, n);
		p += n;
		left -= n;
	}
	return len;
}
