"""pcie-recoveries: a link that recovers at constant speed."""

from __future__ import annotations

import pytest

from agent.model.gpu import GpuPcie
from agent.rules.pcie.counters import pcie_recoveries as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import changed_gpu, fails, function, node, topology
from tests.agent.rules.moves import GPU, HOUR, gpus, moved, one, reset, severities, without_window

SUBJECT = f"gpu:{GPU}"
FIRING = moved(gpus(), SUBJECT, {"l0_to_recovery": 360})


def test_six_a_minute_are_info() -> None:
    """Count, window and limit."""
    (fault,) = fails(rule, FIRING)

    assert (SUBJECT, "info") == (fault.subject, fault.severity)
    assert fault.summary == "360 recoveries of the PCIe link in 60 min, limit 6/min"
    assert [] == severities(rule, moved(gpus(), SUBJECT, {"l0_to_recovery": 359}))


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(lambda c: function(c, GPU, state="gone"), NotApplicable, id="gone"),
        pytest.param(lambda c: function(c, GPU, state="asleep"), NotApplicable, id="asleep"),
        pytest.param(lambda c: reset(c, SUBJECT), Unknown, id="counted anew"),
        pytest.param(lambda c: node(c, uptime_seconds=HOUR + 899), Unknown, id="settling when the window began"),
        pytest.param(lambda c: moved(gpus(), SUBJECT, {}), Pass, id="nothing moved"),
        pytest.param(lambda c: changed_gpu(c, 1, pcie_counters={}), NotApplicable, id="not told"),
        pytest.param(lambda c: changed_gpu(c, 1, pcie_counters={}, pstate=None), NotApplicable, id="nothing told"),
        pytest.param(lambda c: changed_gpu(c, 1, pstate="P8"), NotApplicable, id="it saves power"),
        pytest.param(lambda c: changed_gpu(c, 1, pstate=None), Unknown, id="pstate not known"),
        pytest.param(lambda c: changed_gpu(c, 1, pcie=None), Unknown, id="link not known"),
        pytest.param(
            lambda c: changed_gpu(c, 1, pcie=GpuPcie(generation=1, max_generation=5)), NotApplicable, id="a slow link"
        ),
        pytest.param(lambda c: changed_gpu(c, 1, pcie=GpuPcie(generation=5)), Unknown, id="best speed not known"),
        pytest.param(lambda c: changed_gpu(c, 1, pcie=GpuPcie(max_generation=5)), Unknown, id="speed not known"),
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
