#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# lowq-tc for containers: a control by cgroup and destination, network namespaces by process, and the CNI plugin in
# examples/cni. It also runs on Debian's kernels (devel/matrix).

# shellcheck source=lowq_tc_lib.sh
. "$(dirname "$0")/lowq_tc_lib.sh"

peer=${NSP}b
CNI=${CNI:-$SELFTESTS/../examples/cni/lowq}
ROOT=/sys/fs/cgroup
mountpoint -q $ROOT || mount -t cgroup2 none $ROOT 2>/dev/null
[[ -e $ROOT/cgroup.controllers ]] || skip_all 'no cgroups of version 2 in /sys/fs/cgroup'
group=$ROOT/lowq-test
export group

setup()
{
	rm -rf "$LOWQ_STATE_DIR"
	ip netns add "$ns"
	ip netns add "$peer"
	ip -n "$ns" link add name lq0 numtxqueues 1 type veth peer name lq1 netns "$peer"
	for one in "$ns lq0 1" "$peer lq1 2"; do
		# shellcheck disable=SC2086 # words
		set -- $one
		ip -n "$1" -batch - <<-END
			link set lo up
			link set $2 up
			addr add 10.71.0.$3/24 dev $2
			addr add 10.72.0.$3/24 dev $2
			addr add fd71::$3/64 dev $2 nodad
		END
	done
	ip netns exec "$peer" sysctl -qw net.ipv4.tcp_ecn=1
	sysctl -qw net.ipv4.tcp_congestion_control=cubic
	ip netns exec "$ns" sysctl -qw net.ipv4.tcp_congestion_control=cubic
	mkdir -p "$group"
}

teardown()
{
	rmdir "$group/child" "$group" 2>/dev/null
	kill_in "$ns"
	kill_in "$peer"
	ip netns del "$ns"
	ip netns del "$peer"
}

# takes EXPECTED [CGROUP]: the controls of connections from there to each of these addresses, after 200 kB went over it
TO=(10.71.0.2 10.72.0.2 ::ffff:10.71.0.2 fd71::2)
takes()
{
	expect "controls towards ${TO[*]}" "$(echo 0 >"${2:-$group}/cgroup.procs"; ip netns exec "$ns" python3 - "${TO[@]}" <<-'END'
		import socket, sys
		for to in sys.argv[1:]:
		    with socket.socket(socket.AF_INET6 if ":" in to else socket.AF_INET) as one:
		        one.settimeout(60)
		        one.connect((to, 7000))
		        one.sendall(bytes(200000))
		        one.shutdown(1)
		        assert one.recv(9) == b"200000", "data"
		        ecn = "+ecn" * (one.getsockopt(6, 11, 8)[5] >> 3 & 1)
		        print(one.getsockopt(6, 13, 16).rstrip(b"\0").decode() + ecn, end=" ")
		END
	)" = "$1 "
}

# receiver CONTROL: Linux refuses ECN to a control that needs it, unless the listener's own does
receiver()
{
	ip netns exec "$peer" python3 -c '
import socket, sys
one = socket.create_server(("::", 7000), family=socket.AF_INET6, dualstack_ipv6=True)
one.setsockopt(6, 13, sys.argv[1].encode())
while True:
    to = one.accept()[0]
    n = 0
    while data := to.recv(65536):
        n += len(data)
    to.sendall(b"%d" % n)
    to.close()' "$1" &
	wait_until served
}

served() { [[ $(ip netns exec "$peer" ss -ltnH "sport = :7000") ]]; }

by_prefix()
{
	local cc

	for cc in dctcp_ref dctcp reno; do	# the first that there is
		! modprobe -q "tcp_$cc" || break
	done
	receiver "$cc"
	takes "cubic cubic cubic cubic"
	must cgroup reno "$group" --route 10.71.0.0/24
	must cgroup "$cc" lowq-test --route 10.72.0.0/16 --route fd71::/64
	must cgroup reno "$group" --route 10.72.0.0/16 --dry-run
	must cgroup show --check
	expect "what is set" "$out" = "$group: reno to 10.71.0.0/24
$group: $cc to 10.72.0.0/16
$group: $cc to fd71::/64"
	[[ $cc == reno ]] || cc+=+ecn
	takes "reno $cc reno $cc"
	takes "cubic cubic cubic cubic" "$ROOT"
	mkdir "$group/child"	# its parent's; the narrower prefix counts
	must cgroup reno "$group" --route fd71::2
	takes "reno $cc reno reno" "$group/child"
	must cgroup reno "$group" --route fd71::2	# again
	must cgroup reno "$group"	# to all
	must cgroup show "$group" --json
	expect "prefixes" "$(jq -r '.[0] | "\(.stands) \(.prefixes | length)"' <<<"$out")" = "true 6"
	must cgroup reset "$group"
	takes "cubic cubic cubic cubic" "$group/child"
	must cgroup show
	expect "at the end" "$out" = "nothing set by lowq-tc"
	must cgroup reno "$group/child"
	must cgroup reset --all
	must cgroup reset --all
	takes "cubic cubic cubic cubic" "$group/child"
	no_records
}
declare_test by_prefix "" "cgroup: connections take a control by destination (IPv4, IPv6, mapped), with ECN; again; reset"

bad_cgroups()
{
	mkdir -p "$TMP/folder"
	each refused <<-'END'
		which cgroup?|cgroup reno
		which cgroup?|cgroup reno "$group" "$group"
		No such file|cgroup reno "$group/none"
		is no cgroup|cgroup reno "$TMP/folder"
		is no cgroup|cgroup reno "$TMP/folder" --dry-run
		no congestion control 'nonesuch'|cgroup nonesuch "$group"
		not a prefix|cgroup reno "$group" --route 10.0.0.0/33
		which one? Or --all|cgroup reset
		does not go with 'cgroup reno'|cgroup reno "$group" --check
		No such file|cgroup show "$group/none"
	END
	must cgroup show
	expect "after refusals" "$out" = "nothing set by lowq-tc"
	PYTHONPATH=$(dirname "$LOWQ_TC"):$(dirname "$LOWQ_TC")/../share/lowq python3 - "$group" <<-'END' || fail "see above"
		import ctypes, os, signal, sys
		from lowq_common.errors import Refused
		from lowq_tc import cgroup

		path = sys.argv[1]
		real = {name: getattr(cgroup, name) for name in ("bpf", "load", "program")}

		def refuses(part, **changed):
		    vars(cgroup).update(changed)
		    try:
		        cgroup.set_control(path, "reno", ["default"], [])
		        sys.exit(f"no refusal with '{part}'")
		    except Refused as error:
		        if part not in str(error):
		            sys.exit(f"says '{error}', not '{part}'")
		    finally:
		        vars(cgroup).update(real)

		# the kernel's verifier refuses; a kernel without bpf(2)
		refuses("needs Linux 5.8", program=lambda attach, trie: b"\x95" + bytes(7))
		assert not list(cgroup.show([]))
		# the cgroup vanishes between two steps
		def gone(attach, trie):
		    if os.path.isdir(path):
		        os.rmdir(path)
		    return real["load"](attach, trie)
		refuses("is gone", load=gone)
		os.mkdir(path)
		# someone else's program, which tolerates no other
		group, trie = cgroup.opened(path), cgroup.new_trie()
		other = real["load"](cgroup.CONNECT[1], trie)
		NAME, cgroup.NAME = cgroup.NAME, b"another"
		other = real["load"](cgroup.CONNECT[1], trie)
		cgroup.NAME = NAME
		cgroup.bpf(cgroup.PROG_ATTACH, "IIIII", group, other, cgroup.CONNECT[1], 0, 0)
		refuses("tolerates no other")
		assert not list(cgroup.show([])), "IPv4 was left"
		cgroup.bpf(cgroup.PROG_DETACH, "III", group, other, cgroup.CONNECT[1])
		# killed before any step
		for step in range(1, 100):
		    child = os.fork()
		    if not child:
		        left = step
		        def counted(*words):
		            global left
		            left -= 1
		            if not left:
		                os.kill(os.getpid(), signal.SIGKILL)
		            return real["bpf"](*words)
		        cgroup.bpf = counted
		        cgroup.set_control(path, "reno", ["default", "::/0"], [])
		        os._exit(0)
		    killed = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0
		    if step % 2:  # set again, or reset at once
		        cgroup.set_control(path, "reno", ["default", "::/0"], [])
		        assert [len(one.prefixes) for one in cgroup.show([path])] == [2] and all(one.whole for one in cgroup.show([path]))
		    cgroup.reset(path)
		    assert not list(cgroup.show([path])), step
		    if not killed:
		        break
		assert 6 < step < 99, step
		print(f"# {step} steps")
	END
	command -v setpriv >/dev/null || return 0
	(LT=(setpriv --reuid 65534 --clear-groups "$LOWQ_TC"); "${LT[@]}" cgroup reno "$group" 2>"$TMP/err"; expect "status" $? -eq 2) &&
		grep -q 'needs root' "$TMP/err" || fail "another user: $(<"$TMP/err")"
}
declare_test bad_cgroups "" "cgroup: what is wrong, a cgroup that vanishes, others' programs, a kernel that refuses; killed at each step"

by_pid()
{
	local pod before

	picture before
	ip netns exec "$ns" sleep 1000 &
	pod=$!
	wait_until inside "$pod"
	"$LOWQ_TC" --pid "$pod" fifo lq0 --rate 1gbit >/dev/null && "$LOWQ_TC" -n "/proc/$pod/ns/net" host reno --route 10.71.0.0/24 >/dev/null ||
		fail "by process and by path"
	must show lq0 --check
	[[ $out == *fifo* && $(ipn route show 10.71.0.0/24) == *"congctl reno"* ]] || fail "by name: $out"
	expect "a dry run" "$("$LOWQ_TC" --pid "$pod" reset lq0 --dry-run 2>/dev/null)" = "nsenter --net=/proc/$pod/ns/net tc qdisc del dev lq0 root"
	"$LOWQ_TC" --pid "$pod" show lq0 >"$TMP/by_pid" && grep -q fifo "$TMP/by_pid" || fail "show by process"
	must reset --all
	must host reset
	same_picture "$before" "after reset"
	"$LOWQ_TC" --pid 99999999 show 2>"$TMP/err"
	expect "no such process" "$?$(<"$TMP/err")" = "2lowq-tc: no network namespace '/proc/99999999/ns/net'"
	"$LOWQ_TC" -n ./"$(basename "$TMP")" show 2>"$TMP/err" && fail "a path that is no namespace"
	refused "not both" --pid 1 show
	# the pod dies between two steps: its namespace stays until the call ends, and the next call forgets it
	unshare -n sh -c 'ip link add d0 type dummy; ip link set d0 up; ip addr add 10.71.0.1/24 dev d0; exec sleep 1000' &
	pod=$!
	wait_until alone "$pod"
	wrapped ip "[[ \$* != *'route add'* && \$* != *'route replace'* ]] || { kill -KILL $pod; while [ -d /proc/$pod/ns ] && readlink /proc/$pod/ns/net; do sleep .1; done; }"
	PATH=$TMP/wrapped:$PATH "$LOWQ_TC" --pid "$pod" host reno --route 10.71.0.0/24 >"$TMP/out" 2>&1
	expect "a pod that dies meanwhile" "$? $(<"$TMP/out")" = "0 host for reno: set"
	"$LOWQ_TC" --pid "$pod" show 2>"$TMP/err" && fail "a pod that is gone"
	must host reno --route 10.71.0.0/24
	must host reset
	no_records
}
inside() { [[ $(readlink "/proc/$1/ns/net") == "net:[$(stat -Lc %i "/run/netns/$ns")]" ]]; }
alone() { nsenter --net="/proc/$1/ns/net" ip route 2>/dev/null | grep -q d0 && [[ $(readlink "/proc/$1/ns/net") != "$(readlink /proc/self/ns/net)" ]]; }
declare_test by_pid "" "--pid and -n PATH: a pod's namespace without a name; one that dies between two steps"

# cni STATUS COMMAND [JSON]: runs the plugin; $out is what it prints
cni()
{
	out=$(CNI_COMMAND=$2 CNI_NETNS=${NETNS-/run/netns/$ns} "$CNI" 2>"$TMP/err" <<<"${3:-$conf}")
	rc=$?
	[[ $rc == "$1" ]] || fail "CNI $2: status $rc, expected $1: $out $(<"$TMP/err")"
	jq . <<<"${out:-null}" >/dev/null && [[ ! -s $TMP/err ]] || fail "CNI $2: no JSON: $out $(<"$TMP/err")"
}

code() { jq .code <<<"$out"; }

plugin()
{
	local before conf='{"cniVersion": "1.0.0", "name": "pods", "type": "lowq", "control": "reno", "routes": ["10.71.0.0/24"], "prevResult": {"cniVersion": "1.0.0", "ips": [{"address": "10.71.0.1/24"}]}}'

	picture before
	cni 0 VERSION
	expect "versions" "$(jq -c .supportedVersions <<<"$out")" = '["0.4.0","1.0.0","1.1.0"]'
	for _ in once again; do
		cni 0 ADD
		expect "result" "$(jq -r '.ips[0].address' <<<"$out")" = 10.71.0.1/24
		expect "routes" "$(ipn route show 10.71.0.0/24 | grep -c 'congctl reno')" -eq 1
		cni 0 CHECK
	done
	ipn route replace 10.71.0.0/24 dev lq0 proto kernel scope link src 10.71.0.1
	cni 1 CHECK
	expect "a control that is gone" "$(code)" -eq 101
	cni 0 DEL
	NETNS='' cni 0 DEL
	must host reset --force
	same_picture "$before" "after reset"
	NETNS='' cni 1 ADD
	expect "without a namespace" "$(code)" -eq 4
	NETNS=/run/netns/none cni 1 ADD
	expect "a pod that is gone" "$(code)" -eq 101
	cni 1 ADD "$(jq 'del(.prevResult)' <<<"$conf")"
	expect "without a network" "$(code)" -eq 7
	cni 1 ADD "$(jq '.cniVersion = "9.9.9"' <<<"$conf")"
	expect "another version" "$(code)" -eq 1
	cni 1 ADD "$(jq '.control = "nonesuch"' <<<"$conf")"
	expect "an unknown control" "$(code)" -eq 101
	for bad in '' '[]' '{"cniVersion": "1.0.0"}' '{'; do
		cni 1 ADD "${bad:- }"
		expect "configuration '$bad'" "$(code)" -eq 6
	done
	same_picture "$before" "after all that failed"
	no_records
}
declare_test plugin "" "the CNI plugin: ADD twice, CHECK, DEL; without a network, a namespace, or with another version"

run_tests "$@"
