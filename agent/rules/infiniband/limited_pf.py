"""ib-limited-pf."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.model.nic import Nic
from agent.model.node import Event
from agent.rules.case import Case
from agent.rules.counting import named
from agent.rules.devices import away, function_of
from agent.rules.rule import Answer, Fail, NotApplicable, rule


@rule("ib-limited-pf", "info", needs=("pci|lspci", "rdma|rdma_tools"), references=("ib-limited-pf", "NVL-016"))
def ib_limited_pf(case: Case) -> Iterator[Answer]:
    """Some InfiniBand functions are not NICs for jobs: they manage the NVLink switches, or refuse their registers.

    ## What it checks
    Which functions the PCI ids, the product name or the fabric manager's files call its own; and the kernel log for
    refused registers (ACCESS_REG) of others.

    ## Why it matters
    HGX B200 and B300 show 4 such functions that are down or at 1X. A job that takes them (NCCL_IB_HCA=mlx5) hangs, and
    a monitor that reads their counters fills the kernel log with up to 1 line a second.

    ## How it is decided
    Info, one finding for the node, that names them. No rule of this tool judges their ports. A NIC that is none of
    them, and whose registers were refused since boot: info, one finding for each.

    ## What keeps it silent
    - Virtual functions and virtual machines, which are refused these registers by design.
    - No such function: not applicable.

    ## How to confirm
    `lspci -d 15b3: -vv | grep -i -E 'subsystem|product name'`; `dmesg | grep 'ACCESS_REG(0x805)'`

    ## How to fix
    Leave them to the fabric manager: name the rails in NCCL_IB_HCA, and leave them out of monitoring. Registers of a
    rail refused: look at its firmware.

    ## Source
    NVIDIA fabric manager user guide (B200: management through ConnectX); prometheus/node_exporter issue 3434.
    """
    limited = [nic for nic in case.topology.nics if nic.limited]
    seen = [] if case.virtual_machine else [(nic, _refusals(case, nic)) for nic in case.topology.nics]
    refused = [(nic, lines) for nic, lines in seen if lines]
    if limited:
        yield _owned(limited)
    for nic, lines in refused:
        yield _fault(nic, lines)
    if not limited and not refused and (case.bus_unread is None or case.probe_failure("rdma|rdma_tools") is None):
        yield NotApplicable("node", "no function that a fabric manager owns, and none that refuses its registers")


def _refusals(case: Case, nic: Nic) -> list[Event]:
    """What the log has of that kind of a NIC for jobs."""
    if nic.limited or nic.software or nic.virtual_function or nic.pci is None or away(function_of(case, nic)):
        return []
    ids = (nic.pci, f"pci:{nic.pci}")
    return [
        event for event in case.events if (event.kind, event.code) == ("mlx5", "access-reg") and event.subject in ids
    ]


def _owned(limited: list[Nic]) -> Fail:
    return Fail(
        subject="node",
        label="node",
        summary=f"{len(limited)} functions are not NICs for jobs: {named([nic.label for nic in limited])}",
        impact="a job that takes one hangs: NCCL_IB_HCA must leave 100 % of them out.",
        remedy="Leave them to the fabric manager; name the rails in NCCL_IB_HCA, and leave them out of monitoring.",
        evidence=tuple(
            Evidence(what=nic.label, value=nic.limited or "", source=f"lspci -vv -s {nic.pci or nic.id}")
            for nic in limited[:8]
        ),
        severity="info",
        cause="owned",
        places=frozenset(nic.id for nic in limited),
    )


def _fault(nic: Nic, lines: list[Event]) -> Fail:
    times = sum(event.count for event in lines)
    return Fail(
        subject=f"pci:{nic.pci}",
        label=nic.label,
        summary=f"its firmware refused a register {times} times since boot, and it is no function of a fabric manager",
        impact="some of its counters and its module cannot be read; 0 % of its traffic is lost by that.",
        remedy="Look at its firmware; where a fabric manager owns it, leave it out of jobs and monitoring.",
        evidence=tuple(Evidence(what="kernel log", value=event.text, source=event.source) for event in lines[:2]),
        severity="info",
        confidence="low",
        cause="refused",
        places=frozenset({nic.id, nic.pci or nic.id}),
    )
