"""DCB settings that cannot be read or that firmware owns."""

from __future__ import annotations

from agent.rules.roce.lossless import roce_dcb_unreadable, roce_dcbx_firmware_owned
from tests.agent.rules.build import changed_netdev, changed_port, fails
from tests.agent.rules.roce.qos import PORT, dcb, roce
from tests.agent.rules.rows import only

# roce-dcb-unreadable: what cannot be seen from here; and every guard alone.


def refused(context=None):
    return changed_netdev(context or roce(), 1, qos=None, qos_reason="EOPNOTSUPP: the driver has no DCB here")


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
