"""gpu-missing: when it fires, when it must not, and every guard alone."""

from __future__ import annotations

import pytest

from agent.rules.engine import judge
from agent.rules.gpu.devices import gpu_missing as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import (
    answers,
    changed_gpu,
    fails,
    function,
    gpu_id,
    node,
    probe,
    server,
    topology,
    virtual,
)

GPU = gpu_id(1)


def unlisted():
    return changed_gpu(server(), 1, driver_state="not_open")


def test_a_gpu_that_the_driver_does_not_list_is_critical() -> None:
    """Bound to the driver, on the bus, not offered."""
    (fault,) = fails(rule, unlisted())

    assert (f"gpu:{GPU}", "GPU1", "critical", "") == (
        fault.subject, fault.label, fault.severity or rule.severity, fault.cause,
    )  # fmt: skip
    assert fault.impact.startswith("3 of 4 GPUs")
    assert frozenset({GPU}) == fault.places


def test_a_gpu_that_the_driver_cannot_open_is_critical_in_a_guest_too() -> None:
    """The driver's own error is certain, whoever hosts it."""
    case = changed_gpu(server(), 1, driver_state="error", driver_error="GPU_IS_LOST")

    assert "GPU_IS_LOST" in fails(rule, case)[0].summary
    assert 1 == len(fails(rule, virtual(case)))


def test_gpus_of_which_nothing_is_known_are_not_called_unusable() -> None:
    """nvidia-smi ended at the lost one: how many of the others can be used nobody said."""
    case = changed_gpu(changed_gpu(server(), 1, driver_state="error"), 2, driver_state="unknown")
    (fault,) = fails(rule, case)

    assert fault.impact.startswith("At most 3 of 4 GPUs")
    assert "at most 3 GPUs, not this one" == fault.evidence[1].value


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(
            lambda c: changed_gpu(c, 1, driver_state="no_driver"), NotApplicable, id="no driver, says assemble"
        ),
        pytest.param(lambda c: function(c, GPU, driver=""), NotApplicable, id="no driver, says the bus"),
        pytest.param(lambda c: function(c, GPU, driver="nouveau"), NotApplicable, id="another driver"),
        pytest.param(lambda c: changed_gpu(c, 1, driver_state="vfio"), NotApplicable, id="vfio, says assemble"),
        pytest.param(lambda c: function(c, GPU, driver="vfio-pci"), NotApplicable, id="vfio, says the bus"),
        pytest.param(lambda c: function(c, GPU, state="asleep"), NotApplicable, id="asleep"),
        pytest.param(lambda c: function(c, GPU, state="changed_during_scan"), NotApplicable, id="vanished"),
        pytest.param(lambda c: function(c, GPU, vendor="0x1002"), NotApplicable, id="another vendor"),
        pytest.param(lambda c: node(c, container="docker"), NotApplicable, id="container"),
        pytest.param(virtual, Unknown, id="virtual machine"),
        pytest.param(lambda c: function(c, GPU, driver=None), Unknown, id="driver not known"),
        pytest.param(lambda c: node(c, cmdline="nvidia.NVreg_ExcludedGpus=GPU-1"), Unknown, id="excluded on purpose"),
        pytest.param(lambda c: changed_gpu(c, 1, driver_state="unknown"), Unknown, id="list does not tell"),
        pytest.param(lambda c: changed_gpu(c, 1, driver_state="open"), Pass, id="offered"),
    ],
)
def test_a_guard_keeps_it_silent(circumstance, kind) -> None:
    """The firing case and this circumstance: no fault, and the answer that the page promises."""
    (answer,) = answers(rule, circumstance(unlisted()), f"gpu:{GPU}")

    assert isinstance(answer, kind), answer


def test_a_gone_gpu_fires_so_that_its_cause_can_stand_for_it() -> None:
    """pcie-device-gone folds it; where that rule is off, this one still tells."""
    assert [f"gpu:{GPU}"] == [fault.subject for fault in fails(rule, function(unlisted(), GPU, state="gone"))]


def test_a_driver_that_was_not_asked_gives_its_reason() -> None:
    """Why the list is not known is the reason of the answer."""
    case = changed_gpu(probe(server(), "nvml", "denied", "no access to /dev/nvidiactl"), 1, driver_state="unknown")
    (answer,) = answers(rule, case, f"gpu:{GPU}")

    assert Unknown(f"gpu:{GPU}", "nvml: denied: no access to /dev/nvidiactl") == answer


def test_without_the_bus_nobody_knows_what_is_missing() -> None:
    """A list of GPUs alone cannot say which one lacks."""
    case = topology(changed_gpu(server(1), 0, pci=None), pci=[])
    blind = probe(case, "pci", "absent", "no sysfs")

    assert {Unknown} == {type(answer) for answer in rule.check(blind)}
    assert {Pass} == {type(answer) for answer in rule.check(case)}


def test_no_gpu_is_not_applicable_and_an_unread_bus_unknown() -> None:
    """Nothing there, or nobody looked."""
    bare = topology(server(1), pci=[], gpus=[], nics=[])

    assert "not_applicable" == judge(bare, [rule])[0][0].state
    assert "unknown" == judge(probe(bare, "pci", "failed", "broken"), [rule])[0][0].state


def test_gpus_of_other_makers_are_not_counted() -> None:
    """Their driver offers them, or not: of NVIDIA's three two can be used."""
    (fault,) = fails(rule, function(unlisted(), gpu_id(3), vendor="0x1002"))

    assert fault.impact.startswith("2 of 3 GPUs")


def test_a_gpu_whose_function_was_read_is_judged() -> None:
    """Whether others are on the bus is not known; this one is."""
    case = probe(unlisted(), "pci", "failed", "broke off")

    assert [f"gpu:{GPU}"] == [fault.subject for fault in fails(rule, case)]


def test_a_container_whose_driver_does_not_answer_is_unknown() -> None:
    """Which GPUs it was given nobody says."""
    case = probe(node(changed_gpu(server(), 1, driver_state="unknown"), container="docker"), "nvml", "failed", "no")
    (answer,) = answers(rule, case, f"gpu:{GPU}")

    assert Unknown(f"gpu:{GPU}", "nvml: failed: no") == answer


def test_a_gpu_bound_to_vfio_pci_waits_for_a_guest() -> None:
    """That is no driver that is missing."""
    (answer,) = answers(rule, function(unlisted(), GPU, driver="vfio-pci"), f"gpu:{GPU}")

    assert "virtual machine" in answer.reason
