"""roce-no-ip, roce-netdev-missing: when they fire, and every guard alone."""

from __future__ import annotations

import pytest

from agent.model.nic import Gid
from agent.rules.catalogue import every_rule
from agent.rules.engine import judge
from agent.rules.roce.addresses import roce_no_ip
from agent.rules.roce.interfaces import roce_netdev_missing
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import (
    answers,
    changed_netdev,
    changed_nic,
    changed_port,
    changed_ports,
    fails,
    function,
    kinds,
    node,
    server,
    software,
)
from tests.agent.rules.roce.guards import NIC, NOT_ACTIVE, PORT, ROLES, UNSEEN

LOCAL = [Gid(index=n, gid="FE80::1", type=kind, netdev="eth1") for n, kind in enumerate(("IB/RoCE v1", "RoCE v2"))]
GLOBAL = Gid(index=2, gid="2001:0db8:0000:0000:0000:0000:0000:0001", type="RoCE v2", netdev="eth1.100")


def no_ip():
    return changed_netdev(changed_port(server(ethernet=True), 1, gids=LOCAL), 1, addresses=["fe80::1/64"])


def test_a_rail_without_an_address_is_a_warning() -> None:
    """Addresses and GIDs are the evidence."""
    (fault,) = fails(roce_no_ip, no_ip())

    assert (PORT, "warning", "", "high") == (fault.subject, fault.severity, fault.cause, fault.confidence)
    assert "2 GIDs, all link-local: eth1 has no IPv4 and no global IPv6 address" == fault.summary
    assert ["fe80::1/64", "FE80::1", "FE80::1"] == [row.value for row in fault.evidence]
    assert ["info"] == [f.severity for f in fails(roce_no_ip, changed_nic(no_ip(), 1, role="storage"))]


def test_a_fabric_of_link_local_addresses_is_one_info() -> None:
    """All ports alike; a single one, too."""
    (fault,) = fails(roce_no_ip, changed_ports(server(ethernet=True), gids=LOCAL))
    (alone,) = fails(roce_no_ip, changed_ports(server(1, ethernet=True), gids=LOCAL))

    assert ("node", "info", "all", "low") == (fault.subject, fault.severity, fault.cause, fault.confidence)
    assert "info" == alone.severity


def test_without_roce_v2_the_graver_rule_stands() -> None:
    """One finding for one rail: an info explains no warning."""
    _, findings, _ = judge(changed_port(server(ethernet=True), 1, gids=LOCAL[:1]), every_rule())

    assert [("roce-no-ip", [f"roce-gid-v1-only {PORT}"])] == [(f.rule, f.absorbs) for f in findings]


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        *ROLES,
        NOT_ACTIVE,
        *UNSEEN,
        pytest.param(lambda c: changed_port(c, 1, gids=[*LOCAL, GLOBAL]), Pass, id="an address on a VLAN"),
        pytest.param(lambda c: changed_port(c, 1, gids_known=False), Unknown, id="table not read"),
        pytest.param(lambda c: changed_port(c, 1, gids=[]), Unknown, id="table empty"),
    ],
)
def test_a_guard_keeps_no_ip_silent(circumstance, kind) -> None:
    """The firing case and this circumstance: no fault, and the answer that the page promises."""
    case = circumstance(no_ip())
    (answer,) = answers(roce_no_ip, case, PORT)

    assert isinstance(answer, kind), answer
    assert [] == fails(roce_no_ip, case)
    assert {NotApplicable} == kinds(roce_no_ip, server())


def lost(**port):
    return changed_port(server(ethernet=True), 1, **({"netdevs": [], "gids": [], "state": "DOWN"} | port))


def test_an_interface_that_nobody_has_is_a_warning() -> None:
    """No GID is left; the port is down without it, and roce-link-down does not say it again."""
    (fault,) = fails(roce_netdev_missing, lost())
    _, findings, _ = judge(lost(), every_rule())

    assert (PORT, "warning", "lost") == (fault.subject, fault.severity, fault.cause)
    assert ["none", "0"] == [row.value for row in fault.evidence]
    assert {NIC, f"{NIC}/1"} <= fault.places
    assert ["roce-netdev-missing"] == [f.rule for f in findings if f.severity != "info"]
    assert ["info"] == [f.severity for f in fails(roce_netdev_missing, changed_nic(lost(), 1, role="storage"))]


def test_an_interface_in_a_container_is_an_info() -> None:
    """Its GIDs are still there; the driver may tell its name, which is of no interface here."""
    (fault,) = fails(roce_netdev_missing, lost(gids=LOCAL, netdevs=["net1"], state="ACTIVE"))

    assert ("info", "elsewhere") == (fault.severity, fault.cause)
    assert ["net1", "2"] == [row.value for row in fault.evidence]


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        *ROLES[:5],
        *ROLES[6:],
        pytest.param(lambda c: function(c, NIC, state="asleep"), NotApplicable, id="asleep"),
        pytest.param(lambda c: software(c, rdma_namespaces="exclusive"), NotApplicable, id="exclusive namespaces"),
        pytest.param(lambda c: node(c, container="docker"), NotApplicable, id="a scan in a container"),
        pytest.param(lambda c: changed_ports(c, netdevs=[]), Unknown, id="no interface at all"),
        pytest.param(lambda c: changed_port(c, 1, gids_known=False), Unknown, id="GIDs not read"),
        pytest.param(lambda c: changed_port(c, 1, netdevs=["eth1"]), Pass, id="it is here"),
    ],
)
def test_a_guard_keeps_a_missing_interface_silent(circumstance, kind) -> None:
    """The firing case and this circumstance: no fault, and the answer that the page promises."""
    case = circumstance(lost())
    (answer,) = answers(roce_netdev_missing, case, PORT)

    assert isinstance(answer, kind), answer
    assert [] == fails(roce_netdev_missing, case)
