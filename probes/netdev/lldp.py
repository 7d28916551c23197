"""The switch port at the far end of each interface, as lldpd heard it: `lldpctl` in any of its forms.

The two shapes of the same tree: in json0 everything is a list and names are keys "name"; in json a list of one is its
element, and what has a name is a table by that name. DCBX TLVs (IEEE 802.1Qaz, OUI 00-80-C2) are not understood by
lldpd: it prints them as unknown ones, in hexadecimal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from probes.host.commands import LLDP, LLDP_SAVED
from probes.host.interface import Absent, Failed, Host
from probes.host_reader import HostReader
from probes.named_tuple import NamedTuple
from probes.probe import Reading
from probes.text import ParseError, natural, require

COMMANDS = LLDP + LLDP_SAVED
IEEE = "0080C2"
ETS, PFC, APPLICATIONS = 9, 11, 12  # subtypes: configuration, not recommendation
SELECTORS = {1: "ethertype", 2: "tcp", 3: "udp", 4: "port", 5: "dscp"}
MOST = 1024
LONGEST = 512  # characters of a name


class LldpNeighbor(NamedTuple):
    """One neighbour of one interface. None: it does not show it."""

    interface: str
    system: str | None = None
    chassis: str | None = None
    port: str | None = None
    port_description: str | None = None
    max_frame_bytes: int | None = None
    vlan: int | None = None  # the port's own (untagged)
    pfc: tuple[bool, ...] | None = None  # by priority
    applications: tuple[tuple[str, int], ...] = ()  # "udp:4791" and its priority
    tc_bandwidth: tuple[int, ...] | None = None
    prio_tc: tuple[int, ...] | None = None


class LldpFacts(NamedTuple):
    """Every neighbour; an interface with several has several."""

    neighbors: tuple[LldpNeighbor, ...]


def read(host: Host) -> Reading:
    """What lldpd has. Raises Absent where it is not there."""
    reader = HostReader(host)
    wanted = COMMANDS[:1] if host.live or host.kind == "capture" else [c for c in COMMANDS if host.has_output(*c)]
    if not wanted:
        raise Absent("no saved output of lldpctl")
    done = host.run(*wanted[0])
    if done.returncode != 0:
        raise Absent(f"lldpctl: {(done.stderr or done.stdout).strip()[:200] or f'exit {done.returncode}'}")
    try:
        facts = parse_lldp(done.stdout)
    except ParseError as why:
        raise Failed(str(why)) from why
    reader.answered(" ".join(wanted[0]))
    return Reading(facts, reader.sources, reader.missing)


def parse_lldp(text: str) -> LldpFacts:
    """Raises ParseError.

    >>> parse_lldp('{"lldp": {"interface": {"eth0": {"port": {"mfs": "9216"}}}}}').neighbors[0].max_frame_bytes
    9216
    """
    import json  # lazy, as the other forms: most hosts run no lldpd

    from probes.netdev.lldp_forms import parse_keyvalue, parse_plain, parse_xml

    begin = text.lstrip()[:1]
    if begin not in ("{", "["):
        document = parse_xml(text) if begin == "<" else _as_json(parse_keyvalue(text) or parse_plain(text))
    else:
        try:
            document = json.loads(text)
        except (ValueError, RecursionError):
            raise ParseError("lldpctl: not JSON") from None
    require(isinstance(document, dict) and "lldp" in document, "lldpctl: no neighbours in it")
    rows = [
        _neighbor(name, row)
        for top in _list_tables(document["lldp"])
        for name, row in _list_named(top.get("interface"))
    ]
    return LldpFacts(tuple(sorted(rows[:MOST], key=lambda row: (natural(row.interface), row.system or ""))))


def _as_json(neighbors: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Neighbours of a form for people, as the JSON would have them."""
    rows = [
        {
            "name": row["name"],
            "chassis": [{"id": [{"value": row.get("chassis")}], "name": [{"value": row.get("system")}]}],
            "port": [
                {
                    "id": [{"value": row.get("port")}],
                    "descr": [{"value": row.get("port_description")}],
                    "mfs": row.get("max_frame_bytes"),
                }
            ],
            "vlan": row["vlans"],
            "unknown-tlvs": [{"unknown-tlv": row["tlvs"]}],
        }
        for row in neighbors
    ]
    return {"lldp": [{"interface": rows}]} if rows else {}


def _neighbor(interface: str, values: Mapping[str, Any]) -> LldpNeighbor:
    port = _one(values.get("port"))
    system, chassis = next(_list_named(values.get("chassis")), (None, {}))
    neighbor = LldpNeighbor(
        interface,
        system=_value(chassis.get("name")) or system or None,
        chassis=_value(_one(chassis.get("id")).get("value")),
        port=_value(_one(port.get("id")).get("value")),
        port_description=_value(port.get("descr")),
        max_frame_bytes=_number(port.get("mfs")),
        vlan=_vlan(values.get("vlan")),
    )
    for top in _list_tables(values.get("unknown-tlvs")):
        for tlv in _list_tables(top.get("unknown-tlv")):
            neighbor = _with_tlv(neighbor, tlv)
    return neighbor


def _with_tlv(neighbor: LldpNeighbor, tlv: Mapping[str, Any]) -> LldpNeighbor:
    """With what an IEEE 802.1Qaz TLV holds; the value is that behind OUI and subtype."""
    if re.sub("[^0-9A-F]", "", str(tlv.get("oui", "")).upper()[:16]) != IEEE:
        return neighbor
    subtype, value = _number(tlv.get("subtype")), _hex(_value(tlv.get("value")))
    if subtype == PFC and len(value) >= 2:
        return neighbor._replace(pfc=tuple(bool(value[1] >> priority & 1) for priority in range(8)))
    if subtype == ETS and len(value) >= 21:
        tcs = tuple(half for byte in value[1:5] for half in (byte >> 4, byte & 15))
        return neighbor._replace(prio_tc=tcs, tc_bandwidth=tuple(value[5:13]))
    if subtype == APPLICATIONS:
        entries = (value[at : at + 3] for at in range(1, len(value) - 2, 3))
        priorities = {
            f"{SELECTORS.get(entry[0] & 7, entry[0] & 7)}:{int.from_bytes(entry[1:], 'big')}": entry[0] >> 5
            for entry in entries
        }
        return neighbor._replace(applications=tuple(sorted({**dict(neighbor.applications), **priorities}.items())))
    return neighbor


def _vlan(value: Any) -> int | None:
    """The untagged VLAN: the one marked as the port's own, else the only one."""
    vlans = list(_list_tables(value))
    own = [vlan for vlan in vlans if vlan.get("pvid") in (True, "yes")]
    chosen = own or (vlans if len(vlans) == 1 else [])
    return _number(chosen[0].get("vlan-id")) if chosen else None


def _list_named(value: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Tables with their names, in both shapes: {"eth0": {..}}, [{"eth0": {..}}], [{"name": "eth0", ..}].

    What has no name, or whose name is reported inside ([{"value": ".."}]), has "".
    """
    for table in _list_tables(value):
        if isinstance(table.get("name"), str):
            yield table["name"][:LONGEST], table
        elif table.keys() & {"id", "name", "via", "port"}:
            yield "", table
        else:
            yield from ((name[:LONGEST], row) for name, rows in table.items() for row in _list_tables(rows))


def _list_tables(value: Any) -> Sequence[Mapping[str, Any]]:
    """Tables, whether one or a list of them."""
    return [row for row in (value if isinstance(value, list) else [value]) if isinstance(row, dict)][:MOST]


def _one(value: Any) -> Mapping[str, Any]:
    return next(iter(_list_tables(value)), {})


def _value(value: Any) -> str | None:
    """A text, in both shapes: "x", {"value": "x"}, [{"value": "x"}]."""
    if isinstance(value, list):
        value = value[0] if value else None
    if isinstance(value, dict):
        value = value.get("value")
    return value[: 4 * LONGEST] if isinstance(value, str) and value else None


def _number(value: Any) -> int | None:
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else _value(value) or ""
    return int(text) if re.fullmatch("[0-9]{1,9}", text) else None


def _hex(text: str | None) -> bytes:
    """Bytes of "08,08"."""
    digits = re.sub("[, :]", "", text or "")
    return bytes.fromhex(digits) if re.fullmatch("(?:[0-9A-Fa-f]{2})*", digits) else b""
