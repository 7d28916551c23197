"""The path between every GPU and every other GPU and NIC: kind, hops, bandwidth, and the limiting hop.

The kind is derived from the PCI tree and compared with what the driver reports for the same pair:

PIX   the nearest common bridge is one PCIe switch, no second switch between (or one port with both below it)
PXB   more than one switch, no host bridge
PHB   the same host bridge
NODE  host bridges of one NUMA node
SYS   between NUMA nodes

A source without host bridges (a NCCL topology) gives NODE for PHB: no more is known.
An interconnect that only the driver reports (NV<n>, C2C, XGMI, HCCS, SIO, UB) is the kind; `pcie_kind` and `hops`
stay those of the path over PCIe. Bandwidth is that of the slowest conclusive link: an idle GPU link counts with
its capability; an untrusted, sleeping or unreadable link is ignored. The links between host bridges are unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from agent.assemble.facts import sort_key
from agent.assemble.pcie_tree import BridgePort, PcieTree
from agent.model.gpu import Gpu
from agent.model.nic import Nic
from agent.model.node import NumaNode
from agent.model.pci import PciFunction, bandwidth_gbyte_s
from agent.model.topology import NEAREST_FIRST, Disagreement, Path
from probes.gpu.facts import PairCell

_OLD_KINDS = {"SOC": "SYS", "PSB": "PIX"}  # of old drivers; two GPUs of one board share its switch
# Payload of one NVLink in one direction (GB/s) by the signalling rate that the driver reports: NVLink 2 and 3 print
# 25.781 for 25, from NVLink 4 on 16/17 of the signalling rate is payload
_NVLINK_PAYLOAD = {25.781: 25.0, 26.562: 25.0, 53.125: 50.0}
_MESH_OF_EIGHT = "0xd802"  # Ascend 910B
_HCCS_PORT_GBYTE_S = 28.0  # 4 lanes of 56 Gbit/s (HCCS_LANE_SPEED of hicann/driver)
MOST_GPUS = 256  # of one host
MOST_NIC_PAIRS = 20_000  # of a GPU and a NIC, which a report of 4 MiB must list


class _Step(msgspec.Struct, frozen=True):
    """A function whose link to the port above it is part of the path."""

    id: str
    depth: int  # bridges above it
    gbyte_s: float


class DriverMatrix:
    """The driver's topology matrix, by the ids of the report's rows."""

    def __init__(
        self,
        cells: Iterable[tuple[str, PairCell]],
        gpus: Sequence[Gpu],
        nics: Sequence[Nic],
        nic_names: Mapping[str, str],
    ) -> None:
        by_name = {nic.rdma_device or nic.label: nic.id for nic in nics}
        ids = {gpu.label: gpu.id for gpu in gpus}
        ids |= {gpu.id: gpu.id for gpu in gpus}
        ids |= {short: by_name[name] for short, name in nic_names.items() if name in by_name}
        self.pairs: dict[frozenset[str], list[tuple[str, str]]] = {}
        for source, cell in cells:
            if cell.a in ids and cell.b in ids:
                kind = _OLD_KINDS.get(cell.kind, cell.kind)
                self.pairs.setdefault(frozenset((ids[cell.a], ids[cell.b])), []).append((source, kind))

    def kinds_of(self, a: str, b: str) -> Sequence[tuple[str, str]]:
        """(source, kind) of a pair in every source, NVML first."""
        return self.pairs.get(frozenset((a, b)), ())


class PathFinder:
    """Finds the PCIe paths of one host."""

    def __init__(self, tree: PcieTree, rows: Sequence[PciFunction], nodes: Sequence[NumaNode]) -> None:
        self.tree = tree
        self.rows = {row.id: row for row in rows}
        self.single_node = sum(node.cpus != "" for node in nodes) == 1
        self._hops: dict[str, _Step | None] = {}

    def between(self, a: str, b: str) -> tuple[str | None, list[str], float | None, str | None]:
        """Kind, hops (a's side first), bandwidth (GB/s) and limiting function of the path over PCIe."""
        if a not in self.rows or b not in self.rows:
            return None, [], None, None
        up_a, up_b = self.tree.above(a), self.tree.above(b)
        common = next((bridge for bridge in up_a if bridge in set(up_b)), None)
        side_a = up_a[: up_a.index(common)] if common else up_a
        side_b = up_b[: up_b.index(common)] if common else up_b
        kind = self._below_bridge(common, (*side_a, *side_b)) if common else self._over_host(a, b)
        if kind is None:
            return None, [], None, None
        hops = [*side_a, *([common] if common else []), *reversed(side_b)]
        bandwidth, limiting = self._slowest((a, *side_a, b, *side_b))
        return kind, hops, bandwidth, limiting

    def device(self, place: str | None) -> str | None:
        """PCI device id of a function."""
        row = self.rows.get(place or "")
        return row.device if row and row.vendor == "0x19e5" else None

    def _below_bridge(self, common: str, between: Iterable[str]) -> str:
        switches = [place for place in (common, *between) if self.tree.port(place) is BridgePort.UP]
        return "PIX" if len(switches) <= 1 else "PXB"

    def _over_host(self, a: str, b: str) -> str | None:
        root_a, root_b = self.tree.root_bus(a), self.tree.root_bus(b)
        if root_a is None or root_b is None:
            return None
        if root_a and root_a == root_b:
            return "PHB"
        node_a, node_b = self.rows[a].numa_node, self.rows[b].numa_node
        if self.single_node or (node_a is not None and node_a == node_b):
            return "NODE"
        return None if node_a is None or node_b is None else "SYS"

    def _slowest(self, places: Iterable[str]) -> tuple[float | None, str | None]:
        """The slowest hop; of equal ones the nearest to the root, as the kernel does."""
        hops = [hop for place in places if (hop := self._hop(place))]
        if not hops:
            return None, None
        least = min(hops, key=lambda hop: (hop.gbyte_s, hop.depth, sort_key(hop.id)))
        return least.gbyte_s, least.id

    def _hop(self, place: str) -> _Step | None:
        if place not in self._hops:
            gbyte_s = self._capacity(place)
            self._hops[place] = None if gbyte_s is None else _Step(place, len(self.tree.above(place)), gbyte_s)
        return self._hops[place]

    def _capacity(self, place: str) -> float | None:
        """Bandwidth of the link above a function; root and downstream ports are represented by the device below."""
        row = self.rows[place]
        if self.tree.port(place) in (BridgePort.ROOT, BridgePort.DOWN) or row.link is None:
            return None
        if row.link.quality.state == "conclusive":
            return row.link.bandwidth_gbyte_s
        if row.link.quality.state != "idle":
            return None
        above = self.rows.get(row.parent or "")
        ends = [link for link in (row.link, above.link if above else None) if link]
        speeds = [link.max_speed_gt_s for link in ends if link.max_speed_gt_s is not None]
        widths = [link.max_width for link in ends if link.max_width is not None]
        return bandwidth_gbyte_s(min(speeds, default=None), min(widths, default=None))


class TooManyDevices(Exception):
    """A source that lists more devices than a host can have; the message is for people."""

    @classmethod
    def of_gpus(cls) -> TooManyDevices:
        """More GPUs than a report is made for."""
        return cls(f"lists more than {MOST_GPUS} GPUs: more than one host can have")


def build_paths(finder: PathFinder, gpus: Sequence[Gpu], nics: Sequence[Nic], matrix: DriverMatrix) -> list[Path]:
    """One row per GPU-GPU and GPU-NIC pair. Raises TooManyDevices: pairs grow with the square."""
    path_nics = select_path_nics(nics)
    if len(gpus) > MOST_GPUS:
        raise TooManyDevices.of_gpus()
    if len(gpus) * len(path_nics) > MOST_NIC_PAIRS:
        raise TooManyDevices(f"{len(gpus)} GPUs and {len(path_nics)} NICs are more than one host can have")
    pairs: list[tuple[Gpu, Gpu | Nic]] = [(a, b) for place, a in enumerate(gpus) for b in gpus[place + 1 :]]
    pairs += [(a, b) for a in gpus for b in path_nics]
    return [_path(finder, a, b, matrix.kinds_of(a.id, b.id)) for a, b in pairs]


def select_path_nics(nics: Sequence[Nic]) -> list[Nic]:
    """Physical functions; virtual ones only if there are no others. Software devices have no paths."""
    hardware = [nic for nic in nics if not nic.software]
    return [nic for nic in hardware if not nic.virtual_function] or hardware


def _path(finder: PathFinder, a: Gpu, b: Gpu | Nic, driver_kinds: Sequence[tuple[str, str]]) -> Path:
    pcie, hops, bandwidth, limiting = finder.between(a.pci or "", b.pci or "")
    other = next(((source, kind) for source, kind in driver_kinds if kind in NEAREST_FIRST), None)
    link = next(((source, kind) for source, kind in driver_kinds if kind not in NEAREST_FIRST), None)
    differs = next(((source, kind) for source, kind in driver_kinds if kind in NEAREST_FIRST and kind != pcie), None)
    pcie_kind = pcie or (other[1] if other else None)
    source = "pci-tree" if pcie else other[0] if other else None
    kind = pcie_kind
    joined = _count_nvlinks(a, b) if isinstance(b, Gpu) and not driver_kinds else 0
    if link or joined:
        source, kind = link or ("nvidia-smi", f"NV{joined}")  # nvlink -R; NVML has pairs
        bandwidth = _hccs_bandwidth(finder, a, b) if kind == "HCCS" else _link_bandwidth(a, b, kind)
        limiting = None
    elif not driver_kinds and isinstance(b, Gpu) and _may_reach_other_gpus(a) and _may_reach_other_gpus(b):
        kind = source = bandwidth = limiting = None
    return Path(
        a=a.id,
        b=b.id,
        kind=kind,
        pcie_kind=pcie_kind,
        hops=hops,
        bandwidth_gbyte_s=bandwidth,
        limiting=limiting,
        source=source,
        disagrees=Disagreement(source=differs[0], kind=differs[1]) if pcie and differs else None,
    )


def _count_nvlinks(a: Gpu, b: Gpu) -> int:
    """Active NVLinks of a pair where each names the other as its far end and both counts agree; otherwise 0."""
    counts = [
        sum(link.state == "active" and link.remote is not None and link.remote.id == far.id for link in near.links)
        for near, far in ((a, b), (b, a))
    ]
    return counts[0] if counts[0] == counts[1] else 0


def _may_reach_other_gpus(gpu: Gpu) -> bool:
    """Whether links of a GPU may lead to another GPU: without a matrix, PCIe need not be the path."""
    known = ("gpu", "cpu", "network")
    return gpu.vendor == "Huawei" or any(
        link.state == "active" and (link.remote is None or link.remote.kind not in known) for link in gpu.links
    )


def _hccs_bandwidth(finder: PathFinder, a: Gpu, b: Gpu | Nic) -> float | None:
    """One of the seven ports of each NPU, where a board joins every pair by one (910B); None where ports differ."""
    if {finder.device(a.pci), finder.device(b.pci)} != {_MESH_OF_EIGHT} or not isinstance(b, Gpu):
        return None
    rates = {link.signal_gbyte_s for link in (*a.links, *b.links)} or {_HCCS_PORT_GBYTE_S}
    return rates.pop() if len(rates) == 1 else None


def _link_bandwidth(a: Gpu, b: Gpu | Nic, kind: str) -> float | None:
    """Payload (GB/s) of the direct links of a pair, where the driver reports the rate of each."""
    if not kind.startswith("NV"):
        rates = [link.signal_gbyte_s for link in a.links if link.remote is not None and link.remote.id == b.id]
        known = [rate for rate in rates if rate]
        return round(sum(known), 3) if known and len(known) == len(rates) else None
    rates = [link.signal_gbyte_s for link in a.links if link.state == "active" and link.signal_gbyte_s]
    if not kind[2:].isdecimal() or len(kind) > 6 or not rates:
        return None
    slowest = min(rate for rate in rates if rate)
    return round(int(kind[2:]) * _NVLINK_PAYLOAD.get(slowest, slowest), 3)
