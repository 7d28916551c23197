"""Cables that are not where they should be, and a cabling plan (CSV, one line per cable) that states where."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
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


PLAN_LIMIT = 2_000_000  # lines


class BadPlan(ValueError):
    """The plan cannot be used; the message says where and why."""


class Planned(NamedTuple):
    """A line of a plan."""

    line: int
    node: str
    rail: str
    switch: str
    port: str


def by_plan(cluster: FabricGraph, views: list[View], planned: Iterable[Planned]) -> Cables:
    """Each line of the plan; and cables of its nodes that it does not have."""
    known = _Known(cluster)
    rows: list[Should] = []
    lost: list[Cable] = []
    meant: set[SwitchPort] = set()
    hosts: set[str] = set()
    for each in planned:
        hosts.add(each.node.lower())
        switch = known.switch(each.switch)
        if switch is None:
            lost.append(_unknown(each))
            continue
        end, found = known.end(each)
        rows.append(Should(end, SwitchPort(switch, port_of(each.port)), found, f"line {each.line} of the plan"))
        if found:
            meant.add(found)
    off = [row for row in rows if row.found != row.should]
    wrong = [*not_right(cluster, off, held_places(views)), *lost]
    wrong += [
        _unplanned(cluster, link) for link in cluster.host_links if link.host.lower() in hosts and link.at not in meant
    ]
    count = len(rows) + len(lost)
    return Cables(by="plan", right=len(rows) - len(off), judged=count, of=count, wrong=wrong)


def read_plan(lines: Iterable[str]) -> Iterator[Planned]:
    """CSV: node, rail (or adapter), switch, port of the switch; more columns are left alone. Raises BadPlan.

    A first line of names is left out; so are blank lines and those that begin with "#". A switch may stand as node.
    """
    reader = csv.reader(line for line in lines if not line.lstrip().startswith("#"))
    try:
        for row in reader:
            cells = [" ".join(cell.split())[:200] for cell in row]
            if not any(cells) or (reader.line_num == 1 and cells[0].lower() in ("node", "host", "hostname")):
                continue
            if len(cells) < 4 or not all(cells[:4]):
                raise BadPlan(
                    f"line {reader.line_num}: node, rail, switch and port are needed: {','.join(cells)[:80]!r}"
                )
            if reader.line_num > PLAN_LIMIT:
                raise BadPlan(f"more than {PLAN_LIMIT:,} lines")
            yield Planned(reader.line_num, *cells[:4])
    except csv.Error as error:
        raise BadPlan(f"line {reader.line_num}: {error}") from error


def port_of(text: str) -> str:
    """A port's number as the fabric has it; other names of ports are left as they are.

    >>> port_of(" 007 "), port_of("swp3"), port_of("Ethernet1/5")
    ('7', 'swp3', 'Ethernet1/5')
    """
    text = text.strip()
    return str(int(text)) if text.isdecimal() and text.isascii() and len(text) < 9 else text


class _Known:
    """Names that a plan may use, in any case of letters."""

    def __init__(self, cluster: FabricGraph) -> None:
        self.switches: dict[str, str] = {}
        for switch in cluster.switches.values():
            for name in (switch.name, switch.id, f"0x{switch.id}"):
                self.switches.setdefault(name.lower(), switch.id)
        self.links: defaultdict[str, dict[str, HostLink]] = defaultdict(dict)
        for link in cluster.host_links:
            for name in (link.rail, link.device):
                self.links[link.host.lower()].setdefault(name.lower(), link)
        self.far = {end: far for link in cluster.switch_links for end, far in ((link.a, link.b), (link.b, link.a))}
        self.cluster = cluster

    def switch(self, name: str) -> str | None:
        """The id of a switch."""
        return self.switches.get(name.lower())

    def end(self, each: Planned) -> tuple[str, SwitchPort | None]:
        """How the end of a planned cable is called, and where it is."""
        own = self.switch(each.node) if each.node.lower() not in self.links else None
        if own is not None:
            at = SwitchPort(own, port_of(each.rail))
            return self.cluster.place(at), self.far.get(at)
        link = _of_plan(self.links.get(each.node.lower(), {}), each.rail)
        return f"{each.node} {link.called if link else each.rail}", link.at if link else None


def _of_plan(links: Mapping[str, HostLink], rail: str) -> HostLink | None:
    wanted = rail.lower()
    return links.get(wanted) or (links.get(f"rail {int(wanted)}") if wanted.isdecimal() and len(wanted) < 5 else None)


def _unknown(each: Planned) -> Cable:
    why = f"line {each.line} of the plan: no switch {each.switch} here"
    return Cable(end=f"{each.node} {each.rail}", state="unknown", should=f"{each.switch}/{each.port}", why=why)


def _unplanned(cluster: FabricGraph, link: HostLink) -> Cable:
    end = f"{link.host} {link.called}"
    return Cable(end=end, state="unplanned", found=cluster.place(link.at), why="the plan has its node, not this cable")
