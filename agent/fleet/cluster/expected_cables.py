"""Cables that are not where a plan or the majority pattern expects them."""

from __future__ import annotations

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


class ExpectedCable(NamedTuple):
    """Where an end should be, and where it is."""

    end: str
    should: SwitchPort
    found: SwitchPort | None
    why: str


def list_wrong_cables(cluster: FabricGraph, off: list[ExpectedCable], views: list[View]) -> list[Cable]:
    """The wrong cables in words; two that are exchanged are one swap."""
    place = {(row.found, row.should): row for row in off if row.found}
    cables = []
    for row in off:
        other = place.get((row.should, row.found)) if row.found else None
        cables.append(
            Cable(
                end=row.end,
                state="swapped" if other else "elsewhere" if row.found else "missing",
                should=cluster.place(row.should),
                found=cluster.place(row.found) if row.found else None,
                there=describe_holder(views, row.should),
                why=row.why,
            )
        )
    return cables


def describe_holder(views: list[View], at: SwitchPort) -> str | None:
    """What is on a port, in words."""
    for view in reversed(views):
        holder = view.used.get(at)
        if isinstance(holder, HostLink):
            return f"{holder.host} {holder.called}"
        if isinstance(holder, SwitchLink):
            return view.cluster.place(holder.b if holder.a == at else holder.a)
        if holder is not None:
            return f"an adapter that names no host ({holder.guid})"
    return None
