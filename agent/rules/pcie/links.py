"""PCIe links as both of their ends report them, and what they should be able to do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from msgspec.structs import replace

from agent.model.finding import SEVERITIES, Evidence
from agent.model.gpu import Gpu
from agent.model.nic import Nic
from agent.model.node import Event
from agent.model.pci import CARD_SWITCHES, CXL_MEMORY, PciFunction, bandwidth_gbyte_s, speed_of_generation
from agent.model.reasons import Reason, quote_source
from agent.rules.context import RuleContext
from agent.rules.devices import device_label, pci_source, quote_with_reason, severity_by_role, why_unreachable
from agent.rules.rule import Fail, NotApplicable, Subject, Unknown
from agent.rules.wording import format_share_lost, join_labels

LANES = frozenset({1, 2, 4, 8, 12, 16, 32})
# Boards that some servers wire with half the lanes on purpose: DCGM accepts x8 (T4, A10G, L40S, A800)
OFTEN_HALF = frozenset({"0x1eb8", "0x2237", "0x26b9", "0x20f3"})
NO_LINK = Reason("judged-elsewhere", detail="no link at all: see pcie-link-down")


class PcieLink(Subject, frozen=True, dict=True):
    """One link between a port and what is below it, and what both its ends report."""

    context: RuleContext
    child: PciFunction
    parent: PciFunction | None
    severity: str | None  # of a fault on it, by the most severe device that uses it; None: no one would notice
    users: tuple[str, ...]  # labels of the devices that depend on it
    label: str  # the device, or for a switch what it leads to
    ids: frozenset[str]

    @property
    def subject(self) -> str:
        """The function below: one link, one subject."""
        return f"pci:{self.child.id}"

    @property
    def gpu(self) -> Gpu | None:
        """The GPU at its lower end."""
        return self.context.gpu_by_pci.get(self.child.id)

    @property
    def nic(self) -> Nic | None:
        """The NIC at its lower end."""
        return self.context.nic_by_pci.get(self.child.id)

    @cached_property  # asked by every rule about links
    def why_not_judged(self) -> Unknown | NotApplicable | None:
        """Why nothing can be reported of a wire; None where its numbers mean something (or the GPU is merely idle)."""
        function, link, parent = self.child, self.child.link, self.parent
        absent = why_unreachable(function)
        if absent:
            return self.not_applicable(absent)
        if self.severity is None:
            return self.not_applicable("not-in-use", detail="nothing that is in use depends on it")
        if self.context.virtual_machine:
            return self.not_applicable("guest", detail="virtual machine: the hypervisor hides real links")
        if parent and (parent.vendor, parent.device) in CARD_SWITCHES:
            return self.not_applicable("inside-card", detail="a link inside a card")
        if link is None:
            if function.parent is None:
                return self.not_applicable("other-kind", detail="part of the host bridge: no link")
            return self.unknown("not-shown", detail="the source has no data of its link")
        if link.quality.state == "asleep":
            return self.not_applicable("not-in-use", detail="asleep: a scan does not wake it")
        for end in (link, parent.link if parent else None):
            if end and end.quality.state == "untrusted":
                text = end.quality.reason or "its link registers describe no physical link"
                inside = end.quality.reason_code == "inside-card"
                return self.not_applicable(Reason("inside-card" if inside else "not-measured", detail=text))
        if link.width == 0:
            return self.not_applicable(NO_LINK)
        if link.quality.state == "unreadable":
            return self.unknown(quote_source(link.quality.reason) or Reason("not-read", fact="its link registers"))
        return None

    @property
    def why_inconclusive(self) -> Reason | None:
        """Why a link below its expectation is no evidence: a GPU slows and may narrow its link when idle."""
        link = self.child.link
        if link and link.quality.state != "conclusive":
            why = link.quality.reason or f"not conclusive: {link.quality.state}"
            return Reason("link-inconclusive", detail=f"below what it can, and {why}")
        if (self.child.vendor, self.child.device) in CARD_SWITCHES:
            return Reason("link-inconclusive", detail="below what it can, and an AMD GPU slows its link when idle")
        return None

    @property
    def expected_width(self) -> int | None:
        """Lanes that both ends can do; None where one does not show it, and the link is below what the other can."""
        link = self.child.link
        if link is None or link.max_width not in LANES:
            return None
        above = self.parent.link.max_width if self.parent and self.parent.link else None
        if above not in LANES:
            above = self.gpu.pcie.max_width if self.gpu and self.gpu.pcie else None  # the driver's: min(GPU, slot)
        if above in LANES:
            return min(link.max_width, above)
        return link.max_width if link.width == link.max_width else None

    @property
    def expected_speed(self) -> float | None:
        """GT/s that both ends can do; None as in `expected_width`."""
        link = self.child.link
        if link is None or link.max_speed_gt_s is None:
            return None
        above = self.parent.link.max_speed_gt_s if self.parent and self.parent.link else None
        if above is None:
            generation = self.gpu.pcie.max_generation if self.gpu and self.gpu.pcie else None
            above = speed_of_generation(generation)
        if above is not None:
            return min(link.max_speed_gt_s, above)
        return link.max_speed_gt_s if link.speed_gt_s == link.max_speed_gt_s else None

    @property
    def possible_bandwidth(self) -> float | None:
        """What both ends can carry together, GB/s in one direction; None where one of them does not show it."""
        return bandwidth_gbyte_s(self.expected_speed, self.expected_width)

    @property
    def retrained_evidence(self) -> tuple[Evidence, ...]:
        """That the link came down to other lanes or another speed, as the port above remembers: sticky, and undated."""
        event_texts = self.parent.retrained if self.parent else None
        if not event_texts or self.parent is None:
            return ()
        words = " and ".join(part.replace("_", " ") for part in event_texts)
        source = f"lspci -vv -s {self.parent.id} (LnkSta: BWMgmt, ABWMgmt; root)"
        return (Evidence(f"{self.parent.id} reports that the link was retrained", words, source),)

    def both_ends_evidence(self, kind: str) -> tuple[Evidence, ...]:
        """What the kernel states of both ends: `kind` is width or speed."""
        rows = []
        for function, which in ((self.child, "current"), (self.child, "max"), (self.parent, "max")):
            link = function.link if function else None
            value = _format_value(link.width if link else None, link.speed_gt_s if link else None, kind)
            if which == "max":
                value = _format_value(link.max_width if link else None, link.max_speed_gt_s if link else None, kind)
            if function and value:
                rows.append(
                    Evidence(
                        f"{which} link {kind} of {function.id}",
                        value,
                        pci_source(self.context, function.id, f"{which}_link_{kind}"),
                    )
                )
        return tuple(rows)


def pcie_links(context: RuleContext) -> tuple[PcieLink, ...]:
    """Every judged wire once, in the order of the PCI functions."""
    return context.once(_build_links)


def _build_links(context: RuleContext) -> Iterator[PcieLink]:
    severities: dict[str, list[str | None]] = {}
    users: dict[str, list[str]] = {}
    for device, severity in _relevant_devices(context):
        for place in (device, *(up for up in context.ancestors(device) if faces_up(context, up))):
            severities.setdefault(place.id, []).append(severity)
            users.setdefault(place.id, []).append(device_label(context, device.id))
    for function in context.topology.pci:
        if function.id in severities:
            grave = [s for s in severities[function.id] if s]
            label, above = device_label(context, function.id), tuple(sorted(users[function.id]))
            yield PcieLink(
                context=context,
                child=function,
                parent=context.functions.get(function.parent or ""),
                severity=max(grave, key=SEVERITIES.index, default=None),
                users=above,
                label=label if label in above else f"{label} above {join_labels(above)}",
                ids=frozenset({function.id}),
            )


def faces_up(context: RuleContext, bridge: PciFunction) -> bool:
    """Whether a bridge's link registers describe the wire above it: the upstream port of a switch.

    The kernel shows the port type to root only. Without it the structure decides: below a root bus stand root ports,
    below these upstream ports, below these downstream ports, and so on.
    """
    if bridge.port_type is not None:
        return bridge.port_type in ("upstream", "bridge")
    return len(context.ancestors(bridge)) % 2 == 1


def format_loss(now: float | None, full: float | None) -> str | None:
    """What a link carries beside what it could, for people; None where that is not known or is no loss."""
    if now is None or full is None or now >= full:
        return None
    return f"{now:.1f} instead of {full:.1f} GB/s in each direction: {format_share_lost(now, full)} less."


def kernel_evidence(context: RuleContext, *ids: str) -> tuple[Evidence, ...]:
    """What the kernel wrote of a limited link when a driver bound: it names the hop, and may be of an older state."""
    lines = [e for e in context.events if e.kind == "pcie_bandwidth" and any(place in e.text for place in ids)]
    return tuple(Evidence("kernel log", line.text, line.source) for line in lines[-2:])


def report_log_alone(
    context: RuleContext, events: Iterable[Event], what: str, impact: str, severity: str = "info"
) -> Iterator[Fail]:
    """Devices that only the kernel log names, where the PCI bus was not read."""
    lines: dict[str, list[Event]] = {}
    for event in events if context.why_bus_unread and not context.virtual_machine else ():
        if event.subject and _is_unjudged(context, event.subject):
            lines.setdefault(event.subject, []).append(event)
    for place, rows in sorted(lines.items()):
        yield replace(fail_by_log(place, place, rows, what, impact), severity=severity)


def _is_unjudged(context: RuleContext, address: str) -> bool:
    """Whether no list has the device; or one that shows a display in it, and not its driver, which separates GPUs from
    other displays."""
    function = context.functions.get(address)
    is_display = function is not None and (function.class_code or "").startswith("0x03")
    return function is None or (is_display and function.driver is None and address not in context.gpu_by_pci)


def fail_by_log(place: str, label: str, lines: Sequence[Event], what: str, impact: str) -> Fail:
    """What the kernel log alone shows of a device: worth knowing, and no measure."""
    kinds = list(
        dict.fromkeys(event.code for event in lines if event.kind == "aer" and event.code not in (None, "no-recovery"))
    )
    named = f" ({', '.join(kinds[:3])})" if kinds else ""
    return Fail(
        subject=f"pci:{place}",
        label=label,
        summary=f"kernel log: {what}{named}: {lines[-1].detail.get('before') or lines[-1].text}",
        impact=impact,
        evidence=tuple(row for event in lines[-3:] for row in quote_with_reason(event)),
        severity="info",
        confidence="medium",
        cause="log",
        ids=frozenset({place}),
    )


def _format_value(width: int | None, speed_gt_s: float | None, kind: str) -> str | None:
    if kind == "width":
        return f"x{width}" if width is not None else None
    return f"{speed_gt_s:g} GT/s" if speed_gt_s is not None else None


def _relevant_devices(context: RuleContext) -> Iterator[tuple[PciFunction, str | None]]:
    """The devices whose links matter, one function a card, with how severe a fault on that card is."""
    cards: dict[tuple[str | None, str], list[tuple[PciFunction, str | None]]] = {}
    for function in context.topology.pci:
        if function.physical_function:
            continue
        judged, severity = _severity_of_link(context, function)
        if judged:
            card = function.parent, function.id.rpartition(".")[0]
            cards.setdefault(card, []).append((function, severity))
    for members in cards.values():
        grave = [s for _, s in members if s]
        yield min((f for f, _ in members), key=lambda f: f.id), max(grave, key=SEVERITIES.index, default=None)


def _severity_of_link(context: RuleContext, function: PciFunction) -> tuple[bool, str | None]:
    nic = context.nic_by_pci.get(function.id)
    if function.id in context.gpu_by_pci:
        return True, "error"
    if nic and not nic.virtual_function:
        return True, severity_by_role("error", nic)
    if (function.class_code or "").startswith(CXL_MEMORY):
        return True, "error"  # CXL memory: its bandwidth is the link's
    in_text = context.recorded and context.why_probe_failed("pci_sysfs") is not None
    if in_text and context.why_bus_unread and function.link and (function.class_code or "0x12").startswith("0x12"):
        return True, "info"  # someone saved the link of one device: of an unknown kind, or an unknown accelerator
    return (function.class_code or "").startswith("0x010802"), "warning"
