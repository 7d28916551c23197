"""roce-vlan-no-egress-map: tags with the wrong priority; and every guard alone."""

from __future__ import annotations

import pytest

from agent.rules.roce.lossless import roce_vlan_no_egress_map as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import changed_nic, fails
from tests.agent.rules.roce.qos import PORT, dcb, facts, lost, nccl_sets, roce, silent, vlan
from tests.agent.rules.rows import only


def unmapped():
    return vlan(roce(), "")


def test_a_vlan_without_a_map_is_a_warning() -> None:
    """Tags say 0."""
    (fault,) = fails(rule, unmapped())

    assert (PORT, "warning", "medium") == (fault.subject, fault.severity, fault.confidence)
    assert "VLAN tags carry priority 0, PFC is on for priority 3" == fault.summary
    assert fault.remedy.startswith("ip link set eth1.5 type vlan egress 0:3 4:3, or NCCL_IB_SL=3")
    assert ("none", "ip -d link show eth1.5") == (fault.evidence[0].value, fault.evidence[0].source)
    assert "0:2" == fails(rule, vlan(roce(), "0:2"))[0].evidence[0].value


def test_severity() -> None:
    """Lost packets make it graver, storage less."""
    assert ["error"] == [fault.severity for fault in fails(rule, lost(unmapped()))]
    assert ["info"] == [fault.severity for fault in fails(rule, changed_nic(unmapped(), 1, role="storage"))]


@pytest.mark.parametrize(
    ("case", "kind"),
    [
        pytest.param(vlan(roce(), "0:3"), Pass, id="map"),
        pytest.param(nccl_sets(unmapped(), NCCL_IB_SL="3"), Pass, id="service level"),
        pytest.param(dcb(unmapped(), trust="dscp"), Pass, id="trust DSCP"),
        pytest.param(dcb(unmapped(), pfc=only(0)), Pass, id="PFC on 0"),
        pytest.param(vlan(roce(), None), Unknown, id="map not read"),
        pytest.param(facts(unmapped(), roce_mode="lossy"), NotApplicable, id="declared lossy"),
        pytest.param(dcb(roce(), trust="pcp"), Pass, id="no VLAN: told elsewhere"),
    ],
)
def test_a_guard_keeps_it_silent(case, kind) -> None:
    """The firing case and this circumstance."""
    silent(rule, case, kind)
