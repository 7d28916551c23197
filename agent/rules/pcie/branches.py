"""Switches of one shape compared: what is below each port of one is below the same port of the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from agent.model.finding import Evidence
from agent.model.pci import PciFunction
from agent.rules.context import RuleContext
from agent.rules.devices import about_function, near_rail_id, pci_source
from agent.rules.rule import NODE, Fail, Result, rule
from agent.rules.wording import find_majority, join_labels

_BRIDGE = "0x0604"
_LEAST_ALIKE = 3  # branches that have a device which one does not have; of two branches, ports with that kind in both
_LEAST_OF_TWO = 7  # seven of eight


class _Branch(msgspec.Struct, frozen=True):
    """One switch: its upstream port, and what is below each of its downstream ports, by their device and function."""

    top: PciFunction
    ports: Mapping[str, PciFunction]
    below: Mapping[str, tuple[PciFunction, ...]]

    @property
    def shape(self) -> tuple[object, ...]:
        """What switches have in common that are compared."""
        return self.top.vendor, self.top.device, *sorted(self.ports)


@rule("pci-branch-differs")
def pci_branch_differs(context: RuleContext) -> Iterator[Result]:
    if context.virtual_machine:
        yield NODE.not_applicable("guest", detail="virtual machine: the hypervisor controls its PCI tree")
        return
    if context.why_bus_unread:
        yield NODE.unknown(context.why_bus_unread)
        return
    shapes: dict[tuple[object, ...], list[_Branch]] = {}
    for branch in _find_branches(context):
        shapes.setdefault(branch.shape, []).append(branch)
    alike = [branches for branches in shapes.values() if len(branches) > 1]
    if not alike:
        yield NODE.not_applicable("nothing-to-compare", detail="no two PCIe switches of one shape")
    for branches in alike:
        yield from _compare(context, branches, _count_same_chip(context, shapes, branches[0]))


def _count_same_chip(
    context: RuleContext, shapes: Mapping[tuple[object, ...], Sequence[_Branch]], like: _Branch
) -> Counter[tuple[str, str] | None]:
    """How many ports have each kind of device, of all switches of one chip: those of a server may have two shapes."""
    chips = [branch for branches in shapes.values() for branch in branches if branch.shape[:2] == like.shape[:2]]
    return Counter(_kind(context, below) for branch in chips for below in branch.below.values())


def _find_branches(context: RuleContext) -> Iterator[_Branch]:
    """Every bridge with several bridges right below it, which are the downstream ports of a switch."""
    ports: dict[str, dict[str, PciFunction]] = {}
    below: dict[str, list[PciFunction]] = {}
    for function in context.topology.pci:
        if (function.class_code or "").startswith(_BRIDGE):
            ports.setdefault(function.parent or "", {})[function.id[-4:]] = function
        elif not function.physical_function:
            for above in context.ancestors(function):
                below.setdefault(above.id, []).append(function)
    for top in context.topology.pci:
        own = ports.get(top.id, {})
        if len(own) > 1:
            yield _Branch(top, own, {place: tuple(below.get(port.id, ())) for place, port in own.items()})


def _compare(
    context: RuleContext, branches: Sequence[_Branch], same_chip: Mapping[tuple[str, str] | None, int]
) -> Iterator[Result]:
    differing: set[str] = set()
    for place in sorted(branches[0].ports):
        filled = [branch for branch in branches if branch.below[place]]
        kinds = {branch.top.id: _kind(context, branch.below[place]) for branch in filled}
        kind = find_majority(kinds.values()) if len(set(kinds.values())) > 1 else next(iter(kinds.values()), None)
        if kind is None:
            continue
        alike = [branch for branch in filled if kinds[branch.top.id] == kind]
        empty = [branch for branch in branches if branch not in filled]
        usual_functions = alike[0].below[place]
        others = [one for one in filled if _is_another_model(context, one.below[place], usual_functions)]
        if len(alike) == len(filled) and _is_most(len(empty), branches, place, same_chip.get(kind, 0)):
            differing.update(branch.top.id for branch in empty)
            yield from (_fail_branch_differs(context, branch, place, alike) for branch in empty)
        elif len(alike) == len(branches) - 1 >= _LEAST_ALIKE:
            differing.update(branch.top.id for branch in others)
            yield from (_fail_other_model(context, branch, place, alike) for branch in others)
    yield from (
        about_function(context, branch.top.id).passes() for branch in branches if branch.top.id not in differing
    )


def _is_another_model(
    context: RuleContext, functions: Sequence[PciFunction], usual_functions: Sequence[PciFunction]
) -> bool:
    """Whether a GPU or NIC of the same maker, with as many functions, is in the place of a GPU or rail."""
    known = all(
        function.device is not None and (function.id in context.gpu_by_pci or function.id in context.nic_by_pci)
        for function in functions
    )
    alike = len(functions) == len(usual_functions) and {f.vendor for f in functions} == {
        f.vendor for f in usual_functions
    }
    return known and alike and {f.device for f in functions} != {f.device for f in usual_functions}


def _kind(context: RuleContext, functions: Sequence[PciFunction]) -> tuple[str, str] | None:
    """The GPU or rail below a port, by vendor and device; None: something else, or more than that."""
    kinds = {(function.vendor or "", function.device or "") for function in functions}
    used = all(
        function.id in context.gpu_by_pci
        or ((nic := context.nic_by_pci.get(function.id)) is not None and nic.role == "rail")
        for function in functions
    )
    return kinds.pop() if len(kinds) == 1 and used else None


def _is_most(empty: int, branches: Sequence[_Branch], place: str, have: int) -> bool:
    """Whether so many have the device that a port without it is no choice of the builder."""
    if len(branches) > 2:
        return len(branches) - empty >= max(_LEAST_ALIKE, empty + 1)
    others = [[len(branch.below[at]) for branch in branches] for at in branches[0].ports if at != place]
    complete = all(len({bool(number) for number in numbers}) == 1 for numbers in others)
    return complete and have >= _LEAST_OF_TWO


def _fail_branch_differs(context: RuleContext, branch: _Branch, place: str, others: Sequence[_Branch]) -> Fail:
    port = branch.ports[place]
    examples = [function for other in others for function in other.below[place]]
    is_gpu = examples[0].id in context.gpu_by_pci
    what = "GPU" if is_gpu else "rail NIC"
    have = len(context.topology.gpus) if is_gpu else len(context.rails)
    near = [
        gpu.id
        for gpu in context.topology.gpus
        if branch.top in context.ancestors(context.functions.get(gpu.pci or "") or port)
    ]
    slot = f" (slot {port.slot})" if port.slot else ""
    return about_function(context, port.id).fail(
        label=f"PCIe port {port.id}",
        summary=f"nothing below this switch port{slot}; the same port of {_count_others(others)} has a {what}",
        impact=f"{have} {what}s are on the bus; jobs that ask for one more do not start, or run without it.",
        evidence=(
            Evidence(f"below {port.id}", "nothing", pci_source(context, port.id, "")),
            *(
                Evidence(
                    f"below {other.ports[place].id}",
                    join_labels([_describe(context, function) for function in other.below[place]]),
                    pci_source(context, other.ports[place].id, ""),
                )
                for other in others[:8]
            ),
        ),
        confidence="medium",
        cause=what,
        ids=frozenset(
            {port.id, "count of GPUs" if is_gpu else "count of rails", *(() if is_gpu else map(near_rail_id, near))}
        ),
    )


def _fail_other_model(context: RuleContext, branch: _Branch, place: str, others: Sequence[_Branch]) -> Fail:
    """A device of another make where the other switches all have one: exchanged, or in the wrong place."""
    port, function, usual_functions = branch.ports[place], branch.below[place][0], others[0].below[place][0]
    return about_function(context, function.id).fail(
        summary=f"{_describe(context, function)} is below {port.id}; the same port of {_count_others(others)} has "
        f"{_describe(context, usual_functions)}",
        impact="The GPUs of this switch have no NIC, or other GPUs than the rest: jobs run at the speed of this one.",
        evidence=tuple(
            Evidence(
                f"below {one.ports[place].id}",
                join_labels([_describe(context, function) for function in one.below[place]]),
                pci_source(context, one.ports[place].id, ""),
            )
            for one in (branch, *others[:7])
        ),
        severity="warning",
        confidence="medium",
        situation="other-model",
        cause="other model",
    )


def _count_others(others: Sequence[_Branch]) -> str:
    return "1 other switch" if len(others) == 1 else f"{len(others)} other switches"


def _describe(context: RuleContext, function: PciFunction) -> str:
    device = context.gpu_by_pci.get(function.id) or context.nic_by_pci.get(function.id)
    return f"{device.label if device else function.name or function.id} ({function.vendor}:{function.device})"
