#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Exact links, which labnet makes where the kernel has lowq_link: their times beside exact fractions
# shellcheck disable=SC2317 # tests are called by name

# shellcheck source=../lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"

# compare TEST: of link.py
compare()
{
	needs_virtual
	modprobe -q lowq_link || skip "no lowq_link in this kernel"
	LIB=$LIB python3 "$SELFTESTS/programs/link.py" "$NSP" "$1" >"$TMP/said" 2>&1 || fail "$(<"$TMP/said")"
}

rates() { compare rates; }
declare_test rates "" "from 1 Mb/s to 1.6 Tb/s and from 64 to 9000 bytes each packet arrives within a nanosecond of its instant"

segments() { compare segments; }
declare_test segments "" "a packet that leaves the host whole takes the time of its segments, with their headers"

events() { compare events; }
declare_test events "" "rate and delay change in mid-run and lose no packet"

chances() { compare chances; }
declare_test chances "" "losses, duplicates, wrong bits, jitter and reordering are as planned, and follow the seed"

trace() { compare trace; }
declare_test trace "" "a mahimahi trace is used whole, with its outages"

gaps() { compare gaps; }
declare_test gaps "" "fq's gaps are a packet's time at the socket's rate, to the nanosecond"

pie() { compare pie; }
declare_test pie "" "PIE keeps the mean delay of Reno flows at its target"

spread() { compare spread; }
declare_test spread "" "in a fat-tree of exact links all links to the core are used, of veth half"

run_tests "$@"
