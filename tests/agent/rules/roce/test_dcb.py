"""DCB settings that cannot be read or that firmware owns."""

from __future__ import annotations

import pytest

from agent.rules.roce.lossless import roce_dcb_unreadable, roce_dcbx_firmware_owned
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import changed_netdev, changed_nic, changed_port, fails
from tests.agent.rules.roce.qos import PORT, dcb, facts, netdevs, roce, silent
from tests.agent.rules.rows import only

# roce-dcb-unreadable: what cannot be seen from here; and every guard alone.


def refused(context=None):
    return changed_netdev(context or roce(), 1, qos=None, qos_reason="EOPNOTSUPP: the driver has no DCB here")


@pytest.mark.parametrize(
    ("context", "word"),
    [
        pytest.param(refused(), "EOPNOTSUPP", id="refused"),
        pytest.param(changed_nic(roce(), 1, virtual_function=True), "a virtual function", id="virtual function"),
        pytest.param(changed_nic(roce(), 1, state="other_namespace"), "another network namespace", id="namespace"),
        pytest.param(changed_port(roce(), 1, netdevs=[]), "no interface of it is visible", id="no interface"),
        pytest.param(facts(refused(), roce_mode="lossy"), "EOPNOTSUPP", id="whatever is declared"),
    ],
)
def test_what_cannot_be_seen_is_said(context, word: str) -> None:
    """Info, with the reason."""
    (fault,) = fails(roce_dcb_unreadable, context)

    assert (PORT, "info") == (fault.subject, fault.severity)
    assert word in fault.summary
    assert word in fault.evidence[0].value


def test_every_rail_is_one_finding() -> None:
    """A guest whose NICs are all virtual functions."""
    (fault,) = fails(roce_dcb_unreadable, netdevs(roce(), qos=None, qos_reason="EOPNOTSUPP"))

    assert "node" == fault.subject


@pytest.mark.parametrize(
    ("context", "kind"),
    [
        pytest.param(roce(), Pass, id="seen"),
        pytest.param(changed_netdev(roce(), 1, qos=None), Unknown, id="nobody asked"),
        pytest.param(changed_nic(refused(), 1, role="storage"), NotApplicable, id="no rail"),
        pytest.param(changed_nic(refused(), 1, driver="efa"), NotApplicable, id="EFA"),
        pytest.param(changed_nic(refused(), 1, software=True), NotApplicable, id="software"),
        pytest.param(changed_port(refused(), 1, state="DOWN"), NotApplicable, id="down"),
    ],
)
def test_a_guard_keeps_dcb_unreadable_silent(context, kind) -> None:
    """No fault, and the answer that the page promises."""
    silent(roce_dcb_unreadable, context, kind)


def test_the_command_names_the_interface_where_it_has_one() -> None:
    """For people who look for themselves."""
    hidden = changed_port(roce(), 1, netdevs=[])

    assert "dcb pfc show dev eth1" == fails(roce_dcb_unreadable, refused())[0].evidence[0].source
    assert "dcb pfc show dev INTERFACE" == fails(roce_dcb_unreadable, hidden)[0].evidence[0].source


# roce-dcbx-firmware-owned: who negotiates; and every guard alone.


def test_the_firmware_in_charge_is_worth_knowing() -> None:
    """Info on its port."""
    (fault,) = fails(roce_dcbx_firmware_owned, dcb(roce(), dcbx="firmware", dcbx_modes=["ieee"]))

    assert (PORT, "info", "DCBX is run by the firmware of the NIC") == (fault.subject, fault.severity, fault.summary)
    assert ("firmware (ieee), PFC of the peer: not known", "dcb dcbx show dev eth1") == (
        fault.evidence[0].value,
        fault.evidence[0].source,
    )


def test_a_peer_shows_that_dcbx_runs() -> None:
    """Whoever owns it."""
    (fault,) = fails(roce_dcbx_firmware_owned, dcb(roce(), peer_pfc=only(3)))

    assert "DCBX is run with the switch" == fault.summary
    assert fault.evidence[0].value.endswith("PFC of the peer: 3")
    assert 1 == len(fails(roce_dcbx_firmware_owned, dcb(roce(), dcbx=None, peer_pfc=only(3))))


@pytest.mark.parametrize(
    ("context", "kind"),
    [
        pytest.param(roce(), Pass, id="the host's"),
        pytest.param(dcb(roce(), dcbx=None), Unknown, id="not told"),
        pytest.param(changed_netdev(roce(), 1, qos=None), Unknown, id="DCB not known"),
        pytest.param(changed_nic(roce(), 1, role="unused"), NotApplicable, id="unused"),
    ],
)
def test_a_guard_keeps_dcbx_firmware_owned_silent(context, kind) -> None:
    """No fault, and the answer that the page promises."""
    silent(roce_dcbx_firmware_owned, context, kind)
