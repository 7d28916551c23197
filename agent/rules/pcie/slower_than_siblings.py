"""pcie-slower-than-siblings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator

from agent.model.finding import Evidence
from agent.rules.case import Case
from agent.rules.counting import majority, named
from agent.rules.devices import by_role, pci_source
from agent.rules.pcie.siblings import kind
from agent.rules.pcie.wires import (
    Wire,
    expected_speed,
    expected_width,
    loss,
    reach,
    retrained,
    unjudged,
    wire_label,
    wires,
)
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule


@rule("pcie-slower-than-siblings", "warning", needs=("pci|lspci",), references=("PCIE-007",))
def pcie_slower_than_siblings(case: Case) -> Iterator[Answer]:
    """A card can do less on its link than the other cards of its kind on this node.

    ## What it checks
    GPUs, and NICs that can do RDMA, of the same vendor, device, subsystem and use, against each other. No table of
    expected values is asked.

    ## Why it matters
    A collective is as fast as its slowest member: one of 8 GPUs on half a link holds back all 8.

    ## How it is decided
    The lanes and the speed that a link can reach (the lesser of what its two ends say that they can) are compared with
    those of most cards of its kind. What a link reaches at the moment does not count: pcie-width-downgraded and
    pcie-speed-downgraded judge that, and an idle GPU is slow. GPUs and rails: warning; other NICs: info.

    ## What keeps it silent
    - A lone card, and cards of which no majority is alike: nothing to compare with, not applicable.
    - Virtual machines, emulated and synthetic ports, links inside a card; NICs without a use: not applicable.
    - What a link can reach is not known: unknown.

    ## How to confirm
    `lspci -vv -s ADDRESS | grep LnkCap:` on this card, on another of its kind, and on the ports above both.

    ## How to fix
    Compare slot, riser and BIOS settings of the two; exchange the cards to see whether it moves along.

    ## Source
    Linux `drivers/pci/pci-sysfs.c`.
    """
    families: dict[Hashable, list[Wire]] = defaultdict(list)
    for wire in sorted(wires(case), key=lambda each: each.child.id):
        own = kind(case, wire)
        if own is None:
            continue
        silent = unjudged(case, wire)
        if silent:
            yield silent
        elif reach(case, wire) is None:
            yield Unknown(wire.subject, "what both its ends can do is not known")
        else:
            families[own].append(wire)
    for family in families.values():
        yield from _compared(case, family)


def _compared(case: Case, family: list[Wire]) -> Iterator[Answer]:
    usual = majority((expected_speed(case, wire), expected_width(case, wire)) for wire in family)
    if usual is None:
        why = "no other card of its kind" if len(family) == 1 else "no majority of its kind is alike"
        yield from (NotApplicable(wire.subject, why) for wire in family)
        return
    like = [wire for wire in family if (expected_speed(case, wire), expected_width(case, wire)) == usual]
    most = reach(case, like[0]) or 0.0
    for wire in family:
        slower = (reach(case, wire) or 0.0) < most
        yield _fault(case, wire, like) if slower else Pass(wire.subject)


def _fault(case: Case, wire: Wire, like: list[Wire]) -> Fail:
    nic = case.nic_by_pci.get(wire.child.id)
    now, full = reach(case, wire), reach(case, like[0])
    return Fail(
        subject=wire.subject,
        label=wire_label(case, wire),
        summary=f"its link can do {_said(case, wire)}; those of {named([wire_label(case, each) for each in like])} "
        f"can do {_said(case, like[0])}",
        impact=loss(now, full) or "0 % known.",
        remedy="Compare slot, riser and BIOS settings with those of the others; exchange the cards.",
        evidence=(
            *(
                Evidence(
                    what=f"most that the link of {each.child.id} can do",
                    value=_said(case, each),
                    source=pci_source(case, each.child.id, "max_link_width"),
                )
                for each in (wire, like[0])
            ),
            *retrained(wire),
        ),
        severity=(by_role("warning", nic) or "info") if nic else None,
        places=wire.places,
    )


def _said(case: Case, wire: Wire) -> str:
    return f"x{expected_width(case, wire)} at {expected_speed(case, wire):g} GT/s"
