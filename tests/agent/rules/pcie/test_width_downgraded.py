"""pcie-width-downgraded: when it fires, when it must not, and every guard alone."""

from __future__ import annotations

import msgspec
import pytest

from agent.model.gpu import GpuPcie
from agent.rules.pcie.link_training import pcie_width_downgraded as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
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
    topology,
    virtual,
)
from tests.agent.rules.rows import GB200, link

GPU, NIC, DOWN, UP, ROOT = gpu_id(0), nic_id(0), "0000:12:00.0", "0000:11:00.0", "0000:10:01.0"


def narrow_gpu():
    return relinked(server(), GPU, link(width=8))


def replaced(**changes):
    return msgspec.structs.replace(link(), **changes)


def narrow_nic():
    return relinked(server(), NIC, link(width=8))


def test_a_narrow_gpu_is_an_error_on_that_gpu() -> None:
    """One finding, with both ends as evidence and the loss as a number."""
    (fault,) = fails(rule, narrow_gpu())

    assert (f"pci:{GPU}", "GPU0", "error", "", "high") == (
        fault.subject, fault.label, fault.severity, fault.cause, fault.confidence,
    )  # fmt: skip
    assert "PCIe link is x8; both ends support x16" == fault.summary
    assert "31.5 instead of 63.0 GB/s in each direction: 50% less." == fault.impact
    assert ["x8", "x16", "x16"] == [row.value for row in fault.evidence]
    assert f"/sys/bus/pci/devices/{GPU}/current_link_width" == fault.evidence[0].source
    assert frozenset({GPU}) == fault.places


@pytest.mark.parametrize(("speed", "slot"), [(5.0, 2.5), (8.0, 2.5)])
def test_lanes_are_lost_where_no_bandwidth_is(speed: float, slot: float) -> None:
    """Faster than the port above says it can: half the lanes carry as much as was to be expected, or more."""
    case = relinked(server(), GPU, replaced(speed_gt_s=speed, width=8))
    (fault,) = fails(rule, relinked(case, DOWN, link(2.5, max_speed_gt_s=slot)))

    assert "50% of the link's bandwidth, in each direction." == fault.impact


@pytest.mark.parametrize(("role", "severity"), [("rail", "error"), ("storage", "warning"), ("unknown", "warning")])
def test_the_role_of_a_nic_decides_how_grave_it_is(role: str, severity: str) -> None:
    """Rails carry the collective, others do not."""
    (fault,) = fails(rule, changed_nic(narrow_nic(), 0, role=role))

    assert severity == fault.severity


def test_a_drive_is_a_warning() -> None:
    """NVMe drives are judged, by class."""
    (fault,) = fails(rule, function(topology(narrow_nic(), nics=[]), NIC, class_code="0x010802"))

    assert "warning" == fault.severity


def test_a_switch_is_named_by_what_it_leads_to() -> None:
    """The upstream port of a switch is one wire, as grave as the gravest device below it."""
    (fault,) = fails(rule, relinked(server(), UP, link(width=4)))

    assert (f"pci:{UP}", "error") == (fault.subject, fault.severity)
    assert f"PCIe port {UP} above GPU0, mlx5_0" == fault.label


@pytest.mark.parametrize("place", [DOWN, ROOT])
def test_ports_that_describe_the_wire_below_are_not_judged(place: str) -> None:
    """Root and downstream ports: an idle or narrow port is no fault of its own."""
    assert [] == answers(rule, relinked(server(), place, link(width=8)), f"pci:{place}")


@pytest.mark.parametrize("place", [DOWN, ROOT, UP])
def test_without_privilege_the_structure_tells_the_ports(place: str) -> None:
    """The kernel shows no port type: the second bridge below a root bus faces up, the third down."""
    plain = server()
    for each in (DOWN, ROOT, UP):
        plain = function(plain, each, port_type=None)
    found = fails(rule, relinked(plain, place, link(width=8)))

    assert ([f"pci:{UP}"] if place == UP else []) == [fault.subject for fault in found]


def test_the_port_type_counts_more_than_the_structure() -> None:
    """A switch below a bridge that the source does not hold: its upstream port stands on the root bus."""
    case = relinked(function(server(), UP, parent=None, port_type="upstream"), UP, link(width=8))
    alone = function(case, UP, port_type=None)

    assert [Unknown] == [type(answer) for answer in answers(rule, case, f"pci:{UP}")]
    assert [] == answers(rule, alone, f"pci:{UP}")


def test_a_card_in_a_narrower_slot_is_no_fault() -> None:
    """The expectation is the lesser of both ends."""
    slot = relinked(narrow_gpu(), DOWN, link(width=8, max_width=8))

    assert [Pass(f"pci:{GPU}")] == answers(rule, slot, f"pci:{GPU}")


def test_one_card_is_judged_once() -> None:
    """Functions of one card share the wire: the first of them stands for it, as grave as the gravest."""
    case = changed_nic(narrow_nic(), 0, role="storage")
    second = f"{NIC[:-1]}1"
    functions = [*case.topology.pci, msgspec.structs.replace(case.functions[NIC], id=second)]
    nics = [*case.topology.nics, msgspec.structs.replace(case.topology.nics[0], id=second, pci=second, role="rail")]
    (fault,) = fails(rule, topology(case, pci=functions, nics=nics))

    assert (f"pci:{NIC}", "error") == (fault.subject, fault.severity)


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(lambda c: relinked(c, GPU, link(width=8, quality="idle")), Unknown, id="idle and narrow"),
        pytest.param(lambda c: relinked(c, GPU, link(speed=2.5, quality="idle")), Pass, id="idle at full width"),
        pytest.param(lambda c: relinked(c, GPU, link(width=8, quality="untrusted")), NotApplicable, id="untrusted"),
        pytest.param(lambda c: relinked(c, GPU, link(width=8, quality="asleep")), NotApplicable, id="link asleep"),
        pytest.param(lambda c: relinked(c, GPU, link(width=8, quality="unreadable")), Unknown, id="unreadable"),
        pytest.param(lambda c: relinked(c, DOWN, link(quality="untrusted")), NotApplicable, id="port untrusted"),
        pytest.param(lambda c: function(c, GPU, state="asleep"), NotApplicable, id="asleep"),
        pytest.param(lambda c: function(c, GPU, state="gone"), NotApplicable, id="gone"),
        pytest.param(lambda c: function(c, GPU, state="changed_during_scan"), NotApplicable, id="vanished"),
        pytest.param(virtual, NotApplicable, id="virtual machine"),
        pytest.param(lambda c: models(c, GB200), NotApplicable, id="superchip"),
        pytest.param(lambda c: models(c, "0x3182"), NotApplicable, id="B300 board"),
        pytest.param(lambda c: relinked(c, GPU, None), Unknown, id="no link in the evidence"),
        pytest.param(
            lambda c: function(relinked(c, GPU, None), GPU, parent=None), NotApplicable, id="in the host bridge"
        ),
        pytest.param(lambda c: relinked(c, GPU, link(width=0)), NotApplicable, id="no link at all"),
        pytest.param(lambda c: relinked(c, GPU, link(width=8, max_width=4)), NotApplicable, id="overdriven"),
        pytest.param(lambda c: relinked(c, GPU, replaced(width=None)), Unknown, id="lanes not read"),
        pytest.param(lambda c: relinked(c, GPU, link(width=5)), Unknown, id="no link has five lanes"),
        pytest.param(lambda c: relinked(c, GPU, link(width=8, max_width=None)), Unknown, id="its maximum not read"),
        pytest.param(lambda c: relinked(c, GPU, link(width=8, max_width=63)), Unknown, id="no link has 63 lanes"),
        pytest.param(lambda c: relinked(c, DOWN, None), Unknown, id="port above not known"),
        pytest.param(lambda c: relinked(relinked(c, DOWN, None), GPU, link()), Pass, id="at its own maximum"),
        pytest.param(
            lambda c: function(c, DOWN, vendor="0x1002", device="0x1479"), NotApplicable, id="inside an AMD card"
        ),
    ],
)
def test_a_guard_keeps_it_silent(circumstance, kind) -> None:
    """The firing case and this circumstance: no fault, and the answer that the page promises."""
    (answer,) = answers(rule, circumstance(narrow_gpu()), f"pci:{GPU}")

    assert isinstance(answer, kind), answer


@pytest.mark.parametrize(
    "circumstance",
    [
        pytest.param(lambda c: changed_nic(c, 0, role="unused"), id="unused"),
        pytest.param(lambda c: changed_nic(c, 0, role="auxiliary"), id="auxiliary"),
        pytest.param(lambda c: changed_nic(c, 0, limited="owned by a fabric manager"), id="limited"),
        pytest.param(lambda c: changed_nic(c, 0, software=True), id="software"),
    ],
)
def test_a_nic_without_a_use_is_not_applicable(circumstance) -> None:
    """Nobody would notice its lanes."""
    (answer,) = answers(rule, circumstance(narrow_nic()), f"pci:{NIC}")

    assert isinstance(answer, NotApplicable)


@pytest.mark.parametrize(
    "circumstance",
    [
        pytest.param(lambda c: function(c, NIC, physical_function="0000:15:00.7"), id="virtual function by the kernel"),
        pytest.param(lambda c: changed_nic(c, 0, virtual_function=True), id="virtual function by its id"),
        pytest.param(lambda c: topology(c, nics=[]), id="no NIC for RDMA"),
    ],
)
def test_what_is_not_judged_has_no_answer(circumstance) -> None:
    """Virtual functions have no link, and other devices are nobody's concern here."""
    assert [] == answers(rule, circumstance(narrow_nic()), f"pci:{NIC}")


def test_a_board_that_servers_wire_with_half_the_lanes_is_less_certain() -> None:
    """DCGM accepts x8 on an L40S: still a finding, of medium confidence; x4 is none of that."""
    (half,) = fails(rule, models(narrow_gpu(), "0x26b9"))
    (quarter,) = fails(rule, models(relinked(server(), GPU, link(width=4)), "0x26b9"))

    assert ("medium", "high") == (half.confidence, quarter.confidence)


def test_the_driver_tells_the_slot_where_the_tree_does_not() -> None:
    """NVML's maximum is that of GPU and slot together."""
    hidden = relinked(narrow_gpu(), DOWN, None)
    told = changed_gpu(hidden, 0, pcie=GpuPcie(width=8, max_width=16))
    slot = changed_gpu(hidden, 0, pcie=GpuPcie(width=8, max_width=8))

    (fault,) = fails(rule, told)
    assert ["x8", "x16"] == [row.value for row in fault.evidence]  # nothing of the port above, which told nothing
    assert [Pass(f"pci:{GPU}")] == answers(rule, slot, f"pci:{GPU}")


def test_an_amd_card_switch_slows_like_its_gpu() -> None:
    """The upstream port on the card is the link that counts, and idles with the GPU."""
    (answer,) = answers(
        rule, function(relinked(server(), UP, link(width=8)), UP, vendor="0x1002", device="0x1478"), f"pci:{UP}"
    )

    assert isinstance(answer, Unknown)
