"""Links as the picture draws them: PCIe with its bandwidth and capability, network ports, NVLinks, C2C."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from agent.model.gpu import Gpu, link_name
from agent.model.nic import Nic, Port
from agent.model.pci import Link, bandwidth_gbyte_s
from agent.model.report import Report
from agent.outputs.html.elements import Severities
from agent.outputs.names import DisplayNames, describe_port
from agent.outputs.text.link import QUALITY_TEXTS, describe_capability, format_generation

UNUSED_ROLES = ("auxiliary", "unused")  # of NICs whose links and ports are drawn in grey


class DevicePort(NamedTuple):
    """A port of a NIC, or all direct links of a GPU."""

    kind: str  # nvlink | port | c2c
    text: str
    state: str  # ok | down | unknown
    up: int = 0  # NVLinks
    all: int = 0
    far: tuple[str, ...] = ()  # ids of GPUs at the far end; "switch"; empty: unknown
    severity: str | None = None  # of a finding on it: only then it is drawn in that colour
    in_use: bool = True

    @property
    def tone(self) -> str:
        """The class of its colour."""
        return _choose_tone(self)


def _choose_tone(drawn: DevicePort | LinkBar) -> str:
    """The severity of its finding, quiet, or flow."""
    if drawn.severity:
        return drawn.severity
    return "flow" if drawn.state == "ok" and drawn.in_use else "quiet"


def is_in_use(nic: Nic) -> bool:
    """Whether jobs or the host's network use it, as far as known."""
    return not nic.limited and nic.role not in UNUSED_ROLES


def describe_gpu_links(gpu: Gpu, severities: Severities) -> tuple[DevicePort, ...]:
    """NVLinks (or their kin) as one connection, and C2C."""
    ports = []
    if gpu.links:
        states = Counter(link.state for link in gpu.links)
        up = states["active"] + states["sleep"]
        remotes = [link.remote for link in gpu.links if link.remote]
        far = {
            "switch" if remote.kind == "switch" else remote.id or ""
            for remote in remotes
            if remote.kind in ("switch", "gpu")
        }
        state = "unknown" if states["unknown"] else "down" if up < len(gpu.links) else "ok"
        name = link_name(gpu.links)
        text = f"{name} {up if up or not states['unknown'] else '?'}/{len(gpu.links)}"
        severity = severities.nvlinks.get(gpu.id)
        ports.append(DevicePort("nvlink", text, state, up, len(gpu.links), tuple(sorted(far - {""})), severity))
    if gpu.c2c and gpu.c2c.enabled:
        ports.append(DevicePort("c2c", "C2C", "ok"))
    return tuple(ports)


def describe_nic_port(nic: Nic, port: Port, severities: Severities) -> DevicePort:
    """`IB 400G NDR`, with the state where it is not ACTIVE."""
    state = "ok" if port.state == "ACTIVE" else "down" if port.state else "unknown"
    severity = severities.ports.get(f"{nic.id}/{port.port}") or severities.ports.get(nic.id)
    return DevicePort("port", describe_port(nic, port), state, severity=severity, in_use=is_in_use(nic))


GPUDIRECT_KINDS = ("PIX", "PXB", "PHB", "NODE")  # pairs that GPUDirect can use: their limiting link is named


class LinkBar(NamedTuple):
    """A PCIe link as drawn. GB/s in one direction."""

    place: str  # the function whose link to the port above this is
    text: str  # "Gen5 x8 of x16"
    now: float | None
    could: float | None
    state: str  # ok | reduced | idle | untrusted | unknown
    note: str = ""  # why its numbers are unreliable
    limits: tuple[str, ...] = ()  # pairs whose slowest link this is: "GPU2-mlx5_4"
    severity: str | None = None  # of a finding on this link: only then it is drawn in that colour
    in_use: bool = True  # False: of a NIC that no job uses, drawn in grey

    @property
    def asleep(self) -> bool:
        """Whether the device sleeps, which is why its link was not read."""
        return self.text == "asleep"

    @property
    def tone(self) -> str:
        """The class of its colour."""
        return _choose_tone(self)


def make_link_bar(place: str, link: Link, limits: tuple[str, ...] = ()) -> LinkBar:
    """Describe a link; an idle or untrusted link is not called reduced."""
    less = describe_capability(link)
    text = f"{format_generation(link.speed_gt_s)} x{link.width if link.width is not None else '?'}"
    now = link.bandwidth_gbyte_s
    could = bandwidth_gbyte_s(link.max_speed_gt_s, link.max_width)
    state = link.quality.state
    if now is None:
        name = "asleep" if state == "asleep" else "link not read"
        return LinkBar(place, name, None, could, "unknown", _describe_quality(link), limits)
    if link.speed_gt_s is None and link.width is None:
        text = format_rate(now)  # a source without other values
    text += f" of {less}" if less else ""
    if state == "conclusive":
        return LinkBar(place, text, now, could, "reduced" if less else "ok", "", limits)
    return LinkBar(place, text, now, could, "idle" if state == "idle" else "untrusted", _describe_quality(link), limits)


def find_limited_pairs(report: Report, names: DisplayNames) -> dict[str, tuple[str, ...]]:
    """Link -> the near pairs of a GPU and a NIC whose path it limits: it carries less than every other link there."""
    functions = {f.id: f for f in report.topology.pci}
    gpus = {gpu.id for gpu in report.topology.gpus}
    nics = {nic.id for nic in report.topology.host_nics if not nic.virtual_function}
    pairs_by_link: dict[str, list[str]] = {}
    for path in report.topology.paths:
        pair = {path.a, path.b}
        if (
            path.limiting not in functions
            or path.pcie_kind not in GPUDIRECT_KINDS
            or not pair & gpus
            or not pair & nics
        ):
            continue
        same_wire = {path.limiting, functions[path.limiting].parent}
        rest = [functions[id_].link for id_ in (*pair, *path.hops) if id_ in functions and id_ not in same_wire]
        carried = [link.bandwidth_gbyte_s for link in rest if link and link.bandwidth_gbyte_s]
        link = functions[path.limiting].link
        if link and link.bandwidth_gbyte_s and carried and link.bandwidth_gbyte_s < min(carried):
            labels = (names.labels.get(path.a, path.a), names.labels.get(path.b, path.b))
            pairs_by_link.setdefault(path.limiting, []).append("-".join(labels))
    return {place: tuple(pairs) for place, pairs in pairs_by_link.items()}


def format_rate(gbyte_s: float) -> str:
    """At most three significant digits.

    >>> format_rate(63.015), format_rate(31.508), format_rate(3.938), format_rate(0.985)
    ('63 GB/s', '31.5 GB/s', '3.9 GB/s', '0.98 GB/s')
    """
    return f"{gbyte_s:.3g} GB/s" if gbyte_s >= 10 or gbyte_s == round(gbyte_s) else f"{gbyte_s:.2g} GB/s"


def _describe_quality(link: Link) -> str:
    quality = link.quality
    return ": ".join(part for part in (QUALITY_TEXTS.get(quality.state, quality.state), quality.reason) if part)
