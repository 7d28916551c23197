"""The tables of the page: who is how far from whom, GPUDirect, what was not judged, what each probe read."""

from __future__ import annotations

from collections.abc import Mapping
from xml.etree.ElementTree import Element

from agent.model.report import Report
from agent.model.topology import Path
from agent.outputs.html.elements import el
from agent.outputs.names import Names, shown_nics
from agent.outputs.text.gpudirect import alike
from agent.outputs.text.matrix import nearest, pairs_of
from agent.outputs.text.unjudged import by_reason, what_would_help

MOST = 64  # rows or columns that a table on a page still shows
FAR = ("SYS", "NODE")


def gpu_matrix(report: Report) -> Element | None:
    """GPU x GPU; None for less than two."""
    names = Names(report)
    gpus = {gpu.id: names.labels[gpu.id] for gpu in report.topology.gpus}
    return _matrix("GPU to GPU", pairs_of(report, gpus, gpus), gpus, gpus, set()) if 1 < len(gpus) <= MOST else None


def nic_matrix(report: Report) -> Element | None:
    """GPU x NIC, rails first, the nearest rails marked."""
    names = Names(report)
    order = {"rail": 0, "unknown": 1}
    shown = sorted(shown_nics(report), key=lambda nic: order.get(nic.role, 2))
    gpus = {gpu.id: names.labels[gpu.id] for gpu in report.topology.gpus}
    pairs = pairs_of(report, gpus, {nic.id: "" for nic in shown})
    nics = {nic.id: names.labels[nic.id] for nic in shown if any((gpu, nic.id) in pairs for gpu in gpus)}
    if not pairs or max(len(gpus), len(nics)) > MOST:
        return None
    near = nearest(pairs, gpus, [nic.id for nic in shown if nic.role == "rail" and nic.id in nics])
    return _matrix("GPU to NIC", pairs, gpus, nics, near)


def gpudirect(report: Report) -> Element | None:
    """Pairs that are alike in a row, the worst first."""
    rows = [
        el(
            "tr",
            el("td", el("span", group.verdict, class_=f"badge {group.verdict}")),
            el("td", "" if group.via in ("none", "unknown") else group.via),
            el("td", group.gpus),
            el("td", group.nics),
            el("td", *[el("div", cause) for cause in group.causes]),
        )
        for group in alike(report)
    ]
    return _table(("verdict", "by", "GPUs", "rails", "because"), rows)


def not_judged(report: Report) -> Element | None:
    """The reason, and what it keeps unknown."""
    rows = [el("tr", el("td", reason), el("td", rules)) for reason, rules in by_reason(report).items()]
    made = _table(("because", "not judged"), rows)
    wanted = what_would_help(report)
    if made is not None and wanted:
        return el("div", made, el("p", f"To judge more: {'; '.join(wanted)}."))
    return made


def probes(report: Report) -> Element | None:
    """How each ended, and what it read."""
    rows = [
        el(
            "tr", el("td", run.name), el("td", run.status.replace("_", " ")), el("td", f"{run.duration_seconds:.3f} s"),
            el("td", run.reason or ""), el("td", ", ".join(run.sources[:4]), class_="mono dim"),
        )
        for run in report.probes
    ]  # fmt: skip
    return _table(("probe", "ended", "took", "because", "read"), rows)


def _matrix(
    what: str, pairs: Mapping[tuple[str, str], Path], rows: Mapping[str, str], columns: Mapping[str, str],
    near: set[tuple[str, str]],
) -> Element:  # fmt: skip
    head = el("tr", el("th", ""), *[el("th", label, scope="col") for label in columns.values()])
    body = [
        el(
            "tr",
            el("th", label, scope="row"),
            *[_cell(pairs.get((a, b)), a == b, (a, b) in near, f"{label} to {other}") for b, other in columns.items()],
        )
        for a, label in rows.items()
    ]
    table = el("table", el("thead", head), el("tbody", *body), class_="matrix", aria_label=what)
    return el("div", table, class_="scroll", tabindex=0, role="region", aria_label=what)


def _cell(path: Path | None, same: bool, near: bool, who: str) -> Element:
    if same:
        return el("td", "–", class_="self")
    if path is None:
        return el("td", "", class_="far", title=f"{who}: not known")
    kind = path.kind or "?"
    tone = "near" if near else "far" if kind in FAR else "nv" if kind.startswith("NV") else None
    said = [f"{who}: {kind}"]
    said += [f"over PCIe {path.pcie_kind}"] if path.pcie_kind and path.pcie_kind != kind else []
    said += [f"{path.bandwidth_gbyte_s:.1f} GB/s in one direction"] if path.bandwidth_gbyte_s else []
    said += [f"slowest hop: link of {path.limiting}"] if path.limiting else []
    said += [f"{path.disagrees.source} says {path.disagrees.kind}"] if path.disagrees else []
    hops = " ".join((path.a, path.b, *path.hops)) if path.hops else None
    return el("td", kind + ("*" if near else ""), class_=tone, title="; ".join(said), data_hops=hops)


def _table(titles: tuple[str, ...], rows: list[Element]) -> Element | None:
    if not rows:
        return None
    head = el("thead", el("tr", *[el("th", title, scope="col") for title in titles]))
    return el("div", el("table", head, el("tbody", *rows)), class_="scroll", tabindex=0, role="region",
              aria_label=titles[0])  # fmt: skip
