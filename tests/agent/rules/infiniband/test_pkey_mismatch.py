"""ib-pkey-mismatch: an index at which a port has no partition key."""

from __future__ import annotations

import pytest

from agent.rules.infiniband.subnet import ib_pkey_mismatch as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import changed_port, changed_ports, fails, nic_id, server, topology
from tests.agent.rules.nccl_case import said, unread


def keyed(index: str = "1", keys=("0xffff",), ethernet=False, where="system"):
    case = changed_ports(server(ethernet=ethernet), pkeys=list(keys))
    return said(case, **{where: {"NCCL_IB_PKEY": index}})


@pytest.mark.parametrize(("where", "severity"), [("system", "error"), ("job", "warning")])
def test_no_key_at_the_index(where: str, severity: str) -> None:
    """One finding for the node, that names the ports."""
    (fault,) = fails(rule, keyed(where=where))

    assert ("node", severity, "medium") == (fault.subject, fault.severity, fault.confidence)
    assert "no key at that index on mlx5_0, mlx5_1, mlx5_2, mlx5_3" in fault.summary
    assert nic_id(0) in fault.places


def test_no_key_is_before_the_first() -> None:
    """NCCL takes a negative index for a large one."""
    assert ["node"] == [fault.subject for fault in fails(rule, keyed("-1", ("0xffff", "0x8001")))]


def test_one_port_of_four() -> None:
    """Only that one is named."""
    case = changed_port(keyed(keys=("0xffff", "0x8001")), 2, pkeys=["0xffff"])
    (fault,) = fails(rule, case)

    assert "on mlx5_2" in fault.summary
    assert "0xffff" == fault.evidence[1].value


@pytest.mark.parametrize(
    ("case", "kind"),
    [
        (keyed("1", ("0xffff", "0x8001")), Pass),
        (keyed("0"), NotApplicable),
        (keyed(""), NotApplicable),
        (said(server()), NotApplicable),
        (unread(changed_ports(server(), pkeys=["0xffff"])), Unknown),
        (changed_port(keyed(), 1, pkeys=[]), Unknown),
        (keyed(ethernet=True), NotApplicable),
        (changed_ports(keyed(), state="DOWN"), NotApplicable),
        (topology(keyed(), gpus=[]), NotApplicable),
    ],
)
def test_silent(case, kind) -> None:
    """There, not set, not known."""
    assert [kind] == [type(answer) for answer in rule.check(case)]
