"""Elements of pages and pictures, with all untrusted text cleaned; and which devices, links and ports have findings."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree.ElementTree import Element

from agent.model.finding import SEVERITIES, Finding
from agent.model.report import Report
from agent.outputs.formatting import clean_line

LIMIT = 900  # characters of one text; firmware strings may be very long
_CODE = re.compile(r"`([^`]{1,200})`")
Child = Element | str | None


def el(tag: str, *children: Child, **attributes: object) -> Element:
    """Make an element with text and children; `class_` becomes class, `aria_label` aria-label. None is omitted.

    >>> from xml.etree.ElementTree import tostring
    >>> tostring(el("a", "x<y", el("b"), "z", class_="k", data_id=1, href=None))
    b'<a class="k" data-id="1">x&lt;y<b />z</a>'
    """
    attribute_texts = {
        name.rstrip("_").replace("_", "-"): to_text(value) for name, value in attributes.items() if value is not None
    }
    element = Element(tag, attribute_texts)
    last: Element | None = None
    for child in children:
        if isinstance(child, Element):
            element.append(child)
            last = child
        elif child and last is None:
            element.text = (element.text or "") + to_text(child)
        elif child and last is not None:
            last.tail = (last.tail or "") + to_text(child)
    return element


def mark_code(text: str) -> list[Child]:
    """A text whose commands are marked."""
    return [el("code", part) if number % 2 else part for number, part in enumerate(_CODE.split(text))]


def render_table(titles: Sequence[str], rows: Sequence[Element | Sequence[str]]) -> Element | None:
    """A table in a frame of its own that scrolls; None without rows. A row is an element, or the texts of its cells."""
    if not rows:
        return None
    head = el("thead", el("tr", *[el("th", title, scope="col") for title in titles]))
    body = [row if isinstance(row, Element) else el("tr", *[el("td", cell) for cell in row]) for row in rows]
    table = el("table", head, el("tbody", *body))
    return el("div", table, class_="scroll", tabindex=0, role="region", aria_label=titles[0])


def to_text(value: object) -> str:
    """Format a number in its shortest form; clean a text and limit its length.

    >>> to_text(12.0), to_text(1.25), to_text("a\\x1b"), len(to_text("x" * 10_000))
    ('12', '1.25', 'a?', 900)
    """
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return clean_line(str(value), LIMIT)


MARKED = ("warning", "error", "critical")  # a note marks nothing
NVLINK_RULES = ("nvlink-", "fabric-", "c2c-")


class Severities:
    """The worst finding by device (also a note), and by link, port and NVLinks (from warning on)."""

    def __init__(self, report: Report) -> None:
        self.devices: dict[str, str] = {}
        self.links: dict[str, str] = {}  # of the device or switch below the PCIe link
        self.ports: dict[str, str] = {}  # "NIC/1"; "NIC": of any of its ports
        self.nvlinks: dict[str, str] = {}  # of GPUs
        self.findings: dict[str, list[Finding]] = {}  # by device
        topology = report.topology
        self._interfaces = {netdev.id: netdev.nic or netdev.id for netdev in topology.netdevs}
        self._devices = {nic.pci: nic.id for nic in topology.host_nics if nic.pci}
        self._devices |= {gpu.pci: gpu.id for gpu in topology.gpus if gpu.pci}
        for finding in report.open_findings:
            kind, _, parts = finding.subject.partition(":")
            for part in parts.split("+") if parts else finding.devices:
                self._add(finding, kind, part)

    def _add(self, finding: Finding, kind: str, part: str) -> None:
        device, _, number = part.partition("/")
        device = self._interfaces.get(part, device) if kind == "netdev" else device
        device = self._devices.get(device, device)
        _keep_worst(self.devices, device, finding.severity)
        self.findings.setdefault(device, []).append(finding)
        if finding.severity not in MARKED:
            return
        if kind in ("port", "netdev"):
            _keep_worst(self.ports, f"{device}/{number}" if kind == "port" else device, finding.severity)
        elif kind == "link" or finding.rule.startswith(NVLINK_RULES):
            _keep_worst(self.nvlinks, device, finding.severity)
        elif finding.rule.startswith(("pcie-", "profile-")):
            _keep_worst(self.links, device, finding.severity)


def _keep_worst(severities: dict[str, str], key: str, severity: str) -> None:
    if _rank(severity) > _rank(severities.get(key)):
        severities[key] = severity


def _rank(severity: str | None) -> int:
    return SEVERITIES.index(severity) if severity in SEVERITIES else -1
