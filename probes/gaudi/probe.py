"""Gaudi cards and the state of their ports, or a saved table of `hl-smi`.

Kernel: Documentation/ABI/testing/sysfs-driver-habanalabs; ports as HabanaAI/HCL reads them. `ports_mask` and
`ext_ports_mask` are masks of NIC numbers; the RDMA device numbers the ports that are on from 1.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import combinations

from probes.gaudi.wiring import PORTS, Board, find_board
from probes.gpu.facts import Gpu, GpuFacts, NvLink, PairCell
from probes.host.commands import HL_SMI_SAVED
from probes.host.interface import Absent, Failed, Host, ReadError
from probes.host_reader import SLEEPING, HostReader
from probes.named_tuple import NamedTuple
from probes.probe import Reading
from probes.text import ParseError, is_pci_address, lazy_pattern, parse_digits, require

HABANA = "0x1da3"
ACCEL, OLD_ACCEL, RDMA = "/sys/class/accel", "/sys/class/habanalabs", "/sys/class/infiniband"
PCI = "/sys/bus/pci/devices"
OPERATIONAL = "Operational"
MOST = 64  # cards of one host
_CARD = lazy_pattern(r"(?:accel|hl)[0-9]{1,4}")
_PORTS_OF = lazy_pattern(r"(?:hbl|hlib)_[0-9]{1,4}")
_MASK = lazy_pattern(r"(?:0x)?[0-9a-f]{1,6}")
_GBYTE_S = {"0x1020": 12.5, "0x1021": 12.5, "0x1060": 25.0, "0x1063": 25.0}  # of a port, one way: 100, 200 Gbit/s
_ROW = lazy_pattern(
    r"\|\s+([0-9]{1,4})\s+(HL-\S+)\s+\S+\s+\|\s+([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]) "
)
_MEMORY = lazy_pattern(r"\|[^|]*\|\s+[0-9]+MiB / +([0-9]{1,9})MiB \|")
_DRIVER = lazy_pattern(r"^\| Driver Version:\s+(\S+)\s+\|", re.MULTILINE)


class _Card(NamedTuple):
    """One PCI function, and the ports that its RDMA device has: NIC number -> whether its link is up, or None."""

    address: str
    minor: int
    device: str
    module: int | None
    status: str | None
    hard_resets: int | None  # hard_reset_cnt: since the driver was loaded
    ports: Mapping[int, bool | None] = {}
    scale_out: frozenset[int] | None = None  # None: the driver does not show it


def read(host: Host) -> Reading:
    """Every card that habanalabs has opened. Raises ReadError where it shows none."""
    reader = HostReader(host)
    names = {folder: reader.names(folder) for folder in (ACCEL, OLD_ACCEL)}
    folder = next((folder for folder in names if names[folder]), None)
    cards = _read_cards(reader, folder) if folder else []
    if not cards:
        for argv in HL_SMI_SAVED:
            if host.has_output(*argv):
                try:
                    return Reading(parse_hl_smi(host.run(*argv).stdout), (" ".join(argv),))
                except ParseError as why:
                    raise Failed(str(why)) from None
        if names[ACCEL] != [] or names[OLD_ACCEL] or not _is_on_bus(reader):
            raise Absent(f"no card in {ACCEL}")
        reader.answered(ACCEL)  # the class is there, and the driver made no device of any card
    ports = _read_ports(reader)
    cards = [
        card._replace(ports=ports[card.address][0], scale_out=ports[card.address][1]) if card.address in ports else card
        for card in cards
    ]
    return Reading(build_facts(cards), reader.sources, reader.missing)


def _is_on_bus(reader: HostReader) -> bool:
    """Whether a PCI function is of this maker."""
    addresses = reader.names(PCI) or ()
    return any(
        reader.attributes(f"{PCI}/{one}", ("vendor",), source=f"{PCI}/*").get("vendor") == HABANA for one in addresses
    )


def _read_cards(reader: HostReader, folder: str) -> list[_Card]:
    cards: list[_Card] = []
    for name in [name for name in reader.names(folder) or () if _CARD.fullmatch(name)][:MOST]:
        if _is_asleep(reader, f"{folder}/{name}"):
            continue
        below = f"{folder}/{name}/device" if folder == ACCEL else f"{folder}/{name}"
        files = reader.attributes(below, ("pci_addr", "module_id", "status", "hard_reset_cnt"), source=f"{folder}/*")
        address = files.get("pci_addr", "").lower()
        if not is_pci_address(address):
            continue  # a card of another driver
        ids = reader.attributes(f"{PCI}/{address}", ("vendor", "device"), source=f"{PCI}/*")
        if ids.get("vendor") == HABANA:
            module, resets = parse_digits(files.get("module_id"), 3), parse_digits(files.get("hard_reset_cnt"), 10)
            minor = int(name.lstrip("acelh"))
            cards.append(_Card(address, minor, ids.get("device", ""), module, files.get("status") or None, resets))
    return sorted(cards, key=lambda card: (card.address, card.minor))


def _is_asleep(reader: HostReader, device: str) -> bool:
    """Whether the PCI function of a class device is suspended: then nothing of it is read, as that could wake it."""
    power = reader.attributes(f"{device}/device/power", ("runtime_status",), source=f"{PCI}/*")
    if power.get("runtime_status") not in SLEEPING:
        return False
    reader.gap(f"{device.rpartition('/')[2]} is suspended and was left asleep")
    return True


def _read_ports(reader: HostReader) -> dict[str, tuple[dict[int, bool | None], frozenset[int] | None]]:
    """By address: the state of every port, and which of them leave the box."""
    ports = {}
    for name in [name for name in reader.names(RDMA) or () if _PORTS_OF.fullmatch(name)][:MOST]:
        try:
            address = reader.host.resolve(f"{RDMA}/{name}/device").rsplit("/", 1)[-1]
        except ReadError as why:
            reader.gap(str(why))
            continue
        if _is_asleep(reader, f"{RDMA}/{name}"):
            continue
        files = reader.attributes(f"{RDMA}/{name}", ("ports_mask", "ext_ports_mask"), source=f"{RDMA}/*")
        nics = parse_mask(files.get("ports_mask"))
        if nics is None:
            reader.gap(f"{name} does not state which ports it has")
            continue
        states: dict[int, bool | None] = {}
        for port, nic in enumerate(sorted(nics), 1):
            text = reader.text(f"{RDMA}/{name}/ports/{port}/phys_state", source=f"{RDMA}/*/ports/*/phys_state")
            states[nic] = text.startswith("5") if text else None
        ports[address] = states, parse_mask(files.get("ext_ports_mask"))
    return ports


def parse_mask(text: str | None) -> frozenset[int] | None:
    """The numbers of the bits that are set; None where it is no mask.

    >>> sorted(parse_mask("0x23")), parse_mask("many"), parse_mask(None)
    ([0, 1, 5], None, None)
    """
    if text is None or not _MASK.fullmatch(text.lower()):
        return None
    return frozenset(bit for bit in range(PORTS) if int(text, 16) >> bit & 1)


def build_facts(cards: list[_Card]) -> GpuFacts:
    """Cards with their ports as links; the far end of each by the board, where all cards fit one that is known."""
    modules = {card.module: card for card in cards if card.module is not None}
    known = {number: (card.device, card.scale_out) for number, card in modules.items() if card.scale_out is not None}
    whole = len(modules) == len(known) == len(cards)
    board = (
        find_board({number: (device, ports) for number, (device, ports) in known.items() if ports is not None})
        if whole
        else None
    )
    gpus = tuple(_gpu(card, board, modules) for card in cards)
    joined = {(gpu.address, link.remote_address) for gpu in gpus for link in gpu.nvlinks}
    cells = tuple(
        PairCell(a.address, b.address, "GAUDI")
        for a, b in combinations(cards, 2)
        if (a.address, b.address) in joined and (b.address, a.address) in joined
    )
    return GpuFacts(gpus, pairs=cells, attached=len(gpus), vendor=HABANA)


def _gpu(card: _Card, board: Board | None, modules: Mapping[int, _Card]) -> Gpu:
    return Gpu(
        address=card.address,
        vendor=HABANA,
        device=card.device or None,
        minor=card.minor,
        module_id=card.module,
        nvlink_reason=None if card.ports else "the driver shows no ports of this card",
        nvlinks=tuple(_link(card, nic, up, board, modules) for nic, up in sorted(card.ports.items())),
        error_counts={"hard_resets": card.hard_resets} if card.hard_resets is not None else None,
        error=None if card.status in (None, OPERATIONAL) else card.status,
    )


def _link(card: _Card, nic: int, up: bool | None, board: Board | None, modules: Mapping[int, _Card]) -> NvLink:
    far = board.far_end(card.module, nic) if board and card.module is not None else None
    peer = modules.get(far[0]) if far else None
    outside = card.scale_out is not None and nic in card.scale_out
    return NvLink(
        nic,
        "unknown" if up is None else "active" if up else "inactive",
        None,
        _GBYTE_S.get(card.device),
        "network" if outside else "gpu" if far else "unknown",
        peer.address if peer else None,
        far[1] if far else None,
        protocol="gaudi",
    )


def parse_hl_smi(text: str) -> GpuFacts:
    """The table of `hl-smi`: numbers, addresses, names, memory. Raises ParseError.

    >>> parse_hl_smi("|   0  HL-225    N/A  | 0000:19:00.0     N/A |").gpus[0].address
    '0000:19:00.0'
    """
    gpus: list[Gpu] = []
    for line in text.splitlines():
        if (row := _ROW.match(line)) and len(gpus) < MOST:
            gpus.append(Gpu(index=int(row[1]), address=row[3].lower(), vendor=HABANA, name=row[2]))
        elif gpus and (memory := _MEMORY.match(line)):
            gpus[-1] = gpus[-1]._replace(memory_mib=int(memory[1]))
    require(gpus, f"hl-smi: no card in {text[:60]!r}")
    driver = _DRIVER.search(text)
    return GpuFacts(tuple(gpus), driver_version=driver[1] if driver else None, attached=len(gpus), vendor=HABANA)
