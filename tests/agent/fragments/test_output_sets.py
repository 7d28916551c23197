"""Every line of docs/output-sets.md: these outputs are enough for the finding, and none of them can be left out."""

from __future__ import annotations

import pytest

from agent.rules.catalogue import every_rule
from tests.agent.fragments.output_sets import PAGE, OutputSet, find_with, list_unseen, read_page
from tests.conftest import IN_FULL

LINES = read_page(PAGE.read_text())
SOME = LINES if IN_FULL else LINES[::4]


@pytest.mark.parametrize("line", SOME, ids=lambda line: f"{line.rule}: {' + '.join(line.outputs)}")
def test_a_set_of_outputs_is_enough(line: OutputSet) -> None:
    """With the severity and the confidence of the page."""
    assert (line.severity, line.confidence) == find_with(line.rule, line.machine, line.outputs)


@pytest.mark.parametrize(
    "line",
    [line for line in SOME if len(line.outputs) > 1],
    ids=lambda line: f"{line.rule}: {' + '.join(line.outputs)}",
)
def test_none_of_a_set_can_be_left_out(line: OutputSet) -> None:
    """What is left finds nothing."""
    for output in line.outputs:
        rest = [other for other in line.outputs if other != output]
        assert None is find_with(line.rule, line.machine, rest), output


def test_the_page_has_every_rule() -> None:
    """With its sets, or among those that no set shows."""
    text = PAGE.read_text()
    seen, unseen = {line.rule for line in LINES}, list_unseen(text)
    assert set() == seen.intersection(unseen)
    assert sorted(rule.name for rule in every_rule()) == sorted([*seen, *unseen])


def test_low_confidence_is_a_warning_at_most() -> None:
    """The contract, over all that fragments show."""
    assert {"info", "warning"} >= {line.severity for line in LINES if line.confidence == "low"}
