/* SPDX-License-Identifier: GPL-2.0 */
/* The kernel's type names, for user space. All times are in nanoseconds. */
#ifndef TOOLS_TYPES_H
#define TOOLS_TYPES_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define NSEC		1000000000ULL	/* per second */
#define NEVER		(~0ULL)		/* a time that never comes */

#endif
