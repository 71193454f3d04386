# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Machines in QEMU without a disk, whose time is their own. The script that sources this sets what root.sh needs.

# shellcheck source=devel/matrix.d/root.sh
. "$PROJECT/devel/matrix.d/root.sh"

# make_initrd DIR ROOT INIT FILE...: DIR/initrd, with the programs of the root that PROGRAMS names, those of
# its kernel's modules that MODULES names, INIT, and FILE... in /lowq. A program with a path is of BIND, and only
# the libraries that it needs are taken.
make_initrd()
{
	local to=$1/initrd.d root=$2 init=$3 version program file

	version=$(version_in "$root")
	rm -rf "$to"
	mkdir -p "$to"/{lowq,proc,sys,dev,tmp,run,usr/bin,usr/sbin,usr/lib,usr/lib64}
	ln -s usr/bin usr/sbin usr/lib usr/lib64 "$to"
	{
		for program in "${PROGRAMS[@]}"; do
			# shellcheck disable=SC2016 # the inner shell expands
			in_root "$root" sh -c 'p=$(command -v "$1") && echo "$p" && readlink -f "$p" && ldd "$p"' sh "$program" ||
				{ say "no $program in $root"; return 1; }
		done
		for program in "${MODULES[@]}"; do
			modprobe -d "$root" -S "$version" --show-depends "$program" | sed -n "s,^insmod $root,,p"
		done
		(cd "$root" && ls usr/lib/modules/"$version"/modules.* 2>/dev/null)
	} >"$1/files.found" || return
	grep -oE '[^[:space:]]*/[^[:space:]]*' "$1/files.found" | sed 's,^/*,/,; s,^/\(bin\|sbin\|lib\|lib64\)/,/usr/\1/,' | LC_ALL=C sort -u >"$1/files"
	while read -r file; do
		[ -e "$root$file" ] || [ -L "$root$file" ] || continue
		mkdir -p "$to${file%/*}"
		# alternatives are links to absolute paths
		cp "$(in_root "$root" readlink -f "$file" | sed "s,^,$root,")" "$to$file"
	done <"$1/files"
	cp -rL "$init" "${@:4}" "$to/lowq/" && ln -s "lowq/${init##*/}" "$to/init" || return
	# the same bytes for the same files
	(cd "$to" && find . -exec touch -hd @0 {} + && find . | LC_ALL=C sort |
		cpio --quiet --reproducible -o -H newc) >"$1/initrd"
}

# boot DIR ROOT INITRD SECONDS WORDS [QEMU OPTION...]: boots the root's kernel with these words on its command
# line, for SECONDS at most; DIR/console has what it says. With "-icount shift=0,sleep=off" its one CPU
# executes one instruction per nanosecond, and it does not matter how busy this machine is.
boot()
{
	local dir=$1

	# Without cx16: when an interrupt follows cmpxchg16b, QEMU 7.2 corrupts EFLAGS. No
	# rdrand, a seed and a clock of its own: the same random numbers in each run.
	timeout --foreground "$4" qemu-system-x86_64 -accel tcg -cpu max,-cx16,-rdrand,-rdseed -smp 1 -m "${MEMORY:-1G}" \
		-seed 1 -rtc base=2026-01-01,clock=vm -nodefaults -display none -no-reboot \
		-serial "file:$dir/console" -kernel "$2/boot/vmlinuz-$(version_in "$2")" -initrd "$3" \
		-append "console=ttyS0 quiet panic=-1 net.ifnames=0 nokaslr mitigations=off $5" \
		"${@:6}" </dev/null >"$dir/qemu.log" 2>&1
}
