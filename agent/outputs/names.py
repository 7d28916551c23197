"""What things are called on the page: short addresses, labels, `GPU0-7` for eight of a kind."""

from __future__ import annotations

import re
from collections.abc import Iterable

from agent.model.nic import Nic
from agent.model.report import Report

_NUMBERED = re.compile(r"(.*?)(\d{1,9})")
_BRACKETED = re.compile(r".*\[([^\[\]]+)\]")


class Names:
    """The names of one report's devices. Addresses lose their domain where every function is in domain 0000."""

    def __init__(self, report: Report) -> None:
        topology = report.topology
        self.domains = any(not function.id.startswith("0000:") for function in topology.pci)
        self.labels = {function.id: self.short(function.id) for function in topology.pci}
        self.labels |= {netdev.id: self.short(netdev.label) for netdev in topology.netdevs}
        self.labels |= {nic.id: self.short(nic.label) for nic in topology.nics}  # names an id better than what it has
        self.labels |= {gpu.id: self.short(gpu.label) for gpu in topology.gpus}

    def short(self, text: str) -> str:
        """An address, or a label that holds one, without the domain that all have."""
        return text if self.domains else text.replace("0000:", "", 1)

    def subject(self, subject: str) -> str:
        """A check's subject as people call it: `GPU3`, `mlx5_0`, `GPU3 link 7`."""
        kind, _, which = subject.partition(":")
        if not which:
            return subject
        if kind == "pair":
            return "+".join(self.labels.get(each, self.short(each)) for each in which.split("+"))
        device, _, part = which.partition("/")
        label = self.labels.get(device, self.short(device))
        return f"{label} link {part}" if kind == "link" and part else label


def ranged(labels: Iterable[str]) -> str:
    """Names that differ in their last number, shortened; in the order of their first member.

    >>> ranged(["GPU0", "GPU1", "GPU2", "GPU5", "mlx5_0", "4c:00.0", "4c:00.1"])
    'GPU0-2,5, mlx5_0, 4c:00.0,1'
    """
    families: dict[str, list[int]] = {}
    alone: dict[str, None] = {}
    for label in labels:
        found = _NUMBERED.fullmatch(label)
        if found and str(int(found[2])) == found[2]:
            families.setdefault(found[1], []).append(int(found[2]))
        else:
            alone[label] = None
    return ", ".join([*(prefix + _runs(sorted(set(numbers))) for prefix, numbers in families.items()), *alone])


def _runs(numbers: list[int]) -> str:
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 2 else ",".join(str(number) for number in run) for run in runs)


def model(name: str | None) -> str:
    """What people say: without the vendor, and of a database name what is in brackets at its end.

    >>> model("MT2910 Family [ConnectX-7]"), model("NVIDIA H100 80GB HBM3"), model(None)
    ('ConnectX-7', 'H100 80GB HBM3', '')
    """
    found = _BRACKETED.fullmatch(name or "")
    return (found[1] if found else name or "").removeprefix("NVIDIA ")


def shown_nics(report: Report) -> list[Nic]:
    """NICs of the page: no software devices, and virtual functions only where a host has nothing else."""
    real = [nic for nic in report.topology.nics if not nic.software]
    physical = [nic for nic in real if not nic.virtual_function]
    return physical or real
