# SPDX-License-Identifier: GPL-2.0
"""What lowq-tc, lowq-check and lowq-stat share. It calls nothing of theirs.

  arguments, errors, units, values, version   of any program here
  streams    standard output and error
  names      names that a shell may complete
  system     programs, files of /proc and /sys, network namespaces, modules
  devices    network devices and their queues, as ip and tc show them
  tcpinfo    TCP_INFO, and the host's connections (inet_diag)
  controls   the controls, and what each needs of its host
"""
