#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
"""Bad peers and sudden ends for lowq-check; check.sh runs it.

  listeners               listeners that are not lowq-check's, each at a port of its own
  strangers ADDRESS TOKEN clients that are not lowq-check's, some of which know the token
  proxy ADDRESS           ends TCP connections to lowq-check's port, and makes others to ADDRESS
  chance                  the exact test against counted cases
  parsers                 random packets and messages for what reads them
  package                 prints where lowq-check's package is
  kill FRACTION CALLS OPTION...   runs lowq-check and kills it after this fraction of its CALLS
                          function calls; CALLS 0: runs it to its end and prints how many it makes

LOWQ_CHECK is the program that is tested.
"""

import json
import os
import random
import signal
import socket
import struct
import sys
import threading
import time

HERE = os.path.dirname(os.environ["LOWQ_CHECK"])
for folder in (HERE, os.path.join(HERE, "..", "share", "lowq")):
    if os.path.isdir(os.path.join(folder, "lowq_check")):
        sys.path.insert(0, folder)
RANDOM = random.Random(int(os.environ.get("LOWQ_SEED", "1")))
PORT = 5388
FIRST_PORT = 5401


# --- listeners --------------------------------------------------------------------------


def line(message):
    return json.dumps(message).encode() + b"\n"


def say(text):
    return lambda sock, asked: sock.sendall(text)


def silent(sock, asked):
    time.sleep(100)


def endless(sock, asked):
    while True:
        sock.sendall(b"a" * 4096)


def drip(sock, asked):
    while True:
        sock.sendall(b"a")
        time.sleep(1)


def close(sock, asked):
    sock.shutdown(socket.SHUT_RDWR)


def reset(sock, asked):
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


def greets_then(then):
    return lambda sock, asked: sock.sendall(line({"lowq-check": 1})) if "token" in asked else then(sock, asked)


KEYS = ("kernel ecn accecn root reflector roce_rcm control received info acknowledged tests hops marked resent qp"
        " before after seconds").split()
ODD = (None, -1, 0, 1, 1 << 70, 1.5, "x", "\x1b[2J", [], [[]], {}, {"0": None}, True)


def odd_values(sock, asked):
    sock.sendall(line({key: RANDOM.choice(ODD) for key in KEYS}))


LISTENERS = (
    say(line({"lowq-check": 2, "error": "protocol 2 is spoken here"})),
    say(b"SSH-2.0-OpenSSH_9.2p1\r\n"),
    silent,
    endless,
    close,
    say(line({"lowq-check": 1, "error": "\x1b[2Jgone\nsecond line" + "x" * 5000})),
    reset,
    drip,
    greets_then(say(line({}))),
    greets_then(say(line([1, 2]))),
    greets_then(close),
    greets_then(drip),
    greets_then(odd_values),
)


def answer(sock, behaviour):
    try:
        rest = b""
        while piece := sock.recv(4096):
            rest += piece
            while b"\n" in rest:
                first, _, rest = rest.partition(b"\n")
                behaviour(sock, json.loads(first))
    except OSError:
        pass


def listeners():
    socks = []
    for number, behaviour in enumerate(LISTENERS):
        sock = socket.create_server(("", FIRST_PORT + number))
        socks.append(sock)

        def serve(sock=sock, behaviour=behaviour):
            while True:
                threading.Thread(target=answer, args=(sock.accept()[0], behaviour), daemon=True).start()
        threading.Thread(target=serve, daemon=True).start()
    threading.Event().wait()


# --- strangers --------------------------------------------------------------------------


def connected(address):
    sock = socket.create_connection((address, PORT), 10)
    sock.settimeout(20)
    return sock


def answered(sock, message):
    """The answer, or None if the connection has ended"""
    try:
        sock.sendall(message)
        rest = b""
        while not rest.endswith(b"\n"):
            piece = sock.recv(65536)
            if not piece:
                return None
            rest += piece
        return json.loads(rest)
    except ConnectionError:
        return None


def must(condition, what):
    if not condition:
        sys.exit(f"strangers: {what}")


def hello(token, role="control", flow=0):
    return {"lowq-check": 1, "token": token, "role": role, "flow": flow}


def strangers(address, token):
    deep = b"[" * 60000 + b"\n"
    for text in (b"\n", b"\0" * 100 + b"\n", b"GET / HTTP/1.1\r\n\r\n", deep, b"9" * 60000 + b"\n", b"{}\n", b"[]\n",
                 RANDOM.randbytes(3000) + b"\n", b"a" * (1 << 20)):
        with connected(address) as sock:
            got = answered(sock, text)
            must(got is None or "error" in got, f"{text[:20]!r} is answered with {got}")
    wrong = (hello(""), hello(None), hello(token + "x"), hello(token[:-1]), hello([token]), hello("\ud800"),
             hello(token, "root"), hello(token, ["control"]), {**hello(token), "lowq-check": 2}, {"lowq-check": 1})
    for message in wrong:
        with connected(address) as sock:
            got = answered(sock, line(message))
            must(got and "error" in got and got["lowq-check"] == 1, f"{message} is answered with {got}")
    with connected(address) as sock:
        got = answered(sock, line(hello(token, "flow", 1)))
        must(got and "error" in got, f"a flow without a session is answered with {got}")
    with connected(address) as first, connected(address) as second:
        must(answered(first, line(hello(token))) == {"lowq-check": 1}, "no session")
        must("error" in answered(second, line(hello(token))), "two sessions at a time")
    with connected(address) as control:
        must(answered(control, line(hello(token))) == {"lowq-check": 1}, "no second session")
        questions(address, token, control)
    idle = [connected(address) for _ in range(100)]  # more than it serves
    time.sleep(6)
    with connected(address) as sock:
        must(answered(sock, line(hello(token))) == {"lowq-check": 1}, "idle connections keep it from its work")
    for sock in idle:
        sock.close()


def questions(address, token, control):
    """Of somebody who knows the token: each is answered, none does harm"""
    flows = [connected(address) for _ in range(70)]
    accepted = 0
    for number, sock in enumerate(flows):
        got = answered(sock, line(hello(token, "flow", number)))
        accepted += got == {"lowq-check": 1}
    must(accepted == 64, f"{accepted} flows are accepted")
    names = ["host", "info", "talk", "load", "seen", "emit", "mark", "trace", "counters", "pair", "drop", "close",
             "__init__", "add", "", None, 1, [], {"do": "info"}]
    tests = ([1], [[1, "syn", 0]], [["x", "data", 0]], [[1, "data", 256]], [[1, "data"]], [[0, "ack", 0]], [[]] * 65)
    for _ in range(300):
        asked = {"do": RANDOM.choice(names), "flow": RANDOM.choice((*ODD, 1, 2, 3, 99999))}
        for field in ("size", "count", "ms", "tos", "most", "tests"):
            if RANDOM.random() < 0.8:
                bad = [one for one in ODD if one != 1 or field == "tos"]
                asked[field] = RANDOM.choice((*bad, *tests))
        got = answered(control, line(asked))
        must(isinstance(got, dict), f"{asked} is answered with {got}")
    must(answered(control, line({"do": "host"}))["kernel"] == os.uname().release, "host")
    for sock in flows:
        sock.close()


# --- a proxy ----------------------------------------------------------------------------


def copy(source, target):
    try:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        target.close()


def proxy(address):
    sock = socket.create_server(("", PORT))
    while True:
        client = sock.accept()[0]
        server = socket.create_connection((address, PORT))
        for one in (client, server):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=copy, args=(client, server), daemon=True).start()
        threading.Thread(target=copy, args=(server, client), daemon=True).start()


# --- what is chance -----------------------------------------------------------------------


def chance():
    """The exact test beside all ways in which the losses can fall on the packets"""
    from itertools import combinations

    from lowq_check.chance import exact, worse

    for sent in range(1, 6):
        for control in range(1, 6):
            for all_lost in range(sent + control + 1):
                ways = [sum(at < sent for at in one) for one in combinations(range(sent + control), all_lost)]
                for lost in range(max(0, all_lost - control), min(sent, all_lost) + 1):
                    got = exact(lost, sent, all_lost - lost, control)
                    expected = sum(one >= lost for one in ways) / len(ways)
                    assert abs(got - expected) < 1e-9, (lost, sent, all_lost - lost, control, got, expected)
    assert worse(16, 16, (2, 16)) and not worse(2, 2, (0, 40)) and not worse(16, 16, (12, 16))
    assert worse(60, 5000, (0, 1000)) and not worse(50, 5000, (8, 1000))


# --- what reads packets and messages ------------------------------------------------------


def changed(data):
    data = bytearray(data)
    for _ in range(RANDOM.randrange(8)):
        if data:
            data[RANDOM.randrange(len(data))] = RANDOM.randrange(256)
    return bytes(data[:RANDOM.randrange(len(data) + 1)] if RANDOM.random() < 0.5 else data)


def parsers():
    from lowq_check import packets
    from lowq_common import tcpinfo

    ways = (packets.Way(socket.AF_INET, "10.0.0.1", "10.0.1.1", 1000, PORT),
            packets.Way(socket.AF_INET6, "fd00::1", "fd00:1::1", 1000, PORT))
    for number in range(20000):
        way = RANDOM.choice(ways)
        six = way.family == socket.AF_INET6
        payload = packets.TELEMETRY + RANDOM.randbytes(RANDOM.randrange(80))
        whole = packets.segment(way, 1, 2, RANDOM.choice((packets.PSH, packets.ACK, packets.SYN)), 3, payload, 2)
        packet = packets.parse(whole, False, PORT)
        assert packet and packet.size == len(payload) and packet.tos == 2 and packet.ttl == 64
        data = changed(whole)
        packet = packets.parse(data, False, PORT)
        if packet:
            packets.kind_of(packet)
            packets.telemetry(packet)
        icmp = (b"\x03" if six else b"\x0b") + bytes(7) + data
        packets.quoted(icmp, six, way, number, "10.0.0.254")
        tcpinfo.parse(RANDOM.randbytes(RANDOM.randrange(300)))
        message = bytearray(tcpinfo.MESSAGE + RANDOM.randrange(200))
        message[0] = RANDOM.choice((socket.AF_INET, socket.AF_INET6))
        message[tcpinfo.MESSAGE:] = RANDOM.randbytes(len(message) - tcpinfo.MESSAGE)
        tcpinfo.message(bytes(message))


def package():
    import lowq_check

    print(os.path.dirname(lowq_check.__file__))


# --- sudden ends --------------------------------------------------------------------------


def kill(fraction, calls, argv):
    from lowq_check import cli

    count = 0
    at = int(fraction * calls)

    def note(frame, event, arg):
        nonlocal count
        count += event in ("call", "c_call")
        if calls and count >= at:
            os.kill(os.getpid(), signal.SIGKILL)

    threading.setprofile(note)
    sys.setprofile(note)
    status = cli.main(argv)
    sys.setprofile(None)
    print(count, file=sys.stderr)
    sys.exit(status)


if __name__ == "__main__":
    what, rest = sys.argv[1], sys.argv[2:]
    if what == "kill":
        kill(float(rest[0]), int(rest[1]), rest[2:])
    else:
        {"listeners": listeners, "strangers": strangers, "parsers": parsers, "package": package,
         "proxy": proxy, "chance": chance}[what](*rest)
