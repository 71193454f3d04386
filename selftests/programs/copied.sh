# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# A copy of the programs under test. The guest cannot write to the tree, so Python would compile all that changed
# since the last start on the host again at each start: twice the time. In a copy it stays.

# copied NAME...: lowq-NAME, with what they share, into $TMP/scripts
copied()
{
	local name paths=()

	for name in "$@" common; do
		paths+=("$LOWQ_ROOT"/scripts/lowq[-_]"$name")
	done
	chmod a+rx "$TMP"	# for an ordinary user
	mkdir "$TMP/scripts"
	cp -rp "${paths[@]}" "$TMP/scripts"	# -p: what is compiled goes by the source's time
	cp "$LOWQ_ROOT/dkms.conf" "$TMP"	# has the version
}
