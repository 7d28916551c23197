"""NVLink from the library, and the parts of its answers."""

from __future__ import annotations

from typing import Any

import pytest

from probes.gpu.nvml_enums import C2C_ERRORS, PCIE_COUNTERS
from probes.gpu.nvml_nvlink import pair_kind
from probes.host.interface import Failed, ReadError
from tests.probes.gpu.gpu_machine import (
    FUNCTION_NOT_FOUND,
    HGX,
    INVALID_ARGUMENT,
    NOT_SUPPORTED,
    GpuMachine,
    bridged_pairs,
    facts_of,
    gpu_answers,
    hgx_h100,
    link_answers,
    system_answers,
)

# NVLinks and paths of the `nvml` probe: what is counted, what is inferred, what is not known.


def test_an_hgx_with_switches_has_one_path_for_all() -> None:
    """28 pairs of NV18; P2P says OK both ways."""
    facts = facts_of(hgx_h100())

    assert 28 == len(facts.pairs)
    assert {"NV18"} == {pair.kind for pair in facts.pairs}
    assert facts.p2p is not None
    assert 56 == len(facts.p2p)
    assert {"read": "OK", "write": "OK", "nvlink": "OK", "atomics": "OK"} == facts.p2p[7, 0]


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
    down = gpus[2]._replace(
        nvlinks=tuple(link._replace(state="inactive") for link in gpus[2].nvlinks[:1]) + gpus[2].nvlinks[1:]
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
    count: int | None, refusal: ReadError, supported: bool | None
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


# What only some GPUs have, through NVML: each entry's own return code counts, and nothing unread is a zero.


GRACE = {"GetC2cModeInfoV": {"isC2cEnabled": 1}}


def facts(answers: dict, **of_gpu: object):
    result = system_answers(1) | gpu_answers(0, "0000:19:00.0", **of_gpu) | answers
    return facts_of(GpuMachine(result).with_pci("0000:19:00.0"))


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
    result = {("field", 0, 170, 0): 2}
    for link in range(links):
        result |= {("field", 0, 171, link): 1, ("field", 0, 172, link): 44712}
        result |= {("field", 0, field, link): link for field in C2C_ERRORS}
    return result


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
