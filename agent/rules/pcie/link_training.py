"""PCIe links that trained narrower or slower than both ends support, or whose ends disagree."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.model.pci import Link, PciFunction
from agent.model.reasons import Reason
from agent.rules.context import RuleContext
from agent.rules.devices import (
    WIDTH_PROVES_NOTHING,
    find_device_id,
    is_on_c2c,
    kernel_log_evidence,
    one_level_lower,
    pci_source,
    severity_by_role,
)
from agent.rules.pcie.links import (
    LANES,
    NO_LINK,
    OFTEN_HALF,
    PcieLink,
    bandwidth,
    both_ends_evidence,
    expected_speed,
    expected_width,
    format_loss,
    inconclusive_reason,
    kernel_evidence,
    link_label,
    not_judged_reason,
    pcie_links,
    report_log_alone,
    retrained_evidence,
)
from agent.rules.rule import Fail, NotApplicable, Pass, Result, Unknown, rule
from agent.rules.wording import format_share_lost

_ENDS = Reason("not-known", fact="what both its ends can do")


@rule("pcie-width-downgraded")
def pcie_width_downgraded(case: RuleContext) -> Iterator[Result]:
    for wire in pcie_links(case):
        yield _judge_width_downgraded(case, wire)
    lines = (event for event in case.events if event.kind == "pcie_bandwidth")
    impact = "The link carries less than the device could: when its driver was loaded, and perhaps still."
    yield from report_log_alone(case, lines, "a link was limited", impact)


def _judge_width_downgraded(case: RuleContext, wire: PcieLink) -> Result:
    gpu = case.gpu_by_pci.get(wire.child.id)
    if gpu and find_device_id(case, gpu) in WIDTH_PROVES_NOTHING:
        return NotApplicable(
            wire.subject,
            Reason(
                "not-measured", detail="the PCIe width of this GPU is not conclusive (superchip, B300 board, Atlas A3)"
            ),
        )
    silent = not_judged_reason(case, wire)
    if silent:
        return silent
    link, expected = wire.child.link, expected_width(case, wire)
    if link is None or link.width not in LANES:
        return Unknown(wire.subject, Reason("not-shown", detail="the source gives no lane count"))
    if expected is None:
        return _fail_alone(case, wire, "width") or Unknown(wire.subject, _ENDS)
    if link.max_width is not None and link.width > link.max_width:
        return NotApplicable(
            wire.subject,
            Reason("not-measured", detail="wider than its own maximum: its registers are unreliable"),
        )
    if link.width >= expected:
        return Pass(wire.subject)
    doubt = inconclusive_reason(wire)
    return (
        Unknown(wire.subject, doubt.prefixed(f"x{link.width}: "))
        if doubt
        else _fail_width_downgraded(case, wire, link.width, expected)
    )


def _fail_alone(case: RuleContext, wire: PcieLink, kind: str) -> Fail | None:
    """A link below what its device can do, where the source holds nothing of the port above: whether that can do more
    is open. GPUs slow their links when idle."""
    link, gpu = wire.child.link, case.gpu_by_pci.get(wire.child.id)
    if link is None or wire.parent is not None or not case.recorded or (gpu and kind == "speed"):
        return None
    now, most = (link.width, link.max_width) if kind == "width" else (link.speed_gt_s, link.max_speed_gt_s)
    if kind not in (link.quality.reason_code or "").split("-") and not (now and most and now < most):
        return None
    value = f"x{now}" if kind == "width" else f"{now:g} GT/s"
    often_half = gpu is not None and find_device_id(case, gpu) in OFTEN_HALF
    return Fail(
        subject=wire.subject,
        label=link_label(case, wire),
        summary=f"PCIe link {'is' if kind == 'width' else 'runs at'} {value}, less than the device supports",
        impact="What this means here depends on the port above it, which the source does not show: a slot that can do "
        "no more is no fault.",
        evidence=both_ends_evidence(case, wire, kind),
        severity="warning" if gpu and not often_half else "info",
        confidence="low",
        cause="alone",
        situation="alone",
        places=wire.places,
    )


def _fail_width_downgraded(case: RuleContext, wire: PcieLink, width: int, expected: int) -> Fail:
    gpu = case.gpu_by_pci.get(wire.child.id)
    often_half = gpu is not None and find_device_id(case, gpu) in OFTEN_HALF and width >= 8
    return Fail(
        subject=wire.subject,
        label=link_label(case, wire),
        summary=f"PCIe link is x{width}; both ends support x{expected}",
        impact=_impact(case, wire, width, expected),
        evidence=(
            *both_ends_evidence(case, wire, "width"),
            *retrained_evidence(wire),
            *kernel_evidence(case, wire.child.id),
        ),
        severity=wire.severity,
        confidence="medium" if often_half else "high",
        places=wire.places,
    )


def _impact(case: RuleContext, wire: PcieLink, width: int, expected: int) -> str:
    link = wire.child.link
    now = bandwidth(link.speed_gt_s if link else None, width)
    full = bandwidth(expected_speed(case, wire), expected)
    return format_loss(now, full) or f"{format_share_lost(width, expected)} of the link's bandwidth, in each direction."


@rule("pcie-speed-downgraded")
def pcie_speed_downgraded(case: RuleContext) -> Iterator[Result]:
    for wire in pcie_links(case):
        yield _judge_speed_downgraded(case, wire)


def _judge_speed_downgraded(case: RuleContext, wire: PcieLink) -> Result:
    gpu = case.gpu_by_pci.get(wire.child.id)
    if gpu and is_on_c2c(case, gpu):
        return NotApplicable(wire.subject, Reason("other-kind", detail="a superchip: its GPU reaches the CPU by C2C"))
    silent = not_judged_reason(case, wire)
    if silent:
        return silent
    link, expected = wire.child.link, expected_speed(case, wire)
    if link is None or link.speed_gt_s is None:
        return Unknown(wire.subject, Reason("not-shown", detail="the source gives no link speed"))
    if expected is None:
        return _fail_alone(case, wire, "speed") or Unknown(wire.subject, _ENDS)
    if link.max_speed_gt_s is not None and link.speed_gt_s > link.max_speed_gt_s:
        return NotApplicable(
            wire.subject,
            Reason("not-measured", detail="faster than its own maximum: its registers are unreliable"),
        )
    if link.speed_gt_s >= expected:
        return Pass(wire.subject)
    doubt = inconclusive_reason(wire)
    if doubt:
        return Unknown(wire.subject, doubt.prefixed(f"{link.speed_gt_s:g} GT/s: "))
    return _fail_speed_downgraded(case, wire, link.speed_gt_s, expected)


def _fail_speed_downgraded(case: RuleContext, wire: PcieLink, speed: float, expected: float) -> Fail:
    cap = _speed_caps(wire, speed, expected)
    now, full = (
        bandwidth(speed, wire.child.link.width if wire.child.link else None),
        _full_bandwidth(case, wire, expected),
    )
    severity = wire.severity or "error"
    return Fail(
        subject=wire.subject,
        label=link_label(case, wire),
        summary=f"PCIe link runs at {speed:g} GT/s; both its ends can do {expected:g} GT/s"
        + (": capped by target link speed" if cap else ""),
        impact=format_loss(now, full) or f"{format_share_lost(speed, expected)} of the link's speed.",
        evidence=(
            *both_ends_evidence(case, wire, "speed"),
            *cap,
            *retrained_evidence(wire),
            *kernel_evidence(case, wire.child.id),
        ),
        severity=one_level_lower(severity) if cap and severity == "error" else severity,
        cause="target-link-speed" if cap else "",
        places=wire.places,
    )


def _speed_caps(wire: PcieLink, speed: float, expected: float) -> tuple[Evidence, ...]:
    """The target link speeds that hold the link where it is."""
    return tuple(
        Evidence(
            what=f"target link speed of {end.id}",
            value=f"{end.link.target_speed_gt_s:g} GT/s",
            source=f"lspci -vv -s {end.id} (LnkCtl2; root)",
        )
        for end in (wire.child, wire.parent)
        if end
        and end.link
        and end.link.target_speed_gt_s is not None
        and speed <= end.link.target_speed_gt_s < expected
    )


def _full_bandwidth(case: RuleContext, wire: PcieLink, expected: float) -> float | None:
    return bandwidth(expected, expected_width(case, wire))


@rule("pcie-link-down")
def pcie_link_down(case: RuleContext) -> Iterator[Result]:
    for wire in pcie_links(case):
        if wire.child.id in case.gpu_by_pci or wire.child.id in case.nic_by_pci:
            yield _judge_link_down(case, wire)


def _judge_link_down(case: RuleContext, wire: PcieLink) -> Result:
    gpu = case.gpu_by_pci.get(wire.child.id)
    if gpu and find_device_id(case, gpu) in WIDTH_PROVES_NOTHING:
        return NotApplicable(
            wire.subject,
            Reason(
                "not-measured", detail="the PCIe width of this GPU is not conclusive (superchip, B300 board, Atlas A3)"
            ),
        )
    silent, link = not_judged_reason(case, wire), wire.child.link
    if silent and silent.reason is not NO_LINK:
        return silent
    if link is None or link.width is None:
        return Unknown(wire.subject, Reason("not-shown", detail="the source gives no lane count"))
    if link.width:
        return Pass(wire.subject)
    if wire.parent is None or not link.max_width:
        return NotApplicable(wire.subject, Reason("not-measured", detail="its link reports no lanes"))
    return _fail_link_down(case, wire, link.max_width)


def _fail_link_down(case: RuleContext, wire: PcieLink, most: int) -> Fail:
    nic = case.nic_by_pci.get(wire.child.id)
    off = wire.parent is not None and wire.parent.link_disabled is True
    return Fail(
        subject=wire.subject,
        label=link_label(case, wire),
        summary=f"PCIe link has no lanes; the device could have {most}"
        + (": the port above has its link switched off" if off else ""),
        impact=f"0 of {most} lanes: nothing can be moved to or from it.",
        evidence=(
            Evidence(
                what=f"current link width of {wire.child.id}",
                value="0",
                source=pci_source(case, wire.child.id, "current_link_width"),
            ),
            *_switched_off(wire),
            *retrained_evidence(wire),
            *kernel_log_evidence(case, wire.child.id),
        ),
        severity=(severity_by_role("warning", nic) or "info") if nic else None,
        cause="disabled" if off else "",
        places=wire.places,
    )


def _switched_off(wire: PcieLink) -> tuple[Evidence, ...]:
    if wire.parent is None or wire.parent.link_disabled is None:
        return ()
    value = "set" if wire.parent.link_disabled else "not set"
    return (
        Evidence(
            what=f"Link Disable of {wire.parent.id}", value=value, source=f"lspci -vv -s {wire.parent.id} (LnkCtl)"
        ),
    )


@rule("pcie-ends-disagree")
def pcie_ends_disagree(case: RuleContext) -> Iterator[Result]:
    for wire in pcie_links(case):
        yield _judge_ends_disagree(case, wire)


def _judge_ends_disagree(case: RuleContext, wire: PcieLink) -> Result:
    silent = not_judged_reason(case, wire)
    if silent:
        return silent
    here, there = wire.child.link, wire.parent.link if wire.parent else None
    if wire.parent is None or wire.parent.port_type in ("upstream", "bridge"):
        return NotApplicable(wire.subject, Reason("other-kind", detail="the port above is not the other end of a link"))
    if here is None or there is None or not (_is_complete(here) and _is_complete(there)):
        return Unknown(wire.subject, Reason("not-shown", detail="speed and lanes of both ends are not known"))
    if (here.speed_gt_s, here.width) == (there.speed_gt_s, there.width):
        return Pass(wire.subject)
    if here.quality.state != "conclusive" or there.quality.state != "conclusive":
        return Unknown(
            wire.subject,
            Reason("undecided", detail="a GPU below its maximum: it may have changed between the two reads"),
        )
    return Fail(
        subject=wire.subject,
        label=link_label(case, wire),
        summary=f"the link is {_format_ends(here)} at the device and {_format_ends(there)} at the port above",
        impact="One of the two ends reports a wrong value: other findings about this link are in doubt.",
        evidence=(
            *_build_evidence(case, wire.child, here),
            *_build_evidence(case, wire.parent, there),
            *retrained_evidence(wire),
        ),
        confidence="medium",
        places=wire.places,
    )


def _is_complete(link: Link) -> bool:
    return link.speed_gt_s is not None and link.width in LANES


def _format_ends(link: Link) -> str:
    return f"x{link.width} at {link.speed_gt_s:g} GT/s"


def _build_evidence(case: RuleContext, function: PciFunction, link: Link) -> tuple[Evidence, ...]:
    source = pci_source(case, function.id, "current_link_speed")
    return (Evidence(what=f"link of {function.id}", value=_format_ends(link), source=source),)
