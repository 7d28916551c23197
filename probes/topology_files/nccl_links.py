"""The NVLinks and XGMI links of a NCCL topology, as what they join: pairs of GPUs, directly or through switches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

from probes.gpu.facts import PairCell
from probes.pci.attributes import decimal
from probes.topology_files.xml_tree import Element

_MOST_LINKS = 64
_SWITCH = "0x068000"  # tclass; a switch that no PCI bus shows is called fffffff:ffff:ff


class Linked(NamedTuple):
    """A <gpu> and the PCI function that it is."""

    address: str
    element: Element

    @property
    def number(self) -> int | None:
        """The driver's number of it."""
        said = decimal(self.element.said("dev") or "")
        return said if said is not None and 0 <= said < 4096 else None


def pairs(gpus: Sequence[Linked]) -> Iterator[PairCell]:
    """One cell for each two GPUs that are linked. GPUs that share a number, or have none, cannot be named."""
    numbers = Counter(gpu.number for gpu in gpus)
    named = [gpu for gpu in gpus if gpu.number is not None and numbers[gpu.number] == 1]
    direct = {gpu.address: _targets(gpu, "nvlink") for gpu in named}
    xgmi = {gpu.address: _targets(gpu, "xgmi") for gpu in named}
    switched = {gpu.address: _to_switches(gpu) for gpu in named}
    for one, other in combinations(named, 2):
        a, b = one.address, other.address
        count = max(direct[a].get(b, 0), direct[b].get(a, 0)) or min(switched[a], switched[b])
        if count:
            yield PairCell(f"GPU{one.number}", f"GPU{other.number}", f"NV{count}")
        elif b in xgmi[a] or a in xgmi[b]:
            yield PairCell(f"GPU{one.number}", f"GPU{other.number}", "XGMI")


def _targets(gpu: Linked, tag: str) -> dict[str, int]:
    """Links by where they lead. A file for a kind of machine may let a GPU lead to itself: that is none."""
    found: dict[str, int] = {}
    for link in gpu.element.each(tag):
        target = (link.said("target") or "").lower()
        if target != gpu.address:
            found[target] = found.get(target, 0) + _count(link)
    return found


def _to_switches(gpu: Linked) -> int:
    return sum(_count(link) for link in gpu.element.each("nvlink") if link.said("tclass") == _SWITCH)


def _count(link: Element) -> int:
    count = decimal(link.said("count") or "")
    return count if count is not None and 0 < count <= _MOST_LINKS else 0
