"""Reads what nccl-tests (and rccl-tests), nvbandwidth, perftest and the OSU micro-benchmarks print."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from agent.job.lines import LogLine, Prefixes
from agent.model.recommend_answers import MeasuredTable, Measurement
from probes.text import lazy_pattern

_LINE_LIMIT, _MOST = 4000, 5000  # characters; rows of a file
_WIDE = frozenset(("half", "float", "double", "bfloat16"))
_NARROW = ("int", "uint", "fp8", "f8")  # and their sizes
_OPERATIONS = frozenset(("sum", "prod", "max", "min", "avg", "mulsum", "all"))
_RANK = lazy_pattern(
    r"#?\s{0,8}Rank\s{1,8}\d{1,6}\s.{0,60}?\son\s{1,8}(?P<host>\S{1,100})\s"
    r"(?:\s{0,8}device\s{1,8}\d{1,3}\s\[[\w:.]{1,20}\]\s(?P<model>\S.{2,60}))?"
)
_DEVICE = lazy_pattern(r"\s{0,4}Device\s{1,20}:\s(\S{1,60})")


HEADING_WORDS = (b"algbw", b"BW average[", b"# OSU ")
_NAME = lazy_pattern(r"\b\d{1,3}(?:\.\d{1,3}){3}\b|(?<![\w./-])[A-Za-z](?:[\w-]{0,40}[-_\d][\w-]{0,20})?(?![\w/])")


class TableHead(NamedTuple):
    """Where a table begins: among the lines of tables, in the log, and the lines above it."""

    start: int
    line: LogLine
    above: tuple[str, ...]


class MeasuredPart(NamedTuple):
    """One of several measurements: its largest size, and the names that the others have not all."""

    tool: str
    what: str
    size: int
    gbyte_s: float
    wrong: int
    hosts: frozenset[str]
    line: LogLine


def split_tables(lines: Sequence[str], heads: Sequence[TableHead]) -> list[MeasuredPart]:
    """Each measurement, with the names in the nearest line above it that not all of them have there."""
    parts: list[tuple[TableHead, MeasuredTable]] = []
    for head, end in zip(heads, (*(head.start for head in heads[1:]), len(lines)), strict=True):
        table = read_tables(lines[head.start : end])
        if table.rows:
            parts.append((head, table))
    names = [[frozenset(_NAME.findall(line)) for line in head.above] for head, _ in parts]
    everywhere = frozenset.intersection(*(frozenset().union(*rows) for rows in names)) if names else frozenset()
    measured = []
    for (head, table), rows in zip(parts, names, strict=True):
        ranks = frozenset(match["host"] for line in head.above if (match := _RANK.match(line)))
        near: frozenset[str] = next((row - everywhere for row in reversed(rows) if row - everywhere), frozenset())
        largest = max(table.rows, key=lambda row: (row.size_bytes or 0, row.gbyte_s))
        wrong = sum(row.wrong or 0 for row in table.rows)
        measured.append(
            MeasuredPart(
                largest.tool, largest.what, largest.size_bytes or 0, largest.gbyte_s, wrong, ranks or near, head.line
            )
        )
    return measured


def read_tables(lines: Iterable[str]) -> MeasuredTable:
    """All figures of a file; the hosts and ranks that nccl-tests lists."""
    raw = [line[:_LINE_LIMIT].rstrip("\r\n") for line in lines]
    prefixes = Prefixes(raw)
    text = [prefixes.strip(line)[0] for line in raw]
    ranks = [match for line in text if (match := _RANK.match(line))]
    hosts = [match["host"] for match in ranks]
    devices = [match[1] for line in text if (match := _DEVICE.match(line))]
    rows = [*_read_collectives(text), *_read_nvbandwidth(text), *_read_perftest(text), *_read_osu(text)]
    return MeasuredTable(
        rows=rows[:_MOST],
        ranks=len(hosts) or None,
        hosts=len(set(hosts)) or None,
        devices=list(dict.fromkeys(devices)),
        models=sorted({match["model"].strip() for match in ranks if match["model"]}),
    )


def _read_collectives(lines: Iterable[str]) -> Iterator[Measurement]:
    """Rows "size count type [redop] [root] time algbw busbw [#wrong] ..": the better of out-of-place and in-place.

    Columns are counted from the right: those on the left are blank for some collectives and versions.
    """
    right: list[str] = []
    for line in lines:
        words = line.split()
        if "algbw" in words and "busbw" in words and "time" in words:
            right = words[words.index("time") :]
            continue
        if len(words) < 6 or not words[0].isdecimal() or not words[1].isdecimal():
            continue
        if words[2] not in _WIDE and not words[2].startswith(_NARROW):
            continue
        pairs, wrong = _read_halves(words, right)
        known = [(bus, algorithm) for algorithm, bus in pairs if algorithm is not None and bus is not None]
        if not known:
            continue
        best = max(known)
        yield Measurement(
            tool="nccl-tests",
            what="collective",
            size_bytes=int(words[0][:18]),
            gbyte_s=best[0],
            algbw_gbyte_s=best[1],
            reduces=words[3] in _OPERATIONS,
            out_of_place_gbyte_s=pairs[0][1],
            in_place_gbyte_s=pairs[1][1] if len(pairs) > 1 else None,
            wrong=wrong,
        )


_Pair = tuple["float | None", "float | None"]


def _read_halves(words: list[str], right: list[str]) -> tuple[list[_Pair], int | None]:
    """Algorithm and bus bandwidth of both halves, and the values that are wrong."""
    if right and len(words) >= 3 + len(right):
        row = words[-len(right) :]
        columns = [number for number, name in enumerate(right) if name == "algbw"]
        pairs = [(_number(row[number]), _number(row[number + 1])) for number in columns[:2] if number + 1 < len(row)]
        counts = [int(row[number]) for number, name in enumerate(right) if name == "#wrong" and row[number].isdecimal()]
        return pairs, sum(counts) if counts else None
    numbers = [_number(word) for word in words[3:]]
    figures = numbers[1:] if numbers[0] is None else numbers
    if len(figures) % 4 == 1 or (figures and figures[0] is not None and figures[0] < 0):
        figures = figures[1:]  # the column root
    halves = [figures[1:3], figures[5:7]]
    return [(half[0], half[1]) for half in halves if len(half) == 2], None


def _read_nvbandwidth(lines: Iterable[str]) -> Iterator[Measurement]:
    """Matrices of GPU and GPU, or of CPU and GPU, in GB/s."""
    test, columns = None, 0
    for line in lines:
        words = line.split()
        if len(words) == 2 and words[0] == "Running" and words[1].endswith("."):
            test, columns = words[1][:80].rstrip("."), 0
        elif test and words and all(word.isdecimal() for word in words) and len(words) <= 256:
            columns = len(words)
        elif test and columns and len(words) == columns + 1 and words[0].isdecimal():
            for column, word in enumerate(words[1:]):
                value = _number(word)
                if value:
                    ends = f"GPU{column}" if "host" in test else f"GPU{words[0]} GPU{column}"
                    yield Measurement(tool="nvbandwidth", what=f"{test} {ends}", gbyte_s=value)
        elif words and words[0] == "SUM":
            test = None


def _read_perftest(lines: Iterable[str]) -> Iterator[Measurement]:
    """Rows "bytes iterations peak average rate", in the unit of their header."""
    scale, device = None, "NIC"
    for line in lines:
        if match := _DEVICE.match(line):
            device = match[1]
        if "#bytes" in line and "BW average[" in line:
            unit = line.partition("BW average[")[2][:8]
            scale = 0.125 if unit.startswith("Gb") else 1e-3 if unit.startswith("MB") else 1.048576e-3
            continue
        words = line.split()
        if scale is None or len(words) < 4 or not words[0].isdecimal() or not words[1].isdecimal():
            continue
        average = _number(words[3])
        if average is not None:
            value = round(average * scale, 3)
            yield Measurement(tool="perftest", what=device, size_bytes=int(words[0]), gbyte_s=value)


def _read_osu(lines: Iterable[str]) -> Iterator[Measurement]:
    """Rows "size bandwidth" of osu_bw and osu_bibw, in units of 10^6 bytes."""
    what, counts = "", False
    for line in lines:
        if line.startswith("# OSU "):
            what, counts = "osu_bibw" if "Bi-Directional" in line else "osu_bw", False
        elif line.startswith("# Size"):
            counts = bool(what) and "Bandwidth (MB/s)" in line
        elif counts and len(words := line.split()) >= 2 and words[0].isdecimal() and (value := _number(words[1])):
            yield Measurement(tool="osu", what=what, size_bytes=int(words[0][:18]), gbyte_s=round(value / 1e3, 3))


def _number(word: str) -> float | None:
    try:
        value = float(word) if len(word) < 20 else None
    except ValueError:
        return None
    return value if value is not None and abs(value) < 1e9 else None
