"""pcie-mps-uneven."""

from __future__ import annotations

from collections.abc import Iterator

from agent.rules.case import Case
from agent.rules.counting import named
from agent.rules.pcie.registers import Gear, gear, not_told, register
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule

_PERF = "pcie_bus_perf"


@rule("pcie-mps-uneven", "warning", needs=("pci|lspci",), references=("PCIE-013",))
def pcie_mps_uneven(case: Case) -> Iterator[Answer]:
    """GPUs and rails send PCIe packets of different sizes, and the kernel was told to let them.

    ## What it checks
    With `pci=pcie_bus_perf`: the maximum payload size (MPS) of all GPUs and rails, which send to each other.

    ## Why it matters
    That mode gives every device the largest size that its own way to the CPU takes. A packet of 512 bytes that one
    device sends straight to a peer set to 256 is a malformed TLP, a fatal error.

    ## How it is decided
    The kernel command line holds `pcie_bus_perf`, and the MPS (DevCtl) of GPUs and rails is not the same everywhere.

    ## What keeps it silent
    - Any other kernel command line: packets fit on every way. Fewer than two such devices: not applicable.
    - Virtual machines and virtual functions; NICs that are no rails; devices that sleep or are gone: left out.
    - The command line, or config space, could not be read: unknown.

    ## How to confirm
    `cat /proc/cmdline`; `lspci -vvv -s ADDRESS | grep MaxPayload` on each GPU and rail.

    ## How to fix
    Boot with `pci=pcie_bus_safe` (or `pcie_bus_peer2peer`) instead.

    ## Source
    Linux kernel parameters, `pci=pcie_bus_perf` (peer-to-peer may not work).
    """
    peers = [g for g in gear(case) if isinstance(g, Gear) and (g.gpu or (g.nic and g.nic.role == "rail"))]
    if len(peers) < 2:
        yield NotApplicable("node", "no two devices that send to each other")
    elif case.node.cmdline is None:
        yield Unknown("node", "the kernel command line is not known")
    elif _PERF not in case.node.cmdline:
        yield NotApplicable("node", f"no {_PERF} on the kernel command line")
    else:
        yield _judge(peers)


def _judge(peers: list[Gear]) -> Answer:
    unread = next((each for each in peers if each.function.max_payload_bytes is None), None)
    sizes = {each.function.max_payload_bytes for each in peers} - {None}
    if len(sizes) < 2:
        return Unknown("node", not_told(unread.function, "the payload size")) if unread else Pass("node")
    of = {size: [each.label for each in peers if each.function.max_payload_bytes == size] for size in sizes}
    said = "; ".join(f"{size} bytes: {named(of[size])}" for size in sorted(of, key=lambda size: size or 0))
    return Fail(
        subject="node",
        label="node",
        summary=f"GPUs and rails send PCIe packets of {len(sizes)} sizes ({said}), as {_PERF} lets them",
        impact="a packet larger than its peer takes is a fatal error: 1 peer-to-peer transfer can stop a job.",
        remedy="Boot with pci=pcie_bus_safe instead of pci=pcie_bus_perf.",
        evidence=tuple(
            register(each.function, "MPS", f"{each.function.max_payload_bytes} bytes", "DevCtl: MaxPayload")
            for each in peers
        ),
        places=frozenset().union(*(each.places for each in peers)),
    )
