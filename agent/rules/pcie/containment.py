"""pcie-containment."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.model.node import Event
from agent.rules.case import Case
from agent.rules.counting import named
from agent.rules.devices import label_of
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, rule

_FATAL = ("(fatal)", "uncorrectable fatal", "containment event")


@rule("pcie-containment", "error", needs=("kernel_log",), references=("PCIE-033",))
def pcie_containment(case: Case) -> Iterator[Answer]:
    """A PCIe port cut off what is below it after a fatal error.

    ## What it checks
    The kernel log since boot: Downstream Port Containment (DPC) events, and fatal errors that AER reported.

    ## Why it matters
    The port stops all traffic and resets the link: 1 event ends every job that uses a device below it, and the device
    may not come back before a power cycle.

    ## How it is decided
    A containment event of DPC, or an error that AER calls fatal, of a GPU, a NIC in use, an NVSwitch or a port on the
    way to one: error. A port below which there is nothing any more: warning, because it may have been a drive that
    somebody pulled.

    ## What keeps it silent
    - Ports with drives or anything else below them: taking out a drive contains its port. Not applicable.
    - Virtual machines, whose ports are the hypervisor's: not applicable.
    - The kernel log could not be read, or does not reach back to boot: unknown.

    ## How to confirm
    `dmesg | grep -E 'DPC:|AER:'`

    ## How to fix
    Read which error came first (AER names it). Reseat the card or cable, update firmware; if it returns, replace the
    part.

    ## Source
    Linux `drivers/pci/pcie/dpc.c` and `aer.c`.
    """
    if case.virtual_machine:
        yield NotApplicable("node", "virtual machine: its ports are the hypervisor's")
        return
    if not (case.topology.gpus or case.topology.nics or case.bus_unread):
        yield NotApplicable("node", "no GPU and no NIC")
        return
    worst: dict[str, list[Event]] = {}
    for event in case.events:
        if event.kind in ("dpc", "aer") and event.subject and any(word in event.text.lower() for word in _FATAL):
            worst.setdefault(event.subject.removeprefix("pci:"), []).append(event)
    for place in sorted(worst):
        yield _judge(case, place, worst[place])
    if not worst and case.probe_failure("kernel_log") is None:
        yield Pass("node")


def _judge(case: Case, place: str, events: list[Event]) -> Answer:
    subject, function = f"pci:{place}", case.functions.get(place)
    gear = {gpu.pci for gpu in case.topology.gpus} | {switch.pci for switch in case.topology.nvswitches}
    gear |= {nic.pci for nic in case.topology.nics if nic.role not in ("unused", "auxiliary") and not nic.limited}
    below = [f for f in case.topology.pci if function in (f, *case.ancestors(f))]
    ends = [f for f in below if not (f.class_code or "").startswith("0x0604")]
    hit = sorted(label_of(case, f.id) for f in ends if f.id in gear)
    if ends and not hit:
        return NotApplicable(subject, "nothing that runs jobs is below it")
    lost = named(hit) or "what was below it"
    return Fail(
        subject=subject,
        label=label_of(case, place),
        summary=f"a fatal PCIe error cut off {lost}",
        impact=f"{len(events)} time{'s' if len(events) > 1 else ''} since boot; each ends every job that uses {lost}.",
        remedy="Read in the kernel log which error came first; reseat card or cable, update firmware.",
        evidence=tuple(Evidence(what="kernel log", value=e.text, source=e.source) for e in events[-3:]),
        severity=None if hit else "warning",
        places=frozenset({place, *(f.id for f in ends)}),
    )
