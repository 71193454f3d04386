// SPDX-License-Identifier: GPL-2.0
/* The tests of include/fixedpoint.h as it is without 128-bit integers: on 32-bit machines */
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

/* after the system's headers, which need them */
#undef __x86_64__
#undef __SIZEOF_INT128__
#include "test_fixedpoint.c"
