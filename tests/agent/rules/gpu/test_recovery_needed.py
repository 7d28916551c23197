"""gpu-recovery-needed: each action, and every guard alone."""

from __future__ import annotations

import pytest

from agent.rules.catalogue import every_rule
from agent.rules.engine import judge
from agent.rules.gpu.devices import gpu_recovery_needed as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import answers, changed_gpu, fails, function, gpu_id, probe, server

GPU = gpu_id(2)


def asks(action: str | None = "reset"):
    return changed_gpu(server(), 2, recovery_action=action)


@pytest.mark.parametrize(
    ("action", "severity"),
    [
        ("reset", "error"),
        ("bus_reset", "error"),
        ("drain_and_reset", "error"),
        ("recover_imex_domain", "error"),
        ("drain_p2p", "warning"),
        ("reboot", "critical"),
        ("system_reboot", "critical"),
        ("send_flowers", "warning"),
    ],
)
def test_each_action(action: str, severity: str) -> None:
    """Its word is the cause: another action is another finding."""
    (fault,) = fails(rule, asks(action))

    assert (f"gpu:{GPU}", severity, action) == (fault.subject, fault.severity, fault.cause)
    assert f"the driver asks for: {action.replace('_', ' ')}" == fault.summary


def test_the_remedy_names_the_gpu() -> None:
    """By its index, where it has one."""
    assert fails(rule, asks())[0].remedy.endswith("nvidia-smi -r -i 2")
    assert fails(rule, changed_gpu(asks(), 2, index=None))[0].remedy.endswith("-i N")


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(lambda c: changed_gpu(c, 2, recovery_action="none"), Pass, id="none"),
        pytest.param(lambda c: changed_gpu(c, 2, recovery_action=None), Unknown, id="not told"),
        pytest.param(lambda c: changed_gpu(c, 2, driver_state="no_driver"), NotApplicable, id="no driver"),
        pytest.param(lambda c: changed_gpu(c, 2, driver_state="vfio"), NotApplicable, id="vfio"),
        pytest.param(lambda c: changed_gpu(c, 2, driver_state="not_open"), NotApplicable, id="not offered"),
        pytest.param(lambda c: function(c, GPU, state="asleep"), NotApplicable, id="asleep"),
        pytest.param(lambda c: function(c, GPU, state="gone"), NotApplicable, id="gone"),
        pytest.param(lambda c: function(c, GPU, vendor="0x1002"), NotApplicable, id="another vendor"),
    ],
)
def test_a_guard_keeps_it_silent(circumstance, kind) -> None:
    """The firing case and this circumstance."""
    (answer,) = answers(rule, circumstance(asks()), f"gpu:{GPU}")

    assert isinstance(answer, kind), answer


def test_a_lost_gpu_stands_for_what_it_asks_for() -> None:
    """One finding."""
    _, findings, _ = judge(changed_gpu(asks(), 2, driver_state="error", driver_error="GPU_IS_LOST"), every_rule())

    assert [[f"gpu-recovery-needed gpu:{GPU}"]] == [
        [each for each in f.absorbs if "recovery" in each] for f in findings if f.rule == "gpu-missing"
    ]
    assert "gpu-recovery-needed" not in {finding.rule for finding in findings}


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        (probe(asks(None), "nvml", "denied", "no device"), "nvml: denied: no device"),
        (changed_gpu(asks(None), 2, driver_state="error", driver_error="GPU_IS_LOST"), "GPU_IS_LOST"),
        (asks(None), "R570"),
    ],
)
def test_an_action_that_is_not_told_has_its_reason(case, reason: str) -> None:
    """The driver did not answer, has lost the GPU, or is an older one."""
    (answer,) = answers(rule, case, f"gpu:{GPU}")

    assert isinstance(answer, Unknown)
    assert reason in answer.reason


def test_it_is_about_the_gpu_and_its_function() -> None:
    """Both are places, where they have different ids."""
    (fault,) = fails(rule, changed_gpu(asks(), 2, pci="0000:99:00.0"))

    assert {GPU, "0000:99:00.0"} == fault.places
