"""Cables that are not where a plan or the majority pattern expects them; a plan is a CSV with one line per cable, or
the NDT file of NVIDIA UFM.
"""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from agent.fleet.cluster.fabric_view import View
from agent.fleet.cluster.from_fabric import parse_node_description
from agent.fleet.cluster.graph import FabricGraph, HostLink, SwitchLink, SwitchPort, switch_name

STATES = {
    "swapped": "at the place of another, which is at its place",
    "elsewhere": "at another place",
    "missing": "not connected to a switch port that is known",
    "unplanned": "not in the plan",
    "unknown": "names no host or switch that is known here",
}
PLAN_LIMIT = 2_000_000  # lines
LEAST_KNOWN = 0.1  # of a plan's lines: with fewer whose switch and node are here it is the plan of another fabric
_NDT_PORT = re.compile(r"(?:Blade [0-9]+_)?Port ([0-9]{1,4})(?:/([0-9]{1,2}))?(?:/1)?")
_NDT_COLUMNS = ("startdevice", "startport", "enddevice", "endport")
_LENGTHS = {"metres": " m", "meters": " m", "length_m": " m", "length": "", "cable length": "", "cable_length": ""}


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


class BadPlan(ValueError):
    """The plan cannot be used; the message states where and why."""


class Planned(NamedTuple):
    """A line of a plan."""

    line: int
    node: str
    rail: str
    switch: str
    port: str
    length: str = ""

    @property
    def why(self) -> str:
        """Where the plan has it."""
        return f"line {self.line} of the plan" + (f", cable length {self.length}" if self.length else "")


def judge_by_plan(cluster: FabricGraph, views: list[View], planned: Iterable[Planned]) -> Cables:
    """Each line of the plan; and cables of its nodes that it does not have. Raises BadPlan."""
    known = _Known(cluster)
    rows: list[ExpectedCable] = []
    lost: list[Cable] = []
    planned_ports: set[SwitchPort] = set()
    hosts: set[str] = set()
    meant_lines = list(planned)
    for line in meant_lines:
        hosts.add(line.node.lower())
        switch = known.switch(line.switch)
        if switch is None:
            lost.append(_report_unknown(line))
            continue
        end, far_end = known.end(line)
        rows.append(ExpectedCable(end, known.port(switch, line.port), far_end, line.why))
        if far_end:
            planned_ports.add(far_end)
    off = [row for row in rows if row.found != row.should]
    wrong = [*list_wrong_cables(cluster, off, views), *lost]
    wrong += [
        _report_unplanned(cluster, link)
        for link in cluster.host_links
        if link.host.lower() in hosts and link.at not in planned_ports
    ]
    count = len(rows) + len(lost)
    placed = sum(known.has(line) for line in meant_lines)
    if count and placed < LEAST_KNOWN * count:
        raise BadPlan(
            f"only {placed:,} of its {count:,} cables are between a node and a switch that are known here: "
            "is it the plan of another fabric, or are names written in another way?"
        )
    return Cables(by="plan", right=len(rows) - len(off), judged=count, of=count, wrong=wrong)


def read_plan(lines: Iterable[str]) -> Iterator[Planned]:
    """CSV: node, rail (or adapter), switch, port of the switch; more columns are left alone. Raises BadPlan.

    A first line of names is left out, but for the column of cable lengths (metres, length); so are blank lines and
    those that begin with "#". A switch may stand as node.
    A line with UFM's names (StartDevice, StartPort, EndDevice, EndPort) makes it an NDT file.
    """
    reader = csv.reader("\n" if _is_comment(line) else line for line in lines)
    ndt: dict[str, int] | None = None
    length: tuple[int, str] | None = None
    first = True
    try:
        for row in reader:
            cells = [" ".join(cell.split())[:200] for cell in row]
            if not any(cells):
                continue
            if reader.line_num > PLAN_LIMIT:
                raise BadPlan(f"more than {PLAN_LIMIT:,} lines")
            names, first = first, False
            if names and (ndt := _find_ndt_columns(cells)) is not None:
                continue
            if ndt is not None:
                yield from _read_ndt(reader.line_num, cells, ndt)
                continue
            if names and cells[0].lower() in ("node", "host", "hostname"):
                columns = [(at, _LENGTHS[cell.lower()]) for at, cell in enumerate(cells) if cell.lower() in _LENGTHS]
                length = columns[0] if columns else None
                continue
            if len(cells) < 4 or not all(cells[:4]):
                raise BadPlan(
                    f"line {reader.line_num}: node, rail, switch and port are needed: {','.join(cells)[:80]!r}"
                )
            metres = cells[length[0]] if length is not None and length[0] < len(cells) else ""
            unit = length[1] if length is not None and metres.replace(".", "", 1).isdecimal() else ""
            yield Planned(reader.line_num, cells[0], cells[1], cells[2], cells[3], f"{metres}{unit}")
    except csv.Error as error:
        raise BadPlan(f"line {reader.line_num}: {error}") from error


def _is_comment(line: str) -> bool:
    """UFM writes its line of names as a comment."""
    return line.lstrip().startswith("#") and "startdevice" not in line.lower()


def _find_ndt_columns(cells: list[str]) -> dict[str, int] | None:
    """Places of the columns of an NDT file by their names; None: it is no line of names of one.

    >>> _find_ndt_columns(["rack #", "#Fields:StartDevice", "StartPort", "EndDevice", "EndPort", "Cable_Length"])
    {'rack ': 0, 'startdevice': 1, 'startport': 2, 'enddevice': 3, 'endport': 4, 'cable length': 5}
    >>> _find_ndt_columns(["node", "rail", "switch", "port"])
    """
    names = [cell.lower().replace("#", "").removeprefix("fields:").replace("_", " ") for cell in cells]
    columns = {name: place for place, name in enumerate(names)}
    return columns if all(name in columns for name in _NDT_COLUMNS) else None


def _read_ndt(line: int, cells: list[str], columns: dict[str, int]) -> Iterator[Planned]:
    """The cable of a line, the node's end first; a port that is meant to be off has none. Raises BadPlan."""

    def cell(name: str) -> str:
        place = columns.get(name)
        return cells[place] if place is not None and place < len(cells) else ""

    start, start_port, end, end_port = (cell(name) for name in _NDT_COLUMNS)
    if not (start and start_port and end and end_port):
        raise BadPlan(
            f"line {line}: StartDevice, StartPort, EndDevice and EndPort are needed: {','.join(cells)[:80]!r}"
        )
    if cell("state").lower() in ("disabled", "disable") or cell("domain").lower() == "out-of-scope":
        return
    if (parse_node_description(start) or ("", ""))[1]:  # "HOST ADAPTER"; a switch has no adapter
        start, start_port, end, end_port = end, end_port, start, start_port
    host = parse_node_description(end)
    if host and host[1]:
        node, rail = host
    else:
        node, rail = switch_name(end), _format_ndt_port(end_port)
    yield Planned(line, node, rail, switch_name(start), _format_ndt_port(start_port), cell("cable length"))


def _format_ndt_port(text: str) -> str:
    """The InfiniBand port number: cages of two ports count both.

    >>> [_format_ndt_port(text) for text in ("Port 21", "Port 3/2", "Blade 2_Port 1/1", "swp3")]
    ['21', '6', '1', 'swp3']
    """
    match = _NDT_PORT.fullmatch(text)
    if not match:
        return text
    cage, half = int(match[1]), match[2]
    return str((cage - 1) * 2 + int(half)) if half else str(cage)


def normalize_port(text: str) -> str:
    """A port's number as the fabric has it; other names of ports are left as they are.

    >>> normalize_port(" 007 "), normalize_port("swp3"), normalize_port("Ethernet1/5")
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

    def port(self, switch: str, name: str) -> SwitchPort:
        """A port of a switch by its name or another one that it has."""
        port = normalize_port(name)
        return SwitchPort(switch, self.cluster.aliases.get(SwitchPort(switch, port.lower()), port))

    def has(self, planned: Planned) -> bool:
        """Whether both ends are known here."""
        return self.switch(planned.switch) is not None and (
            planned.node.lower() in self.links or self.switch(planned.node) is not None
        )

    def end(self, planned: Planned) -> tuple[str, SwitchPort | None]:
        """How the end of a planned cable is called, and where it is."""
        own = self.switch(planned.node) if planned.node.lower() not in self.links else None
        if own is not None:
            at = self.port(own, planned.rail)
            return self.cluster.place(at), self.far.get(at)
        link = _find_planned_link(self.links.get(planned.node.lower(), {}), planned.rail)
        return f"{planned.node} {link.called if link else planned.rail}", link.at if link else None


def _find_planned_link(links: Mapping[str, HostLink], rail: str) -> HostLink | None:
    wanted = rail.lower()
    return links.get(wanted) or (links.get(f"rail {int(wanted)}") if wanted.isdecimal() and len(wanted) < 5 else None)


def _report_unknown(planned: Planned) -> Cable:
    why = f"line {planned.line} of the plan: no switch {planned.switch} here"
    return Cable(
        end=f"{planned.node} {planned.rail}", state="unknown", should=f"{planned.switch}/{planned.port}", why=why
    )


def _report_unplanned(cluster: FabricGraph, link: HostLink) -> Cable:
    end = f"{link.host} {link.called}"
    return Cable(end=end, state="unplanned", found=cluster.place(link.at), why="the plan has its node, not this cable")
