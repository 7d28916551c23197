"""gdr-nccl-socket-ifname: interfaces that lead to other nodes."""

from __future__ import annotations

import msgspec
import pytest

from agent.model.nic import Netdev
from agent.rules.nccl.hcas import gdr_nccl_socket_ifname as rule
from agent.rules.rule import (
    NotApplicable,
    Pass,
    Unknown,
)
from tests.agent.rules.build import fails, probe, server, topology
from tests.agent.rules.nccl_case import said, unread

KEY = "NCCL_SOCKET_IFNAME"
STATES = {
    "lo": "unknown",
    "docker0": "up",
    "bond0": "up",
    "eth0": "down",
    "eth1": None,
    "ib0": "unknown",
    "veth1": "up",
}


def node():
    rows = [Netdev(id=name, label=name, operstate=state) for name, state in STATES.items()]
    return topology(server(), netdevs=rows)


@pytest.mark.parametrize(
    ("value", "cause"),
    [
        ("bond0", None),
        ("=bond0", None),
        ("bond", None),
        ("eth", None),
        ("ib0", None),
        ("^lo,docker", None),
        ("eth0", "none"),
        ("=bond", "none"),
        ("ens", "none"),
        ("lo", "inside"),
        ("docker0,veth", "inside"),
        ("^bond,eth,ib", "inside"),
    ],
)
def test_a_list(value: str, cause: str | None) -> None:
    """Warning in a file, info in a job."""
    assert ([("warning", cause)] if cause else []) == [
        (f.severity, f.cause) for f in fails(rule, said(node(), {KEY: value}))
    ]
    assert (["info"] if cause else []) == [f.severity for f in fails(rule, said(node(), job={KEY: value}))]


def test_what_is_told() -> None:
    """What is up instead."""
    (fault,) = fails(rule, said(node(), {KEY: "ens"}))

    assert "lo, docker0, bond0, eth1, ib0, veth1" == fault.evidence[1].value
    assert "takes no interface that is up" in fault.summary
    assert fault.remedy.endswith("the whole name of the interface that reaches the other nodes.")


def test_the_one_interface_that_could_is_named() -> None:
    """Up, with an address, no rail's and not inside the node; of two nobody knows."""

    def remedy(*addressed: str, **of_rails: str) -> str:
        rows = [
            msgspec.structs.replace(row, addresses=["10.0.0.7"], nic=of_rails.get(row.label))
            if row.label in addressed
            else row
            for row in node().topology.netdevs
        ]
        (fault,) = fails(rule, said(topology(node(), netdevs=rows), {KEY: "ens"}))
        return fault.remedy.rpartition("==")[2]

    rail = node().rails[0].id
    assert "bond0" == remedy("bond0", "eth0", "lo", "docker0")  # eth0 is down
    assert "the whole name of the interface" in remedy("bond0", "eth1")
    assert "bond0" == remedy("bond0", "ib0", ib0=rail)


@pytest.mark.parametrize(
    ("case", "kind"),
    [
        (said(node()), NotApplicable),
        (topology(said(node(), {KEY: "ens"}), gpus=[]), NotApplicable),
        (unread(node()), Unknown),
        (probe(said(node(), {KEY: "ens"}), "netdev", "failed", "x"), Unknown),
    ],
)
def test_silent(case, kind) -> None:
    """Not set, no GPU, not known."""
    assert [kind] == [type(answer) for answer in rule.check(case)]


def test_a_right_list_passes() -> None:
    """Said so."""
    assert [Pass("node")] == list(rule.check(said(node(), {KEY: "bond0"})))
