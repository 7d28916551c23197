"""All devices in one table: model, slot, serial, link, state, firmware; each row opens every known field."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple
from xml.etree.ElementTree import Element

import msgspec

from agent.model.gpu import Gpu
from agent.model.labels import group_by_key, name_first
from agent.model.nic import Nic
from agent.model.pci import CxlDevice, PciFunction
from agent.model.report import Report
from agent.outputs.html.drawn_links import is_in_use, make_link_bar
from agent.outputs.html.elements import MARKED, Child, Severities, el
from agent.outputs.html.scene import Box, Scene
from agent.outputs.names import DisplayNames, format_gib, short_model
from agent.outputs.text.rows import NIC_STATES, describe_driver_state

COLUMNS = ("Device", "Model", "Slot", "Serial", "Link", "State", "Firmware")
GROUPS = (
    ("gpu", "GPUs"),
    ("nic", "NICs"),
    ("nvswitch", "NVSwitches"),
    ("cxl", "CXL memory"),
    ("drive", "NVMe drives"),
    ("switch", "PCIe switches"),
    ("other", "Other devices"),
)
_NVME = "0x0108"


class DeviceRow(NamedTuple):
    """One device, as its line of the table states it."""

    key: str
    label: str
    alias: str  # interfaces of a NIC
    model: str
    slot: str
    serial: str
    link: str
    link_tone: str
    state: tuple[tuple[str, str], ...]  # text and tone
    firmware: str


def render_devices(report: Report, scene: Scene) -> Element | None:
    """The table; None for a host without any of these devices."""
    rows = _RowMaker(report, scene)
    bodies = []
    for kind, title in GROUPS:
        lines = list(rows.of_kind(kind))
        if lines:
            heading = el(
                "th", title, el("span", str(len(lines)), class_="count"), colspan=len(COLUMNS), scope="rowgroup"
            )
            cells = [part for line in lines for part in rows.render(line)]
            bodies.append(el("tbody", el("tr", heading, class_="group"), *cells))
    if not bodies:
        return None
    head = el("thead", el("tr", *[el("th", name, scope="col", class_=name.lower()) for name in COLUMNS]))
    table = el("table", head, *bodies, class_="devices", aria_label="devices")
    return el("div", table, class_="scroll")


class _RowMaker:
    def __init__(self, report: Report, scene: Scene) -> None:
        topology = report.topology
        self.report = report
        self.names = DisplayNames(report)
        self.severities = Severities(report)
        self.functions = {f.id: f for f in topology.pci}
        self.gpus = {gpu.id: gpu for gpu in topology.gpus}
        self.nics = {nic.id: nic for nic in topology.host_nics}
        self.boxes = [box for node in scene.boxes for box in node.walk()]

    def of_kind(self, kind: str) -> Iterator[DeviceRow]:
        """The devices of one kind; NVSwitches and drives each, also where the picture joins them."""
        topology = self.report.topology
        boxes = [box for box in self.boxes if box.kind == kind]
        if kind == "gpu":
            ids = {box.key for box in boxes}
            yield from (self._gpu(gpu, self._box(gpu.id)) for gpu in topology.gpus if gpu.id in ids)
        elif kind == "nic":
            ids = {box.key for box in boxes}
            yield from (self._nic(nic, self._box(nic.id)) for nic in topology.host_nics if nic.id in ids)
        elif kind == "nvswitch":
            yield from (self._function(s.pci, "NVSwitch") for s in topology.nvswitches)
        elif kind == "cxl":
            yield from (self._cxl(device) for device in (topology.cxl.devices if topology.cxl else ()))
        elif kind == "drive":
            drives = [f.id for f in topology.pci if (f.class_code or "").startswith(_NVME)]
            yield from (self._function(drive, "NVMe") for drive in drives if boxes)
        else:
            yield from (self._function(box.key, box.title)._replace(alias=box.alias) for box in boxes)

    def render(self, row: DeviceRow) -> Iterator[Element]:
        """The line of a device, and the hidden line below it with every field."""
        severity = self.severities.devices.get(row.key)
        name = el("a", row.label, href=f"#d-{row.key}", class_="opens", aria_expanded="false")
        address = self.names.short(row.key) if ":" in row.key else ""
        first: list[Child] = [name, el("span", severity, class_=f"badge {severity}") if severity else None]
        below = " · ".join(part for part in (address if address != row.label else "", row.alias) if part)
        first.append(el("span", below, class_="dim") if below else None)
        states: list[Child] = []
        for text, tone in row.state:
            if text:
                states += [" · " if states else "", el("span", text, class_=tone or None)]
        yield el(
            "tr",
            el("th", *first, scope="row"), el("td", row.model, class_="model"), el("td", row.slot, class_="slot"),
            el("td", row.serial, class_="serial"), el("td", row.link, class_=f"link {row.link_tone}".strip()),
            el("td", *states, class_="state"), el("td", row.firmware, class_="firmware"),
            class_="device",
        )  # fmt: skip
        findings = [
            el("p", el("a", f"{f.severity}: {f.summary}", href=f"#f-{f.fingerprint}"), class_=f"tone {f.severity}")
            for f in self.severities.findings.get(row.key, ())
        ]
        parts = [
            el("div", el("h4", title), _render_fields(part))
            for title, part in self._parts(row.key)
            if _known_fields(part)
        ]
        body = el("div", *findings, el("div", *parts, class_="parts"), class_="body")
        yield el("tr", el("td", body, colspan=len(COLUMNS)), class_="detail", id=f"d-{row.key}")

    def _parts(self, key: str) -> Iterator[tuple[str, msgspec.Struct]]:
        gpu, nic = self.gpus.get(key), self.nics.get(key)
        function = self.functions.get((gpu.pci if gpu else nic.pci if nic else key) or "")
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
            for netdev in self.report.topology.netdevs:
                if netdev.nic == nic.id:
                    yield f"interface {netdev.label}", netdev
                    inner = (("QoS", netdev.qos), ("module", netdev.module), ("neighbour", netdev.neighbor))
                    yield from ((f"{title} of {netdev.label}", inner_part) for title, inner_part in inner if inner_part)
        if function:
            yield "PCI function", function
            if function.link:
                yield "PCIe link", function.link
                yield "quality of the link's numbers", function.link.quality

    def _gpu(self, gpu: Gpu, box: Box | None) -> DeviceRow:
        function = self.functions.get(gpu.pci or "")
        states = [(describe_driver_state(gpu) or gpu.pstate or "", "")]
        states += [("MIG on", "")] if gpu.mig and gpu.mig.current else []
        states += [(port.text, _finding_tone(port.severity)) for port in (box.ports if box else ())]
        slot = f"module {gpu.module_id}" if gpu.module_id is not None else self._slot(function)
        return DeviceRow(
            gpu.id, gpu.label, "", short_model(gpu.name), slot, gpu.serial or "", *self._link(function, gpu.id),
            tuple(states), gpu.vbios or "",
        )  # fmt: skip

    def _nic(self, nic: Nic, box: Box | None) -> DeviceRow:
        function = self.functions.get(nic.pci or "")
        role = "NVSwitch management" if nic.limited else nic.role if nic.role != "unknown" else ""
        states = [(role, "dim"), (NIC_STATES.get(nic.state, ""), "")]
        states += [(port.text, _finding_tone(port.severity)) for port in (box.ports if box else ())]
        label = "NIC" if nic.label == nic.pci else nic.label.partition("@")[0]
        serial = function.serial if function and function.serial else nic.system_image_guid
        return DeviceRow(
            nic.id, label, box.alias if box else "", short_model(nic.model), self._slot(function), serial or "",
            *self._link(function, nic.id, is_in_use(nic)), tuple(states), nic.firmware or "",
        )  # fmt: skip

    def _function(self, key: str, label: str) -> DeviceRow:
        function = self.functions.get(key)
        state = "" if function is None or function.state == "present" else function.state.replace("_", " ")
        driver = function.driver if function and function.driver and label != "PCIe switch" else ""
        return DeviceRow(
            key, label, "", short_model(function.name) if function else "", self._slot(function),
            (function.serial if function else None) or "", *self._link(function, key), ((state or driver, "dim"),), "",
        )  # fmt: skip

    def _cxl(self, device: CxlDevice) -> DeviceRow:
        regions = self.report.topology.cxl.regions if self.report.topology.cxl else []
        members = [region for region in regions if device.id in region.devices]
        states = [(region.id, "") for region in members]
        states += [(f"NUMA {region.numa_node}", "") for region in members if region.numa_node is not None]
        row = self._function(device.id, device.memdev or "CXL memory")
        return row._replace(
            model=f"{row.model or 'CXL memory'}, {format_gib(device.ram_mib)}" if device.memdev else row.model,
            state=(*states, *row.state),
            firmware=device.firmware or "",
        )

    def _link(self, function: PciFunction | None, owner: str, in_use: bool = True) -> tuple[str, str]:
        if function is None or function.link is None:
            return "", ""
        severity = self.severities.links.get(owner)
        bar = make_link_bar(function.id, function.link)._replace(severity=severity, in_use=in_use)
        text = "" if bar.state == "unknown" and not bar.asleep else bar.text
        text += " (idle)" if bar.state == "idle" else ""
        return text, _finding_tone(severity) or ("dim" if bar.tone == "quiet" else "")

    def _slot(self, function: PciFunction | None) -> str:
        return f"slot {function.slot}" if function and function.slot else ""

    def _box(self, key: str) -> Box | None:
        return next((box for box in self.boxes if box.key == key), None)


def _finding_tone(severity: str | None) -> str:
    return f"tone {severity}" if severity in MARKED else ""


COUNTERS = ("counters", "hw_counters", "aer", "errors", "pcie_counters")  # long; only non-zero entries are shown
MAX_ENTRIES = 24  # entries of one list or map


def _known_fields(part: msgspec.Struct) -> list[tuple[str, str]]:
    """Known fields as text; nested parts and zero counters are omitted."""
    rows = []
    for name in part.__struct_fields__:
        value = getattr(part, name)
        if name in COUNTERS and isinstance(value, dict):
            value = {key: count for key, count in value.items() if count}
        text = _to_text(value)
        if text:
            rows.append((name.replace("_", " "), text))
    return rows


def _render_fields(part: msgspec.Struct) -> Element:
    rows = el("dl", *[cell for name, text in _known_fields(part) for cell in (el("dt", name), el("dd", text))])
    lists = [(name, getattr(part, name)) for name in part.__struct_fields__]
    tables = [
        block
        for name, value in lists
        if isinstance(value, list) and value and isinstance(value[0], msgspec.Struct)
        for block in (el("h4", name.replace("_", " ")), _render_table(value))
    ]
    return el("div", rows, *tables)


def _render_table(rows: list[msgspec.Struct]) -> Element:
    """Equal parts as a table; columns with one value for all are listed above it."""
    cells = [
        {name: _to_text(getattr(row, name)) or _to_line(getattr(row, name)) for name in row.__struct_fields__}
        for row in rows
    ]
    columns = [
        name for name in cells[0] if len({row[name] for row in cells}) > 1 or (len(cells) == 1 and cells[0][name])
    ]
    same = ", ".join(
        f"{name.replace('_', ' ')} {text}" for name, text in cells[0].items() if text and name not in columns
    )
    head = el("tr", *[el("th", name.replace("_", " ")) for name in columns])
    body = [el("tr", *[el("td", row[name]) for name in columns]) for row in cells[:MAX_ENTRIES]]
    more = f" (the first {MAX_ENTRIES} of {len(cells)})" if len(cells) > MAX_ENTRIES else ""
    all_of = el("p", f"all {len(cells)}: {same}{more}", class_="dim") if same or more else None
    return el("div", all_of, el("table", el("thead", head), el("tbody", *body)), class_="scroll")


def _to_text(value: object) -> str:
    if value is None or isinstance(value, msgspec.Struct):
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return _shorten_list(
            _group_equal(value)
            if value and all(isinstance(item, dict) for item in value.values())
            else [f"{key} {_to_text(item) or _to_line(item)}" for key, item in value.items()]
        )
    if isinstance(value, list):
        return _shorten_list([_to_text(item) for item in value])  # structs have a table of their own
    return str(value)


def _group_equal(value: dict[str, object]) -> list[str]:
    """Combine keys with the same value."""
    alike = group_by_key((_to_text(item), key) for key, item in value.items())
    return [f"{' '.join(keys)}: {text}" for text, keys in alike.items()]


def _to_line(value: object) -> str:
    """Format a part in one line: "link 3, state active"."""
    if not isinstance(value, msgspec.Struct):
        return ""  # not known
    known = [(name, _to_text(getattr(value, name))) for name in value.__struct_fields__]
    return ", ".join(f"{name.replace('_', ' ')} {text}" for name, text in known if text)


def _shorten_list(texts: list[str]) -> str:
    return name_first([text for text in texts if text], MAX_ENTRIES)
