"""gpu-p2p-blocked: which words are in order; the rest is rows of tests/matrix/rules/gpu.toml."""

from __future__ import annotations

import pytest

from agent.rules.gpu.devices import gpu_p2p_blocked as rule
from agent.rules.rule import Pass, Unknown
from tests.agent.rules.build import (
    changed_gpu,
    gpu_id,
    kinds,
    server,
)


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ({"read": "OK", "write": "OK"}, Pass),
        ({"read": "OK"}, Pass),
        ({"read": "OK", "write": "U"}, Unknown),
        ({"read": "U", "write": "OK"}, Unknown),
        ({"read": "OK", "write": "NEW"}, Unknown),
        ({"write": "OK"}, Unknown),
    ],
)
def test_read_must_be_ok_and_nothing_in_doubt(words: dict[str, str], kind: type) -> None:
    """A saved matrix has reads alone; a word that nobody knows is no OK."""
    case = changed_gpu(server(2), 0, p2p={gpu_id(1): words})
    case = changed_gpu(case, 1, p2p=None)

    assert {kind} == kinds(rule, case)
