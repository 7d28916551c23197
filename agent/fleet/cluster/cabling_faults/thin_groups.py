"""Cables that many switches miss together are one fault: a unit or pod that is half wired, or a spine that is dark."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from agent.fleet.cluster.cabling_faults.exchanged_rails import list_home_leaves
from agent.fleet.cluster.cabling_faults.fault import CablingFault
from agent.fleet.cluster.fabric_view import View
from agent.fleet.cluster.graph import shape
from agent.fleet.cluster.peers import AGREE, find_most
from agent.fleet.cluster.switch_tiers import SwitchBlock
from agent.model.labels import natural

REGULAR = 0.8  # of a group's switches: so many have the same number of cables


class _ThinGroup(NamedTuple):
    """Switches of a row that belong together: the leaves of a unit, of a pod, or the spines of a pod."""

    name: str
    what: str
    switches: tuple[str, ...]
    cables: int  # up, of most of them
    far: int  # switches above that they reach together
    down: float  # ports below of one, the middle one
    shape: str  # of most names


def find_thin_groups(view: View) -> list[tuple[_ThinGroup, CablingFault]]:
    """Groups of which every switch has fewer cables up than those of other groups: half wired, or a spine is dark."""
    up: defaultdict[str, Counter[str]] = defaultdict(Counter)
    down = Counter({switch: len(ports) for switch, ports in view.down.items()})
    for link in view.part.switch_links:
        low, high = sorted((link.a.switch, link.b.switch), key=lambda switch: view.tiers.get(switch, 0))
        if view.tiers.get(high, 0) - view.tiers.get(low, 0) == 1:
            up[low][high] += 1
            down[high] += 1
    pods = [block for block in view.blocks if block.tier == 1 and len(block.peers) > 1]
    units = list_home_leaves(view)
    kinds = [
        [(name, "leaves", leaves) for name, leaves in units.items() if len(leaves) > 1],
        [(_format_ends(view, pod.peers), "leaves", pod.peers) for pod in pods],
        [(_format_ends(view, tuple(pod.places)), "spines", tuple(pod.places)) for pod in pods if len(pod.places) > 1],
    ]
    thin: list[tuple[_ThinGroup, CablingFault]] = []
    explained: set[str] = set()
    for kind in kinds:
        groups = [group for key in kind if (group := _group(view, *key, up, down))]
        for group, fault in _find_thin(view, groups):
            if not explained & set(group.switches):
                thin.append((group, fault))
        explained |= {switch for group, _ in thin for switch in group.switches}
    return thin


def _group(
    view: View, name: str, what: str, switches: tuple[str, ...], up: Mapping[str, Counter[str]], down: Mapping[str, int]
) -> _ThinGroup | None:
    """None where its switches differ, or not all of them are in the file with all their ports."""
    counts = Counter(up[switch].total() if switch in up else 0 for switch in switches)
    cables, same = counts.most_common(1)[0]
    if (
        not cables
        or same < len(switches) * REGULAR
        or not all(view.cluster.switches[switch].whole for switch in switches)
    ):
        return None
    far = {above for switch in switches for above in up[switch]}
    middle = sorted(down.get(switch, 0) for switch in switches)[len(switches) // 2]
    shapes = Counter(shape(view.name(switch)) for switch in switches)
    return _ThinGroup(name, what, switches, cables, len(far), middle, shapes.most_common(1)[0][0])


def _find_thin(view: View, groups: list[_ThinGroup]) -> Iterator[tuple[_ThinGroup, CablingFault]]:
    expected = find_most(Counter((group.cables, group.far) for group in groups))
    if expected is None or view.cluster.cut:
        return
    (cables, far), clear = expected
    alike = [group for group in groups if (group.cables, group.far) == (cables, far)]
    shapes = {group.shape for group in alike}
    middle = sorted(group.down for group in alike)[len(alike) // 2]
    for group in groups:
        if group.cables >= cables or group.shape not in shapes or not 0.75 * middle <= group.down <= 1.25 * middle:
            continue
        ratio = f" ({_format_ratio(group.down, group.cables)}, elsewhere {_format_ratio(middle, cables)})"
        dark = f"; they reach {group.far} switches above, elsewhere {far}" if group.far < far else ""
        text = (
            f"each of the {len(group.switches)} {group.what} of {group.name} has {group.cables} of {cables} cables up"
        )
        yield (
            group,
            CablingFault(
                kind="fewer-uplinks",
                text=f"{text}{ratio}{dark}",
                ports=tuple(view.name(switch) for switch in group.switches),
                compared=f"{clear.words} such groups have {cables} cables up from each to {far} switches",
                fix="see whether a switch above is off, or missing from the file because the tool could not reach it; "
                "if neither, connect the missing cables"
                if dark
                else "connect the missing cables, unless this is intended",
            ),
        )


def _format_ratio(down: float, up: int) -> str:
    """
    >>> _format_ratio(32, 16), _format_ratio(32, 31)
    ('2:1', '1.03:1')
    """
    return f"{down / up:.3g}:1"


def _format_ends(view: View, switches: tuple[str, ...]) -> str:
    names = sorted((view.name(switch) for switch in switches), key=natural)
    return f"{names[0]} .. {names[-1]}"


def find_dark_spines(view: View, explained: set[str]) -> list[CablingFault]:
    """Spines that are not in the file at all: no leaf has a cable at their ports, and their numbers are skipped.

    Both have to agree: ports alone, or numbers alone, may be left out on purpose. `explained`: leaves of thin groups.
    """
    faults = []
    for block in view.blocks if not view.cluster.cut else ():
        if len(block.peers) <= AGREE or explained >= set(block.peers):
            continue
        names = _find_skipped([view.name(upper) for upper in block.places])
        ports = _list_unused_ports(view, block)
        cable_count = find_most(
            Counter(count for (lower, _), count in block.cables.items() if lower in set(block.peers))
        )
        if names and cable_count and len(ports) == cable_count[0] * len(names):
            at = ", ".join(map(str, ports))
            ends = _format_ends(view, block.peers)
            faults.append(
                CablingFault(
                    kind="dark-spine",
                    text=f"{', '.join(names)} is not in the fabric: none of the {len(block.peers)} switches {ends} "
                    f"has a cable at port{'s'[: len(ports) != 1]} {at}",
                    ports=tuple(view.name(lower) for lower in block.peers),
                    compared=f"numbers of the {len(block.places)} switches above, and the ports of their cables",
                    fix="see whether it is off, or missing from the file because the tool could not reach it",
                )
            )
    return faults


def _find_skipped(names: Iterable[str]) -> list[str]:
    """Names that are missing between the numbers of others.

    >>> _find_skipped(["spine1", "spine2", "spine4", "spine5"]), _find_skipped(["s1-03", "s1-05"])
    (['spine3'], ['s1-04'])
    >>> _find_skipped(["a", "b"])
    []
    """
    split = sorted((re.split(r"(\d+)", name) for name in names), key=str)
    varying = {
        place for one in split for place, part in enumerate(one) if len(one) != len(split[0]) or part != split[0][place]
    }
    if len(varying) != 1 or not next(iter(varying)) % 2:
        return []
    (place,) = varying
    numbers = {int(parts[place]): parts for parts in split if len(parts[place]) < 9}
    if len(numbers) != len(split):
        return []
    missing = sorted(set(range(min(numbers), max(numbers))) - set(numbers))
    if len(missing) > max(1, len(numbers) // 8):
        return []  # numbers that state something else
    width = len(split[0][place]) if split[0][place].startswith("0") else 0
    return ["".join([*split[0][:place], f"{number:0{width}d}", *split[0][place + 1 :]]) for number in missing]


def _list_unused_ports(view: View, block: SwitchBlock) -> list[int]:
    """Ports between those of the cables up that nothing is on, at any of the peers."""
    peers = set(block.peers)
    up = {int(at.port) for at in block.ends if at.switch in peers and at.port.isdecimal() and len(at.port) < 9}
    used = {int(at.port) for at in view.used if at.switch in peers and at.port.isdecimal() and len(at.port) < 9}
    return [port for port in range(min(up), max(up)) if port not in used] if up and max(up) < 10_000 else []
