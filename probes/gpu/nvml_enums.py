"""What NVML's numbers mean, in the words of our facts (nvml.h of CUDA 13; `nvidia-ml-py` 13.615)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from probes.gpu.facts import GpuFabric

ARCHITECTURES: Mapping[int, str] = {
    2: "Kepler",
    3: "Maxwell",
    4: "Pascal",
    5: "Volta",
    6: "Turing",
    7: "Ampere",
    8: "Ada Lovelace",
    9: "Hopper",
    10: "Blackwell",
    13: "Rubin",
}
HOPPER, BLACKWELL = 9, 10

VIRTUALIZATIONS: Mapping[int, str] = {0: "none", 1: "passthrough", 2: "vgpu", 3: "host_vgpu", 4: "vsga"}
ADDRESSING_MODES: Mapping[int, str] = {0: "none", 1: "hmm", 2: "ats"}
BANDWIDTH_MODES: Mapping[int, str] = {0: "full", 1: "off", 2: "min", 3: "half", 4: "3quarter"}
RECOVERY_ACTIONS: Mapping[int, str] = {
    0: "none",
    1: "reset",
    2: "reboot",
    3: "drain_p2p",
    4: "drain_and_reset",
    5: "recover_imex_domain",
    6: "bus_reset",
    7: "system_reboot",
}

# nvmlNvLinkVersion_t is an enumeration, not a number times ten
NVLINK_VERSIONS: Mapping[int, str] = {1: "1.0", 2: "2.0", 3: "2.2", 4: "3.0", 5: "3.1", 6: "4.0", 7: "5.0", 8: "6.0"}
# 3 is "active, traffic disabled": neither up nor down
NVLINK_STATES: Mapping[int, str] = {0: "inactive", 1: "active", 2: "sleep"}
NVLINK_REMOTE_KINDS: Mapping[int, str] = {0: "gpu", 1: "cpu", 2: "switch"}
C2C_STATES: Mapping[int, str] = {0: "inactive", 1: "active"}

# nvmlGpuTopologyLevel_t, as nvidia-smi topo -m spells it
TOPOLOGY_LEVELS: Mapping[int, str] = {0: "PSB", 10: "PIX", 20: "PXB", 30: "PHB", 40: "NODE", 50: "SYS"}
# nvmlGpuP2PStatus_t, as nvidia-smi topo -p2p spells it
P2P_STATUSES: Mapping[int, str] = {0: "OK", 1: "CNS", 2: "GNS", 3: "TNS", 4: "DR", 5: "NS", 6: "U"}
# NVML_FI_DEV_PCIE_*: counters of the GPU's own PCIe link
PCIE_COUNTERS: Mapping[int, str] = {
    94: "replays",
    95: "replay_rollovers",
    169: "l0_to_recovery",
    173: "correctable",
    174: "nak_received",
    175: "receiver_errors",
    176: "bad_tlp",
    177: "nak_sent",
    178: "bad_dllp",
    179: "nonfatal",
    180: "fatal",
    181: "unsupported_request",
    182: "lcrc",
    183: "lane_errors",
}
# NVML_FI_DEV_C2C_LINK_ERROR_*, of a link
C2C_ERRORS: Mapping[int, str] = {231: "interrupts", 232: "replays", 233: "replays_back_to_back"}
# nvmlGpuP2PCapsIndex_t: the binding's constant for READ is a tuple, so the numbers are here
P2P_INDEXES: Mapping[str, int] = {"read": 0, "write": 1, "nvlink": 2, "atomics": 3}

# nvmlReturn_t, of which a fabric status is one
RETURN_CODES: Mapping[int, str] = {
    0: "success",
    1: "UNINITIALIZED",
    2: "INVALID_ARGUMENT",
    3: "NOT_SUPPORTED",
    4: "NO_PERMISSION",
    6: "NOT_FOUND",
    9: "DRIVER_NOT_LOADED",
    10: "TIMEOUT",
    15: "GPU_IS_LOST",
    16: "RESET_REQUIRED",
    17: "OPERATING_SYSTEM",
    19: "IN_USE",
    20: "MEMORY",
    21: "NO_DATA",
    23: "INSUFFICIENT_RESOURCES",
    27: "NOT_READY",
    28: "GPU_NOT_FOUND",
    29: "INVALID_STATE",
    999: "UNKNOWN",
}

_FABRIC_STATES: Mapping[int, str] = {0: "not_supported", 1: "not_started", 2: "in_progress", 3: "completed"}
_FABRIC_SUMMARIES: Mapping[int, str] = {0: "not_supported", 1: "healthy", 2: "unhealthy", 3: "limited_capacity"}
_TRUE_FALSE = ("not_supported", "true", "false")
# name: (lowest bit, mask, words by value) of healthMask
_HEALTH: Mapping[str, tuple[int, int, Sequence[str]]] = {
    "degraded_bandwidth": (0, 0x3, _TRUE_FALSE),
    "route_recovery": (2, 0x3, _TRUE_FALSE),
    "route_unhealthy": (4, 0x3, _TRUE_FALSE),
    "access_timeout_recovery": (6, 0x3, _TRUE_FALSE),
    "incorrect_configuration": (
        8,
        0xF,
        (
            "not_supported",
            "none",
            "incorrect_sysguid",
            "incorrect_chassis_sn",
            "no_partition",
            "insufficient_nvlinks",
            "incompatible_gpu_fw",
            "invalid_location",
            "gpu_state_invalid",
        ),
    ),
    "partition_assigned": (12, 0x3, _TRUE_FALSE),
    "fabric_manager": (14, 0x3, ("not_supported", "connected", "disconnected")),
}


def fabric(answer: Mapping[str, object]) -> GpuFabric:
    """Fabric registration from the numbers of nvmlDeviceGetGpuFabricInfoV.

    `status` is given only where registration is completed: before that the driver leaves it undefined. A UUID of
    zeros is what a single node without a cluster has.

    >>> said = fabric({"state": 3, "status": 0, "cliqueId": 0, "clusterUuid": "0" * 32, "healthMask": 2})
    >>> said.state, said.status, said.health["degraded_bandwidth"]
    ('completed', 'success', 'false')
    """
    state = _FABRIC_STATES.get(_number(answer, "state", -1))
    code = _number(answer, "status")
    uuid, clique = answer.get("clusterUuid"), answer.get("cliqueId")
    return GpuFabric(
        state=state,
        status=RETURN_CODES.get(code, str(code)) if state == "completed" else None,
        clique=clique if isinstance(clique, int) else None,
        cluster_uuid=dashed_uuid(uuid) if isinstance(uuid, str) else None,
        health=_health(_number(answer, "healthMask"), _number(answer, "healthSummary")),
    )


def dashed_uuid(digits: str) -> str | None:
    """32 hexadecimal digits as people write a UUID.

    >>> dashed_uuid("8f2b1c3d00000000000000000000a1b2")
    '8f2b1c3d-0000-0000-0000-00000000a1b2'
    """
    if len(digits) != 32:
        return None
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _health(mask: int, summary: int) -> dict[str, str]:
    words = {}
    for name, (shift, bits, by_value) in _HEALTH.items():
        value = mask >> shift & bits
        words[name] = by_value[value] if value < len(by_value) else f"unknown_{value}"
    words["summary"] = _FABRIC_SUMMARIES.get(summary, f"unknown_{summary}")
    return words


def _number(answer: Mapping[str, object], key: str, otherwise: int = 0) -> int:
    value = answer.get(key)
    return value if isinstance(value, int) else otherwise
