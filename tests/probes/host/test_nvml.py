"""`nvml_calls` over the real binding, with a made-up libnvidia-ml beneath it: what is asked, and what comes back."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pynvml
import pytest

from probes.host import nvml as nvml_calls
from probes.host.interface import Absent, Denied, Failed, ReadError, TimedOut


class Library:
    """libnvidia-ml as ctypes shows it: attributes are C functions that fill references and return an nvmlReturn_t.
    A symbol that is not here raises AttributeError, as ctypes does."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def answers(self, symbol: str, *values: Any, code: int = 0, at: int = 1) -> None:
        """Let a symbol put `values` behind its references, from argument `at` on."""

        def function(*arguments: Any) -> int:
            self.calls.append(symbol)
            for argument, value in zip(arguments[at:], values, strict=False):
                put(argument, value)
            return code

        setattr(self, symbol, function)
        pynvml._nvmlGetFunctionPointer_cache.pop(symbol, None)


def put(reference: Any, value: Any) -> None:
    target = getattr(reference, "_obj", reference)
    if isinstance(value, dict):
        for name, member in value.items():
            setattr(target, name, member)
    elif isinstance(target, ctypes.Array) and not isinstance(value, bytes):
        target[:] = value
    else:
        target.value = value


H100, LOST = 0, 1  # indexes of the made-up GPUs


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    """The binding believes that it has loaded this."""
    made_up = Library()
    monkeypatch.setattr(pynvml, "nvmlLib", made_up)
    monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})
    made_up.answers("nvmlInitWithFlags")
    made_up.answers("nvmlErrorString")

    def handle(index: Any, reference: Any) -> int:
        return pynvml.NVML_ERROR_GPU_IS_LOST if index.value == LOST else 0

    made_up.nvmlDeviceGetHandleByIndex_v2 = handle
    return made_up


def test_only_getters_can_be_asked() -> None:
    """No setter, no reset, no clear, no scan for GPUs is in the table."""
    allowed = ("nvmlDeviceGet", "nvmlSystemGet", "nvmlInit_v2")

    assert [] == [name for name in nvml_calls.ADAPTERS if not name.startswith(allowed)]


@pytest.mark.parametrize("function", ["nvmlDeviceSetPersistenceMode", "nvmlDeviceClearFieldValues", "nvmlShutdown", ""])
def test_anything_else_is_a_bug_of_the_caller(function: str) -> None:
    """Not a failing answer: a wrong call must not look like a driver that says no."""
    with pytest.raises(ValueError, match="not one of the NVML getters"):
        nvml_calls.call(function, 0)


@pytest.mark.skipif(Path("/dev/nvidiactl").exists(), reason="this machine has an NVIDIA driver: its NVML would answer")
def test_a_host_without_the_library_says_so() -> None:
    """The real nvmlInit of the real binding."""
    with pytest.raises(Absent) as raised:
        nvml_calls.call("nvmlInit_v2")

    assert raised.value.code in ("LIBRARY_NOT_FOUND", "DRIVER_NOT_LOADED")


def test_a_host_without_the_binding_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """`pynvml` cannot be imported."""
    monkeypatch.setitem(__import__("sys").modules, "pynvml", None)

    with pytest.raises(Absent) as raised:
        nvml_calls.call("nvmlInit_v2")

    assert "LIBRARY_NOT_FOUND" == raised.value.code


@pytest.mark.parametrize(
    ("error", "kind", "code"),
    [
        ("NVML_ERROR_DRIVER_NOT_LOADED", Absent, "DRIVER_NOT_LOADED"),
        ("NVML_ERROR_NO_PERMISSION", Denied, "NO_PERMISSION"),
        ("NVML_ERROR_TIMEOUT", TimedOut, "TIMEOUT"),
        ("NVML_ERROR_NOT_SUPPORTED", Failed, "NOT_SUPPORTED"),
        ("NVML_ERROR_LIB_RM_VERSION_MISMATCH", Failed, "LIB_RM_VERSION_MISMATCH"),
        ("NVML_ERROR_UNKNOWN", Failed, "UNKNOWN"),
    ],
)
def test_errors_are_told_apart(library: Library, error: str, kind: type[ReadError], code: str) -> None:
    """The NVML error's name without its prefix is the code."""
    library.answers("nvmlInitWithFlags", code=getattr(pynvml, error))

    with pytest.raises(kind) as raised:
        nvml_calls.call("nvmlInit_v2")

    assert (kind, code) == (type(raised.value), raised.value.code)


def test_an_error_that_is_newer_than_the_binding_keeps_its_number(library: Library) -> None:
    """A driver may know more errors than the binding."""
    library.answers("nvmlInitWithFlags", code=987)

    with pytest.raises(Failed) as raised:
        nvml_calls.call("nvmlInit_v2")

    assert "987" == raised.value.code


def test_a_lost_gpu_fails_by_its_name(library: Library) -> None:
    """Its handle cannot be had; the other GPUs answer."""
    library.answers("nvmlDeviceGetMinorNumber", 3)

    assert 3 == nvml_calls.call("nvmlDeviceGetMinorNumber", H100)
    with pytest.raises(Failed) as raised:
        nvml_calls.call("nvmlDeviceGetMinorNumber", LOST)
    assert "GPU_IS_LOST" == raised.value.code


def test_what_driver_or_binding_lack_is_function_not_found(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing symbol and a missing wrapper are the same answer."""
    for function in ("nvmlDeviceGetNumaNodeId", "nvmlDeviceGetGpuFabricInfoV", "nvmlDeviceGetC2cModeInfoV"):
        with pytest.raises(Failed) as raised:
            nvml_calls.call(function, H100)
        assert "FUNCTION_NOT_FOUND" == raised.value.code, function
    for wrapper in ("nvmlDeviceGetAddressingMode", "nvmlDeviceGetGpuFabricInfoV", "nvmlDeviceGetGpuFabricInfo"):
        monkeypatch.delattr(pynvml, wrapper)
    for function in ("nvmlDeviceGetAddressingMode", "nvmlDeviceGetGpuFabricInfoV"):
        with pytest.raises(Failed) as raised:
            nvml_calls.call(function, H100)
        assert "FUNCTION_NOT_FOUND" == raised.value.code, function


def test_answers_are_plain_data(library: Library) -> None:
    """What a capture stores is what a live host said: JSON takes all of it and gives it back."""
    library.answers("nvmlSystemGetDriverVersion", b"570.211.01", at=0)
    library.answers("nvmlDeviceGetName", b"NVIDIA H100 80GB HBM3")
    library.answers("nvmlDeviceGetPciInfo_v3", {"busId": b"00000000:1B:00.0", "pciDeviceId": 0x233010DE})
    library.answers("nvmlDeviceGetCudaComputeCapability", 9, 0)
    library.answers("nvmlDeviceGetMigMode", 1, 0)
    library.answers("nvmlDeviceGetUtilizationRates", {"gpu": 7, "memory": 1})
    library.answers("nvmlDeviceGetMemoryInfo", {"total": 85520809984})
    library.answers("nvmlDeviceGetC2cModeInfoV", {"isC2cEnabled": 1})
    library.answers("nvmlDeviceGetNvLinkRemotePciInfo_v2", {"busId": b"00000000:05:00.0"}, at=2)

    answers = {
        "driver": nvml_calls.call("nvmlSystemGetDriverVersion"),
        "name": nvml_calls.call("nvmlDeviceGetName", H100),
        "pci": nvml_calls.call("nvmlDeviceGetPciInfo_v3", H100),
        "capability": nvml_calls.call("nvmlDeviceGetCudaComputeCapability", H100),
        "mig": nvml_calls.call("nvmlDeviceGetMigMode", H100),
        "utilization": nvml_calls.call("nvmlDeviceGetUtilizationRates", H100),
        "memory": nvml_calls.call("nvmlDeviceGetMemoryInfo", H100),
        "c2c": nvml_calls.call("nvmlDeviceGetC2cModeInfoV", H100),
        "remote": nvml_calls.call("nvmlDeviceGetNvLinkRemotePciInfo_v2", H100, 3),
    }

    assert {
        "driver": "570.211.01",
        "name": "NVIDIA H100 80GB HBM3",
        "pci": {"busId": "00000000:1B:00.0", "pciDeviceId": 0x233010DE, "pciSubSystemId": 0},
        "capability": [9, 0],
        "mig": [1, 0],
        "utilization": {"gpu": 7, "memory": 1},
        "memory": {"total": 85520809984},
        "c2c": {"isC2cEnabled": 1},
        "remote": {"busId": "00000000:05:00.0"},
    } == json.loads(json.dumps(answers))


def test_what_a_rack_says_is_read_from_the_raw_bytes(library: Library) -> None:
    """The binding cuts its members at the first NUL: slot 0 would be no number."""

    def platform(device: Any, reference: Any) -> int:
        raw = b"\0" * 4 + b"\xaa" * 16 + b"1824125002\0\0\0\0\0\0" + bytes([24, 0, 1, 2, 3])
        ctypes.memmove(ctypes.addressof(reference._obj), raw, len(raw))
        return 0

    library.nvmlDeviceGetPlatformInfo = platform
    result = {"chassisSerialNumber": "1824125002", "slotNumber": 24, "trayIndex": 0, "hostId": 1}

    assert {**result, "peerType": 2, "moduleId": 3} == nvml_calls.call("nvmlDeviceGetPlatformInfo", H100)


def test_modes_are_numbers(library: Library) -> None:
    """Of one GPU, and of the system."""
    library.answers("nvmlDeviceGetNvlinkBwMode", {"bIsBest": 0, "bwMode": 3})
    library.answers("nvmlSystemGetConfComputeState", {"ccFeature": 1}, at=0)

    assert {"bIsBest": 0, "bwMode": 3} == nvml_calls.call("nvmlDeviceGetNvlinkBwMode", H100)
    assert {"ccFeature": 1} == nvml_calls.call("nvmlSystemGetConfComputeState")


def test_text_that_is_no_text_is_a_failure(library: Library) -> None:
    """A corrupted infoROM gives bytes that no encoding knows."""
    library.answers("nvmlDeviceGetSerial", b"\xff\xfe\xff")

    with pytest.raises(Failed) as raised:
        nvml_calls.call("nvmlDeviceGetSerial", H100)

    assert "UNDECODABLE" == raised.value.code


def test_module_ids_do_not_leak_from_one_gpu_to_the_next(library: Library) -> None:
    """The binding's default argument is one shared object, and with a reference errors are returned, not raised."""
    library.answers("nvmlDeviceGetModuleId", 4)
    first = nvml_calls.call("nvmlDeviceGetModuleId", H100)
    library.answers("nvmlDeviceGetModuleId", code=pynvml.NVML_ERROR_NOT_SUPPORTED)

    assert 4 == first
    with pytest.raises(Failed) as raised:
        nvml_calls.call("nvmlDeviceGetModuleId", H100)
    assert "NOT_SUPPORTED" == raised.value.code


def test_every_field_value_has_its_own_return_code_and_type(library: Library) -> None:
    """The call succeeds although fields fail; a value is read as the type that came with it."""
    given: dict[int, tuple[int, int, str, int | float]] = {
        91: (0, 1, "uiVal", 18),
        164: (0, 1, "uiVal", 26562),
        165: (3, 0, "ullVal", 0),
        161: (0, 3, "ullVal", 1 << 40),
        82: (0, 5, "siVal", -7),
        83: (0, 0, "dVal", 1.5),
        84: (0, 6, "usVal", 65535),
        85: (0, 99, "ullVal", 5),
    }

    def field_values(_: Any, count: Any, reference: Any) -> int:
        for entry in reference._obj[: count.value]:
            entry.nvmlReturn, entry.valueType, member, value = given[entry.fieldId]
            setattr(entry.value, member, value)
        return 0

    library.nvmlDeviceGetFieldValues = field_values
    request = [[91, 0], [164, 5], [165, 5], [161, 5], [82, 0], [83, 0], [84, 0], [85, 0]]

    answers = nvml_calls.call("nvmlDeviceGetFieldValues", H100, request)

    assert [18, 26562, None, 1 << 40, -7, 1.5, 65535, None] == [answer["value"] for answer in answers]
    assert request == [[answer["id"], answer["scope"]] for answer in answers]
    assert {"id": 165, "scope": 5, "return": 3, "value": None} == answers[2]


FABRIC = {"status": 0, "cliqueId": 7, "state": 0xABCD0003, "healthMask": 0x2}
UUID = bytes(range(16))


def fabric(version: int, refusal: int) -> Callable[[Any, Any], int]:
    """nvmlDeviceGetGpuFabricInfoV of a driver that knows one version of the structure."""

    def function(_: Any, reference: Any) -> int:
        info = reference._obj
        if info.version >> 24 != version:
            return refusal
        put(reference, FABRIC)
        info.clusterUuid[:] = UUID
        if version == 3:
            info.healthSummary = 1
        return 0

    return function


@pytest.mark.parametrize("refusal", ["INVALID_ARGUMENT", "NOT_SUPPORTED", "ARGUMENT_VERSION_MISMATCH"])
@pytest.mark.parametrize(("version", "summary"), [(3, 1), (2, None)])
def test_fabric_info_is_asked_by_the_newest_structure_that_the_driver_knows(
    library: Library, version: int, summary: int | None, refusal: str
) -> None:
    """v3, then v2; the state is one byte in C although the binding reads four."""
    library.nvmlDeviceGetGpuFabricInfoV = fabric(version, getattr(pynvml, f"NVML_ERROR_{refusal}"))

    answer = nvml_calls.call("nvmlDeviceGetGpuFabricInfoV", H100)

    assert {
        "state": 3,
        "status": 0,
        "cliqueId": 7,
        "clusterUuid": UUID.hex(),
        "healthMask": 2,
        "healthSummary": summary,
    } == answer


@pytest.mark.parametrize(("uuid_bytes", "uuid"), [(16, UUID.hex()), (80, None)])
def test_the_oldest_fabric_info_is_told_by_what_the_driver_wrote(
    library: Library, uuid_bytes: int, uuid: str | None
) -> None:
    """R525 writes 80 characters where R535 writes 16 bytes, and neither says so."""

    def function(_: Any, reference: Any) -> int:
        wrote = UUID.ljust(uuid_bytes, b"\0") + (0).to_bytes(4, "little") + (9).to_bytes(4, "little") + b"\x03"
        ctypes.memmove(reference, wrote, len(wrote))
        return 0

    library.nvmlDeviceGetGpuFabricInfo = function

    answer = nvml_calls.call("nvmlDeviceGetGpuFabricInfoV", H100)

    assert (3, 0, 9, uuid) == (answer["state"], answer["status"], answer["cliqueId"], answer["clusterUuid"])


def test_mig_instances_are_named_by_uuid(library: Library) -> None:
    """A handle is no plain data."""
    library.answers("nvmlDeviceGetMigDeviceHandleByIndex")
    library.answers("nvmlDeviceGetUUID", b"MIG-8987211f-530e-2c09-1d70-0984ef6f1a65")

    assert "MIG-8987211f-530e-2c09-1d70-0984ef6f1a65" == nvml_calls.call("nvmlDeviceGetMigDeviceHandleByIndex", H100, 1)


def test_a_pair_is_asked_with_both_handles_and_the_number_of_the_index(library: Library) -> None:
    """The binding's constant for READ is a tuple; 0 is passed."""
    seen: list[tuple[Any, ...]] = []

    def status(a: Any, b: Any, index: Any, reference: Any) -> int:
        seen.append((type(a), type(b), index))
        put(reference, 1)
        return 0

    library.nvmlDeviceGetP2PStatus = status

    assert 1 == nvml_calls.call("nvmlDeviceGetP2PStatus", H100, 2, 0)
    assert [(pynvml.c_nvmlDevice_t, pynvml.c_nvmlDevice_t, 0)] == seen
