"""Every known field of a device, in parts: what its row of the device table opens."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree.ElementTree import Element

import msgspec

from agent.model.report import Report
from agent.outputs.html.elements import el

COUNTERS = ("counters", "hw_counters", "aer", "errors", "pcie_counters")  # long; only non-zero entries are shown
MAX_ENTRIES = 24  # entries of one list or map


class DeviceFields:
    """The parts of a report by device."""

    def __init__(self, report: Report) -> None:
        topology = report.topology
        self.functions = {f.id: f for f in topology.pci}
        self.gpus = {gpu.id: gpu for gpu in topology.gpus}
        self.nics = {nic.id: nic for nic in topology.host_nics}
        self.netdevs = topology.netdevs

    def render(self, key: str) -> Element:
        """Every part with a known field."""
        parts = [
            el("div", el("h4", title), _render_fields(part)) for title, part in self._parts(key) if _known_fields(part)
        ]
        return el("div", *parts, class_="parts")

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
            for netdev in self.netdevs:
                if netdev.nic == nic.id:
                    yield f"interface {netdev.label}", netdev
                    inner = (("QoS", netdev.qos), ("module", netdev.module), ("neighbour", netdev.neighbor))
                    yield from ((f"{title} of {netdev.label}", inner_part) for title, inner_part in inner if inner_part)
        if function:
            yield "PCI function", function
            if function.link:
                yield "PCIe link", function.link
                yield "quality of the link's numbers", function.link.quality


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
    alike: dict[str, list[str]] = {}
    for key, item in value.items():
        alike.setdefault(_to_text(item), []).append(key)
    return [f"{' '.join(keys)}: {text}" for text, keys in alike.items()]


def _to_line(value: object) -> str:
    """Format a part in one line: "link 3, state active"."""
    if not isinstance(value, msgspec.Struct):
        return ""  # not known
    known = [(name, _to_text(getattr(value, name))) for name in value.__struct_fields__]
    return ", ".join(f"{name.replace('_', ' ')} {text}" for name, text in known if text)


def _shorten_list(texts: list[str]) -> str:
    texts = [text for text in texts if text]
    more = len(texts) - MAX_ENTRIES
    return ", ".join(texts[:MAX_ENTRIES]) + (f" and {more} more" if more > 0 else "")
