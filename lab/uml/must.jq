# SPDX-License-Identifier: GPL-2.0
# jq -nr --slurpfile plan ... flows ... queues ... -f must.jq: a line for the flows that failed, and one for each of the
# plan's bounds that the results do not keep

# The value of nearest rank
def percentile($q): sort | .[((length * $q | ceil) - 1)];

def statistic($of): if $of == "count" then length elif length == 0 then null
	elif $of == "min" then min elif $of == "max" then max elif $of == "mean" then add / length
	else percentile({ p50: 0.5, p90: 0.9, p99: 0.99, p999: 0.999 }[$of]) end;

# A bound with what it is about, and its value
def measured: . as $m |
	if .queue then
		{ what: "\(.queue.node) \(.queue.dev) \(.value)",
		  value: ($queues[0].queues[] | select(.node == $m.queue.node and .dev == $m.queue.dev) |
			getpath($m.value / ".")) }
	else
		{ what: "flows \(.flows | map(.) | join(" ")) \(.of) of \(.value)",
		  value: ([$flows[] | select(.type == "flow" and .status == "ok" and
			($m.flows.label // .label) == .label and ($m.flows.kind // .kind) == .kind) |
			getpath($m.value / ".") | numbers] | statistic($m.of)) }
	end;

([$flows[] | select(.type == "flow" and .status != "ok" and .status != "stopped")] |
 if . == [] then empty else "\(length) of \([$flows[] | select(.type == "flow")] | length) flows failed; the first, from " +
	"\(.[0].client) to \(.[0].server): \(.[0].status)" end),
($plan[0].must // [] | to_entries[] | .key as $n | .value | . + measured |
if (.value | type) != "number" then "must[\($n)]: \(.what): no such value"
elif .most and .value > .most then "must[\($n)]: \(.what) is \(.value), not at most \(.most)"
elif .least and .value < .least then "must[\($n)]: \(.what) is \(.value), not at least \(.least)"
else empty end)
