"""NVML answers of a capture. Field values answer field by field, whatever batch they were asked in: a later version
that asks for other fields still gets those that are there."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from probes.host.interface import Absent
from probes.host.nvml_types import check_shape
from probes.host.refusal import Refusal

FIELD_VALUES = "nvmlDeviceGetFieldValues"
NOT_RECORDED = 999  # NVML_ERROR_UNKNOWN: the one code that says nothing of the device


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
            return self._composed(*arguments)
        if call not in self._answers:
            raise Absent(f"{function}: not recorded")
        answer = self._answers[call]
        if isinstance(answer, Refusal):
            raise answer.error()
        return answer

    def _composed(self, device: Any, asked: list[list[int]]) -> list[dict[str, Any]]:
        """The batch, put together from every batch that was recorded of this device."""
        rows = [self._fields.get((device, field, scope)) for field, scope in asked]
        if not any(rows):
            raise Absent(f"{FIELD_VALUES}: not recorded")
        nothing = {"return": NOT_RECORDED, "value": None}
        return [row or {"id": f, "scope": s, **nothing} for row, (f, s) in zip(rows, asked, strict=True)]
