#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# install.sh - what "make install" does after modules_install, and "make
# uninstall". Not installed are scripts/report and bench/run with their man pages:
# they belong to this tree's scenarios.
set -eu

usage()
{
	cat <<-END
	usage: scripts/install.sh install|uninstall DESTDIR PREFIX

	install    puts lowq-tc, lowq-lab, flowgen, qdelay, man pages and bash completion
	           below DESTDIR/PREFIX, tc's plugin where tc looks for it, and tells depmod
	           of the modules
	uninstall  removes what install has put there, and the modules of all kernels
	DESTDIR may be empty. Doing either twice does no harm.
	END
}

die()
{
	printf 'install.sh: %s\n' "$*" >&2
	exit 1
}

case ${1:-} in
-h|--help) usage; exit ;;
install|uninstall) ;;
*) usage >&2; exit 2 ;;
esac
[ $# -eq 3 ] || { usage >&2; exit 2; }
DESTDIR=${2%/} PREFIX=${3%/}
[[ $PREFIX/ == /* && $PREFIX != *[$'\n']* && $PREFIX/ != */../* ]] ||
	die "PREFIX is an absolute path, not '$3'"
[[ -z $DESTDIR || $DESTDIR == /* ]] || DESTDIR=$PWD/$DESTDIR
cd "$(dirname "$(readlink -f "$0")")/.."

# What install has made, a line each, without DESTDIR: "f FILE" or "d DIRECTORY".
MANIFEST=$PREFIX/share/lowq/manifest

# --- files ------------------------------------------------------------------

MADE=()

# directory DIR: makes it, and notes what was not there
directory()
{
	[ ! -d "$DESTDIR$1" ] || return 0
	[ -z "$1" ] || directory "${1%/*}"
	install -d "$DESTDIR$1"
	MADE+=("d $1")
}

# put MODE SOURCE FILE
put()
{
	directory "${3%/*}"
	install -m "$1" "$2" "$DESTDIR$3"
	MADE+=("f $3")
	echo "  INSTALL $DESTDIR$3"
}

# remove_made: reads lines of a manifest, files before directories
remove_made()
{
	local kind name

	sort -r | while read -r kind name; do
		[[ $name == /* && $name/ != */../* ]] || continue
		case $kind in
		f)
			[ -e "$DESTDIR$name" ] || [ -L "$DESTDIR$name" ] || continue
			rm -f "$DESTDIR$name"
			echo "  REMOVE $DESTDIR$name"
			;;
		d) rmdir "$DESTDIR$name" 2>/dev/null || true ;;
		esac
	done
}

# Also when an install breaks off, so that uninstall finds what is there.
# Directories that an earlier install made are still ours.
write_manifest()
{
	[ -d "$DESTDIR${MANIFEST%/*}" ] || return 0
	MADE+=("f $MANIFEST")
	printf '%s\n' "${MADE[@]}" "${KEPT[@]}" | sort -u >"$DESTDIR$MANIFEST"
}

# tc_plugins: the directory of tc's own, or ours if this system shows none
tc_plugins()
{
	local dir

	for dir in "/usr/lib/$(uname -m)-linux-gnu/tc" /usr/lib64/tc /usr/lib/tc; do
		[ ! -d "$dir" ] || { echo "$dir"; return; }
	done
	echo "$PREFIX/lib/lowq"
}

put_files()
{
	local file name tree
	KEPT=()

	for file in selftests/{flowgen,qdelay,q_int.so,q_dualpi2.so}; do
		[ -x "$file" ] || die "$file is not there: make tools"
	done
	[ ! -f "$DESTDIR$MANIFEST" ] || mapfile -t KEPT <"$DESTDIR$MANIFEST"
	directory "${MANIFEST%/*}"
	trap write_manifest EXIT

	# It looks for its parts and its profiles in ../share/lowq/lowq-tc.d.
	put 755 scripts/lowq-tc "$PREFIX/sbin/lowq-tc"
	for file in scripts/lowq-tc.d/{,lib/}*.sh; do
		put 644 "$file" "$PREFIX/share/lowq/${file#scripts/}"
	done
	put 755 selftests/flowgen "$PREFIX/bin/flowgen"
	put 755 selftests/qdelay "$PREFIX/bin/qdelay"
	# tc looks for plugins where it was built to, or in TC_LIB_DIR
	put 755 selftests/q_int.so "$(tc_plugins)/q_int.so"
	# ... and would prefer this one to its own, where it has one: lowq-tc asks for it
	put 755 selftests/q_dualpi2.so "$PREFIX/lib/lowq/q_dualpi2.so"
	# the lab, with the sources that it builds the modules from
	mapfile -t tree < <(find scripts/lab scripts/lab.d scripts/packages -type f; . scripts/lab.d/build.sh; module_sources_in .)
	for file in "${tree[@]}"; do
		put "$([ -x "$file" ] && echo 755 || echo 644)" "$file" "$PREFIX/share/lowq/tree/${file#./}"
	done
	ln -sfn ../share/lowq/tree/scripts/lab "$DESTDIR$PREFIX/bin/lowq-lab"
	MADE+=("f $PREFIX/bin/lowq-lab")
	put 644 scripts/int.lua "$PREFIX/share/lowq/int.lua"
	put 644 scripts/lowq-tc.bash-completion "$PREFIX/share/bash-completion/completions/lowq-tc"
	for file in man/*.[1-8]; do
		name=${file##*/}
		case $name in
		lowq-report.1|lowq-bench.1) continue ;;
		esac
		put 644 "$file" "$PREFIX/share/man/man${name##*.}/$name"
	done

	# What an older version had and this one has not goes.
	comm -23 <(printf '%s\n' "${KEPT[@]}" | grep '^f ' | sort) \
		<(printf '%s\n' "${MADE[@]}" "f $MANIFEST" | sort) | remove_made
	mapfile -t KEPT < <(printf '%s\n' "${KEPT[@]}" | grep '^d ')
}

remove_files()
{
	if [ -f "$DESTDIR$MANIFEST" ]; then
		remove_made < <(cat "$DESTDIR$MANIFEST"; echo "f $MANIFEST")
	else
		echo "nothing installed below $DESTDIR$PREFIX"
	fi
}

# --- modules ----------------------------------------------------------------

modules()
{
	sed -n 's/^obj-[^=]*=//p' Kbuild | grep -oE '[[:alnum:]_-]+\.o\b' | sed 's/\.o$//' | sort -u
}

# installed_modules: their files. modules_install has put them into updates/ or,
# before Linux 5.16 or by INSTALL_MOD_DIR, extra/; those of dkms are its own.
installed_modules()
{
	local name file

	for name in $(modules); do
		for file in "$DESTDIR"/lib/modules/*/{updates,extra}/"$name".ko{,.gz,.xz,.zst}; do
			[ ! -f "$file" ] || printf '%s\n' "$file"
		done
	done
}

# of_kernels: the kernels of module files, a line each
of_kernels()
{
	sed "s|^$DESTDIR/lib/modules/\([^/]*\)/.*|\1|" | sort -u
}

# index_modules KERNEL...: modules_install leaves that out where the kernel's
# build directory has no System.map, as with Debian's headers.
index_modules()
{
	local kernel

	[ -z "$DESTDIR" ] || return 0
	for kernel; do
		echo "  DEPMOD $kernel"
		depmod "$kernel"
	done
}

remove_modules()
{
	local files kernels file name

	mapfile -t files < <(installed_modules)
	[ ${#files[@]} -gt 0 ] || return 0
	mapfile -t kernels < <(printf '%s\n' "${files[@]}" | of_kernels)
	for file in "${files[@]}"; do
		rm -f "$file"
		echo "  REMOVE $file"
		rmdir "${file%/*}" 2>/dev/null || true
	done
	index_modules "${kernels[@]}"
	[ -z "$DESTDIR" ] || return 0
	for name in $(modules); do
		[ ! -d "/sys/module/$name" ] ||
			echo "$name is still loaded: modprobe -r $name, once nothing uses it"
	done
}

case $1 in
install)
	put_files
	mapfile -t kernels < <(installed_modules | of_kernels)
	index_modules "${kernels[@]}"
	;;
uninstall)
	remove_files
	remove_modules
	;;
esac
