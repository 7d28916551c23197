"""The distance matrices: GPU x GPU, and GPU x NIC with the nearest rails marked. Folds by columns.

Equal entries are combined: one sentence if all pairs are equal, one row or column for equal neighbours.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from agent.model.labels import compress_names, name_first
from agent.model.report import Report
from agent.model.topology import Path
from agent.outputs.names import DisplayNames, nics_by_role, visible_nics
from agent.outputs.text.lines import BLANK, Line, Span, line_length, make_line, wrap_paragraph

MEANINGS = {
    "PIX": "one PCIe switch",
    "PXB": "several PCIe switches",
    "PHB": "same host bridge",
    "NODE": "same NUMA node",
    "SYS": "across CPU sockets or NUMA nodes",
    "C2C": "NVLink-C2C to the CPU",
    "XGMI": "direct links of AMD GPUs",
    "HCCS": "links of Ascend NPUs",
    "SIO": "two dies of one Ascend module",
    "UB": "UnifiedBus of Ascend NPUs",
    "GAUDI": "direct Ethernet links of Gaudi cards",
    "NEURON": "direct links of Neuron devices",
}
LINKS = {  # by the first letters of a kind
    "NV": "NVLink", "XG": "XGMI", "HC": "HCCS", "SI": "SIO", "UB": "UnifiedBus", "GA": "GAUDI", "NE": "NEURON",
}  # fmt: skip
KINDS_BY_DISTANCE = ("C2C", "PIX", "PXB", "PHB", "NODE", "SYS")  # nearest first
MAX_SIZE = 32  # rows or columns of a readable matrix
GUTTER = 4  # columns between two matrices side by side
MIN_TORUS_SIDE = 3  # of two each neighbor is the other one
MIN_BLOCK_LINES = 4  # a block of fewer lines is a sentence, not a table
Pairs = Mapping[tuple[str, str], Path]


class TextMatrix(NamedTuple):
    """Names of rows and columns, and the cells: text and style."""

    rows: list[str]
    columns: list[str]
    cells: list[list[Span]]


def _describe(kind: str) -> str:
    """A kind that all pairs have; of unknown ones a word."""
    return "unknown path" if kind == "?" else kind


def render_gpu_matrix(report: Report, width: int) -> list[Line]:
    """One sentence if all pairs are equal; otherwise the matrix."""
    labels = {g.id: g.label for g in report.topology.gpus}
    pairs = paths_by_pair(report, labels, labels)
    if not pairs:
        return []
    kinds = {path.kind or "?" for path in pairs.values()}
    pcie = sorted({p.pcie_kind for p in pairs.values() if p.pcie_kind and p.pcie_kind != p.kind}, key=_distance)
    under = f"; PCIe distance without {_links_of(kinds)}: {', '.join(pcie)}" if pcie else ""
    names = DisplayNames(report)
    if len(kinds) == 1:
        lines = wrap_paragraph(
            f"{_describe(min(kinds))} between {'both' if len(labels) == 2 else f'all {len(labels)}'} GPUs{under}", width
        )
    elif torus := find_torus(report, pairs):
        lines = _draw_torus(torus, pairs, width)
    elif len(labels) > MAX_SIZE:
        lines = wrap_paragraph(_count_kinds(path for (a, b), path in pairs.items() if a < b), width)
    else:
        cells = [[("X", "dim") if a == b else _cell(pairs.get((a, b))) for b in labels] for a in labels]
        labels_in_order = [names.labels[label] for label in labels]
        lines = _draw(TextMatrix(labels_in_order, labels_in_order, cells), width)
    return lines + _render_disagreements(report, labels, labels, width)


def find_torus(report: Report, pairs: Pairs) -> list[list[str]]:
    """Labels of Neuron devices row by row, where their links are a whole square torus and no other; else nothing."""
    by_index = {gpu.index: gpu for gpu in report.topology.gpus if gpu.index is not None}
    count = len(report.topology.gpus)
    side = math.isqrt(count)
    if side < MIN_TORUS_SIDE or side * side != count or set(by_index) != set(range(count)):
        return []
    if len(pairs) < count * (count - 1):
        return []
    places = {gpu.id: divmod(index, side) for index, gpu in by_index.items()}
    for (a, b), path in pairs.items():
        apart = sorted(abs(x - y) for x, y in zip(places[a], places[b], strict=True))
        if (path.kind == "NEURON") != (apart in ([0, 1], [0, side - 1])):
            return []
    return [[by_index[row * side + column].label for column in range(side)] for row in range(side)]


def _draw_torus(torus: list[list[str]], pairs: Pairs, width: int) -> list[Line]:
    wide = max(len(label) for row in torus for label in row) + 2
    others = sorted({path.kind or "?" for path in pairs.values()} - {"NEURON"}, key=_distance)
    below = f"all other pairs over PCIe: {', '.join(others)} (each pair: --format json)" if others else ""
    return [
        *wrap_paragraph(
            f"torus of {len(torus)} x {len(torus)}: NEURON to both neighbors in the row and in the column, "
            "the last of which is joined with the first",
            min(width, 80),
        ),
        *(((f"    {''.join(label.ljust(wide) for label in row)}".rstrip(), ""),) for row in torus),
        *(wrap_paragraph(below, width) if below else ()),
    ]


def render_rail_matrix(report: Report, width: int) -> list[Line]:
    """Every GPU with every NIC, rails first; `*` marks the nearest rails."""
    nics_in_order = nics_by_role(report)
    gpus = {g.id: g.label for g in report.topology.gpus}
    nics = {n.id: n.label for n in nics_in_order}
    pairs = paths_by_pair(report, gpus, nics)
    nics = {key: label for key, label in nics.items() if any((gpu, key) in pairs for gpu in gpus)}
    if not pairs:
        return []
    rails = [n.id for n in nics_in_order if n.role == "rail" and n.id in nics]
    marked = find_nearest_rails(pairs, gpus, rails)
    kinds = {path.kind or "?" for path in pairs.values()}
    if len(kinds) == 1 and len(gpus) * len(nics) > 1:
        whom = "every rail" if len(rails) == len(nics) else "every NIC"
        return wrap_paragraph(f"{_describe(min(kinds))} between every GPU and {whom}", width) + _render_disagreements(
            report, gpus, nics, width
        )
    names = DisplayNames(report)
    cells = [[_cell(pairs.get((g, n)), "*" if (g, n) in marked else "") for n in nics] for g in gpus]
    whole = TextMatrix([names.labels[g] for g in gpus], [names.labels[n] for n in nics], cells)
    folded = _fold(whole, [n.role for n in nics_in_order if n.id in nics])
    if max(len(folded.rows), len(folded.columns)) > MAX_SIZE:
        return wrap_paragraph(_count_kinds(pairs.values()), width) + _render_disagreements(report, gpus, nics, width)
    lines = _draw(folded, width)
    if marked:
        lines.append(make_line(("  * nearest rail", "dim")))
    return lines + _render_disagreements(report, gpus, nics, width)


def render_legend(report: Report, width: int) -> list[Line]:
    """What each kind of path in the matrices is."""
    devices = {gpu.id for gpu in report.topology.gpus} | {nic.id for nic in visible_nics(report)}
    paths = [path for path in report.topology.paths if path.a in devices and path.b in devices]
    kinds = {kind for path in paths for kind in (path.kind, path.pcie_kind)}
    texts = [f"{kind}: {MEANINGS[kind]}" for kind in MEANINGS if kind in kinds]
    count = next((path.kind for path in paths if path.kind and path.kind[:2] == "NV"), None)
    texts += [f"{count}: {count[2:]} NVLinks"] if count else []
    return wrap_paragraph("; ".join(texts), width, style="dim") if texts else []


def _links_of(kinds: Iterable[str]) -> str:
    """The link that joins the GPUs: `NVLink`."""
    return next((LINKS[kind[:2]] for kind in sorted(kinds) if kind[:2] in LINKS), "it")


def join_side_by_side(left: Sequence[Line], right: Sequence[Line], width: int) -> list[Line] | None:
    """Join two tables side by side; None if they do not fit, or the left one is only a sentence."""
    edge = max((line_length(line) for line in left), default=0) + GUTTER
    if len(left) < MIN_BLOCK_LINES or edge + max(line_length(line) for line in right) > width:
        return None
    lines = []
    for k in range(max(len(left), len(right))):
        mine = left[k] if k < len(left) else BLANK
        other = right[k] if k < len(right) else BLANK
        lines.append((*mine, (" " * (edge - line_length(mine)), ""), *other) if other else mine)
    return lines


def _count_kinds(paths: Iterable[Path]) -> str:
    """The summary for a matrix that is too large to read."""
    counts = Counter(path.kind or "?" for path in paths)
    text = ", ".join(f"{kind} {counts[kind]}" for kind in sorted(counts, key=_distance))
    return f"pairs of each kind: {text} (each pair: --format json)"


def paths_by_pair(report: Report, rows: Mapping[str, str], columns: Mapping[str, str]) -> Pairs:
    """Paths by their two ends, in both directions, for ids in rows and columns."""
    paths: dict[tuple[str, str], Path] = {}
    for path in report.topology.paths:
        for a, b in ((path.a, path.b), (path.b, path.a)):
            if a in rows and b in columns:
                paths[a, b] = path
    return paths


def find_nearest_rails(pairs: Pairs, gpus: Iterable[str], rails: Sequence[str]) -> set[tuple[str, str]]:
    """The nearest rails of each GPU, as pairs."""
    marked: set[tuple[str, str]] = set()
    for gpu in gpus:
        mine = [(_distance(pairs[gpu, nic].kind), nic) for nic in rails if (gpu, nic) in pairs]
        best = min((distance for distance, _ in mine), default=len(KINDS_BY_DISTANCE))
        marked |= {(gpu, nic) for distance, nic in mine if distance == best < len(KINDS_BY_DISTANCE)}
    return marked


def _cell(path: Path | None, mark: str = "") -> Span:
    return ((path.kind or "?") + mark, "ok" if mark else "") if path else ("-", "dim")


def _fold(table: TextMatrix, roles: Sequence[str]) -> TextMatrix:
    """Combine equal neighbouring rows, and equal neighbouring columns of one role."""
    columns = _equal_runs([(role, *(row[k] for row in table.cells)) for k, role in enumerate(roles)])
    rows = _equal_runs([tuple(row) for row in table.cells])
    return TextMatrix(
        [compress_names(table.rows[k] for k in run) for run in rows],
        [compress_names(table.columns[k] for k in run) for run in columns],
        [[table.cells[run[0]][column[0]] for column in columns] for run in rows],
    )


def _equal_runs(keys: Sequence[tuple[object, ...]]) -> list[list[int]]:
    runs: list[list[int]] = []
    for k, key in enumerate(keys):
        if runs and keys[runs[-1][0]] == key:
            runs[-1].append(k)
        else:
            runs.append([k])
    return runs


def _draw(table: TextMatrix, width: int) -> list[Line]:
    head = max(len(label) for label in table.rows) + 4
    wide = [max(len(name), *(len(row[k][0]) for row in table.cells)) + 2 for k, name in enumerate(table.columns)]
    lines: list[Line] = []
    for part in _split_columns(wide, width - head):
        lines += [BLANK] if lines else []
        lines.append(make_line((" " * head + "".join(table.columns[k].ljust(wide[k]) for k in part).rstrip(), "dim")))
        for label, row in zip(table.rows, table.cells, strict=True):
            lines.append(make_line(("  " + label.ljust(head - 2), "bold"), *_pad_cells(row, part, wide)))
    return lines


def _pad_cells(row: Sequence[Span], part: Sequence[int], wide: Sequence[int]) -> list[Span]:
    return [(row[k][0] if k == part[-1] else row[k][0].ljust(wide[k]), row[k][1]) for k in part]


def _split_columns(wide: Sequence[int], width: int) -> list[list[int]]:
    """Split the columns into blocks that fit the page."""
    parts: list[list[int]] = []
    used = width
    for k, columns in enumerate(wide):
        if used + columns > width + 2 or not parts:
            parts.append([])
            used = 0
        parts[-1].append(k)
        used += columns
    return parts


def _render_disagreements(
    report: Report, rows: Mapping[str, str], columns: Mapping[str, str], width: int
) -> list[Line]:
    """Pairs for which the driver reports another kind than the PCI tree, grouped by text."""
    pairs_by_text: dict[str, list[str]] = {}
    names = DisplayNames(report)
    for path in report.topology.paths:
        if path.disagrees and path.a in rows and path.b in columns:
            text = f"{path.disagrees.source} reports {path.disagrees.kind}, the PCI tree has {path.pcie_kind}"
            pairs_by_text.setdefault(text, []).append(f"{names.labels[path.a]}-{names.labels[path.b]}")
    return [
        line
        for text, pairs in sorted(pairs_by_text.items())
        for line in wrap_paragraph(f"{text}: {name_first(pairs, 8)}", width, style="dim")
    ]


def _distance(kind: str | None) -> int:
    return KINDS_BY_DISTANCE.index(kind) if kind in KINDS_BY_DISTANCE else len(KINDS_BY_DISTANCE)
