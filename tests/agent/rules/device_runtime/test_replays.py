"""pcie-replays: what the driver of a GPU counts."""

from __future__ import annotations

import msgspec
import pytest

from agent.rules.pcie.counters import pcie_replays as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import (
    changed_gpu,
    fails,
    function,
    node,
    relinked,
    topology,
)
from tests.agent.rules.moves import GPU, HOUR, gpus, moved, one, reset, severities, without_window
from tests.agent.rules.rows import link

SUBJECT = f"gpu:{GPU}"
FIRING = moved(gpus(), SUBJECT, {"replays": 1861})


def test_more_than_the_budget_is_a_warning() -> None:
    """Count, window and limit of a Gen 5 x16 link."""
    (fault,) = fails(rule, FIRING)

    assert (SUBJECT, "GPU1", "warning") == (fault.subject, fault.label, fault.severity)
    assert fault.summary == "1861 PCIe replays in 60 min, limit 31/min"
    assert fault.evidence[0].source == "nvidia-smi -q -i 1"


@pytest.mark.parametrize(
    ("counters", "expected"),
    [
        ({"replays": 1860}, []),
        ({"replays": 1000, "replay_rollovers": 861}, ["warning"]),
        ({"replays": 18600}, ["warning"]),
        ({"replays": 18601}, ["error"]),
        ({"l0_to_recovery": 10**6}, []),
    ],
)
def test_the_limits(counters: dict[str, int], expected: list[str]) -> None:
    """Once and ten times the budget."""
    assert expected == [severity for _, severity in severities(rule, moved(gpus(), SUBJECT, counters))]


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(lambda c: function(c, GPU, state="gone"), NotApplicable, id="gone"),
        pytest.param(lambda c: function(c, GPU, state="asleep"), NotApplicable, id="asleep"),
        pytest.param(lambda c: reset(c, SUBJECT), Unknown, id="counted anew"),
        pytest.param(lambda c: node(c, uptime_seconds=HOUR + 899), Unknown, id="settling when the window began"),
        pytest.param(lambda c: moved(gpus(), SUBJECT, {}), Pass, id="nothing moved"),
        pytest.param(lambda c: changed_gpu(c, 1, pcie_counters={}), NotApplicable, id="not told"),
        pytest.param(lambda c: changed_gpu(c, 1, c2c=None, pcie_counters={}), NotApplicable, id="no counter at all"),
    ],
)
def test_a_guard_keeps_it_silent(circumstance, kind) -> None:
    """The firing case and this circumstance: no fault, and the answer that the page promises."""
    case = circumstance(FIRING)

    assert [] == fails(rule, case)
    assert isinstance(one(rule, case, SUBJECT), kind)


def test_a_node_without_gpus_or_earlier_sample_is_not_judged() -> None:
    """Not applicable, and unknown."""
    assert isinstance(one(rule, topology(FIRING, gpus=[]), "node"), NotApplicable)
    assert isinstance(one(rule, without_window(FIRING), "node"), Unknown)


def test_counters_that_a_driver_does_not_tell_are_not_applicable() -> None:
    """Others of it do not count."""
    assert isinstance(one(rule, changed_gpu(gpus(), 1, pcie_counters={"l0_to_recovery": 9}), SUBJECT), NotApplicable)


def test_the_budget_is_that_of_the_link() -> None:
    """x8 of Gen 3 may have less than x16 of Gen 5; what it can do counts, not what it does when idle."""
    many = moved(gpus(), SUBJECT, {"replays": 1200})

    assert [] == fails(rule, many)
    assert 1 == len(fails(rule, relinked(many, GPU, link(32.0, 8, max_width=8))))
    assert [] == fails(rule, relinked(many, GPU, link(2.5, 8)))
    unread = msgspec.structs.replace(link(32.0, 8), max_width=None)
    assert 1 == len(fails(rule, relinked(many, GPU, unread)))
    assert [] == fails(rule, topology(many, pci=[f for f in many.topology.pci if f.id != GPU]))
