# SPDX-License-Identifier: GPL-2.0
"""lowq-tc: the queue of a device and the settings of a host for a congestion control.

Data flows one way:

  options   the command line, checked
  inspect   what tc and ip show of queues and routes, as plain data (lowq_common has the rest)
  profiles  from both, the queue or the host settings that a control needs
  plan      wanted against present: steps, each with its command and its undo
  journal   the steps, on disk before anything changes
  execute   steps forward, steps back
  cli       which of these a command line needs, and what is said about it
"""
