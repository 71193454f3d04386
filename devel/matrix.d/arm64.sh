# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Debian's arm64 kernels in an emulated machine, for devel/matrix: the modules that build_arm64 has built are
# loaded, tested and unloaded. Programs come from a root that is only extracted, since nothing of it can run here.

ARM64_KERNEL=6.12
ARM64_TIMEOUT=3600
ARM64_PACKAGES=bash,coreutils,iproute2,kmod,procps,mawk,sed,grep,findutils,util-linux,mount,nftables,ethtool,jq,python3,libc6-dev,libmnl-dev,libjansson-dev,libpcap-dev,tcpdump,libibverbs-dev
ARM64_KMODS=(veth sch_htb sch_red sch_gred sch_prio sch_ets sch_taprio sch_netem sch_ingress cls_u32 cls_flower cls_matchall act_skbedit act_gact act_mirred tcp_dctcp rdma_rxe ib_uverbs)

# arm64_kernel WORD: the kernel that arm64 or arm64-KERNEL means
arm64_kernel()
{
	[ "$1" = arm64 ] && echo $ARM64_KERNEL || echo "${1#arm64-}"
}

# arm64_root KERNEL: the directory of its root
arm64_root()
{
	printf '%s\n' "$CACHE/matrix/$1-arm64-$(sha256sum <<<$ARM64_PACKAGES | cut -c1-8)"
}

# make_arm64_root KERNEL: once
make_arm64_root()
{
	local root image version from=''

	root=$(arm64_root "$1")
	[ ! -d "$root" ] || return 0
	[ "$1" != 7 ] || from=/trixie-backports
	say "$1: extracting a root for arm64"
	rm -rf "$CACHE/matrix/$1-arm64"*
	debian_root "$1" "$root" "$OUT/$1-arm64-root.log" "linux-image-arm64$from,$ARM64_PACKAGES" --variant=extract --architectures=arm64 ||
		return
	# 7.x is beside its modules, from where a script of its package copies it
	for image in "$root"/usr/lib/modules/*/vmlinuz; do
		version=${image%/vmlinuz}
		[ ! -e "$image" ] || cp "$image" "$root/boot/vmlinuz-${version##*/}" || return
	done
}

# arm64_image KERNEL MODULES DIR: DIR/initrd with the root's programs, the kernel's modules that the tests need,
# MODULES/*.ko and the tests; DIR/vmlinuz
arm64_image()
{
	local root to=$3/initrd.d version name

	root=$(arm64_root "$1")
	version=$(version_in "$root")
	rm -rf "$3"
	mkdir -p "$to"
	cp "$root/boot/vmlinuz-$version" "$3/vmlinuz"
	tar -C "$root" --exclude=./boot --exclude='./usr/share/*' --exclude='./usr/include/*' --exclude='./usr/lib/modules' \
		--exclude='./lib/modules' --exclude='*.a' --exclude='./var/*' -cf - . | tar -C "$to" -xf -
	# Debian 12 has files in /bin and in /usr/bin; and no script of a package has run
	for name in bin sbin lib; do
		[ -L "$to/$name" ] || { cp -a "$to/$name/." "$to/usr/$name" && rm -r "${to:?}/$name" && ln -s "usr/$name" "$to"; }
	done
	ln -sf bash "$to/bin/sh"
	ln -sf mawk "$to/usr/bin/awk"
	mkdir -p "$to/usr/lib/modules/$version/updates" "$to"/{proc,sys,dev,tmp,run,root}
	depmod -b "$root" "$version"
	for name in "${ARM64_KMODS[@]}"; do
		modprobe -d "$root" -S "$version" --show-depends "$name" 2>/dev/null | sed -n "s,^insmod $root,,p"
	done | sort -u | while read -r name; do
		install -D -m 644 "$root$name" "$to/usr/lib/${name#*/lib/}"
	done
	cp "$root/lib/modules/$version"/modules.{order,builtin,builtin.modinfo} "$to/usr/lib/modules/$version/"
	cp "$2"/*.ko "$to/usr/lib/modules/$version/updates/"
	depmod -b "$to" "$version"
	copy_sources "$to/lowq" --exclude=./bench --exclude=./docs --exclude=./man
	# the compiler's own C library, and only these of the root
	mkdir -p "$3/include" "$3/lib"
	cp -r "$root"/usr/include/{jansson*,libmnl,pcap*} "$3/include"
	cp "$root"/usr/lib/aarch64-linux-gnu/{libjansson,libmnl,libpcap}.so* "$3/lib"
	rm -rf "$to/lowq/lab/tools/bin"	# this machine's
	make -s -C "$to/lowq/lab/tools" CC="aarch64-linux-gnu-gcc -I$3/include -L$3/lib -Wl,--allow-shlib-undefined" bin/flowgen bin/labnet bin/qdelay bin/q_int.so \
		>"$3/tools.log" 2>&1 || return
	ln -s lowq/devel/matrix.d/arm64-guest "$to/init"
	(cd "$to" && find . | cpio --quiet -o -H newc) | gzip -1 >"$3/initrd"
	rm -rf "$to"
}

# boot_arm64 KERNEL MODULES: runs arm64-guest as the machine's init, which prints TAP on the console
boot_arm64()
{
	local version dir=$OUT/$1-arm64 log=$OUT/$1-arm64-console.log

	make_arm64_root "$1" && version=$(version_in "$(arm64_root "$1")")
	result $? "$1-arm64: a root" "$OUT/$1-arm64-root.log" || return
	arm64_image "$1" "$2" "$dir"
	result $? "$1 ($version): an image" "$dir/tools.log" || return
	say "$1: booting $version, emulated"
	timeout "$ARM64_TIMEOUT" qemu-system-aarch64 -M virt -cpu cortex-a72 -smp 1 -m 2G -nodefaults -display none -no-reboot \
		-serial "file:$log" -kernel "$dir/vmlinuz" -initrd "$dir/initrd" \
		-append "console=ttyAMA0 quiet panic=-1 net.ifnames=0 rdinit=/init lowq_only=$ONLY" </dev/null >"$log.qemu" 2>&1
	guest_results "$1" "$version" "$log"
}

# arm64 KERNEL: builds its modules, boots it, and tests them
arm64()
{
	local root

	make_root "$1"
	root=$(root_of "$1")
	build_arm64 "$1" "$root" && boot_arm64 "$1" "$root/tmp/lowq-arm64"
	rm -rf "$root/tmp/lowq-arm64"
}
