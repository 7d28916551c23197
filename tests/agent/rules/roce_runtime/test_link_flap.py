"""roce-link-flap: how often, over which time, and every guard alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.model.node import Nccl
from agent.model.report import History
from agent.rules.roce.counters import roce_link_flap as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import changed_port, fails, nic_id, node, software
from tests.agent.rules.moves import (
    HOUR,
    NETDEV,
    NIC,
    PORT,
    WIRE_GUARDS,
    bond,
    moved,
    one,
    reset,
    roce,
    severities,
    silent,
    storage,
    without_window,
)

FIRING = moved(roce(), NETDEV, {"carrier_down_count": 3})
JOB = Nccl(jobs=8)


def history(case, **what):
    """The same machine with what earlier runs noted. The window is from 10:00 to 11:00."""
    return replace(case, history=History(runs=5, **what))


def test_three_times_is_an_error() -> None:
    """Count, window and limit."""
    (fault,) = fails(rule, FIRING)

    assert (PORT, "error") == (fault.subject, fault.severity)
    assert fault.summary == "went down 3 times in 60 min; limit 3 in 12 h"
    assert "/sys/class/net/eth1/carrier_down_count" == fault.evidence[0].source
    assert [(PORT, "warning")] == severities(rule, storage(FIRING))


@pytest.mark.parametrize(
    ("count", "hours", "expected"),
    [(2, 1, False), (3, 12, True), (3, 13, False), (4, 13, True), (4, 23, False), (5, 23, True)],
)
def test_the_limits(count: int, hours: int, expected: bool) -> None:
    """Three in 12 hours, five in 24: of longer windows the share."""
    case = node(moved(roce(), NETDEV, {"carrier_down_count": count}, hours * HOUR), uptime_seconds=10**6)

    assert expected == bool(fails(rule, case))
    assert expected or Pass(PORT) == one(rule, case, PORT)


def test_once_is_too_often_while_a_job_runs() -> None:
    """In a window of ten minutes; a longer one does not tell when."""
    once = software(moved(roce(), NETDEV, {"carrier_down_count": 1}, 600.0), nccl=JOB)

    (fault,) = fails(rule, once)
    assert fault.summary == "went down 1 times in 10 min; limit 1 in 10 min while a job runs"
    assert [] == fails(rule, software(once, nccl=Nccl(jobs=0)))
    assert [] == fails(rule, software(once, nccl=Nccl(jobs=None)))
    assert [] == fails(rule, moved(once, NETDEV, {}, 601.0))


def test_what_earlier_runs_saw_is_added() -> None:
    """Twelve hours back from the end of the window; of port and interface the one that says more."""
    once = moved(roce(), NETDEV, {"carrier_down_count": 1})
    seen = ["2026-04-30T23:30:00Z", "2026-05-01T09:00:00Z"]

    (fault,) = fails(rule, history(once, link_downs={PORT: seen, NETDEV: seen[:1]}))
    assert fault.summary == "went down 1 times in 60 min, and 2 times that earlier runs saw; limit 3 in 12 h"
    for gone in (["2026-04-30T22:59:00Z"], ["2026-05-01T10:30:00Z"], ["yesterday"], ["2026-05-01T09:00:00"]):
        assert [] == fails(rule, history(once, link_downs={PORT: [seen[1], *gone]}))
    assert [] == fails(rule, history(roce(), link_downs={PORT: seen * 2}))
    own = replace(history(once, link_downs={PORT: seen}), observed_at=seen[1])  # the clock was set back meanwhile
    assert [] == fails(rule, own)


def test_several_at_once_suspect_the_switch() -> None:
    """Half of the links: one finding."""
    two = moved(FIRING, f"netdev:{nic_id(0)}", {"carrier_down_count": 3})
    (fault,) = fails(rule, two)

    assert ("node", "several", "error") == (fault.subject, fault.cause, fault.severity)
    assert fault.summary.startswith("2 of 4 links went down in the same time: suspect the switch: mlx5_")


@pytest.mark.parametrize("setting", ["mtu", "pfc", "fec", "trust"])
def test_a_changed_setting_explains_it(setting: str) -> None:
    """The link goes down while it is set; what another subject changed does not count."""
    silent(rule, history(FIRING, settings={NETDEV: {setting: "old"}}), NotApplicable)
    assert 1 == len(fails(rule, history(FIRING, settings={f"netdev:{nic_id(0)}": {setting: "old"}})))
    silent(rule, history(FIRING, settings={f"nic:{NIC}": {"firmware": "1"}}), NotApplicable)


def test_a_port_that_is_down_is_counted_too() -> None:
    """It has gone down once more."""
    assert [(PORT, "error")] == severities(rule, changed_port(FIRING, 1, state="DOWN"))
    assert [] == fails(rule, changed_port(FIRING, 1, state=None))


def test_two_counters_tell_the_same_events() -> None:
    """The higher one counts; one that was reset does not hide the other."""
    both = moved(roce(), NETDEV, {"carrier_down_count": 2, "link_down_events_phy": 2})
    assert [] == fails(rule, both)
    gap = moved(reset(roce(), NETDEV, "carrier_down_count"), NETDEV, {"link_down_events_phy": 3})
    assert [(PORT, "error")] == severities(rule, gap)


def test_the_members_of_a_bond_are_the_wires() -> None:
    """The port's own interface is the bond; the cable is below."""
    (fault,) = fails(rule, bond(FIRING))

    assert (NETDEV, "mlx5_1/1 (bond0) eth1") == (fault.subject, fault.label)


def test_without_an_earlier_sample_it_is_unknown() -> None:
    """The first run on a node."""
    assert isinstance(one(rule, without_window(FIRING), "node"), Unknown)


@pytest.mark.parametrize(("circumstance", "kind"), WIRE_GUARDS)
def test_a_guard_keeps_it_silent(circumstance, kind) -> None:
    """The firing case and this circumstance: no fault, and the answer that the page promises."""
    silent(rule, circumstance(FIRING), kind)
