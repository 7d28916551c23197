"""Cables between switches, in words: two at each other's place, one at another switch, and what a leaf lacks."""

from __future__ import annotations

from collections import defaultdict

from agent.fleet.cluster.cabling_faults.fault import Break
from agent.fleet.cluster.cabling_faults.thin_groups import dark_spines, thin_groups
from agent.fleet.cluster.fabric_view import View
from agent.fleet.cluster.graph import SwitchPort, natural
from agent.fleet.cluster.switch_tiers import SwitchBlock
from agent.fleet.cluster.trunks import Fault, TrunkFaults, far_switches, odd


def uplinks(view: View) -> list[Break]:
    """What is wrong above the leaves."""
    found = odd(view)
    made = [_swap(view, one, other) for one, other in found.swapped]
    made += [_moved(view, faults) for faults in found.moved]
    thin = thin_groups(view)
    told = {switch for group, _ in thin for switch in group.switches}
    made += [fault for _, fault in thin]
    made += dark_spines(view, told)
    return made + [fault for block in view.blocks for fault in _missing(view, block, found, told)]


def missing(view: View, found: TrunkFaults) -> list[Break]:
    """Cables that are nowhere, a switch each."""
    return [cable_break for block in view.blocks for cable_break in _missing(view, block, found, set())]


def end(view: View, fault: Fault) -> str:
    """The port of a cable, or its switch where the port is not known."""
    return view.cluster.place(fault.near) if fault.near else view.name(fault.lower)


def compared(view: View, block: SwitchBlock, upper: str) -> str:
    """What most have, in words."""
    usual, clear = block.usual.get(upper, (0, None))
    if clear is None:
        return f"none of its peers has one to {view.name(upper)}"
    what = "leaves" if block.tier == 1 else "switches"
    of = f"{clear.words} {what}" if clear.of <= len(block.peers) else f"{clear.words} pairs"
    return f"{of} have {usual} to {view.name(upper)}" if clear.of <= len(block.peers) else f"{of} have {usual}"


def _swap(view: View, one: Fault, other: Fault) -> Break:
    name = view.name
    told = [end(view, one), end(view, other)]
    why = [compared(view, view.block_of[fault.lower], fault.wanted) for fault in (one, other)]
    return Break(
        kind="swapped-uplinks",
        text=(
            f"{told[0]} goes to {name(one.has)} and {told[1]} to {name(other.has)}: "
            f"by their peers {name(one.lower)} has that cable to {name(one.wanted)}, "
            f"{name(other.lower)} to {name(other.wanted)}"
        ),
        ports=tuple(told),
        compared="; ".join(dict.fromkeys(why)),
        fix="exchange the two cables at one end",
        should={told[0]: name(one.wanted), told[1]: name(other.wanted)},
    )


def _moved(view: View, faults: tuple[Fault, ...]) -> Break:
    name, told = view.name, [end(view, fault) for fault in faults]
    wanted = [f"{name(fault.lower)} has that cable to {name(fault.wanted)}" for fault in faults]
    if len(faults) > 1:
        text = f"{' and '.join(told)} are joined with each other: by their peers {', '.join(wanted)}"
        fix = "take it out; each of the two wants a cable of its own to the switch above"
    else:
        text = f"{told[0]} goes to {name(faults[0].has)}: by its peers {wanted[0]}"
        fix = f"move the cable to {name(faults[0].wanted)}"
    return Break(
        kind="uplink-elsewhere",
        text=text,
        ports=tuple(told),
        compared="; ".join(dict.fromkeys(compared(view, view.block_of[fault.lower], fault.wanted) for fault in faults)),
        fix=fix,
        should={at: name(fault.wanted) for at, fault in zip(told, faults, strict=True)},
    )


def _missing(view: View, block: SwitchBlock, found: TrunkFaults, told: set[str]) -> list[Break]:
    """`told`: switches of a group that has fewer cables as a whole."""
    gone: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
    for lower in block.peers if not told else [peer for peer in block.peers if peer not in told]:
        gone[lower] = [(upper, found.less[lower, upper]) for upper in block.upper if found.less.get((lower, upper))]
    extra = {lower for (lower, _), count in found.more.items() if count}
    made = []
    for lower in sorted((each for each in gone if gone[each]), key=lambda each: natural(view.name(each))):
        wanted = sum(usual for usual, _ in block.usual.values())
        has = wanted - sum(count for _, count in gone[lower])
        words: list[str] = []
        should: dict[str, str] = {}
        for upper, count in gone[lower]:
            near, far = _free_ports(view, block, lower, upper, count)
            kept = block.usual[upper][0] - count
            where = f" (expected port{'s'[: len(near) != 1]} {_listed(near)})" if len(near) == count else ""
            words.append(f"{kept} of {kept + count} to {view.name(upper)}{where}")
            ports = near if len(near) == count else [f"?{len(should) + n}" for n in range(1, count + 1)]
            for at in ports:
                should[view.cluster.place(SwitchPort(lower, at))] = (
                    view.cluster.place(SwitchPort(upper, far[0])) if len(far) == count == 1 else view.name(upper)
                )
        also = "; it has others that its peers do not have" if lower in extra else ""
        made.append(
            Break(
                kind="missing-uplink",
                text=f"{view.name(lower)} has {has} of {wanted} cables up: {', '.join(words)}{also}",
                ports=tuple(should),
                compared="; ".join(dict.fromkeys(compared(view, block, upper) for upper, _ in gone[lower][:3])),
                fix="look for a cable that is out, or a port that is down, at both ends",
                should=should,
            )
        )
    return made


def _free_ports(view: View, block: SwitchBlock, lower: str, upper: str, count: int) -> tuple[list[str], list[str]]:
    """Ports with nothing on them whose peers' lead to the other switch: below, above. Of a switch of which not all
    is told none is known to be free."""
    switches = view.cluster.switches
    near = [
        port
        for port, (far, _, _) in far_switches(block, block.peers).items()
        if far == upper and switches[lower].whole and SwitchPort(lower, port) not in view.used
    ]
    far = [
        port
        for port, (low, _, _) in far_switches(block, block.upper).items()
        if low == lower and switches[upper].whole and SwitchPort(upper, port) not in view.used
    ]
    return sorted(near, key=natural)[: count + 1], sorted(far, key=natural)[: count + 1]


def _listed(ports: list[str]) -> str:
    return " and ".join(ports) if len(ports) < 3 else ", ".join(ports)
