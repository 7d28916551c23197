"""pcie-slot-limits-card and pcie-slower-than-siblings: when they fire, when they must not, every guard alone."""

from __future__ import annotations

import pytest

from agent.rules.engine import judge
from agent.rules.pcie.slots import pcie_slot_limits_card as slot
from agent.rules.pcie.slots import pcie_slower_than_siblings as slower
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import (
    answers,
    changed_gpu,
    changed_nic,
    changed_nics,
    changed_port,
    fails,
    function,
    gpu_id,
    models,
    nic_id,
    relinked,
    server,
    topology,
    virtual,
)
from tests.agent.rules.rows import link

GPU, NIC = gpu_id(0), nic_id(0)
UP, TO_GPU, TO_NIC = "0000:11:00.0", "0000:12:00.0", "0000:12:01.0"


def narrow_slot(place: str = GPU, port: str = TO_GPU, gpus: int = 4):
    return relinked(relinked(server(gpus), port, link(width=8, max_width=8)), place, link(width=8))


def severities(rule, case) -> list[tuple[str, str | None]]:
    return [(fault.subject, fault.severity or rule.severity) for fault in fails(rule, case)]


def test_one_gpu_in_a_narrow_slot() -> None:
    """The others have better ones: a warning, with both ends as evidence."""
    (fault,) = fails(slot, narrow_slot())

    assert (f"pci:{GPU}", "GPU0", "warning", "width") == (fault.subject, fault.label, fault.severity, fault.cause)
    assert "31.5 instead of 63.0 GB/s in each direction: 50% less." == fault.impact
    assert ["x16 at 32 GT/s", "x8 at 32 GT/s"] == [row.value for row in fault.evidence]


def test_a_lone_gpu() -> None:
    """Fewer lanes are worth a warning; an older generation is what the host has."""
    old = relinked(relinked(server(1), TO_GPU, link(16.0, max_speed_gt_s=16.0)), GPU, link(16.0))

    assert [(f"pci:{GPU}", "warning")] == severities(slot, narrow_slot(gpus=1))
    assert [(f"pci:{GPU}", "info")] == severities(slot, old)


def test_a_board_that_was_built_so() -> None:
    """Every GPU of its kind sits in such a slot."""
    case = server(2)
    for place, port in ((GPU, TO_GPU), (gpu_id(1), "0000:22:00.0")):
        case = relinked(relinked(case, port, link(width=8, max_width=8)), place, link(width=8))

    assert {"info"} == {severity for _, severity in severities(slot, case)}


@pytest.mark.parametrize(
    "circumstance",
    [
        pytest.param(lambda c: changed_gpu(c, 0, name="NVIDIA GeForce RTX 4090"), id="GeForce"),
        pytest.param(lambda c: models(c, "0x26b9"), id="a GPU that is often wired so"),
    ],
)
def test_what_makes_it_information(circumstance) -> None:
    """Told, and no warning."""
    assert [(f"pci:{GPU}", "info")] == severities(slot, circumstance(narrow_slot()))


def test_often_wired_with_eight_lanes_is_not_with_four() -> None:
    """DCGM accepts x8 of an L40S, not x4."""
    case = models(relinked(narrow_slot(), TO_GPU, link(width=4, max_width=4)), "0x26b9")

    assert [(f"pci:{GPU}", "warning")] == severities(slot, case)


@pytest.mark.parametrize(
    ("rate", "role", "severity"),
    [
        (400.0, "rail", "error"),
        (400.0, "storage", "warning"),
        (200.0, "rail", "info"),  # 27.4 of 25 GB/s
        (220.0, "rail", "error"),
    ],
)
def test_a_nic_by_what_its_port_needs(rate: float, role: str, severity: str) -> None:
    """Half the lanes of a port that does not need them cost nothing."""
    case = changed_nic(changed_port(narrow_slot(NIC, TO_NIC), 0, rate_gbit_s=rate), 0, role=role)

    assert [(f"pci:{NIC}", severity)] == severities(slot, case)


@pytest.mark.parametrize(
    ("ports", "role", "severity"),
    [
        (1, "rail", "info"),
        (2, "rail", "warning"),  # 50 GB/s: x8 has 27.4, x16 54.8
        (2, "storage", "info"),
        (3, "rail", "info"),  # 75 GB/s: more than the card could in any slot
    ],
)
def test_a_nic_by_what_its_ports_need_together(ports: int, role: str, severity: str) -> None:
    """Each alone fits into the slot: a warning where a better one would be enough for all."""
    case = changed_port(narrow_slot(NIC, TO_NIC), 0, rate_gbit_s=200.0)
    case = changed_nic(case, 0, role=role, ports=case.topology.nics[0].ports * ports)

    assert [(f"pci:{NIC}", severity)] == severities(slot, case)


def test_a_nic_without_an_active_port_is_information() -> None:
    """Nothing is known of what it needs."""
    case = changed_port(narrow_slot(NIC, TO_NIC), 0, state="DOWN", rate_gbit_s=None)

    assert [(f"pci:{NIC}", "info")] == severities(slot, case)


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(virtual, NotApplicable, id="virtual machine"),
        pytest.param(lambda c: function(c, GPU, state="asleep"), NotApplicable, id="asleep"),
        pytest.param(
            lambda c: relinked(c, TO_GPU, link(quality="untrusted", max_width=8)), NotApplicable, id="synthetic port"
        ),
        pytest.param(lambda c: relinked(c, TO_GPU, None), Unknown, id="slot unread"),
        pytest.param(lambda c: relinked(c, TO_GPU, link(max_width=None)), Unknown, id="slot's lanes unread"),
        pytest.param(lambda c: relinked(c, GPU, link(max_width=None)), Unknown, id="card unread"),
        pytest.param(lambda c: relinked(c, TO_GPU, link()), Pass, id="wide slot"),
    ],
)
def test_a_guard_keeps_slot_silent(circumstance, kind) -> None:
    """The firing case and this circumstance."""
    (answer,) = answers(slot, circumstance(narrow_slot()), f"pci:{GPU}")

    assert isinstance(answer, kind), answer


def test_a_switch_of_the_board_is_not_a_card() -> None:
    """A Gen 5 switch below a Gen 4 root port is how the board was built; a switch of the card counts."""
    case = relinked(server(1), "0000:10:01.0", link(16.0, max_speed_gt_s=16.0))
    (board,) = answers(slot, case, f"pci:{UP}")
    card = function(case, UP, vendor="0x15b3", device="0x1979")

    assert isinstance(board, NotApplicable)
    assert [(f"pci:{UP}", "info")] == severities(slot, card)


def strapped():
    return relinked(server(), GPU, link(width=8, max_width=8))


def test_a_card_that_can_do_less_than_its_siblings() -> None:
    """A warning, against the majority."""
    (fault,) = fails(slower, strapped())

    assert (f"pci:{GPU}", None) == (fault.subject, fault.severity)
    assert fault.summary == "its link can do x8 at 32 GT/s; those of GPU1, GPU2, GPU3 can do x16 at 32 GT/s"


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(virtual, NotApplicable, id="virtual machine"),
        pytest.param(lambda c: function(c, GPU, subsystem_device="0x9999"), NotApplicable, id="another subsystem"),
        pytest.param(lambda c: function(c, GPU, device="0x2331"), NotApplicable, id="another device"),
        pytest.param(lambda c: relinked(c, TO_GPU, None), Unknown, id="port unread"),
        pytest.param(lambda c: relinked(c, GPU, link(8.0, quality="idle")), Pass, id="idle, and able"),
    ],
)
def test_a_guard_keeps_slower_silent(circumstance, kind) -> None:
    """The firing case and this circumstance."""
    case = circumstance(strapped())
    if kind is Unknown:
        case = relinked(case, GPU, link(width=4, max_width=8))
    (answer,) = answers(slower, case, f"pci:{GPU}")

    assert isinstance(answer, kind), answer


def test_two_that_differ_have_no_majority() -> None:
    """Which of them is right nobody knows."""
    case = relinked(server(2), GPU, link(width=8, max_width=8))

    assert {NotApplicable} == {type(a) for g in (0, 1) for a in answers(slower, case, f"pci:{gpu_id(g)}")}


def test_nics_of_other_roles_are_no_siblings() -> None:
    """A storage NIC in a narrow slot is not slow for a rail."""
    case = relinked(server(), NIC, link(width=8, max_width=8))

    assert [(f"pci:{NIC}", "warning")] == severities(slower, case)
    assert [] == severities(slower, changed_nic(case, 0, role="storage"))


def test_storage_nics_are_compared_with_each_other() -> None:
    """One step less grave than rails."""
    case = changed_nics(relinked(server(), NIC, link(width=8, max_width=8)), role="storage")

    assert [(f"pci:{NIC}", "info")] == severities(slower, case)


def test_switches_and_drives_are_no_siblings() -> None:
    """Uplinks of a board differ by design, and drives by their make."""
    uplink = relinked(server(), UP, link(width=8, max_width=8))
    drives = relinked(server(), NIC, link(width=8, max_width=8))
    for n in range(4):
        drives = function(drives, nic_id(n), class_code="0x010802")
    drives = topology(drives, nics=[])

    assert [] == answers(slower, uplink, f"pci:{UP}")
    assert [] == answers(slower, drives, f"pci:{NIC}")


def test_the_slot_explains_the_siblings() -> None:
    """One finding."""
    _, findings, _ = judge(narrow_slot(), [slot, slower])

    assert [("pcie-slot-limits-card", [f"pcie-slower-than-siblings pci:{GPU}"])] == [
        (f.rule, f.absorbs) for f in findings
    ]


def test_a_switch_of_another_maker_and_a_drive_are_no_cards() -> None:
    """Nor is a drive that a BlueField shows."""
    case = function(narrow_slot(), GPU, class_code="0x010802")
    drive = topology(case, gpus=case.topology.gpus[1:])
    endpoint = function(drive, GPU, vendor="0x15b3")

    for each in (drive, endpoint):
        assert [NotApplicable] == [type(answer) for answer in answers(slot, each, f"pci:{GPU}")]


@pytest.mark.parametrize("place", [GPU, TO_GPU])
def test_a_speed_that_was_not_read_is_unknown(place: str) -> None:
    """Of card or slot."""
    case = relinked(narrow_slot(), place, link(width=8, max_width=8, max_speed_gt_s=None))

    assert [Unknown] == [type(answer) for answer in answers(slot, case, f"pci:{GPU}")]


def old_slot(gpus: int = 4):
    """GPU 0 in a slot of the generation before."""
    return relinked(relinked(server(gpus), TO_GPU, link(16.0, max_speed_gt_s=16.0)), GPU, link(16.0))


@pytest.mark.parametrize(
    ("change", "severity"),
    [
        pytest.param({}, "warning", id="a GPU of its kind has a better slot"),
        pytest.param({"state": "gone"}, "info", id="it fell off: what it could do is of no use"),
        pytest.param({"state": "asleep"}, "info", id="it sleeps"),
        pytest.param({"device": "0x2331"}, "info", id="it is of another kind"),
    ],
)
def test_which_gpu_is_a_sibling(change, severity: str) -> None:
    """One of the same product that can be judged."""
    assert [(f"pci:{GPU}", severity)] == severities(slot, function(old_slot(2), gpu_id(1), **change))


def test_a_gpu_of_an_unknown_make_has_no_siblings() -> None:
    """Switches and drives, of which nobody asks what kind they are, are none."""
    assert [(f"pci:{GPU}", "info")] == severities(slot, function(old_slot(), GPU, vendor=None))


@pytest.mark.parametrize(("lanes", "severity"), [(8, "info"), (4, "warning")])
def test_where_eight_lanes_are_common_fewer_are_not(lanes: int, severity: str) -> None:
    """DCGM accepts x8 of an L40S."""
    case = models(relinked(narrow_slot(), TO_GPU, link(width=lanes, max_width=lanes)), "0x26b9")

    assert [(f"pci:{GPU}", severity)] == severities(slot, case)


def test_an_old_slot_of_a_gpu_that_is_often_wired_narrow() -> None:
    """That it is often wired with 8 lanes excuses no slow slot: its siblings have better ones."""
    case = relinked(relinked(server(), TO_GPU, link(16.0, max_speed_gt_s=16.0)), GPU, link(16.0))

    assert [(f"pci:{GPU}", "warning")] == severities(slot, models(case, "0x26b9"))
    assert "speed" == fails(slot, case)[0].cause


def test_a_lone_card_has_no_siblings() -> None:
    """Nothing to compare with; two that are alike are enough."""
    lone = [type(answer) for answer in answers(slower, server(1), f"pci:{GPU}")]

    assert [NotApplicable] == lone
    assert [Pass(f"pci:{GPU}")] == answers(slower, server(2), f"pci:{GPU}")


def test_a_sibling_that_is_not_judged_is_no_sibling() -> None:
    """It is gone, or behind a synthetic port: what it can do proves nothing."""
    case = relinked(server(2), GPU, link(width=8, max_width=8))
    three = relinked(server(3), GPU, link(width=8, max_width=8))

    assert [(f"pci:{GPU}", "warning")] == severities(slower, three)
    assert [] == severities(slower, function(three, gpu_id(2), state="gone"))
    assert [] == severities(slower, case)


def test_devices_of_an_unknown_make_are_no_siblings() -> None:
    """Vendor or device was not read."""
    for unread in ({"vendor": None}, {"device": None}):
        case = strapped()
        for n in range(4):
            case = function(case, gpu_id(n), **unread)

        assert [] == severities(slower, case)
