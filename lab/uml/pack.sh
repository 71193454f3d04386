# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# A built lab as one archive, for machines that have no compiler: "lab export", "lab import", and the package
# lowq-lab-kernel, whose contents lie in $PREBUILT. It is laid out as the cache is (build.sh); a kernel's "source"
# is a directory with what building modules needs, and nothing else of it. "manifest" says what it is, then, after
# an empty line, the SHA-256 of each file.

PACK_FORMAT=1
PACK_MIB=160		# what an archive takes when it is unpacked, with the copy of it

# Headers that no module for UML includes: a third of include/
NO_HEADERS=(drm dt-bindings sound media xen cxl hyperv kvm ufs video soc scsi pcmcia 'linux/mfd' 'linux/platform_data'
	'linux/mlx5' 'linux/mlx4' 'linux/iio' 'linux/usb' 'linux/mtd' 'linux/soc' 'linux/regulator' 'linux/qed' 'linux/amba'
	'uapi/drm' 'uapi/sound' 'uapi/misc' 'uapi/scsi' 'uapi/xen')

# source_version BUILD: Debian's name and version of the package that this kernel was built from; from_debian()
# has made a file's name of it
source_version()
{
	local name

	name=$(basename "$(readlink -f "$1/source")")
	[[ $name =~ ^linux-([0-9]+\.[0-9]+)(.*)-[0-9a-f]{8}$ ]] || return
	printf 'linux-source-%s %s\n' "${BASH_REMATCH[1]}" \
		"$(sed -E 's/_(bpo|rc|exp)/~\1/; s/_/+/g' <<<"${BASH_REMATCH[1]}${BASH_REMATCH[2]}")"
}

# field NAME MANIFEST
field()
{
	sed -n "/^\$/q; s/^$1: //p" "$2"
}

# copy_build BUILD TO: of a kernel's build and source, what running it and building modules for it needs
copy_build()
{
	local build=$1/build source to=$2 dir prune=()

	source=$(readlink -f "$1/source")
	mkdir -p "$to/build" "$to/source" || return
	cp "$1/release" "$to" && strip -o "$to/build/linux" "$build/linux" || return
	for dir in "${NO_HEADERS[@]}"; do
		prune+=(-path "./include/$dir" -o)
	done
	(cd "$build" && find .config Module.symvers modules.order modules.builtin modules.builtin.modinfo include arch/*/include \
		scripts/basic/fixdep scripts/mod/modpost scripts/module.lds -type f ! -name '*.cmd' ! -name '*.o' -print0 |
		xargs -0 cp --parents -t "$to/build") && strip "$to"/build/scripts/{basic/fixdep,mod/modpost} || return
	(cd "$source" && {
		find ./include \( "${prune[@]}" -false \) -prune -o -type f -name '*.h' -print
		find ./arch/um ./arch/x86 -name boot -prune -o -type f \( -path '*/include/*' -o -name '*.h' -o -name 'Makefile*' \
			-o -name 'Kbuild*' -o -path './arch/um/scripts/*' \) -print
		find ./scripts -maxdepth 1 -type f \( -name 'Makefile*' -o -name '*.include' -o -name '*-version.sh' -o -name 'module*' \
			-o -name 'min-tool*' -o -name 'check-local-export' -o -name 'mkcompile*' -o -name 'tools-support*' -o -name 'gcc-*.sh' -o -name '*-can-link*' \)
		find ./Makefile ./Kbuild ./COPYING ./LICENSES/preferred/GPL-2.0 ./LICENSES/exceptions ./scripts/basic ./scripts/mod ./scripts/include \
			./scripts/gcc-plugins -type f ! -name '*.c' ! -name .gitignore 2>/dev/null
	} | tr '\n' '\0' | xargs -0 cp --parents -t "$to/source") || return
	touch "$to/complete"
}

# place_build DIR: names this place in a kernel's build that is at DIR, for make -C DIR/build
place_build()
{
	printf 'export KBUILD_OUTPUT = %s\ninclude %s\n' "$1/build" "$1/source/Makefile" >"${2:-$1}/build/Makefile"
}

# sums DIR: the SHA-256 of each file but the manifest, and but those that name a place
sums()
{
	(cd "$1" && find . -type f ! -path ./manifest ! -path './kernel/*/build/Makefile' -print0 | LC_ALL=C sort -z | xargs -0 sha256sum)
}

# lay_out SERIES FLAVOUR DIR: a built lab in DIR; builds what is missing
lay_out()
{
	local build modules tools name

	build=$(current_build "$1" "$2") || return
	modules=$(build_modules "$build") && tools=$(build_tools) || return
	name=$(basename "$build")
	mkdir -p "$3/kernel" "$3/modules/$name" "$3/tools" &&
		cp -r "$tools" "$3/tools" && cp -r "$modules" "$3/modules/$name" || return
	strip "$3"/tools/*/* || return
	if [ -L "$build/source" ]; then
		copy_build "$build" "$3/kernel/$name"
	else
		cp -r "$build" "$3/kernel"
		rm -f "$3/kernel/$name/build/Makefile"
	fi || return
	{
		cat <<-END
			format: $PACK_FORMAT
			architecture: $(uname -m)
			kernel: $name
			series: $1
			flavour: $2
			modules: $(basename "$modules")
			tools: $(basename "$tools")
			lowq: $(sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' "$PROJECT/dkms.conf")
			source: $([ -L "$build/source" ] && source_version "$build" || field source "$(manifest_of "$build")")
			licence: GPL-2.0; source is Debian's package of this name and version, with lowq's lab/uml/*.patch
			compiler: $(sed -n 's/^CONFIG_CC_VERSION_TEXT="\(.*\)"/\1/p' "$build/build/.config")

		END
		sums "$3"
	} >"$3/manifest"
}

# manifest_of BUILD: the manifest with which it came
manifest_of()
{
	if [[ $1 == "$PREBUILT"/* ]]; then echo "$PREBUILT/manifest"; else echo "$1/manifest"; fi
}

# export_lab SERIES FLAVOUR FILE: compressed, unless FILE is called .tar
export_lab()
{
	local file compress=(xz -T0)

	file=$(realpath -m -- "$3")
	[[ $file != *.tar ]] || compress=(cat)
	[ -d "${file%/*}" ] && [ -w "${file%/*}" ] && [ ! -d "$file" ] || die "cannot write to $3"
	PACK=$(mktemp -d "${TMPDIR:-/tmp}/lowq-export.XXXXXX") || die "no temporary directory"
	need_space "$PACK" $PACK_MIB "lab export"
	lay_out "$1" "$2" "$PACK/lowq-lab" || die "the lab cannot be copied to $PACK (disk full?)"
	PARTIAL=$file.part
	# the manifest comes first: a foreign archive is known by its beginning. The same lab makes the same archive.
	(cd "$PACK" && { echo lowq-lab/manifest; find lowq-lab -type f ! -path lowq-lab/manifest | LC_ALL=C sort; } |
		tar --owner=0 --group=0 --numeric-owner --mode=go=rX,u+w --mtime=@0 -T- -cf - | "${compress[@]}" >"$PARTIAL") 2>/dev/null &&
		[ -s "$PARTIAL" ] && mv "$PARTIAL" "$file" || die "cannot write $3 (disk full?)"
	say "$3: $(field kernel "$PACK/lowq-lab/manifest"), $(du -m "$file" | cut -f1) MB"
}

# import_lab FILE: all of it, or nothing: the kernel gets its place last
import_lab()
{
	local file=$1 name series flavour lock dir

	[ -f "$file" ] && [ -r "$file" ] || usage_error "lab import: cannot read '$file'"
	open_lock "$CACHE/kernel/lock"
	flock -n "$lock" || { say "waiting for another build"; flock "$lock"; }
	rm -rf "$CACHE"/importing.*	# what a killed one left
	PACK=$CACHE/importing.$$
	mkdir -p "$CACHE"/{modules,tools} "$PACK" 2>/dev/null || die "cannot write to the cache $CACHE (set LOWQ_CACHE)"
	[ "$(tar -tf "$file" 2>/dev/null | head -n 1)" = lowq-lab/manifest ] || die "$file is not from lab export"
	need_space "$CACHE" $PACK_MIB "lab import"
	dir=$PACK/lowq-lab
	tar -C "$PACK" --no-same-owner --no-same-permissions -xf "$file" 2>"$PACK/why" ||
		die "$file is damaged, or the disk is full: $(head -n 1 "$PACK/why")"
	[ -z "$(find "$PACK" ! -type f ! -type d -print -quit)" ] || die "$file is not from lab export: it has links"
	[ "$(field format "$dir/manifest")" = $PACK_FORMAT ] || die "$file is of another version of lowq"
	[ "$(field architecture "$dir/manifest")" = "$(uname -m)" ] ||
		die "$file is for $(field architecture "$dir/manifest"), and this is $(uname -m)"
	sums "$dir" | cmp -s - <(sed '1,/^$/d' "$dir/manifest") || die "$file is damaged: its files do not have the manifest's checksums"
	name=$(field kernel "$dir/manifest") series=$(field series "$dir/manifest") flavour=$(field flavour "$dir/manifest")
	[[ $series =~ ^[0-9]+\.[0-9]+$ && $flavour =~ ^[a-z]+$ && $name == *-"$flavour"-* && $name != */* && -f $dir/kernel/$name/complete ]] ||
		die "$file is damaged: its manifest names no kernel"
	[[ $name == *-"$(config_id "$series" "$flavour")" ]] ||
		die "$file has $name; this lowq's patches and configuration make ${name%-*}-$(config_id "$series" "$flavour")"
	"$dir/kernel/$name/build/linux" --version >/dev/null 2>"$PACK/why" || die "$name does not run here: $(head -n 1 "$PACK/why")"
	cp "$dir/manifest" "$dir/kernel/$name/manifest"
	place_build "$CACHE/kernel/$name" "$dir/kernel/$name" || die "cannot write to $CACHE"
	move_in "$dir/tools" "$CACHE/tools" && mkdir -p "$CACHE/modules/$name" && move_in "$dir/modules/$name" "$CACHE/modules/$name" &&
		{ [ -f "$CACHE/kernel/$name/complete" ] || rm -rf "${CACHE:?}/kernel/$name"; } &&
		move_in "$dir/kernel" "$CACHE/kernel" && ln -sfn "$CACHE/kernel/$name" "$CACHE/kernel/$series-$flavour" ||
		die "cannot write to $CACHE"
	say "kernel $series ($flavour) is here: $CACHE/kernel/$name"
}

# move_in FROM TO: the directories of FROM that TO does not have
move_in()
{
	local dir

	for dir in "$1"/*; do
		# touched: what was not used for a day is removed
		[ -e "$2/${dir##*/}" ] || { touch "$dir" && mv -T "$dir" "$2/${dir##*/}"; } || return
	done
}

end_pack()
{
	[ -z "${PACK:-}" ] || rm -rf "$PACK"
	[ -z "${PARTIAL:-}" ] || rm -f "$PARTIAL"
}
