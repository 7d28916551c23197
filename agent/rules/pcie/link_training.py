"""PCIe links that trained narrower or slower than both ends support, or whose ends disagree."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.model.pci import Link, bandwidth_gbyte_s
from agent.model.reasons import Reason
from agent.rules.context import RuleContext
from agent.rules.devices import (
    WIDTH_PROVES_NOTHING,
    about_gpu,
    find_device_id,
    find_function,
    is_consumer,
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
    format_loss,
    kernel_evidence,
    pcie_links,
    report_log_alone,
)
from agent.rules.rule import Fail, Result, Unknown, rule
from agent.rules.wording import format_share_lost

_OTHER_HOST_LINK = r"\bG[BH]2\d\d\b|\bGB3\d\d\b|\bB300\b"  # as WIDTH_PROVES_NOTHING, by name
_FEWEST_PEERS = 2
_ENDS = Reason("not-known", fact="what both its ends can do")


def _links_and_log(context: RuleContext) -> Iterator[PcieLink | Result]:
    yield from pcie_links(context)
    lines = (event for event in context.events if event.kind == "pcie_bandwidth")
    impact = "The link carries less than the device could: when its driver was loaded, and perhaps still."
    yield from report_log_alone(context, lines, "a link was limited", impact)
    yield from _report_driver_alone(context)


def _report_driver_alone(context: RuleContext) -> Iterator[Fail]:
    """GPUs below the width that their driver calls possible, where the PCI bus was not read and another GPU of the
    same source has all lanes: an idle GPU may narrow its link, one of several seldom does alone. One GPU of AMD by
    itself counts, too: it keeps its lanes when idle."""
    gpus = [gpu for gpu in context.topology.gpus if gpu.pcie and gpu.pcie.width]
    if not context.why_bus_unread or context.virtual_machine:
        return
    whole = sum(gpu.pcie is not None and gpu.pcie.width == gpu.pcie.max_width for gpu in gpus)
    is_comparable = whole or [gpu.vendor for gpu in gpus] == ["AMD"]
    for gpu in gpus:
        pcie = gpu.pcie
        if pcie is None or not is_comparable or (pcie.width or 0) >= (pcie.max_width or 0) or is_on_c2c(context, gpu):
            continue
        is_idle = gpu.pstate not in (None, "P0")
        if is_idle or find_function(context, gpu) is not None or re.search(_OTHER_HOST_LINK, gpu.name or ""):
            continue
        yield about_gpu(gpu).fail(
            summary=f"PCIe link is x{pcie.width}; the driver states that x{pcie.max_width} are possible",
            impact="What this means here depends on whether the GPU was idle, and on its slot, which the source does "
            "not show.",
            evidence=(Evidence("PCIe width, current / max", f"x{pcie.width} / x{pcie.max_width}",
                               "nvidia-smi -q" if gpu.vendor == "NVIDIA" else "amd-smi metric"),),
            severity="info" if is_consumer(context, gpu) else "warning",
            confidence="low",
            cause="alone",
            situation="alone",
        )  # fmt: skip


@rule("pcie-width-downgraded", each=_links_and_log)
def pcie_width_downgraded(pcie_link: PcieLink) -> Result:
    if silent := _why_width_unreliable(pcie_link) or pcie_link.why_not_judged:
        return (_fail_alone(pcie_link, "width") if isinstance(silent, Unknown) else None) or silent
    link, expected = pcie_link.child.link, pcie_link.expected_width
    if link is None or link.width not in LANES:
        return pcie_link.unknown("not-shown", detail="the source gives no lane count")
    if expected is None:
        return _fail_alone(pcie_link, "width") or pcie_link.unknown(_ENDS)
    if link.max_width is not None and link.width > link.max_width:
        return pcie_link.not_applicable(
            "not-measured", detail="wider than its own maximum: its registers are unreliable"
        )
    if link.width >= expected:
        return pcie_link.passes()
    if doubt := pcie_link.why_inconclusive:
        return _fail_unlike_peers(pcie_link) or pcie_link.unknown(doubt.prefixed(f"x{link.width}: "))
    lost = f"{format_share_lost(link.width, expected)} of the link's bandwidth, in each direction."
    return pcie_link.fail(
        summary=f"PCIe link is x{link.width}; both ends support x{expected}",
        impact=format_loss(bandwidth_gbyte_s(link.speed_gt_s, link.width), pcie_link.possible_bandwidth) or lost,
        evidence=(
            *pcie_link.both_ends_evidence("width"),
            *pcie_link.retrained_evidence,
            *kernel_evidence(pcie_link.context, pcie_link.child.id),
        ),
        severity=pcie_link.severity,
        confidence="medium" if _is_often_half(pcie_link) and link.width >= 8 else "high",
    )


def _why_width_unreliable(pcie_link: PcieLink) -> Result | None:
    gpu = pcie_link.gpu
    if gpu is None or find_device_id(pcie_link.context, gpu) not in WIDTH_PROVES_NOTHING:
        return None
    text = "the PCIe width of this GPU is not conclusive (superchip, B300 board, Atlas A3)"
    return pcie_link.not_applicable("not-measured", detail=text)


def _is_often_half(pcie_link: PcieLink) -> bool:
    gpu = pcie_link.gpu
    return gpu is not None and find_device_id(pcie_link.context, gpu) in OFTEN_HALF


def _fail_alone(pcie_link: PcieLink, kind: str) -> Fail | None:
    """A link below what its device can do, where the source holds nothing of the port above: whether that can do more
    is open. GPUs slow their links when idle."""
    link, gpu = pcie_link.child.link, pcie_link.gpu
    if link is None or pcie_link.parent is not None or not pcie_link.context.recorded or (gpu and kind == "speed"):
        return None
    now, most = (link.width, link.max_width) if kind == "width" else (link.speed_gt_s, link.max_speed_gt_s)
    if kind not in (link.quality.reason_code or "").split("-") and not (now and most and now < most):
        return None
    value = f"is x{now}" if kind == "width" else f"runs at {now:g} GT/s"
    return pcie_link.fail(
        summary=f"PCIe link {value}, less than the device supports",
        impact="What this means here depends on the port above it, which the source does not show: a slot that can do "
        "no more is no fault.",
        evidence=pcie_link.both_ends_evidence(kind),
        severity="warning" if gpu and not _is_often_half(pcie_link) else "info",
        confidence="low",
        cause="alone",
        situation="alone",
    )


def _fail_unlike_peers(pcie_link: PcieLink) -> Fail | None:
    """A GPU at full speed with fewer lanes than all others of its model have, where the source has no P-state of it.
    What saves power lowers the speed; that some cards narrow an idle link, too, is why the confidence is low."""
    link, child, gpu = pcie_link.child.link, pcie_link.child, pcie_link.gpu
    unread = pcie_link.context.why_probe_failed("gpu") if pcie_link.context.recorded else None
    if gpu is None or gpu.pstate is not None or link is None or unread is None or unread.code != "evidence-absent":
        return None
    model = [one for one in pcie_links(pcie_link.context) if one.child.device == child.device]
    peers = [one for one in model if one.child is not child]
    if link.speed_gt_s != pcie_link.expected_speed or len(peers) < _FEWEST_PEERS:
        return None
    if any(one.child.link is None or one.child.link.width != pcie_link.expected_width for one in peers):
        return None
    return pcie_link.fail(
        summary=f"PCIe link is x{link.width}; both ends support x{pcie_link.expected_width}, which the {len(peers)} "
        "other GPUs of its model have",
        impact="If the GPU was busy, or does not narrow its link to save power, it has lost these lanes.",
        evidence=pcie_link.both_ends_evidence("width"),
        severity="warning",
        confidence="low",
        cause="peers",
        situation="peers",
    )


@rule("pcie-speed-downgraded", each=pcie_links)
def pcie_speed_downgraded(context: RuleContext, pcie_link: PcieLink) -> Result:
    if pcie_link.gpu and is_on_c2c(context, pcie_link.gpu):
        return pcie_link.not_applicable("other-kind", detail="a superchip: its GPU reaches the CPU by C2C")
    if silent := pcie_link.why_not_judged:
        return (_fail_alone(pcie_link, "speed") if isinstance(silent, Unknown) else None) or silent
    link, expected = pcie_link.child.link, pcie_link.expected_speed
    if link is None or link.speed_gt_s is None:
        return pcie_link.unknown("not-shown", detail="the source gives no link speed")
    if expected is None:
        return _fail_alone(pcie_link, "speed") or pcie_link.unknown(_ENDS)
    if link.max_speed_gt_s is not None and link.speed_gt_s > link.max_speed_gt_s:
        return pcie_link.not_applicable(
            "not-measured", detail="faster than its own maximum: its registers are unreliable"
        )
    if link.speed_gt_s >= expected:
        return pcie_link.passes()
    if doubt := pcie_link.why_inconclusive:
        return pcie_link.unknown(doubt.prefixed(f"{link.speed_gt_s:g} GT/s: "))
    cap = _speed_caps(pcie_link, link.speed_gt_s, expected)
    severity = pcie_link.severity or "error"
    return pcie_link.fail(
        summary=f"PCIe link runs at {link.speed_gt_s:g} GT/s; both its ends can do {expected:g} GT/s"
        + (": capped by target link speed" if cap else ""),
        impact=format_loss(bandwidth_gbyte_s(link.speed_gt_s, link.width), pcie_link.possible_bandwidth)
        or f"{format_share_lost(link.speed_gt_s, expected)} of the link's speed.",
        evidence=(
            *pcie_link.both_ends_evidence("speed"),
            *cap,
            *pcie_link.retrained_evidence,
            *kernel_evidence(context, pcie_link.child.id),
        ),
        severity=one_level_lower(severity) if cap and severity == "error" else severity,
        cause="target-link-speed" if cap else "",
    )


def _speed_caps(pcie_link: PcieLink, speed: float, expected: float) -> tuple[Evidence, ...]:
    """The target link speeds that hold the link where it is."""
    return tuple(
        Evidence(
            f"target link speed of {end.id}",
            f"{end.link.target_speed_gt_s:g} GT/s",
            f"lspci -vv -s {end.id} (LnkCtl2; root)",
        )
        for end in (pcie_link.child, pcie_link.parent)
        if end
        and end.link
        and end.link.target_speed_gt_s is not None
        and speed <= end.link.target_speed_gt_s < expected
    )


def _device_links(context: RuleContext) -> Iterator[PcieLink]:
    return (pcie_link for pcie_link in pcie_links(context) if pcie_link.gpu or pcie_link.nic)


@rule("pcie-link-down", each=_device_links)
def pcie_link_down(context: RuleContext, pcie_link: PcieLink) -> Result:
    if unreliable := _why_width_unreliable(pcie_link):
        return unreliable
    silent, link, port = pcie_link.why_not_judged, pcie_link.child.link, pcie_link.parent
    if silent and silent.reason is not NO_LINK:
        return silent
    if link is None or link.width is None:
        return pcie_link.unknown("not-shown", detail="the source gives no lane count")
    if link.width:
        return pcie_link.passes()
    if port is None or not link.max_width:
        return pcie_link.not_applicable("not-measured", detail="its link reports no lanes")
    place = pcie_link.child.id
    rows = [("current link width", place, "0", pci_source(context, place, "current_link_width"))]
    if port.link_disabled is not None:
        rows.append(
            ("Link Disable", port.id, "set" if port.link_disabled else "not set", f"lspci -vv -s {port.id} (LnkCtl)")
        )
    nic = pcie_link.nic
    return pcie_link.fail(
        summary=f"PCIe link has no lanes; the device could have {link.max_width}"
        + (": the port above has its link switched off" if port.link_disabled else ""),
        impact=f"0 of {link.max_width} lanes: nothing can be moved to or from it.",
        evidence=(
            *(Evidence(f"{what} of {end}", value, source) for what, end, value, source in rows),
            *pcie_link.retrained_evidence,
            *kernel_log_evidence(context, place),
        ),
        severity=(severity_by_role("warning", nic) or "info") if nic else None,
        cause="disabled" if port.link_disabled else "",
    )


@rule("pcie-ends-disagree", each=pcie_links)
def pcie_ends_disagree(context: RuleContext, pcie_link: PcieLink) -> Result:
    if silent := pcie_link.why_not_judged:
        return silent
    port = pcie_link.parent
    if port is None or port.port_type in ("upstream", "bridge"):
        return pcie_link.not_applicable("other-kind", detail="the port above is not the other end of a link")
    here, there = pcie_link.child.link, port.link
    if here is None or there is None or not (_is_complete(here) and _is_complete(there)):
        return pcie_link.unknown("not-shown", detail="speed and lanes of both ends are not known")
    if (here.speed_gt_s, here.width) == (there.speed_gt_s, there.width):
        return pcie_link.passes()
    if here.quality.state != "conclusive" or there.quality.state != "conclusive":
        return pcie_link.unknown(
            "undecided", detail="a GPU below its maximum: it may have changed between the two reads"
        )
    ends = [(pcie_link.child.id, _format_ends(here)), (port.id, _format_ends(there))]
    return pcie_link.fail(
        summary=f"the link is {ends[0][1]} at the device and {ends[1][1]} at the port above",
        impact="One of the two ends reports a wrong value: other findings about this link are in doubt.",
        evidence=(
            *(Evidence(f"link of {end}", value, pci_source(context, end, "current_link_speed")) for end, value in ends),
            *pcie_link.retrained_evidence,
        ),
        confidence="medium",
    )


def _is_complete(link: Link) -> bool:
    return link.speed_gt_s is not None and link.width in LANES


def _format_ends(link: Link) -> str:
    return f"x{link.width} at {link.speed_gt_s:g} GT/s"
