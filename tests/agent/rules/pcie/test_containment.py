"""pcie-containment: which lines of the kernel log are told, and of what."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from agent.model.node import Event
from agent.model.pci import PciFunction
from agent.rules.engine import judge
from agent.rules.pcie.devices import pcie_containment as rule
from agent.rules.rule import NotApplicable, Pass
from tests.agent.rules.build import changed_nics, fails, gpu_id, kinds, probe, server, topology, virtual

GPU, TO_GPU, UP = gpu_id(0), "0000:12:00.0", "0000:11:00.0"
LINE = f"pcieport {TO_GPU}: DPC: containment event, status:0x1f01 source:0x0000"


def logged(kind: str = "dpc", subject: str | None = TO_GPU, text: str = LINE):
    event = Event(kind=kind, subject=subject, text=text, source="/dev/kmsg")
    return replace(probe(server(), "kernel_log", "ok"), events=(event,))


def test_a_port_above_a_gpu() -> None:
    """An error, on the port, naming the GPU."""
    (fault,) = fails(rule, logged())

    assert (f"pci:{TO_GPU}", None) == (fault.subject, fault.severity)
    assert "GPU0" in fault.summary
    assert LINE == fault.evidence[0].value


def test_an_uplink_names_all_that_is_below() -> None:
    """GPU and rail."""
    (fault,) = fails(rule, logged(subject=UP))

    assert "GPU0, mlx5_0" in fault.summary


@pytest.mark.parametrize(
    ("kind", "text", "told"),
    [
        ("aer", "PCIe Bus Error: severity=Uncorrectable (Fatal), type=Transaction Layer", True),
        ("aer", "PCIe Bus Error: severity=Uncorrectable (Non-Fatal), type=Transaction Layer", False),
        ("aer", "PCIe Bus Error: severity=Corrected, type=Physical Layer", False),
        ("hotplug", "containment event", False),
    ],
)
def test_which_lines_count(kind: str, text: str, told: bool) -> None:
    """Containment, and what AER calls fatal."""
    assert told == bool(fails(rule, logged(kind, GPU, text)))


def test_a_line_without_a_place_tells_nothing() -> None:
    """Nobody could look anywhere."""
    assert [] == fails(rule, logged(subject=None))


def test_a_port_with_nothing_below_is_a_warning() -> None:
    """What it cut off has left the bus; it may have been a drive."""
    assert ["warning"] == [fault.severity for fault in fails(rule, logged(subject="0000:99:00.0"))]


def test_a_port_with_a_drive() -> None:
    """Somebody pulled it."""
    case = logged(subject="0000:12:02.0")
    port = PciFunction(id="0000:12:02.0", parent=UP, class_code="0x060400", port_type="downstream")
    drive = PciFunction(id="0000:16:00.0", parent="0000:12:02.0", class_code="0x010802")

    assert {NotApplicable} == kinds(rule, topology(case, pci=[*case.topology.pci, port, drive]))


def test_unused_nics_are_no_loss() -> None:
    """The port above a NIC without a use."""
    case = logged(subject="0000:12:01.0")

    assert {NotApplicable} == kinds(rule, changed_nics(case, role="unused"))
    assert {NotApplicable} == kinds(rule, changed_nics(case, limited="fabric manager"))


def test_a_guest_does_not_see_its_ports() -> None:
    """They are the hypervisor's."""
    assert {NotApplicable} == kinds(rule, virtual(logged()))


def test_a_node_without_gpus_and_nics() -> None:
    """A port of such a node leads to nothing that is judged; where the bus was not read, nobody knows."""
    bare = topology(logged(), gpus=[], nics=[])

    assert {NotApplicable} == kinds(rule, bare)
    assert ["warning"] == [f.severity for f in fails(rule, probe(topology(bare, pci=[]), "pci", "absent"))]


def test_a_quiet_log_passes_and_an_unread_one_is_unknown() -> None:
    """Never clean where nobody looked."""
    quiet = replace(logged(), events=())
    (check,), _, _ = judge(probe(server(), "kernel_log", "denied", "EPERM"), [rule])

    assert {Pass} == kinds(rule, quiet)
    assert ("unknown", "kernel_log: denied: EPERM") == (check.state, check.reason)


@pytest.mark.parametrize("left", [{"gpus": []}, {"nics": []}])
def test_gpus_alone_or_nics_alone_are_reason_to_look(left) -> None:
    """A node with one of the two is judged."""
    assert ["warning"] == [f.severity for f in fails(rule, topology(logged(subject="0000:99:00.0"), **left))]


def test_a_node_with_nothing_to_lose_gets_one_answer() -> None:
    """Not applicable, whatever the log says or does not say."""
    bare = replace(topology(logged(), gpus=[], nics=[]), events=())

    assert [NotApplicable("node", "no GPU and no NIC")] == list(rule.check(bare))


def test_the_port_itself_is_nothing_that_was_lost() -> None:
    """Only ends are gear; ports below an uplink are not."""
    (fault,) = fails(rule, logged(subject=UP))

    assert {UP, GPU, GPU.replace("14:", "15:")} == fault.places
