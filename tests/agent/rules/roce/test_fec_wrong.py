"""roce-fec-wrong: when it fires, when it must not, and every guard alone."""

from __future__ import annotations

import pytest

from agent.model.nic import Fec, TransceiverModule
from agent.rules.roce.links import roce_fec_wrong as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import answers, changed_netdev, changed_nic, fails, kinds, server, topology
from tests.agent.rules.roce.guards import NETDEV, NOT_ACTIVE, PORT, PROVIDERS, ROLES, UNSEEN, bonded


def fec(active: str | None, *supported: str) -> Fec:
    return Fec(active=active, configured=["off"], supported=list(supported) or ["off", "rs"])


def copper(metres: float | None, media: str = "copper") -> TransceiverModule:
    return TransceiverModule(media=media, part="DAC", length_m=metres)


def wrong(active: str = "off", speed: float = 400.0, **interface):
    return changed_netdev(server(ethernet=True), 1, fec=fec(active), speed_gbit_s=speed, **interface)


def test_a_link_without_fec_is_a_warning() -> None:
    """Active, configured and supported are the evidence."""
    (fault,) = fails(rule, wrong())

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
    case = changed_netdev(server(ethernet=True), 1, fec=fec(active, *supported), speed_gbit_s=speed)

    assert fires == bool(fails(rule, case))


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
    case = wrong(speed=100.0, module=module)

    assert (kind is None) == bool(fails(rule, case))
    if kind:
        assert [kind] == [type(answer) for answer in answers(rule, case, PORT)]


def test_short_copper_needs_it_at_200() -> None:
    """Lanes of 50 Gb/s have no link without."""
    assert ["weak"] == [fault.cause for fault in fails(rule, wrong(speed=200.0, module=copper(1.0)))]


def test_one_that_differs_from_its_kind() -> None:
    """The same board, speed and part, and another FEC than most; not compared where the part is not known."""
    case = wrong("llrs")
    (fault,) = fails(rule, case)

    assert (PORT, "differs") == (fault.subject, fault.cause)
    assert "most ports like it have RS-FEC" in fault.summary
    assert [] == fails(rule, changed_netdev(case, 1, module=copper(2.0)))
    assert [] == fails(rule, changed_netdev(case, 1, speed_gbit_s=200.0))
    assert [] == fails(rule, changed_nic(case, 1, board_id="MT_OTHER"))
    assert [] == fails(rule, changed_nic(case, 1, role="storage"))
    for n in range(4):
        case = changed_netdev(case, n, module=None)
    assert [] == fails(rule, case)


def test_the_same_on_every_port_is_one_finding() -> None:
    """Somebody configured it so; storage is one step lower."""
    case = server(ethernet=True)
    for n in range(4):
        case = changed_netdev(case, n, fec=fec("off"))

    assert [("node", "warning")] == [(fault.subject, fault.severity) for fault in fails(rule, case)]
    assert ["info"] == [fault.severity for fault in fails(rule, changed_nic(wrong(), 1, role="storage"))]


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
def test_a_guard_keeps_it_silent(circumstance, kind) -> None:
    """The firing case and this circumstance: no fault, and the answer that the page promises."""
    case = circumstance(wrong())
    (answer,) = answers(rule, case, PORT)

    assert isinstance(answer, kind), answer
    assert [] == fails(rule, case)


def test_members_of_a_bond_are_judged_one_by_one() -> None:
    """The bond itself has no FEC; without members in sight it is unknown."""
    case = bonded(wrong())
    gone = topology(case, netdevs=[each for each in case.topology.netdevs if each.master is None])

    assert [NETDEV] == [fault.subject for fault in fails(rule, case)]
    assert [Unknown(PORT, "the members of its bond are not visible here")] == answers(rule, gone, PORT)
    assert {NotApplicable} == kinds(rule, server())


@pytest.mark.parametrize(
    ("configured", "auto", "said"),
    [(["rs", "off"], True, "rs, off"), ([], True, "auto"), ([], False, "not reported"), ([], None, "not reported")],
)
def test_what_is_configured_is_evidence(configured: list[str], auto: bool | None, said: str) -> None:
    """A port may be left to choose for itself."""
    made = Fec(active="off", configured=configured, supported=["off", "rs"], auto=auto)
    (fault,) = fails(rule, changed_netdev(server(ethernet=True), 1, fec=made))

    assert ("configured", said) == (fault.evidence[1].what, fault.evidence[1].value)
