"""Saved outputs of npu-smi: the list of NPUs, the topology matrix, HCCS ports of one NPU.

Formats: the print functions of hicann/driver, src/custom/dev_prod/user/npucli. NPUs are counted by their physical id:
the Phy-ID where a module has two dies, else the NPU ID. That order is not the one of the bus.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from probes.gpu.facts import Gpu, NvLink, PairCell, normal_address
from probes.layout import list_cells
from probes.named_tuple import NamedTuple
from probes.text import ParseError, lazy_pattern, parse_digits, require

VENDOR = "0x19e5"
MOST_NPUS = 64
_MOST_PORTS = 64
_ADDRESS = lazy_pattern(r"[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]")
_CHIP = lazy_pattern(r"(\d{1,3})(?: +(\d{1,3}))?")
_NAMED = lazy_pattern(r"(\d{1,3}) +(\S{1,40})")
_MEMORY = lazy_pattern(r"(\d{1,9}) */ *(\d{1,9})\s*\Z")
_HEAD = lazy_pattern(r"[ \t]*(?:NPU|Phy-ID)\d+(?:[ \t]+(?:NPU|Phy-ID|NIC)\d+)*(?:[ \t]+CPU Affinity)?[ \t]*")
_NUMBERED = lazy_pattern(r"(?:NPU|Phy-ID)(\d{1,3})")
_CPUS = lazy_pattern(r"[0-9,-]{1,200}")
# PHB is "the same NUMA node" of the manual; a Chinese build states XLink. NA: not known
_KINDS = {
    "HCCS": "HCCS", "HCCS_SW": "HCCS", "XLink": "HCCS", "XLink_SW": "HCCS", "SIO": "SIO", "UB": "UB", "PIX": "PIX",
    "PXB": "PXB", "PHB": "NODE", "SYS": "SYS",
}  # fmt: skip
_NEAREST = ("SIO", "HCCS", "UB", "PIX", "PXB", "NODE", "SYS")
_NO_NAMES = ("xxx", "Ascend910")  # of a virtual machine; of A2 and A3 alike
_HCCS_LINE = lazy_pattern(r"[ \t]*hccs ([a-z ]{2,30}?) *: *[\[(]?([^\])\n]*)[\])]?[ \t]*")
_SIO_LINE = lazy_pattern(r"[ \t]*([TR]X) Error Count *: *(\d{1,18})[ \t]*", re.ASCII)
_COUNTS = {"retry count": "retries", "error count": "crc", "crc error count": "crc"}


class NpuMatrix(NamedTuple):
    """The matrix: NPUs by physical id with their CPUs, and each pair once."""

    cpus: dict[int, str | None]
    pairs: tuple[PairCell, ...]


def parse_info(text: str) -> list[Gpu]:
    """The NPUs of `npu-smi info`. Raises ParseError where no NPU is named.

    >>> line = "| 0     910B1   | OK  | 88.4  46  0 / 0 |"
    >>> [(npu.index, npu.address) for npu in parse_info(line + "\\n| 0   | 0000:C1:00.0 | 0  0 / 0  4175 / 65536 |")]
    [(0, '0000:c1:00.0')]
    """
    npus: list[Gpu] = []
    above: re.Match[str] | None = None
    has_physical = "Phy-ID" in text
    for cells in list_cells(text):
        if any("Process id" in cell for cell in cells) or len(npus) >= MOST_NPUS:
            break
        place = next((number for number, cell in enumerate(cells) if _ADDRESS.fullmatch(cell)), None)
        if place is None:
            above = _NAMED.fullmatch(" ".join(cells[:1])) or _NAMED.fullmatch(" ".join(cells[:2])) or None
        elif above:
            npus.append(_npu(above, cells, place, has_physical))
            above = None
    require(npus, "no NPU with a bus id in the output of npu-smi info")
    if len({npu.index for npu in npus}) < len(npus):  # several chips of a card, and no Phy-ID to distinguish them
        npus = [npu._replace(index=None) for npu in npus]
    return npus


def _npu(named: re.Match[str], cells: Sequence[str], place: int, has_physical: bool) -> Gpu:
    chip = _CHIP.fullmatch(cells[0])
    memory = _MEMORY.search(cells[-1])
    index = int(named[1])
    if has_physical:
        index = int(chip[2]) if chip and chip[2] else -1
    return Gpu(
        index=index if index >= 0 else None,
        address=normal_address(cells[place]),
        name=None if named[2] in _NO_NAMES else f"Ascend {named[2].removeprefix('Ascend')}",
        memory_mib=int(memory[2]) or None if memory else None,
        vendor=VENDOR,
    )


def parse_topology(text: str) -> NpuMatrix:
    """`npu-smi info -t topo`. Of two directions that differ the farther one counts. Raises ParseError.

    >>> parse_topology("   Phy-ID12  Phy-ID13\\nPhy-ID12  X  SIO\\nPhy-ID13  SIO  X\\n").pairs
    (PairCell(a='GPU12', b='GPU13', kind='SIO'),)
    """
    heads = [line for line in text.splitlines() if _HEAD.fullmatch(line)]
    require(len(heads) == 1, f"{len(heads)} headings of a topology matrix of NPUs, 1 expected")
    names = heads[0].replace("CPU Affinity", "").split()
    columns = [int(match[1]) if (match := _NUMBERED.fullmatch(word)) else None for word in names]
    cpus: dict[int, str | None] = {}
    cells: dict[frozenset[int], str] = {}
    for line in text.splitlines():
        name, *words = line.split() or [""]
        match = _NUMBERED.fullmatch(name)
        if match is None or "X" not in words or len(cpus) >= MOST_NPUS:
            continue
        own = int(match[1])
        more = words[len(columns) :]
        cpus[own] = more[0] if more and _CPUS.fullmatch(more[0]) else None
        for other, word in zip(columns, words, strict=False):
            kind = _KINDS.get(word)
            if other is None or other == own or kind is None:
                continue
            pair = frozenset((own, other))
            cells[pair] = max(cells.get(pair, kind), kind, key=_NEAREST.index)
    require(cpus, "no row of a topology matrix of NPUs")
    pairs = sorted((min(pair), max(pair), kind) for pair, kind in cells.items())
    return NpuMatrix(cpus, tuple(PairCell(f"GPU{a}", f"GPU{b}", kind) for a, b, kind in pairs))


def parse_hccs(text: str) -> tuple[NvLink, ...]:
    """The ports of `npu-smi info -t hccs -i N -c C`, numbered as their columns from 1. Raises ParseError.

    The speed that it prints is of the port, 56 Gbit/s for each lane that is in use.

    >>> lines = "\\thccs lane mode   : [4   2 ]\\n\\thccs link speed  : [224  112 ]\\n\\thccs error count : [0 9 ]\\n"
    >>> [(port.link, port.state, port.speed_gbyte_s, port.errors) for port in parse_hccs(lines)]
    [(1, 'active', 28.0, {'crc': 0}), (2, 'active', 14.0, {'crc': 9})]
    """
    rows: dict[str, list[str]] = {}
    for line in text.splitlines():
        if match := _HCCS_LINE.fullmatch(line[:4000]):
            rows.setdefault(match[1], match[2].replace(",", " ").split()[:_MOST_PORTS])
    lists = [rows[name] for name in ("lane mode", "tx packets", *_COUNTS) if name in rows]
    if not lists or len({len(values) for values in lists}) != 1:
        raise ParseError("no lines about HCCS ports, or lines of different length")
    return tuple(_port(rows, column) for column in range(len(lists[0])))


def parse_sio(text: str) -> dict[str, int]:
    """Errors between the two dies of a module, by direction: `npu-smi info -t sio-info -i N -c C`. Raises ParseError.

    >>> parse_sio("\\tTX Error Count                 : 0\\n\\tRX Error Count                 : 3\\n")
    {'sio.tx': 0, 'sio.rx': 3}
    """
    found = [match for line in text.splitlines() if (match := _SIO_LINE.fullmatch(line[:400]))]
    counts = {f"sio.{match[1].lower()}": int(match[2]) for match in found}
    require(counts and len(counts) >= len(found), "no count of errors between dies, or those of several dies")
    return counts


def _port(rows: dict[str, list[str]], column: int) -> NvLink:
    lanes, speed = _number(rows, "lane mode", column), _number(rows, "link speed", column)
    errors = {name: count for row, name in _COUNTS.items() if (count := _number(rows, row, column)) is not None}
    if rows.get("first error lane") == [str(column + 1)] and rows.get("health status") == ["NOK"]:
        errors["first_error"] = 1
    return NvLink(
        link=column + 1,
        state="unknown" if lanes is None else "active" if lanes else "inactive",
        version=None,
        speed_gbyte_s=speed / 8 if speed else None,
        remote_kind=None,
        remote_address=None,
        errors=errors or None,
        protocol="hccs",
    )


def _number(rows: dict[str, list[str]], name: str, column: int) -> int | None:
    values = rows.get(name, [])
    text = values[column] if column < len(values) else ""
    return parse_digits(text, 20)
