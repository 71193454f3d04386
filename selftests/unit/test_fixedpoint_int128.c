// SPDX-License-Identifier: GPL-2.0
/* The tests of include/fixedpoint.h as it is on 64-bit machines other than x86-64 */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* after the system's headers, which need it */
#undef __x86_64__
#include "test_fixedpoint.c"
