"""What only some GPUs have, through NVML: each entry's own return code counts, and nothing unread is a zero."""

from __future__ import annotations

import pytest

from probes.gpu.nvml_enums import C2C_ERRORS, PCIE_COUNTERS
from tests.probes.gpu.gpu_machine import NOT_SUPPORTED, GpuMachine, gpu_answers, system_answers
from tests.probes.gpu.gpu_machines import facts_of

GRACE = {"GetC2cModeInfoV": {"isC2cEnabled": 1}}


def facts(answers: dict, **of_gpu: object):
    said = system_answers(1) | gpu_answers(0, "0000:19:00.0", **of_gpu) | answers
    return facts_of(GpuMachine(said).with_pci("0000:19:00.0"))


def test_pcie_counters_that_fail_alone_are_left_out() -> None:
    """Two of fourteen answer."""
    gpu = facts({("field", 0, 94, 0): 7, ("field", 0, 183, 0): 0}).gpus[0]

    assert {"replays": 7, "lane_errors": 0} == gpu.pcie_counters
    assert 14 == len(PCIE_COUNTERS)


def test_without_any_counter_nothing_is_said() -> None:
    """Not supported is no zero."""
    gpu = facts({}).gpus[0]

    assert (None, None, None, None) == (
        gpu.pcie_counters,
        gpu.c2c_errors,
        gpu.c2c_max_gbyte_s,
        gpu.nvlink_bandwidth_mode,
    )


def c2c(links: int) -> dict:
    said = {("field", 0, 170, 0): 2}
    for link in range(links):
        said |= {("field", 0, 171, link): 1, ("field", 0, 172, link): 44712}
        said |= {("field", 0, field, link): link for field in C2C_ERRORS}
    return said


def test_c2c_links_are_summed() -> None:
    """Bandwidth in GB/s of one direction, errors of both."""
    gpu = facts(c2c(2), **GRACE).gpus[0]

    assert 89.424 == pytest.approx(gpu.c2c_max_gbyte_s)
    assert {"interrupts": 1, "replays": 1, "replays_back_to_back": 1} == gpu.c2c_errors


def test_a_sum_of_some_links_is_no_sum() -> None:
    """One link did not say."""
    gpu = facts(c2c(1), **GRACE).gpus[0]

    assert (("active", "unknown"), None, None) == (gpu.c2c_links, gpu.c2c_max_gbyte_s, gpu.c2c_errors)


@pytest.mark.parametrize(
    ("best", "mode", "word"),
    [(1, 0, "full"), (1, 22, "full"), (0, 3, "reduced"), (0, 0, "reduced"), (0, 22, "reduced")],
)
def test_the_bandwidth_mode_of_a_gpu(best: int, mode: int, word: str) -> None:
    """Whether it is the best counts; its numbers are those that the GPU lists."""
    assert word == facts({}, GetNvlinkBwMode={"bIsBest": best, "bwMode": mode}).gpus[0].nvlink_bandwidth_mode


@pytest.mark.parametrize(("serial", "place"), [("182412", ("182412", "24", "15")), ("", (None, None, None))])
def test_the_place_in_a_rack(serial: str, place: tuple) -> None:
    """Without a chassis the numbers mean nothing."""
    info = {"chassisSerialNumber": serial, "slotNumber": 24, "trayIndex": 15, "hostId": 1, "peerType": 1, "moduleId": 2}
    gpu = facts({}, GetPlatformInfo=info).gpus[0]

    assert place == (gpu.chassis_serial, gpu.slot, gpu.tray)


@pytest.mark.parametrize(
    ("answer", "said"), [({"ccFeature": 1}, True), ({"ccFeature": 0}, False), (NOT_SUPPORTED, None)]
)
def test_confidential_computing(answer: object, said: bool | None) -> None:
    """Of the system."""
    assert said is facts({("nvmlSystemGetConfComputeState",): answer}).confidential_computing
