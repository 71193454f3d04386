// SPDX-License-Identifier: GPL-2.0
#include <err.h>
#include <libgen.h>
#include <stdlib.h>
#include <unistd.h>

#include "../common/events.h"
#include "report.h"

struct totals totals = { .first_start = NEVER };

static FILE *out;
static const char *folder = ".";
static u64 real_minus_mono;	/* added to a time for output */

void report_open(const char *path)
{
	static char buf[1 << 16];

	out = path ? fopen(path, "we") : stdout;
	if (!out)
		err(2, "--out: %s", path);
	/* programs start elsewhere */
	if (path)
		folder = dirname(realpath(path, NULL));
	if (!isatty(fileno(out)))
		setvbuf(out, buf, _IOFBF, sizeof(buf));
	real_minus_mono = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC);
}

const char *report_folder(void)
{
	return folder;
}

int report_close(void)
{
	return ferror(out) || fclose(out) ? -1 : 0;
}

struct json report_line(const char *type, const struct config *cfg)
{
	struct json j = { .file = out };

	json_open(&j, NULL, '{');
	json_str(&j, "type", type);
	json_str(&j, "label", cfg->label);
	json_str(&j, "kind", cfg->kind ? cfg->kind : mode_name[cfg->mode]);
	return j;
}

void report_line_end(struct json *j)
{
	json_close(j, '}');
	fputc('\n', j->file);
}

void report_span(struct json *j, u64 start, u64 end, u64 bytes)
{
	json_int(j, "start_ns", start + real_minus_mono);
	json_int(j, "end_ns", end + real_minus_mono);
	json_int(j, "duration_ns", end - start);
	if (end > start)
		json_int(j, "goodput_bps", (u64)(bytes * 8.0 * NSEC / (end - start)));
	else
		json_null(j, "goodput_bps");
}

void report_interval(struct flow *f, u64 now, const struct tcp_info *info, u64 moved)
{
	u64 delta = moved > f->mark_bytes ? moved - f->mark_bytes : 0;
	struct json j;

	if (now <= f->mark_ns)
		return;
	j = report_line("interval", f->gen->cfg);
	json_int(&j, "id", f->id);
	json_int(&j, "bytes", delta);
	report_span(&j, f->mark_ns, now, delta);
	if (f->gen->cfg->pull) {
		json_null(&j, "rtt_us");
		json_null(&j, "cwnd");
		json_null(&j, "retrans");
	} else {
		json_int(&j, "rtt_us", info->tcpi_rtt);
		json_int(&j, "cwnd", info->tcpi_snd_cwnd);
		json_int(&j, "retrans", info->tcpi_total_retrans);
	}
	report_line_end(&j);
	f->mark_bytes += delta;
	f->mark_ns = now;
}

void count_flow(u64 start, u64 end, u64 bytes, bool ok)
{
	if (ok)
		totals.ok++;
	else
		totals.failed++;
	totals.bytes += bytes;
	if (start < totals.first_start)
		totals.first_start = start;
	if (end > totals.last_end)
		totals.last_end = end;
}

void report_flow(const struct flow *f, u64 now, u64 moved, const struct sender *s,
		 const struct verdict *v)
{
	const struct config *cfg = f->gen->cfg;
	const struct path *path = &cfg->path[f->path];
	const union addr *dst = &cfg->host[path->host];
	struct json j = report_line("flow", cfg);
	char text[INET6_ADDRSTRLEN];
	char status[128];

	json_int(&j, "id", f->id);
	if (cfg->mode == INCAST)
		json_int(&j, "round", f->id / cfg->fan);
	if (f->src.sa.sa_family == AF_UNSPEC) {
		json_null(&j, "src");
		json_null(&j, "sport");
	} else {
		json_str(&j, "src", addr_text(&f->src, text));
		json_int(&j, "sport", addr_port(&f->src));
	}
	json_str(&j, "dst", addr_text(dst, text));
	json_int(&j, "dport", addr_port(dst));
	if (path->netns) {
		json_str(&j, "client", path->netns->name);
		json_str(&j, "server", path->server);
	}
	json_str(&j, "cc", f->cc);
	json_str(&j, "dir", cfg->pull ? "pull" : "push");
	json_int(&j, "size", moved);
	report_span(&j, f->start, now, moved);
	json_int(&j, "since_due_ns", now - f->due);
	if (cfg->first_byte) {
		if (f->first)
			json_int(&j, "first_byte_ns", f->first - f->due);
		else
			json_null(&j, "first_byte_ns");
	}
	if (s) {
		json_int(&j, "retrans", s->retrans - f->before.retrans);
		json_int(&j, "rwnd_limited_us", s->rwnd_limited - f->before.rwnd_limited);
		json_int(&j, "sndbuf_limited_us", s->sndbuf_limited - f->before.sndbuf_limited);
	} else {
		json_null(&j, "retrans");
		json_null(&j, "rwnd_limited_us");
		json_null(&j, "sndbuf_limited_us");
	}
	if (v->what == ERROR) {
		snprintf(status, sizeof(status), "error: %s", v->why);
		json_str(&j, "status", status);
	} else {
		json_str(&j, "status", v->what == TIMEOUT ? "timeout" :
			 v->what == STOPPED && f->size != UNLIMITED ? "stopped" : "ok");
	}
	report_line_end(&j);
	count_flow(f->start, now, moved, v->what == OK || v->what == STOPPED);
	if (now > f->gen->last_end)
		f->gen->last_end = now;
}

void report_summary(const struct config *cfg, u64 t0)
{
	u64 start = totals.first_start == NEVER ? t0 : totals.first_start;
	u64 end = totals.last_end ? totals.last_end : start;
	struct json j = report_line("summary", cfg);

	json_int(&j, "seed", cfg->seed);
	json_int(&j, "flows", totals.ok + totals.failed);
	json_int(&j, "ok", totals.ok);
	json_int(&j, "failed", totals.failed);
	json_int(&j, "bytes", totals.bytes);
	report_span(&j, start, end, totals.bytes);
	json_int(&j, "late_max_ns", totals.late_max);
	json_int(&j, "zero_ns", t0 + real_minus_mono);
	report_line_end(&j);
}

void report_late(u64 now, u64 due)
{
	if (now > due && now - due > totals.late_max)
		totals.late_max = now - due;
}
