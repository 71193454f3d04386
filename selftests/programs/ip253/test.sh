#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# HPCC++ where another module has IFA's IP protocol: programs/lab.sh runs this in the lab with --module.

# shellcheck source=../../lib/lib.sh
. "$(dirname "$(readlink -f "$0")")/../../lib/lib.sh"
# shellcheck source=../../lib/telemetry.sh
. "$LIB/telemetry.sh"

taken()
{
	local family

	for family in 4 6; do
		wait_until modprobe -r tcp_hpccpp int_reflector
		modprobe ip253 family=$family || fail "no ip253"
		dmesg -C
		modprobe tcp_hpccpp format=1
		expect "IPv$family: lines in the log" "$(dmesg | grep -c "IP protocol 253 is another module's")" -eq 1
		dumbbell 1 100us
		node sw egress 1gbit
		serve r
		send --size 2M
		expect "IPv$family: control in use" "$(flow_field cc)" = hpccpp
		expect "IPv$family: responses accepted" "$(counter h1 hpccpp Accepted)" -ge 20
		expect "IPv$family: connections that left a format" "$(counter h1 hpccpp OldFormat)" -eq 0
		teardown
		wait_until modprobe -r tcp_hpccpp int_reflector
		modprobe -r ip253 || fail "ip253 stays"
	done
	modprobe tcp_hpccpp
	modprobe ip253 2>/dev/null && fail "int_host has not taken the protocol that is free again"
	true
}
declare_test taken "H21" "IP protocol 253 is another module's: one line in the log, and the draft's format"

run_tests "$@"
