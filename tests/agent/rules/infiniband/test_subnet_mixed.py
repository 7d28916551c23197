"""ib-subnet-mixed: when it fires, when it must not, and every guard alone."""

from __future__ import annotations

import pytest

from agent.model.nic import Gid
from agent.rules.infiniband.subnet import ib_subnet_mixed as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import (
    answers,
    changed_nic,
    changed_port,
    changed_ports,
    fails,
    kinds,
    nic_id,
    probe,
    server,
    topology,
)

PORT = f"port:{nic_id(1)}/1"


def gid(prefix: str, index: int = 0) -> list[Gid]:
    return [Gid(index=index, gid=f"{prefix}:0000:0000:0000:0001")]


TWO = [*gid("fe80:0000:0000:0001", 1), *gid("fe80:0000:0000:0000")]  # what a table holds in another order


def elsewhere(*rails: int, prefix: str = "FE80:0000:0000:0001", gpus: int = 4):
    case = server(gpus)
    for n in rails:
        case = changed_port(case, n, gids=gid(prefix))
    return case


def test_a_rail_in_another_subnet_is_an_info() -> None:
    """The few are named."""
    (fault,) = fails(rule, elsewhere(1))

    assert ("node", "info", "prefixes") == (fault.subject, fault.severity, fault.cause)
    assert "other subnets than most rails: mlx5_1/1" == fault.summary
    assert "fe80:0000:0000:0001, subnet manager's LID 1" == fault.evidence[1].value
    assert {nic_id(1)} <= fault.places
    assert nic_id(0) not in fault.places


def test_fabrics_that_cannot_be_told_apart_are_an_info() -> None:
    """One prefix, two managers; with prefixes of their own nothing is wrong."""
    case = changed_port(server(), 1, sm_lid=7)
    (fault,) = fails(rule, case)

    assert "default" == fault.cause
    assert "1: mlx5_0/1, mlx5_2/1, mlx5_3/1; 7: mlx5_1/1" in fault.summary
    assert [] == fails(rule, changed_ports(server(), gids=gid("fe80:0000:0000:0002")))
    assert [] == fails(rule, changed_port(changed_ports(server(), gids=gid("2001:0000:0000:0002")), 1, sm_lid=7))
    assert [] == fails(rule, changed_port(server(), 1, sm_lid=None))


@pytest.mark.parametrize("rails", [(), (0, 1), (0, 1, 2, 3)])
def test_equal_shares_are_a_design(rails: tuple[int, ...]) -> None:
    """One fabric, or planes with as many rails each."""
    assert [Pass("node")] == list(rule.check(elsewhere(*rails)))


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        (lambda c: changed_port(c, 1, gids=[]), Unknown),
        (lambda c: changed_port(c, 1, gids=gid("fe80:0000:0000:0001", 1)), Unknown),
        (lambda c: changed_port(c, 1, gids=TWO), None),
        (lambda c: changed_port(c, 1, gids=[Gid(index=0, gid="fe80::1")]), Unknown),
        (lambda c: changed_port(c, 1, link_layer=None), Unknown),
        (lambda c: changed_port(c, 1, state="DOWN"), None),
        (lambda c: changed_nic(c, 1, role="storage"), None),
    ],
)
def test_a_guard_keeps_it_silent(circumstance, kind) -> None:
    """The firing case and this circumstance: no fault, and unknown where the table was not read."""
    case = circumstance(elsewhere(1))

    assert [] == fails(rule, case)
    assert ([kind] if kind else []) == [type(answer) for answer in answers(rule, case, PORT)]


def test_two_rails_are_enough() -> None:
    """One default prefix, and two subnet managers."""
    assert ["default"] == [fault.cause for fault in fails(rule, changed_port(server(2), 1, sm_lid=7))]
    assert [Pass("node")] == list(rule.check(server(2)))


def test_one_rail_is_compared_with_nothing() -> None:
    """Nor are Ethernet ports."""
    blind = probe(topology(server(), nics=[], pci=[]), "rdma", "failed", "broken")

    assert {NotApplicable} == kinds(rule, server(1))
    assert {NotApplicable} == kinds(rule, blind)
    assert [] == list(rule.check(probe(blind, "pci", "failed", "broken")))
    assert {NotApplicable} == kinds(rule, server(ethernet=True))
