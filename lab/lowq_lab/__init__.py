# SPDX-License-Identifier: GPL-2.0
"""Scenarios of the lab as short Python files: networks, traffic, and what is compared.

A scenario's file defines one Scenario, and bench/run takes it like the project's own:

    from lowq_lab import Scenario, dumbbell, goal, long

    def plan(run):
        net = dumbbell(run["flows"], rate="1gbit", rtt="100us", queue=run.queue("100us"))
        return net.plan(long("h*", "r", duration="0.4s", control=run.control),
                        observe=[("sw", "r")], count=("0.1s", "0.4s"))

    SCENARIO = Scenario(
        title="Long flows at 1 Gb/s", question="Is the link full, and the queue short?",
        rows=["cubic", "dctcp"], variants=[{"flows": 1}, {"flows": 8}], plan=plan,
        goals=[goal("utilisation", row="dctcp", least=0.95)])

Where a plan cannot say what a run does, commands in shell take its place.

There is no class for a flow, and no function that compares: flows() and requests() take sizes from a distribution
(cdf=) and arrivals from a share of a link's rate (load=), and a Scenario's rows are what it compares.
ns3_topology(), ns3_list(), htsim_topology() and htsim_list() read the files of other simulators, as files.py says.

networks.py makes nodes, addresses and routes; traffic.py says who sends what, roce.py with soft-RoCE; scenario.py what
is compared and measured. A plan is that of labnet(1), as JSON: whatever else it can say may be added to the dictionary
that Network.plan() returns. run() runs a scenario or a plan from Python."""

from . import roce
from .files import htsim_list, htsim_topology, ns3_list, ns3_topology
from .networks import dumbbell, fat_tree, leaf_spine, Network, parking_lot
from .running import events, run
from .scenario import at_share, each, Goal, goal, hosts, jain, load, Results, Run, Scenario, TSO
from .traffic import CDF, flows, incast, listed, long, program, requests, udp

__all__ = ["at_share", "CDF", "dumbbell", "each", "events", "fat_tree", "flows", "Goal", "goal", "hosts", "htsim_list", "htsim_topology", "incast",
           "jain", "leaf_spine", "listed", "load", "long", "Network", "ns3_list", "ns3_topology", "parking_lot", "program",
           "requests", "Results", "roce", "Run", "run", "Scenario", "TSO", "udp"]
