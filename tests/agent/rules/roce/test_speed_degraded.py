"""roce-speed-degraded: when it fires, when it must not, and every guard alone."""

from __future__ import annotations

import pytest

from agent.rules.roce.links import roce_speed_degraded as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import answers, changed_netdev, changed_nic, fails, kinds, server, topology
from tests.agent.rules.roce.guards import NETDEV, NIC, NOT_ACTIVE, PORT, PROVIDERS, ROLES, UNSEEN, bonded


def slow(speed: float = 200.0, gpus: int = 4):
    return changed_netdev(server(gpus, ethernet=True), 1, speed_gbit_s=speed)


def all_at(speed: float, gpus: int = 4):
    case = server(gpus, ethernet=True)
    for n in range(gpus):
        case = changed_netdev(case, n, speed_gbit_s=speed)
    return case


def test_a_slow_rail_is_an_error() -> None:
    """Speed, what the interface supports and the cable are the evidence."""
    (fault,) = fails(rule, slow())

    assert (PORT, "error", "high", "") == (fault.subject, fault.severity, fault.confidence, fault.cause)
    assert "eth1 runs at 200 Gb/s; most ports of this board run at 400" == fault.summary
    assert fault.impact == "25 instead of 50 GB/s in each direction (50% less); collectives wait for it."
    assert ["200 Gb/s", "400 Gb/s", "NVIDIA MMA4Z00-NS400 MT0001"] == [row.value for row in fault.evidence]
    assert {NIC, f"{NIC}/1"} <= fault.places


def test_without_a_majority_the_fastest_counts() -> None:
    """Of two rails one is slow."""
    (fault,) = fails(rule, slow(gpus=2))

    assert ("error", "medium") == (fault.severity, fault.confidence)
    assert fault.summary.endswith("another port of this board runs at 400")


def test_all_below_what_they_could_is_one_info() -> None:
    """A slower switch, or a breakout by design."""
    (fault,) = fails(rule, all_at(200.0))
    (alone,) = fails(rule, all_at(200.0, gpus=1))

    assert ("node", "info", "low", "all") == (fault.subject, fault.severity, fault.confidence, fault.cause)
    assert "info" == alone.severity
    assert "nothing is lost where the fabric is so by design" in alone.impact


def test_the_majority_wins_over_what_an_interface_could() -> None:
    """Most at 200: the one at 100 is the fault, the one at 400 is not; the others' breakout is told beside it."""
    case = changed_netdev(changed_netdev(all_at(200.0, gpus=8), 1, speed_gbit_s=100.0), 2, speed_gbit_s=400.0)

    assert [(PORT, "error")] == [(fault.subject, fault.severity) for fault in fails(rule, case)]


def test_storage_is_less_grave() -> None:
    """One step below a rail."""
    case = slow()
    for n in range(4):
        case = changed_nic(case, n, role="storage")

    assert ["warning"] == [fault.severity for fault in fails(rule, case)]


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        *ROLES,
        NOT_ACTIVE,
        *PROVIDERS,
        *UNSEEN,
        pytest.param(lambda c: changed_netdev(c, 1, speed_gbit_s=None), Unknown, id="speed not read"),
        pytest.param(
            lambda c: changed_netdev(c, 1, speed_gbit_s=None, operstate="down"), NotApplicable, id="no carrier"
        ),
        pytest.param(
            lambda c: changed_netdev(changed_nic(c, 1, board_id="MT_OTHER"), 1, max_speed_gbit_s=200.0), Pass,
            id="another board",
        ),
        pytest.param(
            lambda c: changed_netdev(changed_nic(c, 1, role="storage"), 1, max_speed_gbit_s=None), Pass, id="other role"
        ),
        pytest.param(lambda c: changed_netdev(c, 1, speed_gbit_s=400.0), Pass, id="as fast as the others"),
    ],
)  # fmt: skip
def test_a_guard_keeps_it_silent(circumstance, kind) -> None:
    """The firing case and this circumstance: no fault, and the answer that the page promises."""
    case = circumstance(slow())
    found = [*answers(rule, case, PORT), *answers(rule, case, NETDEV)]

    assert [kind] == [type(answer) for answer in found]
    assert [] == fails(rule, case)


def test_members_of_a_bond_are_judged_one_by_one() -> None:
    """The bond's own speed is a sum; two bonds' members are not compared with bare rails of another kind."""
    case = changed_netdev(bonded(server(ethernet=True), members=(0, 1)), 1, speed_gbit_s=100.0)
    (fault, *_) = fails(rule, case)
    lone = bonded(server(ethernet=True))
    gone = topology(lone, netdevs=[each for each in lone.topology.netdevs if each.master is None])

    assert (NETDEV, "error") == (fault.subject, fault.severity)
    assert [] == fails(rule, lone)
    assert [Unknown(PORT, "the members of its bond are not visible here")] == answers(rule, gone, PORT)


def test_infiniband_is_not_applicable() -> None:
    """One answer for the node."""
    assert {NotApplicable} == kinds(rule, server())


def test_what_was_not_read_is_no_evidence() -> None:
    """Speed alone is enough."""
    (fault,) = fails(rule, changed_netdev(slow(), 1, max_speed_gbit_s=None, module=None))

    assert ["speed of eth1"] == [row.what for row in fault.evidence]


def test_a_rail_below_another_device_that_is_no_bond_is_compared_with_bare_ones() -> None:
    """A VRF is only a table of routes."""
    assert [(PORT, "error")] == [(f.subject, f.severity) for f in fails(rule, changed_netdev(slow(), 1, master="vrf0"))]


def test_members_of_a_bond_are_not_compared_with_bare_ports() -> None:
    """Their switch ports may be set up otherwise."""
    assert [] == fails(rule, changed_netdev(bonded(slow()), 1, max_speed_gbit_s=200.0))
