"""The node: what the host probes say, and null where they are silent."""

from __future__ import annotations

from agent.model.node import Chassis, Node
from probes.gpu.facts import Gpu, GpuFacts
from probes.kernel.system import KernelFacts
from probes.system.cpu import CpuPackage
from probes.system.dmi import DmiFacts
from probes.system.numa import NumaFacts, NumaNodeFacts
from tests.agent.assemble.boards import assemble_facts


def test_every_probe_gives_its_part() -> None:
    """A NUMA node without CPUs keeps its empty list: it is memory of a GPU."""
    node = assemble_facts(
        kernel=KernelFacts(hostname="n1", virtualization="kvm", virtualization_known=True, uptime_seconds=5.12345),
        dmi=DmiFacts(vendor="NVIDIA", product="DGXH100", serial="S1", chassis_serial="C1"),
        cpu=CpuPackage(vendor="ARM", sockets=2),
        numa=NumaFacts((NumaNodeFacts(1, "", 98304), NumaNodeFacts(0, "0-71", distances=(10, 80)))),
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
    assert Node() == assemble_facts(kernel=None, dmi=None).node


def rack(*places: tuple[str | None, str, str]) -> GpuFacts:
    return GpuFacts(tuple(Gpu(index=n, chassis_serial=c, slot=s, tray=t) for n, (c, s, t) in enumerate(places)))


def test_gpus_of_a_rack_say_where_they_sit() -> None:
    """Where they agree; the serial number of firmware comes first."""
    same = rack(("R1", "24", "15"), ("R1", "24", "15"))
    alone = assemble_facts(nvml=same).node.chassis
    firmware = assemble_facts(dmi=DmiFacts(chassis_serial="C1"), nvidia_smi=same).node.chassis

    assert ("R1", "24", "15") == (alone.serial, alone.slot, alone.tray)
    assert ("C1", "24", "15") == (firmware.serial, firmware.slot, firmware.tray)
    assert Chassis() == assemble_facts(nvml=rack(("R1", "24", "15"), ("R1", "25", "16"))).node.chassis
    assert Chassis() == assemble_facts(nvml=rack((None, "24", "15"))).node.chassis
