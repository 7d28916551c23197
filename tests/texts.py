"""What a finding says to do, and what must not be left in it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agent.model.finding import Finding

# Words of pages that stand for a value of the device, and <value>
PLACEHOLDER = re.compile(
    r"\b(ADDRESS|PORT_ABOVE|INTERFACES?|DEVICE|PORT_NUMBER|GPU_INDEX|FAR_END|REMEDY|NAMESPACE)\b|<\w+>|: *\.|` *`"
)


def list_texts(finding: Finding) -> Iterator[str]:
    """Impact, the commands that confirm it, the steps and their outcomes."""
    yield finding.impact
    yield finding.remedy
    yield from finding.confirm or ()
    for step in finding.steps:
        yield step.do
        yield from step.outcomes
