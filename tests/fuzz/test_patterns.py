"""No regular expression takes long for what it does not fit: a line of 16 KiB is read in 50 ms of one core."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest

from probes.kernel.log_events import LINE_CHARACTERS
from tests.fuzz.patterns import attacks, patterns

SECONDS = 0.05
# module -> how long a text that comes to its patterns can be
SHORT = {"probes.kernel.log_events": LINE_CHARACTERS}
EVERY = dict.fromkeys(patterns())


@pytest.mark.parametrize(("name", "pattern", "method"), EVERY, ids=lambda item: item if isinstance(item, str) else "")
def test_no_pattern_is_slow(name: str, pattern: re.Pattern[Any], method: str) -> None:
    """Of the thread's own time: how busy the machine is does not matter."""
    for attack in attacks(pattern):
        text = attack[: SHORT.get(name.rpartition(".")[0], len(attack))]
        for part in (256, 64, 16, 4, 1):  # the whole of it could take hours
            assert _seconds(pattern, method, text[: len(text) // part]) < SECONDS, f"{text[:80]!r}, 1/{part} of it"


def _seconds(pattern: re.Pattern[Any], method: str, text: str) -> float:
    subject = text.encode("latin-1", "replace") if isinstance(pattern.pattern, bytes) else text
    began = time.thread_time()
    if method == "sub":
        pattern.sub(lambda result: result[0], subject)
    else:
        result = getattr(pattern, method)(subject)
        if method == "finditer":
            list(result)
    return time.thread_time() - began
