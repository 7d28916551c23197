"""The live side of `Host.nvml`: one NVML getter by its C name, over `pynvml`, plain data back.

The table below is everything that can be asked. All are getters. NVML: https://docs.nvidia.com/deploy/nvml-api,
binding: `nvidia-ml-py` (module `pynvml`), 12.535 and later; what is missing in a binding or a driver is
`Failed` with code FUNCTION_NOT_FOUND. `pynvml` is imported with the first call, here and nowhere else.
"""

from __future__ import annotations

import ctypes
import functools
import struct
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

from probes.host.interface import Absent, Denied, Failed, ReadError, TimedOut


def call(function: str, *arguments: Any) -> Any:
    """Ask NVML. A device is its NVML index; answers are str, int, float, None, lists and dicts of them.

    Raises ReadError with the NVML error's name as `code`: Absent (LIBRARY_NOT_FOUND, DRIVER_NOT_LOADED), Denied
    (NO_PERMISSION), TimedOut (TIMEOUT), else Failed (NOT_SUPPORTED, GPU_IS_LOST, ...). Raises ValueError for a
    function that is not in the table: that is a bug of the caller.
    """
    adapter = ADAPTERS.get(function)
    if adapter is None:
        raise ValueError(f"{function} is not one of the NVML getters that may be asked")
    nvml = _binding()
    try:
        return adapter(nvml, *arguments)
    except nvml.NVMLError as error:
        raise _make_error(nvml, function, error) from None
    except UnicodeDecodeError:
        raise Failed(f"{function}: the answer is not text", "UNDECODABLE") from None


def _binding() -> ModuleType:
    try:
        import pynvml
    except ImportError as error:
        raise Absent(f"the Python module pynvml is not installed ({error})", "LIBRARY_NOT_FOUND") from None
    module: ModuleType = pynvml
    return module


def _make_error(nvml: ModuleType, function: str, error: Any) -> ReadError:
    code = _error_names(nvml).get(error.value, str(error.value))
    kind = {
        "LIBRARY_NOT_FOUND": Absent,
        "DRIVER_NOT_LOADED": Absent,
        "NO_PERMISSION": Denied,
        "TIMEOUT": TimedOut,
    }.get(code, Failed)
    return kind(f"{function}: {error}", code)


@functools.cache
def _error_names(nvml: ModuleType) -> Mapping[int, str]:
    prefix = "NVML_ERROR_"
    return {value: name.removeprefix(prefix) for name, value in vars(nvml).items() if name.startswith(prefix)}


def _function(nvml: ModuleType, name: str) -> Any:
    """A wrapper of the binding; a missing one is the same answer as a missing symbol of the driver."""
    function = getattr(nvml, name, None)
    if function is None:
        raise nvml.NVMLError(nvml.NVML_ERROR_FUNCTION_NOT_FOUND)
    return function


def _device(nvml: ModuleType, index: int) -> Any:
    return nvml.nvmlDeviceGetHandleByIndex(index)


# -- adapters ---------------------------------------------------------------------------------------------------------

Adapter = Callable[..., Any]  # (nvml, *arguments of the call) -> plain data


def _init(nvml: ModuleType) -> None:
    """NO_GPUS: a driver without a GPU is an answer (a count of zero), not a failure."""
    nvml.nvmlInitWithFlags(nvml.NVML_INIT_FLAG_NO_GPUS)


def _system(name: str) -> Adapter:
    return lambda nvml: _function(nvml, name)()


def _of_device(name: str, *fields: str) -> Adapter:
    """A getter of one device and further plain arguments; of a structure, only the named fields."""

    def ask(nvml: ModuleType, index: int, *arguments: Any) -> Any:
        answer = _function(nvml, name)(_device(nvml, index), *arguments)
        if fields:
            return {field: getattr(answer, field) for field in fields}
        return list(answer) if isinstance(answer, (tuple, list, ctypes.Array)) else answer

    return ask


def _of_pair(name: str) -> Adapter:
    def ask(nvml: ModuleType, index: int, peer: int, *arguments: int) -> Any:
        return _function(nvml, name)(_device(nvml, index), _device(nvml, peer), *arguments)

    return ask


def _module_id(nvml: ModuleType, index: int) -> int:
    """The wrapper's default argument is shared between calls, and with a reference it returns the error code."""
    answer = ctypes.c_uint()
    code = _function(nvml, "nvmlDeviceGetModuleId")(_device(nvml, index), ctypes.byref(answer))
    if code:
        raise nvml.NVMLError(code)
    return answer.value


def _mig_uuid(nvml: ModuleType, index: int, instance: int) -> str:
    handle = _function(nvml, "nvmlDeviceGetMigDeviceHandleByIndex")(_device(nvml, index), instance)
    uuid: str = nvml.nvmlDeviceGetUUID(handle)
    return uuid


# by nvmlValueType_t: double, unsigned int, unsigned long, unsigned long long, long long, int, unsigned short
_VALUE_FORMATS = ("d", "I", "L", "Q", "q", "i", "H")


def _field_values(nvml: ModuleType, index: int, fields: Sequence[Sequence[int]]) -> list[dict[str, Any]]:
    """The call succeeds while single fields fail: each entry carries its own return code, and its own type."""
    entries = _function(nvml, "nvmlDeviceGetFieldValues")(_device(nvml, index), [tuple(field) for field in fields])
    return [
        {"id": field[0], "scope": field[1], "return": int(entry.nvmlReturn), "value": _field_value(entry)}
        for field, entry in zip(fields, entries, strict=True)
    ]


def _field_value(entry: Any) -> int | float | None:
    """Read from the raw bytes: the oldest bindings lack members of the union."""
    if entry.nvmlReturn or not 0 <= entry.valueType < len(_VALUE_FORMATS):
        return None
    value: int | float = struct.unpack_from(_VALUE_FORMATS[entry.valueType], bytes(entry.value))[0]
    return value


def _fabric_info(nvml: ModuleType, index: int) -> dict[str, Any]:
    """The newest structure that binding and driver both know: v3 (R580), v2 (R550), the unversioned one (R525)."""
    device = _device(nvml, index)
    ask = getattr(nvml, "nvmlDeviceGetGpuFabricInfoV", None)
    for structure in ("c_nvmlGpuFabricInfo_v3_t", "c_nvmlGpuFabricInfo_v2_t"):
        if ask is None or not hasattr(nvml, structure):
            continue
        info = getattr(nvml, structure)()
        try:
            ask(device, ctypes.byref(info))
        except (nvml.NVMLError_InvalidArgument, nvml.NVMLError_NotSupported, nvml.NVMLError_FunctionNotFound):
            continue
        except nvml.NVMLError as error:
            if error.value != getattr(nvml, "NVML_ERROR_ARGUMENT_VERSION_MISMATCH", None):
                raise
            continue
        return {
            "state": info.state & 0xFF,  # one byte in C; the binding reads four
            "status": int(info.status),
            "cliqueId": int(info.cliqueId),
            "clusterUuid": bytes(info.clusterUuid).hex(),
            "healthMask": int(info.healthMask),
            "healthSummary": getattr(info, "healthSummary", None),
        }
    return _oldest_fabric_info(nvml, device)


def _oldest_fabric_info(nvml: ModuleType, device: Any) -> dict[str, Any]:
    """R525 to R545. The structure carries no version and its UUID shrank from 80 characters to 16 bytes, so that the
    binding's own may be too small for the driver: it gets a larger buffer, and what it wrote shows which one it is."""
    untouched = b"\xa5" * 4
    buffer = ctypes.create_string_buffer(untouched * 64, 256)
    _function(nvml, "nvmlDeviceGetGpuFabricInfo")(device, ctypes.byref(buffer))
    long = buffer.raw[80:84] != untouched
    status, clique, state = struct.unpack_from("=IIB", buffer.raw, 80 if long else 16)
    uuid = None if long else buffer.raw[:16].hex()
    answer = {"state": state, "status": status, "cliqueId": clique, "clusterUuid": uuid}
    return {**answer, "healthMask": 0, "healthSummary": None}


def _device_bandwidth_mode(nvml: ModuleType, index: int) -> dict[str, int]:
    """R570 and later, Blackwell and later."""
    device = _device(nvml, index)
    info = _function(nvml, "c_nvmlNvlinkGetBwMode_v1_t")()
    _function(nvml, "nvmlDeviceGetNvlinkBwMode")(device, ctypes.byref(info))
    return {"bIsBest": int(info.bIsBest), "bwMode": int(info.bwMode)}


# version (4 bytes), GUID of the fabric (16), serial number of the chassis (16; a GUID in version 1), five numbers
_PLATFORM_INFO = "=36x5B"


def _platform_info(nvml: ModuleType, index: int) -> dict[str, Any]:
    """R570 and later, racks. Read from the raw bytes: the binding cuts its members at the first NUL. The fabric's GUID
    is left out: it names the machine, and no one needs it."""
    device = _device(nvml, index)
    info = _function(nvml, "c_nvmlPlatformInfo_v2_t")()
    _function(nvml, "nvmlDeviceGetPlatformInfo")(device, ctypes.byref(info))
    raw = bytes(info)
    slot, tray, host, peer, module = struct.unpack_from(_PLATFORM_INFO, raw)
    return {
        "chassisSerialNumber": raw[20:36].partition(b"\0")[0].decode("ascii").strip(),
        "slotNumber": slot,
        "trayIndex": tray,
        "hostId": host,
        "peerType": peer,
        "moduleId": module,
    }


def _clock_limits(nvml: ModuleType, index: int) -> int:
    """By its name since R535; older bindings and drivers have the same bits as throttle reasons."""
    ask = getattr(nvml, "nvmlDeviceGetCurrentClocksEventReasons", None)
    try:
        if ask is not None:
            return int(ask(_device(nvml, index)))
    except nvml.NVMLError_FunctionNotFound:
        pass
    return int(_function(nvml, "nvmlDeviceGetCurrentClocksThrottleReasons")(_device(nvml, index)))


def _sram_status(nvml: ModuleType, index: int) -> dict[str, int]:
    """R550 and later, Ampere and later."""
    device = _device(nvml, index)
    status = _function(nvml, "c_nvmlEccSramErrorStatus_v1_t")()
    _function(nvml, "nvmlDeviceGetSramEccErrorStatus")(device, ctypes.byref(status))
    return {"bThresholdExceeded": int(status.bThresholdExceeded)}


def _confidential_computing(nvml: ModuleType) -> dict[str, int]:
    return {"ccFeature": int(_function(nvml, "nvmlSystemGetConfComputeState")().ccFeature)}


def _plain_device_getters(*names: str) -> dict[str, Adapter]:
    return {f"nvmlDevice{name}": _of_device(f"nvmlDevice{name}") for name in names}


ADAPTERS: Mapping[str, Adapter] = {
    "nvmlInit_v2": _init,
    "nvmlSystemGetDriverVersion": _system("nvmlSystemGetDriverVersion"),
    "nvmlSystemGetCudaDriverVersion_v2": _system("nvmlSystemGetCudaDriverVersion_v2"),
    "nvmlSystemGetNvlinkBwMode": _system("nvmlSystemGetNvlinkBwMode"),
    "nvmlSystemGetConfComputeState": _confidential_computing,
    "nvmlDeviceGetCount_v2": _system("nvmlDeviceGetCount"),
    "nvmlDeviceGetPciInfo_v3": _of_device("nvmlDeviceGetPciInfo_v3", "busId", "pciDeviceId", "pciSubSystemId"),
    "nvmlDeviceGetUtilizationRates": _of_device("nvmlDeviceGetUtilizationRates", "gpu", "memory"),
    "nvmlDeviceGetBAR1MemoryInfo": _of_device("nvmlDeviceGetBAR1MemoryInfo", "bar1Total"),
    "nvmlDeviceGetMemoryInfo": _of_device("nvmlDeviceGetMemoryInfo", "total"),
    "nvmlDeviceGetC2cModeInfoV": _of_device("nvmlDeviceGetC2cModeInfoV", "isC2cEnabled"),
    "nvmlDeviceGetNvLinkRemotePciInfo_v2": _of_device("nvmlDeviceGetNvLinkRemotePciInfo", "busId"),
    "nvmlDeviceGetModuleId": _module_id,
    "nvmlDeviceGetMigDeviceHandleByIndex": _mig_uuid,
    "nvmlDeviceGetFieldValues": _field_values,
    "nvmlDeviceGetGpuFabricInfoV": _fabric_info,
    "nvmlDeviceGetNvlinkBwMode": _device_bandwidth_mode,
    "nvmlDeviceGetPlatformInfo": _platform_info,
    "nvmlDeviceGetCurrentClocksEventReasons": _clock_limits,
    "nvmlDeviceGetSramEccErrorStatus": _sram_status,
    "nvmlDeviceGetTopologyCommonAncestor": _of_pair("nvmlDeviceGetTopologyCommonAncestor"),
    "nvmlDeviceGetP2PStatus": _of_pair("nvmlDeviceGetP2PStatus"),
    **_plain_device_getters(
        "GetUUID",
        "GetName",
        "GetSerial",
        "GetVbiosVersion",
        "GetMinorNumber",
        "GetArchitecture",
        "GetCudaComputeCapability",
        "GetPerformanceState",
        "GetPersistenceMode",
        "GetCurrPcieLinkGeneration",
        "GetCurrPcieLinkWidth",
        "GetMaxPcieLinkGeneration",
        "GetMaxPcieLinkWidth",
        "GetPcieReplayCounter",
        "GetNumaNodeId",
        "GetMigMode",
        "GetMaxMigDeviceCount",
        "GetVirtualizationMode",
        "GetAddressingMode",
        "GetNvLinkState",
        "GetNvLinkVersion",
        "GetNvLinkRemoteDeviceType",
        "GetNvLinkErrorCounter",
        "GetClockInfo",
        "GetMaxClockInfo",
        "GetApplicationsClock",
        "GetDefaultApplicationsClock",
        "GetPowerManagementLimit",
        "GetPowerManagementDefaultLimit",
        "GetEnforcedPowerLimit",
        "GetEccMode",
        "GetTotalEccErrors",
        "GetRemappedRows",
        "GetRetiredPagesPendingStatus",
        "GetRepairStatus",
        "GetUnrepairableMemoryFlag_v1",
    ),
}
