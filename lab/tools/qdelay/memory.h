/* SPDX-License-Identifier: GPL-2.0 */
#ifndef QDELAY_MEMORY_H
#define QDELAY_MEMORY_H

#include "../common/types.h"

/*
 * Ends the program unless rings of @mb MiB fit: libpcap would make smaller ones, and the kernel
 * could kill other programs to make room. @option: for the message
 */
void check_memory(const char *option, u64 mb);

#endif
