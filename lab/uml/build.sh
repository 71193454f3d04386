# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Builds the lab's kernels and, for each of them, the project's modules.
#
# The cache:
#   src/linux-VERSION-PATCH/          a kernel's source, patched
#   kernel/SERIES-FLAVOUR             link to the build in use for that name
#   kernel/VERSION-FLAVOUR-CONFIG/    the build; "complete" is its last file
#   modules/BUILD/SOURCES/            the project's modules for that build, with those of --module
#   tools/SOURCES/                    init, lab-start and seed.so
# What the package lowq-lab-kernel brings is laid out alike, in $PREBUILT, and is used where the cache has nothing.
# A name is made from the contents it stands for, and gets its last file or its
# place only when the build is complete: an interrupted build is continued.

FILES_OF_KERNEL=1624	# that building 7.3 makes; other series a few more or less

# open_lock FILE: of the cache, with its directory; sets lock
open_lock()
{
	mkdir -p "${1%/*}" "$CACHE/src" 2>/dev/null && { exec {lock}>"$1"; } 2>/dev/null ||
		die "cannot write to the cache $CACHE (set LOWQ_CACHE)"
}

# config_of SERIES FLAVOUR: the kernel configuration fragment
config_of()
{
	local own=$LABD/${1##*/}/extra.config

	cat "$LABD/common.config" "$LABD/$2.config"
	[ ! -f "$own" ] || cat "$own"
	[ -z "$OPT_CONFIG" ] || cat "$OPT_CONFIG"
}

# config_id SERIES FLAVOUR: what a build depends on, apart from the kernel's version
config_id()
{
	{
		config_of "$1" "$2"
		patches_of "$1" | xargs cat
		# trees of one version differ
		[[ $1 != */* ]] || realpath "$1"
	} | sha256sum | cut -c1-8
}

# A series ("7.3") or a path, as a name for links.
series_name()
{
	case $1 in
	*/*) echo "path-$(realpath "$1" | sha256sum | cut -c1-8)" ;;
	*) echo "$1" ;;
	esac
}

# current_build SERIES FLAVOUR: prints the finished build, fails if there is none. WHOLE: one with all of its source
current_build()
{
	local dir id

	id=$(config_id "$1" "$2")
	# the link may name the build of another checkout
	for dir in "$CACHE/kernel/$(series_name "$1")-$2" "$CACHE/kernel/$1".*"-$2-$id" "$PREBUILT/kernel/$1".*"-$2-$id"; do
		dir=$(readlink -f "$dir")
		[[ $dir != *-$id || ! -f $dir/complete || ( ${WHOLE:-} && ! -L $dir/source ) ]] || { printf '%s\n' "$dir"; return; }
	done
	return 1
}

# needs_packages SERIES FLAVOUR: the targets of scripts/packages that building what is missing takes
needs_packages()
{
	local build

	if ! build=$(current_build "$1" "$2"); then
		echo lab-build
	elif [ ${#OPT_MODULES[@]} -gt 0 ] || ! find_tools >/dev/null || ! find_modules "$build" >/dev/null; then
		echo lab-modules
	fi
}

# files_built: reads what make prints; prints the number of files so far, and errors
files_built()
{
	local line n=0

	while read -r line; do
		case $line in
		CC\ *|AR\ *|LD\ *|AS\ *|HOSTCC\ *) echo $((++n)) ;;
		*": error: "*|*": fatal error: "*|*"*** "*) say "$line" ;;
		complete) echo complete ;;
		esac
	done
}

# Every option of the fragment must have arrived: a lab without one would give wrong results and
# say nothing. Options that a kernel series does not know are left out by Kconfig: allowed.
check_config()
{
	local line name

	while IFS= read -r line; do
		name=${line%%=*}
		grep -qxF "$line" "$1/.config" && continue
		grep -rqs --include='Kconfig*' "^\(menu\)\?config ${name#CONFIG_}$" "$2" || continue
		[ "$name" = CONFIG_PROC_SYSCTL ] || say "note: $line is not what $1 has"
	done < <(grep '^CONFIG_.*=[ym]$' "$3")
}

build_kernel()
{
	local series=$1 flavour=$2 src dir lock version start=$SECONDS

	if dir=$(current_build "$series" "$flavour"); then
		say "kernel $series ($flavour) is built: $dir$([[ $dir != "$PREBUILT"/* ]] || echo " (package lowq-lab-kernel)")"
		return
	fi
	# make gets a Ctrl-C, too, and fails: that does not mean that the kernel does not build
	trap 'say "interrupted; the same command continues where it stopped"; exit 130' INT
	open_lock "$CACHE/kernel/lock"
	flock -n "$lock" || { say "waiting for another build"; flock "$lock"; }
	! current_build "$series" "$flavour" >/dev/null || { trap - INT; return 0; }
	need_packages lab-build
	case $series in
	*/*) src=$(from_path "$series") ;;
	*) src=$(from_debian "$series") ;;
	esac || exit
	version=$(make -s -C "$src" kernelversion) || die "unsupported kernel: $src"
	dir=$CACHE/kernel/$version-$flavour-$(config_id "$series" "$flavour")
	# one of "lab import" makes room for one that has its source
	[ ! -d "$dir/source" ] || [ -L "$dir/source" ] || rm -rf "$dir"
	if [ ! -f "$dir/complete" ]; then
		need_space "$CACHE" 1200 "building kernel $version"
		mkdir -p "$dir/build"
		config_of "$series" "$flavour" >"$dir/fragment"
		make -C "$src" ARCH=um SUBARCH=x86_64 O="$dir/build" \
			KCONFIG_ALLCONFIG="$dir/fragment" allnoconfig >"$dir/log" 2>&1 ||
			die "kernel $version cannot be configured: $(tail -n1 "$dir/log")"
		check_config "$dir/build" "$src" "$dir/fragment"
		rm -f "$dir/build/.version"	# the number of builds, which uname -v shows
		# make ends with the shell that waits for it, and that with this one
		# shellcheck disable=SC2016,SC2094 # the inner shell's; tee appends, nothing reads
		setpriv --pdeathsig TERM bash -c 'setpriv --pdeathsig TERM make "$@" 2>&1 && echo complete' make \
			-C "$src" ARCH=um SUBARCH=x86_64 O="$dir/build" -j"$(nproc)" \
			KBUILD_BUILD_TIMESTAMP=@0 KBUILD_BUILD_USER=lowq KBUILD_BUILD_HOST=lab linux modules |
			tee -a "$dir/log" | files_built | progress "building $version ($flavour)" $FILES_OF_KERNEL files
		[ "${PIPESTATUS[0]}" -eq 0 ] ||
			die "kernel $version does not build; see $dir/log (run the same command again to go on)"
		ln -sfn "$src" "$dir/source"
		make -s -C "$src" ARCH=um O="$dir/build" kernelrelease >"$dir/release"
		# modules of the kernel itself: --config has asked for them
		[ ! -s "$dir/build/modules.order" ] ||
			make -s -C "$src" ARCH=um O="$dir/build" INSTALL_MOD_PATH="$dir" modules_install >>"$dir/log" 2>&1 ||
			die "the modules of kernel $version cannot be installed; see $dir/log"
		touch "$dir/complete"
	fi
	ln -sfn "$dir" "$CACHE/kernel/$(series_name "$series")-$flavour"
	flock -u "$lock"
	trap - INT
	say "kernel $version ($flavour) built in $((SECONDS - start)) s"
}

# find_tools: prints the directory with the guest's init, lab-start and the seed library, if they are built
find_tools()
{
	local dir id

	id=$(hash_of "$LABD/init.c" "$LABD/seed.c" "$LABD/start.c")
	for dir in "$CACHE/tools/$id" "$PREBUILT/tools/$id"; do
		[ ! -f "$dir/seed.so" ] || { printf '%s\n' "$dir"; return; }
	done
	return 1
}

# build_tools: find_tools, or builds them
build_tools()
{
	local dir new flags=(-O2 -Wall -Wextra)

	if ! dir=$(find_tools); then
		dir=$CACHE/tools/$(hash_of "$LABD/init.c" "$LABD/seed.c" "$LABD/start.c")
		mkdir -p "$dir" 2>/dev/null && new=$(mktemp -d "$dir/.new.XXXXXX" 2>/dev/null) ||
			die "cannot write to the cache $CACHE (set LOWQ_CACHE)"
		# another lab may do the same now: files appear whole, and they are alike
		gcc "${flags[@]}" -o "$new/init" "$LABD/init.c" &&
			gcc "${flags[@]}" -o "$new/lab-start" "$LABD/start.c" &&
			gcc "${flags[@]}" -shared -fPIC -o "$new/seed.so" "$LABD/seed.c" ||
			{ rm -rf "$new"; die "the lab's own tools do not compile"; }
		mv "$new/init" "$new/lab-start" "$dir" && mv "$new/seed.so" "$dir" && rmdir "$new" ||
			die "cannot write to the cache $CACHE"
	fi
	printf '%s\n' "$dir"
}

# The modules' sources in DIR: what a change to makes them stale.
module_sources_in()
{
	# shellcheck disable=SC2010 # names are ours
	(cd "$1" && ls Kbuild dkms.conf ./*.c include/*.h hpccpp/*.[ch] roce/*.[ch] 2>/dev/null | grep -v '\.mod\.c$')
}

# lab_sources_in DIR: and the lab's own
lab_sources_in()
{
	module_sources_in "$1"
	# shellcheck disable=SC2010 # names are ours
	(cd "$1" && ls lab/{acks,link}/* 2>/dev/null | grep -v '\.mod\.c$')
}

# own_sources DIR: the files of a --module DIR, except hidden ones and those that a build has made
own_sources()
{
	(cd "$1" && find . -name '.?*' -prune -o -xtype f ! -name '*.ko' ! -name '*.o' ! -name '*.mod' ! -name '*.mod.c' \
		! -name '*.symvers' ! -name '*.order' -print | LC_ALL=C sort)
}

# copy_sources FROM TO LIST: the files that "LIST DIR" names, with a new date where the contents are new:
# another checkout, with other dates, may have used TO before
copy_sources()
{
	local file

	mkdir -p "$2" || return
	find "$2" -name '*.ko' -delete
	(cd "$2" && "$3" . | (cd "$1" && while read -r file; do
		[ -e "$file" ] || echo "$file"
	done) | xargs -rd '\n' rm -f)
	"$3" "$1" | while read -r file; do
		cmp -s "$1/$file" "$2/$file" || install -D -m 644 "$1/$file" "$2/$file" || exit
	done
}

# modules_id BUILD: what stands for the modules of these sources, built for BUILD; sets FLAGS, with which they are built
modules_id()
{
	# the same modules wherever the cache is: no path of it in what they print
	FLAGS=(-ffile-prefix-map="$(readlink -f "$1/source")/=" -ffile-prefix-map="$CACHE/modules/$(basename "$1")/work/=")
	# a branch of an inline function counts once, not once for each place that it is used in
	[[ $1 != *-coverage-* ]] || FLAGS+=(-fno-inline)
	(cd "$PROJECT" && lab_sources_in . | xargs cat /dev/null; echo "prefix-map${FLAGS[2]:-}") | sha256sum | cut -c1-8
}

# find_modules BUILD: prints the directory that belongs at /lib/modules/RELEASE, if it is built; nothing where the
# project has no modules
find_modules()
{
	local own dir id

	own=$1/lib/modules/$(cat "$1/release")		# what --config has asked for
	# with the series of devel/intree the project's modules are among them
	if [ ! -f "$PROJECT/Kbuild" ] || grep -qs '^CONFIG_LOWQ=' "$1/build/.config"; then
		[ ! -d "$own" ] || printf '%s\n' "$own"
		return 0
	fi
	id=$(modules_id "$1")
	for dir in "$CACHE" "$PREBUILT"; do
		dir=$dir/modules/$(basename "$1")/$id
		[ ! -d "$dir" ] || { printf '%s\n' "$dir"; return; }
	done
	return 1
}

# build_modules BUILD: find_modules, or builds them. Sources are copied aside, so that several kernels never meet
# in one tree.
build_modules()
{
	local build=$1 base work release own out lock FLAGS=()

	if out=$(find_modules "$build"); then
		[ ! -w "$out" ] || touch "$out"
		[ -z "$out" ] || printf '%s\n' "$out"
		return
	fi
	release=$(cat "$build/release")
	own=$build/lib/modules/$release
	base=$CACHE/modules/$(basename "$build")
	work=$base/work
	modules_id "$build" >/dev/null
	out=$base/$(modules_id "$build")
	if [ ! -d "$out" ]; then
		open_lock "$base/lock"
		flock "$lock"
		if [ ! -d "$out" ]; then
			copy_sources "$PROJECT" "$work" lab_sources_in || die "cannot copy the modules' sources"
			make -C "$(readlink -f "$build/source")" ARCH=um SUBARCH=x86_64 O="$build/build" M="$work" \
				KCFLAGS="${FLAGS[*]}" LOWQ_LAB=lab GCOV_PROFILE=y W=1 -j"$(nproc)" modules >"$base/log" 2>&1 ||
				{ cat "$base/log" >&2; die "the modules do not build"; }
			grep -E 'warning:|WARNING' "$base/log" >&2
			rm -rf "$base/tmp"
			mkdir -p "$base/tmp/lib/modules/$release/updates"
			cp "$work"/*.ko "$base/tmp/lib/modules/$release/updates/" &&
				cp "$build"/build/modules.{order,builtin,builtin.modinfo} "$base/tmp/lib/modules/$release/" &&
				{ [ ! -d "$own/kernel" ] || cp -r "$own/kernel" "$base/tmp/lib/modules/$release/"; } &&
				depmod -b "$base/tmp" "$release" || die "depmod failed"
			gcc --version | head -n1 >"$base/tmp/lib/modules/$release/compiler"
			# what gcov needs to read the counters; only the coverage flavour has it
			(cd "$work" && find . -name '*.gcno' -exec cp --parents -t "$base/tmp/lib/modules/$release" {} +)
			mv "$base/tmp/lib/modules/$release" "$out"
			# what no run has used for a day
			find "$base" -mindepth 1 -maxdepth 1 \( -name '????????' -o -name 'own.*' \) -mtime +0 -exec rm -rf {} +
		fi
		flock -u "$lock"
	fi
	touch "$out"
	printf '%s\n' "$out"
}

# build_own DIR WORK BUILD [SYMBOLS...]: builds the modules of DIR in WORK, a copy of it; they may use what
# the modules of SYMBOLS export. -g: a crash names its line
build_own()
{
	local source

	source=$(readlink -f "$3/source")
	copy_sources "$1" "$2" own_sources || die "cannot copy $1"
	make -C "$source" ARCH=um SUBARCH=x86_64 O="$3/build" M="$2" KBUILD_EXTRA_SYMBOLS="${*:4}" \
		KCFLAGS="-g -ffile-prefix-map=$source/= -ffile-prefix-map=$2/=" -j"$(nproc)" modules >"$2.log" 2>&1
	local status=$?
	# what compiler and linker say, as it is
	grep -vE '^  [A-Z]+ |: (Entering|Leaving) directory ' "$2.log" >&2
	[ $status -eq 0 ] || die "--module: $1 does not build"
	[ -n "$(find "$2" -name '*.ko' -print -quit)" ] || die "--module: the Kbuild of $1 makes no module"
}

# own_modules BUILD MODULES DIR...: prints a directory that has what MODULES has, which may be empty, and
# the modules of each DIR; one of the same name replaces the project's
own_modules()
{
	local build=$1 modules=$2 base id out lock dir work release file symbols=() files=()

	shift 2
	base=$CACHE/modules/$(basename "$build")
	id=$( (echo "$modules -g"; for dir; do
		cd "$dir" && own_sources . | xargs -d '\n' sha256sum
	done) | sha256sum | cut -c1-8)
	out=$base/$id
	open_lock "$base/lock"
	flock "$lock"
	if [ ! -d "$out" ]; then
		release=$(cat "$build/release")
		rm -rf "$base/tmp"
		mkdir -p "$base/tmp/lib/modules/$release/updates"
		if [ "$modules" ]; then
			cp -al "$modules/." "$base/tmp/lib/modules/$release/"
		else
			cp "$build"/build/modules.{order,builtin,builtin.modinfo} "$base/tmp/lib/modules/$release/"
		fi
		for dir; do
			work=$base/own.$(sha256sum <<<"$dir" | cut -c1-8)
			build_own "$dir" "$work" "$build" "${symbols[@]}"
			symbols+=("$work/Module.symvers")
			while read -r file; do
				[[ " ${files[*]} " != *" ${file##*/} "* ]] || die "--module: two directories make ${file##*/}"
				files+=("${file##*/}")
				cp --remove-destination "$file" "$base/tmp/lib/modules/$release/updates/" || die "cannot copy $file"
			done < <(find "$work" -name '*.ko')
		done
		rm -f "$base/tmp/lib/modules/$release/compiler"
		gcc --version | head -n1 >"$base/tmp/lib/modules/$release/compiler"
		# the index is new, never that of MODULES, whose files these are, too
		find "$base/tmp" -name 'modules.*' ! -name 'modules.order' ! -name 'modules.builtin*' -delete
		depmod -b "$base/tmp" "$release" || die "depmod failed"
		mv "$base/tmp/lib/modules/$release" "$out"
	fi
	flock -u "$lock"
	touch "$out"
	printf '%s\n' "$out"
}
