"""roce-dcb-unreadable: what cannot be seen from here; and every guard alone."""

from __future__ import annotations

import pytest

from agent.rules.roce.lossless import roce_dcb_unreadable as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import changed_netdev, changed_nic, changed_port, fails
from tests.agent.rules.roce.qos import PORT, facts, netdevs, roce, silent


def refused(case=None):
    return changed_netdev(case or roce(), 1, qos=None, qos_reason="EOPNOTSUPP: the driver has no DCB here")


@pytest.mark.parametrize(
    ("case", "word"),
    [
        pytest.param(refused(), "EOPNOTSUPP", id="refused"),
        pytest.param(changed_nic(roce(), 1, virtual_function=True), "a virtual function", id="virtual function"),
        pytest.param(changed_nic(roce(), 1, state="other_namespace"), "another network namespace", id="namespace"),
        pytest.param(changed_port(roce(), 1, netdevs=[]), "no interface of it is visible", id="no interface"),
        pytest.param(facts(refused(), roce_mode="lossy"), "EOPNOTSUPP", id="whatever is declared"),
    ],
)
def test_what_cannot_be_seen_is_said(case, word: str) -> None:
    """Info, with the reason."""
    (fault,) = fails(rule, case)

    assert (PORT, "info") == (fault.subject, fault.severity)
    assert word in fault.summary
    assert word in fault.evidence[0].value


def test_every_rail_is_one_finding() -> None:
    """A guest whose NICs are all virtual functions."""
    (fault,) = fails(rule, netdevs(roce(), qos=None, qos_reason="EOPNOTSUPP"))

    assert "node" == fault.subject


@pytest.mark.parametrize(
    ("case", "kind"),
    [
        pytest.param(roce(), Pass, id="seen"),
        pytest.param(changed_netdev(roce(), 1, qos=None), Unknown, id="nobody asked"),
        pytest.param(changed_nic(refused(), 1, role="storage"), NotApplicable, id="no rail"),
        pytest.param(changed_nic(refused(), 1, driver="efa"), NotApplicable, id="EFA"),
        pytest.param(changed_nic(refused(), 1, software=True), NotApplicable, id="software"),
        pytest.param(changed_port(refused(), 1, state="DOWN"), NotApplicable, id="down"),
    ],
)
def test_a_guard_keeps_it_silent(case, kind) -> None:
    """No fault, and the answer that the page promises."""
    silent(rule, case, kind)


def test_the_command_names_the_interface_where_it_has_one() -> None:
    """For people who look for themselves."""
    hidden = changed_port(roce(), 1, netdevs=[])

    assert "dcb pfc show dev eth1" == fails(rule, refused())[0].evidence[0].source
    assert "dcb pfc show dev INTERFACE" == fails(rule, hidden)[0].evidence[0].source
