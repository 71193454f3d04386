# SPDX-License-Identifier: GPL-2.0
"""lowq-tc: the queue of a device and the settings of a host for a congestion control.

Data flows one way:

  options   the command line: its table and parser, checked
  aspects   the kinds of things that are changed: read as plain data, compared, undone, described
  profiles  from what is there, the queue that a control needs; lowq_common has the hosts' settings
  plan, host_plan, routes   wanted against present: steps, each with its commands and its undo
  journal   the steps, on disk before anything changes
  execute   steps forward, steps back
  device, host, show        what an action does, from the journal to the journal
  cli       which of these a command line needs, and what is said about it
"""
