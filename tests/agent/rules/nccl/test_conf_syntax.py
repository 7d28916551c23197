"""gdr-nccl-conf-syntax: lines that do not set what they seem to set, and lines that do."""

from __future__ import annotations

import pytest

from agent.model.node import NcclSetting
from agent.rules.nccl.config_files import gdr_nccl_conf_syntax as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from probes.nccl.jobs import parse_conf
from tests.agent.rules.build import fails, server, topology
from tests.agent.rules.nccl_case import SYSTEM, changed, lines, unread


def holds(text: str, path: str = SYSTEM, scope: str = "system"):
    """A node whose file holds this text, read as the probe reads it."""
    both = ([NcclSetting(**each._asdict()) for each in rows] for rows in parse_conf(text, path, scope))
    settings, others = both
    return changed(server(), settings=settings, not_settings=others)


@pytest.mark.parametrize(
    ("line", "severity"),
    [
        ("NCCL_IB_TC = 106", "error"),
        ("NCCL_IB_TC =106", "error"),
        (" NCCL_IB_TC=106", "error"),
        ("\tNCCL_IB_TC=106", "error"),
        ("\ufeffNCCL_IB_TC=106", "error"),
        ("export NCCL_IB_TC=106", "error"),
        ("NCCL-IB-TC=106", "error"),
        ("NCCL_IB_TC==106", "error"),
        ('NCCL_IB_TC="106"', "error"),
        ("NCCL_IB_HCA='mlx5_0'", "error"),
        ("NCCL_IB_HCA=mlx5_0 ", "error"),
        ("NCCL_IB_HCA=mlx5_0\r", "error"),
        ("NCCL_IB_HCA=mlx5_0 # rails", "error"),
        ("NCCL_IB_HCA=mlx5_0, mlx5_1", "error"),
        ('NCCL_IB_TC="', "error"),
        ('NCCL_IB_TC=""', "error"),
        ("NCCL_IB_HCA='\"mlx5_0\"'", "error"),
        ("NCCL_IB_HCA=a mlx5_0 a", "error"),
        ("NCCL_IB_TC", "error"),
        ("NCLL_IB_TC=106", "error"),
        ("nccl_ib_tc=106", "error"),
        ("NCCL_IB_TC= 106", "info"),
        ('NCCL_IB_TC="0"', "info"),
        ("NCCL_IB_TC=106 # DSCP 26", "info"),
        ("NCCL_IB_TC=106\r", "info"),
        ("NCCL_DEBUG=INFO # x", "info"),
        ("unset", "info"),
        ("NCCL_IB_TC=106", None),
        ("NCCL_IB_TC=0x6a", None),
        ("NCCL_IB_HCA==mlx5_0,mlx5_1", None),
        ("NCCL_SOCKET_IFNAME==eth0", None),
        ("NCCL_IB_HCA=^mlx5_1:1", None),
        ("UCX_TLS=rc,cuda", None),
        ("CCL_ATL_TRANSPORT=mpi", None),
        ("NCCL_TOPO_FILE=/opt/a b/topo.xml", None),
        ("# NCCL_IB_TC = 106", None),
        ("  # NCCL_IB_TC = 106", None),
        ("", None),
        ("NCCL_COMM_ID=a#b", None),
    ],
)
def test_a_line(line: str, severity: str | None) -> None:
    """How grave it is to write it so; none: it is right."""
    case = holds(f"{line}\n")

    assert ([severity] if severity else []) == [fault.severity for fault in fails(rule, case)]
    assert severity is not None or [Pass("node")] == list(rule.check(case))


@pytest.mark.parametrize(
    ("text", "remedy", "impact"),
    [
        ("NCCL_IB_TC = 106", f"In {SYSTEM} write KEY=value", "defaults"),
        ("NCLL_IB_TC=106", f"Correct the name in {SYSTEM}", "defaults"),
        ("NCCL_IB_TC=1\nNCCL_IB_TC=2", f"Keep one line of each name in {SYSTEM}", "the earlier one"),
    ],
)
def test_each_mistake_has_its_remedy(text: str, remedy: str, impact: str) -> None:
    """And the others are not told."""
    (fault,) = fails(rule, holds(text))

    assert fault.remedy.startswith(remedy)
    assert ";" not in fault.remedy
    assert impact in fault.impact
    (all_three,) = fails(rule, holds("NCCL_A = 1\nNCLL_B=1\nNCCL_C=1\nNCCL_C=2"))
    assert 2 == all_three.remedy.count(";")


def test_a_finding_names_the_file_and_every_line() -> None:
    """One for each file; the worst line first."""
    (fault,) = fails(rule, holds("NCCL_DEBUG=INFO # x\nNCCL_A = 1\nNCCL_B\n"))

    assert ("node", SYSTEM, SYSTEM, "error") == (fault.subject, fault.label, fault.cause, fault.severity)
    assert fault.summary == "/etc/nccl.conf:2: sets 'NCCL_A ', which nothing reads; 2 more lines"
    assert {"NCCL_A = 1", "NCCL_B", "NCCL_DEBUG=INFO # x"} == {row.value for row in fault.evidence}
    assert {SYSTEM, f"{SYSTEM}:1", f"{SYSTEM}:2", f"{SYSTEM}:3"} == fault.places


def test_a_users_file_is_less_grave() -> None:
    """It is that user's."""
    (fault,) = fails(rule, holds("NCCL_A = 1\n", "/root/.nccl.conf", "user"))

    assert "warning" == fault.severity


def test_a_name_set_twice() -> None:
    """Where the values differ; the first counts."""
    (fault,) = fails(rule, holds("NCCL_A=1\nNCCL_B=1\nNCCL_A=2\n"))

    assert f"{SYSTEM}:3: set before in line 1, which counts" == fault.summary
    assert "error" == fault.severity
    assert [] == fails(rule, holds("NCCL_A=1\nNCCL_A=1\n"))


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("NCCL_IB_HCA=a b", "a name in it begins or ends with a blank"),
        ('NCCL_IB_HCA="a b"', "with all that stands in it"),
        ("NCCL_IB_HCA=a, b # x", "with all that stands in it"),
    ],
)
def test_why_a_list_is_wrong(line: str, told: str) -> None:
    """Blanks between names, or what is written around them."""
    assert told in fails(rule, holds(line))[0].summary


@pytest.mark.parametrize(("more", "told"), [("", False), ("NCCL_B = 1\n", True)])
def test_how_many_lines_more(more: str, told: bool) -> None:
    """Two are one more."""
    (fault,) = fails(rule, holds(f"NCCL_A = 1\n{more}"))

    assert told == fault.summary.endswith("; 1 more lines")


def test_luck_is_told_as_such() -> None:
    """Nothing is lost, yet."""
    (fault,) = fails(rule, holds("NCCL_IB_TC= 106"))

    assert "by luck" in fault.impact


def test_an_environment_has_no_lines() -> None:
    """The shell has read its quotes."""
    case = changed(server(), settings=lines("environment of pid 1 (x)", "job", {"NCCL_IB_HCA": " mlx5_0"}))

    assert [] == fails(rule, case)


def test_what_is_not_known() -> None:
    """An unread file; no GPU."""
    assert [Unknown] == [type(answer) for answer in rule.check(unread(server()))]
    assert [NotApplicable] == [type(answer) for answer in rule.check(topology(holds("NCCL_A = 1\n"), gpus=[]))]
