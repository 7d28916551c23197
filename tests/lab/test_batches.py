"""What the lab shows at the same time is the sum of its causes on the fixture machine: none hides or makes another."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.lab.batches import BATCHES
from tests.matrix.cases import Cause
from tests.matrix.together import seen


@pytest.mark.parametrize("name", BATCHES)
def test_causes_at_the_same_time_are_found_as_each_alone(name: str) -> None:
    """All their findings, and no other above info."""
    batch = BATCHES[name]
    later = {"earlier": {}} if batch.later else {}
    report = seen(Cause(about=name, on=[], overlay=batch.overlay, config=batch.config, **later), batch.shape)

    assert batch.finds == sorted((f.rule, f.severity, f.subject) for f in report.findings if f.severity != "info")


@pytest.mark.parametrize("name", BATCHES)
def test_no_two_causes_are_on_one_device(name: str) -> None:
    """Or the last of them would be shown alone."""
    used = Counter(
        (address, word, key)
        for scenario in BATCHES[name].scenarios
        for address, words in scenario.cause.overlay.get("device", {}).items()
        for word, value in words.items()
        for key in (value if isinstance(value, dict) else [""])
    )
    assert [] == [place for place, count in used.items() if count > 1]
