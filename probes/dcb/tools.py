"""Outputs of `dcb pfc|ets|app|buffer|dcbx|apptrust show dev IF` (iproute2), and of `mlnx_qos -i IF` (NVIDIA's OFED
tools).

Those of `dcb` are text or, with -j, JSON. Every list is "name 0:value 1:value ..": by priority or traffic class, in
JSON an array. An APP table in JSON is "dscp_prio": [[26, 3, " "], ..].
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from probes.dcb.facts import Application, Dcb
from probes.layout import Block, Field, Layout, read_layout
from probes.text import ParseError, lazy_pattern

_TABLES = {
    "dscp_prio": "dscp",
    "pcp_prio": "pcp",
    "ethtype_prio": "ethertype",
    "stream_port_prio": "tcp",
    "dgram_port_prio": "udp",
    "port_prio": "port",
}
_PAIR = lazy_pattern(r"([A-Za-z0-9-]{1,16}):([A-Za-z0-9]{1,16})")
_SIZED = lazy_pattern(r"([0-7]):([0-9]{1,10}(?:\.[0-9]{1,3})?[KM]?b)")
_SIZE = lazy_pattern(r"([0-9]{1,10}(?:\.[0-9]{1,3})?)(b|Kb|Mb)?")
_SIZES = {None: 1, "b": 1, "Kb": 1024, "Mb": 1 << 20}
_FLAGS = {"on": True, "off": False, True: True, False: False}
_MODES = {"host": "host", "lld-managed": "lld_managed", "cee": "cee", "ieee": "ieee", "static": "static"}


def parse_dcb(about: str, text: str) -> Dcb:
    r"""What one object of `dcb` states. Raises ParseError.

    >>> parse_dcb("pfc", "pfc-cap 8 macsec-bypass off delay 0\nprio-pfc " + " ".join(f"{i}:off" for i in range(8))).pfc
    (False, False, False, False, False, False, False, False)
    """
    values = _json(text) if text.lstrip()[:1] in ("{", "[") else _words(text)
    parsed = _parse_dump(about, values)
    if parsed == Dcb("dcb") or (
        about == "app" and not parsed.applications and values.keys() - {*_TABLES, "default_prio"}
    ):
        raise ParseError(f"dcb {about}: nothing in it that is known")
    return parsed


def _parse_dump(about: str, values: Mapping[str, Any]) -> Dcb:
    if about == "app":
        return Dcb("dcb", applications=_applications(values))
    if about == "dcbx":
        return Dcb("dcb", dcbx=tuple(ours for theirs, ours in _MODES.items() if _is_told(values, theirs)) or None)
    if about == "apptrust":
        order = values.get("order")
        return Dcb("dcb", trust_order=tuple(map(str, order)) if isinstance(order, list) else None)
    pfc = _list(values, "prio_pfc", _FLAGS.get)
    return Dcb(
        "dcb",
        pfc=tuple(map(bool, pfc)) if pfc else None,
        delay=_number(values.get("delay")),
        frames_sent=_list(values, "requests", _number),
        frames_received=_list(values, "indications", _number),
        prio_tc=_list(values, "prio_tc", _number),
        tc_bandwidth=_list(values, "tc_bw", _number),
        tc_tsa=_list(values, "tc_tsa", lambda word: word if isinstance(word, str) and len(word) <= 16 else None),
        prio_buffer=_list(values, "prio_buffer", _number),
        buffer_bytes=_list(values, "buffer_size", _bytes),
    )


def _json(text: str) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise ParseError("dcb: not JSON") from None
    if isinstance(document, list) and len(document) == 1:
        document = document[0]
    if not isinstance(document, dict):
        raise ParseError("dcb: not a JSON object")
    return document


def _words(text: str) -> dict[str, Any]:
    """Text as its JSON: a name and pairs are a list or a table, a name and a word are a value."""
    values: dict[str, Any] = {}
    for line in text.splitlines():
        words = line.split()
        name = words[0].replace("-", "_").rstrip(":") if words else ""
        pairs = [_PAIR.fullmatch(word) or _SIZED.fullmatch(word) for word in words[1:]]
        if name == "order":
            values[name] = words[1:]
        elif pairs and all(pairs):
            if not isinstance(values.get(name), list):
                values[name] = []
            values[name] += [[pair[1], pair[2]] for pair in pairs if pair]
        else:
            values |= {word.replace("-", "_"): value for word, value in zip(words[::2], words[1::2], strict=False)}
            values |= {word: True for word in words if word in _MODES}
    return {name: _array(value) if name not in _TABLES else value for name, value in values.items()}


def _array(value: Any) -> Any:
    """Pairs whose left is 0 to 7 in turn, as the array that JSON would have."""
    if isinstance(value, list) and [row[0] for row in value if isinstance(row, list)] == [str(n) for n in range(8)]:
        return [row[1] for row in value]
    return value


def _list(document: Mapping[str, Any], name: str, read: Any) -> tuple[Any, ...] | None:
    """The eight values of a list, where each can be read."""
    rows = document.get(name)
    if not isinstance(rows, list) or len(rows) != 8:
        return None
    values = [read(row) if isinstance(row, (str, int, bool)) else None for row in rows]
    return tuple(values) if None not in values else None


def _number(value: Any) -> int | None:
    if isinstance(value, str) and re.fullmatch("[0-9]{1,19}", value):
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 64 else None


def _bytes(value: Any) -> int | None:
    match = _SIZE.fullmatch(value) if isinstance(value, str) else None
    return round(float(match[1]) * _SIZES[match[2]]) if match else _number(value)


def _is_told(values: Mapping[str, Any], word: str) -> bool:
    return any(values.get(name) is True for name in (word, word.replace("-", "_")))


def _applications(values: Mapping[str, Any]) -> tuple[Application, ...]:
    applications = []
    for name, selector in _TABLES.items():
        rows = values.get(name)
        for row in rows if isinstance(rows, list) else ():
            if isinstance(row, list) and len(row) >= 2:
                protocol = _PROTOCOLS.get(selector, _number)(row[0])
                priority = _number(row[1])
                if protocol is not None and priority is not None and priority < 8 and protocol < 1 << 16:
                    applications.append(Application(selector, protocol, priority))
    return tuple(sorted(set(applications)))


def _ethertype(value: Any) -> int | None:
    """Text has it in hexadecimal, JSON as a number."""
    return int(value, 16) if isinstance(value, str) and re.fullmatch("[0-9a-fA-F]{1,4}", value) else _number(value)


def dscp_of(word: Any) -> int | None:
    """A DSCP by number or by the name that iproute2 prints (RFC 2474, 2597, 3246, 5865).

    >>> dscp_of("AF31"), dscp_of("CS6"), dscp_of("EF"), dscp_of(26), dscp_of("64")
    (26, 48, 46, 26, None)
    """
    if isinstance(word, str):
        if match := re.fullmatch("AF([1-4])([1-3])", word):
            return int(match[1]) * 8 + int(match[2]) * 2
        if match := re.fullmatch("CS([0-7])", word):
            return int(match[1]) * 8
        word = {"EF": "46", "VA": "44", "LE": "1"}.get(word, word)
    number = _number(word)
    return number if number is not None and number < 64 else None


def pcp_of(word: Any) -> int | None:
    """A tag's priority and its drop eligible bit, as the kernel numbers them: "5de" is 8 + 5.

    >>> pcp_of("3nd"), pcp_of("5de"), pcp_of(3), pcp_of("8nd")
    (3, 13, 3, None)
    """
    match = re.fullmatch("([0-7])(nd|de)", word) if isinstance(word, str) else None
    number = int(match[1]) + 8 * (match[2] == "de") if match else _number(word)
    return number if number is not None and number < 16 else None


_NUMBER = lazy_pattern(r"(?<![0-9])[0-9]{1,2}(?![0-9])")
_PROTOCOLS = {"dscp": dscp_of, "ethertype": _ethertype, "pcp": pcp_of}


UNUSED = "unused"
_RATE = lazy_pattern(r"([0-9]{1,9}(?:\.[0-9]{1,6})?) ?([KMG])bps", re.IGNORECASE)
_KBIT = {"K": 1, "M": 1000, "G": 1_000_000}


def _kbit_s(text: str) -> int | None:
    """0: no limit.

    >>> _kbit_s("unlimited"), _kbit_s("2.5 Gbps"), _kbit_s("??")
    (0, 2500000, None)
    """
    if text.strip() == "unlimited":
        return 0
    match = _RATE.fullmatch(text.strip())
    return round(float(match[1]) * _KBIT[match[2].upper()]) if match else None


def _eight(text: str) -> tuple[int, ...] | None:
    words = text.split()
    return tuple(map(int, words)) if len(words) == 8 and all(re.fullmatch("[0-9]{1,9}", w) for w in words) else None


_CLASS = Layout(
    {"rate": Field("max_rate_kbit_s", _kbit_s), "tsa": Field("tc_tsa"), "bw": Field("tc_bandwidth", int)},
    lazy_pattern(
        r"tc: (?P<tc>[0-7]) ratelimit: (?P<rate>[^,]{1,30}), tsa: (?P<tsa>\w{1,16})(?:, bw: (?P<bw>[0-9]{1,3})%)?.*"
    ),
    row=lazy_pattern(r"priority:[ \t]*([0-7](?:[ ,\t]+[0-7])*).*"),
)
_MLNX_QOS = Layout(
    {
        "DCBX mode": Field("dcbx_owner", {"OS controlled": "host", "Firmware controlled": "firmware"}.get),
        "Priority trust state": Field("trust", {"dscp": "dscp", "pcp": "pcp"}.get),
        "Receive buffer size (bytes)": Field(
            "buffer_bytes", lambda text: _eight(text.partition("max_buffer_size")[0].replace(",", " "))
        ),
        "Cable len": Field("delay", lambda text: int(text) if re.fullmatch("[0-9]{1,4}", text) else None),
        "enabled": Field("pfc", lambda text: tuple(flag == 1 for flag in flags) if (flags := _eight(text)) else None),
        "buffer": Field("prio_buffer", _eight),
    },
    row=lazy_pattern(r"prio:([0-7])[ \t]+dscp:([0-9, \t]*).*|(?P<label>enabled|buffer)[ \t](?P<eight>.*)"),
    inner=_CLASS,
)


def parse_mlnx_qos(text: str) -> Dcb:
    r"""What it states; a part that the system does not support is None. Raises ParseError.

    >>> parse_mlnx_qos("Priority trust state: pcp\nCable len: 7\n").delay
    7
    """
    output = read_layout(_MLNX_QOS, text)
    for row in output.rows:
        if row["label"]:
            output.texts.setdefault(row["label"], row["eight"])
    classes, values = _classes(output), output.values()
    if not classes and "pfc" not in values and "Priority trust state" not in output.texts:
        raise ParseError("mlnx_qos: neither trust, PFC nor traffic classes")
    if "dscp2prio mapping" in output.texts or values.get("trust") == "pcp":
        dscps = ((int(dscp), int(row[1])) for row in output.rows for dscp in _NUMBER.findall(row[2] or ""))
        values["applications"] = tuple(sorted({Application("dscp", *pair) for pair in dscps if pair[0] < 64}))
    return Dcb("mlnx_qos", **values, **classes)


def _classes(output: Block) -> dict[str, Any]:
    """The class of each priority, where every one is listed; lists by traffic class. Some versions leave out the
    classes that no priority uses: where all priorities are listed, those are unused, and have no share where others
    have all."""
    sections = {int(section.texts["tc"]): section for section in output.sections.values()}
    prio_tc = {
        int(priority): int(section.texts["tc"])
        for section in output.sections.values()
        for row in section.rows
        for priority in re.findall("[0-7]", row[1])
    }
    if len(prio_tc) < 8 and len(sections) < 8:
        return {}
    rows: list[dict[str, Any]] = [
        sections[number].values() if number in sections else {"tc_tsa": UNUSED} for number in range(8)
    ]
    lists: dict[str, Any] = {"tc_tsa": tuple(row["tc_tsa"] for row in rows)}
    if len(prio_tc) == 8:
        lists["prio_tc"] = tuple(prio_tc[number] for number in range(8))
    shares = [row.get("tc_bandwidth") for row in rows]
    if any(share is not None for share in shares) and (
        len(sections) == 8 or sum(share or 0 for share in shares) == 100
    ):
        lists["tc_bandwidth"] = tuple(share or 0 for share in shares)
    rates = tuple(row.get("max_rate_kbit_s") for row in rows)
    return lists if None in rates else lists | {"max_rate_kbit_s": rates}
