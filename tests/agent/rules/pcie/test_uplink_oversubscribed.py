"""pcie-uplink-oversubscribed: a ratio, stated once, and when it is not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.rules.case import Settings
from agent.rules.pcie.uplink_oversubscribed import pcie_uplink_oversubscribed as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import answers, changed_nic, fails, function, gpu_id, nic_id, relinked, server, virtual
from tests.agent.rules.rows import link

GPU, NIC, UP = gpu_id(0), nic_id(0), "0000:11:00.0"


def told(gpus: int = 1, ratio: float = 1.0):
    return replace(server(gpus), settings=Settings(thresholds={"pcie-uplink-oversubscribed.ratio": ratio}))


def test_two_devices_on_one_uplink() -> None:
    """2:1, information."""
    (fault,) = fails(rule, told())

    assert (f"pci:{UP}", None) == (fault.subject, fault.severity)
    assert "126.0 over 63.0 GB/s, 2.0:1" == fault.evidence[0].value


def test_all_switches_are_one_finding() -> None:
    """How the board was built is said once."""
    (fault,) = fails(rule, told(4))

    assert ("node", 4) == (fault.subject, len(fault.evidence))


def test_an_idle_gpu_counts_with_what_it_can() -> None:
    """Its link is slow now, and will not be under load."""
    (fault,) = fails(rule, relinked(told(), GPU, link(2.5, quality="idle")))

    assert "2.0:1" in fault.evidence[0].value


def test_a_gpu_and_its_rail_are_how_boards_are_built() -> None:
    """2:1 is not told unless the operator wants it; more is."""
    narrow = relinked(server(1), UP, link(width=8, max_width=8))

    assert [] == fails(rule, server())
    assert [f"pci:{UP}"] == [fault.subject for fault in fails(rule, narrow)]


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(virtual, NotApplicable, id="virtual machine"),
        pytest.param(lambda c: relinked(c, UP, link(quality="untrusted")), NotApplicable, id="synthetic"),
        pytest.param(lambda c: relinked(c, UP, None), Unknown, id="unread"),
        pytest.param(lambda c: relinked(c, GPU, None), Unknown, id="device unread"),
        pytest.param(lambda c: relinked(c, NIC, link(width=1, max_width=1)), Pass, id="as good as alone"),
    ],
)
def test_a_guard_keeps_it_silent(circumstance, kind) -> None:
    """The firing case and this circumstance."""
    case = told()
    if kind is Pass:
        case = relinked(case, GPU, link(width=8, max_width=8))
    (answer,) = answers(rule, circumstance(case), f"pci:{UP}")

    assert isinstance(answer, kind), answer


def test_a_switch_that_nothing_in_use_is_below() -> None:
    """Nobody would notice."""
    case = changed_nic(told(), 0, role="unused")
    case = function(case, GPU, parent="0000:10:01.0")

    assert [NotApplicable] == [type(answer) for answer in answers(rule, case, f"pci:{UP}")]
