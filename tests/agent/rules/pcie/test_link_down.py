"""pcie-link-down and pcie-ends-disagree: when they fire, when they must not, every guard alone."""

from __future__ import annotations

import msgspec
import pytest

from agent.model.pci import LinkQuality
from agent.rules.engine import judge
from agent.rules.pcie.link_training import pcie_ends_disagree as disagree
from agent.rules.pcie.link_training import pcie_link_down as down
from agent.rules.pcie.link_training import pcie_speed_downgraded, pcie_width_downgraded
from agent.rules.pcie.links import NO_LINK
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import (
    answers,
    changed_nic,
    fails,
    function,
    gpu_id,
    kinds,
    models,
    nic_id,
    relinked,
    server,
    virtual,
)
from tests.agent.rules.rows import GB200, link

GPU, NIC, UP, TO_GPU, TO_NIC = gpu_id(0), nic_id(0), "0000:11:00.0", "0000:12:00.0", "0000:12:01.0"


def without_lanes(place: str = GPU):
    return relinked(server(), place, link(width=0, quality="unreadable"))


def test_a_gpu_without_lanes() -> None:
    """A warning on it; the rules of lanes and speed leave it to this one."""
    (fault,) = fails(down, without_lanes())

    assert (f"pci:{GPU}", "GPU0", None, "") == (fault.subject, fault.label, fault.severity, fault.cause)
    assert "0" == fault.evidence[0].value
    for other in (pcie_width_downgraded, pcie_speed_downgraded, disagree):
        assert [NotApplicable] == [type(answer) for answer in answers(other, without_lanes(), f"pci:{GPU}")]


def unreadable(reason: str):
    return msgspec.structs.replace(link(), quality=LinkQuality(state="unreadable", reason=reason))


@pytest.mark.parametrize(("role", "severity"), [("rail", "warning"), ("storage", "info"), ("unknown", "info")])
def test_a_nic_by_its_role(role: str, severity: str) -> None:
    """Rails as the rule says, others one step less."""
    assert [severity] == [f.severity for f in fails(down, changed_nic(without_lanes(NIC), 0, role=role))]


@pytest.mark.parametrize(("disabled", "cause", "rows"), [(True, "disabled", 2), (False, "", 2), (None, "", 1)])
def test_a_link_that_was_switched_off(disabled: bool | None, cause: str, rows: int) -> None:
    """Link Disable of the port above is the cause, and evidence where it could be read."""
    (fault,) = fails(down, function(without_lanes(), TO_GPU, link_disabled=disabled))

    assert (cause, rows) == (fault.cause, len(fault.evidence))


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(virtual, NotApplicable, id="virtual machine"),
        pytest.param(lambda c: function(c, GPU, state="asleep"), NotApplicable, id="asleep"),
        pytest.param(lambda c: function(c, GPU, state="gone"), NotApplicable, id="gone"),
        pytest.param(lambda c: function(c, GPU, parent=None), NotApplicable, id="in the host bridge"),
        pytest.param(lambda c: models(c, GB200), NotApplicable, id="superchip"),
        pytest.param(lambda c: relinked(c, GPU, link(width=0, quality="untrusted")), NotApplicable, id="untrusted"),
        pytest.param(lambda c: relinked(c, GPU, link(width=0, max_width=None)), NotApplicable, id="no lanes at all"),
        pytest.param(lambda c: relinked(c, GPU, link(quality="unreadable")), Unknown, id="unreadable"),
        pytest.param(lambda c: relinked(c, GPU, unreadable(NO_LINK)), Unknown, id="unreadable, in words of our own"),
        pytest.param(lambda c: relinked(c, GPU, None), Unknown, id="no link known"),
        pytest.param(lambda c: relinked(c, GPU, link(width=8)), Pass, id="some lanes"),
    ],
)
def test_a_guard_keeps_down_silent(circumstance, kind) -> None:
    """The firing case and this circumstance."""
    (answer,) = answers(down, circumstance(without_lanes()), f"pci:{GPU}")

    assert isinstance(answer, kind), answer


def test_switches_and_virtual_functions_are_not_asked() -> None:
    """An empty switch port has no lanes, and that is all right."""
    assert [] == answers(down, relinked(server(), UP, link(width=0)), f"pci:{UP}")
    assert [] == answers(down, function(without_lanes(), GPU, physical_function="0000:14:00.1"), f"pci:{GPU}")


def apart(**port):
    return relinked(server(), TO_GPU, link(**({"width": 8} | port)))


def test_two_ends_of_one_wire() -> None:
    """Information, with both as evidence."""
    (fault,) = fails(disagree, apart())

    assert (f"pci:{GPU}", None, "medium") == (fault.subject, fault.severity, fault.confidence)
    assert ["x16 at 32 GT/s", "x8 at 32 GT/s"] == [row.value for row in fault.evidence]
    assert [f"pci:{GPU}"] == [f.subject for f in fails(disagree, apart(width=16, speed=16.0))]


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(virtual, NotApplicable, id="virtual machine"),
        pytest.param(lambda c: relinked(c, TO_GPU, link(width=8, quality="untrusted")), NotApplicable, id="untrusted"),
        pytest.param(lambda c: function(c, TO_GPU, port_type="upstream"), NotApplicable, id="no port of a link"),
        pytest.param(lambda c: function(c, GPU, parent=None), NotApplicable, id="no port"),
        pytest.param(lambda c: relinked(c, TO_GPU, None), Unknown, id="port unread"),
        pytest.param(lambda c: relinked(c, TO_GPU, link(width=8, quality="idle")), Unknown, id="port's sample idle"),
        pytest.param(lambda c: relinked(c, GPU, link(2.5, quality="idle")), Unknown, id="idle GPU"),
        pytest.param(lambda c: relinked(c, TO_GPU, link(width=0)), Unknown, id="port without lanes"),
        pytest.param(lambda c: relinked(c, TO_GPU, link()), Pass, id="agree"),
    ],
)
def test_a_guard_keeps_disagree_silent(circumstance, kind) -> None:
    """The firing case and this circumstance."""
    (answer,) = answers(disagree, circumstance(apart()), f"pci:{GPU}")

    assert isinstance(answer, kind), answer


def test_a_whole_machine_agrees() -> None:
    """Every link of it."""
    assert {Pass} == kinds(disagree, server())
    assert {Pass} == kinds(down, server())


def test_a_downgraded_link_explains_it() -> None:
    """The child is narrow, the port above says otherwise: one finding."""
    _, findings, _ = judge(relinked(server(), NIC, link(width=8)), [pcie_width_downgraded, disagree])

    assert [("pcie-width-downgraded", [f"pcie-ends-disagree pci:{NIC}"])] == [(f.rule, f.absorbs) for f in findings]


@pytest.mark.parametrize(("disabled", "word"), [(True, "set"), (False, "not set")])
def test_what_was_read_of_link_disable_is_evidence(disabled: bool, word: str) -> None:
    """As it was read."""
    (fault,) = fails(down, function(without_lanes(), TO_GPU, link_disabled=disabled))

    assert word == fault.evidence[1].value


def test_a_lane_count_that_was_not_read_is_unknown() -> None:
    """A link with a speed and no width."""
    case = relinked(server(), GPU, msgspec.structs.replace(link(), width=None))

    assert [Unknown] == [type(answer) for answer in answers(down, case, f"pci:{GPU}")]


@pytest.mark.parametrize("half", [{"width": None}, {"speed_gt_s": None}])
def test_half_of_an_end_is_not_compared(half) -> None:
    """Whichever end it is."""
    for place in (GPU, TO_GPU):
        case = relinked(server(), place, msgspec.structs.replace(link(), **half))

        assert [Unknown] == [type(answer) for answer in answers(disagree, case, f"pci:{GPU}")]
