# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034,SC2154	# shared with the other parts of lowq-tc
#
# What was there before lowq-tc: the commands that make it again.

remade=()	# how, once the root qdisc is gone

# Turns what `tc -j -d qdisc show` says of a root qdisc into the words that make
# it again, one qdisc a line; fails on everything of which this is not sure:
# an option that is not listed here, classes, filters.
# shellcheck disable=SC2016
readonly remake='
def only(known): . as $q | ((.options // {} | keys) - known)
	| if length > 0 then error("its option " + .[0]) else $q end;
def codel_us: . as $s	# 1.024 us clock, shown rounded down
	| if ((($s * 1000 / 1024 | floor) * 1024 / 1000) | floor) == $s
	  then $s else $s + 1 end | "\(.)us";
def word(k; f): if .options[k] == null then [] else [k, (.options[k] | f)] end;
def number(k): word(k; tostring);
def us(k): word(k; "\(.)us");
def rate(k): word(k; "\(. * 8)bit");
def flag(k; yes; no): if .options[k] then [yes] else no end;
def say:
	if .kind == "noqueue" then only([]) | []
	elif .kind == "pfifo_fast" then
		(if .options.priomap != [1,2,2,2,1,2,0,0,1,1,1,1,1,1,1,1]
		 then error("its priomap") else . end) | []
	elif .kind == "mq" then only([]) | []
	elif .kind == "pfifo" or .kind == "bfifo" then only(["limit"]) | number("limit")
	elif .kind == "prio" then
		(only(["bands", "priomap", "multiqueue"]) | if .options.multiqueue
		 then error("its multiqueue") else . end) | number("bands")
		+ ["priomap"] + (.options.priomap | map(tostring))
	elif .kind == "codel" then
		(only(["limit", "target", "interval", "ecn", "ce_threshold"]) | [])
		+ number("limit") + word("target"; codel_us) + word("interval"; codel_us)
		+ word("ce_threshold"; codel_us) + flag("ecn"; "ecn"; ["noecn"])
	elif .kind == "fq_codel" then
		(only(["limit", "flows", "quantum", "target", "interval", "ecn",
		       "ce_threshold", "memory_limit", "drop_batch"]) | [])
		+ number("limit") + number("flows") + number("quantum")
		+ word("target"; codel_us) + word("interval"; codel_us)
		+ word("ce_threshold"; codel_us) + number("memory_limit")
		+ number("drop_batch") + flag("ecn"; "ecn"; ["noecn"])
	elif .kind == "fq" then
		(only(["limit", "flow_limit", "buckets", "orphan_mask", "quantum",
		       "initial_quantum", "low_rate_threshold", "refill_delay",
		       "ce_threshold", "timer_slack", "horizon", "horizon_drop",
		       "horizon_cap", "maxrate", "pacing"]) | [])
		+ number("limit") + number("flow_limit") + number("buckets")
		+ number("orphan_mask") + number("quantum") + number("initial_quantum")
		+ rate("low_rate_threshold") + rate("maxrate") + us("refill_delay")
		+ us("ce_threshold") + us("horizon") + word("timer_slack"; "\(.)ns")
		+ (if .options.pacing == false then ["nopacing"] else [] end)
		+ (if .options | has("horizon_cap") then ["horizon_cap"]
		   elif .options | has("horizon_drop") then ["horizon_drop"] else [] end)
	elif .kind == "netem" then
		(only(["limit", "delay", "ecn", "gap"])
		 | if .options.ecn or .options.gap != 0
		   or (.options.delay.correlation // 0) != 0
		   then error("its options") else [] end) + number("limit")
		+ word("delay"; "\(.delay)s")
		+ (if (.options.delay.jitter // 0) == 0 then []
		   else ["\(.options.delay.jitter)s"] end)
	else error("a kind lowq-tc does not know to make again") end;
(map(select(.root)) | .[0]) as $root
| map(select(.root | not)) as $children
| if $root == null then empty
  elif $root.handle == "0:" then empty
  elif $root.kind != "mq" and ($children | length) > 0 then error("its classes")
  else $root, ($children[] | select(.handle != "0:"))
	| [(if .root then "root" else "parent \(.parent)" end), .handle, .kind]
	+ say | @tsv
  end'

# Fills `remade` with the commands that bring the present set-up back once the
# root qdisc has been deleted. Fails, with REPLY the reason, where it cannot.
remake_qdiscs() {
	local text place handle args default

	remade=()
	if [[ $root_is == *" 0:" ]]; then
		# The kernel's own choice comes back by itself, if it still is
		# what the kernel would choose. Readable in the first namespace only.
		default=$(cat /proc/sys/net/core/default_qdisc 2>/dev/null)
		text=$(jq -r --arg d "${default:-}" '.[]
			| select($d != "" and .kind != $d and .kind != "mq"
				and .kind != "noqueue" and .kind != "noop"
				and .kind != "pfifo_fast") | .kind' <<<"$qdiscs")
		if [[ $text ]]; then
			REPLY="'${text%%$'\n'*}', while the kernel's default is '$default' by now"
			return 1
		fi
		return 0
	fi
	[[ $root_is ]] || return 0
	if ! text=$(jq -r "$remake" <<<"$qdiscs" 2>&1); then
		text=${text##*: }
		REPLY="'${root_is% *}' (${text})"
		return 1
	fi
	if [[ $(tc_ filter show dev "$dev" 2>/dev/null) ]]; then
		REPLY="'${root_is% *}' (its filters)"
		return 1
	fi
	while IFS=$'\t' read -r place handle args; do
		remade+=("tc qdisc add dev $dev $place handle $handle ${args//$'\t'/ }")
	done <<<"$text"
	# Not by reading alone: make it in a namespace of its own and compare.
	if has no-rehearsal || has dry-run; then
		return 0
	fi
	rehearse "${remade[@]}"
	case $? in
	0) [[ $(comparable <<<"$qdiscs") != "$(comparable <<<"$REPLY")" ]] || return 0 ;;
	2) return 0 ;;
	esac
	REPLY="'${root_is% *}' (would not come out the same)"
	return 1
}

comparable() {
	jq -cS 'map(select(.handle != "0:") | del(.refcnt, .offloaded, .dev))
		| sort_by(.parent // "")'
}
