// SPDX-License-Identifier: GPL-2.0
/* A module that WARNs when it is loaded: the lab has to fail such a run. */
#include <linux/module.h>

static int __init lab_warn_init(void)
{
	WARN(1, "lab_warn: as asked for\n");
	return 0;
}

static void __exit lab_warn_exit(void)
{
}

module_init(lab_warn_init);
module_exit(lab_warn_exit);
MODULE_DESCRIPTION("WARNs on load, for the lab's self-test");
MODULE_LICENSE("GPL");
