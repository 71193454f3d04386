# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# The Debian roots of devel/matrix and devel/ack-cost: a kernel, its headers and its compiler.
# The script that sources this sets PROJECT, SAYING, and OUT, the directory for logs.

LABD=$PROJECT/lab/uml
# shellcheck source=lab/uml/common.sh
. "$LABD/common.sh"
# shellcheck source=lab/uml/fetch.sh
. "$LABD/fetch.sh"

SPACE_MIB=6000		# a root and its disk image, at their largest
DOWNLOAD_MIB=350

# suite_of KERNEL: the suites it comes from, the one to install first
suite_of()
{
	case $1 in
	6.1) echo bookworm ;;
	6.12|systemd|rdma) echo trixie ;;
	7) echo trixie trixie-backports ;;
	esac
}

# packages_of KERNEL: the packages to install in the root, including the kernel
packages_of()
{
	local from='' second=''

	# with systemd and all managers of networks; compiles twice what is the same only once
	if [ "$1" = systemd ]; then
		echo "linux-image-amd64 linux-headers-amd64 gcc make libc6-dev ccache initramfs-tools iproute2 jq kmod
			procps mawk ethtool python3 python3-apt dkms systemd systemd-sysv udev dbus network-manager ifupdown
			dhcpcd-base libpcap0.8t64 libibverbs1"
		return
	fi
	# programs only: the kernel is that of another root
	if [ "$1" = rdma ]; then
		echo "iproute2 kmod python3 perftest rdmacm-utils ibverbs-providers python3-pyverbs"
		return
	fi
	# linux-headers-cloud-amd64 is trixie's own kernel: DKMS builds for it, too
	[ "$1" != 7 ] || { from=/trixie-backports; second=linux-headers-cloud-amd64/trixie; }
	# not the cloud kernel, which has no soft-RoCE
	echo "linux-image-amd64$from linux-headers-amd64$from gcc make libc6-dev sparse \
		initramfs-tools iproute2 iperf3 jq kmod procps mawk tcpdump libpcap-dev libmnl-dev libjansson-dev iputils-ping \
		nftables ethtool python3 ibverbs-utils ibverbs-providers libibverbs-dev dkms $second"
}

# root_of KERNEL: the directory of its root
root_of()
{
	printf '%s\n' "$CACHE/matrix/$1-$(packages_of "$1" | sha256sum | cut -c1-8)"
}

# debian_root KERNEL ROOT LOG PACKAGES [OPTION of mmdebstrap...]: ROOT gets its name when it is complete
debian_root()
{
	local url suites sources=() s key=/usr/share/keyrings/debian-archive-keyring.gpg

	url=$(mirror) || exit
	read -ra suites < <(suite_of "$1")
	for s in "${suites[@]}"; do
		sources+=("deb [signed-by=$key] $url $s main")
	done
	apt_options >"$CACHE/matrix/apt.conf"
	mmdebstrap --quiet --mode=root --aptopt="$CACHE/matrix/apt.conf" --aptopt='APT::Install-Recommends "false"' \
		--include="$4" "${@:5}" "${suites[0]}" "$2.new" "${sources[@]}" >"$3" 2>&1 && mv "$2.new" "$2"
}

# make_root KERNEL: makes the root once
make_root()
{
	local root hooks=() log=$OUT/$1-root.log

	root=$(root_of "$1")
	[ ! -d "$root" ] || return 0
	need_space "$CACHE/matrix" $SPACE_MIB "the root for $1"
	# another kernel, to be installed later
	# shellcheck disable=SC2016 # mmdebstrap's shell expands
	[ "$1" != systemd ] || hooks=(--customize-hook='cd "$1"; mkdir -p var/lib/other-kernel; chroot . sh -c "
		cd /var/lib/other-kernel && apt-get -q download linux-image-cloud-amd64 linux-headers-cloud-amd64 \$(
			apt-cache depends linux-image-cloud-amd64 linux-headers-cloud-amd64 | sed -n \"s/.*Depends: //p\" | grep cloud)"')
	say "$1: making a root from $(suite_of "$1") (about $DOWNLOAD_MIB MB to download, a few minutes)"
	rm -rf "$CACHE/matrix/$1-"*
	debian_root "$1" "$root" "$log" "$(packages_of "$1" | tr -s ' \t' ,)" --variant=minbase "${hooks[@]}" ||
		{ rm -rf "$root.new"; die "$1: no root: $(grep -m1 '^E:' "$log" || tail -n1 "$log")"; }
}

# version_in ROOT: the version of its kernel
version_in()
{
	basename "$(ls -d "$1"/boot/vmlinuz-*)" | sed 's/^vmlinuz-//'
}

# arm64_headers ROOT: arm64's headers of the root's kernel, and a compiler for them; once. Only extracted,
# since they depend on a kernel image; and only /usr/src, so that DKMS does not see another kernel.
arm64_headers()
{
	local name

	name=linux-headers-$(version_in "$1" | sed 's/-amd64$/-arm64/')
	[ ! -d "$1/usr/src/$name" ] || return 0
	say "getting $name and a compiler for arm64"
	in_root "$1" sh -ec "dpkg --add-architecture arm64; apt-get -q update
		apt-get -q install -y --no-install-recommends gcc-aarch64-linux-gnu
		cd /tmp; apt-get -q download $name:arm64
		dpkg-deb --fsys-tarfile ${name}_*.deb | tar -xC / ./usr/src; rm -rf ${name}_*.deb /var/lib/apt/lists/*; apt-get -q clean"
}

# lock_roots: all runs share the roots and disk images
lock_roots()
{
	exec {ROOT_LOCK}>"$CACHE/matrix/.lock"
	flock -n "$ROOT_LOCK" || { say "waiting for another run"; flock "$ROOT_LOCK"; }
}

# unlock_roots: for who only reads them from now on
unlock_roots()
{
	exec {ROOT_LOCK}>&-
}

# copy_sources DIR [tar's options]: replaces DIR by the project's sources, as in a fresh checkout
copy_sources()
{
	rm -rf "$1"
	mkdir -p "$1"
	tar -C "$PROJECT" --exclude=./.git --exclude=./out --exclude='*.o' --exclude='*.ko' \
		--exclude='*.mod*' --exclude='.*.cmd' "${@:2}" -cf - . | tar -C "$1" -xf -
}

# broken_headers VERSION DEB: makes a package with the headers of a kernel for which nothing builds,
# which is installed as Debian's are
broken_headers()
{
	local dir=$OUT/broken version=$1

	rm -rf "$dir"
	mkdir -p "$dir/DEBIAN" "$dir/lib/modules/$version/build/include/config" "$dir/lib/modules/$version/build/include/generated"
	printf 'all modules:\n\t@echo these headers do not build; exit 2\n' >"$dir/lib/modules/$version/build/Makefile"
	touch "$dir/lib/modules/$version/build/.config"
	printf 'Package: linux-headers-%s\nVersion: 1\nArchitecture: amd64\nMaintainer: none <none@example.org>\nDescription: headers that do not build\n' \
		"$version" >"$dir/DEBIAN/control"
	printf '#!/bin/sh\nset -e\nrun-parts --exit-on-error --arg=%s /etc/kernel/header_postinst.d\n' "$version" >"$dir/DEBIAN/postinst"
	chmod 755 "$dir/DEBIAN/postinst"
	dpkg-deb --root-owner-group -b "$dir" "$2" >/dev/null
}

# in_root ROOT COMMAND...: runs it there with a mounted /proc, which is unmounted afterwards. The
# directory BIND, if set, is mounted on /mnt.
in_root()
{
	# shellcheck disable=SC2016 # the inner shell expands
	BIND=${BIND:-} unshare --mount --pid --fork bash -c 'mount -t proc proc "$1/proc" &&
		{ [ -z "$BIND" ] || mount --bind "$BIND" "$1/mnt"; } &&
		ln -sfn /proc/self/fd "$1/dev/fd" && exec chroot "$@"' bash "$@"
}
