"""ib-no-sm."""

from __future__ import annotations

from collections.abc import Iterator

from agent.rules.cabling import settling
from agent.rules.case import Case
from agent.rules.counting import named
from agent.rules.devices import by_role
from agent.rules.infiniband.ports import PLUGGED, IbPort, ib_ports
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule

_NO_LID = (0, 0xFFFF)


@rule("ib-no-sm", "critical", needs=("rdma|rdma_tools",), references=("ib-no-sm",), absorbs=("ib-port-down",))
def ib_no_sm(case: Case) -> Iterator[Answer]:
    """An InfiniBand link is up, and no subnet manager has configured it.

    ## What it checks
    InfiniBand ports whose wire is up, whatever they are for: somebody plugged them.

    ## Why it matters
    Without a subnet manager a port has no address: 0 bytes move, however good the cable.

    ## How it is decided
    The physical state is LinkUp and the port stays in INIT or ARMED; or an active port of a physical machine has no
    LID or no subnet manager's LID. Every port whose wire is up: critical, one finding for the node. Some ports: error
    for each, warning where it is no rail.

    ## What keeps it silent
    - Ethernet ports, ports whose wire is not up (see ib-port-down), software devices, functions that a fabric manager
      owns, NICs that are unused: not applicable.
    - LIDs of virtual functions and virtual machines, which may be 0 by design: only the state counts there.
    - The first four minutes after boot, and a physical state that could not be read: unknown.
    - Two nodes back to back without a subnet manager look the same: switch this rule off there.

    ## How to confirm
    `sminfo`, and `cat /sys/class/infiniband/*/ports/*/{state,sm_lid,lid}`; look whether other nodes see it too.

    ## How to fix
    Start or repair the subnet manager (OpenSM, UFM, or the switch's own). One port only: look at the switch's partition
    and M_Key, then at that switch port.

    ## Source
    Linux `Documentation/ABI/stable/sysfs-class-infiniband`; InfiniBand Architecture Specification, port states.
    """
    ports: list[IbPort] = []
    for each in ib_ports(case, PLUGGED):
        if isinstance(each, IbPort):
            ports.append(each)
        else:
            yield each
    answers = [(each, _judge(case, each)) for each in ports]
    faults = [(each, answer) for each, answer in answers if isinstance(answer, Fail)]
    yield from (answer for _, answer in answers if not isinstance(answer, Fail))
    if len(faults) > 1 and not any(isinstance(answer, Pass) for _, answer in answers):
        yield _whole_node(faults)
    else:
        yield from (fault for _, fault in faults)


def _judge(case: Case, each: IbPort) -> Answer:
    port = each.port
    if port.state == "ACTIVE":
        lids = {port.lid, port.sm_lid} if not (case.virtual_machine or each.nic.virtual_function) else set()
        return _fault(each) if lids.intersection(_NO_LID) else Pass(each.subject)
    if port.phys_state is None:
        return Unknown(each.subject, "its physical state could not be read")
    if port.phys_state != "LinkUp":
        return NotApplicable(each.subject, "its wire is not up: see ib-port-down")
    waiting = settling(case)
    return Unknown(each.subject, f"{port.state}; {waiting}") if waiting else _fault(each)


def _fault(each: IbPort) -> Fail:
    port = each.port
    lids = [("LID", port.lid, "lid"), ("LID of the subnet manager", port.sm_lid, "sm_lid")]
    return Fail(
        subject=each.subject,
        label=each.label,
        summary=f"{port.state}, its wire is up, and no subnet manager has configured it",
        impact="0 bytes move on this port until a subnet manager gives it an address.",
        remedy="Start or repair the subnet manager (sminfo); one port only: partition, M_Key, switch port.",
        evidence=(
            each.evidence("state", f"{port.state}, {port.phys_state or 'physical state not known'}", "state"),
            *(each.evidence(what, f"{value:#x}", file) for what, value, file in lids if value is not None),
        ),
        severity=by_role("error", each.nic),
        places=each.places,
    )


def _whole_node(faults: list[tuple[IbPort, Fail]]) -> Fail:
    first = faults[0][1]
    rails = any(each.nic.role == "rail" for each, _ in faults)
    return Fail(
        subject="node",
        label="node",
        summary=f"no subnet manager on any of {len(faults)} InfiniBand ports: {named([e.label for e, _ in faults])}",
        impact="0 bytes move on InfiniBand: this node takes part in no job.",
        remedy="Start or repair the subnet manager (sminfo); look whether other nodes see it.",
        evidence=tuple(fault.evidence[0] for _, fault in faults),
        severity="critical" if rails else first.severity,
        places=frozenset().union(*(fault.places for _, fault in faults)),
    )
