/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The interface between tc and its plugins. tc loads q_KIND.so and looks up its symbol
 * KIND_qdisc_util; the plugin calls functions that the tc program exports. No package has a
 * header for either, so what is used is declared here. The layout is that of iproute2 since
 * 4.16.
 */
#ifndef _LOWQ_TC_PLUGIN_H
#define _LOWQ_TC_PLUGIN_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/netlink.h>
#include <linux/rtnetlink.h>

/* Room for the options in tc's request, which has 16 KB and more since 4.16 */
#define REQUEST_MAX	1024

enum output_type {
	PRINT_FP = 1,
	PRINT_JSON = 2,
	PRINT_ANY = 4,
};

enum color_attr {
	COLOR_NONE = 6,
};

/**
 * struct qdisc_util - what tc needs to know about a kind of qdisc
 * @next:	for tc's use
 * @id:		the kind's name
 * @parse_qopt:	parses options of the command line into the request
 * @print_qopt:	prints the options in the kernel's answer
 * @print_xstats: prints the statistics in the kernel's answer
 * @parse_copt:	as @parse_qopt, for classes
 * @print_copt:	as @print_qopt, for classes
 * @has_block:	shared filter blocks
 */
struct qdisc_util {
	struct qdisc_util *next;
	const char *id;
	int (*parse_qopt)(const struct qdisc_util *qu, int argc, char **argv,
			  struct nlmsghdr *n, const char *dev);
	int (*print_qopt)(const struct qdisc_util *qu, FILE *f, struct rtattr *opt);
	int (*print_xstats)(const struct qdisc_util *qu, FILE *f, struct rtattr *xstats);
	int (*parse_copt)(const struct qdisc_util *qu, int argc, char **argv,
			  struct nlmsghdr *n, const char *dev);
	int (*print_copt)(const struct qdisc_util *qu, FILE *f, struct rtattr *opt);
	int (*has_block)(const struct qdisc_util *qu, struct rtattr *opt, bool *has);
};

/* functions of tc */
int get_rate64(__u64 *rate, const char *text);
int get_time(unsigned int *us, const char *text);
int get_u32(__u32 *value, const char *text, int base);
int addattr_l(struct nlmsghdr *n, int maxlen, int type, const void *data, int alen);
struct rtattr *addattr_nest(struct nlmsghdr *n, int maxlen, int type);
int addattr_nest_end(struct nlmsghdr *n, struct rtattr *nest);
int parse_rtattr(struct rtattr *tb[], int max, struct rtattr *rta, int len);
int print_color_u64(enum output_type t, enum color_attr color, const char *key,
		    const char *fmt, uint64_t value);
int print_color_uint(enum output_type t, enum color_attr color, const char *key,
		     const char *fmt, unsigned int value);
int print_color_bool(enum output_type t, enum color_attr color, const char *key,
		     const char *fmt, bool value);
int print_color_string(enum output_type t, enum color_attr color, const char *key,
		       const char *fmt, const char *value);

#endif /* _LOWQ_TC_PLUGIN_H */
