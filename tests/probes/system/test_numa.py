"""NUMA nodes: without CPUs, with gaps in their numbers, and with rows that do not fit."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from probes.host.interface import Denied
from probes.probe import Status, outcome_of
from probes.system import numa
from probes.system.numa import NumaNodeFacts, parse_distances, parse_memory_mib
from probes.text import ParseError
from tests.probes.system.system_machine import Machine


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
        numa.PROBE,
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
    outcome = outcome_of(numa.PROBE, machine(rows))

    assert [0, 8, 250] == [node.id for node in outcome.facts.nodes]


def test_row_that_does_not_fit_is_not_read_by_position():
    """Two distances for one node (another is offline) would be given to the wrong one."""
    outcome = outcome_of(numa.PROBE, machine({1: ("1,3", "21 10", 4096)}))

    assert Status.PARTIAL == outcome.status
    assert () == outcome.facts.nodes[0].distances
    assert "2 distances for 1 nodes" in outcome.reason


def test_missing_cpulist_is_unknown_not_empty():
    """A node whose CPUs the source does not hold is not a node without CPUs."""
    outcome = outcome_of(numa.PROBE, Machine().put({"/sys/devices/system/node/node0/uevent": ""}))

    assert Status.PARTIAL == outcome.status
    assert outcome.facts.nodes[0].cpus is None
    assert outcome.facts.nodes[0].memory_mib is None


def test_refused_cpulist_is_named():
    """A file that may not be read is a reason."""
    host = machine({0: ("0-3", "10", 4096)})
    host.refused["/sys/devices/system/node/node0/cpulist"] = Denied("node0/cpulist: Permission denied")
    outcome = outcome_of(numa.PROBE, host)

    assert outcome.facts.nodes[0].cpus is None
    assert "Permission denied" in outcome.reason


def test_kernel_without_numa_is_absent():
    """No folder of nodes: absent."""
    assert Status.ABSENT == outcome_of(numa.PROBE, Machine()).status


@given(st.text(), st.text())
def test_any_text_is_numbers_or_the_declared_error(row: str, memory: str):
    """No text gives anything but numbers or ParseError."""
    for parser, text in ((parse_distances, row), (parse_memory_mib, f"MemTotal: {memory}")):
        try:
            read = parser(text)
        except ParseError:
            continue

        assert min(read, default=0) >= 0 if isinstance(read, tuple) else read >= 0
