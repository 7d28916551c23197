"""gdr-shm-small: Docker's 64 MiB."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from agent.rules.context import Settings
from agent.rules.nccl.prerequisites import gdr_shm_small as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import fails, server, software, topology


def size(mib: int | None, gpus: int = 2):
    return software(server(gpus), shared_memory_mib=mib)


@pytest.mark.parametrize(("mib", "small"), [(1, True), (64, True), (65, False), (65536, False)])
def test_the_size(mib: int, small: bool) -> None:
    """64 MiB and less."""
    faults = fails(rule, size(mib))

    assert ["node"] * small == [fault.subject for fault in faults]
    assert small or [Pass("node")] == list(rule.check(size(mib)))


def test_what_is_told() -> None:
    """A warning with the size; the limit is the operator's."""
    (fault,) = fails(rule, size(64))

    assert "warning" == rule.severity
    assert "64 MiB of shared memory (/dev/shm) for 2 GPUs" == fault.summary
    assert [] == fails(rule, replace(size(64), settings=Settings(thresholds={"gdr-shm-small.mib": 32})))


@pytest.mark.parametrize(
    ("case", "kind"),
    [(size(64, gpus=1), NotApplicable), (size(None), Unknown), (topology(size(64), gpus=[]), NotApplicable)],
)
def test_silent(case, kind) -> None:
    """One GPU, none, or not known."""
    assert [kind] == [type(answer) for answer in rule.check(case)]
