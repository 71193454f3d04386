/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Module parameters with a range. A value outside it is refused with -EINVAL and a
 * reason in the log; the old value stays.
 */
#ifndef _LOWQ_CC_PARAM_H
#define _LOWQ_CC_PARAM_H

#include <linux/kernel.h>
#include <linux/moduleparam.h>
#include <linux/printk.h>
#include <linux/sysfs.h>

/**
 * struct cc_param - an unsigned parameter and its range
 * @value:	the parameter; read with READ_ONCE()
 * @min:	the smallest value allowed
 * @max:	the largest
 * @why:	why values outside the range are wrong, for the log
 */
struct cc_param {
	unsigned int value;
	unsigned int min;
	unsigned int max;
	const char *why;
};

static int cc_param_set(const char *val, const struct kernel_param *kp)
{
	struct cc_param *p = kp->arg;
	unsigned int value;
	int err;

	err = kstrtouint(val, 0, &value);
	if (err || value < p->min || value > p->max) {
		pr_err("%s=%.*s refused: takes %u to %u (%s); stays at %u\n",
		       kp->name, (int)strcspn(val, "\n"), val,
		       p->min, p->max, p->why, p->value);
		return -EINVAL;
	}
	WRITE_ONCE(p->value, value);
	return 0;
}

static int cc_param_get(char *buffer, const struct kernel_param *kp)
{
	const struct cc_param *p = kp->arg;

	return sysfs_emit(buffer, "%u\n", READ_ONCE(p->value));
}

static const struct kernel_param_ops cc_param_ops __maybe_unused = {
	.set = cc_param_set,
	.get = cc_param_get,
};

/* CC_PARAM(name, default, min, max, mode, "why not beyond", "description") */
#define CC_PARAM(_name, _default, _min, _max, _mode, _why, _desc)		\
	static struct cc_param _name = {					\
		.value = (_default), .min = (_min), .max = (_max), .why = (_why) \
	};									\
	module_param_cb(_name, &cc_param_ops, &_name, _mode);			\
	MODULE_PARM_DESC(_name, _desc " (default " __stringify(_default) ")")

/* Likewise, for a parameter that other files of the module read as the variable _var */
#define CC_PARAM_SHARED(_var, _name, _default, _min, _max, _mode, _why, _desc)	\
	struct cc_param _var = {						\
		.value = (_default), .min = (_min), .max = (_max), .why = (_why) \
	};									\
	module_param_cb(_name, &cc_param_ops, &_var, _mode);			\
	MODULE_PARM_DESC(_name, _desc " (default " __stringify(_default) ")")

#endif /* _LOWQ_CC_PARAM_H */
