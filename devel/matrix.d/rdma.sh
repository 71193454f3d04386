# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# RDMA programs over soft-RoCE without roce_rcm and with it, on Debian's kernel. The script that
# sources this has sourced root.sh, and sets PROJECT, CACHE and OUT.

RDMA_KERNEL=6.12
RDMA_PROGRAMS=(ib_send_bw ib_read_bw rping nvme-read nvme-write)
RDMA_MODULES=(veth rdma_rxe rdma_ucm ib_uverbs crc32_generic crc32-pclmul nvmet-rdma nvme-rdma null_blk)
RDMA_LEAST=0.95		# of the throughput without the module
RDMA_MINUTES=5

# rdma_initrd DIR KERNEL-ROOT: DIR/initrd, all that the machine needs. Without a disk its time is
# its own.
rdma_initrd()
{
	local to=$1/initrd.d version file

	version=$(version_in "$2")
	rm -rf "$to"
	mkdir -p "$to/lowq" "$to/usr/lib/modules/$version"
	tar -C "$(root_of rdma)" --exclude=./var --exclude=./boot --exclude='./usr/share/[!d]*' \
		--exclude='./usr/share/doc/[!r]*' --exclude=./usr/include --exclude='*/perl*' --exclude='*/gconv' \
		--exclude=./usr/lib/systemd --exclude=./usr/lib/python3.*/test -cf - . | tar -C "$to" -xf - || return
	gunzip "$to"/usr/share/doc/rdma-core/tests/*.gz
	for file in "${RDMA_MODULES[@]}"; do
		modprobe -d "$2" -S "$version" --show-depends "$file" || return
	done | sed -n "s,^insmod $2/*,,p" | sed 's/ .*//; s,^lib,usr/lib,' | sort -u | while read -r file; do
		install -D -m 644 "$2/$file" "$to/$file" || exit
	done || return
	cp "$2/usr/lib/modules/$version"/modules.* "$to/usr/lib/modules/$version/" &&
		cp "$1/src/roce_rcm.ko" "$to/lowq/" && cp "$PROJECT/devel/matrix.d/rdma-guest" "$to/init" || return
	(cd "$to" && find . | LC_ALL=C sort | cpio --quiet -o -H newc) >"$1/initrd"
	rm -rf "$to"
}

# rdma_machine DIR KERNEL-ROOT PROGRAM...: what it says is in DIR/said. One CPU that executes one
# instruction per nanosecond, and a clock of its own: the numbers do not depend on how busy this
# machine is. pyverbs' tests are not measured, and run faster without that.
rdma_machine()
{
	local dir=$1 version line count=(-icount "shift=0,sleep=off")

	[ "$3" != pyverbs ] || count=()
	mkdir -p "$dir"
	rm -f "$dir/console"
	version=$(version_in "$2")
	timeout "$BOOT_TIMEOUT" qemu-system-x86_64 -accel tcg "${count[@]}" \
		-cpu max,-cx16,-rdrand,-rdseed -smp 1 -m 2G -seed 1 -rtc base=2026-01-01,clock=vm \
		-nodefaults -display none -no-reboot -serial "file:$dir/console" \
		-kernel "$2/boot/vmlinuz-$version" -initrd "${dir%/*}/initrd" \
		-append "console=ttyS0 quiet panic=-1 net.ifnames=0 nokaslr mitigations=off preempt=none lowq_programs=$(IFS=,; echo "${*:3}")" \
		</dev/null >"$dir/qemu.log" 2>&1 &
	# what has been measured, while it runs
	tail --pid=$! -s 5 -n +1 -F "$dir/console" 2>/dev/null | sed -un 's/\r$//; s/^.*LOWQ: //p' |
		while IFS= read -r line; do
			echo "$line"
			say "rdma: $(jq -r '"\(.program), \(.row)"' <<<"$line" 2>/dev/null || echo "$line")"
		done >"$dir/said"
	wait $!
}

# rdma_rows DIR: a line of JSON per program: throughput in Mb/s and CPU time per packet in ns, without
# the module (the mean of before and after it), with it, and how far before and after are apart
rdma_rows()
{
	grep '^{' "$1/said" | jq -sc '
		[.[] | select(.n)] | group_by(.program)[] |
		[group_by(.row)[] | sort_by(.n) | .[-1] as $many |
			(if length > 1 then .[0] else $many + { packets: 0, us: 0, idle_ns: 0, bytes: 0 } end) as $few |
			{ row: $few.row, program: $few.program, packets: ($many.packets - $few.packets),
			us: ($many.us - $few.us), idle: (($many.idle_ns - $few.idle_ns) / 1000), bytes: ($many.bytes - $few.bytes) } |
			{ program, row, mbps: (.bytes * 8 / .us), ns: ((.us - .idle) * 1000 / .packets) }] |
		(map({ (.row): . }) | add) as $r | (($r.without.mbps + $r.again.mbps) / 2) as $mbps |
		(($r.without.ns + $r.again.ns) / 2) as $ns |
		{ program: .[0].program, without_mbps: $mbps, with_mbps: $r.with.mbps, throughput: ($r.with.mbps / $mbps),
		without_ns: $ns, with_ns: $r.with.ns, cpu: ($r.with.ns / $ns),
		apart: ([$r.without.mbps / $r.again.mbps, $r.again.mbps / $r.without.mbps] | max - 1) }'
}

# rdma_table DIR: Markdown
rdma_table()
{
	echo '| program | throughput without, Mb/s | with | ratio | CPU time per packet without, ns | with | ratio |'
	echo '|---|---:|---:|---:|---:|---:|---:|'
	rdma_rows "$1" | jq -r '
		def fixed($n): . * pow(10; $n) | round / pow(10; $n);
		"| \(.program) | \(.without_mbps | round) | \(.with_mbps | round) | \(.throughput | fixed(3)) | \(.without_ns | round) | \(.with_ns | round) | \(.cpu | fixed(3)) |"'
}

# rdma: TAP
rdma()
{
	local dir=$OUT/rdma kernel line version

	make_root $RDMA_KERNEL
	kernel=$(root_of $RDMA_KERNEL)
	version=$(version_in "$kernel")
	rm -rf "$dir"
	mkdir -p "$dir"
	copy_sources "$dir/src"
	BIND=$dir/src in_root "$kernel" make -C "/lib/modules/$version/build" M=/mnt -j"$(nproc)" roce_rcm.ko >"$dir/build.log" 2>&1 &&
		rdma_initrd "$dir" "$kernel" >"$dir/initrd.log" 2>&1
	result $? "rdma: roce_rcm builds for $version, and a machine to try it in" "$dir/build.log" || return
	unlock_roots	# others need not wait: the roots are only read
	say "rdma: booting (about $RDMA_MINUTES minutes)"
	rdma_machine "$dir/measured" "$kernel" "${RDMA_PROGRAMS[@]}"
	rdma_machine "$dir/pyverbs" "$kernel" pyverbs
	lock_roots
	for line in measured pyverbs; do
		grep -q '^done$' "$dir/$line/said" && ! grep -E "$SPLATS" "$dir/$line/console" >"$dir/splats"
		result $? "rdma: the machine ran to the end ($line)" "$dir/$line/console"
	done
	rdma_table "$dir/measured" | tee "$dir/table.md" | sed 's/^/# /'
	while IFS= read -r line; do
		jq -e ".throughput >= $RDMA_LEAST" <<<"$line" >/dev/null
		result $? "rdma: $(jq -r '"\(.program): \(.throughput * 1000 | round / 1000) of the throughput without roce_rcm"' <<<"$line")"
	done < <(rdma_rows "$dir/measured")
	jq -e -s 'map(select(.program == "pyverbs")) | .[0].ok > 0 and .[1].ok >= .[0].ok and .[1].failed <= .[0].failed' \
		< <(grep '^{' "$dir/pyverbs/said") >/dev/null
	result $? "rdma: $(grep '^{' "$dir/pyverbs/said" | jq -rs 'map(select(.program == "pyverbs") |
		"\(.row): \(.ok) passed, \(.failed) failed, \(.skipped) skipped") | "pyverbs'\'' tests, " + join("; ")')"
}
