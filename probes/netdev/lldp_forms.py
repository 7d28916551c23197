"""What `lldpctl` prints for people (its default), as `-f keyvalue` and as `-f xml`: the same tree as its JSON.

lldpd, src/client/text_writer.c, kv_writer.c, xml_writer.c. Each form becomes the neighbours that the JSON would have.
"""

from __future__ import annotations

import re
from typing import Any

from probes.layout import Block, Field, Layout, read_layout
from probes.text import ParseError, lazy_pattern, require

DEEPEST = 16


def _number(text: str) -> int | None:
    return int(text) if re.fullmatch("[0-9]{1,9}", text) else None


def _identifier(text: str) -> str | None:
    """Without its kind: "mac 0c:4f:..", "ifname swp1"."""
    kind, _, name = text.partition(" ")
    return name.strip() or kind or None


_PLAIN = Layout(
    {
        "interface": Field("name"),
        "ChassisID": Field("chassis", _identifier),
        "SysName": Field("system"),
        "PortID": Field("port", _identifier),
        "PortDescr": Field("port_description"),
        "MFS": Field("max_frame_bytes", _number),
    },
    lazy_pattern(r"Interface: {1,20}(?P<interface>[^,\s]{1,64}), (?P<more>via: .*)"),
    row=lazy_pattern(
        r"VLAN: {1,20}(?P<vlan>[0-9]{1,4}), pvid: (?P<pvid>yes|no)\b.*"
        r"|TLV: {1,20}OUI: (?P<oui>[0-9A-Fa-f,]{8}), SubType: (?P<subtype>[0-9]{1,3}), Len: [0-9]{1,4} ?(?P<value>.*)"
    ),
)
_IDS = ("mac", "ifname", "local", "ip", "ifalias", "port", "unhandled")  # kinds of ids
_KEYS = {
    **{f"chassis.{kind}": "chassis" for kind in _IDS},
    **{f"port.{kind}": "port" for kind in _IDS},
    "chassis.name": "system",
    "port.descr": "port_description",
    "port.mfs": "max_frame_bytes",
}
_PAIR = lazy_pattern(
    r"lldp\.(?P<name>\S{1,64}?)\.(?P<key>(?:via|rid|age|chassis|port|vlan|unknown-tlvs)(?:\.[\w-]{1,40}){0,6})=(?P<value>.*)"
)


def parse_plain(text: str) -> list[dict[str, Any]]:
    """Neighbours as tables of what is stated: fields of `LldpNeighbor`, "vlans" and "tlvs"."""
    return [_from_section(section) for section in read_layout(Layout(inner=_PLAIN), text).sections.values()]


def _from_section(section: Block) -> dict[str, Any]:
    rows = [row.groupdict() for row in section.rows]
    return {
        **section.values(),
        "vlans": [{"vlan-id": row["vlan"], "pvid": row["pvid"]} for row in rows if row["vlan"]],
        "tlvs": [{key: row[key] for key in ("oui", "subtype", "value")} for row in rows if row["oui"]],
    }


def parse_keyvalue(text: str) -> list[dict[str, Any]]:
    """The same of lines `lldp.INTERFACE.key=value`; each "via" begins a neighbour."""
    neighbors: list[dict[str, Any]] = []
    for line in text.splitlines():
        pair = _PAIR.fullmatch(line.strip())
        if pair is None:
            continue
        name, key, value = pair.groups()
        if key == "via" or not neighbors or neighbors[-1]["name"] != name:
            neighbors.append({"name": name, "vlans": [], "tlvs": []})
        row = neighbors[-1]
        if key in _KEYS:
            row.setdefault(_KEYS[key], _number(value) if key == "port.mfs" else value)
        elif key == "vlan.vlan-id":
            row["vlans"].append({"vlan-id": value})
        elif key == "vlan.pvid" and row["vlans"]:
            row["vlans"][-1]["pvid"] = value
        elif key == "unknown-tlvs.unknown-tlv.oui":
            row["tlvs"].append({"oui": value})
        elif key.startswith("unknown-tlvs.unknown-tlv") and row["tlvs"]:
            row["tlvs"][-1][key[len("unknown-tlvs.unknown-tlv.") :] or "value"] = value
    return neighbors


def parse_xml(text: str) -> dict[str, Any]:
    """The document as its JSON (json0): attributes, texts as "value", elements as lists by name. Raises ParseError."""
    from xml.parsers import expat  # lazy: few sources hold this form

    top: dict[str, Any] = {}
    path = [top]

    def begin(name: str, attributes: dict[str, str]) -> None:
        require(len(path) <= DEEPEST, f"lldpctl: more than {DEEPEST} elements in each other")
        element: dict[str, Any] = dict(attributes)
        path[-1].setdefault(name, []).append(element)
        path.append(element)

    def refuse(*_: Any) -> None:
        raise ParseError("lldpctl: a document type, which it does not print")

    def add(data: str) -> None:
        path[-1]["value"] = (path[-1].get("value", "") + data).strip()

    parser = expat.ParserCreate(encoding="utf-8")
    parser.buffer_text = True
    parser.StartElementHandler = begin
    parser.EndElementHandler = lambda _: path.pop()
    parser.CharacterDataHandler = add
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(text.encode(), True)
    except (expat.ExpatError, AttributeError, UnicodeError) as why:
        raise ParseError(f"lldpctl: no XML: {str(why)[:80]}") from None
    lldp = top.get("lldp")
    return {"lldp": lldp} if lldp else {}
