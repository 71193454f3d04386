#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# install.sh - does what "make install" does after the build, and "make uninstall".
set -eu

usage()
{
	cat <<-END
	usage: scripts/install.sh modules|install|uninstall DESTDIR PREFIX

	modules    installs the built modules for the kernel of the headers in \$KDIR, below DESTDIR
	install    installs lowq-tc with its systemd units, lowq-check, lowq-stat, flowgen, qdelay, rocegen
	           if it was built, man pages and bash completion below DESTDIR/PREFIX, tc's plugin where
	           tc looks for it; the lab (lowq-lab, lowq-bench with its scenarios, lowq-report) if labnet
	           was built; and runs depmod
	uninstall  removes the files that install has written, and the modules of all kernels; refused
	           while something that lowq-tc has set is not reset
	DESTDIR may be empty. Running either twice does no harm.
	END
}

die()
{
	printf 'install.sh: %s\n' "$*" >&2
	exit 1
}

case ${1:-} in
-h|--help) usage; exit ;;
modules|install|uninstall) ;;
*) usage >&2; exit 2 ;;
esac
[ $# -eq 3 ] || { usage >&2; exit 2; }
DESTDIR=${2%/} PREFIX=${3%/}
[[ $PREFIX/ == /* && $PREFIX != *[$'\n']* && $PREFIX/ != */../* ]] ||
	die "PREFIX must be an absolute path, not '$3'"
[[ -z $DESTDIR || $DESTDIR == /* ]] || DESTDIR=$PWD/$DESTDIR
cd "$(dirname "$(readlink -f "$0")")/.."
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin	# where depmod is; after a plain "su" root's PATH lacks these

# The manifest: what install has created, one per line, without DESTDIR: "f FILE" or "d DIRECTORY".
MANIFEST=$PREFIX/share/lowq/manifest

# --- files ------------------------------------------------------------------

MADE=()

# directory DIR: creates it and its parents, and notes which of them are new
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

# put_unit NAME: a systemd unit, with the path of lowq-tc as it is here
put_unit()
{
	local made

	made=$(mktemp)
	sed "s|/usr/sbin/|$PREFIX/sbin/|" "debian/lowq-tools.$1" >"$made"
	put 644 "$made" "$PREFIX/lib/systemd/system/$1"
	rm -f "$made"
}

# compile DIRECTORY...: makes Python's compiled files, with which the programs start
# faster. For packages the target machine does this.
compile()
{
	local file

	command -v python3 >/dev/null && python3 -m compileall -q "$@" || return 0
	while read -r file; do
		MADE+=("f $file" "d ${file%/*}")
	done < <(find "$@" -path '*/__pycache__/*.pyc')
}

# remove_made: reads lines of a manifest; removes the files, then the empty directories
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

# Write it even if an install fails half-way, so that uninstall finds all files.
# It also keeps the directories that an earlier install has created.
write_manifest()
{
	[ -d "$DESTDIR${MANIFEST%/*}" ] || return 0
	MADE+=("f $MANIFEST")
	printf '%s\n' "${MADE[@]}" "${KEPT[@]}" | sort -u >"$DESTDIR$MANIFEST"
}

# tc_plugins: prints tc's plugin directory, or our own if this system has none
tc_plugins()
{
	local dir

	for dir in "/usr/lib/$(uname -m)-linux-gnu/tc" /usr/lib64/tc /usr/lib/tc; do
		[ ! -d "$dir" ] || { echo "$dir"; return; }
	done
	echo "$PREFIX/lib/lowq"
}

# put_link TARGET FILE: a link that stays right when PREFIX moves
put_link()
{
	directory "${2%/*}"
	ln -sfnr "$DESTDIR$1" "$DESTDIR$2"
	MADE+=("f $2")
	echo "  INSTALL $DESTDIR$2"
}

# put_lab: the lab and its scenarios, the sources from which it builds the modules, and examples. They are
# laid out as here, with links to what is installed elsewhere.
put_lab()
{
	local tree=$PREFIX/share/lowq/tree docs=$PREFIX/share/doc/lowq-lab file name

	put 755 lab/tools/bin/labnet "$PREFIX/bin/labnet"
	while read -r file; do
		put "$([ -x "$file" ] && echo 755 || echo 644)" "$file" "$tree/$file"
	done < <(
		find lab scripts/packages selftests/lib bench/{rows,scenarios} -path lab/tools -prune -o \
			-type f ! -name '*.pyc' -print
		. lab/uml/build.sh
		module_sources_in .
	)
	for name in lowq_common lowq_tc; do
		put_link "$PREFIX/share/lowq/$name" "$tree/scripts/$name"
	done
	put_link "$PREFIX/sbin/lowq-tc" "$tree/scripts/lowq-tc"
	for name in flowgen qdelay rocegen labnet; do
		[ ! -x "lab/tools/bin/$name" ] || put_link "$PREFIX/bin/$name" "$tree/lab/tools/bin/$name"
	done
	put_link "$(tc_plugins)/q_int.so" "$tree/lab/tools/bin/q_int.so"
	put_link "$PREFIX/lib/lowq/q_dualpi2.so" "$tree/lab/tools/bin/q_dualpi2.so"
	put_link "$tree/lab/lab" "$PREFIX/bin/lowq-lab"
	put_link "$tree/lab/runner/run" "$PREFIX/bin/lowq-bench"
	put_link "$tree/lab/report" "$PREFIX/bin/lowq-report"
	put 644 lab/lowq-lab.bash-completion "$completions/lowq-lab"
	for name in lowq-bench lowq-report; do
		put_link "$completions/lowq-lab" "$completions/$name"
	done
	put 644 docs/tutorial.md "$docs/tutorial.md"
	while read -r file; do
		put "$([ -x "$file" ] && echo 755 || echo 644)" "$file" "$docs/$file"
	done < <(find examples -type f ! -name '*.o' ! -name '*.ko')
}

put_files()
{
	local file name completions=$PREFIX/share/bash-completion/completions
	KEPT=()

	for file in lab/tools/bin/{flowgen,qdelay,q_int.so,q_dualpi2.so}; do
		[ -x "$file" ] || die "$file is missing: run make tools"
	done
	[ ! -f "$DESTDIR$MANIFEST" ] || mapfile -t KEPT <"$DESTDIR$MANIFEST"
	directory "${MANIFEST%/*}"
	trap write_manifest EXIT

	# The programs look for their packages in ../share/lowq. Ordinary users run lowq-check, too.
	put 755 scripts/lowq-tc "$PREFIX/sbin/lowq-tc"
	put 755 scripts/lowq-check "$PREFIX/bin/lowq-check"
	put 755 scripts/lowq-stat "$PREFIX/bin/lowq-stat"
	for file in scripts/lowq_{common,check,stat}/*.py scripts/lowq_tc/{,profiles/}*.py; do
		put 644 "$file" "$PREFIX/share/lowq/${file#scripts/}"
	done
	[ -n "$DESTDIR" ] || compile "$PREFIX"/share/lowq/lowq_{common,tc,check,stat}
	put_unit lowq-tc.service
	put_unit lowq-tc@.service
	put_unit lowq-tc-host.service
	put_unit lowq-tc-apply.service
	put_unit lowq-tc-apply.timer
	put 755 lab/tools/bin/flowgen "$PREFIX/bin/flowgen"
	put 755 lab/tools/bin/qdelay "$PREFIX/bin/qdelay"
	# built only where libibverbs-dev is
	[ ! -x lab/tools/bin/rocegen ] || put 755 lab/tools/bin/rocegen "$PREFIX/bin/rocegen"
	# tc looks for plugins in its built-in directory, or in TC_LIB_DIR
	put 755 lab/tools/bin/q_int.so "$(tc_plugins)/q_int.so"
	# Not in tc's directory: tc would prefer the plugin to its own dualpi2. lowq-tc asks for it.
	put 755 lab/tools/bin/q_dualpi2.so "$PREFIX/lib/lowq/q_dualpi2.so"
	# built only where libmnl-dev and libjansson-dev are
	[ ! -x lab/tools/bin/labnet ] || put_lab
	put 644 scripts/int.lua "$PREFIX/share/lowq/int.lua"
	put 644 scripts/lowq.bash-completion "$completions/lowq-tc"
	for name in lowq-check lowq-stat; do
		put_link "$completions/lowq-tc" "$completions/$name"
	done
	for file in man/*.[1-8]; do
		name=${file##*/}
		case $name in
		lowq-lab.1|lowq-bench.1|lowq-report.1|labnet.1) [ -x lab/tools/bin/labnet ] || continue ;;
		rocegen.1) [ -x lab/tools/bin/rocegen ] || continue ;;
		esac
		put 644 "$file" "$PREFIX/share/man/man${name##*.}/$name"
	done

	# Remove files that only an older version had.
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

# signing_key_missing: whether the kernel's makefiles would sign modules with a key that is not
# in $KDIR. Headers come without one.
signing_key_missing()
{
	local config=$KDIR/include/config/auto.conf key

	grep -qsx 'CONFIG_MODULE_SIG_ALL=y' "$config" || return
	# since 5.17 without quotes
	key=$(sed -n 's/^CONFIG_MODULE_SIG_KEY="\{0,1\}\([^"]*\)"\{0,1\}$/\1/p' "$config")
	[[ $key != pkcs11:* && ! -f $key && ! -f $KDIR/$key && ! -f $KDIR/source/$key ]]
}

put_modules()
{
	local options=()

	[ -z "$DESTDIR" ] || options+=(INSTALL_MOD_PATH="$DESTDIR")
	if signing_key_missing; then
		# sign-file would print four errors for each module, and the modules work unsigned
		options+=(CONFIG_MODULE_SIG_ALL=)
		echo "The modules are not signed: $KDIR has no key. Only Secure Boot needs signed ones (see README.md)."
	fi
	# depmod follows in index_modules, which needs no System.map
	${MAKE:-make} -C "$KDIR" M="$PWD" "${options[@]}" modules_install \
		2> >(sed "/missing 'System.map' file. Skipping depmod/d" >&2)
}

# installed_modules: prints their files. modules_install puts them into updates/, or into extra/
# before Linux 5.16 or with INSTALL_MOD_DIR. Those in updates/dkms belong to DKMS.
installed_modules()
{
	local name file

	for name in $(modules); do
		for file in "$DESTDIR"/lib/modules/*/{updates,extra}/"$name".ko{,.gz,.xz,.zst}; do
			[ ! -f "$file" ] || printf '%s\n' "$file"
		done
	done
}

# of_kernels: reads names of module files; prints their kernels, one line each
of_kernels()
{
	sed "s|^$DESTDIR/lib/modules/\([^/]*\)/.*|\1|" | sort -u
}

# index_modules KERNEL...: runs depmod. modules_install does not if the kernel's build directory
# has no System.map, as with Debian's headers.
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
			echo "$name is still loaded; once it is unused: modprobe -r $name"
	done
}

case $1 in
modules)
	: "${KDIR:=/lib/modules/$(uname -r)/build}"
	put_modules
	;;
install)
	put_files
	mapfile -t kernels < <(installed_modules | of_kernels)
	index_modules "${kernels[@]}"
	;;
uninstall)
	# without lowq-tc nobody can undo what it has set
	[ -n "$DESTDIR" ] || ! compgen -G '/run/lowq/*.json' >/dev/null ||
		die "not removed: lowq-tc has set something (/run/lowq); first: lowq-tc reset --all; lowq-tc host reset; the same" \
			"with -n in other network namespaces"
	# the links of "systemctl enable"
	if [ -z "$DESTDIR" ]; then
		for unit in lowq-tc.service lowq-tc-apply.timer lowq-tc-host.service; do
			rm -f /etc/systemd/system/{multi-user,timers}.target.wants/"$unit"
		done
	fi
	remove_files
	remove_modules
	;;
esac
