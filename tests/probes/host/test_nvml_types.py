"""Recorded NVML answers of another type than the library's are damage, and never facts."""

from __future__ import annotations

import pytest

from fixtures.build import build_capture
from probes.host.nvml import ADAPTERS
from probes.sources.capture_nvml import check_shape
from tests.machines import HOSTS

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
