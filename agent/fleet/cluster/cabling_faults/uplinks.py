"""Faults of the cables between switches: swapped, at another switch, or missing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple, TypedDict

from agent.fleet.cluster.cabling_faults.exchanged_rails import list_home_leaves
from agent.fleet.cluster.cabling_faults.fault import CablingFault
from agent.fleet.cluster.cabling_faults.thin_groups import find_dark_spines, find_thin_groups
from agent.fleet.cluster.fabric_view import View
from agent.fleet.cluster.graph import HostLink, SwitchPort
from agent.fleet.cluster.switch_tiers import SwitchBlock
from agent.fleet.cluster.trunks import Fault, TrunkFaults, find_far_switches, find_trunk_faults
from agent.model.labels import group_by_key, natural

FEW_SWAPS = 2  # pairs of cables between two switches: more are one fault


def find_uplink_faults(view: View) -> list[CablingFault]:
    """What is wrong above the leaves."""
    trunk_faults = find_trunk_faults(view)
    all_faults = _report_swaps(view, trunk_faults.swapped)
    all_faults += [_report_moved(view, faults) for faults in trunk_faults.moved]
    thin = find_thin_groups(view)
    explained = {switch for group, _ in thin for switch in group.switches}
    all_faults += [fault for _, fault in thin]
    all_faults += find_dark_spines(view, explained)
    for block in view.blocks:
        missing = _find_missing_cables(view, block, trunk_faults, explained)
        all_faults += [fault for _, fault in fold_missing(view, block, missing)]
    return all_faults


def find_missing(view: View, trunk_faults: TrunkFaults) -> list[CablingFault]:
    """Cables that are nowhere, a switch each."""
    return [fault for block in view.blocks for _, fault in _find_missing_cables(view, block, trunk_faults, set())]


def end(view: View, fault: Fault) -> str:
    """The port of a cable, or its switch where the port is not known."""
    return view.cluster.place(fault.near) if fault.near else view.name(fault.lower)


def describe_peers(view: View, block: SwitchBlock, upper: str) -> str:
    """What most have, in words."""
    expected, clear = block.usual.get(upper, (0, None))
    if clear is None:
        return f"none of its peers has one to {view.name(upper)}"
    what = "leaves" if block.tier == 1 else "switches"
    of = f"{clear.words} {what}" if clear.of <= len(block.peers) else f"{clear.words} pairs"
    return f"{of} have {expected} to {view.name(upper)}" if clear.of <= len(block.peers) else f"{of} have {expected}"


def _report_swaps(view: View, swapped: list[tuple[Fault, Fault]]) -> list[CablingFault]:
    """Many between the same two switches are one: a side or a bundle of one is at the other."""
    between = group_by_key((frozenset(fault.lower for fault in pair), pair) for pair in swapped)
    faults: list[CablingFault] = []
    for switches, pairs in between.items():
        single = [_swap(view, *pair) for pair in pairs]
        faults += [_report_side(view, sorted(switches), single)] if len(pairs) > FEW_SWAPS else single
    return faults


def _report_side(view: View, switches: list[str], single: list[CablingFault]) -> CablingFault:
    names = sorted(map(view.name, switches), key=natural)
    return CablingFault(
        kind="swapped-uplinks",
        text=f"{len(single)} cables up of {names[0]} and as many of {names[1]} are exchanged: each leads to the switch "
        "that the other has by its peers",
        ports=tuple(port for fault in single for port in fault.ports),
        compared="; ".join(dict.fromkeys(fault.compared for fault in single[:3])),
        fix=f"exchange the whole bundle between {names[0]} and {names[1]}, at one end",
        should={port: place for fault in single for port, place in fault.should.items()},
    )


def _swap(view: View, one: Fault, other: Fault) -> CablingFault:
    name = view.name
    ends = [end(view, one), end(view, other)]
    why = [describe_peers(view, view.block_of[fault.lower], fault.wanted) for fault in (one, other)]
    return CablingFault(
        kind="swapped-uplinks",
        text=(
            f"{ends[0]} goes to {name(one.has)} and {ends[1]} to {name(other.has)}: "
            f"by their peers {name(one.lower)} has that cable to {name(one.wanted)}, "
            f"{name(other.lower)} to {name(other.wanted)}"
        ),
        ports=tuple(ends),
        compared="; ".join(dict.fromkeys(why)),
        fix="exchange the two cables at one end",
        should={ends[0]: name(one.wanted), ends[1]: name(other.wanted)},
    )


def _report_moved(view: View, faults: tuple[Fault, ...]) -> CablingFault:
    name, ends = view.name, [end(view, fault) for fault in faults]
    wanted = [f"{name(fault.lower)} has that cable to {name(fault.wanted)}" for fault in faults]
    if len(faults) > 1:
        text = f"{' and '.join(ends)} are joined with each other: by their peers {', '.join(wanted)}"
        fix = "take it out; each of the two needs a cable of its own to the switch above"
    else:
        text = f"{ends[0]} goes to {name(faults[0].has)}: by its peers {wanted[0]}"
        fix = f"move the cable to {name(faults[0].wanted)}"
    return CablingFault(
        kind="uplink-elsewhere",
        text=text,
        ports=tuple(ends),
        compared="; ".join(
            dict.fromkeys(describe_peers(view, view.block_of[fault.lower], fault.wanted) for fault in faults)
        ),
        fix=fix,
        should={at: name(fault.wanted) for at, fault in zip(ends, faults, strict=True)},
    )


def _find_missing_cables(
    view: View, block: SwitchBlock, trunk_faults: TrunkFaults, explained: set[str]
) -> list[tuple[MissingCables, CablingFault]]:
    """`explained`: switches of a group that has fewer cables as a whole."""
    less = trunk_faults.less
    gone = {
        lower: [(upper, less[lower, upper]) for upper in block.upper if less.get((lower, upper))]
        for lower in block.peers
        if lower not in explained
    }
    extra = {lower for (lower, _), count in trunk_faults.more.items() if count}
    faults = []
    for lower in sorted((switch for switch in gone if gone[switch]), key=lambda switch: natural(view.name(switch))):
        wanted = sum(count for count, _ in block.usual.values())
        has = wanted - sum(count for _, count in gone[lower])
        words: list[str] = []
        should: dict[str, str] = {}
        for upper, count in gone[lower]:
            near, far = _find_free_ports(view, block, lower, upper, count)
            missing_cables = block.usual[upper][0] - count
            where = f" (expected port{'s'[: len(near) != 1]} {_list_ports(near)})" if len(near) == count else ""
            words.append(f"{missing_cables} of {missing_cables + count} to {view.name(upper)}{where}")
            ports = near if len(near) == count else [f"?{len(should) + n}" for n in range(1, count + 1)]
            for at in ports:
                should[view.cluster.place(SwitchPort(lower, at))] = (
                    view.cluster.place(SwitchPort(upper, far[0])) if len(far) == count == 1 else view.name(upper)
                )
        also = "; it has others that its peers do not have" if lower in extra else ""
        fault = CablingFault(
            kind="missing-uplink",
            text=f"{view.name(lower)} has {has} of {wanted} cables up: {', '.join(words)}{also}",
            ports=tuple(should),
            compared="; ".join(dict.fromkeys(describe_peers(view, block, upper) for upper, _ in gone[lower][:3])),
            fix="look for a cable that is out, or a port that is down, at both ends",
            should=should,
        )
        faults.append((MissingCables(lower, has, wanted, tuple(upper for upper, _ in gone[lower])), fault))
    return faults


def _find_free_ports(view: View, block: SwitchBlock, lower: str, upper: str, count: int) -> tuple[list[str], list[str]]:
    """Ports with nothing on them whose peers' lead to the other switch: below, above. Of a switch of which not all
    is given none is known to be free."""
    switches = view.cluster.switches
    near = [
        port
        for port, (far, _, _) in find_far_switches(block, block.peers).items()
        if far == upper and switches[lower].whole and SwitchPort(lower, port) not in view.used
    ]
    far = [
        port
        for port, (low, _, _) in find_far_switches(block, block.upper).items()
        if low == lower and switches[upper].whole and SwitchPort(upper, port) not in view.used
    ]
    return sorted(near, key=natural)[: count + 1], sorted(far, key=natural)[: count + 1]


def _list_ports(ports: list[str]) -> str:
    return " and ".join(ports) if len(ports) < 3 else ", ".join(ports)


_MANY = 3  # switches: fewer are as many faults
_HEAVY = 0.25  # of a switch's cables up


class MissingCables(NamedTuple):
    """What one switch does not have: cables to `upper`."""

    lower: str
    has: int
    wanted: int
    upper: tuple[str, ...]


Missing = tuple[MissingCables, CablingFault]


def fold_missing(view: View, block: SwitchBlock, missing: Sequence[Missing]) -> list[tuple[str, CablingFault]]:
    """The faults, each with the first switch that it is about."""
    unit_of = {leaf: name for name, leaves in list_home_leaves(view).items() if len(leaves) > 1 for leaf in leaves}
    groups: defaultdict[tuple[str, ...], list[Missing]] = defaultdict(list)
    for row in missing:
        lost, _ = row
        heavy = lost.wanted - lost.has >= max(2, _HEAVY * lost.wanted)
        groups[("unit", unit_of.get(lost.lower, "")) if heavy else ("upper", *lost.upper)].append(row)
    faults: list[tuple[str, CablingFault]] = []
    for (kind, *where), rows in groups.items():
        if len(rows) < _MANY:
            faults += [(lost.lower, fault) for lost, fault in rows]
        elif kind == "unit":
            faults.append((rows[0][0].lower, _report_group(view, block, rows, where[0])))
        else:
            faults.append((rows[0][0].lower, _report_upper(view, rows, where)))
    return sorted(faults, key=lambda item: natural(view.name(item[0])))


def _report_group(view: View, block: SwitchBlock, rows: Sequence[Missing], unit: str) -> CablingFault:
    what = "leaves" if block.tier == 1 else "switches"
    leaves = list_home_leaves(view).get(unit, block.peers)
    has, wanted = sorted({lost.has for lost, _ in rows}), rows[0][0].wanted
    cables = f"{has[0]}" if len(has) == 1 else f"{has[0]} to {has[-1]}"
    where = f"{len(rows)} of {len(leaves)} {what}{f' of {unit}' if unit else ''}"
    return CablingFault(
        kind="fewer-uplinks",
        text=f"{where} have {cables} of {wanted} cables up: {_list_names(view, [lost.lower for lost, _ in rows])}",
        **_join(view, rows),
        fix="look for what they share: a patch panel, a bundle or a row of switches above; then for single cables",
    )


def _report_upper(view: View, rows: Sequence[Missing], upper: Sequence[str]) -> CablingFault:
    return CablingFault(
        kind="missing-uplink",
        text=f"{len(rows)} switches have no cable, or fewer than their peers, to {_list_names(view, upper)}: "
        f"{_list_names(view, [lost.lower for lost, _ in rows])}",
        **_join(view, rows),
        fix=f"look at {_list_names(view, upper)} first: a line card or a row of its ports may be down",
    )


class _Joined(TypedDict):
    hosts: tuple[str, ...]
    ports: tuple[str, ...]
    compared: str
    should: dict[str, str]


def _join(view: View, rows: Sequence[Missing]) -> _Joined:
    """What the faults of single switches have, and the hosts below."""
    hosts = {link.host for lost, _ in rows for link in view.down.get(lost.lower, ()) if isinstance(link, HostLink)}
    return {
        "hosts": tuple(sorted(hosts, key=natural)),
        "ports": tuple(port for _, fault in rows for port in fault.ports),
        "compared": "; ".join(dict.fromkeys(text for _, fault in rows for text in fault.compared.split("; ")[:1])),
        "should": {port: place for _, fault in rows for port, place in fault.should.items()},
    }


def _list_names(view: View, switches: Sequence[str]) -> str:
    names = sorted(map(view.name, switches), key=natural)
    return ", ".join(names) if len(names) <= _MANY else f"{names[0]} .. {names[-1]}"
