"""roce-optics-power: when it fires, when it must not, and every guard alone."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from agent.rules.context import Settings
from agent.rules.nic.optics import roce_optics_power as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import answers, changed_netdev, changed_nic, fails, kinds, server, topology
from tests.agent.rules.roce.guards import NETDEV, NIC, NOT_ACTIVE, PORT, PROVIDERS, ROLES, UNSEEN, bonded
from tests.agent.rules.rows import optical

NEEDS = "EPERM: reading a module's memory needs CAP_NET_ADMIN"


def lit(*lanes: dict, case=None, **module):
    """The module of rail 1 with lanes as told, the rest healthy."""
    case = case or server(ethernet=True)
    rows = [
        msgspec.structs.replace(row, **(lanes[n] if n < len(lanes) else {})) for n, row in enumerate(optical().lanes)
    ]
    return changed_netdev(case, 1, module=msgspec.structs.replace(optical(), lanes=rows, **module))


def test_weak_light_is_a_warning() -> None:
    """The module's name, the lane, its power and the limit are the evidence."""
    (fault,) = fails(rule, lit({}, {"rx_power_dbm": -6.5}))

    assert (PORT, "mlx5_1/1 (eth1)", "warning", "") == (fault.subject, fault.label, fault.severity, fault.cause)
    assert "lane 2 received -6.5 dBm, low warning limit -6" == fault.summary
    assert ["NVIDIA MMA4Z00-NS400 MT0001", "-6.5 dBm (limit -6 dBm)"] == [row.value for row in fault.evidence]
    assert {"ethtool -m eth1"} == {row.source for row in fault.evidence}
    assert {NIC, f"{NIC}/1"} <= fault.places


@pytest.mark.parametrize(
    ("lane", "severity"),
    [
        ({"rx_power_dbm": -6.0, "tx_power_dbm": 5.0}, None),
        ({"rx_power_dbm": -6.1}, "warning"),
        ({"rx_power_dbm": -8.5}, "warning"),
        ({"rx_power_dbm": -8.6}, "error"),
        ({"rx_power_dbm": 5.1}, "warning"),
        ({"rx_power_dbm": 7.1}, "error"),
        ({"tx_power_dbm": -6.1}, "warning"),
        ({"tx_power_dbm": 7.1}, "error"),
        ({"tx_power_dbm": -20.0}, None),
        ({"tx_power_dbm": None}, None),
        ({"rx_power_dbm": -19.9}, "error"),
        ({"rx_power_dbm": -20.0}, None),
        ({"rx_power_dbm": -20.0, "flags": ["rx_los", "rx_power_low_alarm"]}, None),
        ({"flags": ["rx_los"]}, "warning"),
        ({"flags": ["rx_lol"]}, "warning"),
        ({"flags": ["tx_los"]}, "warning"),
        ({"flags": ["tx_lol"]}, "warning"),
        ({"flags": ["tx_fault"]}, "error"),
        ({"flags": ["rx_power_low_alarm"]}, None),
        ({"rx_power_dbm": None, "tx_power_dbm": -20.0, "flags": ["tx_fault"]}, None),
        ({"rx_power_dbm": None, "tx_power_dbm": None, "flags": ["tx_fault"]}, None),
        ({"rx_power_dbm": None, "flags": ["tx_fault"]}, "error"),
    ],
)
def test_the_limits_are_the_modules_own(lane, severity: str | None) -> None:
    """At a limit is within it; a lane without light is not in use; flags of the past are cleared before."""
    found = fails(rule, lit(lane))

    assert ([severity] if severity else []) == [f.severity for f in found if f.severity != "info"]


@pytest.mark.parametrize(("power", "fires"), [(-2.0, False), (-2.1, True)])
def test_lanes_that_differ_are_an_info(power: float, fires: bool) -> None:
    """More than 3 dB between lanes that are in use."""
    found = fails(rule, lit({"rx_power_dbm": power}))

    assert ([("info", "spread")] if fires else []) == [(fault.severity, fault.cause) for fault in found]
    wider = Settings(thresholds={"roce-optics-power.spread_db": 4})
    assert [] == fails(rule, replace(lit({"rx_power_dbm": power}), settings=wider))


def test_only_lanes_that_measure_are_compared() -> None:
    """Of two that do, both are told; modules that measure what they send alone have no spread."""
    dumb = {"rx_power_dbm": None}
    (fault,) = fails(rule, lit({"rx_power_dbm": -2.5}, dumb, dumb))

    assert ["NVIDIA MMA4Z00-NS400 MT0001", "-2.5 dBm", "1 dBm"] == [row.value for row in fault.evidence]
    assert [Pass(PORT)] == answers(rule, lit(dumb, dumb, dumb), PORT)
    assert [Pass(PORT)] == answers(rule, lit(dumb, dumb, dumb, dumb), PORT)


def test_too_strong_is_told_as_such() -> None:
    """The upper limit, and which."""
    (fault,) = fails(rule, lit({"rx_power_dbm": 7.5}))

    assert "lane 1 received 7.5 dBm, high alarm limit 7" == fault.summary


def test_the_gravest_is_told() -> None:
    """All lanes of that severity; at most four in the sentence."""
    (both,) = fails(rule, lit({"rx_power_dbm": -9.0}, {"rx_power_dbm": -7.0}))
    (many,) = fails(rule, lit(*[{"rx_power_dbm": -9.0, "tx_power_dbm": 9.0}] * 4))

    assert ("error", "lane 1 received -9 dBm, low alarm limit -8.5") == (both.severity, both.summary)
    assert many.summary.endswith("; and 4 more")


def test_storage_is_less_grave() -> None:
    """One step below a rail."""
    case = changed_nic(lit({"rx_power_dbm": -9.0}), 1, role="storage")

    assert ["warning"] == [fault.severity for fault in fails(rule, case)]


def thresholds(**changes: float):
    return {**optical().thresholds, **changes}


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"media": "copper"}, NotApplicable),
        ({"media": "active_copper"}, NotApplicable),
        ({"state": "fault"}, NotApplicable),
        ({"state": "low_power"}, NotApplicable),
        ({"thresholds": {}}, Pass),
        ({"thresholds": {"rx_power_low_alarm_dbm": 0.0, "rx_power_low_warning_dbm": 0.0}}, Pass),
        ({"thresholds": {"rx_power_high_alarm_dbm": 0.0, "rx_power_high_warning_dbm": 0.0}}, Pass),
        ({"thresholds": dict.fromkeys(optical().thresholds, -40.0)}, Pass),
        ({"state": None, "thresholds": {}}, Pass),
    ],
)
def test_a_module_that_cannot_be_judged(changes, kind) -> None:
    """Copper, a module that is not ready, limits that it does not have or that make no sense."""
    weak = [{"rx_power_dbm": -9.0}] * 4
    (answer,) = answers(rule, lit(*weak, **changes), PORT)

    assert isinstance(answer, kind), answer


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        *ROLES,
        NOT_ACTIVE,
        *PROVIDERS,
        *UNSEEN,
        pytest.param(lambda c: lit(*[{"rx_power_dbm": -40.0}] * 4, case=c), NotApplicable, id="no light anywhere"),
        pytest.param(lambda c: changed_netdev(c, 1, module=None), Unknown, id="not read"),
        pytest.param(lambda c: changed_netdev(c, 1, module=None, module_reason="EIO: none"), Unknown, id="no module"),
    ],
)
def test_a_guard_keeps_it_silent(circumstance, kind) -> None:
    """The firing case and this circumstance: no fault, and the answer that the page promises."""
    case = circumstance(lit({"rx_power_dbm": -9.0}))
    (answer,) = answers(rule, case, PORT)

    assert isinstance(answer, kind), answer
    assert [] == fails(rule, case)


def test_what_may_not_be_read_is_one_reason_for_the_node() -> None:
    """Not one for each of eight rails."""
    case = server(ethernet=True)
    for n in range(4):
        case = changed_netdev(case, n, module=None, module_reason=NEEDS)

    assert [Unknown("node", NEEDS)] == list(rule.check(case))


def test_members_of_a_bond_are_judged_one_by_one() -> None:
    """The bond itself has no module."""
    case = bonded(lit({"rx_power_dbm": -9.0}))
    (fault,) = fails(rule, case)
    gone = topology(case, netdevs=[each for each in case.topology.netdevs if each.master is None])

    assert (NETDEV, "mlx5_1/1 (bond0) eth1") == (fault.subject, fault.label)
    assert [Unknown(PORT, "the members of its bond are not visible here")] == answers(rule, gone, PORT)
    assert {NotApplicable} == kinds(rule, server())


def test_a_lane_has_no_name_without_a_module() -> None:
    """A module that does not say what it is."""
    case = lit({"rx_power_dbm": -9.0}, vendor=None, part=None, serial=None)

    assert 1 == len(fails(rule, case)[0].evidence)
