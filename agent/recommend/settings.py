"""NCCL settings for this machine. The default answer is to set nothing and to repair first.

A setting is advised only where NCCL's own choice, in the version that is used, is worse here and the report holds the
evidence. Defaults by version: NVIDIA/nccl v2.18.1 to v2.30.7 and docs/userguide/source/env.rst; effects: public
measurements named in each text.

What NVIDIA's own validation sets on a platform is for comparison with a host, never advice. Source:
NVIDIA/cluster-readiness-engine, `pkg/catalog/entries/_lib/nccl/*.yaml` (2026). Names of interfaces and files are a
site's own: of them only that they are set is compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from agent.model.labels import natural
from agent.model.nic import Netdev, Nic
from agent.model.node import NcclSetting
from agent.model.prediction import NotNeeded, PlatformComparison, SettingAdvice
from agent.model.report import Report
from agent.recommend.constants import Version
from agent.recommend.machine import NodeFacts

_SOURCE = "NVIDIA/cluster-readiness-engine"
_ANY = "any"  # a value that is the site's own
_CHUNK = "2097152"
_VALIDATED: dict[tuple[str, int], tuple[tuple[str, str], ...]] = {
    ("Azure", 90): (
        ("NCCL_TOPO_FILE", _ANY), ("NCCL_SOCKET_IFNAME", _ANY), ("NCCL_IB_PCI_RELAXED_ORDERING", "1"),
        ("NCCL_MIN_NCHANNELS", "32"), ("NCCL_NET_GDR_LEVEL", "5"), ("NCCL_NVLS_ENABLE", "1"),
        ("NCCL_IB_QPS_PER_CONNECTION", "4"), ("NCCL_IGNORE_CPU_AFFINITY", "1"), ("NCCL_P2P_NET_CHUNKSIZE", _CHUNK),
    ),
    ("Azure", 80): (
        ("NCCL_TOPO_FILE", _ANY), ("NCCL_IB_HCA", "mlx5"), ("NCCL_COLLNET_ENABLE", "1"),
        ("NCCL_IB_QPS_PER_CONNECTION", "4"), ("NCCL_IB_SPLIT_DATA_ON_QPS", "0"), ("NCCL_IGNORE_CPU_AFFINITY", "1"),
    ),
    ("OCI", 0): (
        ("NCCL_IB_TC", "41"), ("NCCL_IB_SL", "0"), ("NCCL_IB_QPS_PER_CONNECTION", "4"), ("NCCL_IB_GID_INDEX", "3"),
        ("NCCL_IB_SPLIT_DATA_ON_QPS", "0"), ("NCCL_IB_PCI_RELAXED_ORDERING", "1"),
    ),
    ("GCP", 90): (
        ("NCCL_ALGO", "Ring,Tree"), ("NCCL_PROTO", "Simple"), ("NCCL_CROSS_NIC", "0"), ("NCCL_NVLS_ENABLE", "0"),
        ("NCCL_NET_GDR_LEVEL", "PIX"), ("NCCL_BUFFSIZE", "8388608"),
    ),
    ("GCP", 100): (("NCCL_NET_GDR_LEVEL", "5"),),
    ("AWS", 0): (("FI_PROVIDER", "efa"), ("FI_EFA_USE_DEVICE_RDMA", "1"), ("NCCL_SOCKET_IFNAME", _ANY)),
    ("on-premises InfiniBand", 100): (
        ("NCCL_NVLS_ENABLE", "1"), ("NCCL_CUMEM_ENABLE", "1"), ("NCCL_P2P_NET_CHUNKSIZE", _CHUNK),
        ("NCCL_IB_PCI_RELAXED_ORDERING", "1"),
    ),
}  # fmt: skip


class Advice(NamedTuple):
    """Settings to change, and those that people set by habit and that are not needed here."""

    settings: list[SettingAdvice]
    not_needed: list[NotNeeded]


class HarmfulSetting(NamedTuple):
    """A value that hurts wherever it is found."""

    hurts: Callable[[str, NodeFacts, Version], bool]
    default: str
    reason: str
    gain: str
    verify: str


_HARMFUL = {
    "NCCL_ALGO": HarmfulSetting(
        lambda value, node, version: True,
        "picks the algorithm of least time for each size",
        "a fixed algorithm is right for one size and wrong for the others",
        "NVLSTree forced on 4 nodes: 310 of 365 GB/s (public table, H200)",
        "NCCL_DEBUG_SUBSYS=TUNING shows the choice for each size",
    ),
    "NCCL_PROTO": HarmfulSetting(
        lambda value, node, version: True,
        "picks the protocol of least time for each size",
        "LL and LL128 carry less than Simple at large sizes",
        "LL: 22 of 216 GB/s, LL128: 91 of 216 (nccl#2409)",
        "NCCL_DEBUG_SUBSYS=TUNING shows the choice for each size",
    ),
    "NCCL_NVLS_ENABLE": HarmfulSetting(
        lambda value, node, version: value == "0" and node.sm >= 90 and node.kind == "nvlink",
        "uses NVLink SHARP where the fabric is ready",
        "all-reduce inside a node falls back to rings",
        "367 to 482 GB/s on H200, 682 to 838 on B200 (public tables)",
        "the log has 'NVLS multicast support is available'",
    ),
    "NCCL_P2P_DISABLE": HarmfulSetting(
        lambda value, node, version: value == "1",
        "uses NVLink and PCIe peer-to-peer where the paths allow it",
        "GPUs of a node exchange data through host memory",
        "more than twice on every NVLink machine",
        "the log has 'via P2P/' and no 'via SHM/' between GPUs of a node",
    ),
    "NCCL_SHM_DISABLE": HarmfulSetting(
        lambda value, node, version: value == "1",
        "uses shared memory where peer-to-peer is not possible",
        "traffic inside the node goes through sockets",
        "1.64 to 2.24 GB/s (public table, RTX 4090)",
        "the log has no 'via NET/Socket' inside a node",
    ),
    "NCCL_IB_SPLIT_DATA_ON_QPS": HarmfulSetting(
        lambda value, node, version: value == "1" and node.network == "RoCE" and version >= (2, 20),
        "sends each message on one queue pair (since 2.20)",
        "each message is cut into parts that wait for each other",
        "358 to 456 GB/s on 2 nodes of 8 H100, RoCE (nccl#2409)",
        "nccl-tests on 2 nodes, before and after",
    ),
    "NCCL_NET_GDR_LEVEL": HarmfulSetting(
        lambda value, node, version: value in ("0", "LOC"),
        "uses GPUDirect RDMA up to PXB (P2C since 2.29)",
        "all network traffic is copied through host memory",
        "72 to 216 GB/s (nccl#2409)",
        "the log has 'via NET/IB/n/GDRDMA'",
    ),
    "NCCL_IB_DISABLE": HarmfulSetting(
        lambda value, node, version: value == "1" and bool(node.rails),
        "uses RDMA devices where there are any",
        "all traffic between nodes goes through TCP sockets",
        "10 times and more",
        "the log has 'NET/IB : Using'",
    ),
    "NCCL_IB_GID_INDEX": HarmfulSetting(
        lambda value, node, version: version >= (2, 21) and node.network == "RoCE",
        "finds the RoCE v2 GID by itself (since 2.21)",
        "a fixed index is wrong as soon as the table of GIDs shifts",
        "no bandwidth; connections that fail after a change of addresses",
        "the log names the GID index of each device",
    ),
}


def advise(report: Report, node: NodeFacts, version: Version) -> Advice:
    """What to set, what to remove, and what is not needed."""
    settings = [*_harmful(report, node, version), *_list_needed(report, node, version)]
    named = {setting.name for setting in settings}
    return Advice(settings, [row for row in _not_needed(report, node, version) if row.name not in named])


def find_harm(key: str, value: str, node: NodeFacts | None, version: Version) -> HarmfulSetting | None:
    """What is known against a value; without a machine only what hurts on every one."""
    known = _HARMFUL.get(key)
    if known is None:
        return None
    if node is None:
        return known if key in ("NCCL_ALGO", "NCCL_PROTO") else None
    return known if known.hurts(value.strip(), node, version) else None


def to_lines(settings: list[SettingAdvice], export: bool = False) -> str:
    """The settings as lines of nccl.conf, or as shell commands for a job's environment."""
    rows = []
    for setting in settings:
        if setting.value is None:
            rows.append(f"unset {setting.name}" if export else f"# remove {setting.name}")
        else:
            rows.append(f"export {setting.name}='{setting.value}'" if export else f"{setting.name}={setting.value}")
    return "".join(f"{row}\n" for row in rows)


def _harmful(report: Report, node: NodeFacts, version: Version) -> Iterator[SettingAdvice]:
    for setting in report.software.nccl.settings:
        known = find_harm(setting.key, setting.value, node, version)
        if known is not None:
            yield SettingAdvice(
                name=setting.key,
                value=None,
                default=known.default,
                reason=known.reason,
                gain=known.gain,
                verify=known.verify,
                remove="now",
                evidence=[f"{setting.source}: {setting.key}={setting.value}"],
            )


def _list_needed(report: Report, node: NodeFacts, version: Version) -> Iterator[SettingAdvice]:
    set_by_host = {setting.key: setting for setting in report.software.nccl.settings}
    yield from _adapter_list(report, set_by_host)
    if node.network == "RoCE":
        yield from _traffic_class(report, set_by_host)
        yield from _gid_index(report, set_by_host, version)
    cpu = report.node.cpu
    if node.kind == "pcie" and node.amd_cpu and cpu is not None and (cpu.sockets or 1) > 1 and len(node.gpus) > 2:
        yield SettingAdvice(
            name="NCCL_MIN_NCHANNELS",
            value="8",
            default="1 or 2 channels: NCCL counts 16 GB/s between AMD sockets, whatever the CPU",
            reason=f"GPUs without NVLink on {cpu.sockets} AMD sockets",
            gain="22.2 to 37.6 GB/s on 8 RTX PRO 6000, two Turin sockets (public table)",
            verify="the log has '8 coll channels' or more",
            remove="when a later NCCL counts more than 16 GB/s between AMD sockets",
            evidence=[f"node.cpu: {cpu.name or cpu.vendor}, {cpu.sockets} sockets", "topology.gpus: no NVLink"],
        )


def _adapter_list(report: Report, set_by_host: dict[str, NcclSetting]) -> Iterator[SettingAdvice]:
    """Active RDMA ports that are no rails, and could carry traffic of jobs."""
    nics = [nic for nic in report.topology.host_nics if nic.rdma_device and any(p.state == "ACTIVE" for p in nic.ports)]
    rails = sorted((nic.rdma_device or "" for nic in nics if nic.role == "rail"), key=natural)
    others = _rivals(report)
    if not rails or not others or "NCCL_IB_HCA" in set_by_host:
        return
    yield SettingAdvice(
        name="NCCL_IB_HCA",
        value="=" + ",".join(f"{name}:1" for name in rails),
        default="uses every active RDMA port; it prefers the faster and nearer ones",
        reason="active RDMA ports of storage or management are as fast as the rails, so NCCL may choose them",
        gain="keeps job traffic off these ports",
        verify="the log line 'NET/IB : Using' lists the rails only",
        remove="when these ports are no longer RDMA devices of this host",
        evidence=[f"{nic.rdma_device}: role {nic.role} ({'; '.join(nic.role_evidence[:2])})" for nic in others],
    )


def _rivals(report: Report) -> list[Nic]:
    """Storage and management NICs that are as fast as the slowest rail."""
    rates = {nic.id: max((port.rate_gbit_s or 0.0 for port in nic.ports if port.state == "ACTIVE"), default=0.0)
             for nic in report.topology.host_nics if nic.rdma_device}  # fmt: skip
    rails = [rates[nic.id] for nic in report.topology.host_nics if nic.role == "rail" and rates.get(nic.id)]
    others = [nic for nic in report.topology.host_nics if nic.role in ("storage", "management") and rates.get(nic.id)]
    return [nic for nic in others if rails and rates[nic.id] >= min(rails)]


def _traffic_class(report: Report, set_by_host: dict[str, NcclSetting]) -> Iterator[SettingAdvice]:
    """The DSCP of the one lossless priority, where all rails agree on it."""
    rails = {nic.id for nic in report.topology.host_nics if nic.role == "rail"}
    classes = {_lossless_dscp(netdev) for netdev in report.topology.netdevs if netdev.nic in rails}
    if len(classes) != 1 or "NCCL_IB_TC" in set_by_host:
        return
    dscp = classes.pop()
    forced = any(port.traffic_class for nic in report.topology.host_nics if nic.id in rails for port in nic.ports)
    if dscp is None or forced:
        return
    yield SettingAdvice(
        name="NCCL_IB_TC",
        value=str(dscp * 4),
        default="traffic class 0: DSCP 0, which is not the lossless priority",
        reason=f"the rails trust DSCP, and DSCP {dscp} is mapped to their one lossless priority",
        gain="traffic of jobs is lossless; without it packets are dropped under incast",
        verify="priority counters of the interface (rx_prioN_bytes) move during a job",
        remove="when the job launcher or the driver sets the traffic class",
        evidence=["topology.netdevs[].qos: trust dscp, pfc, dscp_prio of every rail"],
    )


def _lossless_dscp(netdev: Netdev) -> int | None:
    qos = netdev.qos
    if qos is None or qos.trust != "dscp" or sum(qos.pfc) != 1:
        return None
    priority = qos.pfc.index(True)
    values = sorted(int(dscp) for dscp, prio in qos.dscp_prio.items() if prio == priority and dscp.isdecimal())
    usual_values = [value for value in values if value in (24, 26)]
    return next(iter(sorted(usual_values, reverse=True)), values[0] if len(values) == 1 else None)


def _gid_index(report: Report, set_by_host: dict[str, NcclSetting], version: Version) -> Iterator[SettingAdvice]:
    if version >= (2, 21) or "NCCL_IB_GID_INDEX" in set_by_host:
        return
    indexes = set()
    for nic in report.topology.host_nics:
        if nic.role == "rail":
            for port in nic.ports:
                indices = [gid.index for gid in port.gids if gid.type == "RoCE v2" and "0000:ffff:" in gid.gid.lower()]
                indexes.add(min(indices, default=None))
    if len(indexes) != 1 or None in indexes:
        return
    yield SettingAdvice(
        name="NCCL_IB_GID_INDEX",
        value=str(indexes.pop()),
        default="GID index 0 (up to NCCL 2.20): RoCE v1 or a link-local address",
        reason="every rail has its RoCE v2 GID of an IPv4 address at this index",
        gain="connections work, and packets carry a DSCP",
        verify="the log names the GID index of each device",
        remove="with NCCL 2.21 or later, which finds the GID by itself",
        evidence=["topology.host_nics[].ports[].gids of every rail"],
    )


def _not_needed(report: Report, node: NodeFacts, version: Version) -> Iterator[NotNeeded]:
    if report.node.virtualization in (None, "none") and report.node.virtualization_known:
        yield NotNeeded(name="NCCL_TOPO_FILE", reason="bare metal: NCCL reads the PCIe tree itself")
        yield NotNeeded(name="NCCL_IB_PCI_RELAXED_ORDERING", reason="bare metal: it matters in virtual machines only")
    if node.network == "RoCE" and version >= (2, 21):
        yield NotNeeded(name="NCCL_IB_GID_INDEX", reason="NCCL finds the RoCE v2 GID by itself since 2.21")
    if node.network == "InfiniBand":
        yield NotNeeded(name="NCCL_IB_TC, NCCL_IB_GID_INDEX", reason="they are for RoCE; these rails are InfiniBand")
    if node.kind == "nvlink" and node.sm >= 90:
        yield NotNeeded(name="NCCL_NVLS_ENABLE", reason="on by default where the fabric is ready")
    if node.rails:
        yield NotNeeded(name="NCCL_NET_GDR_LEVEL", reason="the default takes every NIC below the GPU's PCIe switch")
        if not _rivals(report):
            yield NotNeeded(name="NCCL_IB_HCA", reason="no other active RDMA port is as fast as the rails")
        yield NotNeeded(name="NCCL_CROSS_NIC", reason="the default (2) crosses rails only where that helps")
    yield NotNeeded(name="NCCL_ALGO, NCCL_PROTO", reason="NCCL chooses by size; for tests only")
    yield NotNeeded(name="NCCL_BUFFSIZE, NCCL_NTHREADS", reason="no effect in public sweeps")


def compare_platform(report: Report, node: NodeFacts) -> PlatformComparison | None:
    """The host's settings beside those of its platform; None for a platform that was not validated."""
    cloud = next((text.removeprefix("cloud: ") for text in report.platform.evidence if text[:7] == "cloud: "), None)
    if cloud is None and (report.node.virtualization or node.network != "InfiniBand"):
        return None
    name, generation = cloud or "on-premises InfiniBand", node.sm // 10 * 10
    validated = _VALIDATED.get((name, generation)) or _VALIDATED.get((name, 0))
    if validated is None:
        return None
    here = {setting.key: setting.value.strip() for setting in report.software.nccl.settings}
    differs = [
        f"{key}={here[key]} (validated: {value})"
        for key, value in validated
        if key in here and value not in (_ANY, here[key])
    ]
    return PlatformComparison(
        platform=name, source=_SOURCE, differs=differs,
        same=[key for key, value in validated if key in here and value in (_ANY, here[key])],
        not_set=[f"{key}={value}" if value != _ANY else key for key, value in validated if key not in here],
    )  # fmt: skip
