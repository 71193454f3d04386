# SPDX-License-Identifier: GPL-2.0

from lowq_lab import each, goal, Scenario

SCENARIO = Scenario(
    title="""A web page from nginx, with curl (HTTP/1.1) and nghttp (HTTP/2), 20 and 60 Mb/s, 30 and 65 ms, idle and
        loaded""",
    question="How long does a page of 60 objects take?",
    topology=r"""
 h1, h2  long flows (load=2)  --\
                                 sw ==== rate ==== r  curl, nghttp
 h3  nginx                    --/    (the queue)
                                base RTT rtt""",
    rows=["prague", "cubic_l4s", "bbr_l4s", "cubic_fq", "cubic"],
    reference="cubic_l4s",
    variants=[*each(rate="60mbit", rtt="65ms", load=[0, 2], http=[1, 2]),
              *each(rate="60mbit", rtt="65ms", load=2, http=1, way="up"),
              *each(rate="20mbit", rtt="30ms", load=[0, 2], http=[1, 2]),
              *each(rate="20mbit", rtt="30ms", load=2, http=1, way="up"),
              *each(rate="60mbit", rtt="65ms", load=2, http=1, tso=1)],
    params={"page": "60 objects at the quantiles of a lognormal distribution with a median of 9.7 kB and a sigma of "
                    "1.246: the embedded objects of the million most visited sites (Pries, Magyari, Tran-Gia: An HTTP "
                    "Web Traffic Model, NGI 2012); 1.2 MB",
            "http": "1: six connections, 2: one, without TLS",
            "pages": "12 in each run, each with new connections and another order, a second apart",
            "load": "long flows of the same control beside, downloads where way is not given",
            "way": "up: r uploads to h1 and h2; the way back has the same rate and queue, which requests and ACKs "
                   "share with the uploads (delay and drops are those of the way there)"},
    words={"load": {0: "idle", 2: "beside 2 long flows"}, "http": {1: "HTTP/1.1", 2: "HTTP/2"},
           "way": {"up": "uploads"}},
    shown=["page_p50_us", "page_max_us", "beside_mbps", "delay_p99_us", "drops"],
    goals=[goal("page_p50_us", row="prague", most=1.05, median=1, beside=["cubic_l4s", "bbr_l4s"]),
           goal("page_max_us", row="prague", most=1.05, median=1, beside=["cubic_l4s", "bbr_l4s"])],
    conclusion="""A drop-tail queue is what makes pages slow beside downloads.

        On a slow idle link Prague's queue is empty between two objects of a connection, and CUBIC's is not.

        Where a page comes over one connection, CUBIC's downloads leave it more of the link than Prague's do.""",
    shell=r"""
# make_site: the objects in $TMP/www, nginx's configuration, and curl's, a list of objects: each page has its order
make_site()
{
	mkdir -p "$TMP/www" "$TMP/nginx"
	python3 - "$TMP/www" "$TMP/urls" "$SEED" <<-'END' || fail "no page"
		import math, random, statistics, sys
		normal, order = statistics.NormalDist(), random.Random(int(sys.argv[3]))
		sizes = [round(math.exp(9.18 + 1.246 * normal.inv_cdf((i + 0.5) / 60))) for i in range(60)]
		for i, size in enumerate(sizes):
		    open(f"{sys.argv[1]}/{i}", "wb").write(bytes(size))
		for page in range(12):
		    with open(f"{sys.argv[2]}.{page}", "w") as urls:
		        for i in order.sample(range(60), 60):
		            urls.write(f'url = "http://10.0.3.1/{i}"\noutput = "/dev/null"\n')
	END
	cat >"$TMP/nginx.conf" <<-END
		user root; worker_processes 1; daemon on; pid $TMP/nginx/pid; error_log $TMP/nginx/error;
		events { worker_connections 512; }
		http {
			access_log off; sendfile on; tcp_nopush on;
			client_body_temp_path $TMP/nginx/b; proxy_temp_path $TMP/nginx/p;
			fastcgi_temp_path $TMP/nginx/f; uwsgi_temp_path $TMP/nginx/u; scgi_temp_path $TMP/nginx/s;
			server { listen 80$([ "$http" = 1 ] || echo " http2"); root $TMP/www; }
		}
	END
}

# fetch_page N: over six connections, or over one, whose flow control is as wide as a browser's (16 MB)
fetch_page()
{
	local urls

	if [ "$http" = 1 ]; then
		in_ns r curl -sSf --no-progress-meter --parallel --parallel-max 6 -K "$TMP/urls.$1" 2>"$TMP/client" ||
			fail "curl: $(tail -n1 "$TMP/client")"
		return
	fi
	mapfile -t urls < <(sed -n 's/^url = "\(.*\)"/\1/p' "$TMP/urls.$1")
	in_ns r nghttp --null-out --stat --no-dep --window-bits=24 --connection-window-bits=24 "${urls[@]}" \
		>"$TMP/client" 2>&1
	[ "$(grep -Ec ' 200 +[0-9]+[KM]? +/[0-9]+$' "$TMP/client")" -eq 60 ] || fail "nghttp: $(tail -n1 "$TMP/client")"
}

run_scenario()
{
	local i ends from to start pids=()

	dumbbell 3 "$rtt"
	bottleneck "$rate" "$rtt"
	serve r --cc "$CONTROL"
	if [ "${way:-}" = up ]; then
		way_back "$rate" "$rtt"
		serve h1 --cc "$CONTROL"
		serve h2 --cc "$CONTROL"
	fi
	make_site
	[ -z "${tso:-}" ] || line_rate 1gbit h 1514
	check_path h1 r "$rate" "$rtt"
	merging
	in_ns h3 sysctl -qw net.ipv4.tcp_congestion_control="$CONTROL"
	in_ns r sysctl -qw net.ipv4.tcp_congestion_control="$CONTROL"
	in_ns h3 nginx -c "$TMP/nginx.conf" 2>"$TMP/nginx.err" || fail "nginx: $(tail -n1 "$TMP/nginx.err")"
	watch_queue "$rate" 0s 600s 20ms
	start=$(date +%s%N)
	for ((i = 1; i <= load; i++)); do
		ends=("h$i" 10.0.0.1)
		[ "${way:-}" != up ] || ends=(r "10.0.$i.1")
		in_ns "${ends[0]}" flowgen long --to "${ends[1]}" --cc "$CONTROL" --start "$((i * 300))ms" \
			--duration 600s >"$TMP/long$i" &
		pids+=($!)
	done
	[ "$load" = 0 ] || sleep 8
	for ((i = 0; i < 12; i++)); do
		from=$(date +%s%N)
		fetch_page "$i"
		to=$(date +%s%N)
		echo $(((to - from) / 1000)) >>"$OUT/pages"
		sleep 1
	done
	to=$(date +%s%N)
	kill "$(cat "$TMP/nginx/pid")"
	pkill -x flowgen	# the long flows, which report what they have sent
	watched
	if [ "${way:-}" = up ]; then
		wait "${pids[@]}"
		metric beside_mbps "$(jq -s --argjson ns $((to - start)) \
			'[.[] | select(.type == "flow") | .size] | add * 8e3 / $ns' "$TMP"/long?)"
	elif [ "$load" != 0 ]; then
		beside $((to - start))
	fi
	metric failed 0
	metric page_p50_us "$(sort -n "$OUT/pages" | sed -n 6p)"
	metric page_max_us "$(sort -n "$OUT/pages" | tail -n1)"
}
""")
