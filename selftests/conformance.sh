#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Compares docs/conformance.md with the tests and the code: the files, functions and tests that
# a row names exist, every requirement that a test names has a row, and row and test name each
# other.
set -u

cd "$(dirname "$0")" || exit
DOC=../docs/conformance.md
n=0
failed=0

ok()
{
	n=$((n + 1))
	echo "ok $n $1"
}

not_ok()
{
	n=$((n + 1))
	failed=$((failed + 1))
	echo "not ok $n $1"
	echo "# $2"
}

# ids_of SCRIPT FUNCTION: the requirements a test says it covers
ids_of()
{
	sed -n "s/^declare_test $2 \"\([^\"]*\)\".*/\1/p" "$1"
}

# check_ref ID REFERENCE: prints what is wrong with it
check_ref()
{
	local id=$1 file=${2%%: *} name=${2#*: }

	case $file in
	bench)
		[ -f "../bench/scenarios/$name.sh" ] || echo "no scenario $name"
		;;
	unit/*)
		grep -qs "\b${name}__" "$file" || echo "$file has no test $name"
		;;
	*.sh)
		if [ ! -f "$file" ]; then
			echo "no script $file"
		elif grep -q '^declare_test' "$file"; then
			grep -q "^declare_test $name " "$file" || { echo "$file has no test $name"; return; }
			[[ " $(ids_of "$file" "$name") " == *" $id "* ]] || echo "$file: $name does not name $id"
		else
			grep -qE "\b$name\b" "$file" || { echo "$file has no test $name"; return; }
			grep -qE "\b$id\b" "$file" || echo "$file does not name $id"
		fi
		;;
	*)
		echo "'$2' is no test"
		;;
	esac
}

# The files in which to look for a function or parameter that a row names without a file.
mapfile -t SOURCES < <(cd .. && ls ./*.c include/*.h roce/*.[ch] tc/*.[ch])

# check_where TEXT: prints what is wrong with the column "Where". `path` is a file of the
# project. A word with an underscore is a name in the code. It is looked for in the file named
# before it, if there is one since the last comma or semicolon, otherwise in all sources. Other
# words are prose.
check_where()
{
	local part word file

	while read -r part; do
		file=
		for word in $part; do
			if [[ $word =~ ^\`(.*)\`$ ]]; then
				file=${BASH_REMATCH[1]}
				[ -f "../$file" ] || echo "no file $file"
			elif [[ $word =~ ^[[:alpha:]][[:alnum:]]*_[[:alnum:]_]*$ ]]; then
				if [ "$file" ]; then
					grep -qsw "$word" "../$file" || echo "$file has no $word"
				else
					(cd .. && grep -qsw "$word" "${SOURCES[@]}") || echo "no $word in the code"
				fi
			fi
		done
	done < <(tr ',;=' '\n' <<<"$1")
}

echo "TAP version 13"
while IFS='|' read -r _ id level what where shown state _; do
	id=${id// /}
	wrong=
	while read -r ref; do
		[ -n "$ref" ] || continue
		wrong+=$(check_ref "$id" "$ref")
	done < <(tr ';' '\n' <<<"$shown" | sed 's/^ *//; s/ *$//')
	wrong+=$(check_where "$where")
	[[ $state =~ ^\ *(done|choice:|deviates:|n/a:|open:) ]] || wrong+="state is '$state'"
	# the parameter, or lowq-tc's option, that gives the document's letter
	if [[ $state =~ ^\ *choice:\ \`lowq-tc\ ([a-z]+)\ (--[a-z]+)\ [^\`]*\` ]]; then
		../scripts/lowq-tc "${BASH_REMATCH[1]}" --help | grep -qe "${BASH_REMATCH[2]}" ||
			wrong+="lowq-tc ${BASH_REMATCH[1]} has no ${BASH_REMATCH[2]}"
	elif [[ $state =~ ^\ *choice: ]]; then
		[[ $state =~ ^\ *choice:\ \`([a-z_]+)=[0-9]+\` ]] || wrong+="a choice names no parameter"
		(cd .. && grep -qs "CC_PARAM(${BASH_REMATCH[1]:-}," "${SOURCES[@]}") ||
			wrong+="no parameter ${BASH_REMATCH[1]:-}"
	fi
	[ -n "${shown// /}" ] || [[ $state =~ ^\ *(n/a|open): ]] || wrong+="nothing shows it"
	[ -n "${where// /}" ] && [ -n "${what// /}" ] && [ -n "${level// /}" ] || wrong+="a column is empty"
	if [ -n "$wrong" ]; then
		not_ok "$id" "$wrong"
	elif [[ $state =~ ^\ *open: ]]; then
		ok "$id # SKIP ${state# }"
	else
		ok "$id"
	fi
done < <(grep -E '^\| [A-Z][0-9]+ ' "$DOC")

for id in $(sed -n 's/^declare_test [a-z_0-9]* "\([^"]*\)".*/\1/p' ./*.sh | tr ' ' '\n' | sort -u); do
	if grep -q "^| $id " "$DOC"; then ok "$id has a row"; else not_ok "$id has a row" "a test names $id"; fi
done
[ $n -gt 0 ] || not_ok "rows" "there are none"
if wrong=$(../scripts/mutate --list 2>&1 >/dev/null); then ok "faults.toml"; else not_ok "faults.toml" "$wrong"; fi
echo "1..$n"
[ $failed -eq 0 ]
