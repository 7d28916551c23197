"""GPUs and accelerators of the report: those of the bus and those of the driver, joined by PCI address."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from agent.assemble.driver_gpus import DriverGpus
from agent.assemble.identity import identity
from agent.model.gpu import C2c, Fabric, Gpu, GpuLink, GpuPcie, Mig, Remote
from agent.model.pci import PciFunction
from agent.platforms.devices import is_accelerator, is_nvswitch, known
from probes.gpu import facts as said
from probes.kernel.modules import NvidiaGpu

_VENDORS = {"0x10de": "NVIDIA", "0x1002": "AMD", "0x19e5": "Huawei"}


class _Seen(NamedTuple):
    """One GPU from both sides: `row` of the bus, `gpu` of the driver."""

    id: str
    row: PciFunction | None
    gpu: said.Gpu | None


def gpus_of(rows: Sequence[PciFunction], driver: DriverGpus, container: str | None) -> list[Gpu]:
    """One row for every accelerator on the bus, and for every GPU that only the driver names."""
    listed = {g.address: g for g in driver.gpus if g.address}
    on_bus = {r.id: r for r in rows if (_is_gpu(r, driver) or r.id in listed) and not r.physical_function}
    seen = [_Seen(row.id, row, listed.get(row.id)) for row in on_bus.values()]
    only_listed = [g for g in driver.gpus if g.address not in on_bus]
    seen += [_Seen(_identity(gpu, place), None, gpu) for place, gpu in enumerate(only_listed)]
    seen.sort(key=lambda each: identity(each.id))
    return _Rows(seen, rows, driver, container).made()


def _is_gpu(row: PciFunction, driver: DriverGpus) -> bool:
    return is_accelerator(row.vendor, row.device, row.class_code) or row.id in driver.held


def _identity(gpu: said.Gpu, place: int) -> str:
    if gpu.address:
        return gpu.address
    return f"gpu-index-{gpu.index}" if gpu.index is not None else gpu.uuid or f"gpu-{place}"


class _Rows:
    """Makes the rows of one host; holds what every row needs to know of the others."""

    def __init__(
        self, seen: Sequence[_Seen], rows: Sequence[PciFunction], driver: DriverGpus, container: str | None
    ) -> None:
        self.seen = seen
        self.driver = driver
        self.container = container
        self.id_by_index = {s.gpu.index: s.id for s in seen if s.gpu and s.gpu.index is not None}
        self.gpu_ids = {s.id for s in seen}
        self.switch_ids = {r.id for r in rows if is_nvswitch(r.vendor, r.device, r.class_code)}

    def made(self) -> list[Gpu]:
        return [self._row(each, self._label(place, each)) for place, each in enumerate(self.seen)]

    def _label(self, place: int, each: _Seen) -> str:
        """`GPU3` is the driver's word. Where the driver numbers none, bus order does; else the address says it."""
        if each.gpu and each.gpu.index is not None:
            return f"GPU{each.gpu.index}"
        return f"GPU@{each.id}" if self.id_by_index else f"GPU{place}"

    def _row(self, each: _Seen, label: str) -> Gpu:
        row, told = each.row, each.gpu or said.Gpu()
        held = self.driver.held.get(each.id, NvidiaGpu())
        device = known(row.vendor, row.device) if row else None
        state, error = self._driver_state(each)
        return Gpu(
            id=each.id,
            label=label,
            index=told.index,
            uuid=told.uuid or held.uuid,
            serial=told.serial,
            minor=told.minor,
            name=told.name or held.model or (device.name if device else row.name if row else None),
            vendor=_VENDORS.get(row.vendor or "0x10de") if row else "NVIDIA",
            pci=row.id if row else None,
            numa_node=row.numa_node if row and row.numa_node is not None else told.numa_node,
            memory_numa_node=told.memory_numa_node,
            architecture=told.architecture or (device.architecture if device else None),
            compute_capability=told.compute_capability,
            vbios=told.vbios or held.vbios,
            memory_mib=told.memory_mib,
            bar1_mib=told.bar1_mib,
            module_id=told.module_id,
            pstate=f"P{told.pstate}" if told.pstate is not None else None,
            pcie=_pcie(told),
            mig=_mig(told),
            virtualization=told.virtualization,
            driver_state=state,
            driver_error=error,
            links=[self._link(link) for link in sorted(told.nvlinks, key=lambda link: link.link)],
            links_known=bool(told.nvlinks) or told.nvlink_supported is False,
            links_reason=told.nvlink_reason or ("no NVLink" if told.nvlink_supported is False else None),
            fabric=_fabric(told.fabric),
            c2c=_c2c(told),
            addressing_mode=told.addressing_mode,
            p2p=self._p2p(told.index),
            recovery_action=told.recovery_action,
            nvlink_bandwidth_mode=told.nvlink_bandwidth_mode,
            pcie_counters=_pcie_counters(told),
        )

    def _driver_state(self, each: _Seen) -> tuple[str, str | None]:
        """How the driver stands to a GPU, and what there is to say about it."""
        if each.gpu and self.driver.told_by:
            return "unknown", f"{self.driver.told_by}: not the driver's own list"
        if each.gpu:
            return ("error", each.gpu.error) if each.gpu.error else ("open", None)
        row = each.row
        if row is None or (row.driver is None and row.vendor != "0x10de"):
            return "unknown", None
        if row.driver == "":
            return "no_driver", None
        if (row.driver or "").startswith("vfio"):
            return "vfio", None
        if row.vendor != "0x10de":
            return "unknown", "no source here speaks for this vendor's driver"
        if row.driver not in (None, "nvidia"):
            return "no_driver", f"bound to {row.driver}"
        if not self.driver.answered:
            return "unknown", "the driver's list of GPUs could not be read"
        if self.driver.gap:
            return "unknown", self.driver.gap
        if (held := self.driver.held.get(each.id)) and held.excluded:
            return "unknown", "the driver was told to leave this GPU out"
        if self.container:
            return "unknown", "a container sees only the GPUs that it was given"
        return "not_open", None

    def _link(self, link: said.NvLink) -> GpuLink:
        return GpuLink(
            link=link.link,
            state=link.state,
            version=link.version,
            signal_gbyte_s=round(link.speed_gbyte_s, 3) if link.speed_gbyte_s is not None else None,
            remote=self._remote(link),
            errors=dict(sorted(link.errors.items())) if link.errors else {},
        )

    def _remote(self, link: said.NvLink) -> Remote | None:
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
        peers = {b: said for (a, b), said in self.driver.p2p.items() if a == index and b in self.id_by_index}
        by_id = {self.id_by_index[peer]: dict(sorted(said.items())) for peer, said in peers.items()}
        return {peer: by_id[peer] for peer in sorted(by_id, key=identity)} or None


def _pcie(told: said.Gpu) -> GpuPcie | None:
    row = GpuPcie(
        generation=told.link_generation,
        width=told.link_width,
        max_generation=told.link_max_generation,
        max_width=told.link_max_width,
    )
    return None if row == GpuPcie() else row


def _mig(told: said.Gpu) -> Mig | None:
    if told.mig_current is None and told.mig_pending is None and not told.mig_instances:
        return None
    return Mig(current=told.mig_current, pending=told.mig_pending, instances=sorted(told.mig_instances))


def _fabric(told: said.Fabric | None) -> Fabric | None:
    if told is None:
        return None
    health = dict(sorted(told.health.items())) if told.health else {}
    registered = told.state == "completed"  # before that NVML answers with zeros
    return Fabric(
        state=told.state,
        status=told.status,
        clique=told.clique if registered else None,
        cluster_uuid=told.cluster_uuid if registered else None,
        health=health,
    )


def _c2c(told: said.Gpu) -> C2c | None:
    if told.c2c_enabled is None and not told.c2c_links:
        return None
    return C2c(
        enabled=told.c2c_enabled,
        links=list(told.c2c_links),
        max_gbyte_s=told.c2c_max_gbyte_s,
        errors=dict(sorted(told.c2c_errors.items())) if told.c2c_errors else {},
    )


def _pcie_counters(told: said.Gpu) -> dict[str, int]:
    """By field, and the replays that every driver tells."""
    replays = {"replays": told.replays} if told.replays is not None else {}
    return dict(sorted({**replays, **(told.pcie_counters or {})}.items()))
