#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# fresh - the first hour of a newcomer: the commands of README.md on a machine that has
# nothing, Debian 12 and 13, as an ordinary user and as root.
#
# README's code blocks that follow the line "<!-- fresh.sh -->" are run line
# by line: "sudo " in front means as root, what follows a # is a comment. Each suite starts
# from a minimal Debian root that is unpacked for the run, with a clone of this project (HEAD
# and what is changed in tracked files) at another path.
#
# As a user: without packages a command must name them, exit with 2 and compile nothing; then
# root runs the apt-get line that it printed, and the command must work; other lines of root's run
# as after a plain "su", with the user's PATH. As root: each command installs what it needs.
# Without a network and without headers for the running kernel, commands say so in one line; a
# Ctrl-C in the kernel's build is told as one; "make clean" leaves nothing that git ignores. By default as a user on Debian 13 and as root on Debian 12, without
# the lines about packages and DKMS. FULL=1: both on both, every line, and the lab's kernel is
# built to its end. ONLY=WORD: lines that contain WORD and no others, such as ONLY=deb: packages are
# built and installed, and the tutorial works with them.
#
# FULL=1 or ONLY=packages: packages built in a root of the oldest release go into bare roots, of Debian 14 (forky),
# too, without what they recommend: the demo gives its numbers with no compiler there, the same on each release, with
# iproute2 of 12's backports, and with another HOME, PATH and locale. DEBS=DIR: those packages, not new ones.
#
# What is not as on a user's machine: the lab's kernel is this machine's (read-only), but its
# build is started there and watched until it has compiled its first files; "uname -r" names
# the kernel whose headers Debian has, since it is not the one that runs; and "modprobe"
# checks what it would load (modprobe -n), since this kernel would not load it.
#
# usage: fresh.sh [12|13|14]...
# shellcheck disable=SC2016 # scripts in quotes are for the root's shell

cd "$(dirname "$(readlink -f "$0")")/../.." || exit
PROJECT=$PWD
# shellcheck source=lab/uml/common.sh
SAYING=fresh
. lab/uml/common.sh
# shellcheck source=lab/uml/fetch.sh
. lab/uml/fetch.sh
ROOTS=$CACHE/roots
MAX_AGE=7		# days that a root is used
MARKER='<!-- fresh.sh -->'
USER_PATH=/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games
ROOT_PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
KERNEL_FILES=${KERNEL_FILES:-40}	# that the lab's build has to compile here
declare -A CODENAME=([12]=bookworm [13]=trixie [14]=forky)

skip_all()
{
	printf '1..1\nok 1 fresh # SKIP %s\n' "$*"
	exit
}

# --- the root ---------------------------------------------------------------

# contain ROOT COMMAND...: COMMAND with ROOT as its /, in namespaces of its own that end with
# it, or with us. BINDS: directories of this machine that are seen there, read-only. With
# OFFLINE it has no network.
contain()
{
	setpriv --pdeathsig KILL unshare --mount --pid --ipc ${OFFLINE:+--net} --fork --kill-child bash -c '
		set -e
		root=$1
		archives=$2
		binds=$3
		shift 3
		mount --make-rprivate /
		mount --bind "$root" "$root"
		cd "$root"
		mount -t proc proc proc
		mount -t tmpfs -o mode=755 dev dev
		for node in null zero full random urandom tty; do
			touch "dev/$node"
			mount --bind "/dev/$node" "dev/$node"
		done
		mkdir dev/pts dev/shm
		mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts dev/pts
		mount -t tmpfs -o mode=1777 shm dev/shm
		ln -s pts/ptmx dev/ptmx
		ln -s /proc/self/fd dev/fd
		ln -s /proc/self/fd/0 dev/stdin
		ln -s /proc/self/fd/1 dev/stdout
		ln -s /proc/self/fd/2 dev/stderr
		mount --bind "$archives" var/cache/apt/archives
		mount --bind /etc/resolv.conf etc/resolv.conf
		for bind in $binds; do		# FROM:TO
			mkdir -p "./${bind#*:}"
			mount --bind "${bind%%:*}" "./${bind#*:}"
			mount -o remount,bind,ro "./${bind#*:}"
		done
		mkdir -p .old
		pivot_root . .old
		cd /
		umount -l /.old
		rmdir /.old
		exec "$@"' contain "$1" "$ARCHIVES" "$BINDS" "${@:2}"
}

# as WHO LINE: a line of shell in WHO's clone, with WHO's environment. WHO is tester, root, or su:
# root after a plain "su", which keeps the user's PATH
as()
{
	local path=$USER_PATH home=/home/tester ids=(--reuid 1000 --regid 1000 --clear-groups) more=()

	if [ "$1" != tester ]; then
		# the headers bring a kernel's image, which needs no initial RAM disk here
		ids=() home=/root more=(DEBIAN_FRONTEND=noninteractive INITRD=No)
		[ "$1" = su ] || path=$ROOT_PATH
	fi
	contain "$ROOT" setpriv "${ids[@]}" env -i HOME=$home PATH="/opt/as-booted:$path" LANG=C.UTF-8 \
		TERM=dumb "${more[@]}" bash -c 'cd "$1" && eval "$2"' as "$CLONE" "$2" </dev/null
}

# make_tar CODENAME: the minimal root as an archive; it gets its name only when it is whole
make_tar()
{
	local tar url key=/usr/share/keyrings/debian-archive-keyring.gpg

	tar=$ROOTS/$1.tar
	[ -z "$(find "$tar" -mtime -$MAX_AGE 2>/dev/null)" ] || { echo "$tar"; return; }
	url=$(mirror) || exit
	need_space "$ROOTS" 3000 "a Debian root"
	say "making a minimal root of $1 (60 MB to download, a minute)"
	rm -f "$ROOTS/$1.new.tar"
	rm -rf "$ROOTS/$1-archives"
	apt_options >"$ROOTS/apt.conf"
	setpriv --pdeathsig TERM mmdebstrap --quiet --variant=minbase --mode=root --aptopt="$ROOTS/apt.conf" "$1" "$ROOTS/$1.new.tar" \
		"deb [signed-by=$key] $url $1 main" >"$ROOTS/$1.log" 2>&1 ||
		{ say "no root of $1: $(grep -m1 '^E:' "$ROOTS/$1.log" || tail -n1 "$ROOTS/$1.log")"; return 1; }
	mv "$ROOTS/$1.new.tar" "$tar"
	echo "$tar"
}

# bare_root DIR: unpacked, with a user
bare_root()
{
	mkdir -p "$1"
	tar -C "$1" -xf "$TAR"
	# what this machine's own apt is told; the y that a person would type; disks as fast
	# as they may be where nothing has to last
	apt_options >"$1/etc/apt/apt.conf.d/99fresh"
	echo 'APT::Get::Assume-Yes "true";' >>"$1/etc/apt/apt.conf.d/99fresh"
	echo force-unsafe-io >"$1/etc/dpkg/dpkg.cfg.d/fresh"
	echo tester:x:1000:1000::/home/tester:/bin/bash >>"$1/etc/passwd"
	echo tester:x:1000: >>"$1/etc/group"
	touch "$1/etc/resolv.conf"
	mkdir -p "$1/home/tester"
	chown 1000:1000 "$1/home/tester"
}

# new_root DIR: a bare one with a clone of the project for each who works there
new_root()
{
	local who

	bare_root "$1"
	mkdir -p "$1/home/tester/src" "$1/home/tester/.cache/lowq" "$1/root/.cache/lowq" "$1/opt/as-booted"
	for who in home/tester/src root; do
		git clone -q --no-hardlinks "$PROJECT" "$1/$who/lowq" || return
		git -C "$PROJECT" diff --binary HEAD | git -C "$1/$who/lowq" apply --allow-empty || return
	done
	# the lab's kernel, at the path where it was built, too, which is in its files
	for who in home/tester root; do
		mkdir -p "$1/$who/.cache/lowq/kernel" "$1/$who/.cache/lowq/src"
		ln -s "$(basename "$KERNEL")" "$1/$who/.cache/lowq/kernel/$(basename "$NAMED")"
	done
	BINDS="$KERNEL:$KERNEL $SOURCE:$SOURCE $SOURCE:$LINKED"
	for who in home/tester root; do
		BINDS+=" $KERNEL:/$who/.cache/lowq/kernel/$(basename "$KERNEL")"
		BINDS+=" $SOURCE:/$who/.cache/lowq/src/$(basename "$SOURCE")"
	done
	BINDS+=" $SOURCE:/home/tester/cold/src/$(basename "$SOURCE")"
	mkdir -p "$1/home/tester/cold/src"
	(cd "$1" && for who in .$KERNEL .$SOURCE .$LINKED; do
		mkdir -p "$who"
		while [ "$who" != . ]; do
			chmod a+x "$who"
			who=$(dirname "$who")
		done
	done)
	cat >"$1/opt/as-booted/uname" <<-'END'
		#!/bin/sh
		[ "$*" = -r ] && exec cat /opt/as-booted/release
		exec /usr/bin/uname "$@"
	END
	cat >"$1/opt/as-booted/modprobe" <<-'END'
		#!/bin/sh
		exec /usr/sbin/modprobe -n -v -S "$(cat /opt/as-booted/release)" "$@"
	END
	chmod a+rx "$1"/opt/as-booted/*
	chown -R 1000:1000 "$1/home/tester"
}

# --- results ----------------------------------------------------------------

# verdict STATUS WHAT [LOG]: a line of TAP for the suite; the end of LOG if it failed. A mirror
# that cannot be reached is no fault of the project's.
verdict()
{
	local status=$1

	if [ "$1" -eq 0 ]; then
		echo "ok - Debian $SUITE: $2 ($((SECONDS - SINCE)) s)"
	elif [ -n "${3:-}" ] && grep -qE 'Failed to fetch|Temporary failure resolving|Unable to connect' "$3"; then
		echo "ok - Debian $SUITE: $2 # SKIP the package mirror cannot be reached"
		status=0
	else
		echo "not ok - Debian $SUITE: $2"
		[ -z "${3:-}" ] || tail -n 25 "$3" | sed 's/^/# /'
	fi
	echo "$status" >>"$WORK/verdicts"
	SINCE=$SECONDS
	return "$1"
}

skipped()
{
	echo 0 >>"$WORK/verdicts"
	echo "ok - Debian $SUITE: $1 # SKIP $([ "${ONLY:-}" ] && echo "without $ONLY" || echo "with FULL=1")"
}

# --- what is checked after a command ----------------------------------------

# files_in ROOT: what is there, except what package tools, builds and caches keep
files_in()
{
	find "$1" -xdev \( -path "$1/home" -o -path "$1/root" -o -path "$1/var/cache" -o -path "$1/var/lib/apt" \
		-o -path "$1/var/lib/dpkg" -o -path "$1/var/log" -o -path "$1/tmp" -o -path "$1/run" -o -path "$1/dev" \
		-o -path "$1/etc/ld.so.cache" -o -name 'modules.*' \) -prune -o -print | LC_ALL=C sort
}

# has_table LOG: rows of numbers for six controls at least
has_table()
{
	[ "$(awk '{ n = 0; for (i = 1; i <= NF; i++) n += $i ~ /^[0-9.]+$/ } n >= 5' "$1" | wc -l)" -ge 6 ]
}

# shown WHO COMMAND LOG: whether COMMAND has done what README says of it
shown()
{
	case $2 in
	"make demo")
		head -n 3 "$3" | grep -q '^This demo compares' || { echo "does not say first what it will do" >>"$3"; return 1; }
		has_table "$3" || { echo "no table" >>"$3"; return 1; }
		[ -s "$ROOT$CLONE/out/demo/index.html" ] || { echo "no page" >>"$3"; return 1; } ;;
	"make install")
		! grep -E 'SSL error|System\.map|depmod.*(not found|install it)' "$3" >"$WORK/odd" ||
			{ sed 's/^/looks like a failure: /' "$WORK/odd" >>"$3"; return 1; }
		as "$1" 'export PATH=$PATH:/usr/local/sbin && lowq-tc --help && lowq-check --help && lowq-stat && flowgen --help && qdelay --help &&
			for m in $(sed -n "s/^obj-[^=]*=//p" Kbuild | tr " " "\n" | sed -n "s/\.o$//p"); do
				/usr/sbin/modinfo -k "$(uname -r)" "$m" >/dev/null || exit; done' >>"$3" 2>&1 ;;
	"make uninstall")
		files_in "$ROOT" >"$WORK/after"
		diff "$WORK/before" "$WORK/after" >>"$3" ;;
	"make deb")
		ls "$ROOT$CLONE"/out/deb/lowq-{dkms,tools,lab,lab-kernel}_*.deb >>"$3" 2>&1 ;;
	*modprobe*) grep -qE '^insmod .*lib/modules/.*/(updates|extra)/' "$3" ;;	# 6.1: extra
	*apt-get*install*out/deb*)
		as root 'dpkg -s lowq-dkms lowq-tools lowq-lab lowq-lab-kernel | grep -c "^Status: install ok installed" | grep -qx 4 &&
			! dpkg -l "lowq-*-dbgsym" 2>/dev/null | grep "^ii" && ls /usr/share/doc/lowq-tools/{rollout,measure}.md* &&
			dkms status lowq -k "$(uname -r)" | grep -w installed' >>"$3" 2>&1 &&
			as "$1" '/usr/sbin/lowq-tc --help && lowq-check --help && (cd / && lowq-lab run -- modprobe tcp_dctcp_ref) &&
				INSTALLED=1 selftests/programs/bench.sh tutorial' >>"$3" 2>&1 ;;
	esac
}

# before COMMAND: what has to be noted before it
before()
{
	case $1 in
	"make install")
		as root "scripts/packages install" >/dev/null 2>&1
		files_in "$ROOT" >"$WORK/before" ;;
	*apt-get*install*out/deb*)	# apt needs its lists; with ONLY nothing has needed headers yet
		as root 'apt-get -qq update && apt-get -qq install "linux-headers-$(uname -r)"' >"$WORK/log" 2>&1 ;;
	esac
}

# compiled: files in the clone that git ignores, except out/ with its logs
compiled()
{
	git -C "$ROOT$CLONE" -c safe.directory='*' status --porcelain --ignored | grep '^!! ' | grep -v ' out/$'
}

# named LOG: the apt-get line at the end of it
named()
{
	sed -n "s/^.*\(sudo\|su - -c '\) *\(apt-get install .*[a-z0-9]\)'*$/\2/p" "$1" | tail -n 1
}

# --- README -----------------------------------------------------------------

# lines: of README's marked code blocks, except those that make the clone, which is there
lines()
{
	awk -v marker="$MARKER" '
		$0 == marker { armed = 1; next }
		/^```/ { if (inside) armed = inside = 0; else inside = armed; next }
		inside' README.md | sed 's/[[:space:]]*#.*//; s/[[:space:]]*$//; /^$/d; /^git clone /d; /^cd /d'
}

# run_line WHO LINE
run_line()
{
	local who=$1 line=$2 log=$WORK/log status line_of_apt

	if [[ $line == "sudo "* ]]; then
		line=${line#sudo }
		who=su
		[[ $line != apt-get* ]] || who=root
	fi
	before "$line"
	as "$who" "${line/#make demo/make demo SEED=1}" >"$log" 2>&1	# a fifth of it
	status=$?
	# make itself ends with 2 when a command of it did
	if [ "$who" = tester ] && [ $status -eq 2 ] && line_of_apt=$(named "$log") && [ -n "$line_of_apt" ]; then
		[ "$line" != "make demo" ] || ! compiled >>"$log"
		verdict $? "user: $line: without packages, names them and compiles nothing" "$log" || return
		as root "$line_of_apt" >"$log" 2>&1
		verdict $? "root: $(cut -c1-60 <<<"$line_of_apt")..." "$log" || return
		as "$who" "${line/#make demo/make demo SEED=1}" >"$log" 2>&1
		status=$?
	fi
	[ $status -ne 0 ] || shown "$1" "$line" "$log" || status=1
	verdict $status "${who/tester/user}: $line" "$log"
}

# chosen LINE: whether it is run
chosen()
{
	if [ "${ONLY:-}" ]; then
		[[ $1 == *"$ONLY"* || $1 == *"install git make" ]]
	else
		[ "${FULL:-}" ] || [[ $1 != *dkms* && $1 != *deb* ]]
	fi
}

# kernel_build: the lab's own build, from an empty cache, until it has compiled its first files
kernel_build()
{
	as root 'apt-get -qq update && scripts/packages lab-build' >"$WORK/log" 2>&1
	as tester 'scripts/packages lab-build || exit
		export LOWQ_CACHE=$HOME/cold
		env --default-signal=INT setsid scripts/lab build 2>said & pid=$!
		for ((i = 0; i < 1800; i++)); do
			n=$(cat $LOWQ_CACHE/kernel/*/log 2>/dev/null | grep -c "^  CC ")
			[ "$n" -lt '"$KERNEL_FILES"' ] || break
			kill -0 $pid 2>/dev/null || { cat $LOWQ_CACHE/kernel/*/log; exit 1; }
			sleep 0.2
		done
		kill -INT -- -$pid
		wait $pid
		status=$?
		echo "$n files compiled, then Ctrl-C: status $status"
		cat said
		rm said
		[ "$n" -ge '"$KERNEL_FILES"' ] && [ $status -eq 130 ]' >"$WORK/log" 2>&1 &&
		grep -q 'lab: interrupted' "$WORK/log" && ! grep -E 'does not build|cannot' "$WORK/log"
	verdict $? "user: scripts/lab build: the first $KERNEL_FILES files, then Ctrl-C" "$WORK/log"
	[ "${FULL:-}" ] || return 0
	as tester 'LOWQ_CACHE=$HOME/cold scripts/lab build' >"$WORK/log" 2>&1
	verdict $? "user: scripts/lab build: to its end" "$WORK/log"
}

# offline_packages: as root without a network, and without apt's lists
offline_packages()
{
	OFFLINE=1 as root 'scripts/packages tools' >"$WORK/log" 2>&1
	[ $? -eq 1 ] && [ "$(grep -vc '^packages: installing' "$WORK/log")" -eq 1 ] && grep -q 'no network' "$WORK/log"
	verdict $? "root: packages are missing and there is no network: one line says so" "$WORK/log"
}

# offline_kernel: the lab's kernel cannot be fetched; what it needs is installed
offline_kernel()
{
	OFFLINE=1 as tester 'LOWQ_CACHE=/tmp/none scripts/lab build' >"$WORK/log" 2>&1
	[ $? -eq 125 ] && grep -q 'cannot read .*no network' "$WORK/log" && ! grep 'no source package' "$WORK/log"
	verdict $? "user: scripts/lab build without a network says so" "$WORK/log"
}

# without_headers WHO: a kernel runs for which Debian has no headers (any more), as after an upgrade
without_headers()
{
	local release=$ROOT/opt/as-booted/release good

	good=$(<"$release")
	echo 6.0.0-none >"$release"
	as "$1" 'make modules' >"$WORK/log" 2>&1
	[ $? -eq 2 ] && grep -q "no headers for the running kernel 6.0.0-none.*$good.*KDIR=/lib/modules/$good/build" \
		"$WORK/log" && ! grep 'Unable to locate' "$WORK/log"
	verdict $? "${1/tester/user}: make modules without headers names a kernel to boot, and KDIR" "$WORK/log"
	echo "$good" >"$release"
}

# cleaned WHO: what "make clean" leaves, and what it says
cleaned()
{
	as "$1" 'make clean' >"$WORK/log" 2>&1 && ! grep -i 'error' "$WORK/log" &&
		! git -C "$ROOT$CLONE" -c safe.directory='*' status --porcelain --ignored | grep '^!! ' >>"$WORK/log"
	verdict $? "${1/tester/user}: make clean leaves nothing that was built" "$WORK/log"
}

# --- the ways ---------------------------------------------------------------

# release: the kernel whose headers the suite has
release()
{
	as root 'apt-get -qq update && apt-cache depends linux-headers-amd64 |
		sed -n "s/.*Depends: linux-headers-\([0-9].*\)/\1/p"' 2>/dev/null | tail -n 1
}

# way WHO: README from top to bottom, in a root that is unpacked for it: as tester, whose PATH has
# no sbin, or as root, for whom what is missing is installed, with no index of packages there
way()
{
	local line

	ROOT=$WORK/$1
	CLONE=/root/lowq
	[ "$1" = root ] || CLONE=/home/tester/src/lowq
	new_root "$ROOT" || { verdict 1 "a root and a clone"; return; }
	uname -r >"$ROOT/opt/as-booted/release"	# the running one, until apt can say which there are
	[ "${ONLY:-}" ] || offline_packages
	release >"$ROOT/opt/as-booted/release"
	[ -s "$ROOT/opt/as-booted/release" ]
	verdict $? "a bare root, the project cloned, apt reads the mirror" || return
	if [ "$1" = tester ] && [ ! "${ONLY:-}" ]; then
		# there is not even make: what can be told, is told
		as tester bench/run\ --demo >"$WORK/log" 2>&1
		[ $? -eq 2 ] && [[ " $(named "$WORK/log") " == *" gcc "*" make "* ]] && ! compiled >>"$WORK/log"
		verdict $? "user: bench/run --demo on a machine without make names the packages" "$WORK/log"
	fi
	while read -r line <&3; do
		[ "$1" = tester ] || line=${line#sudo }
		if chosen "$line"; then run_line "$1" "$line"; else skipped "${1/tester/user}: $line"; fi
		if [ "$line" = "make modules" ] && [ ! "${ONLY:-}" ]; then
			[ "$1" = root ] || without_headers tester
			without_headers root
		fi
		[ "$1" = tester ] || [ "$line" = "apt-get update" ] || rm -rf "$ROOT"/var/lib/apt/lists/*
	done 3< <(lines)
	if [ "${ONLY:-}" ]; then
		rm -rf "$ROOT"
		return
	fi
	if [ "$1" = tester ]; then
		kernel_build
		offline_kernel
	fi
	cleaned "$1"
	rm -rf "$ROOT"
}

# build_debs: in a root of the oldest release, whose programs run on the others, too; into $PACKAGES
build_debs()
{
	ROOT=$WORK/builder CLONE=/home/tester/src/lowq
	new_root "$ROOT" && uname -r >"$ROOT/opt/as-booted/release" &&
		as root 'apt-get -qq update && scripts/packages deb' >"$WORK/log" 2>&1 &&
		as tester 'make deb' >>"$WORK/log" 2>&1 && cp "$ROOT$CLONE"/out/deb/lowq-*.deb "$PACKAGES"
	verdict $? "user: make deb, for the roots without a compiler" "$WORK/log"
	rm -rf "$ROOT"
}

# digits DIR: what the demo's runs have measured, as one line
digits()
{
	(cd "$1" && find . -name result.json | LC_ALL=C sort | xargs cat | jq -cS '[.row, .seed, .metrics]') | sha256sum | cut -c1-8
}

# bare: the demo from packages alone; how long its first number and all of them take; a module of one's own
bare()
{
	local first all line foreign='lowq-bench --module /usr/share/doc/lowq-lab/examples/tcp_example --cc mine --seed 1 \
		--row "mine | example | dctcp | my control" --variant flows=2 --exact dctcp-long'

	ROOT=$WORK/bare CLONE=/home/tester BINDS=$PACKAGES:/debs
	bare_root "$ROOT"
	as root 'apt-get -qq update && apt-get -qq install --no-install-recommends /debs/lowq-{tools,lab,lab-kernel}_*.deb' >"$WORK/log" 2>&1
	verdict $? "root: apt-get install lowq-{tools,lab,lab-kernel}_*.deb" "$WORK/log" || return
	as tester '! type -P gcc cc clang make bison flex'
	verdict $? "no compiler came with them"
	first=$(as tester 'TIMEFORMAT="%R s, CPU %U + %S s"; time lowq-lab run -- uname -r' 2>&1 >"$WORK/log" | tail -n 1)
	[ "$(<"$WORK/log")" = "${KERNEL_RELEASE:?}" ]
	verdict $? "user: lowq-lab run -- uname -r ($first)" "$WORK/log"
	all=$(as tester 'TIMEFORMAT="%R s, CPU %U + %S s"; time lowq-bench --demo --seed 1 >log 2>&1; status=$?; [ $status -eq 0 ]' 2>&1 | tail -n 1)
	cp "$ROOT/home/tester/log" "$WORK/log"
	has_table "$WORK/log" && digits "$ROOT/home/tester/out/demo" >"$PACKAGES/digits.$SUITE"
	verdict $? "user: lowq-bench --demo --seed 1 ($all), digits $(cat "$PACKAGES/digits.$SUITE")" "$WORK/log" || return
	[ -z "${KEEP:-}" ] || cp -r "$ROOT/home/tester/out/demo" "$KEEP/demo-$SUITE"
	# another user's machine
	as tester 'mkdir -p /tmp/another/home/of/a/longer/name && cd /tmp/another/home/of/a/longer/name && HOME=$PWD LANG=C LC_ALL=POSIX \
		PATH=/bin:/sbin:/usr/bin:/usr/sbin FILLER=$(head -c 50000 /dev/zero | tr "\0" x) lowq-bench --demo --seed 1' >"$WORK/log" 2>&1 &&
		[ "$(digits "$ROOT/tmp/another/home/of/a/longer/name/out/demo")" = "$(<"$PACKAGES/digits.$SUITE")" ]
	verdict $? "user: the same digits with another HOME, PATH and locale" "$WORK/log"
	[ "$SUITE" != 12 ] || newer_ip
	as tester "$foreign" >"$WORK/log" 2>&1
	[ $? -eq 2 ] && line=$(named "$WORK/log") && [ "$line" ]
	verdict $? "user: --module without a compiler names the packages" "$WORK/log" || return
	as root "$line" >"$WORK/log" 2>&1 && as tester "$foreign" >"$WORK/log" 2>&1 && grep -q '^my control' "$WORK/log"
	verdict $? "user: a control of one's own, built with the package's kernel" "$WORK/log"
	rm -rf "$ROOT"
}

# newer_ip: the demo with ip, tc and ss of Debian 12's backports
newer_ip()
{
	as root 'sed "s/bookworm/&-backports/" /etc/apt/sources.list >/etc/apt/sources.list.d/backports.list && apt-get -qq update &&
		apt-get -qq install -t bookworm-backports iproute2 && dpkg -s iproute2 | grep "^Version: .*bpo"' >"$WORK/log" 2>&1
	verdict $? "root: iproute2 of the backports" "$WORK/log" || return
	as tester 'mkdir newer && cd newer && lowq-bench --demo --seed 1' >"$WORK/log" 2>&1 &&
		[ "$(digits "$ROOT/home/tester/newer/out/demo")" = "$(<"$PACKAGES/digits.$SUITE")" ]
	verdict $? "user: the same digits with $(as tester 'ip -V')" "$WORK/log"
}

# suite NUMBER: the ways that are run on it
suite()
{
	local lock status

	SUITE=$1 WORK=$ROOTS/work-$1.$$ SINCE=$SECONDS
	exec {lock}>"$ROOTS/.lock-$1"
	flock -n "$lock" || { say "Debian $1: waiting for another run"; flock "$lock"; }
	rm -rf "$ROOTS/work-$1".*	# what a killed run left
	mkdir "$WORK"
	ARCHIVES=$ROOTS/${CODENAME[$1]}-archives
	TAR=$(make_tar "${CODENAME[$1]}" 2>"$WORK/why")
	status=$?
	cat "$WORK/why" >&2
	if [ $status -eq 0 ]; then
		mkdir -p "$ARCHIVES/partial"
		SINCE=$SECONDS
		if [ "${ONLY:-}" = packages ]; then skipped "as a user"
		elif [ "$1" = 13 ] || [ "${FULL:+$1}" = 12 ]; then way tester; else skipped "as a user"; fi
		if [ "${ONLY:-}" = packages ]; then skipped "as root"
		elif [ "$1" = 12 ] || [ "${FULL:+$1}" = 13 ]; then way root; else skipped "as root"; fi
		if [ "${FULL:-}" ] || [ "${ONLY:-}" = packages ]; then
			if [ "$1" = "${SUITES[0]}" ]; then
				if [ "${GIVEN:-}" ]; then cp "$GIVEN"/lowq-*.deb "$PACKAGES"; else build_debs; fi
				touch "$PACKAGES/built"
			fi
			until [ -e "$PACKAGES/built" ]; do sleep 1; done
			bare
		fi
	else
		echo 0 >>"$WORK/verdicts"
		echo "ok - Debian $1: a minimal root # SKIP $(tail -n 1 "$WORK/why")"
	fi
	cp "$WORK/verdicts" "$VERDICTS.$1"
	rm -rf "$WORK"
}

SUITES=("$@")
if [ ${#SUITES[@]} -eq 0 ]; then
	SUITES=(12 13)
	[ ! "${FULL:-}" ] && [ "${ONLY:-}" != packages ] || SUITES+=(14)
fi
mapfile -t SUITES < <(printf '%s\n' "${SUITES[@]}" | sort -nu)
for s in "${SUITES[@]}"; do
	[ -n "${CODENAME[$s]:-}" ] || usage_error "unknown Debian release '$s': 12, 13 or 14"
done
[ "$(id -u)" -eq 0 ] || skip_all "needs root, to make a Debian root"
[ "$(dpkg --print-architecture 2>/dev/null)" = amd64 ] || skip_all "needs Debian on amd64"
git rev-parse HEAD >/dev/null 2>&1 || skip_all "not a git clone"
scripts/packages fresh 2>/dev/null || skip_all "mmdebstrap is not there and cannot be installed"
unshare --mount --pid --ipc --fork --kill-child sh -c 'mount --make-rprivate / && mount -t tmpfs t /mnt' 2>/dev/null ||
	skip_all "no namespaces or mounts here"
(mirror) >/dev/null 2>&1 || skip_all "no Debian mirror in this machine's apt set-up"
NAMED=$CACHE/kernel/$DEFAULT_KERNEL-virtual
kdir=$(scripts/lab kdir) || { echo "Bail out! no lab"; exit 1; }
KERNEL=$(readlink -f "$kdir/..")
LINKED=$(readlink "$KERNEL/source")	# may lead to it over further links
SOURCE=$(readlink -f "$KERNEL/source")
mkdir -p "$ROOTS"
KERNEL_RELEASE=$(<"$KERNEL/release")
VERDICTS=$(mktemp)
GIVEN=${DEBS:-}
PACKAGES=$(mktemp -d "$ROOTS/debs.XXXXXX") && chmod 755 "$PACKAGES"
# What runs in a root dies with the shell that started it.
trap 'kill -KILL $(jobs -p) 2>/dev/null; wait; sleep 0.2; rm -rf "$VERDICTS"* "$PACKAGES" "$ROOTS"/work-*.$$' EXIT
trap 'exit 143' INT TERM HUP

echo "TAP version 13"
for line in "make demo" "make modules" "sudo make install" "sudo make uninstall" "make deb"; do
	lines | grep -qx "$line"
	status=$?
	echo $status >>"$VERDICTS.readme"
	[ $status -eq 0 ] || printf 'not '
	echo "ok - README shows: $line"
done
for s in "${SUITES[@]}"; do
	suite "$s" &
done
wait
for s in "${SUITES[@]}"; do
	[ -s "$VERDICTS.$s" ] || echo "not ok - Debian $s: it ran to its end" | tee -a "$VERDICTS.$s"
done
if compgen -G "$PACKAGES/digits.*" >/dev/null; then
	[ "$(cat "$PACKAGES"/digits.* | sort -u | wc -l)" -eq 1 ]
	status=$?
	echo $status >>"$VERDICTS.digits"
	[ $status -eq 0 ] || printf 'not '
	echo "ok - the demo's digits are the same on Debian $(printf '%s ' "$PACKAGES"/digits.* | sed 's/[^ ]*digits\.//g; s/ $//')"
fi
echo "1..$(cat "$VERDICTS".* | wc -l)"
! cat "$VERDICTS".* | grep -qv '^0$'
