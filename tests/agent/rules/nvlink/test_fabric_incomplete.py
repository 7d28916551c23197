"""fabric-incomplete: when it fires, when it must not, and every guard alone."""

from __future__ import annotations

import pytest

from agent.model.gpu import Mig
from agent.rules.nvlink.fabric import fabric_incomplete as rule
from agent.rules.rule import NotApplicable, Unknown
from tests.agent.rules.build import answers, changed_gpu, changed_gpus, fails, function, gpu_id, models, node
from tests.agent.rules.fabric import SUBJECTS, hgx, registration
from tests.agent.rules.rows import H100_PCIE

GPU = gpu_id(2)


def stuck(n: int | None = 2, state: str = "in_progress"):
    return registration(hgx(), n, state=state, status=None)


@pytest.mark.parametrize("state", ["not_started", "in_progress"])
def test_a_registration_that_goes_on_is_an_error(state: str) -> None:
    """Of one GPU."""
    (fault,) = fails(rule, stuck(state=state))

    assert (f"gpu:{GPU}", "error") == (fault.subject, fault.severity)
    assert state.replace("_", " ") in fault.summary


def test_an_error_at_completion_is_critical() -> None:
    """Of every GPU: one finding."""
    (fault,) = fails(rule, registration(hgx(), None, status="UNKNOWN"))

    assert ("node", "critical") == (fault.subject, fault.severity)
    assert {gpu_id(n) for n in range(8)} < fault.places


def test_gpus_that_fail_in_different_ways_stand_alone() -> None:
    """Nothing explains both."""
    case = registration(stuck(1), 2, status="UNKNOWN")

    assert 2 == len(fails(rule, case))
    assert 1 == len(fails(rule, registration(hgx(1), 0, state="not_started")))


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(lambda c: node(c, uptime_seconds=300.0), Unknown, id="just booted"),
        pytest.param(lambda c: node(c, uptime_seconds=None), Unknown, id="since when is not known"),
        pytest.param(lambda c: registration(c, 2, state="not_supported"), NotApplicable, id="not supported"),
        pytest.param(lambda c: registration(c, 2, state="completed"), Unknown, id="completed, nobody says how"),
        pytest.param(lambda c: changed_gpu(c, 2, mig=Mig(current=True)), NotApplicable, id="MIG"),
        pytest.param(lambda c: changed_gpu(c, 2, driver_state="no_driver"), NotApplicable, id="no driver"),
        pytest.param(lambda c: changed_gpu(c, 2, driver_state="error"), NotApplicable, id="lost"),
        pytest.param(lambda c: function(c, GPU, vendor="0x1002"), NotApplicable, id="another vendor"),
        pytest.param(lambda c: function(c, GPU, state="asleep"), NotApplicable, id="asleep"),
        pytest.param(lambda c: changed_gpu(c, 2, fabric=None), Unknown, id="not told"),
        pytest.param(lambda c: registration(c, 2, state=None), Unknown, id="no state told"),
        pytest.param(lambda c: changed_gpu(c, 2, fabric=None, architecture=None), Unknown, id="nor which generation"),
        pytest.param(lambda c: changed_gpu(c, 2, fabric=None, architecture="Ampere"), NotApplicable, id="A100"),
        pytest.param(lambda c: models(changed_gpus(c, fabric=None), H100_PCIE), NotApplicable, id="a card"),
    ],
)
def test_a_guard_keeps_it_silent(circumstance, kind) -> None:
    """The firing case and this circumstance."""
    (answer,) = answers(rule, circumstance(stuck()), SUBJECTS[2])

    assert isinstance(answer, kind), answer


def test_mig_that_is_off_changes_nothing() -> None:
    """The mode counts."""
    assert 1 == len(fails(rule, changed_gpu(stuck(), 2, mig=Mig(current=False))))


@pytest.mark.parametrize(("index", "command"), [(2, "nvidia-smi -q -i 2"), (None, "nvidia-smi -q")])
def test_the_command_names_the_gpu(index: int | None, command: str) -> None:
    """Where it has a number."""
    (fault,) = fails(rule, changed_gpu(stuck(), 2, index=index))

    assert command == fault.evidence[0].source
