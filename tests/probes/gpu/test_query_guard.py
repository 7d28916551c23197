"""When NVML is asked, and when nothing is asked at all."""

from __future__ import annotations

import pytest

from probes.catalogue import probe
from probes.gpu import nvml
from probes.host.interface import Absent, Host
from probes.probe import Skipped, Status, outcome_of
from tests.probes.gpu.gpu_machine import (
    HGX,
    GpuMachine,
    facts_of,
    hgx_h100,
    system_answers,
)


def nvml_calls(machine: GpuMachine) -> list[str]:
    return [call for call in machine.asked if call.startswith("nvml")]


@pytest.mark.parametrize("live", [True, False])
@pytest.mark.parametrize("status", ["suspended", "suspending"])
def test_a_sleeping_gpu_is_not_woken(live: bool, status: str) -> None:
    """No NVML call at all, and nothing of the device after its power/runtime_status."""
    machine = hgx_h100().with_pci("0000:01:00.0", status=status)
    machine.live = live

    outcome = outcome_of(probe("nvml"), machine)

    assert (Status.SKIPPED, "GPU 0000:01:00.0 is asleep; NVML would wake it") == (outcome.status, outcome.reason)
    assert [] == nvml_calls(machine)
    of_the_device = [call for call in machine.asked if "0000:01:00.0" in call]
    assert "/sys/bus/pci/devices/0000:01:00.0/power/runtime_status" == of_the_device[-1]


def test_a_sleeping_gpu_of_another_driver_does_not_stop_the_others() -> None:
    """vfio-pci keeps an idle GPU suspended; NVML never touches it."""
    machine = hgx_h100().with_pci("0000:f1:00.0", driver="vfio-pci", status="suspended")

    assert 8 == len(facts_of(machine).gpus)


def test_without_an_nvidia_gpu_nothing_is_asked() -> None:
    """PCI says so; the library is not even loaded."""
    machine = GpuMachine(system_answers(0), live=True).with_driver()
    for address, vendor, kind in (("0000:00:02.0", "0x8086", "0x030000"), ("0000:05:00.0", "0x10de", "0x068000")):
        device = f"/sys/bus/pci/devices/{address}"
        machine.put({f"{device}/vendor": f"{vendor}\n", f"{device}/class": f"{kind}\n"})

    outcome = outcome_of(probe("nvml"), machine)

    assert (Status.SKIPPED, "no NVIDIA GPU on the PCI bus") == (outcome.status, outcome.reason)
    assert [] == nvml_calls(machine)


def test_a_live_host_without_the_driver_is_not_asked() -> None:
    """nvmlInit would load the module."""
    machine = GpuMachine(system_answers(1), live=True).with_pci(HGX[0])

    with pytest.raises(Absent, match=r"^driver not loaded: no /proc/driver/nvidia/version$"):
        nvml.read(machine)
    assert [] == nvml_calls(machine)


def test_a_live_host_without_device_nodes_is_not_asked() -> None:
    """nvmlInit would make them."""
    machine = GpuMachine(system_answers(1), live=True).with_pci(HGX[0]).with_driver()
    del machine.files.root["dev"]

    with pytest.raises(Absent, match=r"^no /dev/nvidiactl, "):
        nvml.read(machine)
    assert [] == nvml_calls(machine)


def test_a_capture_of_a_host_without_the_driver_replays_the_same_reason() -> None:
    """Nothing was recorded of NVML, because the driver was not there."""
    live = GpuMachine(live=True).with_pci(HGX[0])
    replayed = GpuMachine().with_pci(HGX[0])

    assert outcome_of(probe("nvml"), live).reason == outcome_of(probe("nvml"), replayed).reason
    assert Status.ABSENT == outcome_of(probe("nvml"), replayed).status


def test_without_pci_only_recorded_answers_are_asked() -> None:
    """A live host without sysfs may have anything; a record has what it has."""
    recorded = GpuMachine(system_answers(0))
    live = GpuMachine(system_answers(0), live=True).with_driver()

    assert 0 == facts_of(recorded).attached
    with pytest.raises(Absent, match="no /sys/bus/pci/devices"):
        nvml.read(live)


def test_functions_without_class_and_vendor_do_not_prove_that_there_is_no_gpu() -> None:
    """Some saved trees hold link attributes only."""
    machine = GpuMachine(system_answers(0))
    machine.put({"/sys/bus/pci/devices/0000:1b:00.0/current_link_width": "16\n"})

    assert 0 == facts_of(machine).attached


def test_the_machine_is_a_host() -> None:
    """So that these tests ask what a real host answers."""
    machine: Host = hgx_h100()

    with pytest.raises(Skipped):
        nvml.read(GpuMachine().with_pci(HGX[0], status="suspended"))
    assert machine.kind == "capture"
