"""ib-xmit-wait: one rail against the others."""

from __future__ import annotations

import pytest

from agent.rules.infiniband.counters import ib_xmit_wait as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import changed_nic, changed_port, nic_id
from tests.agent.rules.moves import (
    PORT,
    PORT_GUARDS,
    gap,
    infiniband,
    moved,
    one,
    reset,
    severities,
    silent,
    storage,
    without,
    without_window,
)

BILLION = 10**9
PORTS = [f"port:{nic_id(n)}/1" for n in range(4)]


def waits(*ticks: int):
    """How long each rail waited in an hour, ticks."""
    case = infiniband()
    for port, count in zip(PORTS, ticks, strict=True):
        case = moved(case, port, {"port_xmit_wait": count})
    return case


FIRING = waits(BILLION, 6 * BILLION, BILLION, BILLION)


@pytest.mark.parametrize(
    ("ticks", "expected"),
    [
        ((BILLION, 6 * BILLION, BILLION, BILLION), True),
        ((BILLION, 5 * BILLION, BILLION, BILLION), False),
        ((0, 3600 * 10**6, 0, 0), True),
        ((0, 3600 * 10**6 - 1, 0, 0), False),
        ((9 * BILLION,) * 4, False),
    ],
)
def test_a_rail_is_compared_with_the_others(ticks: tuple[int, ...], expected: bool) -> None:
    """Five times their median, and a million ticks a second."""
    assert [(PORT, "info")] * expected == severities(rule, waits(*ticks))


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        *PORT_GUARDS,
        pytest.param(storage, NotApplicable, id="storage"),
        pytest.param(lambda c: changed_port(c, 1, state="DOWN"), NotApplicable, id="not active"),
        pytest.param(lambda c: without(c, "port_xmit_wait"), NotApplicable, id="not counted"),
        pytest.param(
            lambda c: changed_nic(changed_nic(c, 0, role="storage"), 2, role="storage"), NotApplicable, id="two rails"
        ),
    ],
)
def test_a_guard_keeps_it_silent(circumstance, kind) -> None:
    """The firing case and this circumstance: no fault, and the answer that the page promises."""
    silent(rule, circumstance(FIRING), kind)


def test_a_rail_that_is_not_known_is_no_measure() -> None:
    """And a node without an earlier sample is unknown."""
    assert Pass(PORT) == one(rule, waits(BILLION, BILLION, BILLION, BILLION), PORT)
    gap = reset(infiniband(), PORTS[0], "port_xmit_wait")
    assert isinstance(one(rule, gap, PORTS[0]), Unknown)
    assert isinstance(one(rule, without_window(FIRING), "node"), Unknown)


def test_two_others_are_enough_to_compare_with() -> None:
    """Three rails; of those whose waits could not be compared none is a measure."""
    three = changed_nic(FIRING, 0, role="storage")

    assert [(PORT, "info")] == severities(rule, three)
    assert isinstance(one(rule, gap(three, PORTS[2], "port_xmit_wait"), PORT), NotApplicable)
