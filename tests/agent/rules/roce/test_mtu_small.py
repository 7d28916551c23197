"""roce-mtu-small: when it fires, when it must not, and every guard alone."""

from __future__ import annotations

import pytest

from agent.rules.engine import judge
from agent.rules.roce.interfaces import roce_mtu_small as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import (
    answers,
    changed_netdev,
    changed_nic,
    changed_nics,
    changed_port,
    fails,
    function,
    kinds,
    nic_id,
    probe,
    server,
    topology,
    virtual,
)

NIC = nic_id(1)
PORT, NETDEV = f"port:{NIC}/1", f"netdev:{NIC}"


def small(mtu: int = 1500):
    return changed_netdev(server(ethernet=True), 1, mtu=mtu)


def test_a_small_mtu_is_a_warning_on_the_interface() -> None:
    """1500 gives packets of 1024 bytes."""
    (fault,) = fails(rule, small())

    assert (NETDEV, "mlx5_1/1 (eth1)", "warning", "") == (fault.subject, fault.label, fault.severity, fault.cause)
    assert fault.summary.startswith("interface MTU 1500 limits the RoCE MTU to 1024")
    assert fault.impact.startswith("92.6% of the wire are payload")
    assert ("1500", "/sys/class/net/eth1/mtu") == (fault.evidence[0].value, fault.evidence[0].source)


@pytest.mark.parametrize(
    ("mtu", "found"),
    [
        (4191, [("warning", "")]),
        (4192, []),
        (4200, []),
        (4220, []),
        (9000, []),
        (1120, [("warning", "")]),
        (1119, [("error", "tiny")]),
        (300, [("error", "tiny")]),
    ],
)
def test_the_limits_are_those_of_the_kernel(mtu: int, found: list[tuple[str, str]]) -> None:
    """The largest InfiniBand MTU that fits beside 96 bytes of headers."""
    assert found == [(fault.severity, fault.cause) for fault in fails(rule, small(mtu))]


def test_storage_is_less_grave() -> None:
    """One step below a rail."""
    assert ["info"] == [fault.severity for fault in fails(rule, changed_nic(small(), 1, role="storage"))]


def test_the_same_on_every_port_is_one_finding() -> None:
    """Somebody configured it so; two groups are two findings."""
    case = server(ethernet=True)
    for n in range(4):
        case = changed_netdev(case, n, mtu=1500)
    (fault,) = fails(rule, case)

    assert ("node", "warning") == (fault.subject, fault.severity)
    assert 4 == len(fault.evidence)
    assert 4 == len(fails(rule, changed_netdev(case, 0, mtu=1000)))
    assert 3 == len(fails(rule, changed_netdev(case, 0, mtu=9000)))


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(virtual, NotApplicable, id="virtual machine"),
        pytest.param(
            lambda c: changed_nic(c, 1, virtual_function=True), NotApplicable, id="virtual function by its id"
        ),
        pytest.param(
            lambda c: function(c, NIC, physical_function=nic_id(0)), NotApplicable, id="virtual function by the kernel"
        ),
        pytest.param(lambda c: changed_nic(c, 1, driver="efa"), NotApplicable, id="EFA by its driver"),
        pytest.param(lambda c: changed_port(c, 1, link_layer="unspecified"), NotApplicable, id="EFA by its link layer"),
        pytest.param(lambda c: changed_nic(c, 1, node_type="RNIC"), NotApplicable, id="iWARP"),
        pytest.param(lambda c: changed_nic(c, 1, software=True), NotApplicable, id="software"),
        pytest.param(lambda c: changed_nic(c, 1, limited="mezz internal"), NotApplicable, id="fabric manager's"),
        pytest.param(lambda c: changed_nic(c, 1, role="management"), NotApplicable, id="management"),
        pytest.param(lambda c: changed_nic(c, 1, role="unused"), NotApplicable, id="unused"),
        pytest.param(lambda c: changed_port(c, 1, state="DOWN"), NotApplicable, id="not active"),
        pytest.param(lambda c: function(c, NIC, state="gone"), NotApplicable, id="gone"),
        pytest.param(lambda c: changed_port(c, 1, state=None), Unknown, id="state not read"),
        pytest.param(lambda c: changed_port(c, 1, link_layer=None), Unknown, id="link layer not read"),
        pytest.param(
            lambda c: changed_nic(c, 1, state="other_namespace"), Unknown, id="another namespace, says assemble"
        ),
        pytest.param(lambda c: changed_port(c, 1, netdevs=[]), Unknown, id="no interface in sight"),
        pytest.param(lambda c: changed_port(c, 1, netdevs=["moved0"]), Unknown, id="its interface went away"),
        pytest.param(
            lambda c: function(changed_nic(c, 1, driver=None), NIC, driver="efa"), NotApplicable, id="EFA by the bus"
        ),
        pytest.param(lambda c: changed_netdev(c, 1, mtu=None), Unknown, id="MTU not read"),
        pytest.param(lambda c: changed_netdev(c, 1, mtu=4220), Pass, id="large enough"),
    ],
)
def test_a_guard_keeps_it_silent(circumstance, kind) -> None:
    """The firing case and this circumstance: no fault, and the answer that the page promises."""
    case = circumstance(small())
    (answer,) = answers(rule, case, PORT)

    assert isinstance(answer, kind), answer
    assert [] == fails(rule, case)


def test_a_vlan_above_the_port_is_not_its_interface() -> None:
    """The port's own interface decides; a VLAN only where it is all that is shown."""
    case = changed_port(small(9000), 1, netdevs=["eth0", "eth1"])
    vlan = changed_netdev(case, 0, mtu=1500, vlan={"id": 5, "parent": "eth1"})

    assert [Pass(PORT)] == answers(rule, vlan, PORT)


def test_infiniband_and_nothing_are_not_applicable() -> None:
    """One answer for the node; unknown where nobody looked."""
    bare = probe(topology(server(1), nics=[]), "rdma", "absent", "no class")

    assert {NotApplicable} == kinds(rule, server())
    assert {NotApplicable} == kinds(rule, bare)
    assert "unknown" == judge(probe(bare, "pci", "failed", "broken"), [rule])[0][0].state


def test_what_a_nic_is_for_takes_its_place_on_the_bus() -> None:
    """Outputs of RDMA tools alone: unknown, where the PCI functions that are here would say that it is no rail."""
    case = changed_nic(small(), 1, role="unknown")
    alone = probe(probe(topology(case, pci=[]), "pci", "absent", "no sysfs"), "lspci", "absent", "no output")
    elsewhere = topology(case, pci=[f for f in case.topology.pci if f.id != NIC])

    assert {NotApplicable} == {type(answer) for each in (case, elsewhere) for answer in answers(rule, each, PORT)}
    placeless = changed_nic(elsewhere, 1, role="unknown", pci=None)  # which of the functions it is nobody tells
    assert ["what it is for is not known: where it is on the PCI bus is not known"] == [
        answer.reason for answer in answers(rule, placeless, PORT) if isinstance(answer, Unknown)
    ]
    assert {Unknown} == {type(answer) for answer in answers(rule, alone, PORT)}


def test_nics_whose_ports_nobody_read_may_speak_roce() -> None:
    """Without the RDMA probe nothing is said of them, and the engine says why."""
    unread = probe(changed_nics(server(1), ports=[]), "rdma", "denied", "no permission")

    assert [] == list(rule.check(unread))
    assert "unknown" == judge(unread, [rule])[0][0].state
