"""GPUs, accelerators and NVSwitches of the report: those on the bus and those of the driver, joined by PCI address."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from agent.assemble.driver_gpus import DriverGpus
from agent.assemble.facts import build_row, sort_key
from agent.model.gpu import C2c, Fabric, Gpu, GpuHealth, GpuLink, GpuPcie, Mig, NvSwitch, Partition, Remote, XgmiPorts
from agent.model.pci import PciFunction
from agent.platforms.devices import ACCELERATOR_MAKERS, find_device, is_accelerator, is_nvswitch
from probes.gpu import facts as driver_gpu

if TYPE_CHECKING:
    from probes.neuron.errors import NeuronErrors
    from probes.pci import facts as pci

_DRIVERS = {  # that of Ascend NPUs has another name in each release
    "0x10de": "nvidia",
    "0x1002": "amdgpu",
    "0x1da3": "habanalabs",
    "0x1d0f": "neuron-driver",
}
_PARTITIONS = {"SPX": 1, "DPX": 2, "TPX": 3, "QPX": 4}
# Compute dies of one GPU, each a partition in CPX: MI300A, MI300X, MI308X, MI325X, MI350X, MI355X
_COMPUTE_DIES = {"0x74a0": 6, "0x74a1": 8, "0x74a2": 4, "0x74a5": 8, "0x75a0": 8, "0x75a3": 8}
_HOST_BRIDGE = "0x0600"
_NO_PERMISSION = "NO_PERMISSION"  # as NVML returns it


class _GpuSources(msgspec.Struct, frozen=True):
    """One GPU from both sources: `row` from the bus, `gpu` from the driver."""

    id: str
    row: PciFunction | None
    gpu: driver_gpu.Gpu | None


def build_gpus(rows: Sequence[PciFunction], driver: DriverGpus, limit: str | None, of_lspci: bool = False) -> list[Gpu]:
    """One row per accelerator on the bus, and per GPU that only the driver lists.

    `limit`: the container or job that this process runs in, and that hides devices. `of_lspci`: lspci alone lists the
    functions, and a filter may have cut its output.
    """
    is_cut = of_lspci and not any((r.class_code or "").startswith(_HOST_BRIDGE) for r in rows)
    listed = {g.address: g for g in driver.gpus if g.address}
    on_bus = {r.id: r for r in rows if (_is_gpu(r, driver) or r.id in listed) and not r.physical_function}
    seen = [_GpuSources(row.id, row, listed.get(row.id)) for row in on_bus.values()]
    only_listed = [g for g in driver.gpus if g.address not in on_bus]
    seen += [_GpuSources(_gpu_id(gpu, place), None, gpu) for place, gpu in enumerate(only_listed)]
    seen.sort(key=lambda pair: sort_key(pair.id))
    return _GpuBuilder(seen, rows, driver, limit, is_cut).build()


def _is_gpu(row: PciFunction, driver: DriverGpus) -> bool:
    return is_accelerator(row.vendor, row.device, row.class_code) or row.id in driver.bound


def _gpu_id(gpu: driver_gpu.Gpu, place: int) -> str:
    if gpu.address:
        return gpu.address
    return f"gpu-index-{gpu.index}" if gpu.index is not None else gpu.uuid or f"gpu-{place}"


class _GpuBuilder:
    """Builds the rows of one host; holds what every row needs of the others."""

    def __init__(
        self,
        seen: Sequence[_GpuSources],
        rows: Sequence[PciFunction],
        driver: DriverGpus,
        limit: str | None,
        is_cut: bool,
    ) -> None:
        self.pairs = seen
        self.driver = driver
        self.limit = limit
        self.id_by_index = {s.gpu.index: s.id for s in seen if s.gpu and s.gpu.index is not None}
        self.gpu_ids = {s.id for s in seen}
        self.is_cut = is_cut
        self.switch_ids = {r.id for r in rows if is_nvswitch(r.vendor, r.device, r.class_code)}

    def build(self) -> list[Gpu]:
        return [self._row(pair, self._label(place, pair)) for place, pair in enumerate(self.pairs)]

    def _label(self, place: int, pair: _GpuSources) -> str:
        """`GPU3` uses the driver's index. If the driver numbers no GPU: bus order; otherwise the address.

        Ascend NPUs have numbers of their own, in another order than the bus; what one GPU's part of an output states
        has no place in an order.
        """
        if pair.gpu and pair.gpu.index is not None:
            return f"GPU{pair.gpu.index}"
        of_huawei = pair.row is not None and pair.row.vendor == "0x19e5"
        is_part = ":" in pair.id and (self.is_cut or (pair.row is None and pair.gpu is not None))
        return f"GPU@{pair.id}" if self.id_by_index or of_huawei or is_part else f"GPU{place}"

    def _row(self, pair: _GpuSources, label: str) -> Gpu:
        row, gpu = pair.row, pair.gpu or driver_gpu.Gpu()
        held = self.driver.bound.get(pair.id)
        uuid, model, vbios = (held.uuid, held.model, held.vbios) if held else (None, None, None)
        device = find_device(row.vendor, row.device) if row else find_device(gpu.vendor, gpu.device)
        state, error = self._driver_state(pair)
        return build_row(
            Gpu,
            gpu,
            id=pair.id,
            label=label,
            uuid=gpu.uuid or uuid,
            name=gpu.name or model or (device.name if device else row.name if row else None),
            vendor=_vendor(row.vendor if row else gpu.vendor),
            pci=row.id if row else None,
            numa_node=row.numa_node if row and row.numa_node is not None else gpu.numa_node,
            architecture=gpu.architecture or (device.architecture if device else None),
            vbios=gpu.vbios or vbios,
            pstate=f"P{gpu.pstate}" if gpu.pstate is not None else None,
            pcie=_pcie(gpu),
            mig=_mig(gpu),
            driver_state=state,
            driver_error=error,
            partition=_partition(gpu, row.device if row else gpu.device),
            pcie_peers=sorted(gpu.pcie_peers, key=sort_key) if gpu.pcie_peers is not None else None,
            xgmi=build_row(XgmiPorts, gpu.xgmi) if gpu.xgmi else None,
            links=[self._link(link) for link in sorted(gpu.nvlinks, key=lambda link: link.link)],
            links_known=(bool(gpu.nvlinks) or gpu.nvlink_supported is False) and not gpu.nvlinks_unread,
            links_reason=gpu.nvlink_reason or ("no NVLink" if gpu.nvlink_supported is False else None),
            fabric=_fabric(gpu.fabric) if gpu.fabric else None,
            c2c=_c2c(gpu),
            p2p=self._p2p(gpu.index),
            health=build_row(GpuHealth, gpu.health) if gpu.health else None,
            pcie_counters=_pcie_counters(gpu),
        )

    def _driver_state(self, pair: _GpuSources) -> tuple[str, str | None]:
        """The driver's state for a GPU, and the reason."""
        if pair.gpu and self.driver.list_source:
            return "unknown", f"{self.driver.list_source}: not the driver's own list"
        if pair.gpu and pair.gpu.error == _NO_PERMISSION:
            return "unknown", f"this process may not open it ({_NO_PERMISSION})"
        if pair.gpu:
            return ("error", pair.gpu.error) if pair.gpu.error else ("open", None)
        row = pair.row
        if row is None or (row.driver is None and row.vendor != "0x10de"):
            return "unknown", None
        if row.driver == "":
            return "no_driver", None
        if (row.driver or "").startswith("vfio"):
            return "vfio", None
        vendor = row.vendor or "0x10de"
        if vendor != "0x10de" and vendor not in self.driver.answered:
            return "unknown", "no source here covers this vendor's driver"
        if vendor in _DRIVERS and row.driver not in (None, _DRIVERS[vendor]):
            return "no_driver", f"bound to {row.driver}"
        if vendor not in self.driver.answered:
            return "unknown", "the driver's list of GPUs could not be read"
        if vendor in self.driver.gaps:
            return "unknown", self.driver.gaps[vendor]
        if (proc_gpu := self.driver.bound.get(pair.id)) and proc_gpu.excluded:
            return "unknown", "the driver is set to leave this GPU out"
        if self.limit:
            return "unknown", f"{self.limit} sees only the GPUs that it was given"
        return "not_open", None

    def _link(self, link: driver_gpu.NvLink) -> GpuLink:
        return build_row(
            GpuLink,
            link,
            signal_gbyte_s=round(link.speed_gbyte_s, 3) if link.speed_gbyte_s is not None else None,
            remote=self._remote(link),
        )

    def _remote(self, link: driver_gpu.NvLink) -> Remote | None:
        if link.remote_kind is None and link.remote_address is None:
            return None
        kind = link.remote_kind or "unknown"
        if link.remote_address in self.gpu_ids:
            kind = "gpu"
        elif link.remote_address in self.switch_ids:
            kind = "switch"
        return Remote(kind=kind, id=link.remote_address, link=link.remote_link)

    def _p2p(self, index: int | None) -> dict[str, dict[str, str]] | None:
        if index is None or not self.driver.p2p:
            return None
        peers = {
            b: capabilities for (a, b), capabilities in self.driver.p2p.items() if a == index and b in self.id_by_index
        }
        by_id = {self.id_by_index[peer]: dict(sorted(capabilities.items())) for peer, capabilities in peers.items()}
        return {peer: by_id[peer] for peer in sorted(by_id, key=sort_key)} or None


def _vendor(vendor: str | None) -> str | None:
    maker = ACCELERATOR_MAKERS.get(vendor or "0x10de")
    return maker.name if maker else None


def _pcie(gpu: driver_gpu.Gpu) -> GpuPcie | None:
    row = GpuPcie(
        generation=gpu.link_generation,
        width=gpu.link_width,
        max_generation=gpu.link_max_generation,
        max_width=gpu.link_max_width,
    )
    return None if row == GpuPcie() else row


def _partition(gpu: driver_gpu.Gpu, device: str | None) -> Partition | None:
    mode = gpu.compute_partition
    if gpu.partitions is None and mode is None and gpu.memory_partition is None:
        return None
    expected = _COMPUTE_DIES.get(device or "") if mode == "CPX" else _PARTITIONS.get(mode or "")
    return Partition(compute=mode, memory=gpu.memory_partition, count=gpu.partitions, expected=expected)


def _mig(gpu: driver_gpu.Gpu) -> Mig | None:
    if gpu.mig_current is None and gpu.mig_pending is None and not gpu.mig_instances:
        return None
    return Mig(current=gpu.mig_current, pending=gpu.mig_pending, instances=sorted(gpu.mig_instances))


def _fabric(fabric: driver_gpu.GpuFabric) -> Fabric:
    registered = fabric.state == "completed"  # before that NVML answers with zeros
    return build_row(Fabric, fabric) if registered else build_row(Fabric, fabric, clique=None, cluster_uuid=None)


def _c2c(gpu: driver_gpu.Gpu) -> C2c | None:
    if gpu.c2c_enabled is None and not gpu.c2c_links:
        return None
    return C2c(
        enabled=gpu.c2c_enabled,
        links=list(gpu.c2c_links),
        max_gbyte_s=gpu.c2c_max_gbyte_s,
        errors=dict(sorted(gpu.c2c_errors.items())) if gpu.c2c_errors else {},
    )


def _pcie_counters(gpu: driver_gpu.Gpu) -> dict[str, int]:
    """Counters by field, plus the replays that every driver reports."""
    replays = {"replays": gpu.replays} if gpu.replays is not None else {}
    return dict(sorted({**replays, **(gpu.pcie_counters or {})}.items()))


def build_nvswitches(functions: Iterable[pci.PciFunction]) -> list[NvSwitch]:
    """One row per switch; those of Blackwell and of switch trays are not PCI devices of the host."""
    return [NvSwitch(id=f.address, pci=f.address) for f in functions if is_nvswitch(f.vendor, f.device, f.class_code)]


def add_error_counts(gpus: Sequence[Gpu], errors: NeuronErrors) -> list[Gpu]:
    """GPUs with the counts of the device of their number."""
    return [_with_counts(gpu, errors) if gpu.vendor == "Amazon" else gpu for gpu in gpus]


def _with_counts(gpu: Gpu, errors: NeuronErrors) -> Gpu:
    counts = errors.devices.get(gpu.index, {}) if gpu.index is not None else {}
    return msgspec.structs.replace(gpu, error_counts=dict(sorted(counts.items())))
