# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Runs a plan in several kernels, each a process of its own with a part of the network.

# run_parts BUILD FLAVOUR COMMAND...: as run_guest does, in OPT_CORES kernels; their results are put together in OPT_OUT
run_parts()
{
	local share i pid status=0 failed

	PARTS=$(mktemp -d "${TMPDIR:-/tmp}/lowq-parts.XXXXXX") && share=$(mktemp /dev/shm/lowq-lab.XXXXXX) ||
		die "no temporary directory"
	# sparse: far more than lowq_link maps of it
	truncate -s 1T "$share" && exec {SHARE}<>"$share" && rm "$share" ||
		die "no shared memory"
	when_dead LIFE end_left "$PARTS"
	OPT_OUT=$PARTS/all
	mkdir "$OPT_OUT"
	for ((i = 0; i < OPT_CORES; i++)); do
		(
		trap clean_up EXIT
		trap 'exit 143' INT TERM HUP
		exec {LIFE}>&- 6<&"$SHARE"
		PARTS_RUN=()
		TMPDIR=$PARTS
		echo $BASHPID 2>/dev/null >"$PARTS/$i.pid" || exit
		PART=$i/$OPT_CORES run_guest "$@"
		failed=$?
		[ ! -d "$RUNDIR/out" ] || cp -r "$RUNDIR/out" "$PARTS/$i"
		exit $failed
		) &
		PARTS_RUN[i]=$!
	done
	while [ ${#PARTS_RUN[@]} -gt 0 ]; do
		wait -n -p pid "${PARTS_RUN[@]}"
		failed=$?
		[ $failed -le $status ] || status=$failed
		for i in "${!PARTS_RUN[@]}"; do
			[ "${PARTS_RUN[i]}" = "$pid" ] || continue
			unset "PARTS_RUN[i]"
			# 1: a flow has failed; the others end as they do without that
			[ $failed -gt 1 ] || continue
			say "process $((i + 1)) of $OPT_CORES has failed; the others are ended"
			return "$failed"
		done
	done
	put_together
	return $status
}

# end_left PARTS: what is left of them when this process is dead
end_left()
{
	cat "$1"/*.pid 2>/dev/null | xargs -r kill -KILL 2>/dev/null
	until rm -rf "$1" 2>/dev/null; do sleep 0.02; done
}

# end_parts: whatever ends this process
end_parts()
{
	[ ${#PARTS_RUN[@]} -eq 0 ] || { kill -TERM "${PARTS_RUN[@]}" 2>/dev/null; wait "${PARTS_RUN[@]}" 2>/dev/null; }
	PARTS_RUN=()
	[ -z "${PARTS:-}" ] || rm -rf "$PARTS"
}

# number NAME LINE: sets NAME to its value in a line of JSON
number()
{
	[[ $2 =~ \"$1\":([0-9]+) ]] && printf -v "$1" %s "${BASH_REMATCH[1]}"
}

# sum_up: reads the summaries of parts, prints that of all
sum_up()
{
	local next line='' flows ok failed bytes start_ns end_ns late_max_ns f=0 o=0 x=0 b=0 from=0 to=0 late=0 span rate

	while read -r next; do
		line=$next
		number flows "$line"; number ok "$line"; number failed "$line"; number bytes "$line"
		number start_ns "$line"; number end_ns "$line"; number late_max_ns "$line"
		f=$((f + flows)) o=$((o + ok)) x=$((x + failed)) b=$((b + bytes))
		[ "$late_max_ns" -le $late ] || late=$late_max_ns
		[ "$flows" -gt 0 ] || continue
		[ $from -gt 0 ] && [ "$start_ns" -ge $from ] || from=$start_ns
		[ "$end_ns" -le $to ] || to=$end_ns
	done
	span=$((to - from)) rate=null
	[ $span -le 0 ] || rate=$(awk "BEGIN { printf \"%.0f\", $b * 8e9 / $span - 0.5 }")
	sed -E "s/(.*\"flows\":).*(,\"zero_ns\".*)/\1$f,\"ok\":$o,\"failed\":$x,\"bytes\":$b,\"start_ns\":$from,\"end_ns\":$to,\"duration_ns\":$span,\"goodput_bps\":$rate,\"late_max_ns\":$late\2/" <<<"$line"
}

# merge_rows FILE...: rows by time; where there is a header, it is in each
merge_rows()
{
	case $1 in
	*/series.csv) head -qn1 "$1"; tail -qn+2 "$@" | LC_ALL=C sort -t, -k3,3n -k1,2 ;;
	*/acks.csv) head -qn1 "$1"; tail -qn+2 "$@" | LC_ALL=C sort -t, -k1,1n -k2 ;;
	*) LC_ALL=C sort -k1,1n -k2 "$@" ;;
	esac
}

# put_together: of all parts' results; what is the same for any number of parts has the same order
put_together()
{
	local dir file

	for dir in "$PARTS"/[0-9]; do
		[ -f "$dir/flows.jsonl" ] || return
	done
	cat "$PARTS"/[0-9]/flows.jsonl | LC_ALL=C awk '
		!/^{"type":"summary"/ { match($0, /"end_ns":[0-9]+/); print substr($0, RSTART + 9, RLENGTH - 9) "\t" $0 }' |
		LC_ALL=C sort | cut -f2- >"$OPT_OUT/flows.jsonl"
	grep -h '^{"type":"summary"' "$PARTS"/[0-9]/flows.jsonl | sum_up >>"$OPT_OUT/flows.jsonl"
	! compgen -G "$PARTS/[0-9]/queues.json" >/dev/null || jq -rs '"{\"queues\":[",
		(map(.queues) | add | sort_by(.node, .dev) | map(tojson) | join(",\n")),
		"],\"dropped_elsewhere\":\(map(.dropped_elsewhere) | add)}"' "$PARTS"/[0-9]/queues.json >"$OPT_OUT/queues.json"
	for file in series.csv acks.csv ss.txt; do
		compgen -G "$PARTS/[0-9]/$file" >/dev/null || continue
		merge_rows "$PARTS"/[0-9]/"$file" >"$OPT_OUT/$file"
	done
	for file in "$PARTS"/[0-9]/*; do
		case ${file##*/} in
		flows.jsonl|queues.json|series.csv|acks.csv|ss.txt) ;;
		kernel.log) dir=${file%/*}; cp "$file" "$OPT_OUT/kernel-${dir##*/}.log" ;;
		*) cp "$file" "$OPT_OUT/" ;;
		esac
	done
}
