"""How pairs of devices reach each other, and whether GPUDirect works between them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from agent.diff.change import ChangedThing
from agent.diff.ledger import Ledger
from agent.diff.pairing import Pairing
from agent.model.report import Report
from agent.model.topology import Path

SURE, TREE = "conclusive", "pci-tree"
BETWEEN = " - "  # of the labels of a pair


class _Sides(NamedTuple):
    """What both reports call their devices, and which of their links may be trusted."""

    old: Report
    new: Report
    pairs: Pairing
    labels: Mapping[str, str]
    unsure: tuple[frozenset[str], frozenset[str]]


def paths(ledger: Ledger, old: Report, new: Report, pairs: Pairing) -> None:
    """Pairs whose both ends are on both sides: a pair that went with its device is no news."""
    sides = _Sides(old, new, pairs, _labels(new), (_unsure(old), _unsure(new)))
    after = {_ends(path.a, path.b): path for path in new.topology.paths}
    for path in old.topology.paths:
        ends = _map_ends(path.a, path.b, pairs)
        other = after.get(ends) if ends else None
        if ends and other:
            _path(ledger, sides, path, other)


def gpudirect(ledger: Ledger, old: Report, new: Report, pairs: Pairing) -> None:
    """Verdicts of pairs on both sides."""
    labels = _labels(new)
    after = {_ends(verdict.gpu, verdict.nic): verdict for verdict in new.gpudirect}
    for verdict in old.gpudirect:
        ends = _map_ends(verdict.gpu, verdict.nic, pairs)
        other = after.get(ends) if ends else None
        if ends and other:
            place = _place((verdict.gpu, verdict.nic), (other.gpu, other.nic), labels)
            ledger.compare("links", "gpudirect", place, verdict.verdict, other.verdict)
            if verdict.verdict == other.verdict:
                ledger.compare("links", "gpudirect via", place, verdict.via, other.via)


def _path(ledger: Ledger, sides: _Sides, old: Path, new: Path) -> None:
    place = _place((old.a, old.b), (new.a, new.b), sides.labels)
    if (old.source == TREE) != (new.source == TREE):  # the tree has no NVLink: that is less evidence, not less link
        if old.kind != new.kind:
            ledger.unknown("gained" if old.source == TREE else "lost", "path by the driver", place)
        ledger.compare("links", "path by PCIe", place, old.pcie_kind, new.pcie_kind)
        return
    ledger.compare("links", "path", place, old.kind, new.kind)
    if old.kind != old.pcie_kind or new.kind != new.pcie_kind:  # else it is the same word again
        ledger.compare("links", "path by PCIe", place, old.pcie_kind, new.pcie_kind)
    if old.limiting in sides.unsure[0] or new.limiting in sides.unsure[1]:
        return  # the speed of an idle link follows the load
    if old.bandwidth_gbyte_s is not None and new.bandwidth_gbyte_s is not None:
        limiting = new.limiting or old.limiting
        note = f"limited by {sides.labels.get(limiting, limiting)}" if limiting else None
        ledger.compare("links", "path gbyte_s", place, old.bandwidth_gbyte_s, new.bandwidth_gbyte_s, note=note)


def _unsure(report: Report) -> frozenset[str]:
    return frozenset(row.id for row in report.topology.pci if row.link and row.link.quality.state != SURE)


def _labels(report: Report) -> dict[str, str]:
    topology = report.topology
    return {row.id: row.label for rows in (topology.nics, topology.gpus) for row in rows}


def _ends(a: str, b: str) -> tuple[str, str]:
    return (a, b) if a <= b else (b, a)


def _map_ends(a: str, b: str, pairs: Pairing) -> tuple[str, str] | None:
    one, other = pairs.ids.get(a), pairs.ids.get(b)
    return _ends(one, other) if one and other else None


def _place(old: tuple[str, str], new: tuple[str, str], labels: Mapping[str, str]) -> ChangedThing:
    label = BETWEEN.join(labels.get(end, end) for end in new)
    return ChangedThing(old=f"pair:{'+'.join(old)}", new=f"pair:{'+'.join(new)}", label=label)
