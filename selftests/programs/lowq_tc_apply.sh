#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# lowq-tc apply: what files say is set, again nothing, and what they no longer name is reset; and
# lowq-tc --print: thresholds in the words of other switches.
#
# FULL=1 kills apply at every position.

# shellcheck source=lowq_tc_lib.sh
. "$(dirname "$0")/lowq_tc_lib.sh"
readonly crash=$SELFTESTS/programs/lowq_tc_crash.py

setup()
{
	rm -rf "$LOWQ_STATE_DIR" "$TMP/conf"
	mkdir "$TMP/conf"
	ip netns add "$ns"
	device
	ipn addr add 10.71.0.1/24 dev lq0
}

# says NAME [WORDS...]: what NAME.conf says
says()
{
	local key=LOWQ_TC

	[[ $1 != host ]] || key=LOWQ_HOST
	echo "# ${*:2}" >"$TMP/conf/$1.conf"
	(($# == 1)) || echo "$key=\"${*:2}\"" >>"$TMP/conf/$1.conf"
}

# applied STATUS LAST [ARGUMENTS...]: the exit status and the last line of apply, of the folder by default
applied()
{
	local status=$1 last=$2 said

	shift 2
	(($#)) || set -- "$TMP/conf"
	lt apply "$@"
	[[ $rc == "$status" ]] || fail "lowq-tc apply $*: status $rc, expected $status: $err$out"
	said=$out$err
	[[ ${said##*$'\n'} == "$last" ]] || fail "lowq-tc apply $*: the last line is not '$last': $out$err"
}

twice()
{
	local before shown kept

	picture before
	says lq0 fifo --rate 1gbit --gso-segs 2
	says host reno --default --route 10.71.0.0/24 --initcwnd 20
	echo 'LOWQ_TC="half a file' >"$TMP/conf/.#lq0.conf"	# an editor's
	applied 4 "would change: host, lq0" "$TMP/conf" --dry-run
	same_picture "$before" "after a dry run"
	applied 4 "changed: host, lq0"
	picture shown
	kept=$(stat -c %Y%y "$LOWQ_STATE_DIR"/*.json)
	[[ $shown == *"htb 10f0:"* && $shown == *"gso_max_segs 2"* && $shown == *"initcwnd 20"* ]] || fail "not set: $shown"
	applied 0 "nothing to change"
	applied 0 "nothing to change" "$TMP/conf/lq0.conf" "$TMP/conf/host.conf"
	applied 0 "nothing to change" "$TMP/conf" --dry-run
	lt apply "$TMP/conf" --json || fail "apply --json: $err"
	expect "status in JSON" "$(jq -r .status <<<"$out")" = unchanged
	same_picture "$shown" "after all"
	expect "records after all" "$(stat -c %Y%y "$LOWQ_STATE_DIR"/*.json)" = "$kept"
	must show --check
	must host show --check
	must reset --all
	must host reset
	same_picture "$before" "after reset"
}
declare_test twice "" "apply sets what files say; a second call changes neither the machine nor a record"

unnamed()
{
	local before control

	control=$(in_ns a sysctl -n net.ipv4.tcp_congestion_control)
	picture before
	says lq0 fifo --rate 1gbit
	says lq1 fifo --rate 2gbit
	says host reno --default --route 10.71.0.0/24 --route 10.9/16 --allow
	ipn route add default via 10.71.0.2
	applied 4 "changed: host, lq0, lq1"
	# one route less, no default
	says host reno --route 10.9/16
	applied 4 "changed: host" "$TMP/conf/host.conf"
	expect "routes with a control" "$(ipn route show | grep congctl | cut -d' ' -f1)" = 10.9.0.0/16
	expect "default control" "$(in_ns a sysctl -n net.ipv4.tcp_congestion_control)" = "$control"
	# a single file resets nothing else
	rm "$TMP/conf/lq1.conf"
	applied 0 "nothing to change" "$TMP/conf/lq0.conf"
	expect "the other device" "$(tcn qdisc show dev lq1 | grep -c 10f0:)" -eq 2
	# the folder does; a file that says nothing resets its own
	applied 4 "changed: lq1"
	says lq0
	applied 4 "changed: lq0" "$TMP/conf/lq0.conf"
	rm "$TMP/conf"/*
	applied 4 "changed: host"
	applied 0 "nothing to change"
	ipn route del default via 10.71.0.2
	same_picture "$before" "at the end"
	no_records
}
declare_test unnamed "" "what a file no longer names is reset: a route, a control, a device, all"

drift()
{
	local shown

	says lq0 fifo --rate 1gbit
	says host reno --default
	applied 4 "changed: host, lq0"
	picture shown
	tcn qdisc del dev lq0 root
	applied 4 "changed: lq0"
	in_ns a sysctl -qw net.ipv4.tcp_congestion_control=cubic
	applied 4 "changed: host"
	same_picture "$shown" "at the end"
	# as the timer calls it: a line for the journal if something was changed
	tcn qdisc del dev lq0 root
	applied 4 "changed: lq0" "$TMP/conf" -q
	expect "lines" "$(wc -l <<<"$out$err")" -eq 1
	applied 0 "" "$TMP/conf" -q
	# the thresholds are of another MTU
	unshare -n tc qdisc add dev lo root red limit 100000 min 3000 max 3000 avpkt 1500 burst 2 bandwidth 1gbit ecn || skip 'no red'
	says lq0 dctcp --rate 1gbit --rtt 1ms
	applied 4 "changed: lq0"
	ipn link set lq0 mtu 9000
	applied 4 "changed: lq0"
	applied 0 "nothing to change"
	must show --check
}
declare_test drift "" "what someone else has changed, or a new MTU, is set again"

by_hand()
{
	says lq0 fifo --rate 1gbit
	says host reno --default
	must fifo lq0 --rate 1gbit
	must host reno --default --route 10.71.0.0/24
	applied 4 "changed: host"
	[[ $(ipn route show) != *congctl* ]] || fail "the route has still a control"
	applied 0 "nothing to change"
}
declare_test by_hand "" "what was set by hand as files say stays; the rest is reset"

diffs()
{
	says lq0 fifo --rate 1gbit
	says host reno --default
	applied 4 "changed: host, lq0"
	says lq0 fifo --rate 2gbit
	says host reno
	applied 4 "would change: host, lq0" "$TMP/conf" --dry-run --diff
	[[ $out == *$'\n'"-tc -n $ns class add dev lq0 "*"rate 1gbit"*$'\n'"+tc -n $ns class add dev lq0 "*"rate 2gbit"* ]] || fail "diff: $out"
	[[ $out == *"-# sysctl net.ipv4.tcp_congestion_control: reno"* ]] || fail "diff of the host: $out"
	must fifo lq0 --rate 2gbit
	applied 4 "would change: host" "$TMP/conf" --dry-run --diff
	[[ $out != *lq0* ]] || fail "diff of what is set: $out"
}
declare_test diffs "" "--dry-run --diff shows what is there and what would be, and nothing of what is right"

# refuses PART [ARGUMENTS...]: status 2, in one line; the machine is as $before
refuses()
{
	(($# > 1)) || set -- "$1" "$TMP/conf"
	refused "$1" apply "${@:2}"
	same_picture "$before" "after apply ${*:2}"
}

bad_files()
{
	local before

	picture before
	says lq0 fifo --rate 1gbit
	says host reno --default
	while IFS='|' read -r part line; do
		printf '\n%s\n' "$line" >"$TMP/conf/host.conf"
		refuses "host.conf:2: $part"
	done <<-'END'
		--rate 1: a rate needs a unit|LOWQ_HOST="hpccpp --rate 1"
		--rtt does not go with|LOWQ_HOST="reno --rtt 1us"
		No closing quotation|LOWQ_HOST="reno
		not LOWQ_HOST="..."|LOWQ_TC="reno"
		not LOWQ_HOST="..."|reno
		host: what is 'reno'|LOWQ_HOST="show reno"
		--help is not for files|LOWQ_HOST="reno --help"
		--netns is not for files|LOWQ_HOST="reno -n x"
		unknown option|LOWQ_HOST="reno --nothing"
		no congestion control|LOWQ_HOST="nothing"
		--route 10.0.0.1/8: has bits|LOWQ_HOST="reno --route 10.0.0.1/8"
	END
	printf 'LOWQ_HOST=reno\nLOWQ_HOST=cubic\n' >"$TMP/conf/host.conf"
	refuses "host.conf:2: LOWQ_HOST again"
	says host
	echo 'LOWQ_TC="show"' >"$TMP/conf/lq0.conf"
	refuses "lq0.conf:1: unknown profile 'show'"
	echo 'LOWQ_TC="dctcp --rtt 1ms"' >"$TMP/conf/lq0.conf"
	refuses "lq0.conf:1: lq0 has no line rate of its own"
	says lq9 fifo --rate 1gbit
	refuses "lq9.conf:2: no device 'lq9'" "$TMP/conf/lq9.conf"
	rm "$TMP/conf/lq9.conf"
	refuses "lq0.conf:1: lq0 has no line rate of its own"
	says lq0 fifo --rate 1gbit
	refuses "No such file" "$TMP/conf/none.conf"
	refuses "No such file" "$TMP/none"
	refuses "not DEVICE.conf" /dev/null
	refuses "is about the same" "$TMP/conf/lq0.conf" "$TMP/conf/lq0.conf"
	if ipn link property add dev lq0 altname another-name; then
		picture before
		says another-name fifo --rate 2gbit
		refuses "is about lq0, too"
		rm "$TMP/conf/another-name.conf"
	fi
	refuses "--all does not go with 'apply'" "$TMP/conf" --all
	no_records
}
declare_test bad_files "" "errors name file and line, in one line, and nothing is changed"

one_fails()
{
	says lq0 fifo --rate 1gbit
	says lq1 fifo --rate 1gbit
	# shellcheck disable=SC2016 # the wrapper expands
	wrapped tc 'case " $* " in *" class add dev lq0 "*) echo made to fail >&2; exit 1 ;; esac'
	PATH=$TMP/wrapped:$PATH lt apply "$TMP/conf" --no-rehearsal
	expect "status" "$rc" -eq 1
	[[ $err == *"lq0.conf:2: "*"made to fail; rolled back"* ]] || fail "said: $err"
	expect "last line" "${out##*$'\n'}" = "changed: lq1; failed: lq0"
	applied 4 "changed: lq0"
}
declare_test one_fails "" "a command fails: exit status 1, that device is rolled back, the others are set"

missing()
{
	local before nothing="no device 'lq9' in network namespace '$ns'"

	says lq0 fifo --rate 1gbit
	says lq9 fifo --rate 1gbit
	says host reno --default
	picture before
	applied 1 "would change: host, lq0; missing: lq9" "$TMP/conf" --dry-run --diff
	[[ $out == *"+tc -n $ns class add dev lq0 "* && $err == "lowq-tc: $TMP/conf/lq9.conf:2: $nothing"$'\n'* ]] || fail "diff: $err$out"
	same_picture "$before" "after a dry run"
	gives 1 "lowq-tc: $TMP/conf/lq9.conf:2: $nothing" apply "$TMP/conf"
	expect "last line" "${out##*$'\n'}" = "changed: host, lq0; missing: lq9"
	must show lq0 --check
	gives 1 "lowq-tc: $TMP/conf/lq9.conf:2: $nothing" apply "$TMP/conf"
	expect "last line, again" "${out##*$'\n'}" = "nothing to change; missing: lq9"
	gives 1 "$nothing" apply "$TMP/conf" --json
	expect "JSON" "$(jq -c '[.status, .missing, (.errors | length), (.results | map(.status))]' <<<"$out")" = \
		'["failed",["lq9"],1,["unchanged","unchanged"]]'
	ipn link add name lq9 type veth peer name lq8
	ipn link set lq9 up
	applied 4 "changed: lq9"
	# the other errors are found before anything is done, with a device missing or not
	ipn link del lq9
	says lq1 fifo
	gives 2 "lq1 has no line rate" apply "$TMP/conf"
	[[ ! $out ]] || fail "another error: $err$out"
}
declare_test missing "" "a missing device is named and the others are set; exit status and last line say so"

# toml: what lowq.toml says, from standard input
toml() { cat >"$TMP/conf/lowq.toml"; }

one_file()
{
	local before shown

	ipn route add default via 10.71.0.2
	picture before
	# a control as default and another by route; a pattern, beside a device by name, one by its address
	toml <<-END
		[[host]]
		control = "cubic"
		default = true

		[[host]]
		control = "reno"
		route = ["10.8.0.0/16", "fd08::/16"]
		initcwnd = 20

		[[queue]]
		device = "lq*"
		profile = "fifo"
		rate = "1gbit"
		limit = 77

		[[queue]]
		device = "lq1"
		profile = "fifo"
		no-shape = true
	END
	# a route, and a speed, that may come: the rest is set meanwhile
	ipn link add wan0 type veth peer name wan1
	echo $'[[queue]]\ndevice = "wan0"\nprofile = "dctcp"\nrtt = "100us"\nno-shape = true' >"$TMP/conf/wan0.toml"
	gives 1 "lowq.toml: host 2: --route fd08::/16: there is no way to it" apply "$TMP/conf"
	[[ $err == *"wan0.toml: queue 1: wan0 reports no link speed"* && $out == *"changed: lq0, lq1; not ready: wan0, host" ]] || fail "says $err$out"
	lt apply "$TMP/conf" --json
	expect "not ready" "$rc$(jq -c '[.status, .not_ready, .missing]' <<<"$out")" = '1["failed",["wan0","host"],[]]'
	must show lq0 lq1 --check
	[[ $(tcn qdisc show) == *"limit 77p"* && $(ipn route) != *congctl* ]] || fail "not the rest, and only that, is set"
	ipn link del wan0
	rm "$TMP/conf/wan0.toml"
	sed -i 's/, "fd08::.16"//' "$TMP/conf/lowq.toml"
	applied 4 "changed: host"
	picture shown
	[[ $shown == *"pfifo 10f1: dev lq0 "*"limit 77p"* && $shown == *"pfifo 10f0: dev lq1 root"* &&
		$shown == *"10.8.0.0/16 "*"initcwnd 20 congctl reno"* && $shown == *$'\n'cubic$'\n'* ]] || fail "not set: $shown"
	applied 0 "nothing to change"
	must show --check
	must host show --check
	# what is saved says the same
	must save "$TMP/saved/lowq.toml"
	expect "status of a second save" "$(lt save "$TMP/saved/lowq.toml"; echo "$out")" = "$TMP/saved/lowq.toml: says so already"
	applied 0 "nothing to change" "$TMP/saved"
	sed -i 's/initcwnd = 20/initcwnd = 30/; s/limit = 77/limit = 78/' "$TMP/conf/lowq.toml"
	applied 4 "changed: host, lq0"
	in_ns a "$LOWQ_TC" save --dry-run | grep -q '^initcwnd = "30"' || fail "save --dry-run"
	# by driver and by address
	printf '[[queue]]\nmac = "%s"\nprofile = "fifo"\nrate = "3gbit"\n' "$(ipn -j link show lq1 | jq -r '.[0].address')" >"$TMP/conf/lowq.toml"
	applied 4 "changed: lq0, host, lq1"
	printf '[[queue]]\ndriver = "veth"\nprofile = "fifo"\nrate = "3gbit"\n' >"$TMP/conf/lowq.toml"
	applied 4 "changed: lq0"
	rm "$TMP/conf/lowq.toml"
	applied 4 "changed: lq0, lq1"
	same_picture "$before" "at the end"
	no_records
}
declare_test one_file "" "lowq.toml: several controls, devices by name, pattern, address and driver; save writes what is set"

made_again()
{
	must fifo lq0 --rate 1gbit
	must save "$TMP/saved/lowq.toml"
	ipn link del lq0
	checks 0 show
	device
	checks 3 show
	[[ $out == *"lq0: fifo was set"*"is a new one"* ]] || fail "says $out"
	checks 3 show lq0
	must fifo lq0 --rate 2gbit
	must fifo lq1 --rate 3gbit
	ipn link set lq1 down name lan0 up
	checks 0 show
	# each once, by the name that it has now
	must save "$TMP/saved/lowq.toml"
	expect "devices" "$(sed -n 's/^device = //p' "$TMP/saved/lowq.toml" | paste -sd ' ')" = '"lan0" "lq0"'
	applied 0 "nothing to change" "$TMP/saved"
	must reset --all
	no_records
}
declare_test made_again "" "a device that was removed and made again, or renamed: show tells, and what save writes can be applied"

# Of 200 devices each call reads all at once, and changes them by one tc: not by a program for each, of which the
# time would be most.
many_devices()
{
	local i tool most=${FULL:+1000}

	most=${most:-200}
	for ((i = 0; i < most; i++)); do
		echo "link add d$i numtxqueues 1 type veth peer name e$i"
		echo "link set d$i up"
	done >"$TMP/links"
	ipn -batch "$TMP/links"
	toml <<-END
		[[queue]]
		device = "d*"
		profile = "fifo"
		rate = "1gbit"
		gso-segs = 2
	END
	mkdir -p "$TMP/counting"
	for tool in ip tc; do
		printf '#!/bin/sh\necho %s >>%s/ran\nexec %s "$@"\n' "$tool" "$TMP" "$(command -v "$tool")" >"$TMP/counting/$tool"
		chmod +x "$TMP/counting/$tool"
	done
	PATH=$TMP/counting:$PATH applied 4 "changed: $(eval "printf 'd%d\n' {0..$((most - 1))}" | paste -sd, | sed 's/,/, /g')" "$TMP/conf" -q
	expect "devices that are set" "$(tcn qdisc show | grep -c 'htb 10f0:')" -eq "$most"
	# tc -V, and a batch of each
	expect "programs run" "$(sort "$TMP/ran" | uniq -c | tr -s ' ' | paste -sd,)" = " 1 ip, 2 tc"
	: >"$TMP/ran"
	PATH=$TMP/counting:$PATH applied 0 "" "$TMP/conf" -q
	PATH=$TMP/counting:$PATH must show --check
	expect "programs run where nothing is changed" "$(<"$TMP/ran")" = tc
	: >"$TMP/ran"
	PATH=$TMP/counting:$PATH must reset --all -q
	expect "programs run" "$(sort "$TMP/ran" | uniq -c | tr -s ' ' | paste -sd,)" = " 1 ip, 1 tc"
	expect "devices that are set" "$(tcn qdisc show | grep -c 10f0:)" -eq 0
	no_records
}
declare_test many_devices "" "200 devices, with FULL=1 1,000: read at once, and changed by one tc"

bad_toml()
{
	local before part text

	picture before
	while IFS='|' read -r part text; do
		printf "%b\n" "$text" >"$TMP/conf/lowq.toml"
		refuses "lowq.toml: $part"
	done <<-'END'
		Expected ']]'|[[host
		Expected|x
		'x' is neither|x = 1
		'host' is neither|host = 1
		host 1: not a table|host = [1]
		host 1: needs control|[[host]]\ndefault = true
		host 1: 'show' is not a control|[[host]]\ncontrol = "show"
		host 1: unknown option 'defualt'|[[host]]\ncontrol = "reno"\ndefualt = true
		host 1: 'default' cannot be 'yes'|[[host]]\ncontrol = "reno"\ndefault = "yes"
		host 1: --netns is not for files|[[host]]\ncontrol = "reno"\nnetns = "x"
		host 2: |[[host]]\ncontrol = "reno"\ndefault = true\n[[host]]\ncontrol = "reno"
		queue 1: needs one of device, mac, driver|[[queue]]\nprofile = "fifo"
		queue 1: needs one of device, mac, driver|[[queue]]\ndevice = "a"\nmac = "b"\nprofile = "fifo"
		queue 1: needs profile|[[queue]]\ndevice = "lq0"
		queue 1: unknown profile 'x'|[[queue]]\ndevice = "lq0"\nprofile = "x"
		queue 1: --rate 1: a rate needs a unit|[[queue]]\ndevice = "lq0"\nprofile = "fifo"\nrate = 1
		queue 1: --rtt does not go with|[[queue]]\ndevice = "lq0"\nprofile = "fifo"\nrtt = "1ms"
		queue 2: |[[queue]]\ndevice = "lq0"\nprofile = "fifo"\nrate = "1gbit"\n[[queue]]\ndevice = "lq0"\nprofile = "fifo"\nrate = "2gbit"
		queue 2: |[[queue]]\ndevice = "lq*"\nprofile = "fifo"\nrate = "1gbit"\n[[queue]]\ndevice = "?q0"\nprofile = "fifo"\nrate = "2gbit"
	END
	# two controls as the default, and two files about one device
	printf '[[host]]\ncontrol = "reno"\ndefault = true\n[[host]]\ncontrol = "cubic"\ndefault = true\n' >"$TMP/conf/lowq.toml"
	refuses "reno and cubic cannot both be the default"
	printf '[[queue]]\ndevice = "lq0"\nprofile = "fifo"\nrate = "1gbit"\n' >"$TMP/conf/lowq.toml"
	says lq0 fifo --rate 2gbit
	refuses "is about the same"
	rm "$TMP/conf/lq0.conf"
	says host reno
	printf '[[host]]\ncontrol = "cubic"\n' >"$TMP/conf/lowq.toml"
	refuses "is about the same"
	no_records
}
declare_test bad_toml "" "lowq.toml: what is wrong is named with its place, in one line, and nothing is changed"

# booted STATUS PART ARGUMENTS...: as gives, with an /etc of our own, and a systemctl that only makes links
booted()
{
	# shellcheck disable=SC2016
	in_ns a unshare -m bash -c 'mount --bind "$1" /etc && shift && exec "$@"' - "$TMP/etc" env PATH="$TMP/boot-bin:$PATH" "$LOWQ_TC" "${@:3}" >"$TMP/out" 2>"$TMP/err"
	rc=$?
	out=$(<"$TMP/out") err=$(<"$TMP/err")
	[[ $rc == "$1" && $err$out == *"$2"* ]] || fail "lowq-tc ${*:3}: $rc, not $1, or not '$2': $err$out"
}

# restarted: as after a boot: nothing is set, and the records are of another one
restarted()
{
	tcn qdisc del dev lq0 root
	ipn route replace 10.71.0.0/24 dev lq0 scope link src 10.71.0.1 proto kernel
	sed -i 's/"boot": "[^"]*"/"boot": "another"/' "$LOWQ_STATE_DIR/records.json"
}

at_boot()
{
	local link=$TMP/etc/systemd/system/multi-user.target.wants/lowq-tc.service

	unshare -m true || skip 'no mount namespaces'
	mkdir -p "${link%/*}" "$TMP/boot-bin"
	cat >"$TMP/boot-bin/systemctl" <<-'END'
		#!/bin/sh
		link=/etc/systemd/system/multi-user.target.wants/$2
		case $1 in enable) ln -s /nowhere "$link" ;; disable) rm "$link" ;; esac
	END
	chmod +x "$TMP/boot-bin/systemctl"
	booted 2 "'lowq-tc save' writes what is set now" enable
	booted 2 "nothing to save" save
	booted 0 "" fifo lq0 --rate 1gbit
	booted 0 "" host reno --route 10.71.0.0/24
	booted 0 "lq0: fifo (until reboot)" show
	booted 0 "written" save
	booted 0 "lq0: fifo (until reboot)" show
	# the machine starts before it is enabled: nothing is set, and nothing is lost
	restarted
	booted 0 "nothing set" show
	booted 0 "systemctl enable lowq-tc.service" enable --dry-run -q
	[[ ! -L $link ]] || fail "a dry run enables"
	booted 0 "done" enable
	[[ -L $link ]] || fail "not enabled"
	booted 0 "is so already" enable
	booted 4 "" apply -q
	booted 0 "lq0: fifo (kept)" show
	booted 0 $'\nkept' host show
	restarted
	booted 4 "" apply -q
	booted 0 "lq0: fifo (kept)" show --check
	booted 0 "" fifo lq0 --rate 2gbit
	booted 0 "lq0: fifo (until reboot)" show
	booted 0 "done" disable
	booted 0 "is so already" disable
	[[ ! -L $link ]] || fail "not disabled"
	# an old file would contradict it
	echo 'LOWQ_TC="fifo"' >"$TMP/etc/lowq/lq1.conf"
	booted 2 "lq1.conf, which may contradict it" save
	booted 0 "" save --force
	[[ ! -e $TMP/etc/lowq/lq1.conf ]] || fail "save --force leaves it"
	mount --bind "$TMP/etc" "$TMP/etc" && mount -o remount,bind,ro "$TMP/etc"
	booted 0 "" fifo lq0 --rate 3gbit
	booted 1 "lowq.toml: Read-only file system" save
	umount "$TMP/etc"
}
declare_test at_boot "" "save, enable, disable: what is set is kept over a boot; each may be called again; a read-only /etc"

# --- other switches ---------------------------------------------------------------

# printed SYSTEM ARGUMENTS...: the lines, without those for people
printed()
{
	local system=$1

	shift
	must "$@" --print "$system" -q
	printf '%s\n' "$out"
}

# computed FILTER ARGUMENTS...: what the same call computes for a device of this machine
computed()
{
	must "${@:2}" --dry-run --json
	jq -c ".params | $1" <<<"$out"
}

print_k()
{
	local args system k kb

	while read -ra args; do
		k=$(computed .k_bytes dctcp lq0 --no-shape "${args[@]}")
		kb=$(((k + 999) / 1000))
		expect "K of ${args[*]} for sonic" "$(printed sonic dctcp Ethernet4 "${args[@]}" | jq -c '.WRED_PROFILE.LOWQ |
			[.ecn, (.green_min_threshold, .green_max_threshold, .yellow_min_threshold, .red_max_threshold | tonumber)]')" = \
			"[\"ecn_all\",$k,$k,$k,$k]"
		expect "K of ${args[*]} for cumulus" "$(printed cumulus dctcp swp1 "${args[@]}" | grep -o '[mn][ai][xn]*-threshold .*' | paste -sd,)" = \
			"min-threshold $k,max-threshold $k"
		expect "K of ${args[*]} for mlnx" "$(printed mlnx dctcp 1/7 "${args[@]}" | grep -o 'minimum.*')" = \
			"minimum-absolute $kb maximum-absolute $kb"
	done <<-'END'
		--rate 10gbit --rtt 100us
		--rate 100gbit --rtt 20us --no-tso
		--rate 25gbit --k 65
		--rate 25gbit --k 95kb
		--rate 40gbit --k 50us
		--rate 10gbit --rtt 100us --coalesce 20us
	END
	# other packets: the device's MTU is an option there
	ipn link set lq0 mtu 9000
	k=$(computed .k_bytes dctcp lq0 --no-shape --rate 100gbit --rtt 20us)
	expect "K with an MTU of 9000" "$(printed cumulus dctcp swp1 --rate 100gbit --rtt 20us --mtu 9000 | grep -c "threshold $k\$")" -eq 2
	# thresholds and probability of red, ldcp and roce
	ipn link set lq0 mtu 1500
	for system in "red --rate 10gbit --min 20 --max 60 --probability .05" "ldcp --rate 10gbit --rtt 100us --simple" "roce --rate 25gbit"; do
		read -ra args <<<"$system"
		set -- "${args[0]}" lq0 --no-shape "${args[@]:1}"
		expect "$system" "$(printed sonic "${args[0]}" Ethernet4 "${args[@]:1}" | jq -c '.WRED_PROFILE.LOWQ |
			[(.green_min_threshold, .green_max_threshold, .green_drop_probability) | tonumber]')" = \
			"$(computed '[.min_bytes, .max_bytes, .probability * 100]' "$@")"
	done
}
declare_test print_k "" "--print: the thresholds that the same call sets here, in each system's unit"

print_golden()
{
	printed sonic segregate Ethernet4 --rate 25gbit --k 65 --dscp af21 >"$TMP/sonic"
	expect "sonic" "$(jq -cS 'del(.DSCP_TO_TC_MAP)' "$TMP/sonic")" = \
		"$(jq -cS . <<-'END'
			{"WRED_PROFILE": {"LOWQ": {"ecn": "ecn_all",
			 "wred_green_enable": "true", "green_min_threshold": "98410", "green_max_threshold": "98410", "green_drop_probability": "100",
			 "wred_yellow_enable": "true", "yellow_min_threshold": "98410", "yellow_max_threshold": "98410", "yellow_drop_probability": "100",
			 "wred_red_enable": "true", "red_min_threshold": "98410", "red_max_threshold": "98410", "red_drop_probability": "100"}},
			 "QUEUE": {"Ethernet4|2": {"wred_profile": "LOWQ"}},
			 "TC_TO_QUEUE_MAP": {"LOWQ": {"0": "0", "1": "1", "2": "2", "3": "3", "4": "4", "5": "5", "6": "6", "7": "7"}},
			 "PORT_QOS_MAP": {"Ethernet4": {"dscp_to_tc_map": "LOWQ", "tc_to_queue_map": "LOWQ"}}}
		END
		)"
	expect "DSCPs of sonic" "$(jq -c '.DSCP_TO_TC_MAP.LOWQ | [length, .["0"], .["17"], .["18"], .["19"], .["47"], .["48"], .["63"]]' "$TMP/sonic")" = \
		'[64,"0","0","2","0","0","6","7"]'
	expect "cumulus" "$(printed cumulus roce swp3 --rate 25gbit)" = "\
nv set qos congestion-control lowq traffic-class 3 min-threshold 50000
nv set qos congestion-control lowq traffic-class 3 max-threshold 250000
nv set qos congestion-control lowq traffic-class 3 probability 10
nv set qos congestion-control lowq traffic-class 3 ecn enable
nv set qos congestion-control lowq traffic-class 3 red disable
nv set interface swp3 qos congestion-control profile lowq
nv set qos mapping default-global trust l3
nv set qos mapping default-global dscp 26 switch-priority 3
nv set qos mapping default-global dscp 24,25,27,28,29,30,31 switch-priority 0
nv config apply"
	expect "mlnx" "$(printed mlnx roce 1/7 --rate 25gbit --probability 1)" = "\
interface ethernet 1/7 qos trust L3
interface ethernet 1/7 traffic-class 3 congestion-control ecn minimum-absolute 50 maximum-absolute 250"
	expect "mlnx, without DSCP" "$(printed mlnx dctcp 1/7 --rate 10gbit --k 100)" = \
		"interface ethernet 1/7 traffic-class 0 congestion-control both minimum-absolute 152 maximum-absolute 152"
	[[ ! -e $LOWQ_STATE_DIR ]] || fail "something was recorded"
}
declare_test print_golden "" "--print: the whole text for SONiC, Cumulus Linux and Onyx"

print_refused()
{
	each refused <<-'END'
		instantaneous queue|dctcp swp1 --rate 10gbit --k 65 --exact --print sonic
		time that packets waited|dctcp swp1 --rate 10gbit --k 65 --aqm codel --print cumulus
		--simple is that|ldcp swp1 --rate 10gbit --rtt 100us --print sonic
		drops Not-ECT packets|dctcp swp1 --rate 10gbit --k 65 --nodrop --print sonic
		--probability 1|roce 1/1 --rate 10gbit --print mlnx
		not in whole percent|roce swp1 --rate 10gbit --probability 0.125 --print cumulus
		it has no words for prague|prague swp1 --rate 10gbit --print sonic
		--print: invalid choice: 'ios'|dctcp swp1 --rate 10gbit --k 65 --print ios
		--share does not go with|roce swp1 --rate 10gbit --share 30 --print sonic
		--limit does not go with|dctcp swp1 --rate 10gbit --k 65 --limit 100 --print sonic
		--dscp 5: 8 to 47|segregate swp1 --rate 10gbit --k 65 --dscp 5 --print sonic
		--mtu does not go with|dctcp lq0 --rate 10gbit --k 65 --mtu 9000
		give --rate|dctcp swp1 --rtt 100us --print sonic
	END
}
declare_test print_refused "" "--print: what a system cannot express is refused in one line"

# --- killed everywhere ------------------------------------------------------------

# exports MANAGER: what lowq-tc export prints is standard input
exports()
{
	local expected

	expected=$(cat)
	must export "$1"
	same "$expected" "$out" "export $1"
}

# As networkd makes them of a lease
prefix_route() { ipn route replace 10.71.0.0/24 dev lq0 proto kernel scope link src 10.71.0.1 metric 1024; }
default_route() { ipn route replace default via 10.71.0.2 dev lq0 proto dhcp src 10.71.0.1 metric 1024; }

for_networkd()
{
	local index conf=/etc/systemd/network/lan.network.d/lowq.conf before

	refused "nothing to export" export networkd
	refused "networkd, nm or ifupdown" export netplan
	ipn route del 10.71.0.0/24
	prefix_route
	default_route
	ipn route add 10.72.0.0/16 via 10.71.0.2 dev lq0 proto static mtu 1400
	picture before
	says lq0 dctcp --aqm fq_codel --no-shape --rate 1gbit --rtt 1ms
	says lq1 fifo --rate 1gbit
	says host reno --route 10.71.0.0/24 --route default --route 10.72.0.0/16 --route 10.99.0.0/16 --initcwnd 20 --quickack
	applied 4 "changed: host, lq0, lq1"
	refused "systemd-networkd does not manage lq1, lq0" export networkd
	mkdir -p /run/systemd/netif/links
	index=$(ipn -j link show lq0 | jq '.[].ifindex')
	echo 'NETWORK_FILE=/usr/lib/systemd/network/lan.network' >"/run/systemd/netif/links/$index"
	exports networkd <<'EXPECTED'
# for sh; to take it away: rm -f /etc/systemd/network/lan.network.d/lowq.conf && networkctl reload
set -e
for f in /etc/systemd/network/lan.network.d/lowq.conf; do
	if [ -e $f ] && ! grep -q "by 'lowq-tc export" $f; then echo "$f is someone else's" >&2; exit 2; fi
done
mkdir -p /etc/systemd/network/lan.network.d
cat >/etc/systemd/network/lan.network.d/lowq.conf <<'END'
# lq0, by 'lowq-tc export networkd'

[FairQueueingControlledDelay]
Parent=root
Handle=10f0
PacketLimit=1000
TargetSec=5000us
IntervalSec=100000us
ECN=yes
CEThresholdSec=667us

[Route]
Destination=10.71.0.0/24
Metric=1023
TCPCongestionControlAlgorithm=reno
InitialCongestionWindow=20
QuickAck=yes

[Route]
Destination=0.0.0.0/0
Metric=1023
Gateway=_dhcp4
TCPCongestionControlAlgorithm=reno
InitialCongestionWindow=20
QuickAck=yes

# 10.72.0.0/16: its route has the metric 0, before which none can come: give it another one (RouteMetric= in [Address], Metric= in [Route]), and export again

[Route]
Destination=10.99.0.0/16
Gateway=_dhcp4
TCPCongestionControlAlgorithm=reno
InitialCongestionWindow=20
QuickAck=yes
END
networkctl reload
EXPECTED
	mkdir -p "$TMP/bin" && ln -sf /bin/true "$TMP/bin/networkctl"
	PATH=$TMP/bin:$PATH sh -e <<<"$out" && PATH=$TMP/bin:$PATH sh -e <<<"$out" || fail "the script"
	expect "its file" "$(grep -c '^\[' "$conf")" -eq 4
	echo mine >"$conf"
	! PATH=$TMP/bin:$PATH sh -e <<<"$out" 2>"$TMP/err" || fail "a file of someone else's was replaced"
	grep -q "someone else's" "$TMP/err" || fail "says $(<"$TMP/err")"
	expect "that file" "$(<"$conf")" = mine
	# what networkd does with it at "reconfigure"
	prefix_route
	ipn route add 10.71.0.0/24 dev lq0 proto static scope link metric 1023 initcwnd 20 quickack 1 congctl reno
	must host show --check || fail "a control that networkd's route names: $out"
	applied 4 "changed: host"
	applied 0 "nothing to change"
	must host show --check
	# networkd lets go of it
	ipn route del 10.71.0.0/24 metric 1023
	checks 3 host show
	[[ $out == *"another program's route names reno (without effect for other lookups"* ]] || fail "says $out"
	applied 4 "changed: host"
	expect "the route" "$(ipn route show 10.71.0.0/24 | grep -c 'congctl reno')" -eq 1
	rm "$TMP/conf"/*
	applied 4 "changed: lq0, lq1, host"
	same_picture "$before" "at the end"
}
declare_test for_networkd "" "export networkd: exact text; a route of networkd's with the control is as good as lowq-tc's own"

for_hooks()
{
	local manager

	for manager in nm ifupdown; do
		refused "'lowq-tc save' writes it" export "$manager"
	done
	mkdir -p /etc/lowq
	echo '[[queue]]
device = "lq0"
profile = "fifo"
rate = "1gbit"' >/etc/lowq/lowq.toml
	exports nm <<'EXPECTED'
# for sh; to take it away: rm -f /etc/NetworkManager/dispatcher.d/90-lowq
set -e
for f in /etc/NetworkManager/dispatcher.d/90-lowq; do
	if [ -e $f ] && ! grep -q "by 'lowq-tc export" $f; then echo "$f is someone else's" >&2; exit 2; fi
done
mkdir -p /etc/NetworkManager/dispatcher.d
cat >/etc/NetworkManager/dispatcher.d/90-lowq <<'END'
#!/bin/sh
# What was written over, lowq-tc sets again as /etc/lowq says; by 'lowq-tc export nm'
case "$2" in
up|reapply|vpn-up|dhcp4-change|dhcp6-change|connectivity-change) if [ ! -d /run/systemd/system ] || [ -e /etc/systemd/system/multi-user.target.wants/lowq-tc.service ]; then
	/usr/sbin/lowq-tc apply -q || [ $? -eq 4 ] || echo 'lowq-tc apply failed: see lowq-tc host show --check' >&2
fi ;;
esac
END
chmod 755 /etc/NetworkManager/dispatcher.d/90-lowq
EXPECTED
	lt export ifupdown --json || fail "$err"
	expect "files" "$(jq -r '.[] | "\(.mode) \(.path)"' <<<"$out" | paste -sd ' ')" = \
		"755 /etc/network/if-up.d/zz-lowq 644 /etc/dhcp/dhclient-exit-hooks.d/zz-lowq 644 /etc/dhcpcd.exit-hook"
	# they run what they say, for the events that they name
	mkdir -p "$TMP/hooks"
	# shellcheck disable=SC2016 # the hook's
	printf '#!/bin/sh\necho "$*" >>%s/hooks/said\nexit ${STATUS:-4}\n' "$TMP" >"$TMP/hooks/lowq-tc"
	chmod +x "$TMP/hooks/lowq-tc"
	for manager in 0 1 2; do
		jq -r ".[$manager].text" <<<"$out" | sed "s,/usr/sbin/lowq-tc,$TMP/hooks/lowq-tc,; s,/run/systemd/system,/nowhere," >"$TMP/hooks/$manager"
	done
	IFACE=lo sh -e "$TMP/hooks/0" && reason=EXPIRE sh -e "$TMP/hooks/1" && reason=CARRIER sh -e "$TMP/hooks/2" || fail "a hook failed"
	[[ ! -e $TMP/hooks/said ]] || fail "a hook ran at an event that changes no route"
	IFACE=eth0 sh -e "$TMP/hooks/0" && reason=BOUND sh -e "$TMP/hooks/1" && reason=REBOOT sh -e "$TMP/hooks/2" || fail "a hook failed"
	expect "runs" "$(paste -sd ' ' "$TMP/hooks/said")" = "apply -q apply -q apply -q"
	STATUS=1 IFACE=eth0 sh -e "$TMP/hooks/0" 2>"$TMP/err" || fail "a hook's failure is ifup's"
	grep -q 'lowq-tc apply failed' "$TMP/err" || fail "a hook that fails says nothing"
	rm -r /etc/lowq
}
declare_test for_hooks "" "export nm and ifupdown: exact text; hooks run at the events that write routes"

# a manager that writes the route at the same moment: before or after lowq-tc does, once or each time
# shellcheck disable=SC2016 # the wrapper's variables
raced()
{
	local when before

	picture before
	for when in before after; do
		rm -f "$TMP/raced"
		wrapped ip '[[ $* != *"route replace 10.71.0.0/24"* || -e $TMP/raced ]] || {
			: >$TMP/raced
			[[ '"$when"' != after ]] || "$real" "$@"
			exec "$real" -n "$ns" route replace 10.71.0.0/24 dev lq0 proto kernel scope link src 10.71.0.1
		}'
		PATH=$TMP/wrapped:$PATH must host reno --route 10.71.0.0/24
		[[ -e $TMP/raced ]] || fail "$when: no race"
		must host show --check
		must host reset
		same_picture "$before" "$when: after reset"
	done
	# it does so each time
	wrapped ip '[[ $* != *"route replace 10.71.0.0/24"* || $* != *congctl* ]] || {
		exec "$real" -n "$ns" route replace 10.71.0.0/24 dev lq0 proto kernel scope link src 10.71.0.1
	}'
	PATH=$TMP/wrapped:$PATH ends 1 "another program writes the route 10.71.0.0/24 again" host reno --route 10.71.0.0/24
	same_picture "$before" "after it has given up"
	no_records
}
declare_test raced "" "a route that a manager writes while it is set: set again, or given up and rolled back"

killed()
{
	unshare -n tc qdisc add dev lo root gred setup vqs 3 default 1 grio || skip 'no gred'
	TC_LIB_DIR=$BIN python3 "$crash" files >"$TMP/crash" 2>&1 || { cat "$TMP/crash"; fail "$(grep -v '^#' "$TMP/crash" | head -n 3)"; }
	cat "$TMP/crash" >&3
}
declare_test killed "" "killed between any two steps: called again it ends as if it had not been, and all can be put back"

teardown()
{
	labnet --remove "$ns"
	rm -rf "$TMP/state"
}

exec 3>&1
run_tests "$@"
