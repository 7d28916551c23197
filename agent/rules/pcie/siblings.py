"""Links that should be alike: those of cards of one product and one use."""

from __future__ import annotations

from collections.abc import Hashable

from agent.rules.case import Case
from agent.rules.pcie.wires import Wire, unjudged, wires


def kind(case: Case, wire: Wire) -> Hashable | None:
    """What siblings have in common: vendor, device, subsystem and role; None where it is not known enough."""
    function, nic = wire.child, case.nic_by_pci.get(wire.child.id)
    if function.id not in case.gpu_by_pci and nic is None:
        return None
    ids = (function.vendor, function.device, function.subsystem_vendor, function.subsystem_device)
    return None if None in ids[:2] else (*ids, nic.role if nic else "gpu")


def siblings(case: Case, wire: Wire) -> list[Wire]:
    """The judged links of other cards of its kind."""
    own = kind(case, wire)
    if own is None:
        return []
    others = (other for other in wires(case) if other.child.id != wire.child.id and kind(case, other) == own)
    return [other for other in others if unjudged(case, other) is None]
