"""Speed and FEC of links that are up."""

from __future__ import annotations

import pytest

from agent.model.nic import Fec
from agent.rules.roce.links import roce_fec_wrong, roce_speed_degraded
from agent.rules.rule import NotApplicable, Unknown
from tests.agent.rules.build import answers, changed_netdev, fails, kinds, server, topology
from tests.agent.rules.roce.qos import NETDEV, NIC, PORT, bonded

# roce-speed-degraded: when it fires, when it must not, and every guard alone.


def slow(speed: float = 200.0, gpus: int = 4):
    return changed_netdev(server(gpus, ethernet=True), 1, speed_gbit_s=speed)


def all_at(speed: float, gpus: int = 4):
    context = server(gpus, ethernet=True)
    for n in range(gpus):
        context = changed_netdev(context, n, speed_gbit_s=speed)
    return context


def test_a_slow_rail_is_an_error() -> None:
    """Speed, what the interface supports and the cable are the evidence."""
    (fault,) = fails(roce_speed_degraded, slow())

    assert (PORT, "error", "high", "") == (fault.subject, fault.severity, fault.confidence, fault.cause)
    assert "eth1 runs at 200 Gb/s; most ports of this board run at 400" == fault.summary
    assert fault.impact == "25 instead of 50 GB/s in each direction (50% less); collectives wait for it."
    assert ["200 Gb/s", "400 Gb/s", "NVIDIA MMA4Z00-NS400 MT0001"] == [row.value for row in fault.evidence]
    assert {NIC, f"{NIC}/1"} <= fault.ids


def test_all_below_what_they_could_is_one_info() -> None:
    """A slower switch, or a breakout by design."""
    (fault,) = fails(roce_speed_degraded, all_at(200.0))
    (alone,) = fails(roce_speed_degraded, all_at(200.0, gpus=1))

    assert ("node", "info", "low", "all") == (fault.subject, fault.severity, fault.confidence, fault.cause)
    assert "info" == alone.severity
    assert "nothing is lost where the fabric is slower by design" in alone.impact


def test_what_was_not_read_is_no_evidence() -> None:
    """Speed alone is enough."""
    (fault,) = fails(roce_speed_degraded, changed_netdev(slow(), 1, max_speed_gbit_s=None, module=None))

    assert ["speed of eth1"] == [row.what for row in fault.evidence]


# roce-fec-wrong: when it fires, when it must not, and every guard alone.


def fec(active: str | None, *supported: str) -> Fec:
    return Fec(active=active, configured=["off"], supported=list(supported) or ["off", "rs"])


def wrong(active: str = "off", speed: float = 400.0, **interface):
    return changed_netdev(server(ethernet=True), 1, fec=fec(active), speed_gbit_s=speed, **interface)


def test_a_link_without_fec_is_a_warning() -> None:
    """Active, configured and supported are the evidence."""
    (fault,) = fails(roce_fec_wrong, wrong())

    assert (PORT, "warning", "weak") == (fault.subject, fault.severity, fault.cause)
    assert "no FEC at 400 Gb/s; lanes of 50 Gb/s and more need RS-FEC" == fault.summary
    assert ["off", "off", "off, rs"] == [row.value for row in fault.evidence]


def test_members_of_a_bond_are_judged_one_by_one_for_fec_wrong() -> None:
    """The bond itself has no FEC; without members in sight it is unknown."""
    context = bonded(wrong())
    gone = topology(context, netdevs=[netdev for netdev in context.topology.netdevs if netdev.master is None])

    assert [NETDEV] == [fault.subject for fault in fails(roce_fec_wrong, context)]
    assert [Unknown(PORT, "the members of its bond are not visible here")] == answers(roce_fec_wrong, gone, PORT)
    assert {NotApplicable} == kinds(roce_fec_wrong, server())


@pytest.mark.parametrize(
    ("configured", "auto", "said"),
    [(["rs", "off"], True, "rs, off"), ([], True, "auto"), ([], False, "not reported"), ([], None, "not reported")],
)
def test_what_is_configured_is_evidence(configured: list[str], auto: bool | None, said: str) -> None:
    """A port may be left to choose for itself."""
    result = Fec(active="off", configured=configured, supported=["off", "rs"], auto=auto)
    (fault,) = fails(roce_fec_wrong, changed_netdev(server(ethernet=True), 1, fec=result))

    assert ("configured", said) == (fault.evidence[1].what, fault.evidence[1].value)
