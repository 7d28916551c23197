"""gdr-nccl-conf-shadowed: what the system's file says and is not in force."""

from __future__ import annotations

import pytest

from agent.rules.engine import judge
from agent.rules.nccl.config_files import gdr_nccl_conf_shadowed as rule
from agent.rules.nccl.config_files import gdr_nccl_conf_syntax
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import fails, server, topology
from tests.agent.rules.nccl_case import JOB, SYSTEM, changed, lines, said, unread


@pytest.mark.parametrize("stronger", [{"user": {"NCCL_A": "2"}}, {"job": {"NCCL_A": "2"}}])
def test_another_value_is_an_info(stronger) -> None:
    """Both places are shown."""
    (fault,) = fails(rule, said(server(), {"NCCL_A": "1"}, **stronger))

    assert ("node", "info", "shadowed") == (fault.subject, fault.severity or rule.severity, fault.cause)
    assert ["2", "1"] == [row.value for row in fault.evidence]
    assert f"{SYSTEM}:1" in fault.places


@pytest.mark.parametrize(
    ("system", "job"),
    [
        ({"NCCL_A": "1"}, {"NCCL_A": "1"}),
        ({"NCCL_A": "1"}, {"NCCL_B": "2"}),
        ({}, {"NCCL_A": "2"}),
        ({"NCCL_DEBUG": "WARN"}, {"NCCL_DEBUG": "INFO"}),
        ({"NCCL_DEBUG_SUBSYS": "NET"}, {"NCCL_DEBUG_SUBSYS": "ALL"}),
        ({"NCCL_SOCKET_IFNAME": "a"}, {"NCCL_SOCKET_IFNAME": "b"}),
    ],
)
def test_what_jobs_may_set(system, job) -> None:
    """Nothing is shadowed that shall hold for all."""
    assert [Pass("node")] == list(rule.check(said(server(), system, job=job)))


def test_a_syntax_error_stands_for_it() -> None:
    """One cause, one finding."""
    rows = [*lines(SYSTEM, "system", {"NCCL_A": '"1"'}), *lines(JOB, "job", {"NCCL_A": "1"})]
    _, findings, _ = judge(changed(server(), settings=rows), [gdr_nccl_conf_syntax, rule])

    assert ["gdr-nccl-conf-syntax"] == [finding.rule for finding in findings]
    assert ["gdr-nccl-conf-shadowed node"] == findings[0].absorbs


def test_what_is_not_known() -> None:
    """An unread file; no GPU."""
    assert [Unknown] == [type(answer) for answer in rule.check(unread(server()))]
    assert [NotApplicable] == [type(answer) for answer in rule.check(topology(server(), gpus=[]))]


def test_only_what_the_system_sets_is_shadowed() -> None:
    """A user's line that a job changes is theirs; so is that of a service."""
    rows = [*lines("/root/.nccl.conf", "user", {"NCCL_A": "1"}), *lines(JOB, "job", {"NCCL_A": "2"})]

    assert [Pass("node")] == list(rule.check(changed(server(), settings=rows, jobs=1)))


def test_what_a_service_gives_its_jobs_is_not_told() -> None:
    """Only jobs and users are beside the system's."""
    rows = [*lines("slurmd.service", "service", {"NCCL_A": "2"}), *lines(SYSTEM, "system", {"NCCL_A": "1"})]

    assert [Pass("node")] == list(rule.check(changed(server(), settings=rows)))
