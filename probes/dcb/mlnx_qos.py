"""The output of `mlnx_qos -i IF` (NVIDIA's OFED tools): DCB of one mlx5 interface as text."""

from __future__ import annotations

import re
from typing import Any

from probes.dcb.facts import Application, Dcb
from probes.text import Unparsable

_OWNERS = {"OS controlled": "host", "Firmware controlled": "firmware"}
_DSCPS = re.compile(r"[ \t]*prio:([0-7])[ \t]+dscp:([0-9, \t]*)")
_CLASS = re.compile(r"tc: ([0-7]) ratelimit: ([^,]{1,30}), tsa: (\w{1,16})(?:, bw: ([0-9]{1,3})%)?")
_PRIORITIES = re.compile(r"[ \t]*priority:[ \t]*([0-7](?:[ ,\t]+[0-7])*)")
_RATE = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?) ?([KMG])bps", re.IGNORECASE)
_KBIT = {"K": 1, "M": 1000, "G": 1_000_000}


def parse_mlnx_qos(text: str) -> Dcb:
    r"""What it says; a part that the system does not support is None. Raises Unparsable.

    >>> parse_mlnx_qos("Priority trust state: pcp\nCable len: 7\n").delay
    7
    """
    lines = text.splitlines()
    labels = {key.strip(): value.strip() for line in lines for key, colon, value in [line.partition(":")] if colon}
    trust = labels.get("Priority trust state")
    enabled = _row(lines, "enabled")
    classes = _classes(lines)
    if trust is None and enabled is None and not classes:
        raise Unparsable("mlnx_qos: neither trust, PFC nor traffic classes")
    sizes = _numbers(labels.get("Receive buffer size (bytes)", "").partition("max_buffer_size")[0].replace(",", " "))
    cable = labels.get("Cable len", "")
    return Dcb(
        "mlnx_qos",
        trust=trust if trust in ("dscp", "pcp") else None,
        pfc=tuple(number == 1 for number in enabled) if enabled else None,
        delay=int(cable) if re.fullmatch("[0-9]{1,4}", cable) else None,
        prio_buffer=_row(lines, "buffer"),
        buffer_bytes=sizes,
        applications=_applications(lines) if "dscp2prio mapping" in labels or trust == "pcp" else None,
        dcbx_owner=_OWNERS.get(labels.get("DCBX mode", "")),
        **classes,
    )


def _applications(lines: list[str]) -> tuple[Application, ...]:
    found = []
    for line in lines:
        match = _DSCPS.match(line)
        if match:
            dscps = (int(word) for word in match[2].replace(",", " ").split() if len(word) <= 3)
            found += [Application("dscp", dscp, int(match[1])) for dscp in dscps if dscp < 64]
    return tuple(sorted(set(found)))


def _classes(lines: list[str]) -> dict[str, Any]:
    """The class of each priority, where every one is told; lists by traffic class, where each of the eight is told:
    some versions leave out classes without a priority."""
    told: dict[int, re.Match[str]] = {}
    prio_tc: dict[int, int] = {}
    current = None
    for line in lines:
        match = _CLASS.match(line)
        if match:
            current = int(match[1])
            told[current] = match
        elif current is not None and (of := _PRIORITIES.match(line)):
            prio_tc |= dict.fromkeys(map(int, re.split(r"[ ,\t]+", of[1])), current)
    placed = {"prio_tc": tuple(prio_tc[number] for number in range(8))} if len(prio_tc) == 8 else {}
    if set(told) != set(range(8)):
        return placed
    rows = [told[number] for number in range(8)]
    rates = [_kbit_s(row[2]) for row in rows]
    known = {
        "tc_tsa": tuple(row[3] for row in rows),
        "tc_bandwidth": tuple(int(row[4] or 0) for row in rows) if any(row[4] for row in rows) else None,
        "max_rate_kbit_s": tuple(rates) if None not in rates else None,
    }
    return placed | {key: value for key, value in known.items() if value is not None}


def _kbit_s(text: str) -> int | None:
    """0: no limit.

    >>> _kbit_s("unlimited"), _kbit_s("2.5 Gbps"), _kbit_s("??")
    (0, 2500000, None)
    """
    if text.strip() == "unlimited":
        return 0
    match = _RATE.fullmatch(text.strip())
    return round(float(match[1]) * _KBIT[match[2].upper()]) if match else None


def _row(lines: list[str], name: str) -> tuple[int, ...] | None:
    """The eight numbers behind this word."""
    rows = (line.split() for line in lines)
    return next((_numbers(" ".join(words[1:])) for words in rows if words[:1] == [name]), None)


def _numbers(text: str) -> tuple[int, ...] | None:
    words = text.split()
    return tuple(map(int, words)) if len(words) == 8 and all(re.fullmatch("[0-9]{1,9}", w) for w in words) else None
