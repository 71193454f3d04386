#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# HPCC++ where NFQUEUE holds its messages: programs/lab.sh runs this in the lab with --module.

# shellcheck source=../../lib/lib.sh
. "$(dirname "$(readlink -f "$0")")/../../lib/lib.sh"
# shellcheck source=../../lib/telemetry.sh
. "$LIB/telemetry.sh"

# requeued COUNT: of nf_requeue's
requeued()
{
	cat "/sys/module/nf_requeue/parameters/$1"
}

messages()
{
	parameter receiver_based=1
	PARAM=$REFLECTOR parameter base_rtt_ns=100000
	dumbbell 1 100us
	node sw egress 1gbit
	modprobe nf_requeue || fail "no nf_requeue"
	serve r
	send --duration "$(virtual && echo 50ms || echo 1s)"
	expect "messages that a process gave back" "$(requeued requeued)" -ge 100
	expect "answers" "$(counter r int_reflector Answered)" -ge 50
	expect "windows" "$(counter r int_reflector Window)" -ge 50
	expect "responses accepted" "$(counter h1 hpccpp Accepted)" -ge 50
	expect "answers sent while a softirq could interrupt" "$(requeued unprotected)" -eq 0
}
declare_test messages "H9" "messages that NFQUEUE has held: the hooks are as safe in a process as in softirq"

run_tests "$@"
