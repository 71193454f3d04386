# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Gets a kernel's source as Debian's linux-source-X.Y package, through apt with
# a private state, so that nothing of the machine's own set-up changes and the
# archive's signatures are checked; or takes a tree that the user has.

# The mirror of the machine's own apt set-up.
mirror()
{
	local uri

	# shellcheck disable=SC2016 # apt's fields, not the shell's
	uri=$(apt-get indextargets --format '$(ORIGIN)|$(LABEL)|$(REPO_URI)' \
		'Created-By: Packages' 2>/dev/null |
		awk -F'|' '$1 == "Debian" && $2 == "Debian" { print $3; exit }')
	[ -n "$uri" ] || uri=$(awk '/^URIs:/ && $2 ~ /\/debian\/?$/ { print $2; exit }
		/^deb / { for (i = 2; i <= NF; i++) if ($i ~ /^http.*\/debian\/?$/) { print $i; exit } }' \
		/etc/apt/sources.list.d/*.sources /etc/apt/sources.list 2>/dev/null)
	[ -n "$uri" ] || die "no Debian mirror in this machine's apt set-up: use --kernel PATH"
	printf '%s\n' "${uri%/}"
}

# apt_options: of this machine's apt, a line each, what another root's needs, too
apt_options()
{
	apt-config dump | grep -iE '^Acquire::(https?::Proxy|Check-Valid-Until) '
}

# The suites that carry a kernel series, the likeliest first, a line each.
suites()
{
	case $1 in
	6.1) echo bookworm ;;
	6.12) echo trixie ;;
	*) echo trixie-backports; echo forky; echo sid ;;
	esac
}

private_apt()
{
	local dir=$CACHE/apt

	"$1" -o Dir::Etc::SourceList="$dir/sources.list" -o Dir::Etc::SourceParts=- \
		-o Dir::State="$dir/state" -o Dir::Cache="$dir/cache" \
		-o Dir::State::status=/dev/null -o APT::Sandbox::User=root \
		-o Acquire::Languages=none "${@:2}"
}

# use_suite SUITE: points the private apt at it and reads its index.
use_suite()
{
	local dir=$CACHE/apt key=/usr/share/keyrings/debian-archive-keyring.gpg url

	url=$(mirror) || exit
	rm -rf "$dir"
	mkdir -p "$dir"/state/lists/partial "$dir"/cache/archives/partial
	echo "deb [signed-by=$key] $url $1 main" >"$dir/sources.list"
	# without the option apt-get takes a mirror that it cannot reach for a mere warning
	private_apt apt-get -qq -o APT::Update::Error-Mode=any update >"$dir/log" 2>&1 ||
		die "apt cannot read Debian's index of $1 (no network?): $(grep -m1 "^[EW]:" "$dir/log")"
}

# Prints the linux-source package for series $1 that the suite in use has: the
# series itself, or with "newest" the newest of the same major number.
source_package()
{
	local names

	names=$(private_apt apt-cache search --names-only '^linux-source-[0-9.]+$' |
		cut -d' ' -f1 | sort -V)
	if [ "$2" = newest ]; then
		grep "^linux-source-${1%%.*}\." <<<"$names" | tail -n1
	else
		grep -x "linux-source-$1" <<<"$names"
	fi
}

# Leaves the suite in use that has the source of series $1; prints the package.
find_package()
{
	local suite pkg mode

	for mode in exact newest; do
		for suite in $(suites "$1"); do
			use_suite "$suite" || exit
			pkg=$(source_package "$1" $mode) && [ -n "$pkg" ] || continue
			[ $mode = exact ] ||
				say "Debian no longer carries $1: taking ${pkg#linux-source-} from $suite"
			printf '%s\n' "$pkg"
			return
		done
	done
	die "no source package for kernel $1 in: $(suites "$1" | tr '\n' ' ')"
}

# What no UML is built from, whatever its configuration, is half of Debian's source: the code of other architectures,
# of graphics and of sound, bindings and translations of the documentation. Kconfig reads files of all of them.
# arch/arm, arch/arm64 and arch/s390 stay: devel/lint compiles the modules for them.
NOT_UML=('--exclude=linux-source-*/arch/a[!r]*/*.[chS]' '--exclude=linux-source-*/arch/arc/*.[chS]'
	'--exclude=linux-source-*/arch/[b-rtvwyz]*/*.[chS]' '--exclude=linux-source-*/arch/s[!3]*/*.[chS]'
	'--exclude=linux-source-*/arch/xtensa/*.[chS]'
	'--exclude=linux-source-*/arch/*.dts*'
	'--exclude=linux-source-*/drivers/gpu/*.[chS]' '--exclude=linux-source-*/sound/*.[ch]'
	'--exclude=linux-source-*/Documentation/devicetree/*' '--exclude=linux-source-*/Documentation/translations/*')

# patches_of SERIES: the lab's patches, a line each: the general ones, and those in
# a directory named like the series, which take the place of one of the same name
patches_of()
{
	local p own=$LABD/${1##*/}

	for p in "$LABD"/*.patch; do
		[ -f "$own/${p##*/}" ] || printf '%s\n' "$p"
	done
	[ ! -d "$own" ] || printf '%s\n' "$own"/*.patch
}

patches_id()
{
	patches_of "$1" | xargs cat | sha256sum | cut -c1-8
}

# prepare_tree SERIES DIR: patches the tree; done once, before it gets its name.
prepare_tree()
{
	local p

	while read -r p; do
		patch -d "$2" -p1 --quiet --forward --no-backup-if-mismatch <"$p" >"$2.patchlog" 2>&1 ||
			die "unsupported kernel: $(basename "$p") does not apply ($(head -n1 "$2.patchlog"))"
		rm -f "$2.patchlog"
	done < <(patches_of "$1")
}

version_of()
{
	private_apt apt-cache show "$1" | awk '/^Version:/ { print $2; exit }'
}

# tree_of VERSION: the name of its source's directory, without the patches' id
tree_of()
{
	printf 'linux-%s\n' "${1//[^0-9A-Za-z.-]/_}"
}

# download PACKAGE DIR
download()
{
	(cd "$2" && private_apt apt-get -qq download "$1" >log 2>&1)
}

# unpack PACKAGE DIR TREE [tar's option or member]...: downloads a source package to DIR, and unpacks it in TREE
unpack()
{
	local size archive status

	size=$(private_apt apt-cache show "$1" | awk '/^Size:/ { print int($2 / 1048576) + 1; exit }')
	grows "$2" download "$1" "$2" | progress "downloading $1" "${size:-160}" MB
	[ "${PIPESTATUS[0]}" -eq 0 ] || die "cannot download $1: $(tail -n1 "$2/log")"
	grows "$2/pkg" dpkg -x "$2"/*.deb "$2/pkg" | progress "opening $1" "${size:-160}" MB
	status=${PIPESTATUS[0]}
	archive=$(echo "$2"/pkg/usr/src/linux-source-*.tar.xz)
	# tar says every 1000 records, of 10 kB
	[ "$status" -eq 0 ] && mkdir -p "$3" && {
		tar -C "$3" --checkpoint=1000 --checkpoint-action=echo=%u --anchored --strip-components=1 -xJf "$archive" "${@:4}" 2>&1 &&
			echo complete
	} | tee "$2/log" | sed -un 's/^tar: \([0-9]*\)$/\1/p; /^complete$/p' |
		progress "unpacking $1" "$(($(xz --robot --list "$archive" | awk '/^totals/ { print $5 }') / 10240 + 1))" records
	[ "$(tail -n1 "$2/log")" = complete ] || die "cannot unpack $1 (disk full?)"
}

# from_debian SERIES: prints the source directory, fetched and patched.
from_debian()
{
	local pkg version dir tmp patched

	patched=$(patches_id "$1")
	# shellcheck disable=SC2012 # names are ours
	dir=$(ls -d "$CACHE/src/linux-$1."*"-$patched" 2>/dev/null | sort -V | tail -n1)
	if [ -d "$dir" ]; then
		printf '%s\n' "$dir"
		return
	fi
	need_space "$CACHE" 2600 "kernel $1's source and build"
	say "kernel $1: looking for the source in Debian's archive"
	pkg=$(find_package "$1") || exit
	version=$(version_of "$pkg")
	dir=$CACHE/src/$(tree_of "$version")-$patched
	if [ ! -d "$dir" ]; then
		tmp=$CACHE/src/fetching.$$
		rm -rf "$CACHE"/src/fetching.*
		mkdir -p "$tmp"
		say "kernel $1: downloading $pkg $version (160 MB)"
		unpack "$pkg" "$tmp" "$tmp/tree" "${NOT_UML[@]}"
		prepare_tree "$1" "$tmp/tree" || exit
		mv "$tmp/tree" "$dir"
		rm -rf "$tmp"
	fi
	rm -rf "$CACHE/apt"
	printf '%s\n' "$dir"
}

# unpack_arch TREE ARCH: gives a tree of Debian's all of arch/ARCH, which NOT_UML leaves out or has left out when
# the tree was made. Takes half a minute; no build of the lab depends on it.
unpack_arch()
{
	local name=${1##*/} series pkg version tmp=$CACHE/arch

	[[ $name =~ ^linux-([0-9]+\.[0-9]+) ]] || die "$1 is not of Debian's archive, and has no arch/$2"
	series=${BASH_REMATCH[1]}
	pkg=$(find_package "$series") || exit
	version=$(version_of "$pkg")
	[[ $name == "$(tree_of "$version")"-* ]] ||
		die "$name has no arch/$2, and Debian has $version now; \"scripts/lab clean\" removes it"
	rm -rf "$tmp" "$1/arch/.$2"
	mkdir -p "$tmp"
	unpack "$pkg" "$tmp" "$tmp/tree" --wildcards "linux-source-*/arch/$2/*"
	# it appears whole
	cp -a "$tmp/tree/arch/$2" "$1/arch/.$2" && rm -rf "${1:?}/arch/$2" && mv "$1/arch/.$2" "$1/arch/$2" ||
		die "cannot write to $1"
	rm -rf "$tmp" "$CACHE/apt"
}

# from_path DIR: a patched copy of the user's tree, which stays as it is.
from_path()
{
	local dir tmp

	[ -f "$1/arch/um/Makefile" ] || die "unsupported kernel: $1 holds no kernel source (arch/um/Makefile)"
	dir=$CACHE/src/path-$(realpath "$1" | sha256sum | cut -c1-8)-$(patches_id "$1")
	if [ ! -d "$dir" ]; then
		need_space "$CACHE" 3500 "a copy of $1 and its build"
		tmp=$CACHE/src/fetching.$$
		rm -rf "$CACHE"/src/fetching.*
		mkdir -p "$tmp"
		say "copying $1"
		cp -a --reflink=auto "$1" "$tmp/tree" || die "cannot copy $1"
		rm -rf "$tmp/tree/.git"
		[ ! -f "$tmp/tree/.config" ] || make -C "$tmp/tree" -s mrproper || die "make mrproper failed in a copy of $1"
		prepare_tree "$1" "$tmp/tree" || exit
		mv "$tmp/tree" "$dir"
		rm -rf "$tmp"
	fi
	printf '%s\n' "$dir"
}
