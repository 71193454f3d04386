/* SPDX-License-Identifier: GPL-2.0 */
#ifndef TOOLS_FILES_H
#define TOOLS_FILES_H

#include "types.h"

/* Allows as many open files as the system does; returns how many */
u64 allow_files(void);

#endif
