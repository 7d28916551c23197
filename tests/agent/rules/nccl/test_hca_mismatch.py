"""gdr-nccl-hca-mismatch: what a list takes of this node's rails."""

from __future__ import annotations

import pytest

from agent.rules.nccl.hcas import gdr_nccl_hca_mismatch as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import changed_nic, changed_nics, changed_ports, fails, probe, server, topology
from tests.agent.rules.nccl_case import said, unread

KEY = "NCCL_IB_HCA"


def with_storage():
    """Rails mlx5_0 to mlx5_2, and storage on mlx5_3."""
    return changed_nic(server(), 3, role="storage")


@pytest.mark.parametrize(
    ("value", "severity", "cause"),
    [
        ("bnxt", "error", "none"),
        ("mlx5:2", "error", "none"),
        ("^mlx5", "error", "none"),
        ("mlx5_0,mlx5_1", "error", "missed"),
        ("=mlx5_0,mlx5_1", "error", "missed"),
        ("^mlx5_1", "error", "missed"),
        ("mlx5", "warning", "foreign"),
        ("", "warning", "foreign"),
        ("^mlx4", "warning", "foreign"),
        ("=mlx5_0,mlx5_1,mlx5_2,mlx5_9", "info", "stranger"),
        ("=mlx5_0,mlx5_1,mlx5_2", None, None),
        ("^=mlx5_3", None, None),
        ("^mlx5_3,mlx5_9", None, None),
        ("mlx5_0:1,mlx5_1:1,mlx5_2", None, None),
    ],
)
def test_a_list(value: str, severity: str | None, cause: str | None) -> None:
    """In the system's file."""
    case = said(with_storage(), {KEY: value})

    assert ([(severity, cause)] if severity else []) == [(fault.severity, fault.cause) for fault in fails(rule, case)]
    assert severity is not None or [Pass("node")] == list(rule.check(case))


@pytest.mark.parametrize(
    ("value", "severity"), [("bnxt", "warning"), ("mlx5_0", "info"), ("mlx5", "info"), ("^=mlx5_3", None)]
)
def test_in_a_running_job(value: str, severity: str | None) -> None:
    """A job on part of the node is none; the others are one severity lower."""
    assert ([severity] if severity else []) == [f.severity for f in fails(rule, said(with_storage(), job={KEY: value}))]


def test_what_is_told() -> None:
    """How many rails, which, and why a prefix took more."""
    (fault,) = fails(rule, said(server(), {KEY: "=mlx5_0,mlx5_1,mlx5_2"}))
    assert "takes 3 of 4 rails, not mlx5_3" in fault.summary
    assert fault.impact.startswith("25%")
    assert ("node", "rail left out") == (fault.subject, fault.evidence[2].what)
    assert fault.remedy.startswith("In /etc/nccl.conf name every rail")
    assert fault.remedy.endswith(" NCCL_IB_HCA==mlx5_0,mlx5_1,mlx5_2,mlx5_3")

    twelve = changed_nic(server(12), 10, role="storage")
    (fault,) = fails(rule, said(twelve, {KEY: "mlx5_0,mlx5_1,mlx5_2,mlx5_3,mlx5_4,mlx5_5,mlx5_6,mlx5_7,mlx5_8,mlx5_9"}))
    assert 'mlx5_10 (storage) beside the rails; mlx5_1 without "=" also means mlx5_10' in fault.summary


def test_a_nic_of_unknown_use_is_no_stranger() -> None:
    """Nobody says that it is no rail."""
    assert [] == fails(rule, said(changed_nic(server(), 3, role="unknown"), {KEY: "mlx5"}))


def test_a_software_device_among_the_rails() -> None:
    """It would slow them all."""
    case = changed_nic(server(), 3, software=True)

    assert ["foreign"] == [fault.cause for fault in fails(rule, said(case, {KEY: "mlx5"}))]


def test_two_values_with_one_fault_are_one_finding() -> None:
    """The system's and a job's."""
    faults = fails(rule, said(server(), {KEY: "bnxt"}, job={KEY: "bnxt"}))

    assert 1 == len(faults)


@pytest.mark.parametrize(
    ("case", "kind"),
    [
        (said(server()), NotApplicable),
        (said(changed_ports(server(), state="DOWN"), {KEY: "x"}), NotApplicable),
        (said(changed_nics(server(), driver="efa"), {KEY: "x"}), NotApplicable),
        (said(topology(server(), gpus=[]), {KEY: "x"}), NotApplicable),
        (unread(server()), Unknown),
        (probe(said(changed_ports(server(), state=None), {KEY: "x"}), "rdma", "failed", "x"), Unknown),
        (said(changed_nics(server(), role="unknown"), {KEY: "x"}), Unknown),
    ],
)
def test_silent(case, kind) -> None:
    """Not set, no rail, or not known."""
    assert [kind] == [type(answer) for answer in rule.check(case)]


def test_a_software_device_is_no_rail_that_is_missed() -> None:
    """Nor is it one to be named."""
    case = changed_nic(server(), 3, software=True)
    (fault,) = fails(rule, said(case, {KEY: "mlx5_0,mlx5_1"}))

    assert "takes 2 of 3 rails, not mlx5_2" in fault.summary
    assert fault.remedy.endswith("==mlx5_0,mlx5_1,mlx5_2")
    assert [] == fails(rule, said(case, {KEY: "=mlx5_0,mlx5_1,mlx5_2"}))


def test_why_a_list_takes_more_is_told_where_a_name_is_the_reason() -> None:
    """Not of whole names, of prefixes that no device has, or where the name is the device's own."""
    twelve = changed_nic(server(12), 10, role="storage")

    def told(value: str) -> str:
        return fails(rule, said(twelve, {KEY: value}))[0].summary

    whole = "=" + ",".join(f"mlx5_{n}" for n in range(12))
    assert "also means" not in told(whole)
    assert "also means" not in told("mlx5_")
    assert 'mlx5_1 without "=" also means mlx5_11' in told("^mlx5_1,mlx5_10")
    assert "also means" not in told("^=mlx5_1")
