"""Recognizing an output by its text takes linear time, whatever is repeated in it."""

from __future__ import annotations

import time

import pytest

from probes.sources.identify import LOOK_CHARACTERS, find_missing_name, identify_command

FLOODS = ("\n", " ", "\t", "\r\n", "\n ", '"', "|", "{", "[", "[{", "0", "A", "GPU: 1\n", "- ", "==", "\\", "\x1b[0m")


@pytest.mark.parametrize("flood", FLOODS, ids=repr)
def test_a_flood_is_looked_at_in_linear_time(flood: str) -> None:
    text = (flood * LOOK_CHARACTERS)[:LOOK_CHARACTERS]
    started = time.thread_time()

    identify_command(text)
    find_missing_name(text)
    assert time.thread_time() - started < 1.0
