# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034,SC2154	# shared with the other parts of lowq-tc
#
# Where the tree of a profile goes: below an htb class that shapes, below every
# queue of a multi-queue device, or at the root.

readonly root_handle=10f0	# every tree of ours hangs below this one
shape=0
shape_burst=0

# Settles the rate and whether there is a shaper.
settle_rate() {
	local profile=$1

	if has shape && has no-shape; then
		refuse "--shape and --no-shape contradict each other"
	fi
	if has rate; then
		rate=${opt[rate]}
	else
		rate=$link_rate
		! has shape || refuse "--shape needs --rate"
	fi
	if has shape; then
		shape=1
	elif ((software)) && has rate && ! has no-shape; then
		shape=1
		note "$dev has no line of its own (${kind/#-/software}): shaped to --rate; --no-shape if something else limits it"
	elif ((software)) && ! has no-shape; then
		refuse "$dev has no line rate of its own: give --rate, to which it is then shaped, or --no-shape"
	elif has rate && ((link_rate > rate)); then
		fmt_rate "$link_rate"
		note "$dev sends at $REPLY: its queue does not grow at --rate unless something limits it to that; --shape would"
	elif has rate && ((link_rate && rate > link_rate)); then
		fmt_rate "$link_rate"
		note "--rate ${given[rate]} is above the $REPLY of $dev"
	fi
	rate_k=$(((rate + 999) / 1000))
	if has shape-burst; then
		((shape)) || refuse "--shape-burst needs a shaper: --shape"
		to_bytes shape-burst
		shape_burst=$REPLY
	elif ((shape)); then
		# One packet, and no less than two ticks (64 ns) of htb's clock.
		bytes_in 128
		shape_burst=$((REPLY > frame ? REPLY : frame))
	fi
	if ((shape)); then
		drain_time "$shape_burst"
		if ((REPLY < 5000)); then
			fmt_time "$REPLY"
			note "the shaper lets $REPLY worth through at once: exact, but timers of real machines are later than that; --shape-burst 50us if the rate is not reached"
		fi
	fi
	if ((shape && queues > 1)); then
		note "one shaper for all $queues queues of $dev: one lock for all CPUs"
	fi
	if ((!rate)) && [[ " ${profile_options[$profile]} " == *" rtt "* ]] && ! has k; then
		refuse "$dev tells no link speed: give --rate"
	fi
}

make_frame() {
	local profile=$1 rate_text i n

	if has gso-segs; then
		extra "ip link set dev $dev gso_max_segs $gso_segs" \
			ip link set dev "$dev" gso_max_segs "${opt[gso-segs]}"
	fi
	if ((shape)); then
		fmt_rate "$rate"
		rate_text=$REPLY
		i=$((frame < 1000 ? 1000 : frame > 200000 ? 200000 : frame))
		add_qdisc root "$root_handle" htb default 1
		plan tc class add dev "$dev" parent "$root_handle:" classid "$root_handle:1" \
			htb rate "$rate_text" ceil "$rate_text" \
			burst "$shape_burst" cburst "$shape_burst" quantum "$i"
		"${profile}_tree" "parent $root_handle:1" 10f1
	elif ((queues > 1)); then
		add_qdisc root "$root_handle" mq
		for ((n = 1; n <= queues; n++)); do
			printf -v i '%x %x' "$n" $((16#$root_handle + n))
			"${profile}_tree" "parent $root_handle:${i% *}" "${i#* }"
		done
	else
		"${profile}_tree" root "$root_handle"
	fi
}

# Marking works on what reaches the queue. What reaches it as one is marked as one.
advise() {	# THRESHOLD-BYTES
	local segs most=${opt[gso-segs]:-$gso_segs}

	segs=$((gso_size / frame))
	((segs <= most)) || segs=$most
	if ((segs > 1)); then
		note "GSO/TSO: up to $segs packets reach the queue as one, and are marked or dropped as one$( (($1 < segs * frame)) && printf ', more than the threshold'): where $dev sends itself, --gso-segs 1; where it forwards, 'ethtool -K IN gro off' on the devices that feed it"
	fi
	if ((!software && !shape)); then
		case $bql in
		none | '' | 0) note "$dev shows no byte queue limits at work: packets wait in its ring, where nothing marks them; make it short ('ethtool -G $dev tx N') or shape a little below the line rate (--shape)" ;;
		*) note "byte queue limits let $bql bytes wait below this queue at present, unmarked; cap them in /sys/class/net/$dev/queues/tx-*/byte_queue_limits/limit_max" ;;
		esac
	fi
	if ((!shape && queues > 1)); then
		note "$queues queues, each with the whole threshold and limit; when 'ethtool -L' changes their number, set it again"
	fi
}
