"""The `nvml` probe on made-up machines: what it says of GPUs, and what it survives."""

from __future__ import annotations

from typing import Any

import pytest

from probes.catalogue import probe
from probes.gpu import nvml
from probes.gpu.facts import Gpu
from probes.host.interface import Absent, Denied, Failed, ReadError, TimedOut
from probes.probe import Status, outcome_of
from tests.probes.gpu.gpu_machine import (
    FUNCTION_NOT_FOUND,
    GPU_IS_LOST,
    HGX,
    NOT_SUPPORTED,
    GpuMachine,
    facts_of,
    gpu_answers,
    hgx_h100,
    system_answers,
)


def test_an_hgx_with_switches_is_whole() -> None:
    """Identity, PCIe link, 18 links into the switches, fabric, and NV18 between all."""
    reading = nvml.read(hgx_h100())
    facts = reading.facts
    third = facts.gpus[2]

    assert reading.missing is None
    assert ("570.211.01", "12.8", "full", 8) == (
        facts.driver_version,
        facts.cuda_version,
        facts.bandwidth_mode,
        facts.attached,
    )
    assert HGX == [gpu.address for gpu in facts.gpus]
    assert third._replace(nvlinks=(), fabric=None, health=None) == Gpu(
        index=2,
        address="0000:52:00.0",
        uuid="GPU-00000000-0000-0000-0000-000000000002",
        serial="165002",
        minor=2,
        name="NVIDIA H100 80GB HBM3",
        architecture="Hopper",
        compute_capability="9.0",
        vbios="96.00.74.00.0D",
        memory_mib=81559,
        bar1_mib=131072,
        module_id=3,
        pstate=0,
        utilization_percent=0,
        link_generation=5,
        link_width=16,
        link_max_generation=5,
        link_max_width=16,
        replays=0,
        mig_current=False,
        mig_pending=False,
        virtualization="none",
        nvlink_supported=True,
        addressing_mode="none",
        recovery_action="none",
    )
    assert [18] * 8 == [len(gpu.nvlinks) for gpu in facts.gpus]
    assert (5, "active", "4.0", 26.562, "switch", "0000:06:00.0", 37, {"replay": 0, "recovery": 0, "crc": 0}) == tuple(
        getattr(third.nvlinks[5], name)
        for name in (
            "link",
            "state",
            "version",
            "speed_gbyte_s",
            "remote_kind",
            "remote_address",
            "remote_link",
            "errors",
        )
    )


def test_fabric_health_is_words() -> None:
    """0x2AA: every two-bit field says FALSE, configuration says 2."""
    result = facts_of(hgx_h100()).gpus[0].fabric

    assert result is not None
    assert ("completed", "success", 0) == (result.state, result.status, result.clique)
    assert "00000000-0000-0000-0000-000000000000" == result.cluster_uuid
    assert {
        "degraded_bandwidth": "false",
        "route_recovery": "false",
        "route_unhealthy": "false",
        "access_timeout_recovery": "false",
        "incorrect_configuration": "incorrect_sysguid",
        "partition_assigned": "not_supported",
        "fabric_manager": "not_supported",
        "summary": "healthy",
    } == result.health


def test_a_lost_gpu_does_not_lose_the_others() -> None:
    """It has its error, and the address that the driver lists and no other GPU has."""
    machine = hgx_h100()
    for call in list(machine.nvml_answers):
        if len(call) > 1 and call[1] == 5:
            machine.nvml_answers[call] = GPU_IS_LOST
    for address in HGX:
        machine.put({f"/proc/driver/nvidia/gpus/{address}/information": ""})

    reading = nvml.read(machine)
    lost = [gpu for gpu in reading.facts.gpus if gpu.error]

    assert [Gpu(index=5, address="0000:c3:00.0", error="GPU_IS_LOST")] == lost
    assert "0000:c3:00.0: GPU_IS_LOST" == reading.missing
    assert 7 == len([gpu for gpu in reading.facts.gpus if gpu.uuid])
    assert 21 == len(reading.facts.pairs)
    assert 8 == reading.facts.attached


def test_several_lost_gpus_have_addresses_and_no_index() -> None:
    """Which of them NVML counts as which is not known."""
    machine = hgx_h100()
    for call in list(machine.nvml_answers):
        if len(call) > 1 and call[1] in (1, 6):
            machine.nvml_answers[call] = GPU_IS_LOST
    for address in HGX:
        machine.put({f"/proc/driver/nvidia/gpus/{address}/information": ""})

    lost = [(gpu.index, gpu.address) for gpu in facts_of(machine).gpus if gpu.error]

    assert [(None, "0000:43:00.0"), (None, "0000:d1:00.0")] == lost


def test_a_gpu_that_goes_away_while_it_is_read_says_so() -> None:
    """It has what it said before, and its error."""
    answers = system_answers(1) | gpu_answers(0, HGX[0], GetPerformanceState=GPU_IS_LOST, GetMemoryInfo=GPU_IS_LOST)
    machine = GpuMachine(answers, otherwise=GPU_IS_LOST).with_pci(HGX[0])

    gpu = facts_of(machine).gpus[0]

    assert ("GPU_IS_LOST", HGX[0], None) == (gpu.error, gpu.address, gpu.memory_mib)


@pytest.mark.parametrize("count", [2**31, 2**64, 1025, -1, 1e308, "8", None, [8], float("nan")])
def test_a_number_of_gpus_that_cannot_be_is_told(count: object) -> None:
    """A damaged capture must not be read for ever."""
    with pytest.raises(Failed, match="no number of GPUs"):
        nvml.read(GpuMachine({("nvmlInit_v2",): None, ("nvmlDeviceGetCount_v2",): count}, otherwise=NOT_SUPPORTED))


@pytest.mark.parametrize("count", [2**31, 2**64, -1, 1e308])
def test_parts_of_a_gpu_that_cannot_be_so_many_are_not_known(count: int | float) -> None:
    """NVLinks are asked for until the driver says that there is none; of C2C and MIG nothing is known."""
    machine = hgx_h100()
    before = facts_of(machine).gpus[0]
    for key in (("field", 0, 91, 0), ("field", 0, 170, 0), ("nvmlDeviceGetMaxMigDeviceCount", 0)):
        machine.nvml_answers[key] = count

    gpu = facts_of(machine).gpus[0]

    assert (before.nvlinks, before.mig_instances, before.c2c_links) == (gpu.nvlinks, gpu.mig_instances, gpu.c2c_links)
    assert 18 == len(gpu.nvlinks)


@pytest.mark.parametrize("refusal", [NOT_SUPPORTED, FUNCTION_NOT_FOUND, Absent("not recorded")])
def test_a_driver_that_supports_nothing_is_survived(refusal: ReadError) -> None:
    """Every call but the count fails: GPUs are there, nothing is known of them, nothing is wrong with them."""
    answers: dict[tuple[Any, ...], Any] = {("nvmlInit_v2",): None, ("nvmlDeviceGetCount_v2",): 2}
    machine = GpuMachine(answers, otherwise=refusal).with_pci(*HGX[:2])

    reading = nvml.read(machine)

    assert (None, (), None) == (reading.missing, reading.facts.pairs, reading.facts.bandwidth_mode)
    assert [None, None] == [gpu.error for gpu in reading.facts.gpus]
    assert [None, None] == [gpu.address for gpu in reading.facts.gpus]
    assert {(): None}.keys() == {gpu.nvlinks for gpu in reading.facts.gpus}
    assert None not in {gpu.nvlink_reason for gpu in reading.facts.gpus}


def test_an_idle_gpu_that_wakes_meanwhile_has_no_p_state() -> None:
    """The P-state counts only where it is the same before and after the link was read."""
    machine = hgx_h100()
    states = iter([8, 0])
    plain = machine.nvml

    def changing(function: str, *arguments: Any) -> Any:
        if function == "nvmlDeviceGetPerformanceState" and arguments == (0,):
            return next(states)
        return plain(function, *arguments)

    machine.nvml = changing  # type: ignore[method-assign]

    gpus = facts_of(machine).gpus

    assert [None, 0] == [gpu.pstate for gpu in gpus[:2]]
    assert [5, 5] == [gpu.link_generation for gpu in gpus[:2]]


def test_p_state_unknown_is_none() -> None:
    """32 is NVML's "unknown"."""
    answers = system_answers(1) | gpu_answers(0, HGX[0], GetPerformanceState=32)

    assert facts_of(GpuMachine(answers).with_pci(HGX[0])).gpus[0].pstate is None


def test_a_grace_gpu_says_its_memory_node_and_its_c2c_links() -> None:
    """C2C links by field 171 of each."""
    answers = system_answers(1) | gpu_answers(
        0, "0009:01:00.0", GetNumaNodeId=2, GetC2cModeInfoV={"isC2cEnabled": 1}, GetAddressingMode=2
    )
    answers |= {("field", 0, 170, 0): 3, ("field", 0, 171, 0): 1, ("field", 0, 171, 1): 0}

    gpu = facts_of(GpuMachine(answers).with_pci("0009:01:00.0")).gpus[0]

    assert (2, True, ("active", "inactive", "unknown"), "ats") == (
        gpu.memory_numa_node,
        gpu.c2c_enabled,
        gpu.c2c_links,
        gpu.addressing_mode,
    )


def test_a_call_that_needs_privilege_is_named() -> None:
    """The rest is there; what root would add is said."""
    machine = hgx_h100()
    machine.nvml_answers["nvmlSystemGetNvlinkBwMode",] = Denied("nvmlSystemGetNvlinkBwMode: Insufficient Permissions")

    outcome = outcome_of(probe("nvml"), machine)

    assert Status.PARTIAL == outcome.status
    assert "nvmlSystemGetNvlinkBwMode: Insufficient Permissions" == outcome.reason
    assert outcome.facts.bandwidth_mode is None


@pytest.mark.parametrize(
    "refusal",
    [NOT_SUPPORTED, GPU_IS_LOST, Denied("Insufficient Permissions", "NO_PERMISSION"), TimedOut("Timeout", "TIMEOUT")],
)
def test_every_call_may_fail_alone(refusal: ReadError) -> None:
    """Whichever it is and however it fails, all eight GPUs stay; only init and count end the probe."""
    calls = [
        call for call in hgx_h100().nvml_answers if call[0] not in ("field", "nvmlInit_v2", "nvmlDeviceGetCount_v2")
    ]
    one_of_each = {call[0]: call for call in calls}

    for call in one_of_each.values():
        machine = hgx_h100()
        machine.nvml_answers[call] = refusal
        assert 8 == len(facts_of(machine).gpus), call


@pytest.mark.parametrize("code", ["LIB_RM_VERSION_MISMATCH", "UNKNOWN"])
def test_an_init_that_fails_is_the_probes_reason(code: str) -> None:
    """Never zero GPUs."""
    machine = GpuMachine({("nvmlInit_v2",): Failed(f"nvmlInit_v2: {code}", code)}).with_pci(HGX[0])

    outcome = outcome_of(probe("nvml"), machine)

    assert (Status.FAILED, None, f"nvmlInit_v2: {code}") == (outcome.status, outcome.facts, outcome.reason)
