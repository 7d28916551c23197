"""What each NVML call answers, as types: a capture comes from anywhere, and its answers are read as the library's."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

Shape = Callable[[Any], bool]
_NUMBER_LIMIT = 1 << 64  # NVML has no wider type


def check_shape(function: str, answer: Any) -> None:
    """Raises ValueError where an answer is not what the function gives; what we do not ask may be anything.

    >>> check_shape("nvmlDeviceGetUUID", "GPU-8f2b1c3d")
    >>> check_shape("nvmlDeviceGetUUID", 7)
    Traceback (most recent call last):
    ...
    ValueError: nvmlDeviceGetUUID: 7
    """
    name = function.removeprefix("nvmlDevice")
    shape = _STRUCTURES.get(function) or (_text if name in _TEXTS else _number if name in _NUMBERS else None)
    if shape is not None and not shape(answer):
        raise ValueError(f"{function}: {answer!r:.80}")


def _text(answer: Any) -> bool:
    return isinstance(answer, str)


def _number(answer: Any) -> bool:
    return type(answer) is int and -_NUMBER_LIMIT < answer < _NUMBER_LIMIT


def _measured(answer: Any) -> bool:
    return answer is None or _number(answer) or (isinstance(answer, float) and math.isfinite(answer))


def _or_none(shape: Shape) -> Shape:
    return lambda answer: answer is None or shape(answer)


def _numbers(count: int | None = None) -> Shape:
    return lambda answer: (
        isinstance(answer, list) and count in (None, len(answer)) and all(_number(each) for each in answer)
    )


def _table(**fields: Shape) -> Shape:
    return lambda answer: (
        isinstance(answer, dict) and all(key in answer and shape(answer[key]) for key, shape in fields.items())
    )


def _rows(answer: Any) -> bool:
    row = _table(id=_number, scope=_number, **{"return": _number, "value": _measured})
    return isinstance(answer, list) and all(row(each) for each in answer)


_TEXTS = frozenset({"GetUUID", "GetName", "GetSerial", "GetVbiosVersion", "GetMigDeviceHandleByIndex"})
_NUMBERS = frozenset(
    [
        "GetMinorNumber",
        "GetArchitecture",
        "GetPerformanceState",
        "GetPersistenceMode",
        "GetCurrPcieLinkGeneration",
        "GetCurrPcieLinkWidth",
        "GetMaxPcieLinkGeneration",
        "GetMaxPcieLinkWidth",
        "GetGpuMaxPcieLinkGeneration",
        "GetPcieReplayCounter",
        "GetNumaNodeId",
        "GetMaxMigDeviceCount",
        "GetVirtualizationMode",
        "GetAddressingMode",
        "GetNvLinkState",
        "GetNvLinkVersion",
        "GetNvLinkRemoteDeviceType",
        "GetNvLinkErrorCounter",
        "GetModuleId",
        "GetTopologyCommonAncestor",
        "GetP2PStatus",
        "GetCount_v2",
    ]
)
_STRUCTURES: Mapping[str, Shape] = {
    "nvmlSystemGetDriverVersion": _text,
    "nvmlSystemGetCudaDriverVersion_v2": _number,
    "nvmlSystemGetNvlinkBwMode": _number,
    "nvmlDeviceGetPciInfo_v3": _table(busId=_text, pciDeviceId=_number, pciSubSystemId=_number),
    "nvmlDeviceGetUtilizationRates": _table(gpu=_number, memory=_number),
    "nvmlDeviceGetBAR1MemoryInfo": _table(bar1Total=_number),
    "nvmlDeviceGetMemoryInfo": _table(total=_number),
    "nvmlDeviceGetC2cModeInfoV": _table(isC2cEnabled=_number),
    "nvmlDeviceGetNvLinkRemotePciInfo_v2": _table(busId=_text),
    "nvmlDeviceGetFieldValues": _rows,
    "nvmlDeviceGetCudaComputeCapability": _numbers(2),
    "nvmlDeviceGetMigMode": _numbers(2),
    "nvmlDeviceGetCpuAffinity": _numbers(),
    "nvmlSystemGetConfComputeState": _table(ccFeature=_number),
    "nvmlDeviceGetNvlinkBwMode": _table(bIsBest=_number, bwMode=_number),
    "nvmlDeviceGetPlatformInfo": _table(chassisSerialNumber=_text, slotNumber=_number, trayIndex=_number),
    "nvmlDeviceGetGpuFabricInfoV": _table(
        state=_number,
        status=_number,
        cliqueId=_number,
        clusterUuid=_or_none(_text),
        healthMask=_number,
        healthSummary=_or_none(_number),
    ),
}
