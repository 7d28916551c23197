"""Cables that are not where a plan or the majority pattern expects them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from agent.fleet.cluster.fabric_view import View
from agent.fleet.cluster.graph import FabricGraph, HostLink, SwitchLink, SwitchPort

STATES = {
    "swapped": "at the place of another, which is at its place",
    "elsewhere": "at another place",
    "missing": "nowhere",
    "unplanned": "not in the plan",
    "unknown": "names no host or switch that is known here",
}


class Cable(msgspec.Struct, frozen=True, kw_only=True):
    """One cable that is not where it should be. `end`: "HOST RAIL" or "SWITCH/PORT"; `there`: what is at its place."""

    end: str
    state: str
    should: str | None = None
    found: str | None = None
    there: str | None = None
    why: str = ""
    trunk: bool = False  # between switches


class Cables(msgspec.Struct, frozen=True, kw_only=True):
    """`right`: cables that are where they should be; `judged`: all that something is known of; `of`: all there are."""

    by: str  # plan | pattern
    right: int
    judged: int
    of: int
    wrong: list[Cable]
    patterns: list[str] = []
    notes: list[str] = []  # what could not be read or joined


class Should(NamedTuple):
    """Where an end should be, and where it is."""

    end: str
    should: SwitchPort
    found: SwitchPort | None
    why: str


def not_right(cluster: FabricGraph, off: list[Should], held: Mapping[SwitchPort, str]) -> list[Cable]:
    """In words; two that are at each other's place are a swap."""
    place = {(row.found, row.should): row for row in off if row.found}
    made = []
    for row in off:
        other = place.get((row.should, row.found)) if row.found else None
        made.append(
            Cable(
                end=row.end,
                state="swapped" if other else "elsewhere" if row.found else "missing",
                should=cluster.place(row.should),
                found=cluster.place(row.found) if row.found else None,
                there=held.get(row.should),
                why=row.why,
            )
        )
    return made


def held_places(views: list[View]) -> dict[SwitchPort, str]:
    """What is on every port, in words."""
    found = {}
    for view in views:
        for at, held in view.used.items():
            if isinstance(held, HostLink):
                found[at] = f"{held.host} {held.called}"
            elif isinstance(held, SwitchLink):
                found[at] = view.cluster.place(held.b if held.a == at else held.a)
            else:
                found[at] = f"an adapter that names no host ({held.guid})"
    return found
