"""Processors: x86, Arm and POWER texts; sockets by packages; what no list of processors may cost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.probe import Status, outcome_of
from probes.system import cpu
from probes.system.cpu import MOST_CPUS, parse_cpuinfo, parse_cpulist
from probes.text import ParseError
from tests.probes.system.system_machine import Machine

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
    outcome = outcome_of(cpu.PROBE, machine)

    assert Status.OK == outcome.status
    assert 2 == outcome.facts.sockets
    assert 2 == sum(path.endswith("physical_package_id") for path in machine.asked)


def test_package_minus_one_is_not_a_socket():
    """Firmware that names no package leaves the number of sockets unknown, and says so."""
    machine = Machine().put({"/proc/cpuinfo": GRACE.format(0), "/sys/devices/system/cpu/online": "0-1\n"})
    machine.put({f"{TOPOLOGY.format(0)}/physical_package_id": "-1\n"})
    outcome = outcome_of(cpu.PROBE, machine)

    assert Status.PARTIAL == outcome.status
    assert outcome.facts.sockets is None
    assert "sockets" in outcome.reason


def test_source_without_processors_is_absent():
    """No /proc/cpuinfo and no list: absent, with both names."""
    outcome = outcome_of(cpu.PROBE, Machine())

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


@given(
    st.text() | st.lists(st.sampled_from([*X86.split("\n"), *POWER9.split("\n"), *GRACE.split("\n")])).map("\n".join)
)
def test_any_text_is_cpuinfo_or_the_declared_error(text: str):
    """No text gives anything but facts or ParseError."""
    try:
        read = parse_cpuinfo(text)
    except ParseError:
        return

    assert read.sockets is None or read.sockets > 0


@given(st.text(alphabet="0123456789,-x \n", max_size=40))
def test_any_text_is_a_cpulist_or_the_declared_error(text: str):
    """What is accepted is ascending and bounded."""
    try:
        read = parse_cpulist(text)
    except ParseError:
        return

    assert sorted(set(read)) == list(read)
    assert all(0 <= number < MOST_CPUS for number in read)


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

    assert None is outcome_of(cpu.PROBE, machine).facts.threads_per_core
    machine.put({f"{TOPOLOGY.format(0)}/thread_siblings_list": "0-1\n"})
    assert 2 == outcome_of(cpu.PROBE, machine).facts.threads_per_core
