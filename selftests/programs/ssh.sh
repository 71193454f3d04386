#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# lowq-check ssh://HOST and --matrix with a real sshd on each other host, in its namespace: what is
# found, bad hosts and sudden ends, after which nothing is left on the other host.
# shellcheck disable=SC2317 # tests are called by name

# shellcheck source=check_lib.sh
. "$(dirname "$0")/check_lib.sh"

SSHD=$(command -v /usr/sbin/sshd) && command -v ssh ssh-keygen >/dev/null || skip_all "no sshd (openssh-server)"
# ssh and sshd take the user's home from the list of users; the lab's guest is private
mount -t tmpfs none /root && mkdir -p /root/.ssh /run/sshd || skip_all "no private home"
sed 's/^root:[^:]*/root:*/' /etc/shadow >"$TMP/shadow" && mount --bind "$TMP/shadow" /etc/shadow
ssh-keygen -q -t ed25519 -N '' -f "$TMP/hostkey"
ssh-keygen -q -t ed25519 -N '' -f /root/.ssh/id_ed25519
cat >/root/.ssh/config <<-END
	Host r
		HostName 10.0.0.1
	Host h2
		HostName 10.0.2.1
END
for name in 10.0.0.1 10.0.2.1 10.0.1.1; do
	echo "$name $(cut -d' ' -f1,2 "$TMP/hostkey.pub")"
done >/root/.ssh/known_hosts
cp /root/.ssh/id_ed25519.pub "$TMP/authorized"
trap 'umount /etc/shadow /root' EXIT

# sshd_at HOST...: with a PATH that has lowq-check
sshd_at()
{
	local host

	for host; do
		in_ns "$host" "$SSHD" -f /dev/null -h "$TMP/hostkey" -o "AuthorizedKeysFile=$TMP/authorized" -o StrictModes=no \
			-o UsePAM=no -o PermitRootLogin=yes -o PidFile="$TMP/sshd.$host" -o UseDNS=no \
			-o "SetEnv=PATH=$TMP/scripts:$PATH" || fail "no sshd at $host"
		wait_until listening "$host" 22
	done
}

# alone HOST: nothing but sshd's master is in its namespace, and nobody listens
alone()
{
	[ "$(ip netns pids "$NSP$1" | paste -sd' ')" = "$(<"$TMP/sshd.$1")" ] && ! listening "$1" 5388
}

# nothing_left: on r, soon
nothing_left()
{
	WAIT=5 wait_until alone r
	find /tmp /var/tmp /run /root -xdev -path "$TMP" -prune -o -newer "$TMP/began" -type f -print >"$TMP/files" 2>/dev/null
	[ ! -s "$TMP/files" ] || fail "files: $(<"$TMP/files")"
}

# two_hosts: h1, which has the keys, and r, where sshd runs
two_hosts()
{
	dumbbell 1 1ms
	sshd_at r
	touch "$TMP/began"
}

by_ssh()
{
	two_hosts
	picture >"$TMP/before"
	check ssh://r --control dctcp_ref --there "lowq-check --control dctcp_ref" --json
	healthy
	jq -e '.measured[0] | .address == "10.0.0.1" and .peer.root and .info.there.way[0] == "10.0.1.1" and
		.tests.there.data["3"] == [3, 3]' "$TMP/check" >/dev/null || fail "not both ends of that path"
	nothing_left
	check ssh://root@10.0.0.1:22 fd00:0::1 --control reno --port 5390
	healthy
	[[ "${FOUND[*]}" == *" fd00::1: handshake "* && "${FOUND[*]}" != *" 10.0.0.1: "* ]] || fail "not the address that was named"
	rewrite egress ip_proto tcp -- tos set 0 retain 3
	check ssh://r --control dctcp_ref
	named peer-control cubic	# it listens as programs there do
	check ssh://r --control dctcp_ref --there "lowq-check --control dctcp_ref"
	named ecn-bleached
	nothing_left
	in_ns sw tc qdisc del dev egress clsact
	picture >"$TMP/after"
	diff "$TMP/before" "$TMP/after" || fail "it has changed something"
}
declare_test by_ssh "" "ssh://HOST: both ends of the path, the addresses, a fault; nothing is left"

# refused TEXT URL [OPTION...]: one line with TEXT, status 2, nothing left
refused()
{
	says 2 "$1" "${@:2}"
	nothing_left
}

bad_hosts()
{
	two_hosts
	refused "Could not resolve hostname nohost.invalid" ssh://nohost.invalid
	refused "not ssh://" ssh://-oProxyCommand=true
	refused "not ssh://" "ssh://r;reboot"
	[ ! "${FULL:-}" ] || refused "Connection refused" ssh://10.0.0.1:23
	[ ! "${FULL:-}" ] || refused "one ssh://HOST at a time" ssh://r ssh://h2
	[ ! "${FULL:-}" ] || refused "--token goes with" ssh://r --token secret
	refused "not installed there" ssh://r --there /nowhere/lowq-check
	refused "not root there" ssh://r --there "${USER_IDS[*]} lowq-check"
	refused "lowq-check 0.0.1 is there" ssh://r --there \
		"sh -c 'echo {\\\"version\\\":\\\"0.0.1\\\",\\\"port\\\":1,\\\"token\\\":\\\"x\\\",\\\"root\\\":true,\\\"client\\\":\\\"a\\\",\\\"server\\\":\\\"b\\\"}; cat'"
	refused "another version of lowq-check" ssh://r --there \
		"sh -c 'echo lowq-check: unrecognized arguments: --from-ssh >&2; exit 2'"
	refused "is not lowq-check: '?[2Jhello'" ssh://r --there "printf '\\033[2Jhello\\n' #"
	[ ! "${FULL:-}" ] || refused "is not lowq-check" ssh://r --there "cat /dev/zero #"
	[ ! "${FULL:-}" ] || refused "is not lowq-check" ssh://r --there "echo '[1]' #"
	refused "is not lowq-check" ssh://r --there "echo '{}'; cat #"
	[ ! "${FULL:-}" ] || refused "it ended with status 0" ssh://r --there "true"
	refused "no answer for 30 s" ssh://r --there "cat >/dev/null #"
	# keys
	mv /root/.ssh/known_hosts "$TMP/known"
	refused "Host key verification failed" ssh://r
	sed "s|AAAAC3.*|$(cut -d' ' -f2 /root/.ssh/id_ed25519.pub)|" "$TMP/known" >/root/.ssh/known_hosts
	touch "$TMP/began"
	refused "Host key verification failed" ssh://r
	mv "$TMP/known" /root/.ssh/known_hosts
	mv /root/.ssh/id_ed25519 "$TMP/key"
	refused "Permission denied" ssh://r
	mv "$TMP/key" /root/.ssh/id_ed25519
	# the port is taken; a firewall
	peer --control reno
	says 2 "ssh://r: cannot listen at port 5388: Address already in use" ssh://r
	kill "$LISTENER"
	wait_until alone r
	in_ns r nft "add table inet filter; add chain inet filter input { type filter hook input priority 0; };
		add rule inet filter input tcp dport 5388 drop" || return 0
	refused "no answer from 10.0.0.1 port 5388: a firewall drops it" ssh://r --control reno
}
declare_test bad_hosts "" "unknown host, wrong keys, no root, another version, garbage, silence: one line, nothing left"

# begun: starts lowq-check, which is the process CLIENT. A background job ignores SIGINT, until Python
# is told otherwise.
begun()
{
	nsenter --net="/run/netns/${NSP}h1" python3 -c 'import signal, os, sys
signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])' "$LOWQ_CHECK" "${@:-ssh://r}" \
		--control reno --load 2 >"$TMP/out" 2>"$TMP/err" &
	CLIENT=$!
}

# ended STATUS SIGNAL SECONDS: lowq-check gets the signal after so long
ended()
{
	begun
	sleep "$3"
	kill "-$2" "$CLIENT"
	wait "$CLIENT"
	expect "status after $2" "$?" -eq "$1"
	expect "lines after $2" "$(cat "$TMP/out" "$TMP/err" | wc -l)" -eq 0
	nothing_left
	WAIT=5 wait_until eval "! ip netns pids ${NSP}h1 | grep -q ."
}

sudden_ends()
{
	local i moment

	two_hosts
	picture >"$TMP/before"
	RANDOM=${LOWQ_SEED:-1}
	for ((i = 0; i < ${FULL:+10} + 2; i++)); do
		moment=0.$((RANDOM % 90 + 10))
		[ $((i % 2)) -eq 0 ] || moment=$((RANDOM % 4)).5
		measured "signals after $moment s"
		ended 137 KILL "$moment"
		ended 2 INT "$moment"
	done
	ended 143 TERM 1
	# the other end, and ssh
	begun
	wait_until listening r 5388
	sleep 1
	ip netns pids "${NSP}r" | xargs -r ps -o pid=,args= | awk '/--from-ssh/ && /python3/ { print $1 }' | xargs kill -KILL
	wait "$CLIENT"
	expect "status when the other end is killed" "$?" -eq 2
	expect "lines" "$(wc -l <"$TMP/err")" -eq 1
	nothing_left
	picture >"$TMP/after"
	diff "$TMP/before" "$TMP/after" || fail "it has left something"
}
declare_test sudden_ends "" "kill -9, Ctrl-C, SIGTERM, the other end killed: nothing is left there"

# The second on the same port is refused in one line; on another port it works, and the first goes on.
two_at_once()
{
	local status

	two_hosts
	begun
	wait_until listening r 5388
	in_ns h1 "$LOWQ_CHECK" ssh://r --control reno >"$TMP/out2" 2>"$TMP/err2"
	status=$?
	expect "status of the second" "$status" -eq 2
	expect "its lines" "$(cat "$TMP/out2" "$TMP/err2" | wc -l)" -eq 1
	grep -q 5388 "$TMP/err2" || fail "$(<"$TMP/err2")"
	check ssh://r --control reno --port 5390
	healthy
	wait "$CLIENT"
	status=$?
	# 0 or 1: it has measured, whatever it found under its load
	[ "$status" -le 1 ] || fail "the first: status $status: $(<"$TMP/err")"
	expect "lines of the first" "$(wc -l <"$TMP/out")" -ge 10
	expect "complaints of the first" "$(wc -l <"$TMP/err")" -eq 0
	nothing_left
}
declare_test two_at_once "" "two at once: the second is refused, or works on another port; the first goes on"

matrix()
{
	local file=$TMP/hosts

	dumbbell 2 1ms
	sshd_at h1 h2 r
	touch "$TMP/began"
	printf '# these three\n10.0.1.1\nssh://h2\nroot@r 10.0.0.1\n' >"$file"
	in_ns h1 script -qec "$LOWQ_CHECK --matrix $file --control reno" /dev/null >"$TMP/terminal" 2>&1
	expect "status" "$?" -eq 0
	grep -q "6 of 6: " "$TMP/terminal" || fail "no progress: $(<"$TMP/terminal")"
	expect "pairs that are ok" "$(tr -d '\r' <"$TMP/terminal" | sed -n '/from, to/,/^$/p' | grep -o '\bok\b' | wc -l)" -eq 9
	# what arrives at h2 has lost its ECN
	rewrite p2 ip_proto tcp -- tos set 0 retain 3
	echo gone.invalid >>"$file"
	in_ns h1 "$LOWQ_CHECK" --matrix "$file" --control dctcp_ref --there "lowq-check --control dctcp_ref" --json \
		>"$TMP/matrix.json" 2>"$TMP/err"
	expect "status with a fault" "$?" -eq 1
	expect "lines about gone.invalid" "$(grep -c 'gone.invalid: ssh: Could not resolve' "$TMP/err")" -eq 1
	expect "pairs with the fault" "$(jq -r '.pairs[] | select(any(.findings[]; .fault == "ecn-bleached")) | .from + ">" + .to' \
		"$TMP/matrix.json" | sort | paste -sd' ')" = "10.0.1.1>h2 h2>10.0.1.1 h2>root@r root@r>h2"
	expect "pairs" "$(jq -r '[.pairs[].status] | map(tostring) | sort | add' "$TMP/matrix.json")" = 001111222222
	expect "host's error" "$(jq -r '.hosts[3].error' "$TMP/matrix.json" | wc -l)" -eq 1
	WAIT=5 wait_until alone h2
	WAIT=5 wait_until alone r
	printf 'r\ngone.invalid\n' >"$file"
	in_ns h1 "$LOWQ_CHECK" --matrix "$file" --control reno >"$TMP/out" 2>"$TMP/err"
	expect "status where nothing could be checked" "$?" -eq 2
	says 2 "at least two hosts" --matrix /dev/null
	says 2 "No such file" --matrix "$TMP/nofile"
	says 2 "again" --matrix <(printf 'r\nr\n')
	says 2 "is no address" --matrix <(printf 'r -x\n')
	says 2 "--matrix goes with" --matrix "$file" 10.0.0.1
	# killed in the middle
	printf 'h2\nr\n' >"$file"
	begun --matrix "$file"
	sleep 4
	kill -KILL "$CLIENT"
	wait "$CLIENT"
	nothing_left
	WAIT=5 wait_until alone h2
}
declare_test matrix "" "--matrix: all pairs, progress, a fault, an unknown host, JSON; killed: nothing is left"

run_tests "$@"
