"""Recorded NVML answers as the table of bytes that our test library reads: tests/nvml/nvml.c."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterable, Mapping
from typing import Any

import pynvml

FOR_EVER, CRASH = "hang", "crash"
MIG_INDEX, MIG_STEP = 1000, 100  # as in nvml.c
_TEXTS = {
    "nvmlSystemGetDriverVersion",
    *(f"nvmlDeviceGet{name}" for name in ("UUID", "Name", "Serial", "VbiosVersion")),
}
_WIDE = {  # unsigned long long; every other number has 32 bits
    *("nvmlDeviceGetNvLinkErrorCounter", "nvmlDeviceGetTotalEccErrors", "nvmlDeviceGetCurrentClocksEventReasons"),
}
_STRUCTURES = {
    "nvmlDeviceGetPciInfo_v3": "nvmlPciInfo_t",
    "nvmlDeviceGetNvLinkRemotePciInfo_v2": "nvmlPciInfo_t",
    "nvmlDeviceGetUtilizationRates": "c_nvmlUtilization_t",
    "nvmlDeviceGetBAR1MemoryInfo": "c_nvmlBAR1Memory_t",
    "nvmlDeviceGetMemoryInfo": "c_nvmlMemory_t",
    "nvmlDeviceGetC2cModeInfoV": "c_nvmlC2cModeInfo_v1_t",
    "nvmlSystemGetConfComputeState": "c_nvmlConfComputeSystemState_t",
    "nvmlDeviceGetNvlinkBwMode": "c_nvmlNvlinkGetBwMode_v1_t",
    "nvmlDeviceGetSramEccErrorStatus": "c_nvmlEccSramErrorStatus_v1_t",
}
_FIELD = struct.Struct("=IIqqII8s")  # nvmlFieldValue_t


def table(records: Iterable[Mapping[str, Any]], actions: Mapping[tuple[str, str], str] | None = None) -> str:
    """The whole table. `actions`: (symbol, key) -> FOR_EVER or CRASH, for calls that end otherwise."""
    lines, devices = [], set()
    for record in records:
        for symbol, key, code, *outs in _rows(record):
            if symbol != "nvmlDeviceGetHandleByIndex_v2" or key not in devices:
                action = (actions or {}).get((symbol, key), "-")
                lines.append(f"{symbol} {key} {code} {action} {','.join(out.hex() or '-' for out in outs) or '-'}")
            if symbol == "nvmlDeviceGetHandleByIndex_v2":
                devices.add(key)
    return "\n".join(lines) + "\n"


def _rows(record: Mapping[str, Any]) -> Iterable[tuple[Any, ...]]:
    """(symbol, key, code, bytes..) of one recorded call, and of the handle that it needs."""
    function, arguments = record["function"], record["arguments"]
    error = record.get("error")
    code = getattr(pynvml, f"NVML_ERROR_{error['code']}") if error else 0
    if arguments:
        yield "nvmlDeviceGetHandleByIndex_v2", str(arguments[0]), code if code == pynvml.NVML_ERROR_GPU_IS_LOST else 0
    if function == "nvmlDeviceGetFieldValues":
        yield function, str(arguments[0]), code
        for entry in record.get("answer") or ():
            yield function, f"{arguments[0]}/{entry['id']}/{entry['scope']}", 0, _field(entry)
        return
    key = "/".join(map(str, arguments)) or "-"
    if code:
        yield function, key, code
        if function == "nvmlDeviceGetGpuFabricInfoV":  # the agent asks the older one then, too
            yield "nvmlDeviceGetGpuFabricInfo", key, code
    elif function == "nvmlDeviceGetMigDeviceHandleByIndex":
        yield function, key, 0
        instance = MIG_INDEX + MIG_STEP * arguments[0] + arguments[1]
        yield "nvmlDeviceGetUUID", str(instance), 0, record["answer"].encode() + b"\0"
    else:
        yield function, key, 0, *_outs(function, record["answer"])


def _outs(function: str, answer: Any) -> list[bytes]:
    if answer is None:
        return []
    if function in _TEXTS:
        return [answer.encode() + b"\0"]
    if function == "nvmlDeviceGetGpuFabricInfoV":
        return [_fabric(answer)]
    if function == "nvmlDeviceGetPlatformInfo":
        return [_platform(answer)]
    if function in _STRUCTURES:
        return [_structure(_STRUCTURES[function], answer)]
    if function == "nvmlDeviceGetAddressingMode":
        return [struct.pack("=II", 0, answer)]  # behind the version of the structure
    if function in ("nvmlDeviceGetRepairStatus", "nvmlDeviceGetUnrepairableMemoryFlag_v1"):
        return [
            struct.pack("=I", 0)
            + b"".join(struct.pack("=I", item) for item in (answer if isinstance(answer, list) else [answer]))
        ]
    if isinstance(answer, list):
        return [struct.pack("=i", item) for item in answer]
    return [struct.pack("=Q", answer) if function in _WIDE else struct.pack("=I", answer & 0xFFFFFFFF)]


def _structure(name: str, answer: Mapping[str, Any]) -> bytes:
    result = getattr(pynvml, name)()
    for field, value in answer.items():
        setattr(result, field, value.encode() if isinstance(value, str) else value)
    return bytes(result)


def _fabric(answer: Mapping[str, Any]) -> bytes:
    """The newest structure that the binding knows: the agent asks for that one first."""
    newest = next(n for n in ("c_nvmlGpuFabricInfo_v3_t", "c_nvmlGpuFabricInfo_v2_t") if hasattr(pynvml, n))
    result = getattr(pynvml, newest)()
    uuid = bytes.fromhex(answer["clusterUuid"])
    for field in ("status", "cliqueId", "state", "healthMask", "healthSummary"):
        if hasattr(result, field):
            setattr(result, field, answer.get(field) or 0)
    place = type(result).clusterUuid.offset
    data = bytearray(bytes(result))
    data[place : place + len(uuid)] = uuid  # the binding's member ends at the first NUL
    return bytes(data)


def _platform(answer: Mapping[str, Any]) -> bytes:
    serial = answer["chassisSerialNumber"].encode().ljust(16, b"\0")
    numbers = [answer[name] for name in ("slotNumber", "trayIndex", "hostId", "peerType", "moduleId")]
    data = struct.pack("=I16s16s5B", 0, bytes(16), serial, *numbers)
    return data.ljust(ctypes.sizeof(pynvml.c_nvmlPlatformInfo_v2_t), b"\0")


def _field(entry: Mapping[str, Any]) -> bytes:
    """One entry with its own return code and its own type."""
    value = entry["value"]
    kind, packed = 3, struct.pack("=Q", (value or 0) & (2**64 - 1)) if not isinstance(value, float) else b""
    if isinstance(value, float):
        kind, packed = 0, struct.pack("=d", value)
    elif value is not None and value < 0:
        kind, packed = 4, struct.pack("=q", value)
    return _FIELD.pack(entry["id"], entry["scope"], 0, 0, kind, entry["return"], packed)
