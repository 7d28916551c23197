"""The `nvidia_smi` probe: any subset of its commands, joined; and failures that stay failures."""

from __future__ import annotations

import itertools

import pytest

from probes.catalogue import probe
from probes.gpu import nvidia_smi
from probes.gpu.facts import GpuFacts
from probes.host.commands import COMMANDS
from probes.host.interface import Absent, Completed, Failed, TimedOut
from probes.probe import Reading, Status, outcome_of
from tests.probes.gpu.gpu_machine import GpuMachine
from tests.probes.gpu.nvidia_smi_texts import (
    ADDRESSES,
    CAPABILITIES,
    CSV,
    ERRORS,
    LIST,
    NAME,
    P2P,
    QUERY,
    REMOTES,
    STATUS,
    TOPO,
    UUIDS,
    XML,
)

PROBE = probe("nvidia_smi")
SMI = "nvidia-smi"
ALL = {
    (SMI, "-q", "-x"): XML,
    (SMI, "-q"): QUERY,
    (SMI, "--query-gpu"): CSV,
    (SMI, "-L"): LIST,
    (SMI, "topo", "-m"): TOPO,
    (SMI, "topo", "-p2p", "r"): P2P,
    (SMI, "topo", "-p2p", "w"): P2P,
    (SMI, "topo", "-p2p", "n"): P2P,
    (SMI, "nvlink", "-s"): STATUS,
    (SMI, "nvlink", "-e"): ERRORS,
    (SMI, "nvlink", "-R"): REMOTES,
    (SMI, "nvlink", "-c"): CAPABILITIES,
}
NO_DRIVER = (
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA "
    "driver is installed and running.\n\n"
)


def read(commands: dict[tuple[str, ...], str | Completed]) -> Reading:
    return nvidia_smi.read(GpuMachine(commands=commands))


def facts(commands: dict[tuple[str, ...], str | Completed]) -> GpuFacts:
    result = read(commands).facts
    assert isinstance(result, GpuFacts)
    return result


def failed(argv: tuple[str, ...], stdout: str = "", stderr: str = "", code: int = 9) -> Completed:
    return Completed(argv, code, stdout, stderr, 0.1)


def test_all_commands_make_one_machine() -> None:
    """Identity of the query, instances of -L, affinity of topo, links of nvlink: one GPU each."""
    reading = read(dict(ALL))
    result = reading.facts
    third = result.gpus[3]

    assert reading.missing is None
    assert [(index, at, uuid, NAME) for index, (at, uuid) in enumerate(zip(ADDRESSES, UUIDS, strict=True))] == [
        (gpu.index, gpu.address, gpu.uuid, gpu.name) for gpu in result.gpus
    ]
    assert ("16-31,48-63", 1, 49140, ("MIG-6b8c26a5-286a-f440-4f76-3af4cf4108f1",)) == (
        third.cpu_affinity,
        third.numa_node,
        third.memory_mib,
        third.mig_instances,
    )
    assert ("570.211.01", "12.8", 4) == (result.driver_version, result.cuda_version, result.attached)
    assert 15 == len(result.pairs)
    assert {"NIC0": "mlx5_0", "NIC1": "mlx5_bond_0"} == result.nic_names
    assert result.p2p is not None
    assert {"read": "GNS", "write": "GNS", "nvlink": "GNS"} == result.p2p[1, 2]


def test_an_output_about_other_gpus_is_ignored() -> None:
    """Links of a GPU by its number, whose UUID is another one: that file is of another host, or of another time."""
    other = "GPU-99999999-9999-9999-9999-999999999999"
    strange = ALL[SMI, "nvlink", "-s"].replace(UUIDS[3], other)
    reading = read({(SMI, "-q"): QUERY, (SMI, "nvlink", "-s"): strange})

    assert "GPU3 has two UUIDs: outputs of two hosts, or of two times; one is ignored" == reading.missing
    assert list(UUIDS) == [gpu.uuid for gpu in reading.facts.gpus]
    assert [True, True, True, False] == [bool(gpu.nvlinks) for gpu in reading.facts.gpus]


def test_uuids_of_mig_devices_win_over_their_numbers() -> None:
    """-q has only the numbers of their instances, -L the UUIDs; without -L the numbers stay."""
    devices = "    MIG Device\n        GPU Instance ID : 1\n        Compute Instance ID : 0\n    Serial Number"
    query = QUERY.replace("    Serial Number", devices)
    both = read({(SMI, "-q"): query, (SMI, "-L"): LIST}).facts
    alone = read({(SMI, "-q"): query}).facts

    assert ("MIG-6b8c26a5-286a-f440-4f76-3af4cf4108f1",) == both.gpus[3].mig_instances
    assert [(f"MIG-{uuid}/1/0",) for uuid in UUIDS] == [gpu.mig_instances for gpu in alone.gpus]


def test_one_link_out_of_four_commands() -> None:
    """State of -s, errors of -e, far end of -R, capabilities of -c; a far end that is a GPU of this machine is one."""
    link = facts(dict(ALL)).gpus[3].nvlinks[0]

    assert ("active", 14.062, "0000:25:00.0", 12, "gpu") == (
        link.state,
        link.speed_gbyte_s,
        link.remote_address,
        link.remote_link,
        link.remote_kind,
    )
    assert {"replay": 12, "recovery": 0, "crc": 3} == link.errors
    assert {"P2P is supported": True, "SLI is supported": False} == link.capabilities


@pytest.mark.parametrize("left", [*itertools.combinations(ALL, 1), *itertools.combinations(ALL, 2)])
def test_any_subset_is_evidence_of_four_gpus(left: tuple[tuple[str, ...], ...]) -> None:
    """Whichever are there: the sources are named, and no GPU is counted twice. P2P alone names them."""
    machine = GpuMachine(commands={argv: ALL[argv] for argv in left})

    reading = nvidia_smi.read(machine)

    assert PROBE.evidence(machine)
    assert [0, 1, 2, 3] == sorted(gpu.index for gpu in reading.facts.gpus)
    assert set(reading.sources) <= {" ".join(argv) for argv in left}
    assert reading.missing is None


def test_the_best_query_is_asked_and_no_other() -> None:
    """XML before text before CSV."""
    assert "nvidia-smi -q" not in read(dict(ALL)).sources
    assert "nvidia-smi -q" in read({argv: text for argv, text in ALL.items() if argv != (SMI, "-q", "-x")}).sources


def test_a_broken_query_is_replaced_by_the_next() -> None:
    """What was wrong with it is said."""
    reading = read({**ALL, (SMI, "-q", "-x"): XML[:-40]})

    assert "nvidia-smi -q -x: cut short: no </nvidia_smi_log>" == reading.missing
    assert 49140 == reading.facts.gpus[0].memory_mib


@pytest.mark.parametrize(
    ("stdout", "stderr", "reason"),
    [
        (NO_DRIVER, "", NO_DRIVER.strip()),
        ("", NO_DRIVER, NO_DRIVER.strip()),
        (
            "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 580.65\n",
            "",
            "Failed to initialize NVML: Driver/library version mismatch",
        ),
        ("No devices were found\n", "", "No devices were found"),
        ("\u00fc\ufffd Falsche Option\n", "", "no <nvidia_smi_log>; it begins with: \u00fc\ufffd Falsche Option"),
    ],
)
def test_a_refusal_is_the_reason_and_never_zero_gpus(stdout: str, stderr: str, reason: str) -> None:
    """In nvidia-smi's own words."""
    machine = GpuMachine(commands={argv: failed(argv, stdout, stderr) for argv in ALL})

    outcome = outcome_of(PROBE, machine)

    assert (Status.FAILED, None, f"nvidia-smi -q -x: {reason}"[:230]) == (
        outcome.status,
        outcome.facts,
        (outcome.reason or "")[:230],
    )


def test_a_refusal_of_one_command_does_not_lose_the_others() -> None:
    """Windows has no topo -m."""
    error = "ERROR: Option -m is missing its value. Please run 'nvidia-smi -h' for help.\n"

    reading = read({**ALL, (SMI, "topo", "-m"): error})

    assert reading.missing is not None
    assert reading.missing.startswith(
        "nvidia-smi topo -m: no heading with GPUs; it begins with: ERROR: Option -m is missing"
    )
    assert (4, ()) == (len(reading.facts.gpus), reading.facts.pairs)


def test_a_gpu_that_could_not_be_opened_is_there_with_its_error() -> None:
    """The others are described; the index of none is known from that text alone, -L tells it."""
    three = QUERY.replace(
        "Attached GPUs                             : 4", "Attached GPUs                             : 3"
    )
    three = three[: three.index("GPU 00000000:C1:00.0")]
    lost = failed(
        (SMI, "-q"), three, "Unable to determine the device handle for GPU3: 0000:C1:00.0: Unknown Error\n", 15
    )

    reading = read({(SMI, "-q"): lost})

    assert [(0, None), (1, None), (2, None), (3, "Unknown Error")] == [
        (gpu.index, gpu.error) for gpu in reading.facts.gpus
    ]
    assert "0000:c1:00.0" == reading.facts.gpus[3].address
    assert "0000:c1:00.0: Unknown Error; nvidia-smi -q: exit 15" == reading.missing


def test_numbers_alone_do_not_invent_gpus() -> None:
    """`-q -i 0` describes one of four without its index; topo -m has four numbers: it may be any of them."""
    one = QUERY[: QUERY.index("GPU 00000000:25:00.0")]

    without_list = read({(SMI, "-q"): one, (SMI, "topo", "-m"): TOPO})
    with_list = read({(SMI, "-q"): one, (SMI, "topo", "-m"): TOPO, (SMI, "-L"): LIST})

    assert ["0000:01:00.0"] == [gpu.address for gpu in without_list.facts.gpus]
    assert "which GPU is GPU0, GPU1, GPU2, GPU3 is not in it (nvidia-smi -L has it)" in (without_list.missing or "")
    assert ["0000:01:00.0", None, None, None] == [gpu.address for gpu in with_list.facts.gpus]
    assert 1 == with_list.facts.gpus[3].numa_node


def test_no_output_at_all_is_absent() -> None:
    """A source without nvidia-smi; a capture of a host without its driver says that, as the host did."""
    machine = GpuMachine()
    machine.kind = "tree"

    assert not PROBE.evidence(machine)
    with pytest.raises(Absent, match="no output of nvidia-smi"):
        nvidia_smi.read(machine)
    with pytest.raises(Absent, match="driver not loaded"):
        nvidia_smi.read(GpuMachine())


def test_how_a_command_failed_is_kept() -> None:
    """A time-out is a time-out."""
    machine = GpuMachine().with_driver()
    machine.run = lambda *argv: (_ for _ in ()).throw(TimedOut(f"{argv[0]}: no answer within 30 s"))  # type: ignore[method-assign]

    outcome = outcome_of(PROBE, machine)

    assert Status.TIMED_OUT == outcome.status


def test_a_live_host_is_asked_only_what_the_door_knows() -> None:
    """Every command but the CSV, which no live host is asked for, stands in the committed list."""
    machine = GpuMachine(commands=dict(ALL), live=True).with_pci(ADDRESSES[0]).with_driver()

    nvidia_smi.read(machine)

    request = [tuple(call.split()) for call in machine.asked if call.startswith(SMI)]
    assert [] == [argv for argv in request if argv not in COMMANDS]
    assert (SMI, "-q") not in request


def test_a_live_host_without_a_working_driver_is_asked_once() -> None:
    """Ten more commands would only wait for the same sentence."""
    machine = GpuMachine(commands={argv: failed(argv, NO_DRIVER) for argv in ALL}, live=True)

    with pytest.raises(Failed, match="couldn't communicate"):
        nvidia_smi.read(machine.with_pci(ADDRESSES[0]).with_driver())
    assert ["nvidia-smi -q -x"] == [call for call in machine.asked if call.startswith(SMI)]


def test_a_live_host_with_a_sleeping_gpu_is_not_asked() -> None:
    """nvidia-smi would wake it."""
    machine = GpuMachine(commands=dict(ALL), live=True).with_pci(ADDRESSES[0], status="suspended").with_driver()

    outcome = outcome_of(PROBE, machine)

    assert (Status.SKIPPED, f"GPU {ADDRESSES[0]} is asleep; NVML would wake it") == (outcome.status, outcome.reason)
    assert [] == [call for call in machine.asked if call.startswith(SMI)]
