# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# The tables of devel/ack-cost, from OUT/cells. devel/ack-cost has set OUT and BEFORE.

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
