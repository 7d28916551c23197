"""What a log lists for each rank: "Rank 5: 812.4ms" below a heading, "Rank=5 Node=a Score=0.97", tables of ranks.

Reports of stragglers and benchmarks print them: NVRx, Megatron-LM's tests of GPUs, scripts of a site. Values of one
quantity that come one after the other, a rank each, are a block.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from probes.text import lazy_pattern

_MOST_BLOCKS, _MOST_RANKS = 2000, 20_000
_NEAR = 4  # lines between a heading and its first value
_MOST_CELLS = 24
_RANK_LINE = lazy_pattern(
    r"[\s>*|-]{0,12}(?:global |world )?[Rr]ank(?: ?[=:#] ?| {1,8})(?P<rank>\d{1,6})\b(?P<rest>[ ,:=|(].{1,200})$"
)
_SLOWEST = lazy_pattern(  # "slowest rank: 13 (host a, gpu 5) compute 1404 ms, median over ranks 770 ms"
    r"(?i:\bslowest rank)[ :=#]{1,3}(?P<rank>\d{1,6})\b(?P<between>.{0,80}?)\b"
    r"(?P<value>\d{1,9}(?:\.\d{1,9})?) ?(?P<unit>[mu]?s)\b"
    r".{0,30}?\b(?i:median|mean|average|avg|others)\b.{0,30}?\b(?P<usual>\d{1,9}(?:\.\d{1,9})?) ?(?P=unit)\b"
)
# "MxRtt/Rnk: 16905.34ms/37 | MnClk/Rnk: 870.00MHz/37", of a straggler detector: the least and the most of all ranks
_EXTREME = lazy_pattern(
    r"\b(?P<which>M[nx])(?P<name>[A-Za-z]{2,8})/Rnk: {0,4}(?P<value>\d{1,9}(?:\.\d{1,6})?)"
    r"(?P<unit>ms|us|s|W|C|%|MHz|TF)/(?P<rank>\d{1,6})\b"
)
_HOST = lazy_pattern(
    r"\b(?:[Nn]ode|[Hh]ost)(?:name)?(?:\s{0,2}[=:]\s{0,2}|\s{1,4}(?=\S{0,62}\d))(?P<host>(?=[\d.-]{0,62}[A-Za-z])[A-Za-z0-9][\w.-]{0,62})"
)
_VALUE = lazy_pattern(
    r"(?P<name>\b[A-Za-z][\w./ -]{0,30}?)?\s{0,2}[=:]\s{0,8}(?P<value>\d{1,9}(?:\.\d{1,9})?)\s?"
    r"(?P<unit>%|[A-Za-z/]{0,12})"
    r"(?=[\s,;|)]|$)"
)
_BARE_VALUE = lazy_pattern(
    r"(?P<name>\b[A-Za-z][\w./-]{0,30})\s{1,8}(?P<value>\d{1,9}(?:\.\d{1,9})?)\s?"
    r"(?P<unit>[mu]?s|[GM]i?B/s|Gbps|[GT]FLOP/?s?|MHz)(?=[\s,;|)]|$)"
)
# Columns of a table of times that have no unit
_PHASE = lazy_pattern(
    r"(?:data|load(?:er|ing)?|h2d|d2h|f(?:or)?wa?r?d|b(?:ack)?wa?r?d|fwd[_-]?bwd|opt(?:im(?:izer)?)?|step|iter(?:ation)?|"
    r"all[_-]?reduce|all[_-]?gather|reduce[_-]?scatter|all[_-]?to[_-]?all|comm|sync|wait)"
    r"(?:[_-]?(?:load(?:er|ing)?|wait|compute))?",
    re.IGNORECASE,
)
_RANK_COLUMN = lazy_pattern(r"(?:global[ _]|world[ _])?rank(?:[ _](?:id|no|number))?", re.IGNORECASE)
_HOST_COLUMN = lazy_pattern(r"(?:host|node)(?:[ _]?name)?", re.IGNORECASE)
_RATE = lazy_pattern(
    r"/s(?:ec)?\b|gbps|\bmhz\b|flops?\b|(?:\b|_)perf(?:orm\w{1,8})?(?:\b|_)|throughput|bandwidth|\bbw\b|\w{3}bw\b",
    re.IGNORECASE,
)
_TIME = lazy_pattern(r"(?:\b|_)(?:ms|us|s|secs?|seconds?)\b|time|latency|duration|timing", re.IGNORECASE)
_READ = lazy_pattern(
    rb"[^\n]{0,60}\b[Rr]ank(?: ?[=:#] ?| {1,8})\d{1,6}\b[^\n]{0,200}(?:[=:]\s{0,8}\d|\d ?(?:[mu]?s|[GM]i?B/s|MHz)\b)|"
    rb"[^\n]{0,60}\[rank\d{1,6}\]:(?!\[)[^\n]{0,200}(?:/s|time|FLOP|throughput|latency)\w{0,8}['\" ]{0,2}[=:]\s{0,8}\d|"
    rb"\s{0,8}\|?\s{0,8}\d{1,6}\s{0,12}[|,][^\n]{0,300}\d|"
    rb"\s{0,8}\|?\s{0,8}(?:global[ _]|world[ _])?[Rr]ank(?:[ _]\w{2,6})?\s{0,12}[|,]|"
    rb"\s{0,8}(?:global_|world_)?[Rr]ank(?:\s{1,12}[A-Za-z][\w./()-]{0,30}){2,24}\s{0,12}$|"
    rb"\s{0,8}\d{1,6}\s{1,12}\S{1,64}(?:\s{1,12}\d[\d.]{0,15}){1,24}\s{0,12}$"
)


class RankValue(NamedTuple):
    """A value of a rank, and its line."""

    value: float
    line: int


class SlowestRank(NamedTuple):
    """The slowest rank as a report names it, beside what is usual."""

    rank: int
    host: str | None
    value: float
    usual: float
    text: str
    file: int
    line: int


class Extremes(NamedTuple):
    """Which ranks have the least and the most of each quantity: name -> (least, its rank, most, its rank, unit)."""

    rows: dict[str, tuple[float, int, float, int, str]]
    text: str
    file: int
    line: int


class RankBlock:
    """Values of one quantity, a rank each."""

    def __init__(self, file: int, name: str, unit: str, is_rate: bool) -> None:
        self.file, self.name, self.unit, self.is_rate = file, name, unit, is_rate
        self.values: dict[int, RankValue] = {}
        self.hosts: dict[int, str] = {}


class RankValues:
    """All blocks of a job."""

    def __init__(self) -> None:
        self.blocks: list[RankBlock] = []
        self.slowest: list[SlowestRank] = []
        self.extremes: list[Extremes] = []
        self._open: dict[str, RankBlock] = {}
        self._file, self._heading, self._heading_line = -1, "", 0
        self._columns: list[str] = []
        self._separator: str | None = None  # spaces

    def note_heading(self, text: str, file: int, line: int) -> None:
        """A line that ends with a colon."""
        if _RANK_LINE.match(text) is None:
            self._heading = text.strip(" \t:*#=").rpartition(": ")[2][:60]
            self._file, self._heading_line = file, line
            self._open.clear()

    def read_line(self, text: str, file: int, line: int, writer: int | None) -> None:
        """A line about a rank or of one, `writer`; the heading of a table of ranks, or a row of it."""
        if file != self._file:
            self._file, self._heading, self._columns = file, "", []
            self._open.clear()
        if (stated := _SLOWEST.search(text)) is not None and len(self.slowest) < _MOST_BLOCKS:
            host = _HOST.search(stated["between"])
            row = (int(stated["rank"]), host["host"] if host else None, float(stated["value"]), float(stated["usual"]))
            self.slowest.append(SlowestRank(*row, stated[0], file, line))
            return
        if "/Rnk: " in text and len(self.extremes) < _MOST_BLOCKS:
            self._read_extremes(text, file, line)
            return
        match = _RANK_LINE.match(text)
        own = writer is not None and not self._columns
        if match is not None or own:
            self._columns = []
            rank, text = (int(match["rank"]), match["rest"]) if match else (writer or 0, text)
            host = _HOST.search(text)
            rest = _HOST.sub("", text, count=1)
            found = [*_VALUE.finditer(rest)] or [*_BARE_VALUE.finditer(rest)]
            for value in found[:_MOST_CELLS]:
                name = (value["name"] or "").strip()
                self._add(name, value["unit"], rank, float(value["value"]), host and host["host"], line)
            return
        separator = next((sign for sign in "|," if sign in text), None)
        cells = [cell.strip(" \t*`") for cell in text.strip(" \t|\r\n").split(separator)]
        if not cells:
            return
        if _RANK_COLUMN.fullmatch(cells[0]):
            self._columns, self._separator = cells[: _MOST_CELLS + 1], separator
            self._open.clear()
        elif self._columns and separator == self._separator and cells[0].isdecimal():
            self._read_row(cells, line)

    def _read_extremes(self, text: str, file: int, line: int) -> None:
        ends: dict[str, dict[str, re.Match[str]]] = {}
        for match in _EXTREME.finditer(text):
            ends.setdefault(match["name"], {})[match["which"]] = match
        rows = {
            name: (float(pair["Mn"]["value"]), int(pair["Mn"]["rank"]), float(pair["Mx"]["value"]),
                   int(pair["Mx"]["rank"]), pair["Mx"]["unit"])
            for name, pair in ends.items()
            if len(pair) == 2
        }  # fmt: skip
        if rows:
            self.extremes.append(Extremes(rows, text.strip(), file, line))

    def _read_row(self, cells: list[str], line: int) -> None:
        if len(cells) < len(self._columns) or (self._separator is None and len(cells) > len(self._columns)):
            return
        row = list(zip(self._columns, cells, strict=False))
        host = next((cell for name, cell in row if _HOST_COLUMN.fullmatch(name)), None)
        for name, cell in row[1:]:
            if re.fullmatch(r"\d{1,9}(?:\.\d{1,9})?", cell):
                self._add(name, "", int(cells[0][:6]), float(cell), host, line)

    def _add(self, name: str, unit: str, rank: int, value: float, host: str | None, line: int) -> None:
        block = self._open.get(name)
        if block is None or rank in block.values:
            heading = self._heading if line - self._heading_line <= _NEAR or block is not None else ""
            if self._columns:
                heading = ""
            title = ": ".join(filter(None, (heading, name)))
            words = f"{title} {unit}"
            is_rate = _RATE.search(words) is not None
            is_time = _TIME.search(words) is not None or (bool(self._columns) and _PHASE.fullmatch(name) is not None)
            if not title or not (is_rate or is_time) or len(self.blocks) >= _MOST_BLOCKS:
                return
            block = self._open[name] = RankBlock(self._file, title, unit, is_rate)
            self.blocks.append(block)
        if len(block.values) < _MOST_RANKS:
            block.values[rank] = RankValue(value, line)
            if host:
                block.hosts[rank] = host.partition(".")[0]


def lists_rank(raw: bytes) -> bool:
    """Whether a line may be one of those that are read here."""
    return b"NCCL " not in raw and _READ.match(raw) is not None
