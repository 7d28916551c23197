"""The map's table: how many nodes of each place look how. What is read where there is no script or no picture."""

from __future__ import annotations

from typing import NamedTuple

from agent.fleet.page.scene import LOOKS, Coded, Nodes, looks


class PlaceCounts(NamedTuple):
    """One place. `counts`: a number for each of `LOOKS`."""

    label: str
    nodes: list[int]
    counts: tuple[int, ...]


def default_place(nodes: Nodes) -> Coded:
    """How the map is arranged at first: by the first way that places most nodes, else by class."""
    for each in nodes.places:
        if sum(code >= 0 for code in each.codes) * 2 > len(each.codes):
            return each
    return nodes.classes


def rows(nodes: Nodes, by: Coded) -> list[PlaceCounts]:
    """A row a place in the order of its labels, nodes without one at the end."""
    shown = [LOOKS.index(each) for each in looks(nodes)]
    members: dict[int, list[int]] = {}
    for at, code in enumerate(by.codes):
        members.setdefault(code, []).append(at)
    order = sorted(members, key=lambda code: (code < 0, code))
    return [_row(by.labels[code] if code >= 0 else "not known", members[code], shown) for code in order]


def _row(label: str, members: list[int], shown: list[int]) -> PlaceCounts:
    counts = [0] * len(LOOKS)
    for at in members:
        counts[shown[at]] += 1
    return PlaceCounts(label, members, tuple(counts))
