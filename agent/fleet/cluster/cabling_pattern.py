"""What should be on which switch port by the pattern that most cables follow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from agent.fleet.cluster.cabling_faults.rails import group_links_by_rail
from agent.fleet.cluster.cabling_faults.uplinks import describe_peers, end, find_missing
from agent.fleet.cluster.cabling_plan import Cable, Cables, ExpectedCable, describe_holder, list_wrong_cables
from agent.fleet.cluster.fabric_view import View
from agent.fleet.cluster.graph import FabricGraph, SwitchPort, UnknownAdapter
from agent.fleet.cluster.peers import find_most
from agent.fleet.cluster.trunks import Fault, find_far_switches, find_trunk_faults
from agent.fleet.cluster.units import Unit
from agent.model.labels import natural

FIRM = 0.9  # of a port's peers, where the counts of cables are right all the same
OWN_WAY = 0.25  # of a switch's cables on other ports than its peers': above that it is not meant to be as they are
REGULAR = 0.8  # of a unit's cables on the port that its pattern states: below that there is no pattern


def judge_by_pattern(cluster: FabricGraph, views: list[View]) -> Cables:
    """Of every unit whose nodes keep one port number on all leaves, and of cables to the switches above.

    Where ports follow no pattern, the leaf of each rail is compared.
    """
    every: list[ExpectedCable] = []
    patterns: list[str] = []
    wrong: list[Cable] = []
    right = 0
    for view in views:
        for unit in view.units.units:
            rows, notes = _judge_unit(view, unit)
            if not rows:
                fits, off_leaf = _judge_by_leaf(view, unit)
                right += fits
                wrong += off_leaf
                notes = [f"{unit.name}: the leaf of each rail, its ports follow no pattern"] if fits else []
            every += rows
            patterns += notes
        trunks = _Trunks(view)
        wrong += trunks.wrong
        right += trunks.right
    off = [row for row in every if row.found != row.should]
    judged = len(every) + right + len(wrong)
    there = len(cluster.host_links) + sum(len(view.part.switch_links) for view in views)
    return Cables(
        by="pattern",
        right=len(every) - len(off) + right,
        judged=judged,
        of=max(there, judged),
        wrong=[*list_wrong_cables(cluster, off, views), *wrong],
        patterns=patterns,
    )


def _judge_unit(view: View, unit: Unit) -> tuple[list[ExpectedCable], list[str]]:
    """What should be where by the ports that the nodes of a unit have on its leaves."""
    if len(unit.rails) < 2:
        return [], []
    ports: dict[str, str] = {}
    for host in unit.hosts:
        seen = Counter(link.at.port for link in view.units.links[host] if link.rail in unit.rails)
        clear = find_most(seen) if len(seen) > 1 or seen.total() > 2 else _find_pattern(seen)
        if clear:
            ports[host] = clear[0]
    twice = {port for port, count in Counter(ports.values()).items() if count > 1}
    rows, fits = [], 0
    for host in unit.hosts:
        if host not in ports or ports[host] in twice:
            continue
        have = group_links_by_rail(unit, view.units.links[host])
        for rail, at in unit.rails.items():
            link = have.get(rail)
            if link is None and (view.cluster.cut or at.most.of < len(unit.hosts) * REGULAR):
                continue  # an adapter that only some nodes have, or it is unknown
            if link is None and host in view.cluster.displaced:
                continue  # another node reports its port
            should = SwitchPort(at.leaf, ports[host])
            if link is None and isinstance(view.used.get(should), UnknownAdapter):
                continue  # the adapter there does not show it: it may be this one
            fits += link is not None and link.at == should
            own = f"this node the port {ports[host]}"
            why = f"{at.describe(unit.name, rail, view.name(at.leaf))}, {own}"
            rows.append(
                ExpectedCable(f"{host} {link.called if link else rail}", should, link.at if link else None, why)
            )
    if not rows or fits < REGULAR * len(rows):
        return [], []
    return rows, [f"{unit.name}: a node has the same port on all leaves ({fits:,} of {len(rows):,} cables)"]


def _judge_by_leaf(view: View, unit: Unit) -> tuple[int, list[Cable]]:
    """How many rails of a unit's nodes are on the leaf that most have them on, and those that are on another."""
    right, wrong = 0, []
    for host in unit.hosts if len(unit.rails) > 1 else ():
        for rail, link in group_links_by_rail(unit, view.units.links[host]).items():
            at = unit.rails.get(rail)
            if at is None:
                continue
            if at.leaf == link.at.switch:
                right += 1
                continue
            wrong.append(
                Cable(
                    end=f"{host} {link.called}",
                    state="elsewhere",
                    should=view.name(at.leaf),
                    found=view.cluster.place(link.at),
                    there=describe_holder([view], SwitchPort(at.leaf, link.at.port)),
                    why=at.describe(unit.name, rail, view.name(at.leaf)),
                )
            )
    return right, wrong


def _find_pattern(seen: Counter[str]) -> tuple[str, object] | None:
    """Two cables on the same port are as clear as two can be."""
    ((port, count),) = seen.most_common(1) or [("", 0)]
    return (port, None) if count == 2 == seen.total() else None


class _Trunks:
    """Cables between switches: how many are right, and those which are missing or lead elsewhere than their peers'.

    Only what has peers is judged.
    """

    def __init__(self, view: View) -> None:
        self._view = view
        self._far = {at: far for block in view.blocks for at, far in block.ends.items()}
        wrong: dict[str, Cable] = {}
        trunk_faults = find_trunk_faults(view)
        lost = 0  # cables that are wrong, at a port that is not known
        for faults, state in [
            *((pair, "swapped") for pair in trunk_faults.swapped),
            *((one, "elsewhere") for one in trunk_faults.moved),
        ]:
            for fault in faults:
                wrong[end(view, fault)] = self._make_cable(fault, state)
                lost += fault.near is None and fault.has in view.block_of[fault.lower].usual
        for cable_break in find_missing(view, trunk_faults):
            for at, should in cable_break.should.items():
                wrong[at] = Cable(end=at, state="missing", should=should, why=cable_break.compared, trunk=True)
        for at, cable in self._judge_by_port():
            wrong.setdefault(at, cable)
        self.wrong = list(wrong.values())
        self.right = sum(view.cluster.place(at) not in wrong for at in self._list_used_with_peers()) - lost

    def _list_used_with_peers(self) -> Iterator[SwitchPort]:
        """Ports of cables that others are like."""
        for block in self._view.blocks:
            peers = set(block.peers)
            yield from (at for at, far in block.ends.items() if at.switch in peers and far.switch in block.usual)

    def _make_cable(self, fault: Fault, state: str) -> Cable:
        view, near = self._view, fault.near
        far = self._far.get(near) if near else None
        return Cable(
            end=end(view, fault),
            state=state,
            should=view.name(fault.wanted),
            found=view.cluster.place(far) if far else view.name(fault.has),
            why=describe_peers(view, view.block_of[fault.lower], fault.wanted),
            trunk=True,
        )

    def _judge_by_port(self) -> Iterator[tuple[str, Cable]]:
        """Cables on another port than their peers': the counts may be right all the same."""
        view = self._view
        for block in view.blocks:
            expected = find_far_switches(block, block.peers)
            for lower in block.peers:
                ports = [port for port in sorted(expected, key=natural) if SwitchPort(lower, port) in block.ends]
                other = [port for port in ports if block.ends[SwitchPort(lower, port)].switch != expected[port][0]]
                if len(other) > max(2, OWN_WAY * len(ports)):
                    continue  # it keeps an order of its own
                for port in other:
                    upper, agree, of = expected[port]
                    if agree < FIRM * of:
                        continue
                    at = SwitchPort(lower, port)
                    why = f"{agree:,} of {of:,} peers have {view.name(upper)} on that port"
                    there, far_place = view.cluster.place(at), view.cluster.place(block.ends[at])
                    yield (
                        there,
                        Cable(
                            end=there, state="elsewhere", should=view.name(upper), found=far_place, why=why, trunk=True
                        ),
                    )
