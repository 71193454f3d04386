# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034,SC2154	# shared with the other parts of lowq-tc
#
# Queues that more than one profile is made of.

# The limit of a queue with this THRESHOLD: --limit, or the largest of four
# thresholds, the bandwidth-delay product and 1000 packets. -> limit
limit=0
settle_limit() {	# THRESHOLD-BYTES WHAT
	local bdp=0 how=

	if has limit; then
		to_bytes limit
		limit=$REPLY
		if (($1 + frame > limit)); then
			fmt_queue "$1"
			refuse "--limit ${given[limit]}: $2 ($REPLY) must be at least one packet below it"
		fi
	else
		if ((rate)) && has rtt; then
			bytes_in "${opt[rtt]}"
			bdp=$REPLY
		fi
		limit=$((1000 * frame)) how=', the least by default'
		((4 * $1 <= limit)) || limit=$((4 * $1)) how=", four times $2"
		((bdp <= limit)) || limit=$bdp how=', the bandwidth-delay product'
	fi
	fmt_queue "$limit"
	explain "limit $REPLY$how"
	record limit_bytes "$limit"
}

# What red and gred take, as stock tc can set it, into `red_words`. tc picks the
# weight of the average from min, avpkt and burst: with avpkt * burst = min it is
# 1/2, the smallest that it can. BURST is in packets, or "step" for that, or "auto".
red_words=()
red_parameters() {	# LIMIT MIN MAX PROBABILITY BURST
	local min=$2 max=$3 probability=$4 burst=$5 avpkt=$frame bandwidth

	if [[ $burst == step ]]; then
		burst=$((min / frame))
		((burst)) || burst=1
		avpkt=$(((min + burst - 1) / burst))
	elif ((min < 2 * frame)); then
		avpkt=$(((min + 1) / 2))
	fi
	if [[ $burst == auto ]]; then
		floyd_burst "$min" "$max" "$avpkt"
		burst=$REPLY
	fi
	# Only the estimate of idle time uses it. tc takes no more than 34 Gb/s,
	# and cannot do with a packet that takes less than two of its ticks.
	bandwidth=${rate/#0/1000000000}
	((bandwidth <= 34000000000)) || bandwidth=34000000000
	((bandwidth <= avpkt * 62500000)) || bandwidth=$((avpkt * 62500000))
	fmt_rate "$bandwidth"
	# tc turns a probability of 1 into 2^32, which is 0 in 32 bits; the kernel
	# then takes something between 1/2 and 1.
	[[ $probability != 1 ]] || ((min == max)) || probability=0.99999999
	red_words=(limit "$1" min "$min" max "$max" avpkt "$avpkt" burst "$burst"
		bandwidth "$REPLY" probability "$probability")
}

red_queue() {	# PLACE HANDLE LIMIT MIN MAX PROBABILITY BURST FLAGS...
	red_parameters "${@:3:5}"
	add_qdisc "$1" "$2" red "${red_words[@]}" "${@:8}"
}

# What Floyd recommends, (2 min + max) / 3, or as much of it as the kernel has
# room for: its average has 32 bits, the fraction that the weight needs included.
# The function is how tc comes from a burst to a weight.
floyd_burst() {	# MIN MAX AVPKT
	REPLY=$(awk -v min="$1" -v max="$2" -v avpkt="$3" '
		function weight(burst,	a, w, log2) {
			a = burst + 1 - min / avpkt
			w = 0.5
			for (log2 = 1; log2 < 32; log2++) {
				if (a <= (1 - (1 - w) ^ burst) / w)
					return log2
				w /= 2
			}
			return 32
		}
		BEGIN {
			room = 31
			for (n = 1; n <= max; n *= 2)
				room--
			least = int(min / avpkt) + 1
			burst = int((2 * min + max) / (3 * avpkt)) + 1
			while (burst > least && weight(burst) > room)
				burst = least + int((burst - least) / 2)
			print (burst > least ? burst : least)
		}')
}

# Does this tc know WORD for KIND? Asks its help, which talks to no kernel.
tc_offers() {	# KIND WORD
	[[ $(tc qdisc add dev lo root "$1" help 2>&1) == *"$2"* ]] ||
		refuse "this tc ($(tc -V 2>&1 | sed 's/.*iproute2-//; s/,.*//')) has no '$2' for '$1'"
}
