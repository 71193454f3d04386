# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Situations that connections meet in real networks: single packets that are lost or late,
# data in both directions, a change of the control at a chosen moment. Source lib.sh first.

# talk STEP...: one connection from h1 to r's talk server (talk.py --help); its results are in
# $TMP/talk. TO, PORT and FROM change the address, the port and the host that connects; BIND is
# a device to bind to
talk()
{
	[ -z "${BIND:-}" ] || set -- "bind=$BIND" "$@"
	in_ns "${FROM:-h1}" timeout 120 python3 "$SELFTESTS/talk.py" to "${TO:-10.0.0.1}" --port "${PORT:-5299}" \
		"$@" >"$TMP/talk" ||
		fail "talk: $(tail -n1 "$TMP/talk")"
	count_now
}

# talk_server NS [OPTION...]: starts talk.py serve in NS
talk_server()
{
	local words=" $* " port=5299

	[[ "$words" != *" --port "* ]] || { port=${words##* --port }; port=${port%% *}; }
	in_ns "$1" python3 "$SELFTESTS/talk.py" serve "${@:2}" 2>"$TMP/talk.$1" &
	wait_until listening "$1" "$port"
}

# fates NS DEV [DELAY]: makes SO_PRIORITY decide about packets that leave there: 0 pass, 1 are
# lost, 2 are delayed by DELAY, and of 3 a fifth are lost
fates()
{
	in_ns "$1" tc qdisc replace dev "$2" root handle 1: prio bands 4 \
		priomap 0 1 2 3 0 0 0 0 0 0 0 0 0 0 0 0
	in_ns "$1" tc qdisc add dev "$2" parent 1:4 handle 14: netem limit 100000 loss 20%
	in_ns "$1" tc qdisc add dev "$2" parent 1:2 handle 12: netem limit 100000 loss 100%
	in_ns "$1" tc qdisc add dev "$2" parent 1:3 handle 13: netem limit 100000 delay "${3:-30ms}"
}

# data_meets NS DEV SPEC...: netem for packets of 1 KB and more that leave there, not for
# handshakes and ACKs; "loss X% ecn" marks packets, it does not drop them
data_meets()
{
	in_ns "$1" tc qdisc replace dev "$2" root handle 1: prio bands 2 \
		priomap 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1
	in_ns "$1" tc qdisc add dev "$2" parent 1:1 netem limit 100000 "${@:3}"
	in_ns "$1" tc filter add dev "$2" parent 1: protocol ip u32 match u16 0x0400 0x0400 at 2 classid 1:1
}

# counters saves the kernel's counters at h1 and r, count_now saves them a second time, and
# counted NS NAME prints by how much one has increased in between
counters()
{
	local ns

	for ns in h1 r; do
		in_ns $ns nstat -asz >"$TMP/nstat.$ns"
	done
}

count_now()
{
	local ns

	for ns in h1 r; do
		in_ns $ns nstat -asz >"$TMP/nstat.$ns.now"
	done
}

counted()
{
	awk -v name="$2" 'NR == FNR { before[$1] = $2; next }
		$1 == name { n = $2 - before[$1] } END { print n + 0 }' "$TMP/nstat.$1" "$TMP/nstat.$1.now"
}

# --- tunnels and devices -----------------------------------------------------------
# The devices that a connection's packets pass on their way out of h1

# shellcheck disable=SC2034 # for world.sh
TUNNELS=(gre gre_key ipip sit vxlan geneve esp_transport esp_tunnel wireguard vrf ipvlan macvlan)

# both_ends: a line for each end of a tunnel: NS, its address, the other end's address, and the
# last number of the inner address
both_ends()
{
	if [ "${V6:-}" ]; then
		echo "h1 fd00:1::1 fd00:0::1 1"
		echo "r fd00:0::1 fd00:1::1 2"
	else
		echo "h1 10.0.1.1 10.0.0.1 1"
		echo "r 10.0.0.1 10.0.1.1 2"
	fi
}

# tunnel_link KIND OPTIONS...: makes tun0 at both ends; "LOCAL" and "REMOTE" in OPTIONS stand
# for the addresses
tunnel_link()
{
	local ns from to n args

	while read -r ns from to n; do
		args=("${@//LOCAL/$from}")
		args=("${args[@]//REMOTE/$to}")
		ip -n "$NSP$ns" link add tun0 type "${args[@]}" 2>"$TMP/tunnel" || return 1
	done < <(both_ends)
}

# tunnel_esp MODE: ESP between the two hosts for TCP; MODE is tunnel or transport
tunnel_esp()
{
	local ns from to n dir

	while read -r ns from to n; do
		for dir in "$from $to 0x1$n" "$to $from 0x1$((3 - n))"; do
			# shellcheck disable=SC2086 # three words
			set -- "$1" $dir
			ip -n "$NSP$ns" xfrm state add src "$2" dst "$3" proto esp spi "$4" mode "$1" \
				reqid 1 aead 'rfc4106(gcm(aes))' 0x0102030405060708090a0b0c0d0e0f1011121314 128 \
				2>"$TMP/tunnel" || return 1
		done
		ip -n "$NSP$ns" xfrm policy add src "$from" dst "$to" proto tcp dir out \
			tmpl src "$from" dst "$to" proto esp reqid 1 mode "$1" || return 1
		ip -n "$NSP$ns" xfrm policy add src "$to" dst "$from" proto tcp dir in \
			tmpl src "$to" dst "$from" proto esp reqid 1 mode "$1" || return 1
	done < <(both_ends)
	TO=$([ "${V6:-}" ] && echo fd00:0::1 || echo 10.0.0.1)
}

tunnel_wireguard()
{
	local ns from to n

	command -v wg >/dev/null || { echo "no wg" >"$TMP/tunnel"; return 1; }
	for ns in h1 r; do
		ip -n "$NSP$ns" link add tun0 type wireguard 2>"$TMP/tunnel" || return 1
		wg genkey >"$TMP/wg.$ns"
	done
	while read -r ns from to n; do
		in_ns "$ns" wg set tun0 listen-port 51820 private-key "$TMP/wg.$ns" peer \
			"$(wg pubkey <"$TMP/wg.$([ "$ns" = r ] && echo h1 || echo r)")" \
			endpoint "$([ "${V6:-}" ] && echo "[$to]" || echo "$to"):51820" \
			allowed-ips 10.9.0.0/24,fd09::/64 || return 1
	done < <(both_ends)
}

# Puts h1's eth0 into a VRF; connections bind to it with SO_BINDTODEVICE (BIND)
tunnel_vrf()
{
	ip -n "${NSP}h1" link add vrf0 type vrf table 10 2>"$TMP/tunnel" || return 1
	ip -n "${NSP}h1" -batch - <<-END
		link set vrf0 up
		link set eth0 master vrf0
		-6 addr replace fd00:1::1/64 dev eth0 nodad
		route add default via 10.0.1.254 table 10
		-6 route add default via fd00:1::254 table 10
	END
	BIND=vrf0
	TO=$([ "${V6:-}" ] && echo fd00:0::1 || echo 10.0.0.1)
}

# tunnel_slave KIND OPTIONS...: a container with a device on top of h1's eth0 becomes the client
# (FROM)
tunnel_slave()
{
	add_ns c1
	ip -n "${NSP}h1" link add cont0 link eth0 type "$@" 2>"$TMP/tunnel" || return 1
	ip -n "${NSP}h1" link set cont0 netns "${NSP}c1"
	ip -n "${NSP}c1" -batch - <<-END
		link set cont0 up
		addr add 10.0.1.2/24 dev cont0
		addr add fd00:1::2/64 dev cont0 nodad
		route add default via 10.0.1.254
		route add default via fd00:1::254
	END
	FROM=c1
	TO=$([ "${V6:-}" ] && echo fd00:0::1 || echo 10.0.0.1)
}

# tunnel NAME: makes one of TUNNELS over a dumbbell; V6=1 for IPv6 outside. Afterwards TO is the
# address at which h1 (or the namespace FROM, bound to the device BIND) reaches r through it.
# Returns 1 if the kernel or a program lacks support; the reason is in $TMP/tunnel.
tunnel()
{
	local ns from to n

	FROM=h1 BIND='' TO=''
	case $1 in
	gre) tunnel_link "${V6:+ip6}gre" local LOCAL remote REMOTE ;;
	gre_key) tunnel_link "${V6:+ip6}gre" local LOCAL remote REMOTE key 7 ;;
	ipip) if [ "${V6:-}" ]; then tunnel_link ip6tnl mode any local LOCAL remote REMOTE
		else tunnel_link ipip local LOCAL remote REMOTE; fi ;;
	sit) [ -z "${V6:-}" ] || { echo "IPv4 outside only" >"$TMP/tunnel"; return 1; }
		tunnel_link sit local LOCAL remote REMOTE ;;
	vxlan) tunnel_link vxlan id 7 local LOCAL remote REMOTE dstport 4789 ;;
	geneve) tunnel_link geneve id 7 remote REMOTE ;;
	esp_transport) tunnel_esp transport ;;
	esp_tunnel) tunnel_esp tunnel ;;
	wireguard) tunnel_wireguard ;;
	vrf) tunnel_vrf ;;
	ipvlan) tunnel_slave ipvlan mode l2 ;;
	macvlan) tunnel_slave macvlan mode bridge ;;
	esac || return 1
	[ -z "$TO" ] || return 0
	while read -r ns from to n; do
		ip -n "$NSP$ns" -batch - <<-END
			link set tun0 up
			addr add fd09::$n/64 dev tun0 nodad
		END
		[ "$1" = sit ] || ip -n "$NSP$ns" addr add "10.9.0.$n/24" dev tun0
	done < <(both_ends)
	TO=$([ "$1" = sit ] && echo fd09::2 || echo 10.9.0.2)
}
