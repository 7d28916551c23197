"""Each cause, on each machine that it applies to, gives exactly the findings that it should."""

from __future__ import annotations

import pytest

from tests.matrix.cases import causes, filled, pairs
from tests.matrix.together import seen


@pytest.mark.parametrize(("name", "shape"), pairs())
def test_a_cause_is_found_once_and_by_name(name: str, shape: str) -> None:
    """Nothing else is said of that machine above info."""
    cause = causes()[name]
    report = seen(cause, shape)
    result = [(f.rule, f.severity, f.subject) for f in report.findings if f.severity != "info"]

    assert sorted(filled(cause.finds, shape)) == sorted(result)
    infos = {(f.rule, f.subject) for f in report.findings if f.severity == "info"}
    assert set(filled(cause.informs, shape)) <= infos
    assert set(cause.unknown) <= {check.rule for check in report.checks if check.state == "unknown"}


def test_every_cause_is_on_a_machine() -> None:
    """A cause that fits nowhere tests nothing."""
    assert set(causes()) == {name for name, _ in pairs()}
