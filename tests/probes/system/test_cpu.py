"""Processors and their NUMA nodes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.catalogue import probe
from probes.host.interface import Denied
from probes.probe import Status, outcome_of
from probes.system import cpu
from probes.system.cpu import MOST_CPUS, parse_cpuinfo, parse_cpulist
from probes.system.numa import NumaNodeFacts
from probes.text import ParseError
from tests.probes.machine import Machine

# Processors: x86, Arm and POWER texts; sockets by packages; what no list of processors may cost.


TOPOLOGY = "/sys/devices/system/cpu/cpu{}/topology"
X86 = (
    "processor\t: {0}\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\n"
    "model name\t: Intel(R) Xeon(R) Platinum 8480C\nphysical id\t: {1}\nflags\t\t: fpu lm\n\n"
)
GRACE = "processor\t: {0}\nBogoMIPS\t: 2000.00\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU part\t: 0xd4f\n\n"
POWER9 = "processor\t: 0\ncpu\t\t: POWER9, altivec supported\n\nplatform\t: PowerNV\nmodel\t\t: 8335-GTW\n"


def packages(*sockets: range) -> Machine:
    """An Arm machine whose packages hold these processors."""
    last = sockets[-1][-1]
    machine = Machine().put({"/proc/cpuinfo": GRACE.format(0), "/sys/devices/system/cpu/online": f"0-{last}\n"})
    for number, cpus in enumerate(sockets):
        for one in cpus:
            folder = TOPOLOGY.format(one)
            machine.put({f"{folder}/physical_package_id": f"{number * 36}\n"})
            machine.put({f"{folder}/package_cpus_list": f"{cpus[0]}-{cpus[-1]}\n"})
    return machine


def test_x86_sockets_are_physical_ids():
    """Two physical ids are two sockets, however many processors there are."""
    read = parse_cpuinfo("".join(X86.format(number, number % 2) for number in range(8)))

    assert cpu.CpuPackage("GenuineIntel", 6, 143, "Intel(R) Xeon(R) Platinum 8480C", 2) == read


def test_grace_is_named_by_its_part_number():
    """Arm prints no model name; implementer and part name the core."""
    read = parse_cpuinfo(GRACE.format(0))

    assert cpu.CpuPackage(vendor="ARM", model=0xD4F, name="Neoverse-V2") == read


def test_unknown_arm_maker_keeps_its_number():
    """A maker that has no name here is not called by another's."""
    read = parse_cpuinfo("processor : 0\nCPU implementer : 0x7a\nCPU part : 0x001\n")

    assert ("0x7a", None) == (read.vendor, read.name)


def test_power_model_of_the_machine_is_not_a_processor_model():
    """POWER's `model` line names the machine."""
    read = parse_cpuinfo(POWER9)

    assert cpu.CpuPackage(vendor="IBM", name="POWER9") == read


def test_arm_sockets_ask_one_processor_of_each_package():
    """144 processors in two packages cost two questions."""
    machine = packages(range(72), range(72, 144))
    outcome = outcome_of(probe("cpu"), machine)

    assert Status.OK == outcome.status
    assert 2 == outcome.facts.sockets
    assert 2 == sum(path.endswith("physical_package_id") for path in machine.asked)


def test_packages_of_an_older_kernel():
    """Before 5.4 the list had another name."""
    machine = Machine().put({"/proc/cpuinfo": GRACE.format(0), "/sys/devices/system/cpu/online": "0-3\n"})
    for one in range(4):
        machine.put({f"{TOPOLOGY.format(one)}/physical_package_id": f"{one // 2}\n"})
        machine.put({f"{TOPOLOGY.format(one)}/core_siblings_list": f"{one // 2 * 2}-{one // 2 * 2 + 1}\n"})
    outcome = outcome_of(probe("cpu"), machine)

    assert (Status.OK, 2) == (outcome.status, outcome.facts.sockets)
    assert 2 == sum(path.endswith("physical_package_id") for path in machine.asked)


def test_package_minus_one_is_not_a_socket():
    """Firmware that names no package leaves the number of sockets unknown, and says so."""
    machine = Machine().put({"/proc/cpuinfo": GRACE.format(0), "/sys/devices/system/cpu/online": "0-1\n"})
    machine.put({f"{TOPOLOGY.format(0)}/physical_package_id": "-1\n"})
    outcome = outcome_of(probe("cpu"), machine)

    assert Status.PARTIAL == outcome.status
    assert outcome.facts.sockets is None
    assert "sockets" in outcome.reason


def test_source_without_processors_is_absent():
    """No /proc/cpuinfo and no list: absent, with both names."""
    outcome = outcome_of(probe("cpu"), Machine())

    assert Status.ABSENT == outcome.status
    assert "/proc/cpuinfo" in outcome.reason


@pytest.mark.parametrize("text", ["0-4294967295", "3-1", "a", "0,,b", "0-", "٣", str(MOST_CPUS)])
def test_hostile_cpulist_is_refused(text: str):
    """A list that is none, or that would fill memory, is the declared error."""
    with pytest.raises(ParseError):
        parse_cpulist(text)


@given(st.sets(st.integers(0, 4095)))
def test_cpulist_survives_a_round_trip(cpus: set[int]):
    """Every set of processors is read back."""
    assert tuple(sorted(cpus)) == parse_cpulist(",".join(map(str, cpus)))


@pytest.mark.parametrize(
    ("said", "threads"),
    [
        ("siblings : 112\ncpu cores : 56\n", 2),
        ("siblings : 48\ncpu cores : 48\n", 1),
        ("siblings : 20\ncpu cores : 14\n", None),  # cores of two kinds
        ("siblings : 4\ncpu cores : 2\n\nsiblings : 2\ncpu cores : 2\n", None),  # packages differ
        ("siblings : 2\ncpu cores : 0\n", None),
        ("siblings : 2\n", None),
    ],
)
def test_threads_of_a_core_are_certain_or_not_known(said: str, threads: int | None) -> None:
    """Threads over cores of a package, where all packages agree."""
    assert threads == parse_cpuinfo(f"vendor_id : GenuineIntel\n{said}").threads_per_core


def test_arm_asks_the_first_processor_for_its_threads():
    """/proc/cpuinfo of Arm says nothing of cores."""
    machine = packages(range(4))

    assert None is outcome_of(probe("cpu"), machine).facts.threads_per_core
    machine.put({f"{TOPOLOGY.format(0)}/thread_siblings_list": "0-1\n"})
    assert 2 == outcome_of(probe("cpu"), machine).facts.threads_per_core


# NUMA nodes: without CPUs, with gaps in their numbers, and with rows that do not fit.


def machine(nodes: dict[int, tuple[str, str, int]]) -> Machine:
    """Nodes with their cpulist, row of distances and kB of memory."""
    host = Machine()
    for node, (cpus, row, kilobytes) in nodes.items():
        folder = f"/sys/devices/system/node/node{node}"
        host.put({f"{folder}/cpulist": f"{cpus}\n", f"{folder}/distance": f"{row}\n"})
        host.put({f"{folder}/meminfo": f"Node {node} MemTotal:       {kilobytes} kB\nNode {node} MemFree: 1 kB\n"})
    return host.put({"/sys/devices/system/node/online": "0\n", "/sys/devices/system/node/has_cpu": "0\n"})


def test_gpu_memory_is_a_node_without_cpus():
    """Grace Hopper: the GPU's memory and an empty node stand beside the CPUs' node, and have no CPUs."""
    outcome = outcome_of(
        probe("numa"),
        machine({0: ("0-71", "10 80 80", 501789696), 1: ("", "80 10 255", 99614720), 2: ("", "80 255 10", 0)}),
    )

    assert Status.OK == outcome.status
    assert (
        NumaNodeFacts(0, "0-71", 490029, (10, 80, 80)),
        NumaNodeFacts(1, "", 97280, (80, 10, 255)),
        NumaNodeFacts(2, "", 0, (80, 255, 10)),
    ) == outcome.facts.nodes


def test_nodes_are_sorted_as_numbers_and_may_have_gaps():
    """POWER9 has nodes 0, 8 and 250: in that order, not 0, 250, 8."""
    rows = {0: ("0-3", "10 40 80", 4096), 250: ("", "80 80 10", 4096), 8: ("4-7", "40 10 80", 4096)}
    outcome = outcome_of(probe("numa"), machine(rows))

    assert [0, 8, 250] == [node.id for node in outcome.facts.nodes]


def test_row_that_does_not_fit_is_not_read_by_position():
    """Two distances for one node (another is offline) would be given to the wrong one."""
    outcome = outcome_of(probe("numa"), machine({1: ("1,3", "21 10", 4096)}))

    assert Status.PARTIAL == outcome.status
    assert () == outcome.facts.nodes[0].distances
    assert "2 distances for 1 nodes" in outcome.reason


def test_missing_cpulist_is_unknown_not_empty():
    """A node whose CPUs the source does not hold is not a node without CPUs."""
    outcome = outcome_of(probe("numa"), Machine().put({"/sys/devices/system/node/node0/uevent": ""}))

    assert Status.PARTIAL == outcome.status
    assert outcome.facts.nodes[0].cpus is None
    assert outcome.facts.nodes[0].memory_mib is None


def test_refused_cpulist_is_named():
    """A file that may not be read is a reason."""
    host = machine({0: ("0-3", "10", 4096)})
    host.refused["/sys/devices/system/node/node0/cpulist"] = Denied("node0/cpulist: Permission denied")
    outcome = outcome_of(probe("numa"), host)

    assert outcome.facts.nodes[0].cpus is None
    assert "Permission denied" in outcome.reason


def test_kernel_without_numa_is_absent():
    """No folder of nodes: absent."""
    assert Status.ABSENT == outcome_of(probe("numa"), Machine()).status
