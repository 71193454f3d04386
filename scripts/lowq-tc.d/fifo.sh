# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2154	# options and facts come from lowq-tc
#
# fifo: drop-tail without marks, the baseline.

profile fifo 'drop-tail without marks: the baseline' limit

fifo_words=()

fifo_compute() {
	record rate_bps "$rate"
	record frame_bytes "$frame"
	case ${opt[limit]:-1000p} in
	*p)
		fifo_words=(pfifo limit "${opt[limit]:-1000p}")
		fifo_words[2]=${fifo_words[2]%p}
		record limit_packets "${fifo_words[2]}"
		explain "limit ${fifo_words[2]} packets, whatever their size"
		;;
	*)
		to_bytes limit
		((REPLY >= frame)) || refuse "--limit ${given[limit]}: less than one packet ($frame bytes)"
		fifo_words=(bfifo limit "$REPLY")
		record limit_bytes "$REPLY"
		fmt_queue "$REPLY"
		explain "limit $REPLY"
		;;
	esac
}

fifo_tree() {	# PLACE HANDLE
	add_qdisc "$1" "$2" "${fifo_words[@]}"
}
