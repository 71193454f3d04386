# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# The first steps of a guest that is init of a machine without a disk; sourced by it.

# word NAME: what the kernel's command line has as lowq_NAME
word()
{
	sed -n "s/.*lowq_$1=\([^ ]*\).*/\1/p" /proc/cmdline
}

# off [STATUS]: ends the machine, or a process that is not its init
off()
{
	[ $$ -eq 1 ] || exit "${1:-0}"
	echo o >/proc/sysrq-trigger
	sleep 60
}

# failed REASON: ends the machine; its console has the reason
failed()
{
	[ $$ -ne 1 ] || exec >/dev/ttyS0
	echo "LOWQ: failed: $*"
	off 1
}

# mount_all: what programs expect; output goes to the console
mount_all()
{
	export PATH=/lowq:/usr/sbin:/usr/bin:/sbin:/bin HOME=/ LANG=C LOWQ_BIN=/lowq
	mount -t proc proc /proc
	mount -t sysfs sysfs /sys
	mount -t devtmpfs dev /dev 2>/dev/null
	ln -s /proc/self/fd /dev/fd
	exec </dev/null >/dev/ttyS0 2>&1
	mkdir -p /tmp /run
	mount -t tmpfs tmp /tmp
	mount -t tmpfs run /run
	ip link set lo up
}
