"""The `nvml` probe on made-up machines: what it says, what it survives, and when it asks nothing at all."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from probes import nvml
from probes.gpu import Gpu, GpuFacts
from probes.host.door import Absent, Denied, Failed, Host, Unanswered
from probes.nvml_links import pair_kind
from probes.probe import Skipped, Status, outcome_of
from tests.probes.gpu_machine import (
    FUNCTION_NOT_FOUND,
    GPU_IS_LOST,
    INVALID_ARGUMENT,
    NOT_SUPPORTED,
    GpuMachine,
    gpu_answers,
    link_answers,
    pair_answers,
    system_answers,
)

HGX = [f"0000:{bus}:00.0" for bus in ("1b", "43", "52", "61", "9d", "c3", "d1", "df")]
SWITCHES = [f"0000:{bus}:00.0" for bus in ("05", "06", "07", "08")]


def hgx_h100() -> GpuMachine:
    """8 H100 SXM, each with 18 links into 4 NVSwitches."""
    answers = system_answers(8)
    for index, address in enumerate(HGX):
        into_switches = {link: (SWITCHES[link % 4], 32 + link) for link in range(18)}
        answers |= gpu_answers(index, address) | link_answers(index, into_switches, kind=2)
        for other in range(index):
            answers |= pair_answers(other, index, level=50, nvlink=0)
    return GpuMachine(answers).with_pci(*HGX).with_driver()


def bridged_pairs() -> GpuMachine:
    """4 A6000-like cards in two pairs, 0-2 and 1-3, each with a bridge of 4 links."""
    at = HGX[:4]
    peers = {0: 2, 1: 3, 2: 0, 3: 1}
    answers = system_answers(4)
    for index, address in enumerate(at):
        bridge = {link: (at[peers[index]], link) for link in range(4)}
        answers |= gpu_answers(index, address, GetArchitecture=7, GetGpuFabricInfoV=NOT_SUPPORTED)
        answers |= link_answers(index, bridge, kind=0, version=5, mbyte_s=14062, count=4)
        for other in range(index):
            bridged = peers[index] == other
            answers |= pair_answers(other, index, level=30 if bridged else 40, nvlink=0 if bridged else 5)
    return GpuMachine(answers).with_pci(*at).with_driver()


def facts_of(machine: GpuMachine) -> GpuFacts:
    facts = nvml.read(machine).facts
    assert isinstance(facts, GpuFacts)
    return facts


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
    assert replace(third, nvlinks=(), fabric=None) == Gpu(
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
        gpu_max_generation=5,
        replays=0,
        persistence=True,
        cpu_affinity="0-31",
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


def test_an_hgx_with_switches_has_one_path_for_all() -> None:
    """28 pairs of NV18; P2P says OK both ways."""
    facts = facts_of(hgx_h100())

    assert 28 == len(facts.pairs)
    assert {"NV18"} == {pair.kind for pair in facts.pairs}
    assert facts.p2p is not None
    assert 56 == len(facts.p2p)
    assert {"read": "OK", "write": "OK", "nvlink": "OK", "atomics": "OK"} == facts.p2p[7, 0]


def test_fabric_health_is_words() -> None:
    """0x2AA: every two-bit field says FALSE, configuration says 2."""
    said = facts_of(hgx_h100()).gpus[0].fabric

    assert said is not None
    assert ("completed", "success", 0) == (said.state, said.status, said.clique)
    assert "00000000-0000-0000-0000-000000000000" == said.cluster_uuid
    assert {
        "degraded_bandwidth": "false",
        "route_recovery": "false",
        "route_unhealthy": "false",
        "access_timeout_recovery": "false",
        "incorrect_configuration": "incorrect_sysguid",
        "partition_assigned": "not_supported",
        "fabric_manager": "not_supported",
        "summary": "healthy",
    } == said.health


def test_a_link_less_on_one_gpu_makes_its_paths_narrower() -> None:
    """Both ends must have the links: min of the two."""
    machine = hgx_h100()
    machine.nvml_answers["field", 3, 165, 17] = 0

    facts = facts_of(machine)

    assert "inactive" == facts.gpus[3].nvlinks[17].state
    assert facts.gpus[3].nvlinks[17].remote_address is None
    assert {"NV17"} == {pair.kind for pair in facts.pairs if "GPU3" in (pair.a, pair.b)}
    assert {"NV18"} == {pair.kind for pair in facts.pairs if "GPU3" not in (pair.a, pair.b)}


def test_hidden_switches_are_inferred_only_where_p2p_over_nvlink_works() -> None:
    """Blackwell and guests: far ends have no type and no address."""
    machine = hgx_h100()
    hidden = ("nvmlDeviceGetNvLinkRemoteDeviceType", "nvmlDeviceGetNvLinkRemotePciInfo_v2")
    for call in list(machine.nvml_answers):
        if call[0] in hidden:
            machine.nvml_answers[call] = NOT_SUPPORTED
    machine.nvml_answers |= {("nvmlDeviceGetP2PStatus", 0, 1, 2): 5, ("nvmlDeviceGetP2PStatus", 1, 0, 2): 5}

    kinds = {(pair.a, pair.b): pair.kind for pair in facts_of(machine).pairs}

    assert "SYS" == kinds.pop(("GPU0", "GPU1"))
    assert {"NV18"} == set(kinds.values())


def test_bridges_join_only_their_pairs() -> None:
    """NV4 between the bridged, the PCIe relation between the others; links before Hopper are asked by call."""
    machine = bridged_pairs()

    facts = facts_of(machine)

    assert {
        ("GPU0", "GPU1"): "NODE",
        ("GPU0", "GPU2"): "NV4",
        ("GPU0", "GPU3"): "NODE",
        ("GPU1", "GPU2"): "NODE",
        ("GPU1", "GPU3"): "NV4",
        ("GPU2", "GPU3"): "NODE",
    } == {(pair.a, pair.b): pair.kind for pair in facts.pairs}
    assert facts.p2p is not None
    assert ("OK", "NS") == (facts.p2p[0, 2]["nvlink"], facts.p2p[0, 1]["nvlink"])
    assert ("3.1", 14.062, "gpu", "0000:52:00.0") == tuple(
        getattr(facts.gpus[0].nvlinks[0], name)
        for name in ("version", "speed_gbyte_s", "remote_kind", "remote_address")
    )
    assert facts.gpus[0].fabric is None


def test_the_path_of_a_bridge_counts_the_links_that_both_ends_have() -> None:
    """A link that one side calls inactive carries nothing."""
    gpus = list(facts_of(bridged_pairs()).gpus)
    down = replace(
        gpus[2], nvlinks=tuple(replace(link, state="inactive") for link in gpus[2].nvlinks[:1]) + gpus[2].nvlinks[1:]
    )

    assert "NV3" == pair_kind(gpus[0], down, "OK", [gpus[0], down])


def test_mig_hides_nvlinks_and_that_is_not_having_none() -> None:
    """A MIG GPU: instances by UUID, links unknown with the reason, no NVLink query at all."""
    answers = system_answers(1) | gpu_answers(0, HGX[0], GetMigMode=[1, 1], GetMaxMigDeviceCount=3)
    answers |= {
        ("nvmlDeviceGetMigDeviceHandleByIndex", 0, 0): "MIG-a",
        ("nvmlDeviceGetMigDeviceHandleByIndex", 0, 1): Failed("Not Found", "NOT_FOUND"),
        ("nvmlDeviceGetMigDeviceHandleByIndex", 0, 2): "MIG-c",
    }
    machine = GpuMachine(answers, otherwise=NOT_SUPPORTED).with_pci(HGX[0])

    gpu = facts_of(machine).gpus[0]

    assert (True, True, ("MIG-a", "MIG-c")) == (gpu.mig_current, gpu.mig_pending, gpu.mig_instances)
    assert (None, ()) == (gpu.nvlink_supported, gpu.nvlinks)
    assert "NVLink queries are not supported for devices in MIG mode" == gpu.nvlink_reason
    assert [] == [call for call in machine.asked if "NvLink" in call]


def test_a_lost_gpu_does_not_lose_the_others() -> None:
    """It has its error, and the address that the driver lists and no other GPU has."""
    machine = hgx_h100()
    for call in list(machine.nvml_answers):
        if len(call) > 1 and call[1] == 5:
            machine.nvml_answers[call] = GPU_IS_LOST
    for address in HGX:
        machine.files[f"/proc/driver/nvidia/gpus/{address}/information"] = ""

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
        machine.files[f"/proc/driver/nvidia/gpus/{address}/information"] = ""

    lost = [(gpu.index, gpu.address) for gpu in facts_of(machine).gpus if gpu.error]

    assert [(None, "0000:43:00.0"), (None, "0000:d1:00.0")] == lost


def test_a_gpu_that_goes_away_while_it_is_read_says_so() -> None:
    """It has what it said before, and its error."""
    answers = system_answers(1) | gpu_answers(0, HGX[0], GetPerformanceState=GPU_IS_LOST, GetMemoryInfo=GPU_IS_LOST)
    machine = GpuMachine(answers, otherwise=GPU_IS_LOST).with_pci(HGX[0])

    gpu = facts_of(machine).gpus[0]

    assert ("GPU_IS_LOST", HGX[0], None) == (gpu.error, gpu.address, gpu.memory_mib)


@pytest.mark.parametrize("refusal", [NOT_SUPPORTED, FUNCTION_NOT_FOUND, Absent("not recorded")])
def test_a_driver_that_supports_nothing_is_survived(refusal: Unanswered) -> None:
    """Every call but the count fails: GPUs are there, nothing is known of them, nothing is wrong with them."""
    answers: dict[tuple[Any, ...], Any] = {("nvmlInit_v2",): None, ("nvmlDeviceGetCount_v2",): 2}
    machine = GpuMachine(answers, otherwise=refusal).with_pci(*HGX[:2])

    reading = nvml.read(machine)

    assert (None, (), None) == (reading.missing, reading.facts.pairs, reading.facts.bandwidth_mode)
    assert [None, None] == [gpu.error for gpu in reading.facts.gpus]
    assert [None, None] == [gpu.address for gpu in reading.facts.gpus]
    assert {(): None}.keys() == {gpu.nvlinks for gpu in reading.facts.gpus}
    assert None not in {gpu.nvlink_reason for gpu in reading.facts.gpus}


@pytest.mark.parametrize(
    ("count", "refusal", "supported"),
    [
        (0, NOT_SUPPORTED, False),
        (None, NOT_SUPPORTED, False),
        (None, INVALID_ARGUMENT, False),
        (None, FUNCTION_NOT_FOUND, None),
        (12, NOT_SUPPORTED, None),
    ],
)
def test_having_no_nvlink_is_told_apart_from_not_telling(
    count: int | None, refusal: Unanswered, supported: bool | None
) -> None:
    """A GPU that counts 12 links and refuses their state has NVLink; an old library tells nothing."""
    answers = system_answers(1) | gpu_answers(0, HGX[0], GetArchitecture=7)
    answers["field", 0, 91, 0] = count
    machine = GpuMachine(answers, otherwise=refusal).with_pci(HGX[0])

    gpu = facts_of(machine).gpus[0]

    assert (supported, ()) == (gpu.nvlink_supported, gpu.nvlinks)
    assert gpu.nvlink_reason


def test_without_a_count_links_are_asked_until_there_is_none() -> None:
    """INVALID_ARGUMENT at the first number that does not exist."""
    answers = system_answers(1) | gpu_answers(0, HGX[0], GetArchitecture=5)
    answers |= link_answers(0, {0: (HGX[1], 3), 2: (HGX[1], 4)}, kind=0, version=2, count=4)
    del answers["field", 0, 91, 0]
    machine = GpuMachine(answers, otherwise=INVALID_ARGUMENT).with_pci(HGX[0])

    links = facts_of(machine).gpus[0].nvlinks

    assert ["active", "inactive", "active", "inactive"] == [link.state for link in links]


def test_error_counters_of_old_and_new_generations() -> None:
    """Before R520 by call, on NVLink 5 by fields of their own; never mixed."""
    old = system_answers(1) | gpu_answers(0, HGX[0], GetArchitecture=7) | link_answers(0, {0: (HGX[1], 0)}, 0, count=1)
    old = {call: answer for call, answer in old.items() if call[:1] != ("field",) or call[2] not in (161, 162, 163)}
    old |= {("nvmlDeviceGetNvLinkErrorCounter", 0, 0, counter): counter * 10 for counter in range(4)}
    new = system_answers(1) | gpu_answers(0, HGX[0], GetArchitecture=10) | link_answers(0, {0: (HGX[1], 0)}, 0, count=1)
    new |= {("field", 0, field, 0): field for field in (206, 213, 222)}

    def errors(answers: dict[tuple[Any, ...], Any]) -> Any:
        return facts_of(GpuMachine(answers, otherwise=NOT_SUPPORTED).with_pci(HGX[0])).gpus[0].nvlinks[0].errors

    assert {"replay": 0, "recovery": 10, "crc_flit": 20, "crc_data": 30} == errors(old)
    assert {"malformed_packets": 206, "recoveries_successful": 213, "symbol_ber_packed": 222} == errors(new)


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

    outcome = outcome_of(nvml.PROBE, machine)

    assert Status.PARTIAL == outcome.status
    assert "nvmlSystemGetNvlinkBwMode: Insufficient Permissions" == outcome.reason
    assert outcome.facts.bandwidth_mode is None


@pytest.mark.parametrize("code", ["LIB_RM_VERSION_MISMATCH", "UNKNOWN"])
def test_an_init_that_fails_is_the_probes_reason(code: str) -> None:
    """Never zero GPUs."""
    machine = GpuMachine({("nvmlInit_v2",): Failed(f"nvmlInit_v2: {code}", code)}).with_pci(HGX[0])

    outcome = outcome_of(nvml.PROBE, machine)

    assert (Status.FAILED, None, f"nvmlInit_v2: {code}") == (outcome.status, outcome.facts, outcome.reason)


# -- the gate ---------------------------------------------------------------------------------------------------------


def nvml_calls(machine: GpuMachine) -> list[str]:
    return [call for call in machine.asked if call.startswith("nvml")]


@pytest.mark.parametrize("live", [True, False])
@pytest.mark.parametrize("status", ["suspended", "suspending"])
def test_a_sleeping_gpu_is_not_woken(live: bool, status: str) -> None:
    """No NVML call at all, and nothing of the device after its power/runtime_status."""
    machine = hgx_h100().with_pci("0000:01:00.0", status=status)
    machine.live = live

    outcome = outcome_of(nvml.PROBE, machine)

    assert (Status.SKIPPED, "GPU 0000:01:00.0 is asleep; NVML would wake it") == (outcome.status, outcome.reason)
    assert [] == nvml_calls(machine)
    of_the_device = [call for call in machine.asked if "0000:01:00.0" in call]
    assert "read /sys/bus/pci/devices/0000:01:00.0/power/runtime_status" == of_the_device[-1]


def test_a_sleeping_gpu_of_another_driver_does_not_stop_the_others() -> None:
    """vfio-pci keeps an idle GPU suspended; NVML never touches it."""
    machine = hgx_h100().with_pci("0000:f1:00.0", driver="vfio-pci", status="suspended")

    assert 8 == len(facts_of(machine).gpus)


def test_without_an_nvidia_gpu_nothing_is_asked() -> None:
    """PCI says so; the library is not even loaded."""
    machine = GpuMachine(system_answers(0), live=True).with_driver()
    machine.files |= {
        "/sys/bus/pci/devices/0000:00:02.0/vendor": "0x8086\n",
        "/sys/bus/pci/devices/0000:00:02.0/class": "0x030000\n",
        "/sys/bus/pci/devices/0000:05:00.0/vendor": "0x10de\n",
        "/sys/bus/pci/devices/0000:05:00.0/class": "0x068000\n",
    }

    outcome = outcome_of(nvml.PROBE, machine)

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
    del machine.files["/dev/nvidiactl"]

    with pytest.raises(Absent, match=r"^no /dev/nvidiactl, "):
        nvml.read(machine)
    assert [] == nvml_calls(machine)


def test_a_capture_of_a_host_without_the_driver_replays_the_same_reason() -> None:
    """Nothing was recorded of NVML, because the driver was not there."""
    live = GpuMachine(live=True).with_pci(HGX[0])
    replayed = GpuMachine().with_pci(HGX[0])

    assert outcome_of(nvml.PROBE, live).reason == outcome_of(nvml.PROBE, replayed).reason
    assert Status.ABSENT == outcome_of(nvml.PROBE, replayed).status


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
    machine.files["/sys/bus/pci/devices/0000:1b:00.0/current_link_width"] = "16\n"

    assert 0 == facts_of(machine).attached


def test_the_machine_is_a_host() -> None:
    """So that these tests ask what a real host answers."""
    machine: Host = hgx_h100()

    with pytest.raises(Skipped):
        nvml.read(GpuMachine().with_pci(HGX[0], status="suspended"))
    assert machine.kind == "capture"
