"""What the picture shows: boxes of switches by row, hosts below them, bundles of cables, and what is broken where."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from agent.fleet.cluster.cabling_faults import CablingFault
from agent.fleet.cluster.fabric_kind import WORDS, classify_fabric
from agent.fleet.cluster.fabric_view import View
from agent.fleet.cluster.graph import FabricGraph, SwitchPort, count_neighbors
from agent.fleet.cluster.peers import group_peers
from agent.fleet.hostlist import fold
from agent.model.labels import group_by_key, natural

GAP, HIGH = 12.0, 44.0  # pixels between boxes, and of a box
SINGLE = 16  # so many switches in a row are drawn one by one
MOST = 48  # boxes in a row
HOSTS = 0  # the row of the hosts


class PictureBox(NamedTuple):
    """One or many switches, or the hosts of a unit. `breaks`: sentences."""

    key: str
    kind: str  # switch | leaf | hosts
    name: str
    words: str
    members: tuple[str, ...]
    breaks: tuple[str, ...]


class LinkStates(NamedTuple):
    """What is known of links, by the switch port at either end: their colours are its, not those of cabling faults.

    `order`: the states, the best first; `classes`: state -> class of the style.
    """

    of: Mapping[SwitchPort, str]
    order: tuple[str, ...]
    classes: Mapping[str, str]
    title: str


class FabricPicture(NamedTuple):
    """`wires`: (upper box, lower box) -> cables; `broken`: what is wrong between them; `states`: their cables by state,
    the worst last."""

    title: str
    words: str
    rows: dict[int, list[PictureBox]]
    wires: dict[tuple[str, str], int]
    broken: dict[tuple[str, str], list[str]]
    states: Mapping[tuple[str, str], Mapping[str, int]] = {}


def build_pictures(
    cluster: FabricGraph, views: list[View], faults: Sequence[CablingFault], states: LinkStates | None = None
) -> Iterator[FabricPicture]:
    """A scene a fabric."""
    places = _Places(cluster)
    touched = [(cable_break, places.switches(cable_break)) for cable_break in faults]
    for view in views:
        yield _build_picture(view, [(fault, ends) for fault, ends in touched if ends or fault.hosts], states)


class _Places:
    """Switches by what breaks call them: "NAME/PORT", or "NAME"."""

    def __init__(self, cluster: FabricGraph) -> None:
        self.by_name = {switch.name: switch.id for switch in cluster.switches.values()}

    def switches(self, cable_break: CablingFault) -> list[str]:
        """Those that it names, the near end of a cable before its far end."""
        labels = [*cable_break.ports, *(text for pair in cable_break.should.items() for text in pair)]
        return list(dict.fromkeys(switch for text in labels for switch in self._list_members(text)))

    def _list_members(self, text: str) -> Iterator[str]:
        end = len(text)
        while end > 0:
            if text[:end] in self.by_name:
                yield self.by_name[text[:end]]
                return
            end = text.rfind("/", 0, end)


def _build_picture(
    view: View, touched: list[tuple[CablingFault, list[str]]], states: LinkStates | None
) -> FabricPicture:
    box_of = _name_boxes(view)
    members = group_by_key((key, switch) for switch, key in box_of.items())
    hosts = {host: f"hosts {unit.name}" for unit in view.units.units for host in unit.hosts}
    hosts |= dict.fromkeys(view.units.loose, "hosts in no unit")
    if len({*hosts.values()}) > MOST:
        # by the box of their first leaf
        hosts = {host: f"hosts {box_of.get(view.units.links[host][0].at.switch, key)}" for host, key in hosts.items()}
    wires: Counter[tuple[str, str]] = Counter()
    found: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for link in view.part.switch_links:
        a, b = link.a.switch, link.b.switch
        if a in box_of and b in box_of and view.tiers[a] != view.tiers[b]:
            low, high = sorted((a, b), key=lambda switch: view.tiers[switch])
            wires[box_of[high], box_of[low]] += 1
            _count_state(found[box_of[high], box_of[low]], states, link.a, link.b)
    for end in view.part.host_links:
        if end.at.switch in box_of:
            wires[box_of[end.at.switch], hosts[end.host]] += 1
            _count_state(found[box_of[end.at.switch], hosts[end.host]], states, end.at)
    own: defaultdict[str, list[str]] = defaultdict(list)
    broken: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for cable_break, switches in touched:
        keys = [box_of[switch] for switch in switches if switch in box_of]
        keys += [hosts[host] for host in cable_break.hosts if host in hosts]
        for key in dict.fromkeys(keys):
            own[key].append(cable_break.text)
        for pair in wires:
            if pair[0] in keys and pair[1] in keys:
                broken[pair].append(cable_break.text)
    rows = _group_rows(view, members, hosts, own)
    kind = classify_fabric(view)
    return FabricPicture(
        WORDS[kind.kind],
        "; ".join(kind.evidence[:2]),
        _order_rows(rows, wires),
        dict(wires),
        dict(broken),
        {pair: {state: these[state] for state in states.order if these[state]} for pair, these in found.items()}
        if states
        else {},
    )


def _count_state(counts: Counter[str], states: LinkStates | None, *ports: SwitchPort) -> None:
    state = next((states.of[port] for port in ports if port in states.of), None) if states else None
    if state is not None:
        counts[state] += 1


def _group_rows(
    view: View, members: Mapping[str, list[str]], hosts: Mapping[str, str], own: Mapping[str, list[str]]
) -> dict[int, list[PictureBox]]:
    rows: defaultdict[int, list[PictureBox]] = defaultdict(list)
    for key, switches in members.items():
        names = sorted((view.name(switch) for switch in switches), key=natural)
        tier = view.tiers[switches[0]]
        words = (
            f"{len(names)} {'leaves' if tier == 1 else 'switches'}"
            if len(names) > 1
            else "leaf"
            if tier == 1
            else "switch"
        )
        name = names[0] if len(names) == 1 else _name_box(key, names)
        rows[tier].append(
            PictureBox(key, "leaf" if tier == 1 else "switch", name, words, tuple(names), tuple(own.get(key, ())))
        )
    for key, these in group_by_key((key, host) for host, key in hosts.items()).items():
        folded = fold(these)
        words = f"{len(these):,} host{'s'[: len(these) != 1]}"
        first = min(these, key=natural)
        name = folded if len(folded) < 24 else f"{first} .."
        rows[HOSTS].append(PictureBox(key, "hosts", name, words, (folded,), tuple(own.get(key, ()))))
    return {row: sorted(boxes, key=lambda box: (natural(box.name), box.key)) for row, boxes in rows.items()}


def _name_box(key: str, names: list[str]) -> str:
    """The key states it where it is a unit's name; else what folding makes of the names, if that is short."""
    name = key.partition(" ")[2]
    folded = fold(names, quote=False)
    return name or (folded if len(folded) < 26 else f"{names[0]} ..")


def _name_boxes(view: View) -> dict[str, str]:
    """Every switch that is drawn -> the box that it is in."""
    rows = group_by_key((tier, switch) for switch, tier in view.tiers.items())
    box_of: dict[str, str] = {}
    for tier in sorted(rows):
        switches = rows[tier]
        if len(switches) <= SINGLE:
            box_of |= {switch: f"{view.name(switch)} " for switch in switches}
        elif tier == 1:
            box_of |= _group_by_unit(view, switches)
        else:
            box_of |= _group_by_below(view, switches, tier, box_of)
    return box_of


def _group_by_unit(view: View, switches: list[str]) -> dict[str, str]:
    group_of = {leaf: f"unit {unit.name}" for unit in view.units.units for leaf in unit.leaves}
    group_of = {switch: group_of.get(switch, f"{view.name(switch)} ") for switch in switches}
    keys = sorted({*group_of.values()}, key=natural)
    if len(keys) <= MOST:
        return group_of
    share = -(-len(keys) // MOST)
    chunk = {key: f"units {keys[n - n % share].partition(' ')[2]} .." for n, key in enumerate(keys)}
    return {switch: chunk[key] for switch, key in group_of.items()}


def _group_by_below(view: View, switches: list[str], tier: int, box_of: Mapping[str, str]) -> dict[str, str]:
    """Switches that hang on the same boxes below are one box."""
    beside, row_below = count_neighbors(view.part.switch_links), tier - 1
    below: dict[str, Counter[str]] = {switch: Counter() for switch in switches}
    for switch in switches:
        for far, count in beside.get(switch, {}).items():
            if view.tiers.get(far, 0) == row_below:
                below[switch][box_of[far]] += count
    cohorts, loose = group_peers(below)
    group_of = {switch: f"{tier}.{number} " for number, group in enumerate(cohorts) for switch in group.members}
    return group_of | {switch: f"{view.name(switch)} " for switch in (*loose, *(set(switches) - {*group_of, *loose}))}


def _order_rows(rows: dict[int, list[PictureBox]], wires: Mapping[tuple[str, str], int]) -> dict[int, list[PictureBox]]:
    """Each above what it joins: the order of a row above the leaves follows the middle of what is below it."""
    beside: defaultdict[str, list[str]] = defaultdict(list)
    for upper, lower in wires:
        beside[upper].append(lower)
        beside[lower].append(upper)
    for row in sorted(rows):
        if row == 1:
            continue
        near = rows.get(1 if row == HOSTS else row - 1, [])
        at = {box.key: place / len(near) for place, box in enumerate(near)}
        mean = {
            box.key: sum(at[key] for key in beside[box.key] if key in at)
            / max(sum(key in at for key in beside[box.key]), 1)
            for box in rows[row]
        }
        rows[row].sort(key=lambda box: (mean[box.key], natural(box.name)))
    return rows
