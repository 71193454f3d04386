#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The guest's part of "lab kselftest": kselftest-guest.sh SELFTESTS PROGRAMS TEST [CONTROL]
cd "$1" || exit
test=$3
# The tree is the host's; this copy of its files is the guest's own.
for dir in net net/forwarding; do
	find "$2/$dir" -maxdepth 1 -type f -exec cp -t "$dir" {} + || exit
done
# busywait() reads the clock in new processes all the time, and no time passes meanwhile: let it sleep
sed -i 's/loopy_wait : /loopy_wait "sleep 0.01" /' net/lib.sh
# its connections are between the same two ports: at one instant a SYN has no newer time stamp than TIME-WAIT
sed -i 's/^[[:space:]]*nettest -q -6 -B -t 5 .*-Q /sleep 0.01; &/' net/fib_rule_tests.sh
# where sh is dash, "for _ in {1..16384}" is one packet; and in the lab as many programs take minutes
sed -i '/ sh -c /s/ sh -c / bash -c /; s/{1\.\.16384}/{1..1000}/' net/forwarding/*custom_multipath_hash.sh 2>/dev/null
if [ "${4:-}" ]; then
	modprobe "tcp_$4" 2>/dev/null
	sysctl -qw net.ipv4.tcp_congestion_control="$4" || exit
fi
cd "${test%/*}" || exit
[ -x "${test##*/}" ] || exec bash "./${test##*/}"
exec "./${test##*/}"
