"""pcie-mps-mismatch, pcie-mps-small, pcie-mps-uneven: when they fire, when they must not, every guard alone."""

from __future__ import annotations

import msgspec
import pytest

from agent.model.pci import PciFunction
from agent.rules.engine import judge
from agent.rules.pcie import registers
from agent.rules.pcie.registers import pcie_mps_mismatch as mismatch
from agent.rules.pcie.registers import pcie_mps_small as small
from agent.rules.pcie.registers import pcie_mps_uneven as uneven
from agent.rules.rule import Fail, NotApplicable, Pass, Unknown
from tests.agent.rules.build import (
    answers,
    changed_gpu,
    changed_gpus,
    changed_nic,
    fails,
    function,
    gpu_id,
    kinds,
    nic_id,
    node,
    topology,
    virtual,
)
from tests.agent.rules.configured import configured, unprivileged

GPU, NIC = gpu_id(0), nic_id(0)
ROOT, UP, TO_GPU, TO_NIC = "0000:10:01.0", "0000:11:00.0", "0000:12:00.0", "0000:12:01.0"


def too_large():
    return function(configured(), NIC, max_payload_bytes=512)


def test_a_child_that_sends_more_than_its_parent_takes() -> None:
    """Both ends as evidence; places of both, so that what follows is folded in."""
    (fault,) = fails(mismatch, too_large())

    assert (f"pci:{NIC}", "mlx5_0", "error") == (fault.subject, fault.label, fault.severity)
    assert "it may send packets of 512 bytes; the port above it, 0000:12:01.0, takes 256" == fault.summary
    assert ["512 bytes", "256 bytes"] == [row.value for row in fault.evidence]
    assert {NIC, TO_NIC} <= fault.places


def test_a_hop_that_two_devices_share_is_told_once() -> None:
    """The switch's uplink: one finding, and no pass for the two devices below it."""
    case = function(configured(1), UP, max_payload_bytes=512)

    assert [f"pci:{UP}"] == [fault.subject for fault in fails(mismatch, case)]
    assert {Fail} == kinds(mismatch, case)


def test_a_smaller_child_is_legal() -> None:
    """pcie_bus_perf makes it so."""
    case = function(configured(), ROOT, max_payload_bytes=512)

    assert {Pass} == kinds(mismatch, case)


def test_a_storage_nic_is_a_warning() -> None:
    """One step less grave than a rail."""
    assert ["warning"] == [f.severity for f in fails(mismatch, changed_nic(too_large(), 0, role="storage"))]


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(virtual, NotApplicable, id="virtual machine"),
        pytest.param(lambda c: changed_nic(c, 0, virtual_function=True), NotApplicable, id="virtual function"),
        pytest.param(lambda c: function(c, NIC, physical_function="0000:15:00.1"), NotApplicable, id="physfn"),
        pytest.param(lambda c: changed_nic(c, 0, role="unused"), NotApplicable, id="unused"),
        pytest.param(lambda c: changed_nic(c, 0, limited="fabric manager"), NotApplicable, id="limited"),
        pytest.param(lambda c: function(c, NIC, driver=""), NotApplicable, id="no driver"),
        pytest.param(lambda c: function(c, NIC, state="gone"), NotApplicable, id="gone"),
        pytest.param(lambda c: function(c, NIC, state="changed_during_scan"), NotApplicable, id="hot-plug"),
        pytest.param(lambda c: function(c, TO_NIC, state="gone"), NotApplicable, id="port gone"),
        pytest.param(lambda c: function(c, TO_NIC, vendor="0x1b36"), NotApplicable, id="emulated port"),
        pytest.param(lambda c: function(c, NIC, parent=None), NotApplicable, id="no port above"),
        pytest.param(lambda c: changed_nic(c, 0, id="0000:15:00.0/sf1"), NotApplicable, id="sub-function"),
        pytest.param(lambda c: function(c, NIC, max_payload_bytes=None), Unknown, id="unread here"),
        pytest.param(lambda c: function(c, TO_NIC, max_payload_bytes=None), Unknown, id="unread above"),
        pytest.param(unprivileged, Unknown, id="not root"),
    ],
)
def test_a_guard_keeps_mismatch_silent(circumstance, kind) -> None:
    """The firing case and this circumstance."""
    found = [a for a in mismatch.check(circumstance(too_large())) if a.subject == f"pci:{NIC}"]

    assert [kind] == [type(answer) for answer in found]


def test_who_may_not_read_is_told_why() -> None:
    """64 bytes are not an answer."""
    (answer,) = answers(mismatch, unprivileged(configured(1)), f"pci:{GPU}")

    assert "needs root" in answer.reason


@pytest.mark.parametrize(
    ("bytes_here", "bytes_above", "unread", "hidden"),
    [
        pytest.param(64, 4096, (NIC,), True, id="the device is hidden"),
        pytest.param(4096, 64, (NIC,), False, id="the device is not, its port is, and was read"),
        pytest.param(4096, 64, (TO_NIC,), True, id="the port is hidden"),
        pytest.param(64, 4096, (TO_NIC,), False, id="the port is not, the device is, and was read"),
        pytest.param(64, 4096, (NIC, ROOT), True, id="of several hops the one nearest to the device"),
    ],
)
def test_why_the_first_unread_hop_is_unread(bytes_here: int, bytes_above: int, unread, hidden: bool) -> None:
    """The reason is that of the end which has no payload size."""
    case = function(configured(1), NIC, config_bytes=bytes_here)
    case = function(case, TO_NIC, config_bytes=bytes_above)
    for place in unread:
        case = function(case, place, max_payload_bytes=None)
    (answer,) = answers(mismatch, case, f"pci:{NIC}")

    assert isinstance(answer, Unknown)
    assert hidden == ("needs root" in answer.reason)


def of_128():
    return function(configured(), GPU, max_payload_bytes=128)


def test_128_where_all_take_256() -> None:
    """A warning on that device."""
    (fault,) = fails(small, of_128())

    assert (f"pci:{GPU}", "GPU0", "warning") == (fault.subject, fault.label, fault.severity)
    assert ["128 bytes", "512 bytes"] == [row.value for row in fault.evidence]


def test_128_everywhere_is_one_finding() -> None:
    """Somebody set them all so."""
    (fault,) = fails(small, configured(max_payload_bytes=128))

    assert ("node", "warning") == (fault.subject, fault.severity)


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(lambda c: node(c, cmdline="ro pci=pcie_bus_peer2peer"), NotApplicable, id="peer2peer"),
        pytest.param(lambda c: node(c, cmdline=None), Unknown, id="no command line"),
        pytest.param(virtual, NotApplicable, id="virtual machine"),
        pytest.param(lambda c: changed_gpu(c, 0, name="NVIDIA GeForce RTX 4090"), NotApplicable, id="GeForce"),
        pytest.param(lambda c: function(c, NIC, max_payload_supported_bytes=128), Pass, id="neighbour can 128 only"),
        pytest.param(lambda c: function(c, UP, max_payload_supported_bytes=128), Pass, id="port can 128 only"),
        pytest.param(lambda c: function(c, UP, max_payload_supported_bytes=None), Unknown, id="port unread"),
        pytest.param(lambda c: function(c, GPU, max_payload_bytes=None), Unknown, id="unread"),
        pytest.param(lambda c: function(c, GPU, max_payload_bytes=256), Pass, id="256"),
        pytest.param(lambda c: function(c, GPU, parent=None), NotApplicable, id="no port above"),
    ],
)
def test_a_guard_keeps_small_silent(circumstance, kind) -> None:
    """The firing case and this circumstance."""
    (answer,) = answers(small, circumstance(of_128()), f"pci:{GPU}")

    assert isinstance(answer, kind), answer


def test_a_device_of_another_root_port_does_not_excuse() -> None:
    """Only what is below the same root port can hold the size down."""
    case = function(of_128(), nic_id(1), max_payload_supported_bytes=128)

    assert [f"pci:{GPU}"] == [fault.subject for fault in fails(small, case)]


def perf():
    return node(function(configured(), NIC, max_payload_bytes=512), cmdline="ro pci=pcie_bus_perf")


def test_uneven_sizes_in_perf_mode() -> None:
    """One finding for the node, naming the sizes."""
    (fault,) = fails(uneven, perf())

    assert ("node", None) == (fault.subject, fault.severity)
    assert "512 bytes: mlx5_0" in fault.summary


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(lambda c: node(c, cmdline="ro quiet"), NotApplicable, id="another mode"),
        pytest.param(lambda c: node(c, cmdline=None), Unknown, id="no command line"),
        pytest.param(virtual, NotApplicable, id="virtual machine"),
        pytest.param(lambda c: function(c, NIC, max_payload_bytes=256), Pass, id="even"),
        pytest.param(lambda c: function(c, NIC, max_payload_bytes=None), Unknown, id="unread"),
        pytest.param(lambda c: changed_nic(c, 0, role="storage"), Pass, id="no rail"),
    ],
)
def test_a_guard_keeps_uneven_silent(circumstance, kind) -> None:
    """The firing case and this circumstance."""
    (answer,) = answers(uneven, circumstance(perf()), "node")

    assert isinstance(answer, kind), answer


def test_mismatch_explains_the_two_others() -> None:
    """The cause names them, and they do not stand beside it."""
    _, findings, _ = judge(perf(), [mismatch, small, uneven])

    assert ["pcie-mps-mismatch"] == [finding.rule for finding in findings]
    assert "pcie-mps-uneven node" in findings[0].absorbs


def test_consumer_cards_are_still_held_to_legal_sizes() -> None:
    """A mismatch is an error on any card."""
    case = changed_gpus(function(configured(1), GPU, max_payload_bytes=512), name="NVIDIA GeForce RTX 4090")

    assert [f"pci:{GPU}"] == [fault.subject for fault in fails(mismatch, case)]


def test_what_is_unread_on_the_way_is_unknown() -> None:
    """The device itself, or one of the ports above it."""
    one = function(configured(1), UP, max_payload_bytes=None)
    both = function(one, ROOT, max_payload_bytes=None)

    for case in (one, both, function(both, GPU, max_payload_bytes=None)):
        (answer,) = answers(mismatch, case, f"pci:{GPU}")
        assert Unknown(f"pci:{GPU}", "the payload size could not be read") == answer


@pytest.mark.parametrize(("able", "faults"), [(128, 0), (255, 0), (256, 1), (512, 1)])
def test_256_bytes_are_what_all_must_take(able: int, faults: int) -> None:
    """The limit of the worth of it."""
    case = function(of_128(), UP, max_payload_supported_bytes=able)

    assert faults == len(fails(small, case))


def test_a_virtual_function_does_not_hold_it_down() -> None:
    """It has no payload size of its own."""
    case = of_128()
    virtual_function = msgspec.structs.replace(
        case.functions[NIC], id=f"{NIC[:-1]}1", physical_function=NIC, max_payload_supported_bytes=128
    )

    assert 1 == len(fails(small, topology(case, pci=[*case.topology.pci, virtual_function])))


def test_two_gpus_are_enough_to_differ() -> None:
    """Without any rail; one of them alone is compared with nothing."""
    case = node(function(configured(2), GPU, max_payload_bytes=512), cmdline="pci=pcie_bus_perf")

    assert ["node"] == [fault.subject for fault in fails(uneven, topology(case, nics=[]))]
    alone = topology(case, nics=[], gpus=case.topology.gpus[:1])
    assert [NotApplicable("node", "no two devices that send to each other")] == list(uneven.check(alone))


def test_what_root_alone_may_read_is_one_reason() -> None:
    """Eighty functions, one line of the page."""
    short, broken = (PciFunction(id=f"0000:0{n}:00.0", config_bytes=size) for n, size in ((1, 64), (2, 256)))

    assert (
        registers.unread_reason(short, "ASPM") == registers.unread_reason(short, "the payload size") == registers.HIDDEN
    )
    assert "ASPM could not be read" == registers.unread_reason(broken, "ASPM")


def test_settings_that_matter_on_nics_only_are_asked_of_nics() -> None:
    """A GPU that could be judged is left out."""
    assert [NIC] == [
        each.function.id
        for each in registers.nic_registers(configured(1))
        if isinstance(each, registers.DeviceRegisters)
    ]
