# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034,SC2154	# shared with the other parts of lowq-tc
#
# The device, as tc, ip and sysfs show it.

netns=
of_netns=	# the same for messages
dev=
ifindex=0 address='' mtu=0 kind='' frame=0 queues=1
txqlen=0 gso_size=0 gso_segs=0 link_rate=0 bql=''
software=0	# no line of its own behind it: veth, bridge, vlan ...
qdiscs='[]'	# what is there now, without ingress and clsact
root_is=	# "KIND HANDLE" of the root among them, or nothing

tc_() { tc ${netns:+-n "$netns"} "$@"; }
ip_() { ip ${netns:+-n "$netns"} "$@"; }
within() {
	if [[ $netns ]]; then
		ip netns exec "$netns" "$@"
	else
		"$@"
	fi
}

# tc writes "[Unknown qdisc, optlen=N]" into its JSON for what it cannot print.
mend_json() {
	sed 's/\[Unknown qdisc, optlen=\([0-9]*\)\] */"unknown":\1/g'
}

read_qdiscs() {
	qdiscs=$(tc_ -d -j qdisc show dev "$dev" 2>/dev/null | mend_json |
		jq -c 'map(select(.kind != "ingress" and .kind != "clsact")
			| del(.refcnt, .offloaded, .dev))' 2>/dev/null)
	[[ $qdiscs ]] || qdiscs='[]'
	root_is=$(jq -r '.[] | select(.root) | "\(.kind) \(.handle)"' <<<"$qdiscs")
}

read_link() {
	local link

	link=$(ip_ -d -j link show dev "$dev" 2>/dev/null | jq -r '.[0] |
		[.ifindex, .address // "-", .mtu, .link_type // "none",
		 .linkinfo.info_kind // "-", .num_tx_queues // 1, .txqlen // 0,
		 .gso_max_size // 65536, .gso_max_segs // 65535] | @tsv' 2>/dev/null)
	[[ $link ]] || return
	IFS=$'\t' read -r ifindex address mtu link_type kind queues txqlen gso_size gso_segs \
		<<<"$link"
}

read_device() {
	local link_type='' sys header speed

	read_link
	((ifindex)) || refuse "no device '$dev'$of_netns"

	case $link_type in
	ether) header=14 ;;
	loopback) header=14 software=1 ;;
	infiniband) header=4 ;;
	*) header=0 ;;
	esac
	frame=$((mtu + header))
	[[ $kind == - || $kind == ipoib ]] || software=1

	read_qdiscs
	# sysfs shows the namespace of who mounted it: believe it only if it
	# speaks of the same device.
	# shellcheck disable=SC2016
	sys=$(within sh -c 'cd "/sys/class/net/$1" 2>/dev/null || exit
		cat ifindex address 2>/dev/null | tr "\n" " "
		cat speed 2>/dev/null || echo 0
		ls -d queues/tx-* 2>/dev/null | wc -l
		cat queues/tx-0/byte_queue_limits/limit 2>/dev/null || echo none' \
		sh "$dev" 2>/dev/null)
	if [[ $sys == "$ifindex $address "* ]]; then
		sys=${sys#"$ifindex $address "}
		{ read -r speed; read -r queues; read -r bql; } <<<"$sys"
		((speed > 0 && !software)) && link_rate=$((speed * 1000000))
	elif [[ $root_is == mq\ * ]]; then
		queues=$(jq '[.[] | select(.root | not)
			| select(.parent | test(":[0-9a-f]+$"))] | length' <<<"$qdiscs")
	fi
	((queues > 0)) || queues=1
}

take_netns() {	# NAME
	netns=$1
	of_netns=" in network namespace '$netns'"
	[[ -e /run/netns/$netns ]] || refuse "no network namespace '$netns'"
}

take_device() {	# NAME
	[[ $1 =~ ^[A-Za-z0-9_.:@+-]+$ && $1 != -* ]] || refuse "no device '$1'"
	dev=$1
}
