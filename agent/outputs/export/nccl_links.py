"""The links of a NCCL topology: PCIe as speed and width, NVLink as counts by where they lead."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

from agent.model.gpu import Gpu
from agent.model.pci import Link, PciFunction
from agent.outputs.export.markup import Element, element
from agent.outputs.formatting import known, line

# NCCL takes these words and no others: src/graph/topo.cc, kvDictPciGen
SPEEDS = {
    2.5: "2.5 GT/s PCIe",
    5.0: "5.0 GT/s PCIe",
    8.0: "8.0 GT/s PCIe",
    16.0: "16.0 GT/s PCIe",
    32.0: "32.0 GT/s PCIe",
    64.0: "64.0 GT/s PCIe",
}
SWITCH, HIDDEN_SWITCH = "0x068000", "fffffff:ffff:ff"  # a switch that no PCI bus shows
GPU, CPU = "0x03", "0x068001"
ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
Ends = tuple[float | None, int | None]  # GT/s and lanes


def link_attributes(function: PciFunction, above: PciFunction | None) -> tuple[dict[str, str], str | None]:
    """Speed and width of the link above a function, and what people should know about them."""
    link = function.link
    if link is None:
        return {}, None
    now = link.speed_gt_s, link.width
    can = _least(link, above.link if above else None)
    if link.quality.state == "idle":
        return _said(can), f"idle at {_words(now)}: written is what the link can do"
    if link.quality.state != "conclusive":
        reason = link.quality.reason or link.quality.state
        return {}, f"link_speed and link_width are left out: {line(reason)}"
    less = any(a is not None and b is not None and a < b for a, b in zip(now, can, strict=True))
    return _said(now), f"it can do {_words(can)}" if less else None


def _least(link: Link, port: Link | None) -> Ends:
    """What both ends can do."""
    ends = [each for each in (link, port) if each]
    speeds = [each.max_speed_gt_s for each in ends if each.max_speed_gt_s]
    widths = [each.max_width for each in ends if each.max_width]
    return min(speeds, default=None), min(widths, default=None)


def _said(ends: Ends) -> dict[str, str]:
    speed, width = ends
    return known(link_speed=SPEEDS.get(speed or 0), link_width=width or None)


def _words(ends: Ends) -> str:
    speed, width = ends
    return f"{'unknown speed' if speed is None else f'{speed:g} GT/s'} x{'?' if width is None else width}"


def nvlinks(gpu: Gpu, functions: Mapping[str, PciFunction]) -> tuple[list[Element], str | None]:
    """A GPU's active links, counted by target, or why they are not told: NCCL asks the driver then."""
    if not gpu.links_known:
        return [], gpu.links_reason or "they could not be read"
    counts: Counter[tuple[str, str]] = Counter()
    for link in gpu.links:
        if link.protocol != "nvlink" or link.state in ("inactive", "sleep"):
            continue
        remote = link.remote
        if link.state != "active" or remote is None:
            return [], f"of link {link.link} " + (
                "the state" if link.state != "active" else "the far end"
            ) + " is not known"
        far = functions.get(remote.id) if remote.id and ADDRESS.fullmatch(remote.id) else None
        if remote.kind == "switch":
            counts[far.id if far else HIDDEN_SWITCH, SWITCH] += 1
        elif far and remote.kind in ("gpu", "cpu"):
            counts[far.id, _class(far) if remote.kind == "gpu" else CPU] += 1
        else:
            return [], f"of link {link.link} the far end is not known"
    return [
        element("nvlink", known(target=target, count=count, tclass=kind)) for (target, kind), count in counts.items()
    ], None


def _class(gpu: PciFunction) -> str:
    said = gpu.class_code or ""
    return said if re.fullmatch(r"0x03[0-9a-f]{4}", said) else GPU
