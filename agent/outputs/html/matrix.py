"""The matrices of the page: GPU to GPU and GPU to NIC."""

from __future__ import annotations

from collections.abc import Mapping
from xml.etree.ElementTree import Element

from agent.model.report import Report
from agent.model.topology import Path
from agent.outputs.html.elements import el
from agent.outputs.names import DisplayNames, visible_nics
from agent.outputs.text.matrix import find_nearest_rails, paths_by_pair

MAX_SIZE = 64  # rows or columns that a table on a page still shows
FAR = ("SYS", "NODE")


def render_gpu_matrix(report: Report) -> Element | None:
    """GPU x GPU; None for fewer than two GPUs."""
    names = DisplayNames(report)
    gpus = {gpu.id: names.labels[gpu.id] for gpu in report.topology.gpus}
    return (
        _render_matrix("GPU to GPU", paths_by_pair(report, gpus, gpus), gpus, gpus, set())
        if 1 < len(gpus) <= MAX_SIZE
        else None
    )


def render_nic_matrix(report: Report) -> Element | None:
    """GPU x NIC, rails first, the nearest rails marked."""
    names = DisplayNames(report)
    order = {"rail": 0, "unknown": 1}
    nics_in_order = sorted(visible_nics(report), key=lambda nic: order.get(nic.role, 2))
    gpus = {gpu.id: names.labels[gpu.id] for gpu in report.topology.gpus}
    pairs = paths_by_pair(report, gpus, {nic.id: "" for nic in nics_in_order})
    nics = {nic.id: names.labels[nic.id] for nic in nics_in_order if any((gpu, nic.id) in pairs for gpu in gpus)}
    if not pairs or max(len(gpus), len(nics)) > MAX_SIZE:
        return None
    near = find_nearest_rails(pairs, gpus, [nic.id for nic in nics_in_order if nic.role == "rail" and nic.id in nics])
    return _render_matrix("GPU to NIC", pairs, gpus, nics, near)


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
    details += [f"{path.disagrees.source} says {path.disagrees.kind}"] if path.disagrees else []
    hops = " ".join((path.a, path.b, *path.hops)) if path.hops else None
    return el("td", kind + ("*" if near else ""), class_=tone, title="; ".join(details), data_hops=hops)
