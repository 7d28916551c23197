"""PCIe links as both of their ends report them, and what they should be able to do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec
from msgspec.structs import replace

from agent.model.finding import SEVERITIES, Evidence
from agent.model.node import Event
from agent.model.pci import CARD_SWITCHES, CXL_MEMORY, PciFunction
from agent.model.reasons import Reason, quote_source
from agent.rules.context import RuleContext
from agent.rules.devices import device_label, pci_source, severity_by_role, unreachable_reason
from agent.rules.rule import Fail, NotApplicable, Unknown
from agent.rules.wording import format_share_lost, join_labels

LANES = frozenset({1, 2, 4, 8, 12, 16, 32})
# Boards that some servers wire with half the lanes on purpose: DCGM accepts x8 (T4, A10G, L40S, A800)
OFTEN_HALF = frozenset({"0x1eb8", "0x2237", "0x26b9", "0x20f3"})
NO_LINK = Reason("judged-elsewhere", detail="no link at all: see pcie-link-down")

# GB/s (10^9 bytes) of one lane in one direction after line coding (PCIe Base Specification; 64 GT/s: FLIT mode)
GBYTE_S_PER_LANE = {2.5: 0.25, 5.0: 0.5, 8.0: 0.9846, 16.0: 1.9692, 32.0: 3.9385, 64.0: 7.375, 128.0: 14.75}


class PcieLink(msgspec.Struct, frozen=True):
    """One link between a port and what is below it."""

    child: PciFunction
    parent: PciFunction | None
    severity: str | None  # of a fault on it, by the gravest device that uses it; None: nobody would notice
    users: tuple[str, ...]  # labels of the devices that depend on it
    places: frozenset[str]

    @property
    def subject(self) -> str:
        """The function below: one link, one subject."""
        return f"pci:{self.child.id}"


def pcie_links(case: RuleContext) -> tuple[PcieLink, ...]:
    """Every judged wire once, in the order of the PCI functions."""
    return case.once(_build_links)


def _build_links(case: RuleContext) -> Iterator[PcieLink]:
    severities: dict[str, list[str | None]] = {}
    users: dict[str, list[str]] = {}
    for device, severity in _relevant_devices(case):
        for place in (device, *(up for up in case.ancestors(device) if faces_up(case, up))):
            severities.setdefault(place.id, []).append(severity)
            users.setdefault(place.id, []).append(device_label(case, device.id))
    for function in case.topology.pci:
        if function.id in severities:
            grave = [s for s in severities[function.id] if s]
            yield PcieLink(
                child=function,
                parent=case.functions.get(function.parent or ""),
                severity=max(grave, key=SEVERITIES.index, default=None),
                users=tuple(sorted(users[function.id])),
                places=frozenset({function.id}),
            )


def faces_up(case: RuleContext, bridge: PciFunction) -> bool:
    """Whether a bridge's link registers describe the wire above it: the upstream port of a switch.

    The kernel shows the port type to root only. Without it the structure tells: below a root bus stand root ports,
    below these upstream ports, below these downstream ports, and so on.
    """
    if bridge.port_type is not None:
        return bridge.port_type in ("upstream", "bridge")
    return len(case.ancestors(bridge)) % 2 == 1


def not_judged_reason(case: RuleContext, wire: PcieLink) -> Unknown | NotApplicable | None:
    """Why nothing can be said of a wire; None where its numbers mean something (or the GPU is merely idle)."""
    function, link, parent = wire.child, wire.child.link, wire.parent
    absent = unreachable_reason(function)
    if absent:
        return NotApplicable(wire.subject, absent)
    if wire.severity is None:
        return NotApplicable(wire.subject, Reason("not-in-use", detail="nothing that is in use depends on it"))
    if case.virtual_machine:
        return NotApplicable(wire.subject, Reason("guest", detail="virtual machine: the hypervisor hides real links"))
    if parent and (parent.vendor, parent.device) in CARD_SWITCHES:
        return NotApplicable(wire.subject, Reason("inside-card", detail="a link inside a card"))
    if link is None:
        if function.parent is None:
            return NotApplicable(wire.subject, Reason("other-kind", detail="part of the host bridge: no link"))
        return Unknown(wire.subject, Reason("not-shown", detail="the source has no data of its link"))
    if link.quality.state == "asleep":
        return NotApplicable(wire.subject, Reason("not-in-use", detail="asleep: a scan does not wake it"))
    for end in (link, parent.link if parent else None):
        if end and end.quality.state == "untrusted":
            text = end.quality.reason or "its link registers describe no physical link"
            inside = end.quality.reason_code == "inside-card"
            return NotApplicable(wire.subject, Reason("inside-card" if inside else "not-measured", detail=text))
    if link.width == 0:
        return NotApplicable(wire.subject, NO_LINK)
    if link.quality.state == "unreadable":
        return Unknown(wire.subject, quote_source(link.quality.reason) or Reason("not-read", fact="its link registers"))
    return None


def inconclusive_reason(wire: PcieLink) -> Reason | None:
    """Why a link below its expectation proves nothing: a GPU slows and may narrow its link when idle."""
    link = wire.child.link
    if link and link.quality.state != "conclusive":
        why = link.quality.reason or f"not conclusive: {link.quality.state}"
        return Reason("link-inconclusive", detail=f"below what it can, and {why}")
    if (wire.child.vendor, wire.child.device) in CARD_SWITCHES:
        return Reason("link-inconclusive", detail="below what it can, and an AMD GPU slows its link when idle")
    return None


def expected_width(case: RuleContext, wire: PcieLink) -> int | None:
    """Lanes that both ends can do; None where one end does not say and the link is below the other's maximum."""
    link = wire.child.link
    if link is None or link.max_width not in LANES:
        return None
    above = wire.parent.link.max_width if wire.parent and wire.parent.link else None
    if above not in LANES:
        gpu = case.gpu_by_pci.get(wire.child.id)
        above = gpu.pcie.max_width if gpu and gpu.pcie else None  # the driver's: min(GPU, slot)
    if above in LANES:
        return min(link.max_width, above)
    return link.max_width if link.width == link.max_width else None


def expected_speed(case: RuleContext, wire: PcieLink) -> float | None:
    """GT/s that both ends can do; None as in `expected_width`."""
    link = wire.child.link
    if link is None or link.max_speed_gt_s is None:
        return None
    above = wire.parent.link.max_speed_gt_s if wire.parent and wire.parent.link else None
    if above is None:
        gpu = case.gpu_by_pci.get(wire.child.id)
        generation = gpu.pcie.max_generation if gpu and gpu.pcie else None
        above = dict(enumerate(GBYTE_S_PER_LANE, start=1)).get(generation or 0)
    if above is not None:
        return min(link.max_speed_gt_s, above)
    return link.max_speed_gt_s if link.speed_gt_s == link.max_speed_gt_s else None


def bandwidth(speed_gt_s: float | None, width: int | None) -> float | None:
    """GB/s in one direction, after line coding; None where either is not known."""
    lane = GBYTE_S_PER_LANE.get(speed_gt_s) if speed_gt_s is not None else None
    return lane * width if lane and width else None


def format_loss(now: float | None, full: float | None) -> str | None:
    """What a link carries beside what it could, for people; None where that is not known or is no loss."""
    if now is None or full is None or now >= full:
        return None
    return f"{now:.1f} instead of {full:.1f} GB/s in each direction: {format_share_lost(now, full)} less."


def possible_bandwidth(case: RuleContext, wire: PcieLink) -> float | None:
    """What both ends of a wire can carry together, GB/s in one direction; None where one of them does not say."""
    return bandwidth(expected_speed(case, wire), expected_width(case, wire))


def retrained_evidence(wire: PcieLink) -> tuple[Evidence, ...]:
    """That the link came down to other lanes or another speed, as the port above remembers: sticky, and undated."""
    event_texts = wire.parent.retrained if wire.parent else None
    if not event_texts or wire.parent is None:
        return ()
    words = " and ".join(part.replace("_", " ") for part in event_texts)
    source = f"lspci -vv -s {wire.parent.id} (LnkSta: BWMgmt, ABWMgmt; root)"
    return (Evidence(what=f"{wire.parent.id} reports that the link was retrained", value=words, source=source),)


def kernel_evidence(case: RuleContext, *places: str) -> tuple[Evidence, ...]:
    """What the kernel wrote of a limited link when a driver bound: it names the hop, and may be of an older state."""
    lines = [e for e in case.events if e.kind == "pcie_bandwidth" and any(place in e.text for place in places)]
    return tuple(Evidence(what="kernel log", value=line.text, source=line.source) for line in lines[-2:])


def report_log_alone(
    case: RuleContext, events: Iterable[Event], what: str, impact: str, severity: str = "info"
) -> Iterator[Fail]:
    """Devices that only the kernel log names, where the PCI bus was not read."""
    lines: dict[str, list[Event]] = {}
    for event in events if case.bus_unread and not case.virtual_machine else ():
        if event.subject and _is_unjudged(case, event.subject):
            lines.setdefault(event.subject, []).append(event)
    for place, rows in sorted(lines.items()):
        yield replace(fail_by_log(place, place, rows, what, impact), severity=severity)


def _is_unjudged(case: RuleContext, address: str) -> bool:
    """Whether no list has the device; or one that shows a display in it, and not its driver, which tells GPUs from
    other displays."""
    function = case.functions.get(address)
    is_display = function is not None and (function.class_code or "").startswith("0x03")
    return function is None or (is_display and function.driver is None and address not in case.gpu_by_pci)


def fail_by_log(place: str, label: str, lines: Sequence[Event], what: str, impact: str) -> Fail:
    """What the kernel log alone shows of a device: worth knowing, and no measure."""
    return Fail(
        subject=f"pci:{place}",
        label=label,
        summary=f"kernel log: {what}: {lines[-1].text}",
        impact=impact,
        evidence=tuple(Evidence(what="kernel log", value=event.text, source=event.source) for event in lines[-3:]),
        severity="info",
        confidence="medium",
        cause="log",
        places=frozenset({place}),
    )


def link_label(case: RuleContext, wire: PcieLink) -> str:
    """The device, or for a switch what it leads to."""
    label = device_label(case, wire.child.id)
    return label if label in wire.users else f"{label} above {join_labels(wire.users)}"


def both_ends_evidence(case: RuleContext, wire: PcieLink, kind: str) -> tuple[Evidence, ...]:
    """What the kernel says of both ends: `kind` is width or speed."""
    rows = []
    for function, which in ((wire.child, "current"), (wire.child, "max"), (wire.parent, "max")):
        link = function.link if function else None
        value = _format_value(link.width if link else None, link.speed_gt_s if link else None, kind)
        if which == "max":
            value = _format_value(link.max_width if link else None, link.max_speed_gt_s if link else None, kind)
        if function and value:
            rows.append(
                Evidence(
                    what=f"{which} link {kind} of {function.id}",
                    value=value,
                    source=pci_source(case, function.id, f"{which}_link_{kind}"),
                )
            )
    return tuple(rows)


def _format_value(width: int | None, speed_gt_s: float | None, kind: str) -> str | None:
    if kind == "width":
        return f"x{width}" if width is not None else None
    return f"{speed_gt_s:g} GT/s" if speed_gt_s is not None else None


def _relevant_devices(case: RuleContext) -> Iterator[tuple[PciFunction, str | None]]:
    """The devices whose links matter, one function a card, with how grave a fault on that card is."""
    cards: dict[tuple[str | None, str], list[tuple[PciFunction, str | None]]] = {}
    for function in case.topology.pci:
        if function.physical_function:
            continue
        judged, severity = _severity_of_link(case, function)
        if judged:
            card = function.parent, function.id.rpartition(".")[0]
            cards.setdefault(card, []).append((function, severity))
    for members in cards.values():
        grave = [s for _, s in members if s]
        yield min((f for f, _ in members), key=lambda f: f.id), max(grave, key=SEVERITIES.index, default=None)


def _severity_of_link(case: RuleContext, function: PciFunction) -> tuple[bool, str | None]:
    nic = case.nic_by_pci.get(function.id)
    if function.id in case.gpu_by_pci:
        return True, "error"
    if nic and not nic.virtual_function:
        return True, severity_by_role("error", nic)
    if (function.class_code or "").startswith(CXL_MEMORY):
        return True, "error"  # CXL memory: its bandwidth is the link's
    in_text = case.recorded and case.probe_failure("pci_sysfs") is not None
    if in_text and case.bus_unread and function.link and (function.class_code or "0x12").startswith("0x12"):
        return True, "info"  # somebody saved the link of one device: of an unknown kind, or an unknown accelerator
    return (function.class_code or "").startswith("0x010802"), "warning"
