"""nic-fw-mixed."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.model.nic import Nic
from agent.rules.case import Case
from agent.rules.counting import majority, named
from agent.rules.devices import away, function_of
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule


@rule("nic-fw-mixed", "warning", needs=("rdma|rdma_tools",), references=("nic-fw-mixed",))
def nic_fw_mixed(case: Case) -> Iterator[Answer]:
    """Rails of one board type run different firmware.

    ## What it checks
    The firmware version of all rails, board type (PSID) by board type.

    ## Why it matters
    Congestion control, FEC and adaptive routing live in the firmware: one rail of eight that behaves otherwise makes
    stragglers (1/8 of the traffic) that no configuration explains, and known bugs stay in on one card only.

    ## How it is decided
    NICs with the same board id (PSID) have different `fw_ver`. One finding for each board type; it names the version
    that most of them run, and those that do not.

    ## What keeps it silent
    - NICs of different board types may have different firmware. Storage and management NICs are not compared.
    - Virtual functions and virtual machines, whose firmware is the provider's; software devices, functions that a
      fabric manager owns, NICs that sleep or are gone; a single NIC of its type: not applicable.
    - Board id or firmware version could not be read, or which NICs are rails is not known: unknown.
    - A rolling upgrade looks the same until it is done.

    ## How to confirm
    `grep . /sys/class/infiniband/*/{board_id,fw_ver}`

    ## How to fix
    Bring all to one version (`mlxfwmanager`, `mstflint`) and reset the NICs (`mlxfwreset`).

    ## Source
    Linux `Documentation/ABI/stable/sysfs-class-infiniband` (fw_ver, board_id).
    """
    boards: dict[str, list[Nic]] = {}
    for nic in sorted(case.rails, key=lambda each: each.id):
        silent = _unjudged(case, nic)
        if silent:
            yield silent
        else:
            boards.setdefault(nic.board_id or "", []).append(nic)
    if case.no_rail_known and not case.virtual_machine:
        yield Unknown("node", case.no_rail_known)
    elif not case.rails and (case.bus_unread is None or case.probe_failure("rdma|rdma_tools") is None):
        yield NotApplicable("node", "no rail")
    for board, nics in sorted(boards.items()):
        yield from _judge(board, nics)


def _unjudged(case: Case, nic: Nic) -> Answer | None:
    subject = f"pci:{nic.pci or nic.id}"
    absent = away(function_of(case, nic))
    if case.virtual_machine or nic.virtual_function:
        return NotApplicable(subject, "a virtual function or machine: the provider's firmware")
    if nic.software or nic.limited:
        return NotApplicable(subject, f"not a NIC for jobs: {nic.limited or 'a software device'}")
    if absent:
        return NotApplicable(subject, absent)
    if nic.board_id is None or nic.firmware is None:
        return Unknown(subject, "its board id or firmware version could not be read")
    return None


def _judge(board: str, nics: list[Nic]) -> Iterator[Answer]:
    if len(nics) < 2:
        yield NotApplicable(f"pci:{nics[0].pci or nics[0].id}", "the only NIC of its board type")
        return
    usual = majority(nic.firmware for nic in nics)
    odd = [nic for nic in nics if nic.firmware != usual]
    yield from (Pass(f"pci:{nic.pci or nic.id}") for nic in nics if nic not in odd)
    if odd:
        yield _fault(board, nics, odd, usual)


def _fault(board: str, nics: list[Nic], odd: list[Nic], usual: str | None) -> Fail:
    alone = odd[0] if len(odd) == 1 else None
    others = ", ".join(f"{nic.label} {nic.firmware}" for nic in odd[:8])
    told = f"most run {usual}, {others}" if usual else f"no version has a majority: {others}"
    return Fail(
        subject=f"pci:{alone.pci or alone.id}" if alone else "node",
        label=alone.label if alone else "node",
        summary=f"rails of board {board} run different firmware: {told}",
        impact=f"{len(odd)} of {len(nics)} rails behave unlike the others; collectives wait for the slowest.",
        remedy=f"Bring {named([nic.label for nic in odd])} to {usual or 'one version'} (mlxfwmanager), and reset.",
        evidence=tuple(
            Evidence(
                what=f"firmware of {nic.label}",
                value=nic.firmware or "",
                source=f"/sys/class/infiniband/{nic.rdma_device or nic.label}/fw_ver",
            )
            for nic in nics
        ),
        cause=board,
        places=frozenset(nic.id for nic in odd),
    )
