"""How devices reach each other: a sentence where it states all, else the matrices GPU to GPU and GPU to NIC."""

from __future__ import annotations

from collections.abc import Mapping
from xml.etree.ElementTree import Element

from agent.model.labels import compress_names, group_by_key
from agent.model.report import Report
from agent.model.topology import Path
from agent.outputs.html.elements import el
from agent.outputs.names import DisplayNames, nics_by_role
from agent.outputs.text.matrix import KINDS_BY_DISTANCE, MEANINGS, Pairs, find_nearest_rails, paths_by_pair

MAX_SIZE = 64  # rows or columns that a table on a page still shows
FAR = ("SYS", "NODE")


def render_gpu_matrix(report: Report) -> list[Element]:
    """GPU to GPU; nothing for fewer than two GPUs."""
    names = DisplayNames(report)
    gpus = {gpu.id: names.labels[gpu.id] for gpu in report.topology.gpus}
    pairs = paths_by_pair(report, gpus, gpus)
    if len(gpus) < 2 or not pairs:
        return []
    kinds = _kinds(pairs)
    if kinds == ["?"]:
        return [el("p", "The paths between the GPUs are not known.")]
    if len(kinds) == 1:
        both = "both GPUs" if len(gpus) == 2 else f"all {len(gpus)} GPUs"
        return [el("p", el("strong", kinds[0]), f" between {both}{_explain(kinds[0])}.")]
    return _with_legend(_render_matrix("GPU to GPU", pairs, gpus, gpus, set()), kinds, len(gpus), len(gpus))


def render_nic_matrix(report: Report) -> list[Element]:
    """GPU to NIC, rails first: a sentence if each GPU has rails at one distance and all else is farther."""
    names = DisplayNames(report)
    nics_in_order = nics_by_role(report)
    gpus = {gpu.id: names.labels[gpu.id] for gpu in report.topology.gpus}
    pairs = paths_by_pair(report, gpus, {nic.id: "" for nic in nics_in_order})
    nics = {nic.id: names.labels[nic.id] for nic in nics_in_order if any((gpu, nic.id) in pairs for gpu in gpus)}
    if not pairs:
        return []
    kinds = _kinds(pairs)
    if kinds == ["?"]:
        return [el("p", "The paths between GPUs and NICs are not known.")]
    if len(kinds) == 1 and len(gpus) * len(nics) > 1:
        return [el("p", el("strong", kinds[0]), f" between every GPU and every NIC{_explain(kinds[0])}.")]
    near = find_nearest_rails(pairs, gpus, [nic.id for nic in nics_in_order if nic.role == "rail" and nic.id in nics])
    matrix = _with_legend(_render_matrix("GPU to NIC", pairs, gpus, nics, near), kinds, len(gpus), len(nics))
    sentence = _describe_rails(pairs, near, gpus, nics)
    if sentence is None:
        return matrix
    return [sentence, el("details", el("summary", "All GPU-NIC pairs"), *matrix)]


def _describe_rails(
    pairs: Pairs, near: set[tuple[str, str]], gpus: Mapping[str, str], nics: Mapping[str, str]
) -> Element | None:
    """One sentence if every GPU has near rails, all of one kind."""
    kinds = {pairs[pair].kind for pair in near}
    rails: dict[str, list[str]] = {gpu: [nic for nic in nics if (gpu, nic) in near] for gpu in gpus}
    if len(kinds) != 1 or not all(rails.values()):
        return None
    kind = kinds.pop() or "?"
    if kind in FAR:
        return None
    groups = group_by_key((tuple(mine), gpu) for gpu, mine in rails.items())
    named = [
        f"{compress_names(gpus[gpu] for gpu in members)} – {compress_names(nics[nic] for nic in mine)}"
        for mine, members in groups.items()
    ]
    others = _kinds({key: path for key, path in pairs.items() if key not in near})
    rest = ["not known" if text == "?" else text for text in others if text != kind]
    beyond = f" All other pairs: {' or '.join(rest)}." if rest else ""
    which = "its rails" if any(len(mine) > 1 for mine in rails.values()) else "its rail"
    return el("p", el("strong", kind), f" between each GPU and {which}{_explain(kind)}: {', '.join(named)}.{beyond}")


def _kinds(pairs: Pairs) -> list[str]:
    """The kinds of these pairs, nearest first."""
    kinds = {path.kind or "?" for path in pairs.values()}
    return sorted(kinds, key=lambda kind: (_rank(kind), kind))


def _rank(kind: str) -> int:
    if kind in KINDS_BY_DISTANCE:
        return KINDS_BY_DISTANCE.index(kind)
    return len(KINDS_BY_DISTANCE) if kind == "?" else -1


def _explain(kind: str) -> str:
    links = f"{kind[2:]} NVLinks" if kind.startswith("NV") and kind[2:].isdecimal() else MEANINGS.get(kind, "")
    return f" ({links})" if links else ""


def _with_legend(matrix: Element, kinds: list[str], rows: int, columns: int) -> list[Element]:
    """The matrix with its kinds in words; too large a one is a sentence."""
    if max(rows, columns) > MAX_SIZE:
        return [el("p", f"{rows} x {columns} pairs, of kind {', '.join(kinds)}; each pair: --format json")]
    words = [f"{kind}: {MEANINGS[kind]}" for kind in kinds if kind in MEANINGS]
    words += ["*: nearest rail"] if any("*" in (cell.text or "") for cell in matrix.iter("td")) else []
    return [matrix, el("p", "; ".join(words), class_="dim")]


def _render_matrix(
    what: str, pairs: Mapping[tuple[str, str], Path], rows: Mapping[str, str], columns: Mapping[str, str],
    near: set[tuple[str, str]],
) -> Element:  # fmt: skip
    head = el("tr", el("th", ""), *[el("th", label, scope="col") for label in columns.values()])
    body = [
        el(
            "tr",
            el("th", label, scope="row"),
            *[
                _render_cell(pairs.get((a, b)), a == b, (a, b) in near, f"{label} to {other}")
                for b, other in columns.items()
            ],
        )
        for a, label in rows.items()
    ]
    table = el("table", el("thead", head), el("tbody", *body), class_="matrix", aria_label=what)
    return el("div", table, class_="scroll", tabindex=0, role="region", aria_label=what)


def _render_cell(path: Path | None, same: bool, near: bool, who: str) -> Element:
    if same:
        return el("td", "–", class_="self")
    if path is None:
        return el("td", "", class_="far", title=f"{who}: not known")
    kind = path.kind or "?"
    tone = "near" if near else "far" if kind in FAR else "nv" if kind.startswith("NV") else None
    details = [f"{who}: {kind}"]
    details += [f"over PCIe {path.pcie_kind}"] if path.pcie_kind and path.pcie_kind != kind else []
    details += [f"{path.bandwidth_gbyte_s:.1f} GB/s in one direction"] if path.bandwidth_gbyte_s else []
    details += [f"slowest hop: link of {path.limiting}"] if path.limiting else []
    details += [f"{path.disagrees.source} reports {path.disagrees.kind}"] if path.disagrees else []
    hops = " ".join((path.a, path.b, *path.hops)) if path.hops else None
    return el("td", kind + ("*" if near else ""), class_=tone, title="; ".join(details), data_hops=hops)
