"""Who is how far from whom: GPU x GPU, and GPU x NIC with the nearest rails marked. Folds by columns.

What is alike is said once: one sentence where all pairs are, one row or column for neighbours that differ in nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from agent.model.report import Report
from agent.model.topology import Path
from agent.outputs.names import Names, ranged, shown_nics
from agent.outputs.text.lines import BLANK, Line, Span, length, line, paragraph

NEAR = ("C2C", "PIX", "PXB", "PHB", "NODE", "SYS")  # nearest first
MOST = 32  # rows or columns of a matrix that somebody still reads
BETWEEN = 4  # columns between two matrices that stand side by side
SENTENCE = 4  # lines that a block has at least to be more than one
Pairs = Mapping[tuple[str, str], Path]


class Table(NamedTuple):
    """Names of rows and columns, and what stands where they meet: text and style."""

    rows: list[str]
    columns: list[str]
    cells: list[list[Span]]


def gpu_matrix(report: Report, width: int) -> list[Line]:
    """One sentence where all pairs are alike; else the matrix."""
    labels = {g.id: g.label for g in report.topology.gpus}
    pairs = pairs_of(report, labels, labels)
    if not pairs:
        return []
    kinds = {path.kind or "?" for path in pairs.values()}
    pcie = sorted({p.pcie_kind for p in pairs.values() if p.pcie_kind and p.pcie_kind != p.kind}, key=_distance)
    under = f"; over PCIe it would be {', '.join(pcie)}" if pcie else ""
    names = Names(report)
    if len(kinds) == 1:
        lines = paragraph(
            f"{min(kinds)} between {'both' if len(labels) == 2 else f'all {len(labels)}'} GPUs{under}", width
        )
    elif len(labels) > MOST:
        lines = paragraph(_counts(path for (a, b), path in pairs.items() if a < b), width)
    else:
        cells = [[("X", "dim") if a == b else _cell(pairs.get((a, b))) for b in labels] for a in labels]
        shown = [names.labels[each] for each in labels]
        lines = _drawn(Table(shown, shown, cells), width)
    return lines + _disagreements(report, labels, labels, width)


def rail_matrix(report: Report, width: int) -> list[Line]:
    """Every GPU with every NIC, rails first; `*` marks the nearest rails."""
    order = {"rail": 0, "unknown": 1}
    shown = sorted(shown_nics(report), key=lambda n: order.get(n.role, 2))
    gpus = {g.id: g.label for g in report.topology.gpus}
    nics = {n.id: n.label for n in shown}
    pairs = pairs_of(report, gpus, nics)
    nics = {key: label for key, label in nics.items() if any((gpu, key) in pairs for gpu in gpus)}
    if not pairs:
        return []
    rails = [n.id for n in shown if n.role == "rail" and n.id in nics]
    marked = nearest(pairs, gpus, rails)
    kinds = {path.kind or "?" for path in pairs.values()}
    if len(kinds) == 1 and len(gpus) * len(nics) > 1:
        whom = "every rail" if len(rails) == len(nics) else "every NIC"
        return paragraph(f"{min(kinds)} between every GPU and {whom}", width) + _disagreements(
            report, gpus, nics, width
        )
    names = Names(report)
    cells = [[_cell(pairs.get((g, n)), "*" if (g, n) in marked else "") for n in nics] for g in gpus]
    whole = Table([names.labels[g] for g in gpus], [names.labels[n] for n in nics], cells)
    folded = _folded(whole, [n.role for n in shown if n.id in nics])
    if max(len(folded.rows), len(folded.columns)) > MOST:
        return paragraph(_counts(pairs.values()), width) + _disagreements(report, gpus, nics, width)
    lines = _drawn(folded, width)
    if marked:
        lines.append(line(("  * nearest rail", "dim")))
    return lines + _disagreements(report, gpus, nics, width)


def beside(left: Sequence[Line], right: Sequence[Line], width: int) -> list[Line] | None:
    """Two tables side by side; None where they do not fit, or where the left one is only a sentence."""
    edge = max((length(each) for each in left), default=0) + BETWEEN
    if len(left) < SENTENCE or edge + max(length(each) for each in right) > width:
        return None
    lines = []
    for k in range(max(len(left), len(right))):
        mine = left[k] if k < len(left) else BLANK
        other = right[k] if k < len(right) else BLANK
        lines.append((*mine, (" " * (edge - length(mine)), ""), *other) if other else mine)
    return lines


def _counts(paths: Iterable[Path]) -> str:
    """What can still be said where a matrix could not be read."""
    found = Counter(path.kind or "?" for path in paths)
    told = ", ".join(f"{kind} {found[kind]}" for kind in sorted(found, key=_distance))
    return f"pairs of each kind: {told} (each pair: --format json)"


def pairs_of(report: Report, rows: Mapping[str, str], columns: Mapping[str, str]) -> Pairs:
    """Paths by their two ends, in both directions, of ids that are in rows and columns."""
    found: dict[tuple[str, str], Path] = {}
    for path in report.topology.paths:
        for a, b in ((path.a, path.b), (path.b, path.a)):
            if a in rows and b in columns:
                found[a, b] = path
    return found


def nearest(pairs: Pairs, gpus: Iterable[str], rails: Sequence[str]) -> set[tuple[str, str]]:
    """Each GPU's nearest rails."""
    marked: set[tuple[str, str]] = set()
    for gpu in gpus:
        mine = [(_distance(pairs[gpu, nic].kind), nic) for nic in rails if (gpu, nic) in pairs]
        best = min((distance for distance, _ in mine), default=len(NEAR))
        marked |= {(gpu, nic) for distance, nic in mine if distance == best < len(NEAR)}
    return marked


def _cell(path: Path | None, mark: str = "") -> Span:
    return ((path.kind or "?") + mark, "ok" if mark else "") if path else ("-", "dim")


def _folded(table: Table, roles: Sequence[str]) -> Table:
    """Neighbouring columns of one role, and neighbouring rows, that hold the same become one."""
    columns = _runs([(role, *(row[k] for row in table.cells)) for k, role in enumerate(roles)])
    rows = _runs([tuple(row) for row in table.cells])
    return Table(
        [ranged(table.rows[k] for k in run) for run in rows],
        [ranged(table.columns[k] for k in run) for run in columns],
        [[table.cells[run[0]][column[0]] for column in columns] for run in rows],
    )


def _runs(keys: Sequence[tuple[object, ...]]) -> list[list[int]]:
    runs: list[list[int]] = []
    for k, key in enumerate(keys):
        if runs and keys[runs[-1][0]] == key:
            runs[-1].append(k)
        else:
            runs.append([k])
    return runs


def _drawn(table: Table, width: int) -> list[Line]:
    head = max(len(label) for label in table.rows) + 4
    wide = [max(len(name), *(len(row[k][0]) for row in table.cells)) + 2 for k, name in enumerate(table.columns)]
    lines: list[Line] = []
    for part in _parts(wide, width - head):
        lines += [BLANK] if lines else []
        lines.append(line((" " * head + "".join(table.columns[k].ljust(wide[k]) for k in part).rstrip(), "dim")))
        for label, row in zip(table.rows, table.cells, strict=True):
            lines.append(line(("  " + label.ljust(head - 2), "bold"), *_padded(row, part, wide)))
    return lines


def _padded(row: Sequence[Span], part: Sequence[int], wide: Sequence[int]) -> list[Span]:
    return [(row[k][0] if k == part[-1] else row[k][0].ljust(wide[k]), row[k][1]) for k in part]


def _parts(wide: Sequence[int], width: int) -> list[list[int]]:
    """Columns in blocks, each as wide as the page at most."""
    parts: list[list[int]] = []
    used = width
    for k, columns in enumerate(wide):
        if used + columns > width + 2 or not parts:
            parts.append([])
            used = 0
        parts[-1].append(k)
        used += columns
    return parts


def _disagreements(report: Report, rows: Mapping[str, str], columns: Mapping[str, str], width: int) -> list[Line]:
    """Pairs of which the driver says something else than the PCI tree, grouped by what is said."""
    said: dict[str, list[str]] = {}
    names = Names(report)
    for path in report.topology.paths:
        if path.disagrees and path.a in rows and path.b in columns:
            text = f"{path.disagrees.source} says {path.disagrees.kind}, the PCI tree {path.pcie_kind}"
            said.setdefault(text, []).append(f"{names.labels[path.a]}-{names.labels[path.b]}")
    return [
        each
        for text, pairs in sorted(said.items())
        for each in paragraph(
            f"{text}: {', '.join(pairs[:8])}{f' and {len(pairs) - 8} more' if len(pairs) > 8 else ''}",
            width,
            style="dim",
        )
    ]


def _distance(kind: str | None) -> int:
    return NEAR.index(kind) if kind in NEAR else len(NEAR)
