"""What NVIDIA's own validation sets on a platform: for comparison with a host, never advice.

Source: NVIDIA/cluster-readiness-engine, `pkg/catalog/entries/_lib/nccl/*.yaml` (2026). Names of interfaces and files
are a site's own: of them only that they are set is compared.
"""

from __future__ import annotations

from agent.model.prediction import PlatformComparison
from agent.model.report import Report
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
