/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the suites of this folder share: a failure ends the test, and says what was compared.
 */
#ifndef _LOWQ_KUNIT_H
#define _LOWQ_KUNIT_H

#include <kunit/test.h>
#include <linux/module.h>

/* The number of random cases that a test tries for one function */
#define CASES		100000

/* The test that runs; helpers of tests do not get it. */
static struct kunit *lowq_test;

static __maybe_unused int lowq_test_starts(struct kunit *test)
{
	lowq_test = test;
	return 0;
}

#define expect(cond, fmt, ...)							\
	KUNIT_ASSERT_TRUE_MSG(lowq_test, cond, fmt, ##__VA_ARGS__)
#define assert_true(cond)		KUNIT_ASSERT_TRUE(lowq_test, cond)
#define assert_false(cond)		KUNIT_ASSERT_FALSE(lowq_test, cond)
#define assert_int_equal(a, b)		KUNIT_ASSERT_EQ(lowq_test, (u64)(a), (u64)(b))
#define assert_memory_equal(a, b, n)	KUNIT_ASSERT_MEMEQ(lowq_test, a, b, n)
#define assert_in_range(x, least, most)						\
	do {									\
		u64 _x = (x);							\
										\
		KUNIT_ASSERT_GE(lowq_test, _x, (u64)(least));			\
		KUNIT_ASSERT_LE(lowq_test, _x, (u64)(most));			\
	} while (0)

#define LOWQ_SUITE(_name)							\
	static struct kunit_suite _name##_suite = {				\
		.name		= "lowq_" #_name,				\
		.init		= lowq_test_starts,				\
		.test_cases	= _name##_cases,				\
	};									\
	kunit_test_suite(_name##_suite);					\
	MODULE_DESCRIPTION("KUnit tests of lowq's " #_name);			\
	MODULE_LICENSE("GPL")

#endif /* _LOWQ_KUNIT_H */
