"""What drivers state: which of it explains other findings, and numbers by their names. When it fires:
tests/matrix/rules/host.toml.
"""

from __future__ import annotations

import pytest

from agent.rules.host.driver_sentences import driver_reports_failure
from agent.rules.host.error_numbers import explain_number
from agent.rules.host.service_failures import service_reports_failure
from agent.rules.rule import Fail, Rule
from tests.matrix.rule_rows import row


@pytest.mark.parametrize(
    ("rule", "name", "explains_ids"),
    [
        (driver_reports_failure, "the first cause of one device counts", None),
        (driver_reports_failure, "held by nouveau", frozenset()),
        (service_reports_failure, "the versions that it names", None),
        (service_reports_failure, "a manager on a node without NVSwitches", frozenset()),
    ],
    ids=lambda item: item.name if isinstance(item, Rule) else "",
)
def test_only_what_is_sure_explains_others(rule: Rule, name: str, explains_ids: frozenset[str] | None) -> None:
    context, _ = row(rule.name, name)
    assert [explains_ids] == [answer.explains_ids for answer in rule.check(context) if isinstance(answer, Fail)]


@pytest.mark.parametrize(
    ("driver", "text", "expected"),
    [
        ("mlx5_core", "x failed, err(-12)", "-12 is ENOMEM: out of memory"),
        ("bnxt_en", "probe failed with error -110", "-110 is ETIMEDOUT: timed out"),
        ("nvidia-uvm", "x returned: -5", "-5 is EIO: input or output error"),
        ("ice", "x failed: -16", "-16 is EBUSY: device or resource busy"),
        ("mlx5_core", "x failed, err(-999)", None),
        ("NVRM", "could not do it, status 0x62", "0x62 is NV_ERR_RESET_REQUIRED"),
        ("NVRM", "failed with status 0x0000000f for fn 78", "0xf is NV_ERR_GPU_IS_LOST"),
        ("NVRM", "failed with status 0x7123", None),
        ("NVRM", "failed: Timeout [NV_ERR_TIMEOUT] (0x00000065), status 0x65", None),
        ("mlx5_core", "failed, status 0x62", None),
        ("mlx5_core", "at -12 of a table", None),
    ],
)
def test_a_number_has_its_name(driver: str, text: str, expected: str | None) -> None:
    assert expected == explain_number(driver, text)
