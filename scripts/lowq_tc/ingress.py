# SPDX-License-Identifier: GPL-2.0
"""PROFILE DEV --ingress: what arrives at DEV passes the queue of a device of its own, ifb4DEV. Its index follows from
DEV's, so that it is known, and recorded, before there is one."""

from __future__ import annotations

from lowq_common.devices import Link
from lowq_common.errors import Refused
from lowq_common.values import INGRESS_PREF

from .command import Command, tc
from .config import IFB
from .device import forget_gone, the_link
from .execute import carry_out, run_all
from .journal import Journal, Thing
from .things import IFB_INDEX, KINDS, redirects
from .world import World


def prepare(world: World, journal: Journal, given: str, dry: bool) -> tuple[str, list[Command]]:
    """Makes ifb4DEV, and sends to it what arrives at DEV. given: either's name. -> its name, and the commands"""
    mine, kind = journal.space(world.space), KINDS["ingress"]
    upper = the_link(world, given.removeprefix(IFB) if given.startswith(IFB) else given)
    name, index = IFB + upper.name, IFB_INDEX + upper.ifindex
    if len(name) > 15:
        raise Refused(f"--ingress: the name '{name}' is too long for a device: give {upper.name} a shorter one")
    there, thing, target = world.named(name), mine.thing("ingress", str(index)), str(index)
    commands: list[Command] = []
    if there and there.ifindex != index:
        old = mine.thing("ingress", str(there.ifindex))
        if not old:
            raise Refused(f"there is a device '{name}' that lowq-tc did not make")
        commands += kind.set(world, old.target, old.before)  # of a device that is gone
        there = None
    now = kind.read(world, target)
    if now == "redirected" and thing:
        return name, []
    if any(one.kind == "ingress" for one in world.qdiscs(upper.ifindex)):
        raise Refused(f"{upper.name} has an ingress qdisc, beside which there can be no clsact; 'tc qdisc del dev {upper.name}"
                      " ingress' takes it away")
    if world.ours_at_clsact(upper.ifindex):
        raise Refused(f"{upper.name} has a queue with filters of lowq-tc's at its clsact: ldcp with --simple has none")
    commands += [] if there else [Command(("ip", "link", "add", "name", name, "index", target, "mtu", str(upper.mtu),
                                           "type", "ifb"))]
    commands.append(Command(("ip", "link", "set", "dev", name, "up")))
    commands += [] if world.has_clsact(upper.ifindex) else [tc("qdisc", "add", "dev", upper.name, "clsact")]
    if not redirects(world, upper.ifindex):
        commands.append(tc("filter", "add", "dev", upper.name, "ingress", "protocol", "all", "pref", INGRESS_PREF, "matchall",
                           "action", "mirred", "egress", "redirect", "dev", name))
    if dry:
        if not there:
            world.imagine(Link(index, name, (), "", "", upper.mtu, "ether", "ifb", 1, 32, 65536, 65535, True))
        return name, commands
    mine.put(Thing("ingress", target, thing.before if thing else now.replace("redirected in part", ""), ["redirected"]))
    journal.save()

    def back() -> None:
        world.refresh()
        take_back(world, journal, name)

    carry_out(commands, world.space, journal.lock_file, back)
    world.refresh()
    forget_gone(world, mine)
    return name, commands


def take_back(world: World, journal: Journal, name: str) -> None:
    """After the queue could not be set"""
    mine = journal.space(world.space)
    for thing in [one for one in mine.things if one.kind == "ingress"]:
        link = world.link(int(thing.target))
        if (not link or link.name == name) and int(thing.target) not in mine.queues:
            run_all(KINDS["ingress"].set(world, thing.target, thing.before), world.space, journal.lock_file)
            mine.things.remove(thing)
    world.refresh()
    journal.save()
