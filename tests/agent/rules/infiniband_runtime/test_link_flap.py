"""ib-link-flap: how often, over which time, and every guard alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.model.nic import Netdev
from agent.model.node import Nccl
from agent.model.report import History
from agent.rules.infiniband.counters import ib_link_flap as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import changed_port, fails, nic_id, node, software, topology
from tests.agent.rules.moves import (
    HOUR,
    NETDEV,
    NIC,
    PORT,
    PORT_GUARDS,
    infiniband,
    moved,
    one,
    reset,
    severities,
    silent,
    storage,
    without_window,
)

FIRING = moved(infiniband(), PORT, {"link_downed": 3})
JOB = Nccl(jobs=8)


def history(case, **what):
    """The same machine with what earlier runs noted. The window is from 10:00 to 11:00."""
    return replace(case, history=History(runs=5, **what))


def test_three_times_is_an_error() -> None:
    """Count, window and limit."""
    (fault,) = fails(rule, FIRING)

    assert (PORT, "error") == (fault.subject, fault.severity)
    assert fault.summary == "went down 3 times in 60 min; limit 3 in 12 h"
    assert "/sys/class/infiniband/mlx5_1/ports/1/counters/link_downed" == fault.evidence[0].source
    assert [(PORT, "warning")] == severities(rule, storage(FIRING))


@pytest.mark.parametrize(
    ("count", "hours", "expected"),
    [(2, 1, False), (3, 12, True), (3, 13, False), (4, 13, True), (4, 23, False), (5, 23, True)],
)
def test_the_limits(count: int, hours: int, expected: bool) -> None:
    """Three in 12 hours, five in 24: of longer windows the share."""
    case = node(moved(infiniband(), PORT, {"link_downed": count}, hours * HOUR), uptime_seconds=10**6)

    assert expected == bool(fails(rule, case))
    assert expected or Pass(PORT) == one(rule, case, PORT)


def test_once_is_too_often_while_a_job_runs() -> None:
    """In a window of ten minutes; a longer one does not tell when."""
    once = software(moved(infiniband(), PORT, {"link_downed": 1}, 600.0), nccl=JOB)

    (fault,) = fails(rule, once)
    assert fault.summary == "went down 1 times in 10 min; limit 1 in 10 min while a job runs"
    assert [] == fails(rule, software(once, nccl=Nccl(jobs=0)))
    assert [] == fails(rule, software(once, nccl=Nccl(jobs=None)))
    assert [] == fails(rule, moved(once, PORT, {}, 601.0))


def test_what_earlier_runs_saw_is_added() -> None:
    """Twelve hours back from the end of the window; of port and interface the one that says more."""
    once = moved(infiniband(), PORT, {"link_downed": 1})
    seen = ["2026-04-30T23:30:00Z", "2026-05-01T09:00:00Z"]

    (fault,) = fails(rule, history(once, link_downs={PORT: seen, NETDEV: seen[:1]}))
    assert fault.summary == "went down 1 times in 60 min, and 2 times that earlier runs saw; limit 3 in 12 h"
    for gone in (["2026-04-30T22:59:00Z"], ["2026-05-01T10:30:00Z"], ["yesterday"], ["2026-05-01T09:00:00"]):
        assert [] == fails(rule, history(once, link_downs={PORT: [seen[1], *gone]}))
    assert [] == fails(rule, history(infiniband(), link_downs={PORT: seen * 2}))


def test_several_at_once_suspect_the_switch() -> None:
    """Half of the links: one finding."""
    two = moved(FIRING, f"port:{nic_id(0)}/1", {"link_downed": 3})
    (fault,) = fails(rule, two)

    assert ("node", "several", "error") == (fault.subject, fault.cause, fault.severity)
    assert fault.summary.startswith("2 of 4 links went down in the same time: suspect the switch: mlx5_")


@pytest.mark.parametrize("setting", ["mtu", "pfc", "fec", "trust"])
def test_a_changed_setting_explains_it(setting: str) -> None:
    """The link goes down while it is set; what another subject changed does not count."""
    silent(rule, history(FIRING, settings={PORT: {setting: "old"}}), NotApplicable)
    assert 1 == len(fails(rule, history(FIRING, settings={f"port:{nic_id(0)}/1": {setting: "old"}})))
    silent(rule, history(FIRING, settings={f"nic:{NIC}": {"firmware": "1"}}), NotApplicable)


def test_a_counter_at_its_end_leaves_it_to_ipoib() -> None:
    """link_downed sticks at 255; without an interface it is unknown."""
    full = reset(infiniband(), PORT, "link_downed", "it stands at its maximum (255) and counts no further")
    assert isinstance(one(rule, full, PORT), Unknown)
    above = Netdev(id=NIC, label="ib1", pci=NIC, nic=NIC, counters={"carrier_down_count": 7})
    ipoib = changed_port(topology(full, netdevs=[above]), 1, netdevs=["ib1"])

    assert Pass(PORT) == one(rule, ipoib, PORT)
    assert [(PORT, "error")] == severities(rule, moved(ipoib, NETDEV, {"carrier_down_count": 3}))


def test_without_an_earlier_sample_it_is_unknown() -> None:
    """The first run on a node."""
    assert isinstance(one(rule, without_window(FIRING), "node"), Unknown)


@pytest.mark.parametrize(("circumstance", "kind"), PORT_GUARDS)
def test_a_guard_keeps_it_silent(circumstance, kind) -> None:
    """The firing case and this circumstance: no fault, and the answer that the page promises."""
    silent(rule, circumstance(FIRING), kind)
