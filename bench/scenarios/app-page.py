# SPDX-License-Identifier: GPL-2.0

import math
import random
import statistics
from typing import Any

from lowq_lab import dumbbell, each, goal, long, program, Results, Run, Scenario

OBJECTS, PAGES, LOADED_MS = 60, 12, 8000  # when pages begin beside long flows
PLACE = "/tmp/page"
NGINX = f"""user root; worker_processes 1; daemon off; pid {PLACE}/pid; error_log {PLACE}/error;
events {{ worker_connections 512; }}
http {{ access_log off; sendfile on; tcp_nopush on;
    client_body_temp_path {PLACE}/b; proxy_temp_path {PLACE}/p; fastcgi_temp_path {PLACE}/f; uwsgi_temp_path {PLACE}/u;
    scgi_temp_path {PLACE}/s; server {{ listen 80 OPTIONS; root {PLACE}/www; }} }}"""
# a page over six connections, or over one, whose flow control is as wide as a browser's (16 MB)
CURL = """for i in $page; do printf 'url = "%s/%s"\\noutput = "/dev/null"\\n' $site $i; done >$OUT/urls
    curl -sSf --no-progress-meter --parallel --parallel-max 6 -K $OUT/urls || exit 1"""
NGHTTP = """nghttp --null-out --stat --no-dep --window-bits=24 --connection-window-bits=24 \\
        $(printf "$site/%s " $page) >$OUT/client 2>&1
    [ "$(grep -Ec ' 200 +[0-9]+[KM]? +/[0-9]+$' $OUT/client)" -eq 60 ] || exit 1"""


def plan(run: Run) -> dict[str, Any]:
    up, load, queue = run.get("way") == "up", run["load"], run.queue(run["rtt"])
    net = dumbbell(3, rate=run["rate"], rtt=run["rtt"], queue=queue, line="1gbit" if run.offloads else "",
                   offloads=run.offloads, back=(run["rate"], queue) if up else None)
    net.sysctl("net.ipv4.tcp_congestion_control", run.control, "h3", "r")
    normal, order = statistics.NormalDist(), random.Random(run.seed)
    sizes = (round(math.exp(9.18 + 1.246 * normal.inv_cdf((i + 0.5) / OBJECTS))) for i in range(OBJECTS))
    net.prepare("", f"sh -c 'mkdir -p {PLACE}/www; i=0; for size in {' '.join(map(str, sizes))}; do "
                    f"head -c $size /dev/zero >{PLACE}/www/$i; i=$((i + 1)); done'")
    pages = " ".join("'" + " ".join(map(str, order.sample(range(OBJECTS), OBJECTS))) + "'" for _ in range(PAGES))
    fetch = f"""site=http://{net.address("h3")}; start=$(date +%s%N)
for page in {pages}; do
    from=$(date +%s%N)
    {CURL if run["http"] == 1 else NGHTTP}
    echo $((($(date +%s%N) - from) / 1000))
    sleep 1
done
echo $(($(date +%s%N) - start)) >$OUT/took"""
    conf = NGINX.replace("OPTIONS", "" if run["http"] == 1 else "http2")
    longs = [long("r" if up else f"h{i}", f"h{i}" if up else "r", start=f"{i * 300}ms", stop="end", control=run.control)
             for i in range(1, load + 1)]
    return net.measured(*longs, program("h3", f"echo '{conf}' >{PLACE}/conf; exec nginx -c {PLACE}/conf", stop="end"),
                        program("r", fetch, label="pages", start=f"{LOADED_MS if load else 1}ms"), bin_="20ms")


def metrics(results: Results) -> dict[str, float | None]:
    pages = sorted(map(int, results.text("pages").split()))
    if len(pages) < PAGES:
        raise ValueError(f"{len(pages)} pages: {(results.directory / 'pages.err').read_text(encoding='utf-8')}")
    made: dict[str, float | None] = {"failed": 0, "page_p50_us": pages[PAGES // 2 - 1], "page_max_us": pages[-1],
                                     "jain": None}
    if results.run["load"]:
        took = int((results.directory / "took").read_text(encoding="utf-8")) + LOADED_MS * 10 ** 6
        sent = [flow["size"] for flow in results.flows if flow["kind"] == "long"] if results.run.get("way") else [
            flow["payload_bytes"] for host in ("h1", "h2") for flow in results.longs(host)]
        made["beside_mbps"] = sum(sent) * 8e3 / took
    return made


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

        On a long path beside downloads, the marks of a page's own bursts end slow start of some of Prague's
        connections in the third to fifth round, below their share, and the window then grows by a packet per round.
        CUBIC's page over one connection never leaves slow start, and takes from CUBIC's downloads what it gains.""",
    metrics=metrics,
    plan=plan)
