# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# deploy/ansible against two hosts: copies of the Debian root in a chroot and a network namespace
# each. The script that sources this has sourced root.sh, and sets PROJECT, CACHE and OUT.

ROLLOUT=$CACHE/matrix/rollout

# host_up NAME NUMBER: a writable view of the root, and a program that is Python there
host_up()
{
	local dir=$ROLLOUT/$1

	mkdir -p "$dir"/{upper,work,root} "$ROLLOUT/tmp"
	mount -t overlay overlay -o "lowerdir=$ROOT,upperdir=$dir/upper,workdir=$dir/work" "$dir/root" &&
		ip netns add "lowq-$1" && ip -n "lowq-$1" link set lo up &&
		ip link add name lan0 netns "lowq-$1" type veth peer name "lowq-peer$2" &&
		ip -n "lowq-$1" link set lan0 up && ip link set "lowq-peer$2" up &&
		ip -n "lowq-$1" addr add "10.77.0.$2/24" dev lan0 && ip -n "lowq-$1" link add name wan-1 type veth peer name wan-2 || return
	mkdir -p "$dir/root$ROLLOUT/tmp"
	# process 1 has to be called systemd: else Ansible does not enable units, which works in a chroot
	cp /bin/sh "$ROLLOUT/systemd"
	cat >"$dir/python" <<-END
		#!/bin/sh
		exec ip netns exec lowq-$1 unshare --pid --fork "$ROLLOUT/systemd" -c 'root=\$1; shift
			mount -t proc proc "\$root/proc" && mount -t sysfs sysfs "\$root/sys" &&
			mount --bind /dev "\$root/dev" && mount --bind "$ROLLOUT/tmp" "\$root$ROLLOUT/tmp" || exit
			chroot "\$root" /usr/bin/python3 "\$@"; exit \$?' systemd "$dir/root" "\$@"
	END
	chmod +x "$dir/python"
}

hosts_down()
{
	local name

	for name in one two; do
		ip netns del "lowq-$name"
		umount -R "$ROLLOUT/$name/root"
	done 2>/dev/null
	rm -rf "$ROLLOUT"
}

# play EXIT [ARGUMENTS...]: the playbook ends with success (0), or not (1)
play()
{
	local status=0

	: >"$ROLLOUT/ansible.cfg"
	ANSIBLE_CONFIG=$ROLLOUT/ansible.cfg ANSIBLE_PIPELINING=1 ANSIBLE_LOCALHOST_WARNING=0 ANSIBLE_ROLES_PATH=$PROJECT/deploy/ansible/roles \
		ansible-playbook -i "$ROLLOUT/hosts.yml" "$PROJECT/deploy/ansible/rollout.yml" "${@:2}" >"$ROLLOUT/log" 2>&1 || status=1
	cat "$ROLLOUT/log" >>"$OUT/rollout.log"
	[ $status -eq "$1" ]
}

# changed NAME: how many tasks of the last play changed something on a host
changed()
{
	sed -n "s/^$1 *: .*changed=\([0-9]*\).*/\1/p" "$ROLLOUT/log"
}

# picture NAME: what lowq-tc can have changed there
picture()
{
	tc -n "lowq-$1" -d qdisc show dev lan0
	tc -n "lowq-$1" class show dev lan0
	ip -n "lowq-$1" -d route show
	ip netns exec "lowq-$1" sysctl net.ipv4.tcp_congestion_control net.ipv4.tcp_ecn
}

units_of() { (cd "$ROLLOUT/$1/root/etc/systemd/system" && find . -name 'lowq*' -printf '%f\n' | sort | paste -sd' '); }
rate_of() { tc -n "lowq-$1" class show dev lan0 | grep -o 'rate [^ ]*'; }

# rollout: TAP
rollout()
{
	local before name log=$OUT/rollout.log

	ROOT=$(root_of systemd)
	hosts_down
	host_up one 1 && host_up two 2
	result $? "rollout: two hosts" || return
	cat >"$ROLLOUT/hosts.yml" <<-END
		all:
		  vars:
		    ansible_connection: local
		    ansible_become: false
		    ansible_remote_tmp: $ROLLOUT/tmp
		    lowq_packages: [$(find "$PROJECT/out/deb" -name 'lowq-tools_*_amd64.deb')]
		    lowq_queues: [{device: "[lw]an*", profile: fifo, rate: 1gbit}]
		    lowq_hosts: [{control: reno, default: true, route: [10.77.0.0/24], initcwnd: 20}]
		    lowq_check: [[--control, reno]]
		  hosts:
		    one: {ansible_python_interpreter: $ROLLOUT/one/python}
		    two: {ansible_python_interpreter: $ROLLOUT/two/python}
	END
	before=$(picture one)
	: >"$log"
	(cd "$PROJECT/deploy/ansible" && ansible-lint -q --offline rollout.yml roles/lowq) >>"$log" 2>&1
	result $? "rollout: ansible-lint" "$log"
	play 0 && [[ $(rate_of one)$(rate_of two) == "rate 1Gbitrate 1Gbit" ]] &&
		[[ $(ip -n lowq-two route show) == *"congctl reno"* ]]
	result $? "rollout: installed and set on both" "$log" || return
	[[ $(units_of one) == lowq-tc.service && $(units_of two) == "$(units_of one)" ]]
	result $? "rollout: both set it again at boot" "$log"
	play 0 && [ "$(changed one)$(changed two)" = 00 ]
	result $? "rollout: a second run changes nothing" "$log"
	# the canary's path is not fine
	play 1 -e '{"lowq_queues": [{"device": "lan0", "profile": "fifo", "rate": "2gbit"}], "lowq_check": [["127.0.0.1", "--port", "5389", "--token", "x"]]}' &&
		[[ $(rate_of one)$(rate_of two) == "rate 2Gbitrate 1Gbit" ]]
	result $? "rollout: stops at a canary whose lowq-check fails" "$log"
	[[ $(tc -n lowq-one qdisc show dev wan-1) != *10f0:* && $(tc -n lowq-two qdisc show dev wan-1) == *10f0:* ]]
	result $? "rollout: a device that is no longer named is reset"
	play 1 -e '{"lowq_queues": [{"device": "lan0", "profile": "fifo", "rate": "nothing"}]}' && [[ $(rate_of one)$(rate_of two) == "rate 2Gbitrate 1Gbit" ]] &&
		grep -q 'lowq.toml: queue 1: --rate nothing' "$ROLLOUT/log"
	result $? "rollout: a wrong setting stops at the canary, and changes nothing there" "$log"
	echo 'LOWQ_TC="fifo --rate 3gbit"' >"$ROLLOUT/one/root/etc/lowq/lan0.conf"
	play 0 -e '{"lowq_queues": [], "lowq_hosts": [{"control": "reno", "route": ["10.77.0.0/24"]}]}' && [[ $(rate_of one)$(rate_of two) == "" ]] &&
		[[ $(ip -n lowq-one route show) == *"congctl reno"* && $(ip -n lowq-one route show) != *initcwnd* ]] &&
		[ "$(units_of one)" = lowq-tc.service ] && [ ! -e "$ROLLOUT/one/root/etc/lowq/lan0.conf" ]
	result $? "rollout: what is not named any more is reset, and a file of lowq 0.3 goes" "$log"
	play 0 -e lowq_state=absent && [ "$(picture one)" = "$before" ] && [ ! -e "$ROLLOUT/two/root/usr/sbin/lowq-tc" ] &&
		[ ! -e "$ROLLOUT/two/root/etc/lowq" ] && [ ! "$(units_of one)" ]
	result $? "rollout: removed, and all is as before" "$log"
	play 0 -e lowq_state=absent && [ "$(changed one)$(changed two)" = 00 ]
	result $? "rollout: a second removal changes nothing" "$log"
	hosts_down
}
