"""numa-unknown."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.rules.case import Case
from agent.rules.counting import named
from agent.rules.devices import away, label_of, pci_source
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule


@rule("numa-unknown", "warning", needs=("pci", "numa"), references=("PCIE-024", "gdr-numa-unknown"))
def numa_unknown(case: Case) -> Iterator[Answer]:
    """The firmware does not say which NUMA node a GPU or rail belongs to.

    ## What it checks
    `numa_node` of every GPU and rail on a node with more than one NUMA node with CPUs.

    ## Why it matters
    Processes, interrupts and buffers land on the wrong one of two sockets 50 % of the time; every copy then
    crosses the link between the sockets, and NCCL and `nvidia-smi topo` draw a wrong topology.

    ## How it is decided
    The kernel says -1: the firmware (ACPI _PXM, device tree) gave no proximity. One finding; more than one device:
    for the node.

    ## What keeps it silent
    - One NUMA node with CPUs: nothing to choose, not applicable. Nodes without CPUs are GPU or CXL memory and are not
      counted.
    - Virtual machines, where the hypervisor shows no proximity: not applicable.
    - A device that sleeps, is gone, or came or went during the scan: not applicable.
    - The NUMA nodes or the attribute could not be read: unknown.

    ## How to confirm
    `cat /sys/bus/pci/devices/ADDRESS/numa_node`

    ## How to fix
    Update the BIOS; look for settings of NUMA per socket and of ACPI SLIT/SRAT. Until then bind by hand
    (`numactl`, `NCCL_TOPO_FILE`).

    ## Source
    Linux `drivers/pci/pci-sysfs.c` (numa_node); NCCL `src/graph/xml.cc`.
    """
    nodes = case.node.numa_nodes
    devices = {gpu.pci for gpu in case.topology.gpus if gpu.pci} | {nic.pci for nic in case.rails if nic.pci}
    if not devices and case.bus_unread is None:
        yield NotApplicable("node", "no GPU and no rail")
    elif not devices or not nodes:
        return
    elif any(node.cpus is None for node in nodes):
        yield Unknown("node", "which NUMA nodes have CPUs is not known")
    elif len(case.cpu_nodes) < 2:
        yield NotApplicable("node", "one NUMA node with CPUs")
    else:
        yield from _judge(case, sorted(devices & case.functions.keys()))


def _judge(case: Case, devices: list[str]) -> Iterator[Answer]:
    lost: list[str] = []
    for pci in devices:
        function, subject = case.functions[pci], f"pci:{pci}"
        absent = away(function)
        if absent or case.virtual_machine:
            yield NotApplicable(subject, absent or "virtual machine: proximity is the hypervisor's to show")
        elif function.numa_declared is False:
            lost.append(pci)
        elif function.numa_declared is None:
            yield Unknown(subject, "its NUMA node could not be read")
        else:
            yield Pass(subject)
    if lost:
        yield _fault(case, lost)


def _fault(case: Case, lost: list[str]) -> Fail:
    labels = [label_of(case, pci) for pci in lost]
    count = len(case.cpu_nodes)
    return Fail(
        subject=f"pci:{lost[0]}" if len(lost) == 1 else "node",
        label=labels[0] if len(lost) == 1 else "node",
        summary=f"the firmware names no NUMA node for {named(labels)}, on a node that has {count}",
        impact=f"unbound processes and buffers are on a wrong NUMA node {100 * (count - 1) / count:.0f} % of the time.",
        remedy="Update the BIOS, check its NUMA settings; until then bind by hand (numactl, NCCL_TOPO_FILE).",
        evidence=tuple(
            Evidence(what=f"NUMA node of {label}", value="-1", source=pci_source(case, pci, "numa_node"))
            for pci, label in zip(lost, labels, strict=True)
        ),
        places=frozenset(lost),
    )
