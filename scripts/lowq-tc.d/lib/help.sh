# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034,SC2154	# shared with the other parts of lowq-tc
#
# What --help says.

usage() {
	cat <<-END
	lowq-tc - queue and marking on a device, and the host side, for a congestion control

	  lowq-tc PROFILE DEV [--rate R] [options]   set the queue of DEV
	  lowq-tc show [DEV]                         what is set, and its counters
	  lowq-tc reset DEV | --all                  put back what was there before
	  lowq-tc host CONTROL [--default] [--route PREFIX]... [--allow]
	               [--initcwnd N] [--initrwnd N] [--quickack] [options of the control]
	  lowq-tc host show | host reset
	  lowq-tc list                               profiles, their options, controls

	profiles
	END
	list_text
	printf '\ncontrols, for "lowq-tc host"\n'
	list_controls
	cat <<-END

	for every profile
	  --rate R          rate of the link: 10gbit, 40mbit. Default: what the device says
	  --shape           limit the device to --rate with htb. Implied by --rate on a device
	                    without a line of its own (veth, vlan ...); --no-shape to not
	  --shape-burst Q   let this much through at once (default: one packet)
	  --gso-segs N      let the device's own senders put at most N packets into one
	  -n, --netns NS    DEV is in this network namespace
	  --dry-run         print the commands that would run, and run nothing
	  --json            plan, result or show as JSON
	  --force           go on where what was there before cannot be put back exactly
	  --no-rehearsal    do not try the commands in a scratch namespace first
	  -q, --quiet       say nothing but errors

	A queue length Q is packets (65), bytes (97500b, 95kb) or time (50us).
	Exit status: 0 done, 1 failed and rolled back, 2 refused, nothing changed.
	END
}
