"""Who is how far from whom: GPU x GPU, and GPU x NIC with the nearest rails marked. Folds by columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agent.model.report import Report
from agent.model.topology import Path
from agent.outputs.text.lines import BLANK, Line, Span, line, paragraph

NEAR = ("C2C", "PIX", "PXB", "PHB", "NODE", "SYS")  # nearest first
Cells = Mapping[tuple[str, str], Path]


def gpu_matrix(report: Report, width: int) -> list[Line]:
    """One sentence where all pairs are alike; else the matrix."""
    labels = {g.id: g.label for g in report.topology.gpus}
    cells = _cells(report, labels, labels)
    if not cells:
        return []
    kinds = {path.kind or "?" for path in cells.values()}
    pcie = sorted({p.pcie_kind for p in cells.values() if p.pcie_kind and p.pcie_kind != p.kind}, key=_distance)
    under = f"; over PCIe it would be {', '.join(pcie)}" if pcie else ""
    if len(kinds) == 1 and len(labels) > 2:
        lines = paragraph(f"{min(kinds)} between all {len(labels)} GPUs{under}", width)
    else:
        lines = _table(labels, labels, cells, width, marks={})
    return lines + _disagreements(report, labels, labels, width)


def rail_matrix(report: Report, width: int) -> list[Line]:
    """Every GPU with every NIC; `*` marks the nearest rails."""
    topology = report.topology
    gpus = {g.id: g.label for g in topology.gpus}
    order = {"rail": 0, "unknown": 1}
    shown = sorted((n for n in topology.nics if not n.software), key=lambda n: order.get(n.role, 2))
    nics = {n.id: n.label for n in shown}
    cells = _cells(report, gpus, nics)
    nics = {key: label for key, label in nics.items() if any((gpu, key) in cells for gpu in gpus)}
    if not cells:
        return []
    rails = {n.id for n in shown if n.role == "rail"}
    marks: dict[tuple[str, str], str] = {}
    for gpu in gpus:
        mine = [(_distance(cells[gpu, nic].kind), nic) for nic in rails if (gpu, nic) in cells]
        best = min((distance for distance, _ in mine), default=None)
        marks.update({(gpu, nic): "*" for distance, nic in mine if distance == best and distance < len(NEAR)})
    lines = _table(gpus, nics, cells, width, marks)
    if marks:
        lines.append(line(("  * nearest rail", "dim")))
    return lines + _disagreements(report, gpus, nics, width)


def _cells(report: Report, rows: Mapping[str, str], columns: Mapping[str, str]) -> Cells:
    found: dict[tuple[str, str], Path] = {}
    for path in report.topology.paths:
        for a, b in ((path.a, path.b), (path.b, path.a)):
            if a in rows and b in columns:
                found[a, b] = path
    return found


def _table(
    rows: Mapping[str, str], columns: Mapping[str, str], cells: Cells, width: int, marks: Mapping[tuple[str, str], str]
) -> list[Line]:
    head = max(len(label) for label in rows.values()) + 4
    wide = max(*(len(label) for label in columns.values()), 4) + 2
    fit = max((width - head) // wide, 1)
    keys = list(columns)
    lines: list[Line] = []
    for start in range(0, len(keys), fit):
        part = keys[start : start + fit]
        lines += [BLANK] if lines else []
        lines.append(line((" " * head + "".join(columns[k].ljust(wide) for k in part), "dim")))
        lines += [_row(rows[row], row, part, cells, marks, head, wide) for row in rows]
    return lines


def _row(
    label: str, row: str, part: Sequence[str], cells: Cells, marks: Mapping[tuple[str, str], str], head: int, wide: int
) -> Line:
    spans: list[Span] = [("  " + label.ljust(head - 2), "bold")]
    for column in part:
        path = cells.get((row, column))
        text = "X" if row == column else (path.kind or "?") if path else "-"
        mark = marks.get((row, column), "")
        spans.append(((text + mark).ljust(wide), "ok" if mark else ""))
    return line(*spans)


def _disagreements(report: Report, rows: Mapping[str, str], columns: Mapping[str, str], width: int) -> list[Line]:
    """Pairs of which the driver says something else than the PCI tree, grouped by what is said."""
    said: dict[str, list[str]] = {}
    for path in report.topology.paths:
        if path.disagrees and path.a in rows and path.b in columns:
            text = f"{path.disagrees.source} says {path.disagrees.kind}, the PCI tree {path.pcie_kind}"
            said.setdefault(text, []).append(f"{rows[path.a]}-{columns[path.b]}")
    return [
        each
        for text, pairs in sorted(said.items())
        for each in paragraph(f"{text}: {', '.join(pairs[:8])}{' ..' if len(pairs) > 8 else ''}", width, style="dim")
    ]


def _distance(kind: str | None) -> int:
    return NEAR.index(kind) if kind in NEAR else len(NEAR)
