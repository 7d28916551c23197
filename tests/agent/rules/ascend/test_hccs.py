"""HCCS ports of which some are down or slow, and others count errors."""

from __future__ import annotations

import pytest

from agent.rules.catalogue import every_rule
from agent.rules.engine import judge
from tests.matrix.rule_rows import row


@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("another port lost lanes", ["hccs-errors HCCS port 3", "hccs-lanes-degraded HCCS port 5"]),
        ("another port is down", ["hccs-errors HCCS port 3", "hccs-link-down HCCS port 5"]),
        ("of two ports one lost lanes", ["hccs-errors HCCS port 3, 5", "hccs-lanes-degraded HCCS port 5"]),
        ("of three ports two lost lanes", ["hccs-errors HCCS port 3", "hccs-lanes-degraded HCCS port 5-6"]),
    ],
)
def test_a_port_explains_no_errors_of_another_port(name: str, names: list[str]) -> None:
    """What is left of errors of several ports stands: alone where it is the smaller part."""
    found = judge(row("hccs-errors", name)[0], every_rule())[1]

    texts = sorted(f"{finding.rule} {finding.summary}" for finding in found)
    assert len(names) == len(texts)
    assert all(text.startswith(start) for text, start in zip(texts, names, strict=True)), texts
