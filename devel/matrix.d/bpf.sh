# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# A plan with a congestion control in BPF on Debian's kernels, by devel/qemu-plan. The script that sources this
# has sourced root.sh, and sets PROJECT and OUT.

BPF_KERNELS=(6.12 7)
BPF_EXAMPLE=$PROJECT/examples/bpf_example
BPF_CONTROL=$BPF_EXAMPLE/tcp_bpf_example.bpf.c

# bpf_plan KERNEL NAME PLAN [OPTION...]: qemu-plan's exit status. Results are in OUT/bpf/KERNEL-NAME, messages beside
# it in .log
bpf_plan()
{
	"$PROJECT/devel/qemu-plan" --kernel "$1" --out "$OUT/bpf/$1-$2" "${@:4}" "$3" >"$OUT/bpf/$1-$2.log" 2>&1
}

# bpf_kernel KERNEL: the example, whose plan wants 40 of 50 Mb/s. Its queue marks from 30 packets on: marks and no
# loss show that the program's callbacks answer them.
bpf_kernel()
{
	local dir=$OUT/bpf/$1-kept version text='no results' rc

	version=$(version_in "$(root_of "$1")")
	bpf_plan "$1" kept "$BPF_EXAMPLE/bpf.json" --bpf "$BPF_CONTROL" &&
		jq -e '.queues[0] | .marked > 0 and .dropped == 0 and .qlen_pkts.mean > 5 and .qlen_pkts.mean < 30' \
			"$dir/queues.json" >/dev/null
	rc=$?
	[ ! -s "$dir/queues.json" ] || text=$(jq -r '.queues[0] | "\(.utilisation * 1000 | round / 10) % of the link used, " +
		"\(.qlen_pkts.mean * 10 | round / 10) packets wait in the mean, \(.marked) marked, \(.dropped) lost"' "$dir/queues.json")
	result $rc "bpf: $version: the plan is kept ($text)" "$dir.log"
}

# bpf: TAP
bpf()
{
	local kernel dir=$OUT/bpf

	rm -rf "$dir"
	mkdir -p "$dir"
	for kernel in "${BPF_KERNELS[@]}"; do
		make_root "$kernel"
	done
	unlock_roots	# qemu-plan takes the lock
	for kernel in "${BPF_KERNELS[@]}"; do
		bpf_kernel "$kernel"
	done
	bpf_plan "$kernel" again "$BPF_EXAMPLE/bpf.json" --bpf "$BPF_CONTROL" &&
		cmp "$dir/$kernel-kept/flows.jsonl" "$dir/$kernel-again/flows.jsonl" >>"$dir/$kernel-again.log" 2>&1 &&
		cmp "$dir/$kernel-kept/queues.json" "$dir/$kernel-again/queues.json" >>"$dir/$kernel-again.log" 2>&1
	result $? "bpf: a second run gives the same digits" "$dir/$kernel-again.log"
	jq '.must[0].least = 60e6' "$BPF_EXAMPLE/bpf.json" >"$dir/more.json"
	bpf_plan "$kernel" more "$dir/more.json" --bpf "$BPF_CONTROL"
	[ $? -eq 1 ] && grep -q 'must\[0\]' "$dir/$kernel-more.log"
	result $? "bpf: a bound that does not hold is named" "$dir/$kernel-more.log"
	bpf_plan "$kernel" none "$BPF_EXAMPLE/bpf.json"
	[ $? -eq 125 ] && grep -q "no control 'bpf_example'" "$dir/$kernel-none.log"
	result $? "bpf: a control that nobody registers is named" "$dir/$kernel-none.log"
	lock_roots
}
