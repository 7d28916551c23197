"""Tables that people or scripts of a site keep: a row per host or device, columns that a heading names.

Comma-separated values, tables of Markdown, columns of blanks, lines of keys with values. No tool prints them, so only
words of the field in the heading count: errors that are a fault by themselves, states, and widths, rates, counts and
versions in which one row is not as the others of its kind are, or not as its own row expects.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache

from probes.gpu.facts import find_address
from probes.named_tuple import NamedTuple
from probes.text import find_median, lazy_pattern, lazy_rows, require, short_lines
from probes.tool_reports.facts import ToolReport, state_fault
from probes.tool_reports.tables.entries import ADDRESS, MOST, NOT_USED, TROUBLE, is_below, read_number
from probes.tool_reports.tables.forms import RULE, WIDE, cut
from probes.tool_reports.tables.measured_lines import list_slow_lines
from probes.tool_reports.tables.records import list_record_tables

_LIMIT_LINE, _LIMIT_ROWS, _LIMIT_COLUMNS = 1000, 2000, 40
_MOST_REPORTS, _MOST_HEADINGS = 64, 400
_LIMIT_VALUE = 60
_FEWEST_ALIKE, _SHARE = 3, 0.66  # rows with the usual value, and of all
_SLOW = 0.75  # of the median of the others
_HOSTS = lazy_pattern(r"(?:host|node|server|machine|system)(?: ?name)?|hostname|nodename")
_PARTS = lazy_pattern(
    r"(?:gpu|npu|hpu|xpu|card|device|dev|nic|hca|port|interface|iface|rail|slot|(?:pci )?(?:bus )?(?:id|address)|"
    r"bdf|index|(?:gpu|npu|card|device|port) (?:id|index|idx|no|number|name)|(?:ib|rdma) (?:device|dev|port))"
)
_NAME = "name"  # which names the row where no other column names its host
_OF_PLACE = lazy_pattern(r"numa|socket|node")  # of an accelerator: no count
_ACCELERATOR = lazy_pattern(r"\b(?:gpu|npu|hpu|xpu)s?\b")
_OF_GPUS = lazy_pattern(  # the name of a host that has accelerators
    r"(?i)(?:^|[^a-z0-9])(?:gpu|npu|dgx|hgx|geforce|rtx|tesla|[abhlv][1-9]0{1,2}s?|g?b[23]00|mi\d{2,3}[ax]?)(?![a-z])"
)
_FREE = lazy_pattern(r"(?i)note|comment|remark|reason|action|ticket|message|detail")
_QUANTITIES = lazy_rows((  # the first that a heading fits
    ("past", r"\b(?:corrected|correctable|\bce|sbe|single|lifetime|aggregate|replay|crc|symbol)\b"),
    ("varying", r"\b(?:used?|free|idle|alloc\w*|(?<!resources )avail(?:able)?|busy|request\w*|running|pending jobs"
                r"|util\w*)\b"),
    ("remap-failed", r"\bremap\w* fail|\bfail\w* remap"),
    ("pending", r"\b(?:remap|retire|page)\w*(?: \w+)? pend|\bpend\w*(?: \w+)? (?:remap|retire|page)"),
    ("memory", r"\bdbe\b|\b(?:ecc|hbm|sram|dram|vram|mem\w*)\b.{0,60}\b(?:unc\w*|ue|uce|double)\b"
               r"|\b(?:unc\w*|ue|uce|double)\b.{0,60}\b(?:ecc|hbm|err\w*|mem\w*)\b"),
    ("uncorrected", r"\b(?:err\w*|pcie|aer|link)\b.{0,60}\b(?:unc\w*|ue|uce|fatal)\b"
                    r"|\b(?:unc\w*|ue|uce|fatal)\b.{0,60}\berr"),
    ("xid", r"\bxids?\b"),
    ("width", r"(?<!\bport )\b(?:width|lanes)\b"),
    ("bandwidth", r"\b(?:bw|\w*busbw|algbw|bandwidth|h2d|d2h|\w?flops)\b"),
    ("count", r"\b(?:n?gpus|npus|hcas|nics|nvlinks|efas?|ports|links)\b"
              r"|\b(?:gpu|npu|hca|nic|nvlink|device) (?:count|num\w*)"
              r"|\b(?:count|num\w*|nr|of) (?:gpu|npu|hca|nic|nvlink)"),
    ("rate", r"\b(?:link|port|ib|roce|eth|nic) (?:rate|speed)\b|\bport width\b|^(?:rate|speed)\b(?! gt)"),
    ("state", r"\b(?:state|status|health|phys\w*|link|result|verdict)\b"),
    ("setting", r"\bmtu\b"),
    ("version", r"\b(?:driver|firmware|fw|vbios|bios|kernel|ofed|rocm|cann)\b"),
))  # fmt: skip
_WANTED = lazy_pattern(rf"\b(?:{MOST})\b")
_FAULTS = lazy_pattern(rf"(?i)(?:(?:soft|hard)[_ ])?(?:{TROUBLE})!?|n.ok|fatal|unavail")
_DOWN = lazy_pattern(rf"(?i)false|armed|{NOT_USED}")
_YES = lazy_pattern(r"(?i)(?:yes|true|pending|[1-9]\d{0,6})")
_COUNT = lazy_pattern(r"[1-9]\d{0,9}")
_OF_FABRIC = lazy_pattern(
    r"(?i)gpu|\b[nhx]pu|nvlink|pcie|infiniband|\bib\b|mlx5|rdma|roce|\bhca|\bnic|\bxid|\becc\b|xgmi|hccs|\befa\b"
    r"|linkup"
)
_CHUNK = lazy_pattern(r"\S+(?: \S+)*")
_BELOW = ("width", "rate", "count")
_EQUAL = ("version", "setting")  # in which rows should not differ


class _Column(NamedTuple):
    """A column of a quantity."""

    at: int
    name: str
    quantity: str
    wanted: bool  # what is expected, or the maximum


class _Row(NamedTuple):
    """A row: what it is about, those that it is compared with, and its cells."""

    subject: str
    kind: tuple[str, ...]
    cells: Sequence[str]


def is_sheet(text: str) -> bool:
    """Whether a text has such a table, and is about the parts that are read here."""
    return _OF_FABRIC.search(text) is not None and bool(_list_tables(text))


def list_sheet_faults(text: str) -> list[ToolReport]:
    """What rows of such tables state. Raises ParseError where the text has none.

    >>> rows = "host,gpu,pcie_width\\n" + "".join(f"n{n},0,{8 if n == 4 else 16}\\n" for n in range(1, 6))
    >>> [(report.code, report.subject, report.detail) for report in list_sheet_faults(rows)]
    [('below-width', 'n4 GPU 0', (('what', 'pcie_width 8, the others 16'),))]
    """
    tables = _list_tables(text) or [(columns, rows) for columns, rows, _ in _list_records(text)]
    slow = list_slow_lines(text)
    require(tables or slow, "no table with a row for each host or device")
    reports = [*slow, *(report for columns, rows in tables for report in _judge(columns, rows))]
    return list(dict.fromkeys(reports))[:_MOST_REPORTS] or _list_odd(text)


def _list_odd(text: str) -> list[ToolReport]:
    """Values of columns that are of no quantity here, in which one row is not as the others."""
    from probes.tool_reports.tables.cells import ODD, list_table_values  # lazy: most tables state their faults here

    odd = (value for value in list_table_values(text) if value.code == ODD)
    return [ToolReport(ODD, value.part, value.line[:_LIMIT_LINE], (("what", value.what),)) for value in odd]


@lru_cache(maxsize=2)  # by which a text is recognized, and then read
def _list_tables(text: str) -> list[tuple[list[_Column], list[_Row]]]:
    tables = []
    lines = short_lines(text)
    tried, at = 0, 0
    while at < len(lines) and tried < _MOST_HEADINGS:
        heading, mark = lines[at], _find_mark(lines[at])
        names = cut(heading, mark) if mark else ()
        at += 1
        if not 2 <= len(names) <= _LIMIT_COLUMNS or mark is None:
            continue
        tried += 1
        columns, identity = _read_heading(names)
        if not identity or not (columns or any(_ACCELERATOR.fullmatch(names[one].lower()) for one in identity)):
            continue
        table: list[Sequence[str]] = []
        while at < len(lines) and len(table) < _LIMIT_ROWS:
            if not RULE.fullmatch(lines[at]):
                cells: Sequence[str] = cut(lines[at], mark)
                if mark is WIDE and 1 < len(cells) < len(names):
                    cells = _cut_below(heading, lines[at])
                if len(cells) != len(names):
                    break
                table.append(cells)
            at += 1
        columns, identity = _read_columns(names, table)
        if not columns or not identity:
            continue
        rows = [_read_row(names, identity, cells) for cells in table]
        if len(rows) > 1 and 2 * len({row.subject for row in rows}) > len(rows):  # no history of one device
            tables.append((columns, _with_kinds(names, columns, rows)))
    return tables


def _cut_below(heading: str, line: str) -> list[str]:
    """The cells of a row of which some are empty, by the names that they stand below.

    >>> _cut_below("Port   State   Speed  Width", "sw3p1  Down           4X")
    ['sw3p1', 'Down', '', '4X']
    """
    spans = [match.span() for match in _CHUNK.finditer(heading)]
    cells = [""] * len(spans)
    for match in _CHUNK.finditer(line):
        at = max(range(len(spans)), key=lambda at: min(match.end(), spans[at][1]) - max(match.start(), spans[at][0]))
        cells[at] = f"{cells[at]} {match[0]}".strip()
    return cells


def has_records(text: str) -> bool:
    """Whether a text has records, which are no table, that state a fault or count the parts of hosts; or lines of
    measurements with a slow one."""
    if list_slow_lines(text):
        return True
    for columns, rows, is_of_hosts in _list_records(text) if _OF_FABRIC.search(text) else ():
        is_counted = is_of_hosts and any(column.quantity not in ("state", "varying") for column in columns)
        if is_counted or next(_judge(columns, rows), None):
            return True
    return False


@lru_cache(maxsize=2)
def _list_records(text: str) -> list[tuple[list[_Column], list[_Row], bool]]:
    """As `_list_tables`, and whether a column names hosts."""
    tables = []
    for names, table in list_record_tables(text):
        columns, identity = _read_columns(names, table)
        rows = [_read_row(names, identity, cells) for cells in table] if columns and identity else []
        if rows and 2 * len({row.subject for row in rows}) > len(rows):
            is_of_hosts = any(_HOSTS.fullmatch(_simplify(names[at])) for at in identity)
            tables.append((columns, _with_kinds(names, columns, rows), is_of_hosts))
    return tables


def _find_mark(line: str) -> str | re.Pattern[str] | None:
    """What separates the cells of a line, where it has some."""
    marks = (mark for mark in ("|", ",", ";", "\t") if line.count(mark) > 1 or (mark == "," and mark in line))
    return next(marks, WIDE if WIDE.search(line.strip()) else None)


def _read_columns(names: Sequence[str], table: Sequence[Sequence[str]]) -> tuple[list[_Column], list[int]]:
    """The columns of quantities, and those that name the row: of GPUs a number is a count where each host has one row
    and most have the same, of at least two."""
    columns, identity = _read_heading(names)
    hosts = [at for at in identity if _HOSTS.fullmatch(names[at].lower()) or names[at].lower() == _NAME]
    for at in identity if len(hosts) == 1 and len({cells[hosts[0]] for cells in table}) == len(table) > 1 else ():
        usual, times = Counter(cells[at] for cells in table).most_common(1)[0]
        is_count = usual.isdecimal() and int(usual) > 1 and times >= _SHARE * len(table)
        if _ACCELERATOR.fullmatch(names[at].lower()) and is_count:
            return sorted([*columns, _Column(at, names[at], "count", False)]), [
                other for other in identity if other != at
            ]
    return columns, identity


def _read_heading(names: Sequence[str]) -> tuple[list[_Column], list[int]]:
    """The columns of quantities, and those that name the row."""
    columns, identity = list[_Column](), list[int]()
    for at, name in enumerate(names):
        words = _simplify(name)
        if _HOSTS.fullmatch(words) or _PARTS.fullmatch(words):
            identity.append(at)
        elif quantity := next((name for name, pattern in _QUANTITIES if pattern.search(words)), None):
            columns.append(_Column(at, name, quantity, _WANTED.search(words) is not None))
    lowered = [name.lower() for name in names]
    counts = any(column.quantity == "count" for column in columns) or any(map(_ACCELERATOR.fullmatch, lowered))
    if counts and _NAME in lowered and not any(_HOSTS.fullmatch(lowered[at]) for at in identity):
        identity = [lowered.index(_NAME), *identity]
    return [column for column in columns if column.quantity != "past"], identity


def _simplify(name: str) -> str:
    """The words of a heading, in lower case."""
    words = " ".join(re.sub(r"([a-z])([A-Z])", r"\1 \2", name).lower().replace("_", " ").split())
    return re.sub(r"[^a-z0-9 ]", " ", words).strip()


def _read_row(names: Sequence[str], identity: Sequence[int], cells: Sequence[str]) -> _Row:
    named = [_name_part(names[at], cells[at]) for at in identity if cells[at]]
    return _Row(" ".join(named), (_shape(" ".join(named)),), cells)


def _with_kinds(names: Sequence[str], columns: Sequence[_Column], rows: Sequence[_Row]) -> list[_Row]:
    """Rows are of one kind where their names differ in numbers alone, and so do columns that have few values, such as
    the model, the role or the neighbour."""
    known = {column.at for column in columns}
    for at, name in enumerate(names):
        shapes = [_shape(row.cells[at]) for row in rows]
        if at not in known and not _FREE.search(name) and len(set(shapes)) <= max(2, len(rows) // 3):
            rows = [row._replace(kind=(*row.kind, shape)) for row, shape in zip(rows, shapes, strict=True)]
    return list(rows)


def _shape(words: str) -> str:
    return re.sub(r"\d+", "0", ADDRESS.sub("", words))


def _name_part(heading: str, cell: str) -> str:
    """An address as reports have it; a number with what it counts: "GPU 3"."""
    if ADDRESS.fullmatch(cell):
        return find_address(cell) or cell
    kind = heading.partition("_")[0].partition(" ")[0]
    return f"{kind.upper() if len(kind) < 4 else kind} {cell}" if cell.isdecimal() else cell


def _judge(columns: Sequence[_Column], rows: Sequence[_Row]) -> Iterator[ToolReport]:
    yield from _list_without(columns, rows)
    for column in columns:
        if column.wanted or column.quantity == "varying":
            continue
        wanted = next((other for other in columns if other.wanted and other.quantity == column.quantity), None)
        if column.quantity in _BELOW and wanted is not None:
            yield from _compare_with_own(column, wanted, rows)
        elif column.quantity in (*_BELOW, "bandwidth", *_EQUAL):
            for kind in dict.fromkeys(row.kind for row in rows):
                yield from _compare(column, [row for row in rows if row.kind == kind])
        else:
            yield from _list_faults(column, rows)


def _list_without(columns: Sequence[_Column], rows: Sequence[_Row]) -> Iterator[ToolReport]:
    """Hosts that by their name have GPUs, and for which no column counts any, while it does for others of their kind.
    What is free alone shows nothing: it may be in use."""
    counts = [column for column in columns if column.quantity in ("count", "varying") and not column.wanted]
    names = [(column, _simplify(column.name)) for column in counts]
    counts = [column for column, name in names if _ACCELERATOR.search(name) and not _OF_PLACE.search(name)]
    if len(counts) < 2 and all(column.quantity == "varying" for column in counts):
        return
    numbers = [[number[0] if (number := read_number(row.cells[column.at])) else 0 for column in counts] for row in rows]
    most: dict[tuple[str, ...], float] = {}
    for row, own in zip(rows, numbers, strict=True):
        most[row.kind] = max(most.get(row.kind, 0), *own)
    for row, own in zip(rows, numbers, strict=True):
        if not any(own) and most[row.kind] and _OF_GPUS.search(row.subject):
            value = row.cells[counts[0].at] or "none"
            yield state_fault("below-count", row.subject, f"{counts[0].name} {value}, others up to {most[row.kind]:g}")


def _list_faults(column: _Column, rows: Sequence[_Row]) -> Iterator[ToolReport]:
    """Values that are a fault by themselves; a state that is down only where most others are not."""
    down = sum(_DOWN.fullmatch(row.cells[column.at]) is not None for row in rows)
    for row in rows:
        value = row.cells[column.at][:_LIMIT_VALUE]
        if column.quantity == "state":
            if _FAULTS.fullmatch(value) or (_DOWN.fullmatch(value) and 2 * down < len(rows)):
                yield state_fault(
                    "sheet-state" if _FAULTS.fullmatch(value) else "sheet-down", row.subject, f"{column.name} {value}"
                )
        elif column.quantity == "xid":
            if _COUNT.fullmatch(value):
                yield ToolReport("metric-xid", row.subject, f"{row.subject}: {column.name} {value}", (("xid", value),))
        elif (_COUNT if column.quantity in ("memory", "uncorrected") else _YES).fullmatch(value):
            yield state_fault(f"sheet-{column.quantity}", row.subject, f"{column.name} {value}")


def _compare_with_own(column: _Column, wanted: _Column, rows: Sequence[_Row]) -> Iterator[ToolReport]:
    for row in rows:
        if is_below(row.cells[column.at], row.cells[wanted.at]):
            shown = f"{column.name} {row.cells[column.at]}, {wanted.name} {row.cells[wanted.at]}"
            yield state_fault(f"below-{column.quantity}", row.subject, shown)


def _compare(column: _Column, rows: Sequence[_Row]) -> Iterator[ToolReport]:
    """Rows that are below what most of their kind have; of versions those that differ, of bandwidths the slow ones."""
    cells = [row.cells[column.at] for row in rows]
    if column.quantity == "bandwidth":
        numbers = [read_number(cell) for cell in cells]
        for at, (row, value) in enumerate(zip(rows, numbers, strict=True)):
            others = [other[0] for place, other in enumerate(numbers) if other and place != at]
            if value and len(others) >= _FEWEST_ALIKE and value[0] < _SLOW * find_median(others):
                yield state_fault(
                    "below-bandwidth", row.subject, f"{column.name} {cells[at]}, the others {find_median(others):g}"
                )
        return
    usual, times = Counter(cells).most_common(1)[0]
    if times < _FEWEST_ALIKE or times < _SHARE * len(rows):
        return
    for row, cell in zip(rows, cells, strict=True):
        if not cell or cell == usual:
            continue
        if column.quantity in _EQUAL:
            yield state_fault(
                f"sheet-{column.quantity}", row.subject, f"{column.name} {cell[:_LIMIT_VALUE]}, the others {usual}"
            )
        elif is_below(cell, usual):
            yield state_fault(f"below-{column.quantity}", row.subject, f"{column.name} {cell}, the others {usual}")
