"""The NICs of a node as NCCL plans with them, and as their wires are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from agent.model.gpu import Gpu
from agent.model.nic import Nic, Port
from agent.model.pci import PciFunction
from agent.model.report import Report
from agent.model.topology import NEAREST_FIRST
from agent.recommend.constants import pcie_gbyte_s

_UPPER_ENDS = ("root_port", "downstream")
# Findings by which NCCL copies through host memory; by others a NIC is not used at all, or with a protocol that fails
_COPYING = (
    "gdr-no-path", "amd-gdr-not-ready", "gdr-peermem-broken", "gdr-disabled-by-env", "gdr-acs-directnic",
    "gdr-iommu-group-directnic", "affinity-gpu-far-from-nic",
)  # fmt: skip
_TOO_FAR = "distance "  # a cause that is no finding
NCCL_SHARE = 48 / 63.015  # of the payload bandwidth of a PCIe link: what NCCL counts for it


class RailFacts(NamedTuple):
    """One NIC of a node as NCCL plans with it, and as its wire is. GB/s in NCCL's units, one direction."""

    label: str
    pci: str | None
    network_gbyte_s: float  # current rate; 0: the port is down
    healthy_network_gbyte_s: float
    plan_gbyte_s: float  # path to the nearest GPU by what its links could do: what NCCL reads
    wire_gbyte_s: float  # by what they do
    healthy_plan_gbyte_s: float = 0.0  # the most that the path of a rail of this node could do; 0: `plan_gbyte_s`
    direct: bool = True  # GPUDirect RDMA works with that GPU, or it is not known that it does not
    gpu: str | None = None
    functions: frozenset[str] = frozenset()  # PCI functions on that path, both ends included
    slowest: str | None = None  # label of the device whose link is the slowest of that path
    copied_by: frozenset[str] = frozenset()  # "rule subject" of the findings that turn GPUDirect RDMA off here


def rail_gbyte_s(rail: RailFacts, healthy: bool) -> float:
    """What NCCL counts for a NIC: the least of its network and the path to its GPU."""
    seen = heal_rail(rail) if healthy else rail
    return min(seen.network_gbyte_s, seen.plan_gbyte_s)


def heal_rail(rail: RailFacts) -> RailFacts:
    """The rail as the best ones of its node are: at their rate, in a slot like theirs, with GPUDirect RDMA."""
    plan = rail.healthy_plan_gbyte_s or rail.plan_gbyte_s
    return rail._replace(
        network_gbyte_s=rail.healthy_network_gbyte_s, plan_gbyte_s=plan, wire_gbyte_s=plan, direct=True
    )


def merge_rails(rails: Iterable[float], gpus: int) -> tuple[float, ...]:
    """NICs as NCCL gets them: several for each GPU are one device (ports of a card, or merged by the EFA plugin)."""
    bandwidth = sorted(rails, reverse=True)
    if not gpus or len(bandwidth) <= gpus or len(bandwidth) % gpus:
        return tuple(bandwidth)
    rails_per_gpu = len(bandwidth) // gpus
    return tuple(sum(bandwidth[start : start + rails_per_gpu]) for start in range(0, len(bandwidth), rails_per_gpu))


def read_rails(report: Report, gpus: list[Gpu]) -> list[RailFacts]:
    """Every port of the NICs for jobs whose rate is known, or that of its siblings."""
    nics = [nic for nic in report.topology.host_nics if nic.role == "rail" and not nic.virtual_function]
    ports = [(nic, port) for nic in nics for port in nic.ports]
    rates = [port.rate_gbit_s for _, port in ports if port.state == "ACTIVE" and port.rate_gbit_s]
    best_rate = max(rates, default=0.0)
    rows = []
    for nic in nics:
        for port in nic.ports or [Port(port=1)]:
            rate = (port.rate_gbit_s or 0.0) if port.state == "ACTIVE" else 0.0
            if rate or best_rate:
                rows.append(_read_rail(report, nic, rate / 8, max(rate, best_rate) / 8, gpus))
    best_plan = max((rail.plan_gbyte_s for rail in rows), default=0.0)
    return [rail._replace(healthy_plan_gbyte_s=best_plan) for rail in rows]


def _read_rail(report: Report, nic: Nic, network: float, healthy: float, gpus: list[Gpu]) -> RailFacts:
    ids = {gpu.id: gpu for gpu in gpus}
    near = [path for path in report.topology.paths if {path.a, path.b} & ids.keys() and nic.id in (path.a, path.b)]
    near.sort(
        key=lambda path: (
            NEAREST_FIRST.index(path.kind) if path.kind in NEAREST_FIRST else 9,
            -(path.bandwidth_gbyte_s or 0),
        )
    )
    best = near[0] if near else None
    gpu = ids.get(best.a) or ids.get(best.b) if best else None
    functions = frozenset(
        {nic.id, nic.pci or nic.id, *(best.hops if best else ()), *([gpu.pci or gpu.id] if gpu else [])}
    )
    plan = _maximum(report, functions) or healthy
    slowest = _label(report, best.limiting if best else None)
    wire = best.bandwidth_gbyte_s * NCCL_SHARE if best and best.bandwidth_gbyte_s else plan
    causes = {
        cause
        for row in report.gpudirect
        if row.verdict == "blocked" and row.nic == nic.id and gpu and row.gpu == gpu.id
        for cause in row.causes
    }
    copied_by = frozenset(cause for cause in causes if cause.partition(" ")[0] in _COPYING)
    label = nic.rdma_device or nic.label
    return RailFacts(
        label,
        nic.pci,
        network,
        healthy,
        plan,
        min(wire, plan),
        direct=not copied_by and not any(cause.startswith(_TOO_FAR) for cause in causes),
        gpu=gpu.label if gpu else None,
        functions=functions,
        slowest=slowest,
        copied_by=copied_by,
    )


def _label(report: Report, function: str | None) -> str | None:
    """A GPU, a NIC, or the address of a port of a switch."""
    if function is None:
        return None
    labels = {gpu.pci: gpu.label for gpu in report.topology.gpus}
    return labels.get(function) or next(
        (nic.rdma_device or nic.label for nic in report.topology.host_nics if nic.pci == function), function
    )


def _maximum(report: Report, functions: frozenset[str]) -> float | None:
    """What the slowest link of a path could do: of each link the lesser of its two ends, as NCCL reads it."""
    rows = {function.id: function for function in report.topology.pci}
    fastest = []
    for name in functions:
        function = rows.get(name)
        if function is None or function.port_type in _UPPER_ENDS or function.parent not in functions:
            continue  # its link is reported by the function below it, or is not on this path
        port = rows.get(function.parent or "")
        far_end = port if port is not None and port.port_type in _UPPER_ENDS else None  # else its link is its own
        link, above = _known_link(function), _known_link(far_end)
        if link is not None:
            speed, width = link if above is None else (min(link[0], above[0]), min(link[1], above[1]))
            fastest.append(pcie_gbyte_s(speed, width))
    return min(fastest, default=None)


def _known_link(function: PciFunction | None) -> tuple[float, int] | None:
    """Speed and width that one end could do."""
    link = function.link if function else None
    if link is None or link.quality.state == "untrusted" or not link.max_speed_gt_s or not link.max_width:
        return None
    return link.max_speed_gt_s, link.max_width
