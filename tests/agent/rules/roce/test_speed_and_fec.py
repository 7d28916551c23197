"""Speed and FEC of links that are up."""

from __future__ import annotations

import pytest

from agent.model.nic import Fec, TransceiverModule
from agent.rules.roce.links import roce_fec_wrong, roce_speed_degraded
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import answers, changed_netdev, changed_nic, fails, kinds, server, topology
from tests.agent.rules.roce.qos import NETDEV, NIC, NOT_ACTIVE, PORT, PROVIDERS, ROLES, UNSEEN, bonded

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


def test_without_a_majority_the_fastest_counts() -> None:
    """Of two rails one is slow."""
    (fault,) = fails(roce_speed_degraded, slow(gpus=2))

    assert ("error", "medium") == (fault.severity, fault.confidence)
    assert fault.summary.endswith("another port of this board runs at 400")


def test_all_below_what_they_could_is_one_info() -> None:
    """A slower switch, or a breakout by design."""
    (fault,) = fails(roce_speed_degraded, all_at(200.0))
    (alone,) = fails(roce_speed_degraded, all_at(200.0, gpus=1))

    assert ("node", "info", "low", "all") == (fault.subject, fault.severity, fault.confidence, fault.cause)
    assert "info" == alone.severity
    assert "nothing is lost where the fabric is slower by design" in alone.impact


def test_most_slow_ports_are_no_norm() -> None:
    """Six at 200 and one at 100 are the faults, because the one at 400 shows what the fabric can do."""
    context = changed_netdev(changed_netdev(all_at(200.0, gpus=8), 1, speed_gbit_s=100.0), 2, speed_gbit_s=400.0)
    faults = {fault.subject: fault for fault in fails(roce_speed_degraded, context)}

    assert (7, {"error"}) == (len(faults), {fault.severity for fault in faults.values()})
    assert "most ports of this board run at 200" in faults[PORT].summary


def test_storage_is_less_grave() -> None:
    """One step below a rail."""
    context = slow()
    for n in range(4):
        context = changed_nic(context, n, role="storage")

    assert ["warning"] == [fault.severity for fault in fails(roce_speed_degraded, context)]


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
def test_a_guard_keeps_speed_degraded_silent(circumstance, kind) -> None:
    """The firing case and this circumstance: no fault, and the answer that the page promises."""
    context = circumstance(slow())
    result = [*answers(roce_speed_degraded, context, PORT), *answers(roce_speed_degraded, context, NETDEV)]

    assert [kind] == [type(answer) for answer in result]
    assert [] == fails(roce_speed_degraded, context)


def test_members_of_a_bond_are_judged_one_by_one_for_speed_degraded() -> None:
    """The bond's own speed is a sum; two bonds' members are not compared with bare rails of another kind."""
    context = changed_netdev(bonded(server(ethernet=True), members=(0, 1)), 1, speed_gbit_s=100.0)
    (fault, *_) = fails(roce_speed_degraded, context)
    lone = bonded(server(ethernet=True))
    gone = topology(lone, netdevs=[netdev for netdev in lone.topology.netdevs if netdev.master is None])

    assert (NETDEV, "error") == (fault.subject, fault.severity)
    assert [] == fails(roce_speed_degraded, lone)
    assert [Unknown(PORT, "the members of its bond are not visible here")] == answers(roce_speed_degraded, gone, PORT)


def test_infiniband_is_not_applicable() -> None:
    """One answer for the node."""
    assert {NotApplicable} == kinds(roce_speed_degraded, server())


def test_what_was_not_read_is_no_evidence() -> None:
    """Speed alone is enough."""
    (fault,) = fails(roce_speed_degraded, changed_netdev(slow(), 1, max_speed_gbit_s=None, module=None))

    assert ["speed of eth1"] == [row.what for row in fault.evidence]


def test_a_rail_below_another_device_that_is_no_bond_is_compared_with_bare_ones() -> None:
    """A VRF is only a table of routes."""
    assert [(PORT, "error")] == [
        (f.subject, f.severity) for f in fails(roce_speed_degraded, changed_netdev(slow(), 1, master="vrf0"))
    ]


def test_members_of_a_bond_are_not_compared_with_bare_ports() -> None:
    """Their switch ports may be set up otherwise."""
    assert [] == fails(roce_speed_degraded, changed_netdev(bonded(slow()), 1, max_speed_gbit_s=200.0))


# roce-fec-wrong: when it fires, when it must not, and every guard alone.


def fec(active: str | None, *supported: str) -> Fec:
    return Fec(active=active, configured=["off"], supported=list(supported) or ["off", "rs"])


def copper(metres: float | None, media: str = "copper") -> TransceiverModule:
    return TransceiverModule(media=media, part="DAC", length_m=metres)


def wrong(active: str = "off", speed: float = 400.0, **interface):
    return changed_netdev(server(ethernet=True), 1, fec=fec(active), speed_gbit_s=speed, **interface)


def test_a_link_without_fec_is_a_warning() -> None:
    """Active, configured and supported are the evidence."""
    (fault,) = fails(roce_fec_wrong, wrong())

    assert (PORT, "warning", "weak") == (fault.subject, fault.severity, fault.cause)
    assert "no FEC at 400 Gb/s; lanes of 50 Gb/s and more need RS-FEC" == fault.summary
    assert ["off", "off", "off, rs"] == [row.value for row in fault.evidence]


@pytest.mark.parametrize(
    ("active", "speed", "supported", "fires"),
    [
        ("off", 200.0, (), True),
        ("baser", 200.0, (), True),
        ("off", 200.0, ("off",), True),
        ("off", 199.0, ("off", "rs"), True),
        ("off", 199.0, ("off", "baser"), False),
        ("baser", 100.0, ("off", "rs"), True),
        ("off", 99.0, ("off", "rs"), False),
        ("rs", 400.0, (), False),
        ("llrs", 100.0, ("off", "rs"), False),
    ],
)
def test_what_a_speed_needs(active: str, speed: float, supported: tuple[str, ...], fires: bool) -> None:
    """RS-FEC from 200 Gb/s on; from 100 on where the port has it."""
    context = changed_netdev(server(ethernet=True), 1, fec=fec(active, *supported), speed_gbit_s=speed)

    assert fires == bool(fails(roce_fec_wrong, context))


@pytest.mark.parametrize(
    ("module", "kind"),
    [
        (copper(3.0), Pass),
        (copper(3.1), None),
        (copper(None), None),
        (copper(1.0, "active_copper"), None),
        (None, Unknown),
    ],
)
def test_short_copper_may_do_without_at_100(module, kind) -> None:
    """Lanes of 25 Gb/s over a passive cable of up to 3 m; unknown where the cable is."""
    context = wrong(speed=100.0, module=module)

    assert (kind is None) == bool(fails(roce_fec_wrong, context))
    if kind:
        assert [kind] == [type(answer) for answer in answers(roce_fec_wrong, context, PORT)]


def test_short_copper_needs_it_at_200() -> None:
    """Lanes of 50 Gb/s have no link without."""
    assert ["weak"] == [fault.cause for fault in fails(roce_fec_wrong, wrong(speed=200.0, module=copper(1.0)))]


def test_one_that_differs_from_its_kind() -> None:
    """The same board, speed and part, and another FEC than most; not compared where the part is not known."""
    context = wrong("llrs")
    (fault,) = fails(roce_fec_wrong, context)

    assert (PORT, "differs") == (fault.subject, fault.cause)
    assert "most ports like it have RS-FEC" in fault.summary
    assert [] == fails(roce_fec_wrong, changed_netdev(context, 1, module=copper(2.0)))
    assert [] == fails(roce_fec_wrong, changed_netdev(context, 1, speed_gbit_s=200.0))
    assert [] == fails(roce_fec_wrong, changed_nic(context, 1, board_id="MT_OTHER"))
    assert [] == fails(roce_fec_wrong, changed_nic(context, 1, role="storage"))
    for n in range(4):
        context = changed_netdev(context, n, module=None)
    assert [] == fails(roce_fec_wrong, context)


def test_the_same_on_every_port_is_one_finding() -> None:
    """Somebody configured it so; storage is one step lower."""
    context = server(ethernet=True)
    for n in range(4):
        context = changed_netdev(context, n, fec=fec("off"))

    assert [("node", "warning")] == [(fault.subject, fault.severity) for fault in fails(roce_fec_wrong, context)]
    assert ["info"] == [fault.severity for fault in fails(roce_fec_wrong, changed_nic(wrong(), 1, role="storage"))]


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        *ROLES,
        NOT_ACTIVE,
        *PROVIDERS,
        *UNSEEN,
        pytest.param(lambda c: changed_netdev(c, 1, fec=None), Unknown, id="FEC not told"),
        pytest.param(lambda c: changed_netdev(c, 1, fec=fec(None)), Unknown, id="active FEC not told"),
        pytest.param(lambda c: changed_netdev(c, 1, speed_gbit_s=None), Unknown, id="speed not read"),
        pytest.param(lambda c: changed_netdev(c, 1, speed_gbit_s=40.0), NotApplicable, id="slow"),
    ],
)
def test_a_guard_keeps_fec_wrong_silent(circumstance, kind) -> None:
    """The firing case and this circumstance: no fault, and the answer that the page promises."""
    context = circumstance(wrong())
    (answer,) = answers(roce_fec_wrong, context, PORT)

    assert isinstance(answer, kind), answer
    assert [] == fails(roce_fec_wrong, context)


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
