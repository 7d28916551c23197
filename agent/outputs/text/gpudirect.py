"""Whether NICs reach GPU memory: GPUs and their rails by verdict, way and causes; one sentence where all are ready."""

from __future__ import annotations

from typing import NamedTuple

from agent.model.finding import Gpudirect
from agent.model.report import Report
from agent.outputs.names import Names, ranged
from agent.outputs.text.lines import Line, paragraph

STYLES = {"ready": "ok", "degraded": "warning", "blocked": "error", "unknown": "dim"}
WORST_FIRST = ("blocked", "degraded", "unknown", "ready")


class Alike(NamedTuple):
    """Pairs of one verdict, way and cause."""

    verdict: str
    via: str
    causes: tuple[str, ...]
    gpus: str  # "GPU0-3"
    nics: str


def alike(report: Report) -> list[Alike]:
    """Pairs in groups, the worst first."""
    names = Names(report)
    groups: dict[tuple[str, str, tuple[str, ...]], list[Gpudirect]] = {}
    for row in report.gpudirect:
        causes = tuple(_cause(cause, names) for cause in row.causes)
        groups.setdefault((row.verdict, row.via, causes), []).append(row)
    return [
        Alike(
            verdict,
            via,
            causes,
            ranged(names.labels.get(row.gpu, row.gpu) for row in rows),
            ranged(names.labels.get(row.nic, row.nic) for row in rows),
        )
        for (verdict, via, causes), rows in sorted(groups.items(), key=lambda each: WORST_FIRST.index(each[0][0]))
    ]


def gpudirect(report: Report, width: int) -> list[Line]:
    """A line for each group of pairs that are alike, the worst first."""
    lines: list[Line] = []
    for verdict, via, causes, gpus, nics in alike(report):
        how = f" by {via}" if via not in ("none", "unknown") else ""
        lines += paragraph(f"{verdict}{how}: {gpus} with {nics}", width, style=STYLES[verdict])
        lines += [each for cause in causes for each in paragraph(cause, width, indent="      ", first="    - ")]
    return lines


def _cause(text: str, names: Names) -> str:
    """ "rule subject" with the subject as people call it; a reason as it stands."""
    rule, _, subject = text.partition(" ")
    kind = subject.partition(":")[0]
    if kind not in ("pci", "gpu", "port", "pair", "netdev", "link", "nvswitch") or " " in subject:
        return text.removesuffix(" node")
    return rule if kind == "pair" else f"{rule} of {names.subject(subject)}"
