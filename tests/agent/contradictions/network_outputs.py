"""Outputs of RDMA tools, ethtool, ip and mlnx_qos of a report's NICs and interfaces."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agent.model.nic import Netdev, Nic, Port
from agent.model.report import Report
from tests.agent.contradictions.accelerator_outputs import render_module

_STATES = {"ACTIVE": ("Active", 4), "DOWN": ("Down", 1), "INIT": ("Initializing", 2), "ARMED": ("Armed", 3)}
_PHYSICAL = {"LinkUp": "LINK_UP (5)", "Polling": "POLLING (2)", "Disabled": "DISABLED (3)", "Sleep": "SLEEP (1)"}
_MTU = {256: 1, 512: 2, 1024: 3, 2048: 4, 4096: 5}
_FEC = {"off": "Off", "rs": "RS", "baser": "BaseR", "llrs": "LLRS"}
_LIDLESS = 0


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
