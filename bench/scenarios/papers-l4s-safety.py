# SPDX-License-Identifier: GPL-2.0

from lowq_lab import each, goal, Scenario

SCENARIO = Scenario(
    title="heistp/l4s-tests: rate steps and tunnels in fq_codel, bursts, two-way traffic, video, anti-replay windows",
    question="""heistp/l4s-tests finds the reference Prague unsafe in queues that mark as RFC 3168 says, and L4S
        wasteful with bursts. What does this Prague do there?""",
    topology=r"""
 h1  the row's control  --\
                            sw ==== rate ==== r
 h2  beside it          --/  (the queue)
                              base RTT rtt, all of it on the way back""",
    rows=["prague_aqm", "cubic_aqm"],
    reference="cubic_aqm",
    variants=[*each(test="step", rtt="80ms", to=["25mbit", "5mbit", "1mbit"]),
              *each(test="step", rtt="20ms", to="5mbit"),
              *each(test="variable", rtt="80ms"),
              *each(test="shared", aqm=["one", "pie"], beside=["cubic", "reno"], ecn=0),
              *each(test="shared", aqm="one", beside="reno", ecn=3),
              *each(test="bursts", aqm=["fq_codel", "dualpi2"]),
              *each(test="bursts", aqm="dualpi2", step="10ms"),
              *each(test="two-way", aqm=["fq_codel", "dualpi2"], share=[10, 20]),
              *each(test="video", frames=["none", "classic", "l4s"]),
              *each(test="replay", window=[0, 32, 64, 256]),
              *each(test="short", aqm=["one", "dualpi2"])],
    params={"step": "fq_codel, 50 Mb/s, from 30 s on to; counted from 30 s to 60 s",
            "variable": "fq_codel, 100 Mb/s, from 25 s on 50, from 30 s 10, from 35 s 90, from 50 s 5 Mb/s; counted "
                        "from 10 s to 60 s",
            "shared": "50 Mb/s, 20 ms; one: fq_codel with one flow, as for all that a VPN carries (in one kernel a "
                      "real tunnel keeps the inner hash); pie: with ecn; ecn: of the other, 0 none, 3 Accurate ECN",
            "bursts": "50 Mb/s, 20 ms; data and ACKs arrive 16 at a time, 0.8 to 5 ms apart; step: of the L4S queue",
            "two-way": "4 flows each way, 20 ms; 100 and 5, or 20 and 1 Mb/s: share 20; 10 and 1 Mb/s: share 10",
            "video": "dualpi2, 20 Mb/s, 160 ms; 30 times a second 6 packets of UDP, 1.8 Mb/s in all, with ECT(1) "
                     "(l4s) or without; counted from 60 s to 120 s",
            "replay": "dualpi2, 20 Mb/s, 20 ms; both flows in one ESP tunnel with this anti-replay window, 0: none; "
                      "whole 60 s",
            "short": "50 Mb/s, 20 ms; 4 CUBIC answers of 100 kB a second, Poisson, beside a long flow",
            "hosts": "Accurate ECN on all, except with ecn=0; no offloads",
            "paper": """P. Heist, J. Morton, github.com/heistp/l4s-tests (2020 and 2021), with the reference Prague
                of that time. Here: one kernel; CUBIC has Accurate ECN; counted as above, not in the last minute of
                three""",
            "paper, fig. 10": "CUBIC: waits above 50 ms (test=step rtt=80ms to=25mbit): a brief spike",
            "paper, fig. 11": "Prague: waits above 50 ms (test=step rtt=80ms to=25mbit): some 100 ms for around 5 s",
            "paper, fig. 13": """Prague: longest wait (test=step rtt=80ms to=1mbit): 4266000 µs (RTT 4346 ms, over 30
                s)""",
            "paper, table of scenario 6": """Prague : CUBIC (test=shared aqm=one beside=cubic): 25.0; Prague : CUBIC
                (test=shared aqm=pie beside=cubic): 23.0; Prague : Reno (test=shared aqm=one beside=reno ecn=0): 40.0;
                Prague : Reno (test=shared aqm=pie beside=reno): 48.0; Prague : Reno (test=shared aqm=one
                ecn=3): 42.0""",
            "paper, fig. 14": "CUBIC, bursts (test=bursts aqm=fq_codel): the link is used",
            "paper, fig. 15": "Prague, bursts (test=bursts aqm=dualpi2): about half of the link is lost",
            "paper, fig. 6": """goodput alone (test=video frames=none): 18.3 Mb/s; goodput beside video in the L4S
                queue (test=video frames=l4s): 2.29 Mb/s; here frames of equal size, not Skype; goodput beside video
                in the Classic queue (test=video frames=classic): 12.6 Mb/s; here frames of equal size, not Skype""",
            "paper, fig. 16": """CUBIC's rate, replay window 32 (test=replay window=32): much lower than without
                anti-replay"""},
    words={"test": {"step": "the rate drops from 50 Mb/s", "variable": "variable rate", "shared": "shared queue",
                    "bursts": "bursts", "two-way": "two-way", "video": "video", "replay": "ESP",
                    "short": "short CUBIC flows"},
           "aqm": {"one": "one flow of fq_codel", "pie": "PIE", "fq_codel": "fq_codel", "dualpi2": "DualPI2"},
           "beside": {"cubic": "beside CUBIC", "reno": "beside Reno"}, "ecn": {0: "without ECN", 3: "with ECN"},
           "frames": {"none": "no frames", "classic": "Not-ECT frames", "l4s": "ECT(1) frames"},
           "window": {0: "no replay window", 32: "replay window 32", 64: "replay window 64", 256: "replay window 256"},
           "share": {10: "10 and 1 Mb/s", 20: "100 and 5 Mb/s"}, "step": "step {}", "to": "to {}"},
    shown=["over_s", "ratio", "rpc_p50_us", "rpc_p99_us", "first_mbps", "second_mbps", "replayed", "utilisation",
           "back_mbps", "delay_p99_us", "delay_max_us"],
    goals=[goal("over_s", row="prague_aqm", most=1, beside=["cubic_aqm"],
                text="waits above 50 ms after a drop of the rate"),
           goal("ratio", row="prague_aqm", most=2, variant={"test": "shared"}, text="one queue: Prague to the other"),
           goal("utilisation", row="prague_aqm", least=0.9, beside=["cubic_aqm"])],
    conclusion="""Behind fq_codel Prague takes a mark that asks for half of the window for one of many.

        Bursts of many packets are marked at the step of a millisecond; lowq-tc prague --varying sets a longer one.

        A larger anti-replay window is the remedy where DualPI2 reorders a tunnel's packets.""",
    shell=r"""
# words_of AQM: tc's words for it
words_of()
{
	case $1 in
	fq_codel) echo fq_codel limit 10240 ;;
	one) echo fq_codel limit 10240 flows 1 ;;
	pie) echo pie limit 10000 ecn ;;
	esac
}

# queue NS DEV RATE [HANDLE]: the variant's queue there; with HANDLE a new one, which knows nothing of what was
# sent before
queue()
{
	local words

	if [ "$aqm" = dualpi2 ]; then
		[ "${4:-}" ] || "$LOWQ_TC" prague "$2" -n "$NSP$1" --rate "$3" --shape --no-rehearsal --quiet \
			${step:+--step "$step"} ||
			fail "no dualpi2"
		return 0
	fi
	read -ra words < <(words_of "$aqm")
	[ "${4:-}" ] || shaper "$1" "$2" "$3"
	in_ns "$1" tc qdisc replace dev "$2" parent 1:1 handle "${4:-2:}" "${words[@]}" || fail "no ${words[*]}"
}

# path HOSTS RATE RTT: the network, with the queue at sw's egress, and the row's control at r
path()
{
	BUFFER=33554432
	dumbbell "$1" "$3"
	queue sw egress "$2"
	every sysctl -qw net.ipv4.tcp_ecn=3
	[ "${ecn:-}" != 0 ] || in_ns h2 sysctl -qw net.ipv4.tcp_ecn=0
	serve r --cc "$CONTROL"
	check_path h1 r "$2" "$3"
	queue sw egress "$2" 3:
}

# alone SECONDS: a long flow from h1 in the background; sets PIDS
alone()
{
	LONG_FLOWS=1
	start_flows 1 "${1}s" 20000
}

# done_with FILE...: the flows' results
done_with()
{
	all_done "${PIDS[@]}"
	cat "$@" >"$OUT/flows.jsonl"
	watched
}

# over_50ms: the seconds, in steps of 0.1 s, in which a packet waited longer than 50 ms
over_50ms()
{
	metric over_s "$(awk -F, '
		NR == 2 { first = $1 }
		NR > 1 && $3 > 5e7 { at[int(($1 - first) / 1e8)] }
		END { print length(at) / 10 }' "$OUT/packets.csv")"
	rm -f "$OUT/packets.csv"
}

test_step()
{
	aqm=fq_codel
	path 1 50mbit "$rtt"
	watch_queue "$to" 30s 60s 10ms --packets "$OUT/packets.csv" --gap 30s
	alone 60
	sleep 30
	set_rate sw egress 1:1 "$to"
	done_with "$TMP/long1"
	over_50ms
}

test_variable()
{
	local wait rate

	aqm=fq_codel
	path 1 100mbit "$rtt"
	watch_queue 100mbit 10s 60s 10ms --packets "$OUT/packets.csv" --gap 30s
	alone 60
	while read -r wait rate; do
		sleep "$wait"
		set_rate sw egress 1:1 "${rate}mbit"
	done <<<$'25 50\n5 10\n5 90\n15 5'
	done_with "$TMP/long1"
	capacity $(((15 * 100 + 5 * 50 + 5 * 10 + 15 * 90 + 10 * 5) * 1000000))
	over_50ms
}

test_shared()
{
	path 2 50mbit 20ms
	watch_queue 50mbit 20s 60s 10ms
	two_flows "$CONTROL" "$beside" 60
	watched
	two_rates 40
}

test_bursts()
{
	local ns

	path 1 50mbit 20ms
	for ns in h1 r; do
		in_ns "$ns" tc qdisc replace dev eth0 root netem delay 200us slot 800us 5ms packets 16 limit 10000 ||
			fail "no slots"
	done
	watch_queue 50mbit 10s 40s 10ms
	alone 40
	done_with "$TMP/long1"
}

test_two_way()
{
	local down=100 up=5

	[ "$share" = 20 ] || { down=10; up=1; }
	path 1 "${down}mbit" 20ms
	queue r eth0 "${up}mbit"
	serve h1 --cc "$CONTROL"
	watch_queue "${down}mbit" 10s 40s 10ms
	LONG_FLOWS=4
	start_flows 1 40s 20000 --flows 4
	in_ns r flowgen long --to 10.0.1.1 --cc "$CONTROL" --flows 4 --duration 40s \
			--start "$(start_us 2 20000)us" >"$TMP/back" &
	PIDS+=($!)
	done_with "$TMP/long1"
	metric back_mbps "$(jq -s 'map(select(.type == "flow") | .goodput_bps) | add / 1e6' "$TMP/back")"
}

# send_frames SECONDS TOS: the video's packets, from h2 to r; the first frame by the seed
send_frames()
{
	in_ns h2 python3 - "$@" "$SEED" <<-'END'
		import socket, sys, time
		seconds, tos, seed = map(int, sys.argv[1:])
		sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
		sock.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)
		begin = time.monotonic() + seed * 104729 % 33333 / 1e6
		for frame in range(seconds * 30):
		    time.sleep(max(0, begin + frame / 30 - time.monotonic()))
		    for _ in range(6):
		        sock.sendto(bytes(1250), ("10.0.0.1", 5400))
	END
}

test_video()
{
	local tos=1

	aqm=dualpi2
	[ "$frames" != classic ] || tos=0
	path 2 20mbit 160ms
	in_ns r python3 -c 'import socket, time; s = socket.socket(2, 2); s.bind(("", 5400)); time.sleep(1000)' &
	watch_queue 20mbit 60s 120s 10ms
	alone 120
	[ "$frames" = none ] || send_frames 119 $tos || fail "no frames"
	done_with "$TMP/long1"
	metric first_mbps "$(of 1 '.payload_bytes * 8 / 1e6 / 60')"
}

# esp NS FROM TO DIRECTION SPI [WORD...]: one way of the tunnel, as that host sees it
esp()
{
	ip -n "$NSP$1" xfrm state add src "$2" dst "$3" proto esp spi "$5" mode tunnel "${@:6}" \
		aead 'rfc4106(gcm(aes))' 0x0102030405060708090a0b0c0d0e0f1011121314 128 || fail "no ESP state"
	ip -n "$NSP$1" xfrm policy add src "$2" dst "$3" proto tcp dir "$4" \
			tmpl src "$2" dst "$3" proto esp mode tunnel ||
		fail "no ESP policy"
}

test_replay()
{
	local cc pids=()

	aqm=dualpi2
	path 1 20mbit 20ms
	esp h1 10.0.1.1 10.0.0.1 out 1
	esp r 10.0.1.1 10.0.0.1 in 1 replay-window "$window"
	esp r 10.0.0.1 10.0.1.1 out 2
	esp h1 10.0.0.1 10.0.1.1 in 2
	fixed_start
	for cc in "$CONTROL" cubic; do
		in_ns h1 flowgen long --to 10.0.0.1 --cc "$cc" --duration 60s \
			--start "$(start_us $((${#pids[@]} + 1)) 20000)us" >"$TMP/long${#pids[@]}" &
		pids+=($!)
	done
	all_done "${pids[@]}"
	cat "$TMP"/long? >"$OUT/flows.jsonl"
	metric first_mbps "$(jq -s 'map(select(.type == "flow") | .goodput_bps)[0] / 1e6' "$TMP/long0")"
	metric second_mbps "$(jq -s 'map(select(.type == "flow") | .goodput_bps)[0] / 1e6' "$TMP/long1")"
	metric replayed "$(ip -n "${NSP}r" -s xfrm state |
		awk '$1 == "replay-window" && $3 == "replay" { n += $2 } END { print n + 0 }')"
}

test_short()
{
	path 2 50mbit 20ms
	serve h2 --cc cubic
	watch_queue 50mbit 10s 50s 10ms
	alone 50
	sleep 10
	in_ns r flowgen rpc --to 10.0.2.1 --size 100k --rate 4 --duration 39s --cc cubic --seed "$SEED" \
			--timeout 20s >"$TMP/rpc" &
	PIDS+=($!)
	done_with "$TMP/long1" "$TMP/rpc"
	completions
	metric first_mbps "$(of 1 '.payload_bytes * 8 / 1e6 / 40')"
}

run_scenario()
{
	"test_${test/-/_}"
}
""")
