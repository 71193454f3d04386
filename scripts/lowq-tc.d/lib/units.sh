# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034,SC2154	# shared with the other parts of lowq-tc
#
# Rates, times, lengths of queue: from text, to text, and from one into another.
#
# parse_* NAME TEXT put what they read into REPLY or refuse; fmt_* VALUE put
# text into REPLY. No subshells: refuse must be able to exit.

# Multiplies a decimal number by 10^EXP; the fraction below one is cut.
scale() {	# DIGITS[.DIGITS] EXP
	local whole=${1%%.*} frac='' zeros=000000000000

	[[ $1 != *.* ]] || frac=${1#*.}
	frac=$frac$zeros
	REPLY=$whole${frac:0:$2}
	REPLY=$((10#${REPLY:-0}))
}

readonly decimal='([0-9]{1,6}(\.[0-9]{1,9})?)'

parse_rate() {
	local -A exponent=([bit]=0 [kbit]=3 [mbit]=6 [gbit]=9 [tbit]=12)
	local unit

	[[ $2 =~ ^${decimal}([A-Za-z]*)$ ]] || refuse "$1 $2: not a rate (such as 10gbit)"
	unit=${BASH_REMATCH[3],,}
	[[ $unit ]] || refuse "$1 $2: a rate needs a unit: bit, kbit, mbit, gbit or tbit"
	[[ -v exponent[$unit] ]] ||
		refuse "$1 $2: unknown unit '${BASH_REMATCH[3]}': bit, kbit, mbit, gbit or tbit"
	scale "${BASH_REMATCH[1]}" "${exponent[$unit]}"
	((REPLY >= 8000 && REPLY <= 1000000000000)) ||
		refuse "$1 $2: out of range (8kbit to 1tbit)"
}

parse_time() {
	local -A exponent=([ns]=0 [us]=3 [ms]=6 [s]=9)
	local unit

	[[ $2 =~ ^${decimal}([A-Za-z]*)$ ]] || refuse "$1 $2: not a time (such as 100us)"
	unit=${BASH_REMATCH[3],,}
	[[ $unit ]] || refuse "$1 $2: a time needs a unit: ns, us, ms or s"
	[[ -v exponent[$unit] ]] ||
		refuse "$1 $2: unknown unit '${BASH_REMATCH[3]}': ns, us, ms or s"
	scale "${BASH_REMATCH[1]}" "${exponent[$unit]}"
	((REPLY >= 100 && REPLY <= 5000000000)) ||
		refuse "$1 $2: out of range (100ns to 5s)"
}

# A length of queue: packets (a bare number), bytes, or the time to send it.
# Stays "65p", "97500b" or "50000ns" until device and rate are known.
parse_size() {
	if [[ $2 =~ ^([0-9]{1,10})(p|b|kb|mb)?$ ]]; then
		REPLY=$((10#${BASH_REMATCH[1]}))
		((REPLY)) || refuse "$1 $2: must not be 0"
		case ${BASH_REMATCH[2]} in
		kb) REPLY=$((REPLY * 1024))b ;;
		mb) REPLY=$((REPLY * 1048576))b ;;
		*) REPLY+=${BASH_REMATCH[2]:-p} ;;
		esac
	elif [[ $2 =~ ^[0-9.]+(ns|us|ms|s)$ ]]; then
		parse_time "$1" "$2"
		REPLY+=ns
	else
		refuse "$1 $2: not a length of queue: packets (65), bytes (97500b, 95kb, 1mb) or a time (50us)"
	fi
}

parse_count() {
	[[ $2 =~ ^[0-9]{1,9}$ ]] || refuse "$1 $2: not a number"
	REPLY=$((10#$2))
	((REPLY)) || refuse "$1 $2: must not be 0"
}

parse_percent() {
	parse_count "$1" "${2%\%}"
	((REPLY < 100)) || refuse "$1 $2: must be 1 to 99"
}

parse_probability() {
	[[ $2 =~ ^(0?\.[0-9]{1,9}|1(\.0*)?)$ && $2 =~ [1-9] ]] ||
		refuse "$1 $2: a probability is above 0 and at most 1"
	REPLY=${2/#./0.}
}

parse_dscp() {
	local -A name=(
		[be]=0 [df]=0 [cs0]=0 [cs1]=8 [cs2]=16 [cs3]=24 [cs4]=32 [cs5]=40
		[cs6]=48 [cs7]=56 [af11]=10 [af12]=12 [af13]=14 [af21]=18
		[af22]=20 [af23]=22 [af31]=26 [af32]=28 [af33]=30 [af41]=34
		[af42]=36 [af43]=38 [va]=44 [ef]=46 [le]=1
	)

	REPLY=${name[${2,,}]:-$2}
	[[ $REPLY =~ ^[0-9]{1,2}$ ]] || REPLY=99
	REPLY=$((10#$REPLY))
	((REPLY < 64)) || refuse "$1 $2: not a DSCP (0 to 63, or a name such as af11)"
}

parse_word() {
	[[ $2 =~ ^[A-Za-z0-9._:@%+=-]+$ && $2 != -* && $2 != . && $2 != .. ]] ||
		refuse "$1 $2: not a name"
	REPLY=$2
}

fmt_rate() {
	local unit

	REPLY=$1
	for unit in bit kbit mbit gbit tbit; do
		((REPLY % 1000 || ${#REPLY} < 4)) && break
		[[ $unit != tbit ]] || break
		REPLY=$((REPLY / 1000))
	done
	REPLY+=$unit
}

# An integer with its last EXP digits as a fraction, trailing zeros cut.
unscale() {	# INTEGER EXP
	local n=$1 frac

	printf -v n '%0*d' $(($2 + 1)) "$n"
	frac=${n: -$2}
	REPLY=${n:0:${#n}-$2}
	frac=${frac%"${frac##*[!0]}"}
	[[ ! $frac ]] || REPLY+=.$frac
}

fmt_time() {
	local n=$1

	if ((n < 1000)); then
		REPLY=${n}ns
	elif ((n < 1000000)); then
		unscale "$n" 3
		REPLY+=us
	else
		unscale $((n / 1000)) 3
		REPLY+=ms
	fi
}

# BYTES as text: packets, bytes and, where the rate is known, time.
fmt_queue() {
	local bytes=$1 text ns

	if ((bytes % frame == 0)); then
		text="$((bytes / frame)) packets = $bytes bytes"
	else
		text="$bytes bytes"
	fi
	if ((rate)); then
		drain_time "$bytes"
		fmt_time "$REPLY"
		text+=" = $REPLY"
	fi
	REPLY=$text
}

rate=0		# bit/s for computing; 0 is unknown
rate_k=0	# the same in kbit/s, rounded up: products with it fit 63 bits

drain_time() {	# BYTES -> ns at the rate
	REPLY=$((($1 * 8000000 + rate_k - 1) / rate_k))
}

bytes_in() {	# NS -> bytes at the rate
	REPLY=$((rate_k * $1 / 8000000))
}

packets_of() {	# BYTES -> packets, rounded up
	REPLY=$((($1 + frame - 1) / frame))
}

to_bytes() {	# NAME of an option of type size -> bytes
	local v=${opt[$1]}

	case $v in
	*ns)
		((rate)) || refuse "--$1 ${given[$1]}: a time needs --rate"
		bytes_in "${v%ns}"
		;;
	*p) REPLY=$((${v%p} * frame)) ;;
	*b) REPLY=${v%b} ;;
	esac
	((REPLY > 0)) || refuse "--$1 ${given[$1]}: less than a byte at this rate"
	((REPLY < 4294967296)) || refuse "--$1 ${given[$1]}: more than 4 GB"
}
