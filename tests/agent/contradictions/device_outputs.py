"""Outputs of RDMA tools, ethtool, ip and mlnx_qos of a report's NICs and interfaces, and of the tools of Ascend, Gaudi
and CXL devices.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from agent.model.gpu import Gpu, NpuPort
from agent.model.nic import Netdev, Nic, Port, TransceiverModule
from agent.model.pci import CxlDevice, CxlRegion
from agent.model.report import Report

_STATES = {"ACTIVE": ("Active", 4), "DOWN": ("Down", 1), "INIT": ("Initializing", 2), "ARMED": ("Armed", 3)}
_PHYSICAL = {"LinkUp": "LINK_UP (5)", "Polling": "POLLING (2)", "Disabled": "DISABLED (3)", "Sleep": "SLEEP (1)"}
_MTU = {256: 1, 512: 2, 1024: 3, 2048: 4, 4096: 5}
_FEC = {"off": "Off", "rs": "RS", "baser": "BaseR", "llrs": "LLRS"}
_LIDLESS = 0
_RULE = "+" + "=" * 78 + "+"
_UNLISTED = "not_open"  # the driver does not offer it
_ASCEND_STATES = {"ACTIVE": "UP", "DOWN": "DOWN"}
_LANE_COUNTERS = {"rx_power_dbm": "Rcvr signal avg optical power", "tx_power_dbm": "Transmit avg optical power"}
_MODULE_STATES = {"low_power": "ModuleLowPwr", "ready": "ModuleReady", "fault": "ModuleFault"}


def _nics(report: Report) -> list[Nic]:
    return [nic for nic in report.topology.host_nics if nic.rdma_device and nic.ports]


def _guid(text: str | None) -> str:
    return (text or "").replace(":", "")


def render_ibstat(report: Report) -> str:
    """`ibstat`."""
    return "".join("\n".join([*_ibstat(nic), ""]) for nic in _nics(report) if nic.node_guid)


def _ibstat(nic: Nic) -> Iterator[str]:
    yield f"CA '{nic.rdma_device}'\n\tCA type: {nic.model if (nic.model or '').startswith('MT') else 'MT4129'}"
    yield f"\tNumber of ports: {len(nic.ports)}\n\tFirmware version: {nic.firmware}"
    yield f"\tNode GUID: 0x{_guid(nic.node_guid)}"
    if nic.system_image_guid:
        yield f"\tSystem image GUID: 0x{_guid(nic.system_image_guid)}"
    for port in nic.ports:
        yield f"\tPort {port.port}:\n\t\tState: {_STATES.get(port.state or '', ('Down', 1))[0]}"
        yield f"\t\tPhysical state: {port.phys_state}\n\t\tRate: {port.rate_gbit_s or 10:g}"
        yield f"\t\tBase lid: {port.lid or _LIDLESS}\n\t\tLMC: 0\n\t\tSM lid: {port.sm_lid or _LIDLESS}"
        yield f"\t\tCapability mask: 0xa759e848\n\t\tPort GUID: 0x{_guid(port.port_guid)}"
        yield f"\t\tLink layer: {port.link_layer}"


def render_devinfo(report: Report) -> str:
    """`ibv_devinfo -v`."""
    return "".join("\n".join([*_devinfo(nic), "", ""]) for nic in _nics(report))


def _devinfo(nic: Nic) -> Iterator[str]:
    yield f"hca_id:\t{nic.rdma_device}\n\ttransport:\t\t\tInfiniBand (0)\n\tfw_ver:\t\t\t\t{nic.firmware or '1.0'}"
    if nic.node_guid:
        yield f"\tnode_guid:\t\t\t{nic.node_guid}\n\tsys_image_guid:\t\t\t{nic.system_image_guid or nic.node_guid}"
    yield f"\tvendor_id:\t\t\t0x02c9\n\tboard_id:\t\t\t{nic.board_id or 'N/A'}\n\tphys_port_cnt:\t\t\t{len(nic.ports)}"
    for port in nic.ports:
        word, code = _STATES.get(port.state or "", ("Down", 1))
        yield f"\t\tport:\t{port.port}\n\t\t\tstate:\t\t\tPORT_{'INIT' if code == 2 else word.upper()} ({code})"
        yield "\t\t\tmax_mtu:\t\t4096 (5)"
        if port.active_mtu:
            yield f"\t\t\tactive_mtu:\t\t{port.active_mtu} ({_MTU.get(port.active_mtu, 1)})"
        yield f"\t\t\tsm_lid:\t\t\t{port.sm_lid or 0}\n\t\t\tport_lid:\t\t{port.lid or 0}"
        yield f"\t\t\tlink_layer:\t\t{port.link_layer}"
        if port.phys_state in _PHYSICAL:
            yield f"\t\t\tphys_state:\t\t{_PHYSICAL[port.phys_state]}"
        yield "\t\t\tgid_tbl_len:\t\t255"
        yield from (f"\t\t\tGID[{gid.index:3}]:\t\t{gid.gid}{_gid_type(port, gid.type)}" for gid in port.gids)


def _gid_type(port: Port, text: str | None) -> str:
    return f", {'RoCE v2' if 'v2' in (text or '') else 'RoCE v1'}" if port.link_layer == "Ethernet" else ""


def render_rdma_link(report: Report) -> str:
    """`rdma link`."""
    return "".join(
        f"link {nic.rdma_device}/{port.port} state {port.state or 'DOWN'} physical_state "
        f"{re.sub('(?<=[a-z])(?=[A-Z])', '_', port.phys_state or 'Disabled').upper()}"
        + "".join(f" netdev {name}" for name in port.netdevs[:1])
        + "\n"
        for nic in _nics(report)
        for port in nic.ports
    )


def render_gids(report: Report) -> str:
    """`show_gids`."""
    rows = [
        f"{nic.rdma_device}\t{port.port}\t{gid.index}\t{gid.gid}\t\t{'v2' if 'v2' in (gid.type or '') else 'v1'}"
        + (f"\t{gid.netdev}" if gid.netdev and port.link_layer == "Ethernet" else "")
        for nic in _nics(report)
        for port in nic.ports
        for gid in port.gids
    ]
    head = "DEV\tPORT\tINDEX\tGID\t\t\t\t\tIPv4\t\tVER\tDEV"
    return "\n".join([head, *rows, f"n_gids_found={len(rows)}", ""]) if rows else ""


def render_ip_link(report: Report) -> str:
    """`ip -d link`."""
    return "".join("\n".join([*_ip_link(n, netdev), ""]) for n, netdev in enumerate(report.topology.netdevs, 2))


def _ip_link(number: int, netdev: Netdev) -> Iterator[str]:
    up = netdev.operstate == "up"
    flags = "BROADCAST,MULTICAST" + ",NO-CARRIER" * (not up) + ",UP" * (netdev.admin_up is not False) + ",LOWER_UP" * up
    of = f"@{netdev.vlan['parent']}" if netdev.vlan and netdev.vlan.get("parent") else ""
    master = f" master {netdev.master}" if netdev.master else ""
    yield (
        f"{number}: {netdev.label}{of}: <{flags}> mtu {netdev.mtu or 1500} qdisc mq{master} "
        f"state {(netdev.operstate or 'unknown').upper()} mode DEFAULT group default qlen 1000"
    )
    at = f" parentbus pci parentdev {netdev.pci}" if netdev.pci and not netdev.vlan and netdev.bond is None else ""
    yield f"    link/ether {netdev.mac or '02:00:00:00:00:01'} brd ff:ff:ff:ff:ff:ff promiscuity 0{at}"
    if netdev.vlan:
        yield f"    vlan protocol 802.1Q id {netdev.vlan.get('id')} <REORDER_HDR> addrgenmode eui64"
    elif netdev.bond is not None:
        yield f"    bond mode {netdev.bond.get('mode')} miimon 100 updelay 0 downdelay 0 addrgenmode eui64"


def render_of_interface(netdev: Netdev) -> Iterator[tuple[str, str]]:
    """What ethtool and mlnx_qos print of one interface, by the name of the file."""
    name = netdev.label
    if netdev.speed_gbit_s or netdev.max_speed_gbit_s or netdev.autoneg is not None:
        most = netdev.max_speed_gbit_s or netdev.speed_gbit_s or 100
        yield (
            f"ethtool_{name}.txt",
            (
                f"Settings for {name}:\n\tSupported link modes:   {most * 1000:.0f}baseCR4/Full\n"
                f"\tSpeed: {f'{netdev.speed_gbit_s * 1000:.0f}Mb/s' if netdev.speed_gbit_s else 'Unknown!'}\n"
                f"\tDuplex: Full\n\tAuto-negotiation: {_on(netdev.autoneg)}\n"
                f"\tLink detected: {'yes' if netdev.operstate == 'up' else 'no'}\n"
            ),
        )
    if netdev.pause and netdev.pause.rx is not None:
        yield (
            f"ethtool_-a_{name}.txt",
            (
                f"Pause parameters for {name}:\nAutonegotiate:\t{_on(netdev.pause.autoneg)}\nRX:\t\t"
                f"{_on(netdev.pause.rx)}\nTX:\t\t{_on(netdev.pause.tx)}\n"
            ),
        )
    if netdev.fec and netdev.fec.active:
        configured = " ".join(_FEC[mode] for mode in netdev.fec.configured) or "Auto"
        yield (
            f"ethtool_--show-fec_{name}.txt",
            (
                f"FEC parameters for {name}:\nSupported/Configured FEC encodings: {configured}\n"
                f"Active FEC encoding: {_FEC[netdev.fec.active]}\n"
            ),
        )
    if netdev.counters:
        rows = "".join(f"     {counter}: {value}\n" for counter, value in netdev.counters.items())
        yield f"ethtool_-S_{name}.txt", f"NIC statistics:\n{rows}"
    if netdev.module:
        yield f"ethtool_-m_{name}.txt", render_module(netdev.module)
    if netdev.qos:
        yield f"mlnx_qos_-i_{name}.txt", "\n".join([*_mlnx_qos(netdev), ""])


def _on(flag: bool | None) -> str:
    return "on" if flag else "off"


def _mlnx_qos(netdev: Netdev) -> Iterator[str]:
    qos = netdev.qos
    assert qos is not None
    if qos.dcbx:
        yield f"DCBX mode: {'OS controlled' if qos.dcbx == 'host' else 'Firmware controlled'}"
    if qos.trust:
        yield f"Priority trust state: {qos.trust}"
    if qos.dscp_prio:
        yield "dscp2prio mapping:"
        for priority in range(8):
            known = [dscp for dscp in range(64) if qos.dscp_prio.get(str(dscp), 0) == priority]
            yield f"\tprio:{priority} dscp:{''.join(f'{dscp:02},' for dscp in known)}"
    if sizes := qos.buffers.get("size_bytes"):
        yield f"Receive buffer size (bytes): {','.join(map(str, sizes))},max_buffer_size=262016"
    if qos.cable_metres is not None:
        yield f"Cable len: {qos.cable_metres}"
    if qos.pfc:
        yield "PFC configuration:\n\tpriority    0   1   2   3   4   5   6   7"
        yield f"\tenabled     {'   '.join(str(int(flag)) for flag in qos.pfc)}"
        if len(buffers := qos.buffers.get("prio_buffer", [])) == 8:
            yield f"\tbuffer      {'   '.join(map(str, buffers))}"
    for tc in range(8) if qos.prio_tc else ():
        tsa = qos.tc_tsa[tc] if tc < len(qos.tc_tsa) else "vendor"
        share = f", bw: {qos.tc_bandwidth[tc]}%" if tc < len(qos.tc_bandwidth) and tsa == "ets" else ""
        rate = qos.max_rate_kbit_s[tc] if tc < len(qos.max_rate_kbit_s) else 0
        yield f"tc: {tc} ratelimit: {f'{rate / 1e6:g} Gbps' if rate else 'unlimited'}, tsa: {tsa}{share}"
        yield from (f"\t priority:  {priority}" for priority in range(8) if qos.prio_tc[priority] == tc)


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
    state = _ASCEND_STATES.get(of_nic.state or "") if of_nic else None
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
