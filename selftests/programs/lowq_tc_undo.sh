#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# lowq-tc's undo: killed at any command, two at once, devices and namespaces that change under
# way, queues of others, damaged records. And what it accepts: odd numbers, odd names.
#
# FULL=1 pairs every profile with every kind of device, and takes 200 rounds of two at once.

# shellcheck source=lowq_tc_lib.sh
. "$(dirname "$0")/lowq_tc_lib.sh"
readonly crash=$SELFTESTS/programs/lowq_tc_crash.py

setup()
{
	rm -rf "$LOWQ_STATE_DIR" "$TMP/wrapped"
	ip netns add "$ns"
	device
}

shopt -s extglob

queue()
{
	local shown

	shown=$(tcn -d qdisc show dev "${1:-lq0}")
	echo "${shown// refcnt +([0-9])}"
}

# --- killed everywhere --------------------------------------------------------

# long: for the tests that take minutes
long()
{
	[[ ${FULL:-} ]] || skip "takes minutes: FULL=1"
}

crash_part()
{
	TC_LIB_DIR=$BIN python3 "$crash" "$@" >"$TMP/crash" 2>&1 || { cat "$TMP/crash"; fail "$(grep -v '^#' "$TMP/crash" | head -n 3)"; }
	cat "$TMP/crash" >&3
}

crash_devices() { crash_part devices; }
declare_test crash_devices "" "killed before and after each command, in set, reset and reset after a killed reset: queues are as before"

crash_hosts() { long; crash_part hosts; }
declare_test crash_hosts "" "the same for host settings: sysctls, routes, modules and their parameters"

renamed() { crash_part rename; }
declare_test renamed "" "renamed before or after any command: reset finds the device under either name"

readdressed() { long; crash_part address; }
declare_test readdressed "" "veth, bridge, bond: another MAC address before or after any command: all is put back"

deleted() { long; crash_part deletion; }
declare_test deleted "" "deleted before or after any command: nothing is left of it"

made_again() { long; crash_part re-creation; }
declare_test made_again "" "deleted and made again before or after any command: reset takes our queue off the new device, too"

namespace_deleted() { long; crash_part namespace; }
declare_test namespace_deleted "" "the namespace deleted before or after any command: a new one of its name inherits nothing"

two_at_once()
{
	local before i rounds=4

	[[ ! ${FULL:-} ]] || rounds=200
	before=$(queue)
	for ((i = 0; i < rounds; i++)); do
		"$LOWQ_TC" -n "$ns" fifo lq0 --rate $((RANDOM % 9 + 1))gbit --no-rehearsal -q 2>>"$TMP/two" &
		if ((RANDOM % 2)); then
			"$LOWQ_TC" -n "$ns" reset lq0 -q 2>>"$TMP/two" &
		else
			"$LOWQ_TC" -n "$ns" fifo lq0 --no-shape --gso-segs 1 --no-rehearsal -q 2>>"$TMP/two" &
		fi
		wait
	done
	[ ! -s "$TMP/two" ] || fail "two at once: $(sort "$TMP/two" | uniq -c | head -n 3)"
	must reset lq0
	expect "queue after $rounds rounds" "$(queue)" = "$before"
	no_records
}
declare_test two_at_once "" "two at once, at random: each waits for the other, and reset puts back"

namespace_gone()
{
	must fifo lq0 --rate 1gbit
	ip netns del "$ns"
	gives 2 "no network namespace" reset lq0
	ip netns add "$ns"
	device
	# a new namespace inherits nothing, also if it has the inode of the old one
	gives 0 "nothing to undo" reset lq0
	must reset --all
	no_records
}
declare_test namespace_gone "" "a namespace that is gone: its records are not those of a new one, and go with the next reset"

inode_again()
{
	local inode i key=net.ipv4.tcp_congestion_control

	inode=$(stat -Lc %i "/run/netns/$ns")
	[[ $(in_ns a sysctl -n "$key") != reno ]] || skip "reno is the default here"
	must host reno --default
	for ((i = 0; i < 8; i++)); do
		ip netns del "$ns"
		ip netns add "$ns"
		[[ $(stat -Lc %i "/run/netns/$ns") != "$inode" ]] || break
	done
	((i < 8)) || echo "# the kernel did not use the inode again" >&3
	# the same value that lowq-tc set in the old one
	in_ns a sysctl -qw "$key"=reno
	gives 0 "nothing to undo" host reset
	expect "the new namespace's control" "$(in_ns a sysctl -n "$key")" = reno
	no_records
}
declare_test inode_again "" "a new namespace with the inode of an old one does not inherit its host record"

# hardware INDEX: a device with one address, which $TMP/seen takes for a network card
hardware()
{
	cat >"$TMP/seen" <<-END
		#!/usr/bin/python3 -IS
		import sys
		sys.path.insert(0, "${LOWQ_TC%/*}")
		from lowq_common import devices
		from lowq_tc import cli
		real = devices.read_links
		devices.read_links = lambda *given: [one._replace(kind="") for one in real(*given)]
		sys.exit(cli.main(sys.argv[1:]))
	END
	chmod +x "$TMP/seen"
	ipn -batch - <<-END
		link add name lq7 index $1 address 02:00:00:00:00:77 type veth peer name lq8
		link set lq7 up
		link set lq8 up
	END
}

unplugged()
{
	hardware 70
	LOWQ_TC=$TMP/seen must fifo lq7 --rate 1gbit --shape --no-rehearsal
	ipn link del lq7
	hardware 71
	LOWQ_TC=$TMP/seen must fifo lq7 --rate 2gbit --shape --no-rehearsal
	LOWQ_TC=$TMP/seen gives 0 "lq7: fifo" show --check
	expect "records" "$(records)" -eq 1
}
declare_test unplugged "" "a network card that was unplugged, or whose driver was loaded again: set again, it has one record"

interrupted()
{
	mkdir "$LOWQ_STATE_DIR"
	python3 - "$LOWQ_TC" "$ns" <<-'END' >"$TMP/said" || fail "$(<"$TMP/said")"
		import fcntl, os, signal, subprocess, sys, time
		signal.signal(signal.SIGINT, signal.default_int_handler)  # who runs the tests may ignore it
		held = open(os.environ["LOWQ_STATE_DIR"] + "/lock", "w")
		fcntl.flock(held, fcntl.LOCK_EX)
		waits = subprocess.Popen([sys.argv[1], "-n", sys.argv[2], "reset", "lq0"], stderr=subprocess.PIPE, text=True)
		time.sleep(2)
		waits.send_signal(signal.SIGINT)
		said = waits.communicate()[1]
		print(waits.returncode, said)
		sys.exit(waits.returncode != 2 or said != "lowq-tc: interrupted; nothing was changed\n")
	END
}
declare_test interrupted "" "Ctrl-C while it waits for another lowq-tc: one line"

# --- what there was before -----------------------------------------------------

objects()
{
	unshare -n python3 "$SELFTESTS/programs/lowq_tc_objects.py" "$1" >"$TMP/objects" 2>&1 || fail "$(<"$TMP/objects")"
	cat "$TMP/objects" >&3
}

routes_at_random() { objects "${FULL:+4}80"; }
declare_test routes_at_random "" "routes with every attribute: set, they lose nothing; after reset they are as before; what expires is refused"

# QUEUE: what is put at the root of lq0, a command in a line
readonly others=(
	"root handle 5: pfifo limit 77" "root handle 5: bfifo limit 77777" "root handle 5: fq_codel limit 500 target 3ms interval 33ms"
	"root handle 5: codel limit 99 ecn" "root handle 5: fq limit 999 flow_limit 44" "root handle 5: prio bands 4"
	"root handle 5: red limit 100000 min 3000 max 9000 avpkt 1500 burst 5 bandwidth 1gbit probability 0.1 ecn"
	"root handle 5: netem limit 500 delay 3ms" "root handle 5: htb default 1" "root handle 5: sfq" "root handle 5: tbf rate 1gbit burst 9999 limit 99999"
)

others_queues()
{
	local words tried=0 before away again

	for words in "${others[@]}"; do
		# shellcheck disable=SC2086 # words are words
		tcn qdisc add dev lq0 $words 2>/dev/null || continue
		: $((tried++))
		before=$(queue)
		gives 2 "has a queue that lowq-tc did not make" fifo lq0 --rate 1gbit
		[[ $err != *$'\n'* ]] || fail "$words: not one line: $err"
		expect "the queue after it was refused" "$(queue)" = "$before"
		away=${err#*". '"} away=${away%%\'*}
		again=${err#*"; '"} again=${again%%\'*}
		[[ $away == "tc -n $ns qdisc del dev lq0 root" ]] || fail "$words: what takes it away: $away"
		sh -e <<<"$away" || fail "$away"
		must fifo lq0 --rate 1gbit
		must reset lq0
		# of some kinds tc does not show how they were made
		[[ $again != "tc -d qdisc show"* ]] || continue
		sh -e <<<"$again" || fail "$words: as printed: $again"
		expect "the queue as it is made again" "$(queue)" = "$before"
		tcn qdisc del dev lq0 root
	done
	expect "kinds tried" "$tried" -ge 3
	# one below lowq-tc's
	ipn link add name lqm numtxqueues 2 type veth peer name lqn
	ipn link set lqm up
	must fifo lqm --no-shape
	tcn qdisc replace dev lqm parent 10f0:1 handle 5: pfifo limit 5
	gives 1 "someone else has put 'pfifo 5:' below" reset lqm
	gives 2 "someone else has put 'pfifo 5:' below" fifo lqm --rate 1gbit
	must reset lqm --force
	no_records
	# one below the kernel's own mq counts, too
	ipn link add name lqi numtxqueues 4 numrxqueues 4 type ifb || skip 'no ifb'
	ipn link set lqi up
	tcn qdisc add dev lqi parent :1 handle 78: pfifo 2>/dev/null || skip 'no mq of the kernel'
	gives 2 "did not make, 'pfifo'" fifo lqi --rate 1gbit
}
declare_test others_queues "" "queues of others are refused, with the commands that take them away and make them again"

route_expires()
{
	local word

	ipn addr add fd71::1/64 dev lq0 nodad
	ipn -6 route add fd98::/64 via fd71::9 dev lq0 expires 300
	ipn -6 route add default via fd71::9 dev lq0 proto ra expires 300
	for word in fd98::/64 ::/0 fd71:2::/48; do
		gives 2 "would stay; " host reno --route "$word"
		[[ $err != *$'\n'* ]] || fail "not one line: $err"
	done
	[[ $err == *"ip -n $ns -6 route add fd71:2::/48 via fd71::9 dev lq0"* ]] || fail "does not say what to type: $err"
	gives 0 "nothing to undo" host reset
	expect "routes that expire" "$(ipn -6 route show | grep -c 'expires')" -eq 2
}
declare_test route_expires "" "a route with a lifetime, or from a router's advertisement, is refused: it would become permanent"

route_changes()
{
	ipn addr add 10.71.0.1/24 dev lq0
	ipn route add 10.9.0.0/16 via 10.71.0.2
	# just before lowq-tc writes it, someone else takes it and the way to its gateway away
	# shellcheck disable=SC2016 # the wrapper expands
	wrapped ip 'case " $* " in *" route replace 10.9.0.0/16 "*)
		"$real" -n $ns route del 10.9.0.0/16; "$real" -n $ns addr del 10.71.0.1/24 dev lq0 ;; esac'
	PATH=$TMP/wrapped:$PATH gives 1 "rolled back" host reno --route 10.9.0.0/16
	expect "routes that are left" "$(ipn route show | wc -l)" -eq 0
	no_records
}
declare_test route_changes "" "a route that goes while it is set: rolled back, and it stays gone"

link_down()
{
	local before

	ipn link add name lqi numtxqueues 4 numrxqueues 4 type ifb || skip 'no ifb'
	ipn link set lqi up
	before=$(queue lqi)
	[[ $before == *"mq 0: root"* ]] || fail "not a device with four queues: $before"
	must fifo lqi --no-shape --gso-segs 2
	ipn link set lqi down
	must reset lqi
	no_records
	ipn link set lqi up
	expect "queue once it is up again" "$(queue lqi)" = "$before"
	# set while it is down, reset while it is down and up
	ipn link set lqi down
	must fifo lqi --no-shape
	must reset lqi
	must fifo lqi --no-shape
	ipn link set lqi up
	must reset lqi
	expect "queue after all" "$(queue lqi)" = "$before"
}
declare_test link_down "" "a device with several queues is reset while its link is down: the kernel makes its queues at 'up'"

# --- proven cases ---------------------------------------------------------------

users_clsact()
{
	tcn qdisc add dev lq0 clsact
	tcn filter add dev lq0 egress protocol ip pref 9 matchall classid :7 || skip 'no matchall'
	must fifo lq0 --rate 1gbit
	must reset lq0
	tcn filter show dev lq0 egress | grep -q 'pref 9 matchall' || fail "the user's filters are gone"
}
declare_test users_clsact "" "the user's clsact and its filters stay"

# at_egress: the filters there; counted NUMBER: packets of gred's virtual queue
at_egress() { tcn filter show dev lq0 egress; tcn filter show dev lq0 ingress; }
counted() { tcn -s -d qdisc show dev lq0 | awk -v vq="$1" '$1 == "vq" { at = $2 } at == vq && /Total packets/ { print $3; exit }'; }

beside_clsact()
{
	local before queue

	tc qdisc add dev lo root gred help 2>&1 | grep -q vqs || skip 'no gred'
	tcn qdisc add dev lq0 clsact
	tcn filter add dev lq0 egress protocol ip pref 49152 u32 match u32 0 0 action continue || skip 'no u32 or no actions'
	tcn filter add dev lq0 ingress protocol ip pref 9 matchall action continue
	before=$(at_egress) queue=$(queue)
	gives 0 "its filters come first" ldcp lq0 --rate 10gbit --rtt 100us
	expect "filters behind the other's" "$(tcn filter show dev lq0 egress | grep -o 'pref [0-9]* [a-z0-9]*' | sort -u | paste -sd,)" = \
		"pref 49152 u32,pref 61681 flower,pref 61682 flower,pref 61683 matchall"
	must show lq0 --check
	# Not-ECT packets find their virtual queue
	ipn addr add 10.71.0.1/24 dev lq0
	ipn neigh add 10.71.0.2 lladdr 02:00:00:00:00:02 dev lq0
	in_ns a ping -q -c 5 -i 0.01 -W 0.1 10.71.0.2 >/dev/null
	expect "Not-ECT packets in their queue" "$(counted 2)" -ge 5
	# again, then another profile that needs none, then it again
	must ldcp lq0 --rate 1gbit --rtt 1ms
	must fifo lq0 --rate 1gbit
	expect "filters with another profile" "$(at_egress)" = "$before"
	must ldcp lq0 --rate 1gbit --rtt 1ms
	# the other's filters change meanwhile
	tcn filter add dev lq0 egress protocol ip pref 7 matchall action continue
	must reset lq0
	tcn filter del dev lq0 egress protocol ip pref 7
	expect "filters after reset" "$(at_egress)" = "$before"
	expect "queue after reset" "$(queue)" = "$queue"
	# the other's clsact goes, and takes ours with it
	must ldcp lq0 --rate 1gbit --rtt 1ms
	tcn qdisc del dev lq0 clsact
	! lt show lq0 --check || fail "show --check: $out"
	must reset lq0
	no_records
	tcn qdisc add dev lq0 egress_block 7 clsact
	gives 2 "other devices share" ldcp lq0 --rate 1gbit --rtt 1ms
	tcn qdisc del dev lq0 clsact
	tcn qdisc add dev lq0 ingress
	gives 2 "--simple" ldcp lq0 --rate 1gbit --rtt 1ms
}
declare_test beside_clsact "" "ldcp beside someone else's clsact: its filters come first, change freely, and stay"

clsact_fails()
{
	local before

	tc qdisc add dev lo root gred help 2>&1 | grep -q vqs || skip 'no gred'
	before=$(queue)
	# somebody else adds a clsact with a filter just before lowq-tc does
	# shellcheck disable=SC2016 # the wrapper expands
	wrapped tc 'case " $* " in *" add dev lq0 clsact "*)
		$real -n $ns qdisc add dev lq0 clsact
		$real -n $ns filter add dev lq0 ingress protocol ip pref 9 matchall classid :7 ;; esac'
	PATH=$TMP/wrapped:$PATH gives 1 "rolled back to what was there before" ldcp lq0 --rate 10gbit --rtt 100us --no-rehearsal
	tcn filter show dev lq0 ingress | grep -q 'pref 9 matchall' || fail "the other's filter is gone"
	tcn qdisc del dev lq0 clsact
	expect "queue" "$(queue)" = "$before"
	no_records
}
declare_test clsact_fails "" "'tc qdisc add clsact' fails as there is one by now: that one and its filters stay"

disk_full()
{
	local before

	# room for the record until the first commands have run
	mkdir -p "$LOWQ_STATE_DIR"
	mount -t tmpfs -o size=64k,mode=700 none "$LOWQ_STATE_DIR" || skip 'no tmpfs'
	# shellcheck disable=SC2016 # the wrapper expands
	wrapped tc 'case " $* " in *" class add "*) head -c 1M /dev/zero >"$LOWQ_STATE_DIR/fill" ;; esac'
	before=$(queue)
	PATH=$TMP/wrapped:$PATH gives 0 "cannot write the record" fifo lq0 --rate 1gbit
	gives 3 "cut short" show --check
	must reset lq0
	expect "queue after reset with a full disk" "$(queue)" = "$before"
	head -c 1M /dev/zero >>"$LOWQ_STATE_DIR/fill" 2>/dev/null
	gives 2 "No space left" fifo lq0 --rate 1gbit
	expect "queue after it was refused" "$(queue)" = "$before"
	rm "$LOWQ_STATE_DIR/fill"
	must reset lq0
	no_records
}
declare_test disk_full "" "no room for the record half-way: it is set and said; before: refused; reset needs no room"

read_only()
{
	local before

	mkdir -p "$LOWQ_STATE_DIR"
	mount -t tmpfs -o mode=700 none "$LOWQ_STATE_DIR" || skip 'no tmpfs'
	ipn addr add 10.71.0.1/24 dev lq0
	before=$(queue; ipn -d route show)
	must fifo lq0 --rate 1gbit
	must host reno --route 10.71.0.0/24 --initcwnd 9
	mount -o remount,ro "$LOWQ_STATE_DIR"
	gives 2 "Read-only file system" fifo lq0 --rate 2gbit
	gives 0 "Read-only file system" reset lq0
	gives 0 "Read-only file system" host reset
	expect "queue and routes" "$(queue; ipn -d route show)" = "$before"
	# once it can be written to, nothing is left to do
	mount -o remount,rw "$LOWQ_STATE_DIR"
	must reset --all
	must host reset
	expect "queue and routes after a second reset" "$(queue; ipn -d route show)" = "$before"
	no_records
}
declare_test read_only "" "a folder of records that has become read-only: reset undoes all the same"

record_lost()
{
	must ldcp lq0 --rate 1gbit --rtt 1ms
	rm "$LOWQ_STATE_DIR"/*.json
	gives 0 "no record" show lq0
	gives 3 "'lowq-tc -n $ns reset lq0' removes it" show --check
	must fifo lq0 --rate 2gbit
	must reset --all
	expect "the root" "$(queue | grep -o 'qdisc .* root')" = "qdisc noqueue 0: root"
	gives 0 "nothing to undo" reset lq0
}
declare_test record_lost "" "a queue of ours without a record: shown, set again, reset"

record_damaged()
{
	must fifo lq0 --rate 1gbit
	for text in '{' '{}' '{"version": 3, "boot": 7}' '[]' 'null'; do
		echo "${text/7/\"$(</proc/sys/kernel/random/boot_id)\"}" >"$LOWQ_STATE_DIR/records.json"
		gives 1 "damaged" reset lq0
		gives 1 "damaged" fifo lq0 --rate 2gbit
		gives 1 "damaged" host show
		gives 1 "damaged" host reset
	done
	echo '{"version": 99, "boot": "'"$(</proc/sys/kernel/random/boot_id)"'"}' >"$LOWQ_STATE_DIR/records.json"
	gives 1 "of another version" reset --all
	rm "$LOWQ_STATE_DIR/records.json"
	must reset lq0
	# of another boot: nothing of it is left
	echo '{"version": 99, "boot": "x"}' >"$LOWQ_STATE_DIR/records.json"
	gives 0 "nothing to undo" reset lq0
}
declare_test record_damaged "" "a damaged record is reported, not taken for none"

# cookie: of the namespace
cookie() { in_ns a python3 -c 'import socket; print(int.from_bytes(socket.socket().getsockopt(1, 71, 8), "little"))'; }

# What lowq 0.3 has written for: ldcp lq0, over a user's pfifo; host reno --default --route
older_record()
{
	local before boot index

	boot=$(</proc/sys/kernel/random/boot_id)
	ipn addr add 10.71.0.1/24 dev lq0
	ipn route add 10.72.0.0/16 dev lq0
	ipn route add 10.73.0.0/16 via 10.71.0.2
	index=$(ipn -j link show lq0 | jq '.[0].ifindex')
	tcn qdisc add dev lq0 root handle 5: pfifo limit 77
	before=$(queue; ipn -d route show; in_ns a sysctl net.ipv4.tcp_congestion_control; ipn -d -o link show lq0 | grep -o 'gso_max_segs [0-9]*')
	tcn qdisc del dev lq0 root
	tcn qdisc add dev lq0 root handle 10f0: bfifo limit 99999
	if tcn qdisc add dev lq0 clsact; then
		tcn filter add dev lq0 egress protocol all pref 3 matchall classid :1
	fi
	ipn link set lq0 gso_max_segs 3
	in_ns a sysctl -qw net.ipv4.tcp_congestion_control=reno
	ipn route replace 10.72.0.0/16 dev lq0 congctl reno initcwnd 9
	ipn route replace 10.73.0.0/16 via 10.71.0.2 congctl reno initcwnd 9
	mkdir -m 700 "$LOWQ_STATE_DIR"
	cat >"$LOWQ_STATE_DIR/device-$(cookie)-$index.json" <<-END
		{"version": 2, "boot": "$boot", "record": {"cookie": $(cookie), "inode": $(stat -Lc %i "/run/netns/$ns"), "namespace": "$ns",
		"ifindex": $index, "name": "lq0", "address": "", "permanent": "", "kind": "veth", "profile": "ldcp", "complete": true,
		"report": {"params": {}, "explanation": [], "could_not_honour": [], "notes": []}, "steps": [
		{"aspect": "gso_max_segs", "target": "lq0", "commands": [[["ip", "link", "set", "dev", "lq0", "gso_max_segs", "3"], false, ""]],
		 "before": {"state": 65535, "commands": []}, "earlier": null, "after": 3, "state": "done", "lost": "", "users": {}, "control": ""},
		{"aspect": "queue", "target": "lq0", "commands": [[["tc", "qdisc", "del", "dev", "lq0", "root"], false, ""],
		  [["tc", "qdisc", "add", "dev", "lq0", "root", "handle", "10f0:", "bfifo", "limit", "99999"], false, ""]],
		 "before": {"state": {"txqlen": 1000}, "commands": [[["tc", "qdisc", "add", "dev", "lq0", "root", "handle", "5:", "pfifo", "limit", "77"], false, ""]]},
		 "earlier": null, "after": {}, "state": "done", "lost": "", "users": {}, "control": ""},
		{"aspect": "clsact", "target": "lq0", "commands": [[["tc", "qdisc", "add", "dev", "lq0", "clsact"], false, ""],
		  [["tc", "filter", "add", "dev", "lq0", "egress", "protocol", "all", "pref", "3", "matchall", "classid", ":1"], false, ""]],
		 "before": {"state": null, "commands": []}, "earlier": null, "after": {}, "state": "done", "lost": "", "users": {}, "control": ""}]}}
	END
	cat >"$LOWQ_STATE_DIR/host.json" <<-END
		{"version": 2, "boot": "$boot", "record": {"own": {"$(cookie)": {"inode": $(stat -Lc %i "/run/netns/$ns"), "name": "$ns", "controls": ["reno"]}},
		"shared": [], "steps": {"$(cookie)": [
		{"aspect": "sysctl", "target": "net.ipv4.tcp_congestion_control", "commands": [[["sysctl", "-q", "-w", "net.ipv4.tcp_congestion_control=reno"], false, ""]],
		 "before": {"state": "$(sed -n 's/.*tcp_congestion_control = //p' <<<"$before")", "commands": []}, "earlier": null, "after": "reno", "state": "done", "lost": "", "users": {}, "control": "reno"},
		{"aspect": "route", "target": "-4 10.72.0.0/16", "commands": [[["ip", "route", "replace", "10.72.0.0/16", "dev", "lq0", "congctl", "reno"], false, ""]],
		 "before": {"state": ["10.72.0.0/16 dev #$index proto boot scope link"], "commands": []}, "earlier": null,
		 "after": ["10.72.0.0/16 dev #$index proto boot scope link initcwnd 9 congctl reno"], "state": "done", "lost": "", "users": {}, "control": "reno"},
		{"aspect": "route", "target": "-4 10.73.0.0/16", "commands": [[["ip", "route", "replace", "10.73.0.0/16", "via", "10.71.0.2"], false, ""]],
		 "before": {"state": ["10.73.0.0/16 via 10.71.0.2 dev #$index"], "commands": []}, "earlier": null,
		 "after": ["10.73.0.0/16 via 10.71.0.2 dev #$index initcwnd 9 congctl reno"], "state": "done", "lost": "", "users": {}, "control": "reno"}]}}}
	END
	gives 0 "net.ipv4.tcp_congestion_control" host show --check
	must reset --all
	must host reset
	expect "what was there before" "$(queue; ipn -d route show; in_ns a sysctl net.ipv4.tcp_congestion_control; ipn -d -o link show lq0 |
		grep -o 'gso_max_segs [0-9]*')" = "$before"
	! tcn qdisc show dev lq0 | grep clsact || fail "its clsact is left"
	no_records
}
declare_test older_record "" "records of lowq 0.3, over a user's queue, with routes as ip shows them: reset puts back"

folder_not_ours()
{
	mkdir -m 777 "$LOWQ_STATE_DIR"
	gives 2 "another user can write" fifo lq0 --rate 1gbit
	chmod 755 "$LOWQ_STATE_DIR"
	must fifo lq0 --rate 1gbit
	must reset lq0
	export LOWQ_STATE_DIR=$TMP/st-a-te-1-2
	must fifo lq0 --rate 1gbit
	gives 0 "lq0: fifo" show
	must reset --all
	no_records
	must fifo lq0 --rate 1gbit
	chmod 666 "$LOWQ_STATE_DIR"/records.json
	gives 1 "can be written by another user: not trusted" reset lq0
	chmod 600 "$LOWQ_STATE_DIR"/records.json
	chown 65534 "$LOWQ_STATE_DIR"/records.json
	gives 1 "can be written by another user: not trusted" reset lq0
	chown 0 "$LOWQ_STATE_DIR"/records.json
	must reset lq0
	export LOWQ_STATE_DIR=/proc/nowhere
	gives 2 "cannot make /proc/nowhere" fifo lq0 --rate 1gbit
	export LOWQ_STATE_DIR=/sys/kernel
	gives 2 "cannot write to /sys/kernel" fifo lq0 --rate 1gbit
}
declare_test folder_not_ours "" "records: refused where others can write, dashes in the name, a folder that cannot be made or written"

all_goes_on()
{
	local before

	ipn link add name lqm numtxqueues 2 type veth peer name lqn
	ipn link set lqm up
	before=$(queue lqm)
	must fifo lq0 --rate 1gbit --gso-segs 2
	must fifo lqm --rate 1gbit
	ipn link set lq0 gso_max_segs 7
	lt reset --all --json
	expect "status" "$rc" -eq 1
	[[ $err == *"gso_max_segs of lq0 was changed by someone else since: it is '7' now, was '2'; left alone"* ]] || fail "said: $err"
	expect "JSON documents" "$(jq -s length <<<"$out")" -eq 1
	expect "the other device" "$(queue lqm)" = "$before"
	must reset lq0 --force
	no_records
	# a queue of someone else's in its place is not lowq-tc's any more
	must fifo lq0 --rate 1gbit
	tcn qdisc del dev lq0 root
	tcn qdisc add dev lq0 root handle 5: pfifo limit 55
	gives 3 "its root is 'pfifo' now" show --check
	gives 0 "someone else's now, 'pfifo': left alone" reset lq0
	no_records
	tcn qdisc del dev lq0 root
	# two devices of one name that are gone
	for _ in 1 2; do
		must fifo lq0 --rate 1gbit
		ipn link del lq0
		device
	done
	ipn link del lq0
	gives 0 "lq0 is gone, and its queue with it" reset lq0
	no_records
}
declare_test all_goes_on "" "reset --all goes on after what it leaves alone; what someone else has replaced is theirs"

moved()
{
	# into a pod, and back
	must fifo lq0 --rate 1gbit --gso-segs 2
	ip netns add "${NSP}pod"
	ipn link set lq0 netns "${NSP}pod"
	ip -n "${NSP}pod" link set lq0 up
	gives 0 "nothing" show
	ip -n "${NSP}pod" link set lq0 netns "$ns"
	ipn link set lq0 up
	must fifo lq0 --rate 1gbit
	must reset lq0
	expect "gso_max_segs" "$(ipn -d -o link show lq0 | grep -o 'gso_max_segs [0-9]*')" = "gso_max_segs 65535"
	expect "the queue" "$(queue | grep -o 'qdisc .* root')" = "qdisc noqueue 0: root"
}
declare_test moved "" "a device that is moved into a pod and back"

segments()
{
	local before

	before=$(ipn -d -o link show lq0 | grep -o 'gso_max_segs [0-9]*')
	python3 - "$LOWQ_TC" "$ns" <<-'END' || fail "killing it"
		import os, signal, sys
		sys.path.insert(0, os.path.dirname(sys.argv[1]))
		from lowq_tc import cli, execute
		real = execute.run
		def run(part, space, lock):
		    real(part, space, lock)
		    os.kill(os.getpid(), signal.SIGKILL)
		if os.fork() == 0:
		    execute.run = run
		    cli.main(["fifo", "lq0", "-n", sys.argv[2], "--rate", "1gbit", "--gso-segs", "1", "--no-rehearsal"])
		os.wait()
	END
	expect "gso_max_segs after the kill" "$(ipn -d -o link show lq0 | grep -o 'gso_max_segs [0-9]*')" = "gso_max_segs 1"
	must fifo lq0 --rate 1gbit --gso-segs 1
	must reset lq0
	expect "after kill, set, reset" "$(ipn -d -o link show lq0 | grep -o 'gso_max_segs [0-9]*')" = "$before"
}
declare_test segments "" "gso_max_segs after kill, set and reset is as before"

many_queues()
{
	local start ms

	long
	ipn link add name lqm numtxqueues 128 numrxqueues 128 type veth peer name lqn numtxqueues 128 numrxqueues 128
	ipn link set lqm up
	start=$(date +%s%N)
	must dctcp lqm --rate 10gbit --rtt 100us --no-shape --aqm fq_codel
	ms=$((($(date +%s%N) - start) / 1000000))
	echo "# 128 queues set in $ms ms" >&3
	expect "milliseconds to set 128 queues" "$ms" -lt 5000	# lab.sh: by the real clock
	must show lqm --json
	expect "queues shown" "$(jq '.[0].queues | length' <<<"$out")" -eq 129
	expect "nothing differs" "$(jq -c '.[0].differs' <<<"$out")" = "[]"
	must reset lqm
}
declare_test many_queues "" "128 queues: set in under 5 s, shown, reset"

host_two_controls()
{
	local c

	[[ $(stat -c %a /proc/sys/net/ipv4/tcp_allowed_congestion_control) == 644 ]] || skip 'not in the first namespace'
	for c in dctcp dctcp_ref; do
		[[ " $(sysctl -n net.ipv4.tcp_available_congestion_control) " == *" $c "* ]] ||
			modprobe -q "tcp_$c" || skip "no $c"
		must host "$c"
	done
	[[ $(sysctl -n "$allowed_key") == *dctcp*dctcp* ]] || fail "allowed are: $(sysctl -n "$allowed_key")"
	must host reset
	expect "allowed after reset" "$(sysctl -n "$allowed_key")" = "$allowed"
	# allowed by a namespace that is gone: the next reset anywhere takes it back
	must host dctcp
	ip netns del "$ns"
	"$LOWQ_TC" host reset >/dev/null || fail "host reset"
	expect "allowed after the namespace is gone" "$(sysctl -n "$allowed_key")" = "$allowed"
	no_records
}
declare_test host_two_controls "" "two controls allowed, and one by a namespace that is gone: all put back"

host_prefixes()
{
	local before

	ipn addr add 10.71.0.1/24 dev lq0
	ipn route add default via 10.71.0.2
	ipn route add 10.72.0.0/16 via 10.71.0.2
	before=$(ipn route show)
	must host reno --route 10.72/16 --route 0.0.0.0/0 --route default --route 10.9/16
	must host cubic --route 10.72.0.0/16 2>/dev/null || must host reno --route 10.72.0.0/16 --initcwnd 9
	must host reset
	expect "routes after reset" "$(ipn route show)" = "$before"
	gives 2 "the prefix is 10.72.0.0/16" host reno --route 10.72.0.1/16 --dry-run
}
declare_test host_prefixes "" "a prefix written in two ways is one route; bits beyond its length are refused"

# --- input -----------------------------------------------------------------------

numbers()
{
	gives 0 "probability 0.99999999" red lq0 --rate 1gbit --min 10 --max 30 --probability 1.0 --dry-run -q
	must fifo lq0 --rate 10000000kbit --dry-run -q
	must fifo lq0 --rate 1600gbit --dry-run -q
	gives 2 "out of range" fifo lq0 --rate 1601gbit --dry-run
	gives 2 "whole microseconds" prague lq0 --rate 100mbit --step 500ns --dry-run
	gives 2 "tc sets at most 274 s" fifo lq0 --rate 8kbit --shape-burst 5mb --dry-run
	gives 0 "less than one packet" dctcp lq0 --rate 1gbit --k 1b --dry-run
}
declare_test numbers "" "probability 1.0, rates up to 1600gbit, steps below 1 us, bursts that tc cannot hold, K below a packet"

# What a name of 15 bytes may hold: all but white space, "/" and ":"
# shellcheck disable=SC1003,SC2016
readonly odd_names=('a;b' 'a$(x)' '`x`' "a'b" 'a"b' 'a*b' 'a?b' 'a[0]' 'a{1,2}' 'a&b' 'a|b' 'a<b' 'a>b' 'a,b=c' 'a!b' 'a\b'
	'a(b)' 'a#b' 'a\' '"a' "'a" 'a%20b' 'a@b' 'a^b' 'ä' '~' '...' 'root' 'dev' '--' '-x')

names()
{
	local name done=0 least=23

	[[ ${FULL:-} ]] || least=4
	for name in "${odd_names[@]:0:least + 7}"; do
		ipn link add name "$name" numtxqueues 1 type veth peer name peer 2>/dev/null || continue
		done=$((done + 1))
		must fifo --rate 1gbit -q --no-rehearsal -- "$name"
		expect "the root of '$name'" "$(tcn -j qdisc show | jq -r --arg n "$name" '.[] | select(.dev == $n and .root).kind')" = htb
		must reset -q -- "$name"
		must fifo --rate 1gbit --dry-run -q -- "$name"
		sh -e <<<"$out" || fail "as printed: $out"
		ipn link del dev "$name"
	done
	expect "names tried" "$done" -ge "$least"
	no_records
}
declare_test names "" "every legal name of a device, and commands that run as printed with it"

altname()
{
	ipn link property add dev lq0 altname an-alternative-name || skip 'no altnames'
	must fifo an-alternative-name --rate 1gbit
	expect "root" "$(tcn -j qdisc show dev lq0 | jq -r '.[] | select(.root).kind')" = htb
	gives 0 "lq0: fifo" show an-alternative-name
	must reset an-alternative-name
	no_records
}
declare_test altname "" "a device by its altname"

plain_user()
{
	local status word

	# no /usr/sbin in PATH, no tc, no jq
	mkdir -p "$TMP/bin"
	for word in python3 env; do ln -sf "$(command -v "$word")" "$TMP/bin/$word"; done
	PATH=$TMP/bin "$LOWQ_TC" --help | grep -q 'ACTION --help shows its options' || fail "--help"
	expect "version" "$(PATH=$TMP/bin "$LOWQ_TC" --version)" = \
		"lowq-tc $(sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' "$LOWQ_ROOT/dkms.conf")"
	# tc and ip are found all the same
	PATH=$TMP/bin gives 0 "qdisc add dev lq0 root" fifo lq0 --rate 1gbit --dry-run -q
	setpriv --reuid 65534 --regid 65534 --clear-groups env PATH="$TMP/bin" "$LOWQ_TC" show >"$TMP/shown" 2>&1 ||
		fail "show as a user: $(<"$TMP/shown")"
	# the records are root's: that this user sees none does not mean that there are none
	must fifo lq0 --rate 1gbit
	chmod a+x "$TMP"
	while read -r status word; do
		# shellcheck disable=SC2086 # words
		in_ns a setpriv --reuid 65534 --regid 65534 --clear-groups "$LOWQ_TC" $word >"$TMP/shown" 2>&1 </dev/null
		expect "status of $word as a user" "$?" -eq "$status"
		grep -q "the records in $LOWQ_STATE_DIR are for root to read" "$TMP/shown" || fail "$word: $(<"$TMP/shown")"
		! grep -qE 'qdisc del|no record of it|nothing changed' "$TMP/shown" || fail "$word: $(<"$TMP/shown")"
	done <<-'END'
		0 show
		2 show --check
		2 reset lq0 --dry-run
		2 host reset --dry-run
		2 apply /nowhere.toml --dry-run
		0 host show
	END
	setpriv --reuid 65534 --regid 65534 --clear-groups "$LOWQ_TC" reset lo >"$TMP/shown" 2>&1
	expect "status of reset as a user" "$?" -eq 2
	grep -q 'needs the right to administer the network' "$TMP/shown" || fail "says: $(<"$TMP/shown")"
}
output()
{
	mknod "$TMP/full" c 1 7	# as /dev/full
	"$LOWQ_TC" list >"$TMP/full" 2>"$TMP/err"
	expect "status where nothing can be written" "$?" -eq 1
	expect "what it says" "$(<"$TMP/err")" = "lowq-tc: No space left on device"
	"$LOWQ_TC" -n "$ns" fifo lq0 --rate 1gbit >&- 2>"$TMP/err"
	expect "status without standard output" "$?$(<"$TMP/err")" = 0
}
declare_test output "" "standard output that is full or closed: one line, the status that the manual says"

declare_test plain_user "" "--help, --version, show and dry runs for a user, with no tc, no jq and no /usr/sbin in PATH"

completes()
{
	local TIMEFORMAT='%3U %3S' word

	"$LOWQ_TC" --help >/dev/null	# so that it is compiled
	expect "seconds of CPU for --help" "$({ time "$LOWQ_TC" --help >/dev/null; } 2>&1 | awk '{ print $1 + $2 }')" -lt 0.15
	while read -r word; do
		# shellcheck disable=SC2086	# words
		completed a "$LOWQ_TC" ${word%%:*}
		expect "completion of ${word%:*}" "$(<"$TMP/completed")" = "${word#*: } "
	done <<-'END'
		dc: dctcp
		prague lq0 --aqm fq: fq_codel
		prague lq0 --va: --varying
		segregate lq0 --dscp af32: af32
		host hp: hpccpp
		host ren: reno
		reset --al: --all
	END
	completed a "$LOWQ_TC" prague lq0 --aqm ""
	expect "choices" "$(paste -sd' ' "$TMP/completed")" = "dualpi2 fq_codel"
	completed a "$LOWQ_TC" -n "$ns"
	expect "namespaces" "$(<"$TMP/completed")" = "$ns "
	# devices with names that a shell would run, and one such word on the command line
	# shellcheck disable=SC2016
	for word in '$(>ran)' 'a[$(>ran)]' '`>ran`'; do
		ipn link add name "$word" type dummy || skip 'no dummy devices'
	done
	# shellcheck disable=SC2016
	(cd "$TMP" && completed a "$LOWQ_TC" show '$(>ran)' 'a[$(>ran)]' "")
	[ ! -e "$TMP/ran" ] || fail "completion runs what is in a name"
	# what it inserts is the name again for the shell
	# shellcheck disable=SC2016
	for word in '\$\(\>ran\)' 'a[\$\(\>ran\)]' '\`\>ran\`'; do
		grep -qxF -- "$word" "$TMP/completed" || fail "$word: $(<"$TMP/completed")"
	done
}
declare_test completes "" "help within 0.15 s; completion from the same parser, quoted for the shell; it evaluates nothing"

teardown()
{
	umount "$TMP/state" 2>/dev/null
	labnet --remove "$ns"
	rm -rf "$TMP/state"
}

exec 3>&1
run_tests "$@"
