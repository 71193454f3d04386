# SPDX-License-Identifier: GPL-2.0
"""What lowq-tc and lowq-check share. It calls nothing of either.

  errors, light, units, version   of any program here
  names      names that a shell may complete
  system     programs, files of /proc and /sys, network namespaces, modules
  devices    network devices and their queues, as ip and tc show them
  controls   the controls, and what each needs of its host
"""
