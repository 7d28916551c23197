"""The tables of `nvidia-smi topo`: `-m`, how GPUs and NICs reach each other and which CPUs and NUMA node are near each
GPU; `-p2p r|w|n`, whether the driver lets each GPU reach each other one. Both have one shape, with other words in the
cells.

Cells are separated by tabs where no one touched the text, by blanks where it was copied, by nothing where columns ran
together; a terminal may have wrapped the lines. A row counts only if it has one word for every column, and "X" exactly
under its own name: so a lost or fused cell cannot shift the rest of its row unseen.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile

from probes.gpu.facts import Gpu, PairCell
from probes.gpu.nvml_enums import P2P_STATUSES, TOPOLOGY_LEVELS
from probes.named_tuple import NamedTuple
from probes.text import ParseError, check_length, first_line, lazy_pattern, require

_LIMIT_CHARACTERS = 1 << 20
_LIMIT_COLUMNS = 1024
_LIMIT_PIECES = 16  # of a wrapped heading
_ANSI = lazy_pattern(r"\x1b\[[0-9;]*[A-Za-z]|\[[04]m")  # the heading is underlined; forms on the web lose the escape
_LABEL = lazy_pattern(r"(?:GPU|NIC)\d{1,4}|(?!GPU\d|NIC\d)(?=\D*\d)[A-Za-z][\w.\-]{1,63}", re.ASCII)
_ACCELERATOR = lazy_pattern(r"GPU\d{1,4}", re.ASCII)
_FUSED = lazy_pattern(r"(?:GPU|NIC)\d{1,4}", re.ASCII)
_FUSED_WORD = lazy_pattern(r"(?:(?:GPU|NIC)\d{1,4}){2,64}", re.ASCII)  # names that ran together: NIC11NIC12
_BEGINS = lazy_pattern(r"\s*(?:GPU|NIC)\d", re.ASCII)
_CONTINUED = lazy_pattern(r"[A-Z0-9,/\-\s]+", re.ASCII)
_TAIL = ("CPU Affinity", "NUMA Affinity", "GPU NUMA ID")


class MatrixRow(NamedTuple):
    """One readable row. `tail` holds one text for every heading behind the columns ("" for an empty cell); None where
    the line has more or fewer than that, and for rows that are not of a GPU."""

    label: str
    cells: dict[str, str]  # by column, without the row's own
    tail: tuple[str, ...] | None


class MatrixTable(NamedTuple):
    """`columns` are the names of the heading, `tail` the headings behind them."""

    columns: tuple[str, ...]
    tail: tuple[str, ...]
    rows: tuple[MatrixRow, ...]
    unreadable: tuple[str, ...]  # names of rows that do not fit the heading

    @property
    def gpus(self) -> tuple[str, ...]:
        """The GPUs of the heading."""
        return tuple(name for name in self.columns if _ACCELERATOR.fullmatch(name))

    @property
    def missing(self) -> str | None:
        """What the text does not hold of the table that its heading promises."""
        seen = {row.label for row in self.rows} | set(self.unreadable)
        without = [name for name in self.gpus if name not in seen]
        notes = []
        if self.unreadable:
            notes.append(f"rows without one word for each of {len(self.columns)} columns: {', '.join(self.unreadable)}")
        if without:
            notes.append(f"no row for {', '.join(without)}")
        untold = [row.label for row in self.rows if self.tail and row.tail is None and row.label in self.gpus]
        if untold:
            notes.append(f"no clear {' and '.join(self.tail)} for {', '.join(untold)}")
        return "; ".join(notes) or None


def parse_table(text: str, words: Iterable[str]) -> MatrixTable:
    r"""The first table of the text. `words` are regular expressions of what may be in a cell. Raises ParseError.

    >>> table = parse_table("\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV4\t0-15\nGPU1\tNV4\t X \t0-15\n", [r"NV\d"])
    >>> [(row.label, row.cells, row.tail) for row in table.rows]
    [('GPU0', {'GPU1': 'NV4'}, ('0-15',)), ('GPU1', {'GPU0': 'NV4'}, ('0-15',))]
    """
    check_length(text, _LIMIT_CHARACTERS)
    reader = _TableReader(words)
    lines = _ANSI.sub("", text).splitlines()
    at = reader.read_heading(lines)
    table_rows, to_the_end = reader.rows(lines[at:])
    require(table_rows, f"a heading of {len(reader.columns)} columns and no row")
    read = {label: reader.row(label, physical) for label, physical in reversed(table_rows)}  # the first of a name stays
    ended = text.endswith(("\n", "\r")) and all(gpu in read for gpu in filter(_ACCELERATOR.fullmatch, reader.columns))
    if to_the_end and not ended:  # the last word of the last row may be the beginning of a longer one
        last, physical = table_rows[-1]
        read[last] = reader.row(last, reader.without_doubtful_word(physical))
    rows = tuple(row for label in dict(table_rows) if (row := read[label]))
    unreadable = tuple(label for label in dict(table_rows) if read[label] is None)
    return MatrixTable(reader.columns, reader.tail, rows, unreadable)


class _TableReader:
    """Reads the rows of one table, once it has read its heading."""

    def __init__(self, words: Iterable[str]) -> None:
        self.cell = re.compile("|".join(["X", *words]))
        self.columns: tuple[str, ...] = ()
        self.tail: tuple[str, ...] = ()
        self.inferred = False  # the heading is cut off: columns behind those of the GPUs have no name

    def read_heading(self, lines: Sequence[str]) -> int:
        """Find the heading, and return the number of the line after it."""
        for at, line in enumerate(lines):
            if not _BEGINS.match(line):
                continue
            after = at + 1
            while after < min(at + _LIMIT_PIECES, len(lines)) and self._continues(lines[after]):
                after += 1
            for text in (line, *reversed(_join_lines(lines[at:after]))):
                if self._is_heading(text):  # a wrapped heading is the last of these that makes sense
                    self.columns, self.tail = self._split(text)
            if self.columns:
                return at + 1
        self.columns = self._infer_columns(lines)
        self.inferred = bool(self.columns)
        if self.inferred:
            return 0
        raise ParseError(f"no heading with GPUs; it begins with: {first_line(chr(10).join(lines))}")

    def _infer_columns(self, lines: Sequence[str]) -> tuple[str, ...]:
        """The GPUs of a table whose heading is cut off: "X" stands under a row's own name, and NVLink is between GPUs
        alone. Nothing of a single row without NVLink."""
        last, rows, joined = -1, 0, False
        for line in lines:
            label, *words = line.split()[: _LIMIT_COLUMNS + 1] or [""]
            cells = list(takewhile(self.cell.fullmatch, words))
            if not _ACCELERATOR.fullmatch(label) or "X" not in cells:
                continue
            own = int(label.removeprefix("GPU"))
            if cells.index("X") != own:
                return ()
            linked = [at for at, word in enumerate(cells) if word.startswith("NV")]
            last, rows, joined = max(last, own, *linked), rows + 1, joined or bool(linked)
        return tuple(f"GPU{number}" for number in range(last + 1)) if rows > 1 or joined else ()

    def rows(self, lines: Sequence[str]) -> tuple[list[tuple[str, list[str]]], bool]:
        """The rows with their physical lines, and whether the text ends with them."""
        rows: list[tuple[str, list[str]]] = []
        for line in lines:
            if self._starts_row(line):
                rows.append((line.split()[0], [line]))
            elif rows and not (line.strip() and _CONTINUED.fullmatch(line)):
                return rows, False
            elif rows:
                rows[-1][1].append(line)
        return rows, True

    def row(self, label: str, physical: Sequence[str]) -> MatrixRow | None:
        """A row from its line, or from the pieces of its wrapped line; None where no reading fits the heading."""
        readings = [
            row for text in _join_lines(physical) if (row := self._by_tabs(label, text) or self._by_words(label, text))
        ]
        return next((row for row in readings if row.tail is not None), readings[0] if readings else None)

    def without_doubtful_word(self, physical: Sequence[str]) -> list[str]:
        """The pieces of a row without their last word, unless that is whole: no other word begins with it."""
        *before, end = physical
        word = (end.split() or [""])[-1]
        whole = self.cell.fullmatch(word) and not word.startswith("NV")
        return [*before, end if whole else end.rstrip()[: -len(word)]]

    def _continues(self, line: str) -> bool:
        return bool(line.strip()) and not self._starts_row(line)

    def _is_heading(self, line: str) -> bool:
        columns, _ = self._split(line)
        fits = 0 < len(columns) <= _LIMIT_COLUMNS and columns[0].startswith(("GPU", "NIC"))
        return fits and len(set(columns)) == len(columns) and all(map(_LABEL.fullmatch, columns))

    def _split(self, heading: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        names = heading.partition(_TAIL[0])[0]
        words = (_FUSED.findall(word) if _FUSED_WORD.fullmatch(word) else [word] for word in names.split())
        return tuple(name for some in words for name in some), tuple(name for name in _TAIL if name in heading)

    def _starts_row(self, line: str) -> bool:
        words = line.split(None, 2)
        known = len(words) > 1 and _LABEL.fullmatch(words[0])
        return bool(known and self.cell.match(words[1]) and (not self.columns or words[0] in self.columns))

    def _by_tabs(self, label: str, line: str) -> MatrixRow | None:
        parts = [part.strip() for part in line.split("\t")]
        count = len(self.columns)
        if parts[0] != label or not all(map(self.cell.fullmatch, parts[1 : count + 1])):
            return None
        rest = parts[count + 1 :]
        if len(self.tail) == len(_TAIL) and len(rest) > len(_TAIL):  # a doubled tab is before the last heading
            rest = [*rest[:2], *(part for part in rest[2:] if part)]
            rest += [""] * (len(_TAIL) - len(rest))
        return self._check_row(label, parts[1 : count + 1], rest)

    def _by_words(self, label: str, line: str) -> MatrixRow | None:
        at, cells = line.index(label) + len(label), []
        for _ in self.columns:
            while at < len(line) and line[at].isspace():
                at += 1
            match = self.cell.match(line, at)
            if match is None:
                return None
            cells.append(match.group())
            at = match.end()
        if line[at : at + 1].strip():
            return None
        return self._check_row(label, cells, line[at:].split())

    def _check_row(self, label: str, cells: Sequence[str], rest: Sequence[str]) -> MatrixRow | None:
        if len(cells) != len(self.columns):
            return None
        rest = () if self.inferred else rest
        if [name for name, word in zip(self.columns, cells, strict=True) if word == "X"] != [label]:
            return None
        others = {name: word for name, word in zip(self.columns, cells, strict=True) if name != label}
        if _ACCELERATOR.fullmatch(label) and self.tail:
            return MatrixRow(label, others, tuple(rest) if len(rest) == len(self.tail) else None)
        return None if any(rest) else MatrixRow(label, others, None)


def _join_lines(physical: Sequence[str]) -> tuple[str, ...]:
    """The readings of a line that may have been wrapped: between words, or at a column, within a word."""
    if len(physical) == 1:
        return (physical[0],)
    return "\t".join(part.strip("\n") for part in physical), "".join(physical)


# C2C is of the drivers' own list; SOC is what SYS was called before R384; ERR and N/A show nothing
_LINK_WORDS = (r"NV\d{1,2}", *TOPOLOGY_LEVELS.values(), "SOC", "C2C", "ERR", "N/A")
_SAYS_NOTHING = ("ERR", "N/A")
_CPULIST = lazy_pattern(r"\d{1,6}(?:-\d{1,6})?(?:,\d{1,6}(?:-\d{1,6})?)*", re.ASCII)
_NUMBER = lazy_pattern(r"\d{1,6}", re.ASCII)
_NIC = lazy_pattern(
    r"^[ \t]*(NIC\d{1,4}): (\S{1,64})[ \t\r]*\n", re.ASCII | re.MULTILINE
)  # without an end it may be cut


class Matrix(NamedTuple):
    """One matrix: its GPUs (index, affinity, NUMA), every pair once, and the devices behind "NIC0", "NIC1"."""

    gpus: tuple[Gpu, ...]
    pairs: tuple[PairCell, ...]
    nic_names: Mapping[str, str]
    missing: str | None = None  # what of it the text does not hold


def parse_matrix(text: str) -> Matrix:
    r"""The matrix of `nvidia-smi topo -m` (or `-mp`, which shows PCIe only). Raises ParseError.

    >>> matrix = parse_matrix("\tGPU0\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
    ...                "GPU0\t X \tPIX\t0-55,112-167\t0\t\tN/A\n"
    ...                "NIC0\tPIX\t X \t\t\t\t\n\nNIC Legend:\n\n  NIC0: mlx5_0\n")
    >>> matrix.pairs, matrix.nic_names
    ((PairCell(a='GPU0', b='NIC0', kind='PIX'),), {'NIC0': 'mlx5_0'})
    >>> matrix.gpus[0].cpu_affinity, matrix.gpus[0].numa_node, matrix.gpus[0].memory_numa_node
    ('0-55,112-167', 0, None)
    """
    table = parse_table(text, _LINK_WORDS)
    rows = {row.label: row for row in table.rows}
    pairs, notes = _pairs(table, rows)
    return Matrix(
        gpus=tuple(_gpu(label, rows.get(label), table.tail) for label in table.gpus),
        pairs=pairs,
        nic_names=dict(_NIC.findall(text)),
        missing="; ".join(note for note in (table.missing, *notes) if note) or None,
    )


def _pairs(table: MatrixTable, rows: Mapping[str, MatrixRow]) -> tuple[tuple[PairCell, ...], list[str]]:
    """Each pair from either of its rows; none where the two rows differ."""
    cells, notes = [], []
    for place, a in enumerate(table.columns):
        for b in table.columns[place + 1 :]:
            words = {rows[row].cells[column] for row, column in ((a, b), (b, a)) if row in rows} - set(_SAYS_NOTHING)
            if len(words) == 1:
                kind = words.pop()
                cells.append(PairCell(a, b, "SYS" if kind == "SOC" else kind))
            elif words:
                notes.append(f"{a}-{b} is {' one way and '.join(sorted(words))} the other")
    return tuple(cells), notes


def _gpu(label: str, row: MatrixRow | None, headings: tuple[str, ...]) -> Gpu:
    index = int(label.removeprefix("GPU"))
    if row is None or row.tail is None:
        return Gpu(index=index)
    values = dict(zip(headings, row.tail, strict=True))
    cpus, numa, own = (values.get(heading, "") for heading in ("CPU Affinity", "NUMA Affinity", "GPU NUMA ID"))
    return Gpu(
        index=index,
        cpu_affinity=_canonical(cpus) if _CPULIST.fullmatch(cpus) else None,
        numa_node=int(numa) if _NUMBER.fullmatch(numa) else None,
        memory_numa_node=int(own) if _NUMBER.fullmatch(own) else None,
    )


def _canonical(cpus: str) -> str:
    """A CPU list as the kernel writes it: POWER prints "0-0,8-8" for "0,8"."""
    spans = (span.partition("-") for span in cpus.split(","))
    return ",".join(first if not last or int(first) == int(last) else f"{first}-{last}" for first, _, last in spans)


# OK, chipset / GPU / topology not supported, disabled by registry key, not supported, unknown
_P2P_WORDS = (*P2P_STATUSES.values(), "N/A")


def parse_p2p(text: str) -> tuple[Mapping[tuple[int, int], str], str | None]:
    r"""The word of every ordered pair of GPU indexes, and what the text does not hold. Raises ParseError.

    >>> parse_p2p(" \tGPU0\tGPU1\t\n GPU0\tX\tCNS\t\n GPU1\tCNS\tX\t\n\nLegend:\n\n  X    = Self\n")
    ({(0, 1): 'CNS', (1, 0): 'CNS'}, None)
    """
    table = parse_table(text, _P2P_WORDS)
    words = {
        (int(row.label[3:]), int(peer[3:])): word
        for row in table.rows
        for peer, word in row.cells.items()
        if row.label in table.gpus and peer in table.gpus and word != "N/A"
    }
    return words, table.missing
