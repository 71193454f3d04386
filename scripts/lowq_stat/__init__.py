# SPDX-License-Identifier: GPL-2.0
"""The package of lowq-stat.

    sample.py   the host's connections -> a row for each group and control
    output.py   rows as a table, as JSON, and for Prometheus
    cli.py      the command line
"""
