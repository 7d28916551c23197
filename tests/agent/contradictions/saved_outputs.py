"""The outputs that people save of a machine, made from its report, in the forms of the tools."""

from __future__ import annotations

import re

from agent.model.report import Report

_CLASSES = {
    "0x0300": "VGA compatible controller", "0x0302": "3D controller", "0x0200": "Ethernet controller",
    "0x0207": "Infiniband controller", "0x0108": "Non-Volatile memory controller", "0x0604": "PCI bridge",
    "0x0600": "Host bridge", "0x0680": "Bridge", "0x1200": "Processing accelerators",
}  # fmt: skip


def render_outputs(report: Report) -> dict[str, str]:
    """Name of the file -> text, of the outputs that this machine has something to print in."""
    outputs = {
        "lspci_-D_-nn_-vvv.txt": _lspci(report),
        "nvidia-smi_-q.txt": _query(report),
        "nvidia-smi_-L.txt": _list(report),
        "nvidia-smi_nvlink_-s.txt": _nvlink(report),
        "nvidia-smi_topo_-m.txt": _matrix(report),
        "ibstat.txt": _ibstat(report),
        "rdma_link.txt": _rdma_link(report),
        "show_gids.txt": _gids(report),
        "lsmod.txt": _lsmod(report),
        "dmesg.txt": "".join(f"[{100 + n:5}.000000] {event.text}\n" for n, event in enumerate(report.events)),
    }
    return {name: text for name, text in outputs.items() if text}


def _nvidia(report: Report) -> list[tuple[int, str, str, str, str]]:
    return [
        (gpu.index, gpu.pci or "", gpu.uuid or "", gpu.serial or "N/A", gpu.name or "")
        for gpu in report.topology.gpus
        if gpu.index is not None and gpu.vendor == "NVIDIA" and gpu.driver_state == "open"
    ]


def _lspci(report: Report) -> str:
    blocks = []
    for function in report.topology.pci:
        code = (function.class_code or "0xffff")[:6]
        ids = f"{(function.vendor or '0xffff')[2:]}:{(function.device or '0xffff')[2:]}"
        lines = [f"{function.id} {_CLASSES.get(code, 'System peripheral')} [{code[2:]}]: Device [{ids}]"]
        link = function.link
        if link and link.max_speed_gt_s and link.speed_gt_s:
            lines.append("\tCapabilities: [40] Express (v2) Endpoint, MSI 00")
            lines.append(f"\t\tLnkCap:\tPort #0, Speed {link.max_speed_gt_s:g}GT/s, Width x{link.max_width}, ASPM none")
            lines.append(f"\t\tLnkSta:\tSpeed {link.speed_gt_s:g}GT/s, Width x{link.width}")
        lines += [f"\tKernel driver in use: {function.driver}"] if function.driver else []
        blocks.append("\n".join(lines) + "\n")
    return "\n".join(blocks)


def _query(report: Report) -> str:
    gpus = _nvidia(report)
    driver = report.software.driver.version
    head = f"\n==============NVSMI LOG==============\n\nDriver Version : {driver}\nAttached GPUs : {len(gpus)}\n"
    return head * bool(gpus) + "".join(
        f"GPU 0000{pci.upper()}\n    Product Name : {name}\n    Serial Number : {serial}\n    GPU UUID : {uuid}\n"
        for _, pci, uuid, serial, name in gpus
    )


def _list(report: Report) -> str:
    return "".join(f"GPU {index}: {name} (UUID: {uuid})\n" for index, _, uuid, _, name in _nvidia(report))


def _nvlink(report: Report) -> str:
    links = {gpu.index: [link for link in gpu.links if link.protocol == "nvlink"] for gpu in report.topology.gpus}
    return "".join(
        f"GPU {index}: {name} (UUID: {uuid})\n"
        + "".join(
            f"\t Link {link.link}: {f'{link.signal_gbyte_s:.3f} GB/s' if link.signal_gbyte_s else '<inactive>'}\n"
            for link in links[index]
        )
        for index, _, uuid, _, name in _nvidia(report)
        if links[index]
    )


def _matrix(report: Report) -> str:
    ids = [gpu.id for gpu in report.topology.gpus if gpu.index is not None and gpu.vendor == "NVIDIA"]
    nics = [nic for nic in report.topology.host_nics if nic.rdma_device]
    kinds = {frozenset((path.a, path.b)): path.kind for path in report.topology.paths}
    names = {**{gpu: f"GPU{n}" for n, gpu in enumerate(ids)}, **{nic.id: f"NIC{n}" for n, nic in enumerate(nics)}}
    rows = ["\t" + "\t".join(names.values())]
    for a, name in names.items():
        cells = [" X " if a == b else kinds.get(frozenset((a, b))) or "SYS" for b in names]
        rows.append("\t".join([name, *cells]))
    legend = [f"  NIC{n}: {nic.rdma_device}" for n, nic in enumerate(nics)]
    return "\n".join([*rows, "", "NIC Legend:", "", *legend, ""]) if len(ids) > 1 else ""


def _guid(text: str | None) -> str:
    return "0x" + (text or "").replace(":", "")


def _ibstat(report: Report) -> str:
    lines = []
    for nic in report.topology.host_nics:
        if not nic.rdma_device or not nic.ports or not nic.node_guid:
            continue
        lines += [f"CA '{nic.rdma_device}'", "\tCA type: MT4129", f"\tNumber of ports: {len(nic.ports)}"]
        lines += [f"\tFirmware version: {nic.firmware}", f"\tNode GUID: {_guid(nic.node_guid)}"]
        lines += [f"\tSystem image GUID: {_guid(nic.system_image_guid)}"] if nic.system_image_guid else []
        for port in nic.ports:
            state = {"ACTIVE": "Active", "DOWN": "Down", "INIT": "Initializing"}.get(port.state or "", "Down")
            lines += [f"\tPort {port.port}:", f"\t\tState: {state}", f"\t\tPhysical state: {port.phys_state}"]
            lines += [f"\t\tRate: {port.rate_gbit_s or 10:g}", f"\t\tBase lid: {port.lid or 0}", "\t\tLMC: 0"]
            lines += [f"\t\tSM lid: {port.sm_lid or 0}", "\t\tCapability mask: 0xa759e848"]
            lines += [f"\t\tPort GUID: {_guid(port.port_guid)}", f"\t\tLink layer: {port.link_layer}"]
    return "\n".join([*lines, ""]) if lines else ""


def _rdma_link(report: Report) -> str:
    return "".join(
        f"link {nic.rdma_device}/{port.port} state {port.state or 'DOWN'} physical_state "
        f"{re.sub('(?<=[a-z])(?=[A-Z])', '_', port.phys_state or 'Disabled').upper()}"
        + "".join(f" netdev {name}" for name in port.netdevs[:1])
        + "\n"
        for nic in report.topology.host_nics
        if nic.rdma_device
        for port in nic.ports
    )


def _gids(report: Report) -> str:
    rows = [
        f"{nic.rdma_device}\t{port.port}\t{gid.index}\t{gid.gid}\t\t{'v2' if 'v2' in (gid.type or '') else 'v1'}"
        + (f"\t{gid.netdev}" if gid.netdev and port.link_layer == "Ethernet" else "")
        for nic in report.topology.host_nics
        if nic.rdma_device
        for port in nic.ports
        for gid in port.gids
    ]
    head = "DEV\tPORT\tINDEX\tGID\t\t\t\t\tIPv4\t\tVER\tDEV"
    return "\n".join([head, *rows, f"n_gids_found={len(rows)}", ""]) if rows else ""


def _lsmod(report: Report) -> str:
    rows = [f"{module.name:<20} 16384  0" for module in report.software.modules]
    return "\n".join(["Module                  Size  Used by", *rows, ""]) if rows else ""
