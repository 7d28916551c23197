"""GPUDirect RDMA: GPUs and their rails grouped by verdict, way and causes; one sentence if all are ready."""

from __future__ import annotations

from typing import NamedTuple

from agent.model.finding import Gpudirect
from agent.model.labels import compress_names
from agent.model.report import Report
from agent.outputs.names import DisplayNames
from agent.outputs.text.lines import Line, wrap_all, wrap_paragraph
from agent.outputs.text.not_checked import simplify_reason

STYLES = {"ready": "ok", "degraded": "warning", "blocked": "error", "unknown": "dim"}
_VIA = {"dma-buf": "DMA-BUF", "peermem": "nvidia_peermem", "data-direct": "Data Direct", "none": "", "unknown": ""}
_VIA_AMD = "peer memory of amdkfd"  # amdgpu itself is the client: there is no module like nvidia_peermem
WORST_FIRST = ("blocked", "degraded", "unknown", "ready")


class PairGroup(NamedTuple):
    """Pairs with the same verdict, way and causes."""

    verdict: str
    via: str  # empty: by none, or not known
    causes: tuple[str, ...]
    gpus: str  # "GPU0-3"
    nics: str


def group_pairs(report: Report) -> list[PairGroup]:
    """Group the pairs, worst first."""
    names = DisplayNames(report)
    of_amd = {gpu.id for gpu in report.topology.gpus if gpu.vendor == "AMD"}
    groups: dict[tuple[str, str, tuple[str, ...]], list[Gpudirect]] = {}
    for row in report.gpudirect:
        causes = tuple(simplify_reason(_describe_cause(cause, names), report) for cause in row.causes)
        via = _VIA_AMD if row.via == "peermem" and row.gpu in of_amd else _VIA.get(row.via, row.via)
        groups.setdefault((row.verdict, via, causes), []).append(row)
    return [
        PairGroup(
            verdict,
            via,
            causes,
            compress_names(names.labels.get(row.gpu, row.gpu) for row in rows),
            compress_names(names.labels.get(row.nic, row.nic) for row in rows),
        )
        for (verdict, via, causes), rows in sorted(groups.items(), key=lambda group: WORST_FIRST.index(group[0][0]))
    ]


def render_gpudirect(report: Report, width: int) -> list[Line]:
    """One line per group of pairs, worst first."""
    lines: list[Line] = []
    for verdict, via, causes, gpus, nics in group_pairs(report):
        how = f" ({via})" if via else ""
        lines += wrap_paragraph(f"{verdict}{how}: {gpus} – {nics}", width, style=STYLES[verdict])
        lines += wrap_all(causes, width, "      ", "    - ")
    return lines


def _describe_cause(text: str, names: DisplayNames) -> str:
    """Describe "rule subject" with the subject's display name; a reason is returned unchanged."""
    rule, _, subject = text.partition(" ")
    kind = subject.partition(":")[0]
    if kind not in ("pci", "gpu", "port", "pair", "netdev", "link", "nvswitch") or " " in subject:
        return text.removesuffix(" node")
    return rule if kind == "pair" else f"{rule} of {names.subject(subject)}"
