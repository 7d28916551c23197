"""roce-trust-pcp-untagged: no tag, no class; and every guard alone."""

from __future__ import annotations

import pytest

from agent.rules.roce.lossless import roce_trust_pcp_untagged as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import changed_netdev, changed_nic, changed_port, fails
from tests.agent.rules.roce.qos import PORT, dcb, facts, roce, silent, traffic, vlan
from tests.agent.rules.rows import only


def pcp():
    return dcb(roce(), trust="pcp")


def test_trust_in_tags_that_are_not_there_is_an_error() -> None:
    """All packets are priority 0."""
    (fault,) = fails(rule, pcp())

    assert (PORT, "error", "high") == (fault.subject, fault.severity, fault.confidence)
    assert "trust is PCP, and no packet has a VLAN tag: all are priority 0, PFC is on for priority 3" == fault.summary
    assert "mlnx_qos -i eth1 --trust dscp (upstream: dcb app add dev eth1 dscp-prio 0:0" in fault.remedy


@pytest.mark.parametrize(
    ("driver", "source", "severity", "confidence"),
    [
        ("mlx5_core", "APP table", "error", "high"),
        (None, "APP table", "error", "high"),
        ("bnxt_en", "APP table", "warning", "medium"),
        ("bnxt_en", "trust table", "error", "high"),
    ],
)
def test_what_an_empty_table_means_depends_on_the_driver(driver, source, severity, confidence) -> None:
    """mlx5 is known to keep it empty in PCP trust; a trust table says it itself."""
    (fault,) = fails(rule, changed_nic(dcb(pcp(), trust_source=source), 1, driver=driver))

    assert (severity, confidence) == (fault.severity, fault.confidence)


def test_storage_is_less_grave() -> None:
    """One step below a rail."""
    assert ["warning"] == [fault.severity for fault in fails(rule, changed_nic(pcp(), 1, role="storage"))]


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(lambda c: facts(c, roce_mode="lossy"), NotApplicable, id="declared lossy"),
        pytest.param(lambda c: dcb(c, trust="dscp"), Pass, id="trust DSCP"),
        pytest.param(lambda c: dcb(c, trust=None), Unknown, id="trust not known"),
        pytest.param(lambda c: dcb(c, pfc=only(0)), Pass, id="PFC on 0"),
        pytest.param(lambda c: dcb(c, pfc=only()), Pass, id="PFC off"),
        pytest.param(lambda c: vlan(c, "0:3"), Pass, id="tagged and mapped"),
        pytest.param(lambda c: vlan(c, ""), Pass, id="tagged: told elsewhere"),
        pytest.param(lambda c: changed_port(c, 1, gids_known=False), Unknown, id="addresses not known"),
        pytest.param(lambda c: traffic(c, 3), Pass, id="bytes prove it"),
        pytest.param(lambda c: changed_netdev(c, 1, qos=None), Unknown, id="DCB not known"),
        pytest.param(lambda c: changed_nic(c, 1, virtual_function=True), Unknown, id="virtual function"),
        pytest.param(lambda c: changed_port(c, 1, state="DOWN"), NotApplicable, id="down"),
    ],
)
def test_a_guard_keeps_it_silent(circumstance, kind) -> None:
    """The firing case and this circumstance."""
    silent(rule, circumstance(pcp()), kind)
