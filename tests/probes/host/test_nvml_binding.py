"""The binding of the NVML library and its types."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pynvml
import pytest

from fixtures.build import build_capture
from probes.host import nvml as nvml_calls
from probes.host.nvml import ADAPTERS
from probes.sources.capture_nvml import check_shape
from tests.machines import HOSTS

# The real binding has every wrapper, structure and constant that `nvml_calls` uses: no GPU is needed to see it.


def test_every_wrapper_that_is_used_is_in_the_binding_with_the_arguments_that_are_passed() -> None:
    """A renamed wrapper would read as FUNCTION_NOT_FOUND for ever, and nobody would see it."""
    signatures = {
        "nvmlInitWithFlags": 1,
        "nvmlSystemGetDriverVersion": 0,
        "nvmlSystemGetCudaDriverVersion_v2": 0,
        "nvmlSystemGetNvlinkBwMode": 0,
        "nvmlSystemGetConfComputeState": 0,
        "nvmlDeviceGetNvlinkBwMode": 2,
        "nvmlDeviceGetPlatformInfo": 2,
        "nvmlDeviceGetCount": 0,
        "nvmlDeviceGetHandleByIndex": 1,
        "nvmlDeviceGetModuleId": 2,
        "nvmlDeviceGetMigDeviceHandleByIndex": 2,
        "nvmlDeviceGetFieldValues": 2,
        "nvmlDeviceGetGpuFabricInfoV": 2,
        "nvmlDeviceGetGpuFabricInfo": 2,
        "nvmlDeviceGetTopologyCommonAncestor": 2,
        "nvmlDeviceGetP2PStatus": 3,
        "nvmlDeviceGetNvLinkRemotePciInfo": 2,
        "nvmlDeviceGetNvLinkState": 2,
        "nvmlDeviceGetNvLinkVersion": 2,
        "nvmlDeviceGetNvLinkRemoteDeviceType": 2,
        "nvmlDeviceGetNvLinkErrorCounter": 3,
        "nvmlDeviceGetSramEccErrorStatus": 2,
        "nvmlDeviceGetTotalEccErrors": 3,
        "nvmlDeviceGetClockInfo": 2,
        "nvmlDeviceGetMaxClockInfo": 2,
        "nvmlDeviceGetApplicationsClock": 2,
        "nvmlDeviceGetDefaultApplicationsClock": 2,
    }
    special = {"nvmlInit_v2", "nvmlDeviceGetCount_v2", "nvmlDeviceGetNvLinkRemotePciInfo_v2"}
    of_one_device = set(nvml_calls.ADAPTERS) - set(signatures) - special

    assert signatures == {name: arguments_of(name) for name in signatures}
    assert {} == {name: arguments_of(name) for name in sorted(of_one_device) if arguments_of(name) != 1}


def arguments_of(name: str) -> int:
    function: Callable[..., Any] = getattr(pynvml, name)
    parameters = inspect.signature(inspect.unwrap(function)).parameters.values()
    optional_in_the_middle = {"nvmlDeviceGetModuleId"}  # passed on purpose: the default is shared between calls
    return len([p for p in parameters if p.default is p.empty or name in optional_in_the_middle])


def test_every_structure_and_constant_that_is_used_is_in_the_binding() -> None:
    """Fields of structures are read by name."""
    fields = {
        "nvmlPciInfo_t": {"busId", "pciDeviceId", "pciSubSystemId"},
        "c_nvmlUtilization_t": {"gpu", "memory"},
        "c_nvmlBAR1Memory_t": {"bar1Total"},
        "c_nvmlMemory_t": {"total"},
        "c_nvmlC2cModeInfo_v1_t": {"isC2cEnabled"},
        "c_nvmlConfComputeSystemState_t": {"ccFeature"},
        "c_nvmlNvlinkGetBwMode_v1_t": {"bIsBest", "bwMode"},
        "c_nvmlPlatformInfo_v2_t": {
            "ibGuid",
            "chassisSerialNumber",
            "slotNumber",
            "trayIndex",
            "hostId",
            "peerType",
            "moduleId",
        },
        "c_nvmlFieldValue_t": {"fieldId", "scopeId", "valueType", "nvmlReturn", "value"},
        "c_nvmlGpuFabricInfo_v3_t": {"clusterUuid", "status", "cliqueId", "state", "healthMask", "healthSummary"},
        "c_nvmlGpuFabricInfo_v2_t": {"clusterUuid", "status", "cliqueId", "state", "healthMask"},
    }

    assert {} == {name: lacks for name, used in fields.items() if (lacks := used - fields_of(name))}
    assert (1, 13, 25) == (
        pynvml.NVML_INIT_FLAG_NO_GPUS,
        pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,
        pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH,
    )
    assert list(range(7)) == [
        pynvml.NVML_VALUE_TYPE_DOUBLE,
        pynvml.NVML_VALUE_TYPE_UNSIGNED_INT,
        pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG,
        pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG,
        pynvml.NVML_VALUE_TYPE_SIGNED_LONG_LONG,
        pynvml.NVML_VALUE_TYPE_SIGNED_INT,
        pynvml.NVML_VALUE_TYPE_UNSIGNED_SHORT,
    ]


def fields_of(structure: str) -> set[str]:
    return {field[0] for field in getattr(pynvml, structure)._fields_}


# Recorded NVML answers of another type than the library's are damage, and never facts.


WRONG = (True, 1 << 64, float("nan"), {"x": 1}, [None], ["x"])


@pytest.mark.parametrize("shape", HOSTS)
def test_what_machines_answer_is_accepted(shape: str) -> None:
    """Every recorded answer of every fixture machine."""
    for call in build_capture(shape).nvml or []:
        if "answer" in call:
            check_shape(call["function"], call["answer"])


@pytest.mark.parametrize("function", sorted(ADAPTERS.keys() - {"nvmlInit_v2"}))
@pytest.mark.parametrize("answer", WRONG, ids=repr)
def test_anything_else_is_refused(function: str, answer: object) -> None:
    """Of every function that is asked; nvmlInit answers nothing."""
    with pytest.raises(ValueError, match=function):
        check_shape(function, answer)


def test_calls_of_a_later_version_may_answer_anything() -> None:
    """They are not read."""
    check_shape("nvmlDeviceGetSomethingNew", {"x": [None]})
