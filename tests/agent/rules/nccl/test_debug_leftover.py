"""gdr-nccl-debug-leftover: what does not belong into a file."""

from __future__ import annotations

import pytest

from agent.rules.nccl.config_files import gdr_nccl_debug_leftover as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import fails, server, topology
from tests.agent.rules.nccl_case import said, unread


@pytest.mark.parametrize(
    ("key", "value", "left"),
    [
        ("NCCL_ALGO", "Ring", True),
        ("NCCL_ALGO", "", False),
        ("NCCL_PROTO", "Simple", True),
        ("NCCL_MIN_NCHANNELS", "4", True),
        ("NCCL_MAX_NCHANNELS", "4", True),
        ("NCCL_CHECKS_DISABLE", "1", True),
        ("NCCL_CHECKS_DISABLE", "0", False),
        ("NCCL_IB_TIMEOUT", "17", True),
        ("NCCL_IB_TIMEOUT", "18", False),
        ("NCCL_IB_TIMEOUT", "22", False),
        ("NCCL_IB_TIMEOUT", "", False),
        ("NCCL_IB_RETRY_CNT", "", False),
        ("NCCL_IB_RETRY_CNT", "6", True),
        ("NCCL_IB_RETRY_CNT", "7", False),
        ("NCCL_DEBUG", "trace", True),
        ("NCCL_DEBUG", "INFO", False),
        ("NCCL_IB_QPS_PER_CONNECTION", "4", False),
    ],
)
def test_a_line(key: str, value: str, left: bool) -> None:
    """In a file, not in a job."""
    faults = fails(rule, said(server(), {key: value}))

    assert [key] * left == [fault.cause for fault in faults]
    assert [] == fails(rule, said(server(), job={key: value}))
    assert left or [Pass("node")] == list(rule.check(said(server(), {key: value})))


def test_several_are_one_finding() -> None:
    """An info that names them."""
    (fault,) = fails(rule, said(server(), {"NCCL_ALGO": "Ring"}, {"NCCL_PROTO": "LL"}))

    assert "info" == rule.severity
    assert "NCCL_ALGO=Ring, NCCL_PROTO=LL" in fault.summary


def test_what_is_not_known() -> None:
    """An unread file; no GPU."""
    assert [Unknown] == [type(answer) for answer in rule.check(unread(server()))]
    assert [NotApplicable] == [type(answer) for answer in rule.check(topology(server(), gpus=[]))]
