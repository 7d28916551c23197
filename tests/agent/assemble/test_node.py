"""The node: what the host probes say, and null where they are silent."""

from __future__ import annotations

from agent.model.node import Node
from probes.cpu import Cpu
from probes.dmi import DmiFacts
from probes.kernel import KernelFacts
from probes.numa import NumaFacts, NumaNode
from tests.agent.assemble.hosts import assembled


def test_every_probe_gives_its_part() -> None:
    """A NUMA node without CPUs keeps its empty list: it is memory of a GPU."""
    node = assembled(
        kernel=KernelFacts(hostname="n1", virtualization="kvm", virtualization_known=True, uptime_seconds=5.12345),
        dmi=DmiFacts(vendor="NVIDIA", product="DGXH100", serial="S1", chassis_serial="C1"),
        cpu=Cpu(vendor="ARM", sockets=2),
        numa=NumaFacts((NumaNode(1, "", 98304), NumaNode(0, "0-71", distances=(10, 80)))),
    ).node

    assert ("n1", "kvm", True, 5.123) == (
        node.hostname,
        node.virtualization,
        node.virtualization_known,
        node.uptime_seconds,
    )
    assert ("NVIDIA", "DGXH100", "S1", "C1") == (node.vendor, node.product, node.serial, node.chassis.serial)
    assert ("ARM", 2) == (node.cpu.vendor, node.cpu.sockets)
    assert [(0, "0-71", [10, 80]), (1, "", [])] == [(n.id, n.cpus, n.distances) for n in node.numa_nodes]


def test_silence_is_null() -> None:
    """Nothing answered."""
    assert Node() == assembled(kernel=None, dmi=None).node
