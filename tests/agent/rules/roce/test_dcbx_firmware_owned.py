"""roce-dcbx-firmware-owned: who negotiates; and every guard alone."""

from __future__ import annotations

import pytest

from agent.rules.roce.lossless import roce_dcbx_firmware_owned as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import changed_netdev, changed_nic, fails
from tests.agent.rules.roce.qos import PORT, dcb, roce, silent
from tests.agent.rules.rows import only


def test_the_firmware_in_charge_is_worth_knowing() -> None:
    """Info on its port."""
    (fault,) = fails(rule, dcb(roce(), dcbx="firmware", dcbx_modes=["ieee"]))

    assert (PORT, "info", "DCBX is run by the firmware of the NIC") == (fault.subject, fault.severity, fault.summary)
    assert ("firmware (ieee), PFC of the peer: not known", "dcb dcbx show dev eth1") == (
        fault.evidence[0].value,
        fault.evidence[0].source,
    )


def test_a_peer_shows_that_dcbx_runs() -> None:
    """Whoever owns it."""
    (fault,) = fails(rule, dcb(roce(), peer_pfc=only(3)))

    assert "DCBX is run with the switch" == fault.summary
    assert fault.evidence[0].value.endswith("PFC of the peer: 3")
    assert 1 == len(fails(rule, dcb(roce(), dcbx=None, peer_pfc=only(3))))


@pytest.mark.parametrize(
    ("case", "kind"),
    [
        pytest.param(roce(), Pass, id="the host's"),
        pytest.param(dcb(roce(), dcbx=None), Unknown, id="not told"),
        pytest.param(changed_netdev(roce(), 1, qos=None), Unknown, id="DCB not known"),
        pytest.param(changed_nic(roce(), 1, role="unused"), NotApplicable, id="unused"),
    ],
)
def test_a_guard_keeps_it_silent(case, kind) -> None:
    """No fault, and the answer that the page promises."""
    silent(rule, case, kind)
