"""pcie-tags-off and pcie-aspm-on: when they fire, when they must not, every guard alone."""

from __future__ import annotations

import pytest

from agent.rules.pcie.registers import pcie_aspm_on as aspm
from agent.rules.pcie.registers import pcie_tags_off as tags
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import (
    answers,
    changed_gpu,
    changed_nic,
    fails,
    function,
    gpu_id,
    nic_id,
    relinked,
    virtual,
)
from tests.agent.rules.configured import configured, unprivileged
from tests.agent.rules.rows import link

GPU, NIC = gpu_id(0), nic_id(0)
ROOT, UP, TO_GPU = "0000:10:01.0", "0000:11:00.0", "0000:12:00.0"


def without_extended():
    return function(configured(), GPU, extended_tags=False)


def without_ten_bits():
    case = configured()
    for place in (GPU, TO_GPU, UP, ROOT):
        case = function(case, place, ten_bit_tags_supported=True)
    return case


@pytest.mark.parametrize(
    ("case", "cause", "register"),
    [(without_extended, "extended tags", "ExtTag"), (without_ten_bits, "10-bit tags", "10BitTagReq")],
)
def test_tags_that_all_could_use(case, cause: str, register: str) -> None:
    """Information, with little confidence: firmware often manages tags by itself."""
    (fault,) = fails(tags, case())

    assert (f"pci:{GPU}", None, "low", cause) == (fault.subject, fault.severity, fault.confidence, fault.cause)
    assert register in fault.evidence[0].source


def test_all_devices_alike_are_one_finding() -> None:
    """The BIOS did it."""
    assert ["node"] == [fault.subject for fault in fails(tags, configured(extended_tags=False))]


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(virtual, NotApplicable, id="virtual machine"),
        pytest.param(lambda c: function(c, GPU, state="asleep"), NotApplicable, id="asleep"),
        pytest.param(lambda c: function(c, UP, state="gone"), NotApplicable, id="port gone"),
        pytest.param(lambda c: function(c, GPU, parent=None), NotApplicable, id="no port"),
        pytest.param(lambda c: relinked(c, GPU, link(8.0, max_speed_gt_s=8.0)), NotApplicable, id="Gen 3"),
        pytest.param(lambda c: relinked(c, GPU, link(32.0, 8, max_width=8)), NotApplicable, id="x8"),
        pytest.param(lambda c: relinked(c, GPU, None), Unknown, id="no link known"),
        pytest.param(unprivileged, Unknown, id="not root"),
    ],
)
@pytest.mark.parametrize("case", [without_extended, without_ten_bits])
def test_a_guard_keeps_tags_silent(case, circumstance, kind) -> None:
    """The firing case and this circumstance."""
    (answer,) = answers(tags, circumstance(case()), f"pci:{GPU}")

    assert isinstance(answer, kind), answer


@pytest.mark.parametrize(
    ("place", "changes", "kind"),
    [
        (GPU, {"ten_bit_tags": True}, Pass),
        (GPU, {"ten_bit_tags": None}, Unknown),
        (GPU, {"ten_bit_tags_supported": False}, Pass),
        (GPU, {"ten_bit_tags_supported": None}, Unknown),
        (UP, {"ten_bit_tags_supported": False}, Pass),
        (ROOT, {"ten_bit_tags_supported": None}, Unknown),
        (GPU, {"extended_tags_supported": None}, Unknown),
        (GPU, {"extended_tags": None}, Unknown),
    ],
)
def test_ten_bit_tags_need_the_whole_way(place: str, changes, kind) -> None:
    """One port that cannot is enough, and one that was not read leaves it open."""
    (answer,) = answers(tags, function(without_ten_bits(), place, **changes), f"pci:{GPU}")

    assert isinstance(answer, kind), answer


def test_a_device_that_cannot_use_extended_tags_passes() -> None:
    """Off, because it cannot."""
    case = function(without_extended(), GPU, extended_tags_supported=False)

    assert [Pass(f"pci:{GPU}")] == answers(tags, case, f"pci:{GPU}")


def test_gen_4_is_fast_enough_to_need_tags() -> None:
    """16 GT/s and more."""
    case = relinked(without_extended(), GPU, link(16.0, max_speed_gt_s=16.0))

    assert [f"pci:{GPU}"] == [fault.subject for fault in fails(tags, case)]


def sleepy(here: str = "L1", there: str | None = "L1"):
    return function(function(configured(), GPU, aspm=here), TO_GPU, aspm=there)


@pytest.mark.parametrize(
    ("here", "there", "fires"),
    [
        ("L1", "L1", True),
        ("L1", "off", False),  # L1 needs both ends
        ("off", "L1", False),
        ("L1", None, True),
        ("L0s", "off", True),  # L0s is of one direction
        ("off", "L0s L1", True),
        ("off", None, False),
    ],
)
def test_aspm_of_both_ends(here: str, there: str | None, fires: bool) -> None:
    """Information on that device."""
    assert ([(f"pci:{GPU}", None)] if fires else []) == [
        (f.subject, f.severity) for f in fails(aspm, sleepy(here, there))
    ]


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(virtual, NotApplicable, id="virtual machine"),
        pytest.param(lambda c: changed_gpu(c, 0, name="NVIDIA GeForce RTX 3090"), NotApplicable, id="GeForce"),
        pytest.param(lambda c: function(c, GPU, parent=None), NotApplicable, id="no port"),
        pytest.param(lambda c: function(c, GPU, state="gone"), NotApplicable, id="gone"),
        pytest.param(unprivileged, Unknown, id="not root"),
    ],
)
def test_a_guard_keeps_aspm_silent(circumstance, kind) -> None:
    """The firing case and this circumstance."""
    (answer,) = answers(aspm, circumstance(sleepy()), f"pci:{GPU}")

    assert isinstance(answer, kind), answer


def test_an_unused_nic_may_sleep() -> None:
    """Nobody would notice."""
    case = changed_nic(function(configured(), NIC, aspm="L1"), 0, role="unused")

    assert [NotApplicable] == [type(answer) for answer in answers(aspm, case, f"pci:{NIC}")]


def test_aspm_on_every_link_is_one_finding() -> None:
    """The kernel's policy, or the BIOS."""
    assert ["node"] == [fault.subject for fault in fails(aspm, configured(aspm="L1"))]
