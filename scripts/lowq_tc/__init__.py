# SPDX-License-Identifier: GPL-2.0
"""lowq-tc: the queue of a device and the settings of a host for a congestion control.

Data flows one way:

  options   the command line: its table and parser, checked; config: the same from files
  world     what is there, one snapshot by netlink
  profiles  from what is there, the queue that a control needs; lowq_common has the hosts' settings
  things    the kinds of things with one value: read, set, compared, described
  device, host, routes      wanted against present: commands, and what was there before
  journal   that, on disk before anything changes
  execute   the commands, all or none
  apply, show               many at once
  cli, actions              which of these a command line needs, and what is said about it
"""
