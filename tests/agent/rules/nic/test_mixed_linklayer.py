"""ib-mixed-linklayer: rails of two kinds."""

from __future__ import annotations

import msgspec
import pytest

from agent.model.topology import Path
from agent.rules.nic.adapters import ib_mixed_linklayer as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import changed_nic, changed_port, fails, nic_id, server, topology
from tests.agent.rules.nccl_case import said, unread


def mixed(case=None):
    """Rail 1 is Ethernet, the others InfiniBand."""
    return changed_port(case or said(server()), 1, link_layer="Ethernet")


def test_both_kinds_behind_switches_of_gpus() -> None:
    """An error that names which is which; its place is the odd one."""
    (fault,) = fails(rule, mixed())

    assert ("node", "error") == (fault.subject, fault.severity)
    assert "InfiniBand: mlx5_0, mlx5_2, mlx5_3; Ethernet: mlx5_1" in fault.summary
    assert {nic_id(1), f"{nic_id(1)}/1"} == fault.places


def test_one_kind_far_from_gpus_is_a_warning() -> None:
    """A front-end NIC that cannot be distinguished from a rail."""
    case = mixed()
    paths = [msgspec.structs.replace(p, kind="SYS") if p.b == nic_id(1) else p for p in case.topology.paths]

    assert ["warning"] == [fault.severity for fault in fails(rule, topology(case, paths=paths))]


def test_only_a_gpu_makes_a_rail_near() -> None:
    """A drive behind the same switch does not; which end of a path is named first means nothing."""
    far = [msgspec.structs.replace(p, kind="SYS") if p.b == nic_id(1) else p for p in mixed().topology.paths]
    drive = Path(a="0000:29:00.0", b=nic_id(1), kind="PIX", pcie_kind="PIX")
    turned = [msgspec.structs.replace(p, a=p.b, b=p.a) for p in mixed().topology.paths]

    assert ["warning"] == [fault.severity for fault in fails(rule, topology(mixed(), paths=[*far, drive]))]
    assert ["error"] == [fault.severity for fault in fails(rule, topology(mixed(), paths=turned))]


def test_two_rails_can_differ() -> None:
    """One of each kind."""
    assert ["error"] == [fault.severity for fault in fails(rule, mixed(said(server(2))))]


@pytest.mark.parametrize(
    ("case", "kind"),
    [
        (said(server()), Pass),
        (said(server(ethernet=True)), Pass),
        (mixed(said(server(), {"NCCL_IB_HCA": "^mlx5_1"})), Pass),
        (mixed(unread(server())), Unknown),
        (changed_nic(mixed(), 1, role="storage"), Pass),
        (changed_nic(mixed(), 1, software=True), Pass),
        (changed_nic(mixed(), 1, driver="efa"), Pass),
        (changed_port(mixed(), 1, link_layer="Ethernet", state="DOWN"), Pass),
        (said(server(1)), NotApplicable),
        (topology(mixed(), gpus=[]), NotApplicable),
    ],
)
def test_silent(case, kind) -> None:
    """One kind, one chosen, not known."""
    assert [kind] == [type(answer) for answer in rule.check(case)]


@pytest.mark.parametrize(
    ("system", "job", "fires"), [("mlx5", None, True), (None, "=mlx5_0", True), ("=mlx5_0,mlx5_1", None, True)]
)
def test_a_list_that_takes_both_or_is_a_job_s(system, job, fires) -> None:
    """What one job takes does not help the next."""
    case = said(server(), {"NCCL_IB_HCA": system} if system else {}, job={"NCCL_IB_HCA": job} if job else {})

    assert fires == bool(fails(rule, mixed(case)))
