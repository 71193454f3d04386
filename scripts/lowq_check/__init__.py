# SPDX-License-Identifier: GPL-2.0
"""The package of lowq-check.

    finding.py    one line of the result
    facts.py      reads the host: kernel, modules, sysctls, routes, devices
    queues.py     which queues of a device mark
    verdicts.py   facts -> findings
    wire.py       how the two instances talk
    end.py        one end of the test connections: sends, receives, captures
    packets.py    packets with chosen headers, sent and captured
    roce.py       a queue pair, marked RoCE packets, and CNPs
    listen.py     the listener
    from_ssh.py   a listener that ssh started, and that checks what it is told
    ssh.py        starts and ends that on another host
    matrix.py     all pairs of a list of hosts
    path.py       the client: what it does with both ends -> measurements
    chance.py     can what was lost be chance?
    judge.py      measurements -> findings
    output.py     the table and JSON
    cli.py        the command line

Only facts.py, end.py, packets.py, roce.py, listen.py, from_ssh.py, ssh.py and path.py touch the machine. lowq_common/
reads tc, ip, sysctl and connections, as it does for lowq-tc and lowq-stat.
"""
