"""roce-pfc-off: severity by what is known, and every guard alone."""

from __future__ import annotations

import pytest

from agent.model.nic import Neighbor, Pause
from agent.rules.roce.lossless import roce_pfc_off as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import changed_netdev, changed_nic, changed_port, fails
from tests.agent.rules.roce.qos import PORT, dcb, dcb_everywhere, facts, lost, netdevs, roce, silent
from tests.agent.rules.rows import only


def off():
    """One rail of four, and no neighbour seen: the others have PFC."""
    return dcb(netdevs(roce(), neighbor=None), pfc=only())


def off_everywhere():
    """As the factory sets it: nothing shows what is meant."""
    return dcb_everywhere(netdevs(roce(), neighbor=None), pfc=only(), trust="pcp")


def test_one_rail_without_pfc_is_an_error() -> None:
    """The others show that it is meant."""
    (fault,) = fails(rule, off())

    assert (PORT, "error", "meant") == (fault.subject, fault.severity, fault.cause)
    assert "PFC is off for every priority, and it is on at eth0, eth2, eth3" == fault.summary
    assert "mlnx_qos -i eth1 --pfc 0,0,0,1,0,0,0,0 (upstream: dcb pfc set dev eth1" in fault.remedy
    assert "prio-pfc all:off 3:on" in fault.remedy
    assert "--trust" not in fault.remedy
    assert "ethtool -A" not in fault.remedy
    assert "roce_mode" not in fault.remedy


@pytest.mark.parametrize("pause", [Pause(rx=True, tx=False), Pause(rx=False, tx=True)])
def test_half_a_pause_is_to_be_switched_off(pause) -> None:
    """It does not protect both directions, and PFC takes its place."""
    (fault,) = fails(rule, changed_netdev(off(), 1, pause=pause))

    assert "global pause off: ethtool -A eth1 rx off tx off" in fault.remedy


def test_nowhere_and_nothing_known_asks() -> None:
    """A warning for the node; with trust to be set too."""
    (fault,) = fails(rule, off_everywhere())

    assert ("node", "warning", "") == (fault.subject, fault.severity, fault.cause)
    assert fault.summary.startswith("PFC is off for every priority; lossy by design?")
    assert "mlnx_qos -i INTERFACE --trust dscp" in fault.remedy  # of every interface
    assert 'roce_mode = "lossy"' in fault.remedy


@pytest.mark.parametrize(
    ("change", "severity"),
    [
        pytest.param(lambda c: facts(c, roce_mode="lossless"), "error", id="declared"),
        pytest.param(lambda c: netdevs(c, neighbor=Neighbor(system="leaf", pfc=only(5))), "error", id="switch"),
        pytest.param(
            lambda c: netdevs(c, neighbor=Neighbor(system="leaf", pfc=only())), "warning", id="switch has none"
        ),
        pytest.param(lambda c: changed_nic(c, 1, role="storage"), "info", id="storage"),
    ],
)
def test_what_is_meant_makes_it_grave(change, severity: str) -> None:
    """An error where somebody says that loss is not meant."""
    assert severity in {fault.severity for fault in fails(rule, change(off_everywhere()))}


def test_lost_packets_make_it_grave() -> None:
    """On the port that lost them."""
    found = {fault.subject: fault for fault in fails(rule, lost(off_everywhere()))}

    assert "error" == found[PORT].severity
    assert found[PORT].summary.endswith("and lost packets are counted")
    assert {"warning"} == {fault.severity for subject, fault in found.items() if subject != PORT}


def test_the_remedy_takes_the_class_of_the_switch() -> None:
    """Else that of other rails, else 3."""
    case = netdevs(off_everywhere(), neighbor=Neighbor(system="leaf", pfc=only(5)))

    assert "--pfc 0,0,0,0,0,1,0,0" in fails(rule, case)[0].remedy
    assert "--pfc 0,0,0,1,0,0,0,0" in fails(rule, off_everywhere())[0].remedy
    assert "--pfc 0,0,0,0,1,0,0,0" in fails(rule, dcb(off_everywhere(), 0, pfc=only(4)))[0].remedy


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(lambda c: facts(c, roce_mode="lossy"), NotApplicable, id="declared lossy"),
        pytest.param(
            lambda c: netdevs(
                dcb_everywhere(c, pfc=only()), neighbor=Neighbor(system="leaf", applications={"udp:4791": 3})
            ),
            NotApplicable,
            id="lossy by the switch",
        ),
        pytest.param(lambda c: changed_netdev(c, 1, pause=Pause(rx=True, tx=True)), Pass, id="global pause"),
        pytest.param(lambda c: changed_netdev(c, 1, pause=None), Unknown, id="pause not read"),
        pytest.param(lambda c: changed_nic(c, 1, virtual_function=True), Unknown, id="virtual function"),
        pytest.param(lambda c: changed_nic(c, 1, state="other_namespace"), Unknown, id="namespace"),
        pytest.param(lambda c: dcb(c, pfc=[]), Unknown, id="PFC not read"),
        pytest.param(lambda c: changed_netdev(c, 1, qos=None, qos_reason="EOPNOTSUPP"), Unknown, id="no DCB"),
        pytest.param(lambda c: changed_port(c, 1, state="DOWN"), NotApplicable, id="down"),
        pytest.param(lambda c: changed_nic(c, 1, role="management"), NotApplicable, id="management"),
        pytest.param(lambda c: changed_nic(c, 1, driver="mana"), NotApplicable, id="cloud"),
        pytest.param(lambda c: dcb(c, pfc=only(3)), Pass, id="on"),
    ],
)
def test_a_guard_keeps_it_silent(circumstance, kind) -> None:
    """The firing case and this circumstance."""
    silent(rule, circumstance(off()), kind)
