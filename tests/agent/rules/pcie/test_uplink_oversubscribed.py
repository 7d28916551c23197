"""pcie-uplink-oversubscribed: a ratio, stated once, and when it is not."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from agent.rules.context import Settings
from agent.rules.pcie.bandwidth import pcie_uplink_oversubscribed as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import (
    answers,
    changed_nic,
    fails,
    function,
    gpu_id,
    nic_id,
    relinked,
    server,
    topology,
    virtual,
)
from tests.agent.rules.rows import bridge, link

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


def test_two_of_many_are_one_finding_of_the_node() -> None:
    """From the second uplink on."""
    (fault,) = fails(rule, told(2))

    assert ("node", 2) == (fault.subject, len(fault.evidence))


@pytest.mark.parametrize(
    ("ratio", "fires"),
    [
        (1.9, True),
        (2.0 / 1.01, False),  # the noise of two roundings
        (2.0, False),
        (2.1, False),
    ],
)
def test_above_which_ratio_it_is_told(ratio: float, fires: bool) -> None:
    """Two devices on an uplink that carries one are 2:1; at the limit is not above it."""
    assert fires == bool(fails(rule, told(1, ratio)))


@pytest.mark.parametrize(("lanes", "fires"), [(8, False), (12, True)])
def test_how_much_is_told_unless_the_operator_says_otherwise(lanes: int, fires: bool) -> None:
    """A Gen 5 x16 GPU and a Gen 4 NIC on a Gen 5 x8 uplink: 2.5:1 and 2.75:1."""
    narrow = relinked(server(1), UP, link(width=8, max_width=8))
    case = relinked(narrow, NIC, link(16.0, lanes, max_speed_gt_s=16.0, max_width=lanes))

    assert fires == bool(fails(rule, case))


def test_only_devices_count_below_an_uplink() -> None:
    """A second switch between the GPU and the first adds nothing to what the GPU can move, and is told with it."""
    case = told(1, 2.1)
    riser = [bridge("0000:13:00.0", "0000:12:00.0", "upstream"), bridge("0000:13:01.0", "0000:13:00.0", "downstream")]
    case = function(topology(case, pci=[*case.topology.pci, *riser]), GPU, parent="0000:13:01.0")

    assert [Pass(f"pci:{UP}")] == answers(rule, case, f"pci:{UP}")


def test_a_device_is_no_uplink() -> None:
    """Nothing is said of GPUs, NICs and drives themselves."""
    assert [] == answers(rule, told(), f"pci:{GPU}")


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
