"""Recorded NVML answers: whole calls as they were, field values field by field."""

from __future__ import annotations

import json
from typing import Any

import pytest

from probes.host.interface import Absent, Failed, Refusal
from probes.sources.capture_nvml import NOT_RECORDED, RecordedNvml


def row(field: int, scope: int, value: int) -> dict[str, Any]:
    return {"id": field, "scope": scope, "return": 0, "value": value}


CALLS = [
    (("nvmlDeviceGetName", "[0]"), "NVIDIA H100"),
    (("nvmlDeviceGetSerial", "[0]"), Refusal("failed", "Not Supported", "NOT_SUPPORTED")),
    (("nvmlDeviceGetFieldValues", json.dumps([0, [[164, 0], [165, 0]]])), [row(164, 0, 26562), row(165, 0, 1)]),
    (("nvmlDeviceGetFieldValues", json.dumps([0, [[165, 1]]])), [row(165, 1, 1)]),
]


def test_a_call_is_answered_as_it_was() -> None:
    """Answers, refusals, and what was not asked when it was recorded."""
    recorded = RecordedNvml(CALLS)

    assert "NVIDIA H100" == recorded.answer("nvmlDeviceGetName", (0,))
    with pytest.raises(Failed, match="Not Supported"):
        recorded.answer("nvmlDeviceGetSerial", (0,))
    with pytest.raises(Absent, match="not recorded"):
        recorded.answer("nvmlDeviceGetUUID", (0,))


def test_another_batch_of_fields_is_put_together_from_what_is_there() -> None:
    """A field that nobody recorded is not "not supported": the code says nothing of the device."""
    answer = RecordedNvml(CALLS).answer("nvmlDeviceGetFieldValues", (0, [[165, 1], [164, 0], [230, 0]]))

    assert [row(165, 1, 1), row(164, 0, 26562)] == answer[:2]
    assert {"id": 230, "scope": 0, "return": NOT_RECORDED, "value": None} == answer[2]


def test_a_device_of_which_no_field_was_recorded_is_absent() -> None:
    """GPU 1 does not get the answers of GPU 0."""
    with pytest.raises(Absent, match="not recorded"):
        RecordedNvml(CALLS).answer("nvmlDeviceGetFieldValues", (1, [[165, 0]]))
