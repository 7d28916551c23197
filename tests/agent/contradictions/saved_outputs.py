"""The outputs that people save of a machine, made from its report, in the forms of the tools."""

from __future__ import annotations

import msgspec

from agent.model.node import Event
from agent.model.report import Report
from tests.agent.contradictions import accelerator_outputs, gpu_outputs, network_outputs
from tests.agent.contradictions.pci_outputs import render_lspci


def render_outputs(report: Report, interfaces: int | None = None) -> dict[str, str]:
    """Name of the file -> text, of the outputs that this machine has something to print in. `interfaces`: of so many
    the outputs about one are made; None: of all."""
    outputs = {
        "lspci_-D_-nn_-vvv.txt": render_lspci(report.topology.pci),
        "nvidia-smi_-q.txt": gpu_outputs.render_query(report),
        "nvidia-smi_-L.txt": gpu_outputs.render_list(report),
        "nvidia-smi_nvlink_-s.txt": gpu_outputs.render_nvlink(report),
        "nvidia-smi_topo_-m.txt": gpu_outputs.render_matrix(report),
        "rocm-smi_--showtopo.txt": gpu_outputs.render_showtopo(report),
        "ibstat.txt": network_outputs.render_ibstat(report),
        "ibv_devinfo_-v.txt": network_outputs.render_devinfo(report),
        "rdma_link.txt": network_outputs.render_rdma_link(report),
        "show_gids.txt": network_outputs.render_gids(report),
        "ip_-d_link.txt": network_outputs.render_ip_link(report),
        "lsmod.txt": _lsmod(report),
        "cat_proc_cmdline.txt": f"{report.node.cmdline}\n" if report.node.cmdline else "",
        "dmesg.txt": _dmesg(report),
        **accelerator_outputs.render_accelerators(report),
    }
    for netdev in report.topology.netdevs[:interfaces]:
        outputs |= dict(network_outputs.render_of_interface(netdev))
    return {name: text for name, text in outputs.items() if text}


def _dmesg(report: Report) -> str:
    types = {function.iommu_type for function in report.topology.pci} - {None}
    default = [f"iommu: Default domain type: {'Passthrough' if 'identity' in types else 'Translated'}"] if types else []
    lines = [*default, *map(_line, report.events)]
    return "".join(f"[{n:5}.000000] {line}\n" for n, line in enumerate(lines))


_LINES = {  # what the driver writes of an event whose text is only a name for it
    "xid": "NVRM: Xid (PCI:{bus}): {code}, pid=77, name=python, GPU has fallen off the bus.",
    "mlx5": "mlx5_core {subject}: poll_health:825:(pid 0): device's health compromised - reached miss count",
    "amd_fatal": "amdgpu {subject}: amdgpu: uncorrectable hardware error({code}) detected!",
    "amd_reset": "amdgpu {subject}: amdgpu: GPU reset begin!",
    "amd_bad_pages": "amdgpu {subject}: amdgpu: RAS records:129 exceed threshold",
}


def _line(event: Event) -> str:
    form = _LINES.get(event.kind) if len(event.text) < _NAMES else None
    return form.format(bus=(event.subject or "")[:10], **msgspec.structs.asdict(event)) if form else event.text


_NAMES = 40  # no sentence of a driver is shorter


def _lsmod(report: Report) -> str:
    rows = [f"{module.name:<20} 16384  0" for module in report.software.modules]
    return "\n".join(["Module                  Size  Used by", *rows, ""]) if rows else ""
