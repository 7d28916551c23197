"""c2c-errors: errors between a Grace CPU and its GPU."""

from __future__ import annotations

import pytest

from agent.rules.nvlink.counters import c2c_errors as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import changed_gpu, fails, function, node, topology
from tests.agent.rules.moves import GPU, HOUR, gpus, moved, one, reset, severities, without_window

SUBJECT = f"gpu:{GPU}"
FIRING = moved(gpus(), SUBJECT, {"c2c_replays": 10})


def test_ten_an_hour_are_a_warning() -> None:
    """Count, window and limit."""
    (fault,) = fails(rule, FIRING)

    assert (SUBJECT, "warning") == (fault.subject, fault.severity)
    assert fault.summary == "10 errors and replays of NVLink-C2C in 60 min, limit 10/h"


@pytest.mark.parametrize(
    ("counters", "expected"),
    [
        ({"c2c_interrupts": 9}, []),
        ({"c2c_interrupts": 5, "c2c_replays_back_to_back": 5}, ["warning"]),
        ({"c2c_replays": 599}, ["warning"]),
        ({"c2c_replays": 600}, ["error"]),
    ],
)
def test_the_limits(counters: dict[str, int], expected: list[str]) -> None:
    """Ten an hour and ten a minute."""
    assert expected == [severity for _, severity in severities(rule, moved(gpus(), SUBJECT, counters))]


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(lambda c: function(c, GPU, state="gone"), NotApplicable, id="gone"),
        pytest.param(lambda c: function(c, GPU, state="asleep"), NotApplicable, id="asleep"),
        pytest.param(lambda c: reset(c, SUBJECT), Unknown, id="counted anew"),
        pytest.param(lambda c: node(c, uptime_seconds=HOUR + 899), Unknown, id="settling when the window began"),
        pytest.param(lambda c: moved(gpus(), SUBJECT, {}), Pass, id="nothing moved"),
        pytest.param(lambda c: changed_gpu(c, 1, c2c=None), NotApplicable, id="no C2C"),
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
