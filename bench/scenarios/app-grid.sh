# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034
# The transfers of app-objects in every cell of a grid of rates and RTTs.
# shellcheck source=app-objects.sh
. "${BASH_SOURCE[0]%/*}/app-objects.sh"
TITLE="Transfers of 3 kB to 3 MB on new connections: a grid of 6 to 250 Mb/s x 10 to 65 ms, idle and loaded"
QUESTION="In which cells of the grid does a transfer on a new connection take longer with Prague than with CUBIC over the same queue?"
ROWS="prague cubic_l4s"
VARIANTS=()
for _load in 0 2; do
	for _rate in 6mbit 20mbit 60mbit 100mbit 250mbit; do
		for _rtt in 10ms 30ms 65ms; do
			VARIANTS+=("rate=$_rate rtt=$_rtt load=$_load")
		done
	done
done
PARAMS='{"load":"long flows of the same control beside","transfers":"one after another, 12 of each size, on an idle link 3"}'
COLUMNS_SHOWN='["k12_p50_us","k100_p50_us","k300_p50_us","k1000_p50_us","k3000_p50_us","delay_p99_us"]'
ANSWER="On an idle link 100 kB take {range k100_p50_us prague load=0} with Prague and {range k100_p50_us cubic_l4s load=0} with CUBIC, beside two long flows {range k100_p50_us prague load=2} and {range k100_p50_us cubic_l4s load=2}."
CONCLUSION="102 of 105 medians (seven sizes in 15 cells) are at most 1.05 times CUBIC's on an idle link, and none is above 1.06: 100 kB at 6 Mb/s and 10 ms and at 250 Mb/s and 65 ms, 300 kB at 20 Mb/s and 10 ms.
100 of 105 are at most CUBIC's beside two long flows, and half of them are at most 0.75 of it. 100 kB at 20 Mb/s and 65 ms take 1.15 times as long, 1 to 3 MB at 60 and 250 Mb/s and 65 ms at most 1.03."
