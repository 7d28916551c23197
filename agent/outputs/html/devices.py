"""All that the report knows of each device: what opens when somebody touches a box of the picture."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree.ElementTree import Element

import msgspec

from agent.model.finding import Finding
from agent.model.report import Report
from agent.outputs.html.elements import el
from agent.outputs.html.scene import Box, Scene

COUNTERS = ("counters", "hw_counters", "aer", "errors", "pcie_counters")  # long, and told beside the rest
LISTED = 24  # entries of one list or map


def devices(report: Report, seen: Scene) -> list[Element]:
    """A closed block for each box of the picture, in its order."""
    maker = _Maker(report)
    return [maker.device(box) for node in seen.boxes for box in node.walk() if box.kind not in ("node", "bus")]


class _Maker:
    def __init__(self, report: Report) -> None:
        topology = report.topology
        self.functions = {f.id: f for f in topology.pci}
        self.gpus = {gpu.id: gpu for gpu in topology.gpus}
        self.nics = {nic.id: nic for nic in topology.nics}
        self.netdevs = topology.netdevs
        self.findings = report.findings

    def device(self, box: Box) -> Element:
        """Its findings, then every field that is known, in parts."""
        parts = [el("div", el("h3", title), _fields(part)) for title, part in self._parts(box) if _known(part)]
        found = [el("p", el("a", f"{f.severity}: {f.summary}", href=f"#f-{f.fingerprint}")) for f in self._on(box)]
        title = " · ".join((box.title, *box.words, *([f"PCIe {box.wire.text}"] if box.wire else [])))
        mark = el("span", box.severity, class_=f"badge {box.severity}") if box.severity else None
        body = el("div", *found, el("div", *parts, class_="parts"), class_="body")
        return el("details", el("summary", title, " ", mark), body, class_="device", id=f"d-{box.key}")

    def _parts(self, box: Box) -> Iterator[tuple[str, msgspec.Struct]]:
        gpu, nic = self.gpus.get(box.key), self.nics.get(box.key)
        function = self.functions.get((gpu.pci if gpu else nic.pci if nic else box.key) or "")
        if gpu:
            yield "GPU", gpu
            for title, part in (("fabric", gpu.fabric), ("C2C", gpu.c2c), ("MIG", gpu.mig)):
                if part:
                    yield title, part
        if nic:
            yield "NIC", nic
            for port in nic.ports:
                yield f"port {port.port}", port
                if port.neighbor:
                    yield f"neighbour of port {port.port}", port.neighbor
            for netdev in self.netdevs:
                if netdev.nic == nic.id:
                    yield f"interface {netdev.label}", netdev
                    inner = (("QoS", netdev.qos), ("module", netdev.module), ("neighbour", netdev.neighbor))
                    yield from ((f"{title} of {netdev.label}", found) for title, found in inner if found)
        if function:
            yield "PCI function", function
            if function.link:
                yield "PCIe link", function.link
                yield "how far to be believed", function.link.quality

    def _on(self, box: Box) -> list[Finding]:
        own = {box.key} | {netdev.id for netdev in self.netdevs if netdev.nic == box.key}
        device = self.gpus.get(box.key) or self.nics.get(box.key)
        own |= {device.pci} if device and device.pci else set()
        return [f for f in self.findings if own & {k.partition("/")[0] for k in _which(f)} or own & set(_which(f))]


def _which(finding: Finding) -> list[str]:
    return finding.subject.partition(":")[2].split("+")


def _known(part: msgspec.Struct) -> list[tuple[str, str]]:
    """Fields that are known, as text; parts of their own and counters that stand still are left out."""
    rows = []
    for name in part.__struct_fields__:
        value = getattr(part, name)
        if name in COUNTERS and isinstance(value, dict):
            value = {key: count for key, count in value.items() if count}
        text = _told(value)
        if text:
            rows.append((name.replace("_", " "), text))
    return rows


def _fields(part: msgspec.Struct) -> Element:
    rows = el("dl", *[each for name, text in _known(part) for each in (el("dt", name), el("dd", text))])
    lists = [(name, getattr(part, name)) for name in part.__struct_fields__]
    tables = [
        block
        for name, value in lists
        if isinstance(value, list) and value and isinstance(value[0], msgspec.Struct)
        for block in (el("h3", name.replace("_", " ")), _table(value))
    ]
    return el("div", rows, *tables)


def _table(rows: list[msgspec.Struct]) -> Element:
    """Parts that are alike below each other; columns in which all are empty or the same stand above."""
    cells = [
        {name: _told(getattr(row, name)) or _flat(getattr(row, name)) for name in row.__struct_fields__} for row in rows
    ]
    columns = [
        name for name in cells[0] if len({row[name] for row in cells}) > 1 or (len(cells) == 1 and cells[0][name])
    ]
    same = ", ".join(
        f"{name.replace('_', ' ')} {text}" for name, text in cells[0].items() if text and name not in columns
    )
    head = el("tr", *[el("th", name.replace("_", " ")) for name in columns])
    body = [el("tr", *[el("td", row[name]) for name in columns]) for row in cells[:LISTED]]
    more = f" (the first {LISTED} of {len(cells)})" if len(cells) > LISTED else ""
    all_of = el("p", f"all {len(cells)}: {same}{more}", class_="dim") if same or more else None
    return el("div", all_of, el("table", el("thead", head), el("tbody", *body)), class_="scroll")


def _told(value: object) -> str:
    if value is None or isinstance(value, msgspec.Struct):
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return _some(
            _grouped(value)
            if value and all(isinstance(each, dict) for each in value.values())
            else [f"{key} {_told(each) or _flat(each)}" for key, each in value.items()]
        )
    if isinstance(value, list):
        return _some([_told(each) for each in value])  # of structures nothing: they have a table
    return str(value)


def _grouped(value: dict[str, object]) -> list[str]:
    """Keys that hold the same, told once."""
    alike: dict[str, list[str]] = {}
    for key, each in value.items():
        alike.setdefault(_told(each), []).append(key)
    return [f"{' '.join(keys)}: {text}" for text, keys in alike.items()]


def _flat(value: object) -> str:
    """A part in one line: "link 3, state active"."""
    if not isinstance(value, msgspec.Struct):
        return ""  # not known
    known = [(name, _told(getattr(value, name))) for name in value.__struct_fields__]
    return ", ".join(f"{name.replace('_', ' ')} {text}" for name, text in known if text)


def _some(texts: list[str]) -> str:
    texts = [each for each in texts if each]
    more = len(texts) - LISTED
    return ", ".join(texts[:LISTED]) + (f" and {more} more" if more > 0 else "")
