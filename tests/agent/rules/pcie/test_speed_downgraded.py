"""pcie-speed-downgraded: when it fires, when it must not, and every guard alone."""

from __future__ import annotations

import pytest

from agent.model.gpu import C2c, GpuPcie
from agent.rules.pcie.link_training import pcie_speed_downgraded as rule
from agent.rules.rule import Fail, NotApplicable, Pass, Unknown
from tests.agent.rules.build import (
    answers,
    changed_gpu,
    changed_nic,
    fails,
    function,
    gpu_id,
    models,
    nic_id,
    relinked,
    server,
    virtual,
)
from tests.agent.rules.rows import GB200, link

GPU, NIC, DOWN = gpu_id(0), nic_id(0), "0000:12:00.0"


def slow_gpu():
    return relinked(server(), GPU, link(speed=8.0))


def test_a_slow_gpu_in_p0_is_an_error_on_that_gpu() -> None:
    """One finding, with both ends as evidence and the loss as a number."""
    (fault,) = fails(rule, slow_gpu())

    assert (f"pci:{GPU}", "GPU0", "error", "") == (fault.subject, fault.label, fault.severity, fault.cause)
    assert "PCIe link runs at 8 GT/s; both its ends can do 32 GT/s" == fault.summary
    assert "15.8 instead of 63.0 GB/s in each direction: 75% less." == fault.impact
    assert ["8 GT/s", "32 GT/s", "32 GT/s"] == [row.value for row in fault.evidence]


def test_a_slow_storage_nic_is_a_warning() -> None:
    """One step less grave than a rail."""
    (fault,) = fails(rule, changed_nic(relinked(server(), NIC, link(speed=16.0)), 0, role="storage"))

    assert (f"pci:{NIC}", "warning") == (fault.subject, fault.severity)


def test_a_port_above_that_says_nothing_caps_nothing() -> None:
    """The driver told what the slot can do; the port has no link in the evidence."""
    hidden = changed_gpu(relinked(slow_gpu(), DOWN, None), 0, pcie=GpuPcie(generation=3, max_generation=5))
    (fault,) = fails(rule, hidden)

    assert "" == fault.cause
    assert ["8 GT/s", "32 GT/s"] == [row.value for row in fault.evidence]


@pytest.mark.parametrize("end", [GPU, DOWN])
def test_a_target_link_speed_is_named_as_the_cause(end: str) -> None:
    """LnkCtl2 of either end holds the link: it was set on purpose, a warning."""
    case = slow_gpu()
    held = case.functions[end].link
    assert held is not None
    made = link(speed=held.speed_gt_s or 0, target_speed_gt_s=8.0)
    (fault,) = fails(rule, relinked(case, end, made))

    assert ("warning", "target-link-speed") == (fault.severity, fault.cause)
    assert "capped by target link speed" in fault.summary
    assert f"target link speed of {end}" == fault.evidence[-1].what


def test_a_target_above_the_speed_is_no_excuse() -> None:
    """The link could run at its target, and does not."""
    (fault,) = fails(rule, relinked(server(), GPU, link(speed=8.0, target_speed_gt_s=32.0)))

    assert ("error", "") == (fault.severity, fault.cause)


def test_a_fast_card_in_a_slower_slot_is_no_fault() -> None:
    """Gen 5 in Gen 3: the expectation is the lesser of both ends."""
    slot = relinked(slow_gpu(), DOWN, link(speed=8.0, max_speed_gt_s=8.0))

    assert [Pass(f"pci:{GPU}")] == answers(rule, slot, f"pci:{GPU}")


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(lambda c: relinked(c, GPU, link(speed=2.5, quality="idle")), Unknown, id="idle"),
        pytest.param(lambda c: relinked(c, GPU, link(speed=8.0, quality="untrusted")), NotApplicable, id="untrusted"),
        pytest.param(lambda c: relinked(c, GPU, link(speed=8.0, quality="unreadable")), Unknown, id="unreadable"),
        pytest.param(lambda c: function(c, GPU, state="asleep"), NotApplicable, id="asleep"),
        pytest.param(lambda c: function(c, GPU, state="gone"), NotApplicable, id="gone"),
        pytest.param(virtual, NotApplicable, id="virtual machine"),
        pytest.param(lambda c: models(c, GB200), NotApplicable, id="superchip by its id"),
        pytest.param(lambda c: changed_gpu(c, 0, c2c=C2c(enabled=True)), NotApplicable, id="superchip by C2C"),
        pytest.param(
            lambda c: relinked(c, GPU, link(speed=8.0, max_speed_gt_s=2.5)), NotApplicable, id="faster than its maximum"
        ),
        pytest.param(lambda c: relinked(c, DOWN, None), Unknown, id="port above not known"),
        pytest.param(lambda c: relinked(relinked(c, DOWN, None), GPU, link()), Pass, id="at its own maximum"),
    ],
)
def test_a_guard_keeps_it_silent(circumstance, kind) -> None:
    """The firing case and this circumstance: no fault, and the answer that the page promises."""
    (answer,) = answers(rule, circumstance(slow_gpu()), f"pci:{GPU}")

    assert isinstance(answer, kind), answer


def test_a_nic_does_not_slow_when_idle() -> None:
    """One sample of a NIC is conclusive."""
    assert [f"pci:{NIC}"] == [fault.subject for fault in fails(rule, relinked(server(), NIC, link(speed=16.0)))]


def test_an_unused_nic_is_not_applicable() -> None:
    """Nobody would notice its speed."""
    (answer,) = answers(rule, changed_nic(relinked(server(), NIC, link(speed=16.0)), 0, role="unused"), f"pci:{NIC}")

    assert isinstance(answer, NotApplicable)


def test_the_driver_tells_the_slot_where_the_tree_does_not() -> None:
    """NVML's maximum generation is that of GPU and slot together."""
    hidden = relinked(slow_gpu(), DOWN, None)
    told = changed_gpu(hidden, 0, pcie=GpuPcie(generation=3, max_generation=5))
    slot = changed_gpu(hidden, 0, pcie=GpuPcie(generation=3, max_generation=3))

    assert [Fail] == [type(answer) for answer in answers(rule, told, f"pci:{GPU}")]
    assert [Pass(f"pci:{GPU}")] == answers(rule, slot, f"pci:{GPU}")


def test_no_speed_is_unknown() -> None:
    """The source gives a link without its speed."""
    made = link()
    (answer,) = answers(
        rule, relinked(server(), GPU, type(made)(width=16, max_width=16, max_speed_gt_s=32.0, quality=made.quality)),
        f"pci:{GPU}",
    )  # fmt: skip

    assert isinstance(answer, Unknown)


def test_a_cap_does_not_make_a_warning_less() -> None:
    """A storage NIC is a warning, capped or not."""
    case = changed_nic(relinked(server(), NIC, link(speed=16.0, target_speed_gt_s=16.0)), 0, role="storage")

    assert [("warning", "target-link-speed")] == [(fault.severity, fault.cause) for fault in fails(rule, case)]
