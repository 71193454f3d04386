# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# The tables and the page of devel/ack-cost, from OUT/cells. Who sources this has set OUT, RESULTS,
# BEFORE, ARGS and PARTS.

# shellcheck disable=SC2016 # jq's own $
JQ_TABLE='
def fixed($n): . * pow(10; $n) | round / pow(10; $n);
# rows of cells of one kernel -> a table of f; columns in the order in which they were measured
def table(f):
	(.[0].row as $first | map(select(.row == $first))) as $columns |
	"| | " + ($columns | map("\(.workload), \(.marks) %\(if .gso == 1 then ", GSO" else "" end)") | join(" | ")) + " |",
	"|---" + ($columns | map("|---:") | join("")) + "|",
	([.[].row] | reduce .[] as $r ([]; if any(.[]; . == $r) then . else . + [$r] end))[] as $row |
		"| \($row) | " + (map(select(.row == $row) | f | tostring) | join(" | ")) + " |";
def limits: { dctcp_ref: "dctcp", ldcp: "dctcp", prague: "bbr", hpccpp: "bbr" };
# HPCC++ sends packets of its own: so many times its limit
def times($row; $workload): if $row != "hpccpp" then 1 elif $workload == "long" then 2 else 5 end;
# of cells of one kernel: what each packet that a host sends costs more where our modules are loaded
def foreign: . as $all | map(select(.row | startswith("others"))) | map(. as $o |
	($all[] | select(.row == "cubic" and .workload == $o.workload and .marks == $o.marks and .gso == $o.gso)) as $c |
	$o + { more: (($o.instructions - $c.instructions) / ($o.packets + $o.acks)) });
'

# goals: a line per goal and kernel, with "met" or "missed"
goals()
{
	jq -sr "$JQ_TABLE"'
	group_by(.kernel)[] | . as $all | .[0].kernel as $kernel |
	(limits | to_entries[] | .key as $row | .value as $limit |
		[$all[] | select(.row == $row) | . as $c | ($all[] | select(.row == $limit and .workload == $c.workload and .marks == $c.marks and .gso == $c.gso)) as $l |
			times($row; .workload) as $t |
			{ c: "\(.workload), \(.marks) %\(if .gso == 1 then ", GSO" else "" end)", t: $t, r: (.per_ack / $l.per_ack / $t), own: (.own_per_ack / $l.own_per_ack / $t) }] |
		if length == 0 then empty else
			(map(select(.r > 1))) as $over | max_by(.r) as $worst |
			"- \($kernel): \($row), no more than \(if $row == "hpccpp" then "twice \($limit), with requests five times" else $limit end): " +
			(if $over == [] then "met in all \(length) cells" else "missed in \($over | length) of \(length) cells (in \(map(select(.own > 1)) | length) without the packets that it sends), at most \($worst.r * $worst.t | fixed(2)) times (\($worst.c))" end) + "." end),
	($all | foreign | group_by(.row)[] | (map(.more) | add / length) as $mean |
		# 2.2 standard errors: 95 % for 12 cells
		(if length > 1 then 2.2 * ((map(.more - $mean | . * .) | add) / (length - 1) / length | sqrt) else 0 end) as $wide |
		"- \($kernel): packets of other controls where \(if .[0].row == "others" then "prague and ldcp" else "hpccpp and int_reflector" end) are loaded, below 60 more: \(if $mean + $wide < 60 then "met" else "missed" end), \($mean | fixed(1)) ± \($wide | fixed(1)) in the mean of the cells; our hooks were called \(map(.hook_calls) | add) times.")' "$OUT/cells"
}

# each_kernel F SELECT: a table of F for each kernel
each_kernel()
{
	jq -sr "$JQ_TABLE group_by(.kernel)[] | . as \$all | \"\", \"Linux \(.[0].kernel)\", \"\", (\$all | map($2) | table($1))" "$OUT/cells"
}

# compared: what the older results.csv says of our controls, beside the present cells
compared()
{
	jq -sr --rawfile before "$BEFORE" "$JQ_TABLE"'
	($before | split("\n") | map(select(. != "") | split(",")) | .[0] as $names | .[1:] |
		map([$names, .] | transpose | map({ (.[0]): .[1] }) | add)) as $old |
	"| kernel | control | flow | before | after |", "|---|---|---|---:|---:|",
	(.[] | . as $c | select(limits[.row]) |
		($old[] | select(.kernel == $c.kernel and .row == $c.row and .workload == $c.workload and
			.marks == "\($c.marks)" and .gso == "\($c.gso)")) as $o |
		"| \(.kernel) | \(.row) | \(.workload), \(.marks) %\(if .gso == 1 then ", GSO" else "" end) | \($o.per_ack | tonumber | round) | \(.per_ack | round) |")' "$OUT/cells"
}

numbers()
{
	echo "Instructions per ACK: the control's callbacks, and our netfilter hooks for its packets."
	each_kernel '.per_ack | round' 'select(.row | startswith("others") | not)'
	echo
	echo "Of these, the stack's own for packets that the control sends at once: the ACKs of RFC 8257"
	echo "3.2 on a change of the CE state, and HPCC++'s probes and their answers."
	each_kernel '.sent / .acks | round' 'select(.row | IN("dctcp", "dctcp_ref", "ldcp", "hpccpp"))'
	echo
	echo "Instructions of our netfilter hooks per packet sent."
	each_kernel '.hooks_per_packet | round' 'select(.row | IN("prague", "hpccpp"))'
	echo
	echo "What a packet of CUBIC, data or ACK, costs more where prague and ldcp are loaded (others), or hpccpp"
	echo "and int_reflector (others_hpccpp): the whole machine's instructions, nf_hook_slow() included, less"
	echo "those without them. Where no hook of ours is called this is chance: with requests two runs of CUBIC"
	echo "may differ by 100 per packet."
	jq -sr "$JQ_TABLE group_by(.kernel)[] | \"\", \"Linux \(.[0].kernel)\", \"\", (foreign | table(.more | fixed(1)))" "$OUT/cells"
	echo
	echo "Millions of instructions of the whole transfer, both hosts and the switch."
	each_kernel '.instructions / 1e6 | fixed(1)' .
	if [ "$BEFORE" ]; then
		echo
		echo "Before and after, instructions per ACK."
		echo
		compared
	fi
}

tables()
{
	numbers
	echo
	goals
}

publish()
{
	mkdir -p "$RESULTS"
	jq -r '[.kernel, .row, .workload, .marks, .gso, .acks, .packets, .retransmitted, .marked, .us, .callbacks, .hooks, .sent,
		.hook_calls, .callbacks_per_ack, .hooks_per_packet, .per_ack, .instructions, .busy, .lost] | @csv' "$OUT/cells" |
		tr -d '"' | sed '1i kernel,row,workload,marks,gso,acks,packets,retransmitted,marked,us,callbacks,hooks,sent,hook_calls,callbacks_per_ack,hooks_per_packet,per_ack,instructions,busy,lost' >"$RESULTS/results.csv"
	[ -z "$BEFORE" ] || cp "$BEFORE" "$RESULTS/before.csv"
	{
		cat <<-END
		# What an ACK costs

		**Question.** How many instructions does an ACK cost under each control?

		    h --- switch === 200 Mb/s === r        base RTT 10 ms, one virtual CPU for all
		                  marks 0, 1 or 50 %

		    devel/ack-cost $ARGS

		END
		jq -sr "$JQ_TABLE"'(map(.kernel) | unique) as $k | map(select(.workload == "long" and .marks == 1)) |
			map(select(.kernel == $k[-1])) | sort_by(.gso) | . as $all | [.[] | select(.gso == $all[0].gso)] |
			"**Answer.** Instructions that an ACK of a long flow with 1 % of its packets marked costs: " +
			(map(select(.row | IN("reno", "dctcp", "dctcp_ref", "ldcp", "bbr", "prague", "hpccpp")) | "\(.per_ack | round) under \(.row)") | join(", ")) + "."' "$OUT/cells"
		echo
		goals >"$OUT/goals"
		echo "**Goal.** $(grep -c ': met' "$OUT/goals") of $(wc -l <"$OUT/goals") goals met"
		printf '\n## Goals\n\n'
		cat "$OUT/goals"
		printf '\n## Numbers\n\n'
		numbers
		cat <<-'END'

		## How it is counted

		Debian's kernel runs in QEMU (TCG, `-icount shift=0`), one CPU that executes
		one instruction per nanosecond, booted from memory without a disk. A plugin of QEMU's counts the
		instructions between a function's first one and its return; interrupts and softirqs on top of
		it are not part of it. Nothing is added to the guest. The callbacks are those of both ends, divided by
		the ACKs that the sender got. Kernels without Accurate ECN run prague with `dctcp_feedback=1`. An
		instruction is not a nanosecond: a division or a cache miss counts as one.

		## Why ours cost more

		The kernel has one ECN field for all packets of a socket, and writes ECT(0)
		there (`tcp_ecn_send`), so prague chooses it for each packet, and ldcp in the first RTT, in a `queue_xmit` of
		its sockets; SYN-ACKs have a netfilter hook, in namespaces where prague listens. ldcp sets window and pacing
		rate for each ACK, in fixed point, with a 64-bit division each. hpccpp asks by packets of its own, since
		nothing can be added to TCP's, once per RTT: to send a probe and its answer takes the stack alone 2900
		instructions, and with GSO, which makes ACKs rare, or with requests of a few RTTs there are few ACKs to share
		them. On a change of the CE state dctcp_ref and ldcp send the ACK that is due for the packets before it (RFC
		8257 3.2); Linux's dctcp does so only where a timer waits, and otherwise one ACK covers both states.

		The hook that hpccpp and int_reflector share is only in namespaces with a connection of hpccpp's or with probes.
		There each packet that arrives pays some 100 instructions for it, most of them the stack's way to a hook; the
		hook itself takes 13.

		Prague's goal is 450 in the cell of the answer above, in which it took 550 before. Long flows meet it, except with
		GSO and half of the packets marked; requests do not, which took 486 to 514 before: each follows a pause and ends
		after a few ACKs, so that these share what prague does at a pause (alpha averages over it, slow start begins again)
		and in slow start (it judges the RTT, as HyStart++ does, and the rate at which the first flight arrived).

		With GSO prague sends four segments at once at this rate (`burst_us`, 250 by default), others more, so that a whole
		transfer costs it more: with 1 % of marks 154 million instructions with 10 us, 72 with 250, 33 with 1000
		(`devel/ack-cost --rows prague --options burst_us=N`), BBR's 31. What that buys is little: at p99 packets of one flow
		wait for 1.04, 1.07 and 1.12 ms ([prague-burst](../prague-burst/README.md)).

		Each cell is in [results.csv](results.csv).
		END
		[ -z "$BEFORE" ] || echo "The numbers before the modules were changed: [before.csv](before.csv)."
	} >"$RESULTS/README.md"
	say "published: bench/results/ack-cost/"
}
