"""Switches of one shape compared: what is below each port of one is below the same port of the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from agent.model.finding import Evidence
from agent.model.pci import PciFunction
from agent.model.reasons import Reason
from agent.rules.context import RuleContext
from agent.rules.devices import device_label, near_rail_id, pci_source
from agent.rules.rule import Fail, NotApplicable, Pass, Result, Unknown, rule
from agent.rules.wording import find_majority, join_labels

_BRIDGE = "0x0604"
_LEAST_ALIKE = 3  # branches that have a device which one lacks; of two branches, ports with that kind in both
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
def pci_branch_differs(case: RuleContext) -> Iterator[Result]:
    if case.virtual_machine:
        yield NotApplicable("node", Reason("guest", detail="virtual machine: the hypervisor controls its PCI tree"))
        return
    if case.bus_unread:
        yield Unknown("node", case.bus_unread)
        return
    shapes: dict[tuple[object, ...], list[_Branch]] = {}
    for branch in _find_branches(case):
        shapes.setdefault(branch.shape, []).append(branch)
    alike = [branches for branches in shapes.values() if len(branches) > 1]
    if not alike:
        yield NotApplicable("node", Reason("nothing-to-compare", detail="no two PCIe switches of one shape"))
    for branches in alike:
        yield from _compare(case, branches)


def _find_branches(case: RuleContext) -> Iterator[_Branch]:
    """Every bridge with several bridges right below it, which are the downstream ports of a switch."""
    ports: dict[str, dict[str, PciFunction]] = {}
    below: dict[str, list[PciFunction]] = {}
    for function in case.topology.pci:
        if _is_bridge(function):
            ports.setdefault(function.parent or "", {})[function.id[-4:]] = function
        elif not function.physical_function:
            for above in case.ancestors(function):
                below.setdefault(above.id, []).append(function)
    for top in case.topology.pci:
        own = ports.get(top.id, {})
        if len(own) > 1:
            yield _Branch(top, own, {place: tuple(below.get(port.id, ())) for place, port in own.items()})


def _is_bridge(function: PciFunction) -> bool:
    return (function.class_code or "").startswith(_BRIDGE)


def _compare(case: RuleContext, branches: Sequence[_Branch]) -> Iterator[Result]:
    differing: set[str] = set()
    for place in sorted(branches[0].ports):
        filled = [branch for branch in branches if branch.below[place]]
        kinds = {branch.top.id: _kind(case, branch.below[place]) for branch in filled}
        kind = find_majority(kinds.values()) if len(set(kinds.values())) > 1 else next(iter(kinds.values()), None)
        if kind is None:
            continue
        alike = [branch for branch in filled if kinds[branch.top.id] == kind]
        empty = [branch for branch in branches if branch not in filled]
        usual_functions = alike[0].below[place]
        others = [one for one in filled if _is_another_model(case, one.below[place], usual_functions)]
        if len(alike) == len(filled) and _is_most(case, len(empty), branches, place, kind):
            differing.update(branch.top.id for branch in empty)
            yield from (_fail_branch_differs(case, branch, place, alike) for branch in empty)
        elif len(alike) == len(branches) - 1 >= _LEAST_ALIKE:
            differing.update(branch.top.id for branch in others)
            yield from (_fail_other_model(case, branch, place, alike) for branch in others)
    yield from (Pass(f"pci:{branch.top.id}") for branch in branches if branch.top.id not in differing)


def _is_another_model(
    case: RuleContext, functions: Sequence[PciFunction], usual_functions: Sequence[PciFunction]
) -> bool:
    """Whether a GPU or NIC of the same maker, with as many functions, is in the place of a GPU or rail."""
    known = all(function.id in case.gpu_by_pci or function.id in case.nic_by_pci for function in functions)
    alike = len(functions) == len(usual_functions) and {f.vendor for f in functions} == {
        f.vendor for f in usual_functions
    }
    return known and alike and {f.device for f in functions} != {f.device for f in usual_functions}


def _kind(case: RuleContext, functions: Sequence[PciFunction]) -> tuple[str, str] | None:
    """The GPU or rail below a port, by vendor and device; None: something else, or more than that."""
    kinds = {(function.vendor or "", function.device or "") for function in functions}
    used = all(
        function.id in case.gpu_by_pci or ((nic := case.nic_by_pci.get(function.id)) is not None and nic.role == "rail")
        for function in functions
    )
    return kinds.pop() if len(kinds) == 1 and used else None


def _is_most(case: RuleContext, empty: int, branches: Sequence[_Branch], place: str, kind: tuple[str, str]) -> bool:
    """Whether so many have the device that a port without it is no choice of the builder."""
    if len(branches) > 2:
        return len(branches) - empty >= max(_LEAST_ALIKE, empty + 1)
    others = [[len(branch.below[at]) for branch in branches] for at in branches[0].ports if at != place]
    complete = all(len({bool(number) for number in numbers}) == 1 for numbers in others)
    have = sum(_kind(case, below) == kind for branch in branches for below in branch.below.values())
    return complete and have >= _LEAST_OF_TWO


def _fail_branch_differs(case: RuleContext, branch: _Branch, place: str, others: Sequence[_Branch]) -> Fail:
    port = branch.ports[place]
    examples = [function for other in others for function in other.below[place]]
    is_gpu = examples[0].id in case.gpu_by_pci
    what = "GPU" if is_gpu else "rail NIC"
    have = len(case.topology.gpus) if is_gpu else len(case.rails)
    near = [
        gpu.id for gpu in case.topology.gpus if branch.top in case.ancestors(case.functions.get(gpu.pci or "") or port)
    ]
    slot = f" (slot {port.slot})" if port.slot else ""
    return Fail(
        subject=f"pci:{port.id}",
        label=f"PCIe port {port.id}",
        summary=f"nothing below this switch port{slot}; the same port of {len(others)} other switches has a {what}",
        impact=f"{have} {what}s are on the bus; jobs that ask for one more do not start, or run without it.",
        evidence=(
            Evidence(what=f"below {port.id}", value="nothing", source=pci_source(case, port.id, "")),
            *(
                Evidence(
                    what=f"below {other.ports[place].id}",
                    value=join_labels([_describe(case, function) for function in other.below[place]]),
                    source=pci_source(case, other.ports[place].id, ""),
                )
                for other in others[:8]
            ),
        ),
        confidence="medium",
        cause=what,
        places=frozenset(
            {port.id, "count of GPUs" if is_gpu else "count of rails", *(() if is_gpu else map(near_rail_id, near))}
        ),
    )


def _fail_other_model(case: RuleContext, branch: _Branch, place: str, others: Sequence[_Branch]) -> Fail:
    """A device of another make where the other switches all have one: exchanged, or in the wrong place."""
    port, function, usual_functions = branch.ports[place], branch.below[place][0], others[0].below[place][0]
    return Fail(
        subject=f"pci:{function.id}",
        label=device_label(case, function.id),
        summary=f"{_describe(case, function)} is below {port.id}; the same port of {len(others)} other switches has "
        f"{_describe(case, usual_functions)}",
        impact="The GPUs of this switch have no NIC, or other GPUs than the rest: jobs run at the speed of this one.",
        evidence=tuple(
            Evidence(
                what=f"below {one.ports[place].id}",
                value=join_labels([_describe(case, function) for function in one.below[place]]),
                source=pci_source(case, one.ports[place].id, ""),
            )
            for one in (branch, *others[:7])
        ),
        severity="warning",
        confidence="medium",
        situation="other-model",
        cause="other model",
        places=frozenset({function.id}),
    )


def _describe(case: RuleContext, function: PciFunction) -> str:
    device = case.gpu_by_pci.get(function.id) or case.nic_by_pci.get(function.id)
    return f"{device.label if device else function.name or function.id} ({function.vendor}:{function.device})"
