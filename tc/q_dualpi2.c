// SPDX-License-Identifier: GPL-2.0
/*
 * q_dualpi2 - a plugin for versions of tc that do not know dualpi2: it sets and shows the
 * options that lowq-tc uses, with the syntax of iproute2 6.17.
 */
#include "tc_plugin.h"

/* The kernel's numbers (linux/pkt_sched.h from 6.17 on) */
enum {
	DUALPI2_LIMIT = 1,		/* u32, packets */
	DUALPI2_TARGET = 3,		/* u32, us */
	DUALPI2_STEP_THRESH_US = 8,	/* u32 */
	DUALPI2_MIN_QLEN_STEP = 9,	/* u32, packets */
	DUALPI2_COUPLING = 10,		/* u8 */
	DUALPI2_MAX = 10
};

/* struct tc_dualpi2_xstats; newer kernels may append fields */
struct dualpi2_xstats {
	__u32 prob;		/* of 2^32 - 1 */
	__u32 delay_c;		/* us */
	__u32 delay_l;
	__u32 packets_in_c;
	__u32 packets_in_l;
	__u32 maxq;
	__u32 ecn_mark;		/* step_marks included */
	__u32 step_marks;
};

static const struct {
	const char *name;
	int type;
	bool time;
	__u32 max;
} options[] = {
	{ "limit", DUALPI2_LIMIT, false, UINT32_MAX },
	{ "target", DUALPI2_TARGET, true, UINT32_MAX },
	{ "step_thresh", DUALPI2_STEP_THRESH_US, true, UINT32_MAX },
	{ "min_qlen_step", DUALPI2_MIN_QLEN_STEP, false, UINT32_MAX },
	{ "coupling_factor", DUALPI2_COUPLING, false, UINT8_MAX },
};

#define OPTIONS	(sizeof(options) / sizeof(*options))

static void explain(void)
{
	fprintf(stderr,
		"Usage: ... dualpi2 [ limit PACKETS ] [ target TIME ] [ step_thresh TIME ]\n"
		"                   [ min_qlen_step PACKETS ] [ coupling_factor NUMBER ]\n");
}

static int dualpi2_parse_opt(const struct qdisc_util *qu, int argc, char **argv,
			     struct nlmsghdr *n, const char *dev)
{
	struct rtattr *nest;
	unsigned int i;
	__u32 value;

	(void)qu;
	(void)dev;
	if (!argc)
		return 0;
	nest = addattr_nest(n, REQUEST_MAX, TCA_OPTIONS | NLA_F_NESTED);
	for (; argc > 0; argc -= 2, argv += 2) {
		for (i = 0; i < OPTIONS && strcmp(*argv, options[i].name); i++)
			;
		if (i == OPTIONS) {
			if (strcmp(*argv, "help"))
				fprintf(stderr, "dualpi2: what is \"%s\"?\n", *argv);
			explain();
			return -1;
		}
		if (argc < 2 || (options[i].time ? get_time(&value, argv[1]) :
				 get_u32(&value, argv[1], 10)) || value > options[i].max) {
			fprintf(stderr, "dualpi2: %s takes a %s, not \"%s\"\n", *argv,
				options[i].time ? "time" : "number", argc > 1 ? argv[1] : "");
			return -1;
		}

		if (options[i].max == UINT8_MAX)
			addattr_l(n, REQUEST_MAX, options[i].type, &(__u8){ value }, sizeof(__u8));
		else
			addattr_l(n, REQUEST_MAX, options[i].type, &value, sizeof(value));
	}
	addattr_nest_end(n, nest);
	return 0;
}

static int dualpi2_print_opt(const struct qdisc_util *qu, FILE *f, struct rtattr *opt)
{
	struct rtattr *tb[DUALPI2_MAX + 1];
	unsigned int i;
	char text[32];
	__u32 value;

	(void)qu;
	(void)f;
	if (!opt)
		return 0;
	parse_rtattr(tb, DUALPI2_MAX, RTA_DATA(opt), RTA_PAYLOAD(opt));
	for (i = 0; i < OPTIONS; i++) {
		const struct rtattr *rta = tb[options[i].type];

		if (!rta)
			continue;
		value = options[i].max == UINT8_MAX ? *(__u8 *)RTA_DATA(rta) :
						      *(__u32 *)RTA_DATA(rta);
		snprintf(text, sizeof(text), "%s %%u%s ", options[i].name, options[i].time ? "us" : "");
		print_color_uint(PRINT_ANY, COLOR_NONE, options[i].name, text, value);
	}
	return 0;
}

static int dualpi2_print_xstats(const struct qdisc_util *qu, FILE *f, struct rtattr *xstats)
{
	struct dualpi2_xstats st;
	char text[16];

	(void)qu;
	(void)f;
	if (!xstats || RTA_PAYLOAD(xstats) < sizeof(st))
		return 0;
	memcpy(&st, RTA_DATA(xstats), sizeof(st));
	snprintf(text, sizeof(text), "%.6f", st.prob / (double)UINT32_MAX);
	print_color_string(PRINT_ANY, COLOR_NONE, "prob", "  prob %s ", text);
	print_color_uint(PRINT_ANY, COLOR_NONE, "delay_c", "delay_c %uus ", st.delay_c);
	print_color_uint(PRINT_ANY, COLOR_NONE, "delay_l", "delay_l %uus ", st.delay_l);
	print_color_uint(PRINT_ANY, COLOR_NONE, "packets_in_c", "packets_in_c %u ",
			 st.packets_in_c);
	print_color_uint(PRINT_ANY, COLOR_NONE, "packets_in_l", "packets_in_l %u ",
			 st.packets_in_l);
	print_color_uint(PRINT_ANY, COLOR_NONE, "maxq", "maxq %u ", st.maxq);
	print_color_uint(PRINT_ANY, COLOR_NONE, "ecn_mark", "ecn_mark %u ", st.ecn_mark);
	print_color_uint(PRINT_ANY, COLOR_NONE, "step_marks", "step_marks %u", st.step_marks);
	return 0;
}

struct qdisc_util dualpi2_qdisc_util = {
	.id = "dualpi2",
	.parse_qopt = dualpi2_parse_opt,
	.print_qopt = dualpi2_print_opt,
	.print_xstats = dualpi2_print_xstats,
};
