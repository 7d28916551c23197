"""A whole InfiniBand fabric as files of its tools describe it: nodes by GUID, and the links between their ports.

GUIDs are 16 lower-case hex digits without "0x". `FabricBuilder` gathers nodes and links while a file is read: each
once, with what both ends report.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

from probes.named_tuple import NamedTuple

MOST_PROBLEMS, MOST_TWICE = 20, 1000
LONGEST_LINE = 2048  # characters: none of the tools writes one as long
SHOWN = 60


class FabricNode(NamedTuple):
    """One switch, channel adapter or router. `name`: its NodeDescription as the file quotes it."""

    guid: str  # "lid 12" where the file names no GUID of it
    kind: str  # switch | ca | router | unknown
    name: str = ""
    ports: int | None = None
    lid: int | None = None  # of a switch; of a channel adapter each port has its own, in its link
    system_image_guid: str | None = None
    guid_of_port: bool = False  # the file names no GUIDs of nodes: that of its first port (a switch's port 0) is used


class FabricEnd(NamedTuple):
    """One port of a node."""

    guid: str  # of the node
    port: int
    port_guid: str | None = None
    lid: int | None = None


class FabricLink(NamedTuple):
    """Two ports and what runs between them. `b` is none where nothing is connected, or nothing was seen."""

    a: FabricEnd
    b: FabricEnd | None
    width: int | None = None  # lanes: 4
    speed: str | None = None  # of a lane, by its name: "NDR", "HDR", "EDR", "FDR"
    state: str | None = None  # Active | Initialize | Armed | Down
    phys_state: str | None = None  # LinkUp | Polling | Disabled | ..
    could_width: int | None = None  # what both ends could do, where the tool states that it is more
    could_speed: str | None = None
    could_told: bool | None = None  # whether the tool states what both ends could do, be it no more than what runs


class Fabric(NamedTuple):
    """What one file shows. Each link is there once, whichever end the file lists first, or both."""

    format_name: str  # one of probes.fabric.files.FORMATS, or "unknown"
    nodes: Mapping[str, FabricNode]
    links: tuple[FabricLink, ...]
    problems: tuple[str, ...] = ()  # what could not be read, bounded, with the line
    listed: tuple[str, ...] = ()  # GUIDs of nodes with a block of their own, in order; () where the format has none
    cut: bool = False  # it ends before the end that its format has
    twice: tuple[FabricLink, ...] = ()  # links with an end that another link has already, bounded
    unread: int = 0  # lines of which something was not understood


T = TypeVar("T", FabricNode, FabricEnd)


def numbered_lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines from 1 on, without their ends. Only line feeds end one: names may hold what else Python takes."""
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
        yield number, line.rstrip("\r")


class FabricBuilder:
    """What a file has reported so far."""

    def __init__(self, format_name: str, name: str) -> None:
        self.nodes: dict[str, FabricNode] = {}
        self.listed: dict[str, None] = {}  # an ordered set
        self.cut = False
        self._format_name, self._name = format_name, name
        self._links: dict[int, FabricLink] = {}
        self._next = 0
        self._at: dict[tuple[str, int], int] = {}  # an end -> where its link is
        self._twice: list[FabricLink] = []
        self._problems: list[str] = []
        self._more = 0
        self._unread: set[int] = set()

    def problem(self, number: int, why: str, line: str = "") -> None:
        """Something of a line is not read."""
        self._unread.add(number)
        self._note(number, why, line)

    def _note(self, number: int, why: str, line: str = "") -> None:
        if len(self._problems) >= MOST_PROBLEMS:
            self._more += 1
            return
        excerpt = line.strip()[:SHOWN]
        self._problems.append(f"{self._name}, line {number}: {why}" + (f": {excerpt!r}" if excerpt else ""))

    def node(self, new: FabricNode) -> None:
        """A node, or more about one."""
        known = self.nodes.get(new.guid)
        self.nodes[new.guid] = new if known is None else _complete(known, new)

    def link(self, new: FabricLink, number: int) -> None:
        """A link as one of its ends shows it."""
        keys = {_key(end) for end in (new.a, new.b) if end}
        places = dict.fromkeys(self._at[key] for key in keys if key in self._at)
        free = [at for at in places if self._links[at].b is None]
        joined = [at for at in places if self._links[at].b is not None]
        port = f"port {new.a.port} of {new.a.guid}"
        if joined if new.b is None else free:
            self._note(number, f"{port}, or its far end, is reported once as connected and once as free")
        if new.b is None:
            if not places:
                self._put(new)
        elif not joined:
            for at in free:
                del self._links[at]
            self._put(new)
        elif len(joined) == 1 and _keys(self._links[joined[0]]) == keys:
            self._put(self._merge(self._links[joined[0]], new, number), joined[0])
        else:
            self._note(number, f"{port}, or its far end, has two far ends: the first stands")
            if len(self._twice) < MOST_TWICE:
                self._twice.append(new)

    def fabric(self) -> Fabric:
        """All of it."""
        more = [f"{self._name}: and {self._more} more"] if self._more else []
        return Fabric(
            format_name=self._format_name,
            nodes=self.nodes,
            links=tuple(self._links.values()),
            problems=(*self._problems, *more),
            listed=tuple(self.listed),
            cut=self.cut,
            twice=tuple(self._twice),
            unread=len(self._unread),
        )

    def _put(self, link: FabricLink, at: int | None = None) -> None:
        if at is None:
            at, self._next = self._next, self._next + 1
        self._links[at] = link
        for key in _keys(link):
            self._at[key] = at

    def _merge(self, old: FabricLink, newer: FabricLink, number: int) -> FabricLink:
        """What both ends state. Where they differ nothing is known: the link changed while the file was made."""
        turned = _key(newer.a) != _key(old.a)
        new = newer._replace(a=newer.b, b=newer.a) if turned and newer.b else newer
        differ = [
            name
            for name in ("width", "speed", "state", "phys_state")
            if None not in (getattr(old, name), getattr(new, name)) and getattr(old, name) != getattr(new, name)
        ]
        for name in differ:
            self._note(
                number,
                f"the ends of port {new.a.port} of {new.a.guid} differ in {name}: {getattr(old, name)} and "
                f"{getattr(new, name)}",
            )
        words = {
            name: None if name in differ else getattr(new, name) if getattr(old, name) is None else getattr(old, name)
            for name in FabricLink._fields[2:]
        }
        far = _complete(old.b, new.b) if old.b and new.b else None
        return FabricLink(_complete(old.a, new.a), far, **words)


def _key(end: FabricEnd) -> tuple[str, int]:
    return end.guid, end.port


def _keys(link: FabricLink) -> set[tuple[str, int]]:
    return {_key(end) for end in (link.a, link.b) if end}


def _complete(known: T, new: T) -> T:
    """What is known, and from the new one what was not."""
    if known == new:
        return known
    lacking = {name: getattr(new, name) for name in known._fields if getattr(known, name) in (None, "", "unknown")}
    return known._replace(**lacking) if lacking else known
