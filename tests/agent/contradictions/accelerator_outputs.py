"""What the tools of Ascend, Gaudi and CXL devices print of the machine of a report, and `ethtool -m`."""

from __future__ import annotations

import json
from collections.abc import Iterator

from agent.model.gpu import Gpu, NpuPort
from agent.model.nic import Nic, TransceiverModule
from agent.model.pci import CxlDevice, CxlRegion
from agent.model.report import Report

_RULE = "+" + "=" * 78 + "+"
_UNLISTED = "not_open"  # the driver does not offer it
_STATES = {"ACTIVE": "UP", "DOWN": "DOWN"}
_LANE_COUNTERS = {"rx_power_dbm": "Rcvr signal avg optical power", "tx_power_dbm": "Transmit avg optical power"}
_MODULE_STATES = {"low_power": "ModuleLowPwr", "ready": "ModuleReady", "fault": "ModuleFault"}


def render_accelerators(report: Report) -> dict[str, str]:
    """Name of the file -> text; "" for what this machine has nothing to print in."""
    npus, gaudi, neuron = (_list_of(report, maker) for maker in ("Huawei", "Habana", "Amazon"))
    return {
        "npu-smi_info.txt": _render_npus(npus),
        "hccn_tool.txt": "".join(_hccn(report)),
        "hl-smi.txt": _render_gaudi([card for card in gaudi if card.driver_state != _UNLISTED]),
        "neuron-ls_--json-output.txt": _render_neuron(
            [device for device in neuron if device.driver_state != _UNLISTED]
        ),
        "cxl_list_-v.txt": _render_cxl(report),
    }


def _list_of(report: Report, maker: str) -> list[Gpu]:
    return [gpu for gpu in report.topology.gpus if maker in (gpu.vendor or "") and gpu.pci]


def _render_npus(npus: list[Gpu]) -> str:
    rows = [
        f"| {n:<5} {(npu.name or 'Ascend910B').removeprefix('Ascend '):<15} | OK   | 90.1   40   0 / 0 |\n"
        f"| 0                     | {npu.pci} | 0   0 / 0   3300 / 65536 |\n{_RULE}\n"
        for n, npu in enumerate(npus)
    ]
    head = f"| npu-smi 24.1.rc3    Version: 24.1.rc3 |\n{_RULE}\n"
    return head + "".join(rows) if rows else ""


def _hccn(report: Report) -> Iterator[str]:
    """`hccn_tool` of each port, one command after the other."""
    nics = {nic.accelerator or nic.id: nic for nic in report.topology.nics}
    for port in report.topology.ascend.ports if report.topology.ascend else ():
        for option, lines in _port_outputs(port, nics.get(port.gpu or "") or nics.get(port.nic or "")):
            if text := "".join(f"{line}\n" for line in lines if line):
                yield f"# hccn_tool -i {port.npu} -{option} -g\n{text}"


def _port_outputs(port: NpuPort, nic: Nic | None) -> Iterator[tuple[str, list[str]]]:
    of_nic = nic.ports[0] if nic and nic.ports else None
    state = _STATES.get(of_nic.state or "") if of_nic else None
    yield "link", [f"link status: {state}" if state else ""]
    speed = of_nic.rate_gbit_s if of_nic else None
    yield "speed", [f"Speed: {speed * 1000:.0f} Mb/s" if speed else ""]
    yield "ip", [_named("ipaddr", port.address), _named("netmask", port.netmask)]
    yield "gateway", [_named("default gateway", port.gateway)]
    yield "netdetect", [_named("netdetect address", port.detect_address)]
    yield "net_health", [_named("net health status", port.health)]
    yield "fec", [f"fec mode: {port.fec} FEC mode" if port.fec else ""]
    yield "tls", [f"tls switch[{int(port.tls)}]" if port.tls is not None else ""]
    on = [str(int(priority in port.pfc)) for priority in range(8)] if port.pfc is not None else []
    yield "pfc", [f"enabled {' '.join(on)}" if on else ""]
    counters = of_nic.counters if of_nic else {}
    yield "stat", [f"{name}:{count}" for name, count in counters.items() if name.startswith(("mac_", "roce_"))]
    yield "optical", [*_optics(port.module)] if port.module else []


def _named(name: str, value: str | None) -> str:
    return f"{name}:{value}" if value else ""


def _optics(module: TransceiverModule) -> Iterator[str]:
    yield f"present : {'not present' if module.state == 'absent' else 'present'}"
    yield f"high power enable reg : {'not enabled' if module.state == 'low_power' else 'enabled'}"
    for field, name in (("rx_power", "RxPower"), ("tx_power", "TxPower")):
        for end in ("high", "low"):
            if (limit := module.thresholds.get(f"{field}_{end}_alarm_dbm")) is not None:
                yield f"{name} {end.capitalize()} Thres : {10 ** (limit / 10):.4f} mW"
    for lane in module.lanes:
        for power, name in ((lane.rx_power_dbm, "Rx"), (lane.tx_power_dbm, "Tx")):
            if power is not None:
                yield f"{name} Power{lane.lane - 1} : {10 ** (power / 10):.4f} mW"
    for way in ("rx", "tx"):
        yield f"{way.capitalize()} Los Flag : 0x{int(f'{way}_los' in module.flags):x}"


def _render_gaudi(cards: list[Gpu]) -> str:
    rows = [
        f"|   {n}  {card.name or 'HL-225'}              N/A  | {card.pci}     N/A |                   0  |\n"
        f"| N/A   31C   N/A    98W / 600W |    768MiB / {card.memory_mib or 98304}MiB |     0%           N/A |\n"
        for n, card in enumerate(cards)
    ]
    head = "| HL-SMI Version:                              hl-1.18.0-fw-53.1.1.1          |\n"
    return head + "".join(rows) if rows else ""


def _render_neuron(devices: list[Gpu]) -> str:
    rows = [
        {
            "neuron_device": device.index,
            "bdf": (device.pci or "").removeprefix("0000:"),
            "connected_to": sorted(link.link for link in device.links),
            "nc_count": 2,
            "memory_size": (device.memory_mib or 0) << 20,
            "neuron_processes": [],
        }
        for device in devices
        if device.index is not None
    ]
    return json.dumps(rows, indent=1) + "\n" if rows else ""


def _render_cxl(report: Report) -> str:
    cxl = report.topology.cxl
    if cxl is None:
        return ""
    names = {device.id: device.memdev for device in cxl.devices}
    memdevs = [_memdev(device) for device in cxl.devices if device.memdev]
    return json.dumps([*memdevs, *(_region(region, names) for region in cxl.regions)], indent=1) if memdevs else ""


def _memdev(device: CxlDevice) -> dict[str, object]:
    health = None if device.health is None else {name: name != "media_normal" for name in device.health}
    errors = None
    if device.media_errors is not None:
        errors = [{"source": source} for source, count in device.media_errors.items() for _ in range(count)]
    memdev = {
        "memdev": device.memdev,
        "host": device.id,
        "ram_size": (device.ram_mib or 0) << 20,
        "pmem_size": (device.pmem_mib or 0) << 20,
        "ram_qos_class": device.qos_class,
        "firmware_version": device.firmware,
        "numa_node": device.numa_node,
        "health": health,
        "media_errors": errors,
    }
    memdev = {name: value for name, value in memdev.items() if value is not None}
    if device.endpoint is None:
        return memdev
    decoders = {f"decoders:{device.endpoint}": [{"dpa_size": (device.decoded_mib or 0) << 20}]}
    endpoint: dict[str, object] = {"endpoint": device.endpoint, "memdev": memdev, **decoders}
    for port in reversed(device.ports):
        endpoint = {"bus" if port.startswith("root") else "port": port, "endpoints": [endpoint]}
    return endpoint


def _region(region: CxlRegion, names: dict[str, str | None]) -> dict[str, object]:
    blocks = {"online_memblocks": region.online_blocks, "total_memblocks": region.total_blocks}
    device = {"mode": region.mode, "target_node": region.numa_node, **blocks}
    return {
        "region": region.id,
        "size": (region.size_mib or 0) << 20,
        "interleave_ways": region.ways,
        "interleave_granularity": region.granularity_bytes,
        "decode_state": "commit" if region.committed else "reset",
        "mappings": [{"position": n, "memdev": names.get(device)} for n, device in enumerate(region.devices)],
        "daxregion": {"devices": [{name: value for name, value in device.items() if value is not None}]},
    }


def render_module(module: TransceiverModule) -> str:
    """`ethtool -m` of an optical module."""
    lines = [
        "Identifier : 0x11 (QSFP28)",
        f"Vendor name : {module.vendor or 'ACME'}",
        f"Vendor PN : {module.part or 'P'}",
    ]
    lines.append("Laser wavelength : 850.000nm")
    if module.state in _MODULE_STATES:
        lines.append(f"Module State : 0x03 ({_MODULE_STATES[module.state]})")
    if module.temperature_c is not None:
        lines.append(f"Module temperature : {module.temperature_c:.2f} degrees C")
    for name, value in module.thresholds.items():
        what, end, level, unit = name.rsplit("_", 3)
        label = {"rx_power": "Laser rx power", "tx_power": "Laser output power", "temperature": "Module temperature"}
        if what in label:
            shown = f"1.0000 mW / {value:.2f} dBm" if unit == "dbm" else f"{value:.2f} degrees C"
            lines.append(f"{label[what]} {end} {level} threshold : {shown}")
    for lane in module.lanes:
        for field, label_of_lane in _LANE_COUNTERS.items():
            if (power := getattr(lane, field)) is not None:
                lines.append(f"{label_of_lane} (Channel {lane.lane}) : 0.5000 mW / {power:.2f} dBm")
        for flag in lane.flags:
            if flag.endswith(("_alarm", "_warning")):
                what, end, level = flag.rsplit("_", 2)
                kind = {"rx_power": "Laser rx power", "tx_power": "Laser tx power"}.get(what)
                lines += [f"{kind} {end} {level} (Chan {lane.lane}) : On"] if kind else []
    count = max((lane.lane for lane in module.lanes), default=0)
    for flag, label_of_flag in (("rx_los", "Rx loss of signal"), ("tx_fault", "Tx fault")):
        words = ["No"] * count
        for lane in module.lanes:
            words[lane.lane - 1] = "Yes" if flag in lane.flags else "No"
        lines += [f"{label_of_flag} : [ {', '.join(words)} ]"] if count else []
    return "\n".join([*lines, ""])
