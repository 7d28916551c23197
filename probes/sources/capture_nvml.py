"""NVML answers of a capture. Field values answer field by field, whatever batch they were asked in: a later version
that asks for other fields still gets those that are there.

What each NVML call answers, as types: a capture comes from anywhere, and its answers are read as the library's.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from probes.host.interface import Absent, Refusal
from probes.host.nvml import ADAPTERS

_Question = TypeVar("_Question")
_Answer = TypeVar("_Answer")
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
    shape = _STRUCTURES.get(function) or (_text if name in _TEXTS else _number)
    if function in ADAPTERS and not shape(answer):
        raise ValueError(f"{function}: {answer!r:.80}")


def _text(answer: Any) -> bool:
    return isinstance(answer, str)


def _number(answer: Any) -> bool:
    return type(answer) is int and -_NUMBER_LIMIT < answer < _NUMBER_LIMIT


def _is_measured(answer: Any) -> bool:
    return answer is None or _number(answer) or (isinstance(answer, float) and math.isfinite(answer))


def _or_none(shape: Shape) -> Shape:
    return lambda answer: answer is None or shape(answer)


def _numbers(count: int | None = None) -> Shape:
    return lambda answer: (
        isinstance(answer, list) and count in (None, len(answer)) and all(_number(number) for number in answer)
    )


def _table(**fields: Shape) -> Shape:
    return lambda answer: (
        isinstance(answer, dict) and all(key in answer and shape(answer[key]) for key, shape in fields.items())
    )


def _rows(answer: Any) -> bool:
    row = _table(id=_number, scope=_number, **{"return": _number, "value": _is_measured})
    return isinstance(answer, list) and all(row(item) for item in answer)


_TEXTS = frozenset({"GetUUID", "GetName", "GetSerial", "GetVbiosVersion", "GetMigDeviceHandleByIndex"})
_STRUCTURES: Mapping[str, Shape] = {  # of what gives neither a text nor, as most, a number
    "nvmlInit_v2": lambda answer: True,
    "nvmlSystemGetDriverVersion": _text,
    "nvmlDeviceGetPciInfo_v3": _table(busId=_text, pciDeviceId=_number, pciSubSystemId=_number),
    "nvmlDeviceGetUtilizationRates": _table(gpu=_number, memory=_number),
    "nvmlDeviceGetBAR1MemoryInfo": _table(bar1Total=_number),
    "nvmlDeviceGetMemoryInfo": _table(total=_number),
    "nvmlDeviceGetC2cModeInfoV": _table(isC2cEnabled=_number),
    "nvmlDeviceGetNvLinkRemotePciInfo_v2": _table(busId=_text),
    "nvmlDeviceGetFieldValues": _rows,
    "nvmlDeviceGetCudaComputeCapability": _numbers(2),
    "nvmlDeviceGetMigMode": _numbers(2),
    "nvmlDeviceGetEccMode": _numbers(2),
    "nvmlDeviceGetRepairStatus": _numbers(2),
    "nvmlDeviceGetRemappedRows": _numbers(4),
    "nvmlDeviceGetSramEccErrorStatus": _table(bThresholdExceeded=_number),
    "nvmlDeviceGetCpuAffinity": _numbers(),  # of captures of earlier versions
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


def replay(answers: Mapping[_Question, _Answer | Refusal], question: _Question, what: str) -> _Answer:
    """What was answered to a question of this kind. Raises ReadError."""
    if question not in answers:
        raise Absent(f"{what}: not recorded")
    answer = answers[question]
    if isinstance(answer, Refusal):
        raise answer.error()
    return answer


FIELD_VALUES = "nvmlDeviceGetFieldValues"
NOT_RECORDED = 999  # NVML_ERROR_UNKNOWN: the one code that reports nothing of the device


class RecordedNvml:
    """The calls of one nvml.json."""

    def __init__(self, calls: Iterable[tuple[tuple[str, str], Any]] = ()) -> None:
        """`calls`: (function, arguments as JSON) -> answer or Refusal. Raises KeyError, TypeError or ValueError where
        an answer is not what that function gives."""
        self._answers = dict(calls)
        for (function, _), answer in self._answers.items():
            if not isinstance(answer, Refusal):
                check_shape(function, answer)
        self._fields: dict[tuple[Any, int, int], dict[str, Any]] = {}
        for (function, arguments), answer in self._answers.items():
            if function == FIELD_VALUES and not isinstance(answer, Refusal):
                device = json.loads(arguments)[0]
                self._fields |= {(device, int(row["id"]), int(row["scope"])): dict(row) for row in answer}

    def answer(self, function: str, arguments: tuple[Any, ...]) -> Any:
        """See Host.nvml."""
        call = function, json.dumps(arguments)
        if call not in self._answers and function == FIELD_VALUES and len(arguments) == 2:
            return self._compose(*arguments)
        return replay(self._answers, call, function)

    def _compose(self, device: Any, field_rows: list[list[int]]) -> list[dict[str, Any]]:
        """The batch, put together from every batch that was recorded of this device."""
        rows = [self._fields.get((device, field, scope)) for field, scope in field_rows]
        if not any(rows):
            raise Absent(f"{FIELD_VALUES}: not recorded")
        nothing = {"return": NOT_RECORDED, "value": None}
        return [row or {"id": f, "scope": s, **nothing} for row, (f, s) in zip(rows, field_rows, strict=True)]
