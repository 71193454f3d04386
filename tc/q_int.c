// SPDX-License-Identifier: GPL-2.0
/* q_int - tc's plugin for sch_int: q_int.so, which tc loads when it meets "int" */
#include "int_sched.h"
#include "tc_plugin.h"

static void explain(void)
{
	fprintf(stderr,
		"Usage: ... int [ rate RATE ] [ switch-id 1..4095 ] [ dscp 0..63 ]\n"
		"               [ relative | norelative ] [ sojourn | nosojourn ]\n"
		"               [ ethernet | noethernet ]\n"
		"\n"
		"rate       of the port; default: the device's link speed\n"
		"switch-id  unique on a path; default: from the device's address\n"
		"dscp       of the probes to stamp; default 23\n"
		"relative   stamp the load as if the port had 100 Gb/s\n"
		"sojourn    stamp the probe's own wait times the rate, not the queue\n"
		"ethernet   count preamble, FCS and gap of each frame; always with the link's speed\n");
}

static const struct {
	const char *name;
	__u32 flag;
} flag_names[] = {
	{ "relative", INT_SCHED_RELATIVE },
	{ "sojourn", INT_SCHED_SOJOURN },
	{ "ethernet", INT_SCHED_ETHERNET },
};

#define FLAG_NAMES (sizeof(flag_names) / sizeof(flag_names[0]))

/* Sets the flag that @word names; 0 if it names none. "no" before a name leaves it unset. */
static int get_flag(const char *word, __u32 *flags)
{
	size_t i;

	for (i = 0; i < FLAG_NAMES; i++) {
		if (!strcmp(word, flag_names[i].name)) {
			*flags |= flag_names[i].flag;
			return 1;
		}
		if (!strncmp(word, "no", 2) && !strcmp(word + 2, flag_names[i].name))
			return 1;
	}
	return 0;
}

/* Returns -1 if @text is not a number from 0 to @max. */
static int get_number(const char *text, unsigned long max, unsigned long *value)
{
	char *end;

	*value = strtoul(text, &end, 0);
	return *text == '-' || !*text || *end || *value > max ? -1 : 0;
}

static int int_parse_opt(const struct qdisc_util *qu, int argc, char **argv,
			 struct nlmsghdr *n, const char *dev)
{
	__u32 flags = 0, mentioned = 0;
	unsigned long number;
	struct rtattr *nest;
	__u64 rate;
	__u16 id;
	__u8 dscp;

	(void)qu;
	(void)dev;
	nest = addattr_nest(n, REQUEST_MAX, TCA_OPTIONS | NLA_F_NESTED);
	for (; argc > 0; argc--, argv++) {
		const char *word = *argv, *value = argc > 1 ? argv[1] : NULL;

		if (get_flag(word, &flags)) {
			mentioned = 1;
			continue;
		}
		if (!strcmp(word, "help")) {
			explain();
			return -1;
		}
		if (!strcmp(word, "rate")) {
			if (!value || get_rate64(&rate, value)) {
				fprintf(stderr, "int: rate takes a rate such as 10gbit, not \"%s\"\n",
					value ? value : "");
				return -1;
			}
			addattr_l(n, REQUEST_MAX, TCA_INT_RATE64, &rate, sizeof(rate));
		} else if (!strcmp(word, "switch-id")) {
			if (!value || get_number(value, 4095, &number)) {
				fprintf(stderr, "int: switch-id takes 1 to 4095 (0: default), not \"%s\"\n",
					value ? value : "");
				return -1;
			}
			id = number;
			addattr_l(n, REQUEST_MAX, TCA_INT_SWITCH_ID, &id, sizeof(id));
		} else if (!strcmp(word, "dscp")) {
			if (!value || get_number(value, 63, &number)) {
				fprintf(stderr, "int: dscp takes 0 to 63, not \"%s\"\n",
					value ? value : "");
				return -1;
			}
			dscp = number;
			addattr_l(n, REQUEST_MAX, TCA_INT_DSCP, &dscp, sizeof(dscp));
		} else {
			fprintf(stderr, "int: what is \"%s\"?\n", word);
			explain();
			return -1;
		}
		argc--;
		argv++;
	}
	/* one attribute carries all flags: a change has to name all that are to be set */
	if (mentioned)
		addattr_l(n, REQUEST_MAX, TCA_INT_FLAGS, &flags, sizeof(flags));
	addattr_nest_end(n, nest);
	return 0;
}

static void print_rate_bits(const char *key, __u64 rate)
{
	static const char * const unit[] = { "bit", "Kbit", "Mbit", "Gbit" };
	unsigned int i = 0;
	__u64 n = rate * 8;
	char text[64];

	while (i < 3 && n >= 1000 && n % 1000 == 0) {
		n /= 1000;
		i++;
	}
	snprintf(text, sizeof(text), "%s %llu%s ", key, (unsigned long long)n, unit[i]);
	print_color_string(PRINT_FP, COLOR_NONE, NULL, "%s", text);
	print_color_u64(PRINT_JSON, COLOR_NONE, key, NULL, rate);
}

static int int_print_opt(const struct qdisc_util *qu, FILE *f, struct rtattr *opt)
{
	struct rtattr *tb[TCA_INT_MAX + 1];
	char text[16];
	__u64 rate;
	__u32 flags;
	size_t i;

	(void)qu;
	(void)f;
	if (!opt)
		return 0;
	parse_rtattr(tb, TCA_INT_MAX, RTA_DATA(opt), RTA_PAYLOAD(opt));
	if (tb[TCA_INT_RATE64] && RTA_PAYLOAD(tb[TCA_INT_RATE64]) >= sizeof(rate)) {
		memcpy(&rate, RTA_DATA(tb[TCA_INT_RATE64]), sizeof(rate));
		if (rate)
			print_rate_bits("rate", rate);
		else
			print_color_string(PRINT_ANY, COLOR_NONE, "rate", "rate %s ", "link");
	}
	if (tb[TCA_INT_SWITCH_ID] && RTA_PAYLOAD(tb[TCA_INT_SWITCH_ID]) >= sizeof(__u16)) {
		__u16 id = *(__u16 *)RTA_DATA(tb[TCA_INT_SWITCH_ID]);

		if (id)
			print_color_uint(PRINT_ANY, COLOR_NONE, "switch_id", "switch-id %u ", id);
		else
			print_color_string(PRINT_ANY, COLOR_NONE, "switch_id", "switch-id %s ",
					   "default");
	}
	if (tb[TCA_INT_DSCP] && RTA_PAYLOAD(tb[TCA_INT_DSCP]) >= sizeof(__u8))
		print_color_uint(PRINT_ANY, COLOR_NONE, "dscp", "dscp %u ",
				 *(__u8 *)RTA_DATA(tb[TCA_INT_DSCP]));
	if (tb[TCA_INT_FLAGS] && RTA_PAYLOAD(tb[TCA_INT_FLAGS]) >= sizeof(flags)) {
		memcpy(&flags, RTA_DATA(tb[TCA_INT_FLAGS]), sizeof(flags));
		for (i = 0; i < FLAG_NAMES; i++) {
			if (!(flags & flag_names[i].flag))
				continue;
			snprintf(text, sizeof(text), "%s ", flag_names[i].name);
			print_color_bool(PRINT_ANY, COLOR_NONE, flag_names[i].name, text, true);
		}
	}
	return 0;
}

static int int_print_xstats(const struct qdisc_util *qu, FILE *f, struct rtattr *xstats)
{
	struct tc_int_xstats st;

	(void)qu;
	(void)f;
	if (!xstats || RTA_PAYLOAD(xstats) < sizeof(st))
		return 0;
	memcpy(&st, RTA_DATA(xstats), sizeof(st));
	print_color_string(PRINT_FP, COLOR_NONE, NULL, "%s", "  ");
	print_rate_bits("rate_in_use", st.rate);
	print_color_uint(PRINT_ANY, COLOR_NONE, "switch_id_in_use", "switch-id %u ", st.switch_id);
	print_color_u64(PRINT_ANY, COLOR_NONE, "stamped", "stamped %llu ", st.stamped);
	print_color_u64(PRINT_ANY, COLOR_NONE, "over_room", "over-room %llu ", st.over_room);
	print_color_u64(PRINT_ANY, COLOR_NONE, "no_rate", "no-rate %llu ", st.no_rate);
	print_color_u64(PRINT_ANY, COLOR_NONE, "malformed", "malformed %llu", st.malformed);
	return 0;
}

struct qdisc_util int_qdisc_util = {
	.id = "int",
	.parse_qopt = int_parse_opt,
	.print_qopt = int_print_opt,
	.print_xstats = int_print_xstats,
};
