"""The NPUs that the driver offers: device nodes, and which PCI function is which NPU; saved outputs of npu-smi.

The number of an NPU is its physical id, which hccn_tool and /etc/hccn.conf use. It is not the order of the bus: only
the driver's files (root), a saved `npu-smi info`, or the board of an Atlas A3 show which function has which number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from probes.ascend.npu_smi import MOST_NPUS, VENDOR, parse_hccs, parse_info, parse_sio, parse_topology
from probes.gpu.facts import Gpu, GpuFacts, PairCell
from probes.host.commands import NPU_HCCS, NPU_INFO, NPU_SIO, NPU_TOPOLOGY
from probes.host.interface import Absent, Host, ReadError
from probes.host_reader import HostReader, as_text
from probes.probe import Reading
from probes.text import ParseError, lazy_pattern, parse_digits

T = TypeVar("T")
PCI = "/sys/bus/pci/devices"
_CLASS = "0x1200"
_NODE = lazy_pattern(r"davinci(\d{1,3})")
_PLACE = lazy_pattern(r"(\d{1,3})_(\d{1,3})")  # card and chip, as options of npu-smi
_DIE = "0xd803"
# Buses of the dies of an Atlas A3 by physical id: public outputs of three machines are alike. Two dies are a module.
_A3_BUSES = ["9d", "9f", "99", "9b", "95", "97", "91", "93", "8d", "8f", "89", "8b", "85", "87", "81", "83"]
_NO_LINKS = "HCCS ports are shown by npu-smi only, which is not run: save npu-smi info -t hccs -i N -c C"


def read(host: Host) -> Reading:
    """Every NPU that the driver or a saved output lists. Raises ReadError where neither does."""
    reader = HostReader(host)
    npus = _read_output(reader, parse_info, *NPU_INFO)
    cells: tuple[PairCell, ...] = ()
    attached: int | None = None
    if npus is None:
        npus, attached = _find_on_bus(reader)
    if matrix := _read_output(reader, parse_topology, *NPU_TOPOLOGY):
        listed = {npu.index for npu in npus}
        npus = [npu._replace(cpu_affinity=matrix.cpus.get(npu.index)) if npu.index is not None else npu for npu in npus]
        npus += [Gpu(index=n, vendor=VENDOR, cpu_affinity=cpus) for n, cpus in matrix.cpus.items() if n not in listed]
        cells = matrix.pairs
    ports = _saved_of_npus(reader, npus, parse_hccs, *NPU_HCCS)
    errors = _saved_of_npus(reader, npus, parse_sio, *NPU_SIO)
    known = {npu.index for npu in npus}
    npus += [Gpu(index=index, vendor=VENDOR) for index in sorted({*ports, *errors}) if index not in known]
    if not npus and attached is None:
        raise Absent(reader.missing or "no device node of an NPU, and no saved output of npu-smi")
    gpus = tuple(
        npu._replace(
            nvlinks=ports.get(-1 if npu.index is None else npu.index, ()),
            nvlink_reason=_NO_LINKS,
            error_counts=errors.get(-1 if npu.index is None else npu.index),
        )
        for npu in npus
    )
    by_address = {gpu.address for gpu in gpus}
    cells += tuple(pair for pair in _modules(gpus) if not cells and {pair.a, pair.b} <= by_address)
    count = attached if attached is not None else len(gpus)
    return Reading(GpuFacts(gpus, pairs=cells, attached=count, vendor=VENDOR), reader.sources, reader.missing)


def find_device_nodes(reader: HostReader) -> frozenset[int] | None:
    """The numbers of /dev/davinciN; None where /dev is not seen."""
    names = reader.names("/dev")
    if names is None:
        return None
    return frozenset(int(node[1]) for name in names if (node := _NODE.fullmatch(name)))


def number_by_board(devices: Mapping[str, str]) -> dict[str, int]:
    """Physical ids of an Atlas A3 with all 16 dies at the known addresses; empty for every other board.

    >>> number_by_board({f"0000:{bus}:00.0": "0xd803" for bus in _A3_BUSES})["0000:81:00.0"]
    14
    >>> number_by_board({"0000:9d:00.0": "0xd803"})
    {}
    """
    numbers = {f"0000:{bus}:00.0": number for number, bus in enumerate(_A3_BUSES)}
    return numbers if devices.keys() == numbers.keys() and set(devices.values()) == {_DIE} else {}


def _find_on_bus(reader: HostReader) -> tuple[list[Gpu], int | None]:
    """NPUs of the bus that have a device node, and how many nodes there are; none where it is not known which have."""
    nodes = find_device_nodes(reader)
    if nodes is None:
        return [], None
    devices: dict[str, str] = {}
    for address in reader.names(PCI) or []:
        identity = reader.attributes(f"{PCI}/{address}", ("vendor", "class", "device"), source=f"{PCI}/*")
        if identity.get("vendor") == VENDOR and identity.get("class", "").startswith(_CLASS):
            devices[address] = identity.get("device", "")
    numbers = _numbers_of_driver(reader, devices) or number_by_board(devices)
    if devices and not numbers:
        reader.gap("which PCI function is which NPU is not known: dev_id of each function is for root")
    if not numbers and len(devices) != len(nodes):
        return [], len(nodes)
    return [
        Gpu(index=numbers.get(address), address=address, vendor=VENDOR, device=device)
        for address, device in devices.items()
        if not numbers or numbers[address] in nodes
    ], len(nodes)


def _numbers_of_driver(reader: HostReader, devices: Mapping[str, str]) -> dict[str, int]:
    """The number of each function, where each has one of its own; else empty."""
    numbers: dict[str, int] = {}
    for address in devices:
        try:
            content = reader.host.attributes(f"{PCI}/{address}", ("dev_id",)).get("dev_id", b"")
        except ReadError:
            continue
        number = None if isinstance(content, ReadError) else parse_digits(as_text(content), 3)
        if number is not None and number < MOST_NPUS:
            numbers[address] = number
    if len(set(numbers.values())) != len(devices):
        return {}
    reader.answered(f"{PCI}/*/dev_id")
    return numbers


def _modules(gpus: tuple[Gpu, ...]) -> list[PairCell]:
    """Pairs of dies of one module, where the board is known by all of its addresses."""
    numbers = number_by_board({gpu.address: gpu.device or "" for gpu in gpus if gpu.address})
    by_number = {number: address for address, number in numbers.items()}
    return [PairCell(by_number[die], by_number[die + 1], "SIO") for die in range(0, len(by_number), 2)]


def _saved_of_npus(reader: HostReader, npus: list[Gpu], parse: Callable[[str], T], *argv: str) -> dict[int, T]:
    """Outputs about one chip each, by physical id: of a card with one chip the card's number, with two in order."""
    if reader.host.live:
        return {}
    names = [place for text in reader.host.saved_arguments(*argv) if (place := _PLACE.fullmatch(text))]
    chips = 2 if any(int(place[2]) for place in names) or len({npu.index for npu in npus}) > 8 else 1
    outputs = {}
    for place in names[:MOST_NPUS]:
        found = _read_output(reader, parse, *argv, place[0])
        if found:
            outputs[int(place[1]) * chips + int(place[2])] = found
    return outputs


def _read_output(reader: HostReader, parse: Callable[[str], T], *argv: str) -> T | None:
    try:
        text = None if reader.host.live else reader.saved(*argv)
        return parse(text) if text is not None else None
    except (ParseError, ReadError) as why:
        reader.gap(f"{' '.join(argv)}: {why}")
        return None
