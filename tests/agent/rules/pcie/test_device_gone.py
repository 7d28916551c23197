"""pcie-device-gone: when it fires, when it must not, what it stands for, and every guard alone."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from agent.model.gpu import NvSwitch
from agent.model.node import Event
from agent.rules.catalogue import every_rule
from agent.rules.engine import judge
from agent.rules.pcie.devices import pcie_device_gone as rule
from agent.rules.rule import NotApplicable, Pass
from tests.agent.rules.build import (
    answers,
    changed_gpu,
    changed_nic,
    changed_port,
    fails,
    function,
    gpu_id,
    nic_id,
    relinked,
    server,
    topology,
)
from tests.agent.rules.rows import bridge, link

GPU, NIC, UP = gpu_id(0), nic_id(0), "0000:11:00.0"


def gone(case, *addresses: str):
    for address in addresses:
        case = function(relinked(case, address, link(quality="unreadable")), address, state="gone")
    return case


def test_a_gone_gpu_is_critical() -> None:
    """The kernel log's word on it is evidence; the loss is counted."""
    event = Event(kind="xid", text="NVRM: Xid (PCI:0000:14:00): 79", source="dmesg", subject=GPU)
    (fault,) = fails(rule, replace(gone(server(), GPU), events=(event,)))

    assert (f"pci:{GPU}", "GPU0", "critical", "") == (fault.subject, fault.label, fault.severity, fault.cause)
    assert fault.impact.startswith("1 of 4 GPUs lost")
    assert ["all-ones", event.text] == [row.value for row in fault.evidence]


@pytest.mark.parametrize(
    ("role", "severity"),
    [("rail", "critical"), ("storage", "error"), ("management", "error"), ("unknown", "error"), ("unused", "warning")],
)
def test_the_role_of_a_nic_decides_how_grave_it_is(role: str, severity: str) -> None:
    """A rail takes the node out of its jobs."""
    (fault,) = fails(rule, changed_nic(gone(server(), NIC), 0, role=role))

    assert (f"pci:{NIC}", severity) == (fault.subject, fault.severity)


def test_a_drive_is_an_error_and_a_switch_of_nvlink_critical() -> None:
    """Judged by class, and by being listed as an NVSwitch."""
    plain = topology(gone(server(), NIC), nics=[])
    (drive,) = fails(rule, function(plain, NIC, class_code="0x010802"))
    (switch,) = fails(rule, topology(plain, nvswitches=[NvSwitch(id=NIC, pci=NIC)]))

    assert ("error", "critical") == (drive.severity, switch.severity)


def test_a_gone_port_takes_all_below_it_into_one_finding() -> None:
    """The topmost port that is gone is the subject."""
    (fault,) = fails(rule, gone(server(), UP, "0000:12:00.0", "0000:12:01.0", GPU, NIC))

    assert (f"pci:{UP}", "critical") == (fault.subject, fault.severity)
    assert fault.summary.endswith("with GPU0, mlx5_0")
    assert {UP, GPU, NIC} <= fault.places


def test_functions_of_one_card_are_one_finding() -> None:
    """Both ports of a dual-port card fall off together."""
    case, second = gone(server(), NIC), f"{NIC[:-1]}1"
    functions = [msgspec.structs.replace(case.functions[NIC], id=second), *case.topology.pci]
    nics = [*case.topology.nics, msgspec.structs.replace(case.topology.nics[0], id=second, pci=second)]
    (fault,) = fails(rule, topology(case, pci=functions, nics=nics))

    assert f"pci:{NIC}" == fault.subject
    assert {NIC, second} <= fault.places


@pytest.mark.parametrize(
    "circumstance",
    [
        pytest.param(lambda c: function(c, GPU, power_state="D3cold"), id="D3cold reads all-ones too"),
        pytest.param(lambda c: function(c, GPU, state="asleep"), id="asleep"),
        pytest.param(lambda c: function(c, GPU, state="changed_during_scan"), id="vanished"),
    ],
)
def test_a_guard_keeps_it_silent(circumstance) -> None:
    """The firing case and this circumstance: not applicable."""
    (answer,) = answers(rule, circumstance(gone(server(), GPU)), f"pci:{GPU}")

    assert isinstance(answer, NotApplicable), answer


def test_other_functions_are_not_judged() -> None:
    """An audio function that reads all-ones is nobody's concern here."""
    other = topology(gone(server(), NIC), nics=[])

    assert [] == answers(rule, function(other, NIC, class_code="0x040300"), f"pci:{NIC}")


def test_what_is_there_passes() -> None:
    """GPU, NIC and the ports above them."""
    for place in (GPU, NIC, UP):
        assert [Pass(f"pci:{place}")] == answers(rule, server(), f"pci:{place}")


def test_what_follows_on_that_device_is_folded() -> None:
    """A GPU that fell off is missing from the driver's list; a rail that fell off has no port."""
    gpu = changed_gpu(gone(server(), GPU), 0, driver_state="error", driver_error="GPU_IS_LOST")
    nic = changed_port(gone(server(), NIC), 0, state="DOWN", phys_state="Polling")
    _, of_gpu, _ = judge(gpu, every_rule())
    _, of_nic, _ = judge(nic, every_rule())

    assert [("pcie-device-gone", [f"gpu-missing gpu:{GPU}"])] == [
        (f.rule, f.absorbs) for f in of_gpu if f.severity != "info"
    ]
    loud = [(f.rule, f.absorbs) for f in of_nic if f.severity != "info"]
    assert [("pcie-device-gone", [f"ib-port-down port:{NIC}/1"])] == loud


def test_links_that_led_to_it_are_folded() -> None:
    """A GPU that is wired to the one that fell off loses the links to it."""
    case = server()
    for n in range(1, 4):
        links = [
            msgspec.structs.replace(
                each,
                remote=each.remote and msgspec.structs.replace(each.remote, kind="gpu"),
                state="inactive" if each.link < 6 and n > 2 else "active",
            )
            for each in case.topology.gpus[n].links
        ]
        case = changed_gpu(case, n, links=links)
    _, findings, _ = judge(changed_gpu(gone(case, GPU), 0, driver_state="error"), every_rule())

    assert ["pcie-device-gone"] == [finding.rule for finding in findings if finding.severity != "info"]
    assert {"nvlink-inactive", "nvlink-asymmetric"} <= {line.partition(" ")[0] for line in findings[0].absorbs}


def test_a_dead_port_with_nothing_below_it_is_a_warning() -> None:
    """What hung there left with it; a port that sleeps is no fault."""
    lone = msgspec.structs.replace(bridge("0000:f1:00.0", None, "upstream"), state="gone")
    case = topology(server(1), pci=[*server(1).topology.pci, lone])
    (fault,) = fails(rule, case)

    assert ("pci:0000:f1:00.0", "warning") == (fault.subject, fault.severity)
    assert [] == fails(rule, function(case, lone.id, state="asleep"))


def test_a_link_that_was_switched_off_is_evidence() -> None:
    """The port above has Link Disable set: that is why nothing answers."""
    (fault,) = fails(rule, function(gone(server(), GPU), "0000:12:00.0", link_disabled=True))

    assert "Link Disable of 0000:12:00.0" in [row.what for row in fault.evidence]


def test_each_of_two_cards_is_its_own_finding() -> None:
    """Below the same port that is there: what is gone is the cards."""
    found = fails(rule, gone(server(), GPU, NIC))

    assert [(f"pci:{GPU}", {GPU}), (f"pci:{NIC}", {NIC})] == [(f.subject, set(f.places)) for f in found]
    assert all("with" not in fault.summary for fault in found)
    assert found[1].impact.startswith("mlx5_0 lost")


def test_a_virtual_function_is_not_gear() -> None:
    """It goes when its physical function does, or when somebody takes it away."""
    assert [] == answers(rule, changed_nic(gone(server(), NIC), 0, virtual_function=True), f"pci:{NIC}")


def test_a_live_port_with_nothing_below_is_not_gear() -> None:
    """An empty slot."""
    empty = bridge("0000:f1:00.0", None, "downstream")
    case = topology(server(1), pci=[*server(1).topology.pci, empty])

    assert [] == answers(rule, case, f"pci:{empty.id}")


def test_gone_functions_of_two_cards_below_one_gone_port_are_one() -> None:
    """Named by what people know; what is lost is counted in GPUs."""
    (fault,) = fails(rule, gone(server(), UP, GPU, NIC))

    assert f"pci:{UP}" == fault.subject
    assert fault.impact.startswith("1 of 4 GPUs lost")
    assert {UP, GPU, NIC} == set(fault.places) & {UP, GPU, NIC, gpu_id(1), nic_id(1)}


def test_a_dead_port_alone_is_named_as_it_is() -> None:
    """No GPU and no NIC went with it."""
    lone = msgspec.structs.replace(bridge("0000:f1:00.0", None, "upstream"), state="gone")
    (fault,) = fails(rule, topology(server(1), pci=[*server(1).topology.pci, lone]))

    assert fault.impact.startswith("PCIe port 0000:f1:00.0 lost")


def test_what_is_lost_with_a_port_is_named_by_what_was_below_it() -> None:
    """A NIC is missed, not the port that took it along."""
    (fault,) = fails(rule, gone(server(), "0000:12:01.0", NIC))

    assert "pci:0000:12:01.0" == fault.subject
    assert fault.impact.startswith("mlx5_0 lost")


def test_the_topmost_port_is_the_subject_whatever_its_address() -> None:
    """Buses are numbered by firmware: what is below need not have the higher number."""
    riser = "0000:f1:00.0"
    case = server(1)
    case = topology(case, pci=[*case.topology.pci, bridge(riser, "0000:10:01.0", "upstream")])
    (fault,) = fails(rule, gone(function(case, GPU, parent=riser), riser, GPU))

    assert f"pci:{riser}" == fault.subject
    assert fault.summary.endswith("with GPU0")


def test_what_is_said_of_the_gpu_by_its_own_name_is_about_it() -> None:
    """Other rules name a GPU by its id, which need not be its address."""
    (fault,) = fails(rule, changed_gpu(gone(server(), GPU), 0, id="GPU-0"))

    assert {"GPU-0", GPU} == fault.places
