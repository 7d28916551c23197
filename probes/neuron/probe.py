"""`neuron-ls`: devices by address, and which are connected to which; on a live host asked, else its saved output.

Source: the Neuron documentation, tools/neuron-sys-tools/neuron-ls. The driver's sysfs numbers devices and names no
addresses, and the order of numbers is not that of the bus: without this output they cannot be distinguished.
"""

from __future__ import annotations

import json
from itertools import combinations
from typing import Any

from probes.gpu.facts import Gpu, GpuFacts, NvLink, PairCell, normal_address
from probes.host.commands import NEURON, NEURON_SAVED
from probes.host.interface import Absent, Failed, Host
from probes.layout import list_cells
from probes.named_tuple import NamedTuple
from probes.probe import Reading
from probes.text import ParseError, lazy_pattern, parse_digits, require

AMAZON = "0x1d0f"
MOST = 256
_LIST = lazy_pattern(r"[0-9]{1,4}(?:, *[0-9]{1,4})*")
_SIZE = lazy_pattern(r"([0-9]{1,6}) (GB|MB)")


class _Device(NamedTuple):
    """One device by the tool's number."""

    number: int
    address: str
    peers: tuple[int, ...]
    memory_mib: int | None
    numa_node: int | None


def read(host: Host) -> Reading:
    """What the first output that is there states. Raises ReadError."""
    commands = (
        NEURON if host.live or host.kind == "capture" else [argv for argv in NEURON_SAVED if host.has_output(*argv)]
    )
    if not commands:
        raise Absent("no saved output of neuron-ls")
    try:
        return Reading(parse_neuron_ls(host.run(*commands[0]).stdout), (" ".join(commands[0]),))
    except ParseError as why:
        raise Failed(str(why)) from None


def parse_neuron_ls(text: str) -> GpuFacts:
    """Either form. Raises ParseError.

    >>> parse_neuron_ls('[{"neuron_device": 0, "bdf": "cc:00.0", "connected_to": []}]').gpus[0].address
    '0000:cc:00.0'
    """
    if text.startswith("$ "):
        text = text.partition("\n")[2]
    devices = _parse_json(text) if text.lstrip().startswith(("[", "{")) else _parse_table(text)
    require(devices, f"neuron-ls: no device in {text[:60]!r}")
    if len({device.number for device in devices}) < len(devices) or len({d.address for d in devices}) < len(devices):
        raise ParseError("neuron-ls: two devices have one number or one address")
    places = {device.number: device.address for device in devices}
    gpus = tuple(_gpu(device, places) for device in sorted(devices))
    cells = tuple(
        PairCell(a.address, b.address, "NEURON")
        for a, b in combinations(sorted(devices), 2)
        if b.number in a.peers and a.number in b.peers
    )
    return GpuFacts(gpus, pairs=cells, attached=len(gpus), vendor=AMAZON)


def _parse_json(text: str) -> list[_Device]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as why:
        raise ParseError(f"neuron-ls: no JSON, cut or elided: {str(why)[:80]}") from why
    devices: list[_Device] = []
    for row in _find_rows(document)[:MOST]:
        if not isinstance(row, dict) or not isinstance(row.get("bdf"), str):
            continue
        number, peers, size = row.get("neuron_device"), row.get("connected_to"), row.get("memory_size")
        peers = peers if isinstance(peers, list) else []
        if not isinstance(number, int) or not all(map(_is_number, (number, *peers))):
            continue
        memory = size >> 20 if isinstance(size, int) and _is_number(size) else None
        devices.append(
            _Device(number, _address(row["bdf"]), tuple(peers), memory, parse_digits(str(row.get("numa_node")), 3))
        )
    return devices


def _find_rows(document: Any) -> list[Any]:
    """The list of devices: the whole document, or from Neuron 2.34 on (--output-format json) the one list of devices
    among fields about the instance."""
    if isinstance(document, list):
        return document
    lists = [value for value in document.values() if _lists_devices(value)] if isinstance(document, dict) else []
    return lists[0] if len(lists) == 1 else []


def _lists_devices(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(row, dict) and "neuron_device" in row for row in value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 60


def _parse_table(text: str) -> list[_Device]:
    """Columns are named on two lines: NEURON above DEVICE."""
    rows = list_cells(text)
    if len(rows) < 2:
        return []
    names = [f"{above} {below}".strip() for above, below in zip(rows[0], rows[1], strict=False)]
    devices: list[_Device] = []
    for row in rows[2 : 2 + 64 * MOST]:
        cells = dict(zip(names, row, strict=False))
        number, peers = parse_digits(cells.get("NEURON DEVICE"), 4), cells.get("CONNECTED DEVICES", "")
        if number is None or len(devices) >= MOST:
            continue  # another process of the device above
        size = _SIZE.fullmatch(cells.get("NEURON MEMORY", ""))
        memory = int(size[1]) << (10 if size[2] == "GB" else 0) if size else None
        joined = tuple(int(peer) for peer in peers.split(",")) if _LIST.fullmatch(peers) else ()
        devices.append(
            _Device(number, _address(cells.get("PCI BDF", "")), joined, memory, parse_digits(cells.get("NUMA NODE"), 3))
        )
    return devices


def _address(bdf: str) -> str:
    """The tool leaves the domain out in some forms. Raises ParseError."""
    return normal_address(bdf if bdf.count(":") == 2 else f"0000:{bdf}")


def _gpu(device: _Device, places: dict[int, str]) -> Gpu:
    """Links are numbered by the device that they lead to: how many there are to each is not stated."""
    alone = len(places) == 1
    return Gpu(
        index=device.number,
        address=device.address,
        vendor=AMAZON,
        memory_mib=device.memory_mib,
        numa_node=device.numa_node,
        nvlink_supported=False if alone or not device.peers else None,
        nvlink_reason="the only device" if alone else None if device.peers else "neuron-ls states no connected device",
        nvlinks=tuple(
            NvLink(peer, "active", None, None, "gpu", places.get(peer), device.number, protocol="neuron")
            for peer in sorted(set(device.peers))
        ),
    )
