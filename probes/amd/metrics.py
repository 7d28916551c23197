"""The table that the firmware of an AMD GPU fills: struct gpu_metrics of the kernel's kgd_pp_interface.h.

Versions to 1.8 have each value at a place of its own. From 1.9 on a table is a list of attributes: a word that states
the id, the type and the number of the values behind it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence

from probes.gpu.facts import XgmiPorts
from probes.named_tuple import NamedTuple

LARGEST = 8_192  # bytes; those known have 3,360 at most
_NOT_COUNTED = (1 << 64) - 1
_PORTS = 8
_NOT_STATED = 0xFFFF  # also of a port that is switched off
_STATES = {0: "inactive", 1: "active", _NOT_STATED: "unknown"}


class _Place(NamedTuple):
    """One version: its bytes, and offsets of what is read."""

    size: int
    replays: int  # a 64-bit count, and behind it that of their rollovers
    xgmi: int  # two 16-bit words: width, rate of a lane
    states: int | None = None  # of eight ports, 16 bits each; None: it states none


# MI300 by its firmware (1.4 to 1.7), MI350 (1.8)
_PLACES = {
    (1, 4): _Place(288, 88, 52),
    (1, 5): _Place(328, 120, 84),
    (1, 6): _Place(1664, 104, 64),
    (1, 7): _Place(2208, 112, 72, 264),
    (1, 8): _Place(3360, 112, 72, 264),
}
_LISTED = (1, 9)
_WIDTH, _RATE, _REPLAYS, _ROLLOVERS, _LINKS = 18, 19, 25, 26, 31  # enum amdgpu_metrics_attr_id
_TYPES = "BbHhIiQq"  # enum amdgpu_metrics_attr_type, as struct names them


def parse_metrics(content: bytes) -> dict[str, int]:
    """Counts of the PCIe link; of a version that is not known none, as it has them elsewhere.

    >>> parse_metrics(struct.pack("<HBB", 2208, 1, 7).ljust(112, b"\\0") + b"\\x05".ljust(2096, b"\\0"))
    {'replays': 5, 'replay_rollovers': 0}
    >>> parse_metrics(struct.pack("<HBB", 2208, 1, 6).ljust(2208, b"\\0")), parse_metrics(b"")
    ({}, {})
    """
    values = _read_table(content)
    counts = {"replays": values.get(_REPLAYS), "replay_rollovers": values.get(_ROLLOVERS)}
    return {name: row[0] for name, row in counts.items() if row and row[0] != _NOT_COUNTED}


def parse_xgmi(content: bytes) -> XgmiPorts | None:
    """Ports of a table, which numbers them by hardware and not by the GPU at the other end; states from 1.7 on.

    >>> table = bytearray(struct.pack("<HBB", 2208, 1, 7).ljust(2208, b"\\0"))
    >>> struct.pack_into("<HH", table, 72, 16, 32)
    >>> struct.pack_into("<8H", table, 264, 1, 1, 0, 0, *4 * [0xFFFF])
    >>> parse_xgmi(bytes(table))
    XgmiPorts(width=16, lane_gbit_s=32, states=('active', 'active', 'inactive', 'inactive', 'unknown', 'unknown', \
'unknown', 'unknown'))
    """
    values = _read_table(content)
    words = (row[0] if (row := values.get(name)) else 0 for name in (_WIDTH, _RATE))
    width, rate = (word if 0 < word < _NOT_STATED else None for word in words)
    states = values.get(_LINKS, ())
    known = {*states} <= _STATES.keys() and {*states} != {_NOT_STATED}
    ports = XgmiPorts(width, rate, tuple(_STATES[word] for word in states) if known else ())
    return ports if ports != XgmiPorts() else None


def _read_table(content: bytes) -> Mapping[int, Sequence[int]]:
    """Values by the id that they have from 1.9 on; empty where the table is cut, or of a version that is not known."""
    if len(content) < 8:
        return {}
    size, *version = struct.unpack_from("<HBB", content)
    if len(content) != size:
        return {}
    if tuple(version) == _LISTED:
        try:
            return dict(_list_attributes(content))
        except (struct.error, IndexError):  # it ends within an attribute, or has a type that is not known
            return {}
    place = _PLACES.get((version[0], version[1]))
    return _read_places(content, place) if place and place.size == size else {}


def _read_places(content: bytes, place: _Place) -> dict[int, Sequence[int]]:
    replays, rollovers = struct.unpack_from("<QQ", content, place.replays)
    width, rate = struct.unpack_from("<HH", content, place.xgmi)
    states = () if place.states is None else struct.unpack_from(f"<{_PORTS}H", content, place.states)
    return {_REPLAYS: [replays], _ROLLOVERS: [rollovers], _WIDTH: [width], _RATE: [rate], _LINKS: states}


def _list_attributes(content: bytes) -> Iterator[tuple[int, Sequence[int]]]:
    """Id and values of each. Raises struct.error, IndexError."""
    (count,) = struct.unpack_from("<i", content, 4)
    at = 8
    for _ in range(count):
        (word,) = struct.unpack_from("<Q", content, at)
        form = f"<{word & 0x3FF}{_TYPES[word >> 20 & 0xF]}"
        yield word >> 10 & 0x3FF, struct.unpack_from(form, content, at + 8)
        at += 8 + struct.calcsize(form)
