/* SPDX-License-Identifier: GPL-2.0 */
/*
 * For sparse alone, before all else: version 0.6.4 knows neither typeof_unqual nor
 * what newer kernels give static_assert(), and says nothing more after such an
 * error. gcc checks both.
 */
#define __typeof_unqual__ __typeof__
#define _Static_assert(...)
