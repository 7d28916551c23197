"""AMD GPUs as the compute driver offers them: identity, partitions, hives, XGMI links, memory, errors by block.

Kernel: Documentation/gpu/amdgpu (driver-misc, xgmi, ras).
`xgmi_error` is never read: that clears the counter. A suspended GPU gets no read but that of its state.

With them what RCCL asks of the kernel before it lets NICs reach GPU memory: src/init.cc and src/misc/rocmwrap.cc
(numa_balancing, CONFIG_PCI_P2PDMA, CONFIG_DMABUF_MOVE_NOTIFY, memory_peers).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations

from probes.amd.kfd import XGMI, KfdGraph, KfdLink, KfdNode, read_graph
from probes.amd.metrics import LARGEST, parse_metrics, parse_xgmi
from probes.gpu.facts import Gpu, GpuFacts, NvLink, PairCell
from probes.host.interface import Absent, Denied, Host, ReadError
from probes.host_reader import SLEEPING, HostReader
from probes.named_tuple import NamedTuple
from probes.probe import Reading
from probes.text import lazy_pattern, parse_digits

AMD = "0x1002"
PCI = "/sys/bus/pci/devices"
ON_PACKAGE, PER_HOP = 13, 15  # weights of a link inside one package, and of one XGMI hop (kfd_crat.h)
_IDENTITY = ("unique_id", "serial_number", "product_name", "vbios_version", "mem_info_vram_total")
_PARTITION = ("current_compute_partition", "current_memory_partition")
_RAS = ("ras/xgmi_wafl_err_count", "ras/pcie_bif_err_count", "ras/umc_err_count")
_RAS_WORDS = {"ue": "uncorrectable", "ce": "correctable", "de": "deferred"}
_POWER = "power/runtime_status"
METRICS = "gpu_metrics"
# MB/s of one XGMI link in one direction, by the first digits of the GPU's architecture: 25 or 32 GT/s on 16 lanes;
# gfx950 is specified with 38.4, and its driver may still report 32. Kernels of 2024 and before state 25 GT/s of all.
_OLD_KERNELS = 50_000
_LINK_MBYTE_S = {
    906: (_OLD_KERNELS,),
    908: (_OLD_KERNELS,),
    910: (_OLD_KERNELS,),
    942: (64_000, _OLD_KERNELS),
    950: (76_800, 64_000, _OLD_KERNELS),
}


class _Card(NamedTuple):
    """One PCI function with all its partitions; the first has the links."""

    address: str
    nodes: tuple[KfdNode, ...]

    @property
    def first(self) -> KfdNode:
        return self.nodes[0]


def read(host: Host) -> Reading:
    """Every AMD GPU that the compute driver offers. Raises ReadError where it shows none."""
    reader = HostReader(host)
    cards = _cards(read_graph(reader))
    names = {card.address: _attributes(reader, card.address) for card in cards}
    shared = Counter(card.first.unique_id for card in cards)
    pairs = {(a.address, b.address): _routes(a, b) for a in cards for b in cards if a is not b}
    tables = {card.address: _read_metrics(reader, card.address, names[card.address]) for card in cards}
    gpus = tuple(
        _gpu(card, cards, pairs, names[card.address], shared)._replace(
            pcie_counters=parse_metrics(tables[card.address]) or None, xgmi=parse_xgmi(tables[card.address])
        )
        for card in cards
    )
    cells = tuple(
        PairCell(a.address, b.address, "XGMI")
        for a, b in combinations(cards, 2)
        if pairs[a.address, b.address] and pairs[b.address, a.address]
    )
    for card in cards:
        if len({node.unique_id for node in card.nodes}) > 1:
            reader.gap(f"{card.address}: its {len(card.nodes)} nodes in the graph have different identities")
    facts = GpuFacts(gpus, pairs=cells, attached=len(gpus), vendor=AMD, settings=read_settings(reader))
    return Reading(facts, reader.sources, reader.missing)


def parse_errors(text: str) -> dict[str, int]:
    """Counts of one block.

    >>> parse_errors("ue: 0\\nce: 12\\n")
    {'uncorrectable': 0, 'correctable': 12}
    """
    errors = {}
    for line in text.splitlines():
        word, _, text = line.partition(":")
        if word.strip() in _RAS_WORDS and (count := parse_digits(text.strip(), 18)) is not None:
            errors[_RAS_WORDS[word.strip()]] = count
    return errors


def split_bandwidth(gfx: int | None, mbyte_s: int) -> tuple[int, float | None]:
    """How many links a bandwidth is, and GB/s of each; one link where the rate of a link is not known.

    >>> split_bandwidth(90010, 200_000), split_bandwidth(90402, 64_000), split_bandwidth(90402, 0)
    ((4, 50.0), (1, 64.0), (1, None))
    >>> split_bandwidth(90402, 100_000)  # MI300A with two links per pair, before the kernel knew their rate
    (2, 50.0)
    """
    if not mbyte_s:
        return 1, None
    for rate in _LINK_MBYTE_S.get(_architecture(gfx), ()):
        if mbyte_s % rate == 0 and mbyte_s // rate <= 16:
            return mbyte_s // rate, rate / 1000
    return 1, mbyte_s / 1000


def _architecture(gfx: int | None) -> int:
    """90402 is gfx942, 90010 gfx90a: 942, 910."""
    major, minor, step = ((gfx or 0) // 10_000, (gfx or 0) // 100 % 100, (gfx or 0) % 100)
    return major * 100 + minor * 10 + step


def _cards(graph: KfdGraph) -> list[_Card]:
    by_address: dict[str, list[KfdNode]] = {}
    for node in graph.nodes:
        by_address.setdefault(node.address, []).append(node)
    return [_Card(address, tuple(by_address[address])) for address in sorted(by_address)]


def _routes(a: _Card, b: _Card) -> tuple[KfdLink, ...]:
    """The XGMI links from a GPU to another one; of its partitions each has one to every other partition."""
    numbers = {node.number for node in b.nodes}
    return tuple(link for link in a.first.links if link.type == XGMI and link.target in numbers)


def _pcie_peers(card: _Card, cards: Sequence[_Card]) -> tuple[str, ...] | None:
    """The GPUs to which a GPU has a link over PCIe; those to far processors are in the same folder."""
    if card.first.peer_links is None:
        return None
    targets = {link.target for link in card.first.peer_links}
    return tuple(c.address for c in cards if c is not card and targets & {node.number for node in c.nodes})


def _hops(a: _Card, b: _Card, link: KfdLink) -> int | None:
    """XGMI hops of a route by its weight; None where the driver states none."""
    inside = sum(ON_PACKAGE for card in (a, b) if len(card.nodes) > 1)
    return max(round((link.weight - inside) / PER_HOP), 1) if link.weight > inside else None


def _gpu(
    card: _Card,
    cards: Sequence[_Card],
    pairs: Mapping[tuple[str, str], tuple[KfdLink, ...]],
    properties: Mapping[str, str],
    shared: Mapping[int | None, int],
) -> Gpu:
    node = card.first
    alone = node.unique_id is not None and shared[node.unique_id] == 1
    links = _links(card, cards, pairs)
    unread = _why_links_unread(node)
    vram = parse_digits(properties.get("mem_info_vram_total"), 18)
    modes = [properties.get(name) for name in _PARTITION]
    return Gpu(
        address=card.address,
        vendor=AMD,
        device=f"0x{node.device:04x}",
        uuid=f"GPU-{node.unique_id:016x}" if alone else None,
        serial=properties.get("serial_number") or None,
        minor=node.render_minor,
        name=properties.get("product_name") or None,
        vbios=properties.get("vbios_version") or None,
        memory_mib=None if vram is None else vram >> 20,
        nvlink_supported=None if links or unread else False,
        nvlink_reason=unread or (None if links else "the driver shows no XGMI link of this GPU"),
        nvlinks=links,
        nvlinks_unread=node.links_unread,
        partitions=len(card.nodes) if len({n.unique_id for n in card.nodes}) == 1 else None,
        compute_partition=modes[0],
        memory_partition=modes[1],
        hive=f"{node.hive:x}" if node.hive is not None else None,
        pcie_peers=_pcie_peers(card, cards),
        error_counts=_errors(properties) or None,
    )


def _why_links_unread(node: KfdNode) -> str | None:
    """Why its links are not all known: the driver gives every GPU at least one to a processor or to another GPU."""
    if node.links_unread:
        return f"{node.links_unread} of its links in the driver's graph could not be read"
    return None if node.links else "its links in the driver's graph could not be read"


def _links(
    card: _Card, cards: Sequence[_Card], pairs: Mapping[tuple[str, str], tuple[KfdLink, ...]]
) -> tuple[NvLink, ...]:
    to_each: dict[str, tuple[int, float | None]] = {}
    for other in cards:
        routes = pairs.get((card.address, other.address))
        if routes and (_hops(card, other, routes[0]) or 1) == 1:
            to_each[other.address] = split_bandwidth(card.first.gfx, routes[0].max_mbyte_s)
    return number_links([card.address for card in cards], to_each)


def number_links(gpus: Sequence[str], to_each: Mapping[str, tuple[int, float | None]]) -> tuple[NvLink, ...]:
    """The links of one GPU, numbered by the place among all that the far GPU has: a lost one moves no other's number.
    `to_each`: how many links lead to a GPU, and GB/s of each."""
    step = max((number for number, _ in to_each.values()), default=1)
    return tuple(
        NvLink(place * step + link, "active", None, gbyte_s, "gpu", far if ":" in far else None, protocol="xgmi")
        for place, far in enumerate(gpus)
        if far in to_each
        for number, gbyte_s in (to_each[far],)
        for link in range(number)
    )


def _attributes(reader: HostReader, address: str) -> dict[str, str]:
    """Files of one function, where it is awake."""
    folder = f"{PCI}/{address}"
    power = reader.attributes(folder, (_POWER,), source=f"{PCI}/*")
    if power.get(_POWER) in SLEEPING:
        reader.gap(f"{address} is suspended and was left asleep")
        return {}
    return {**power, **reader.attributes(folder, (*_IDENTITY, *_PARTITION, *_RAS), source=f"{PCI}/*")}


def _read_metrics(reader: HostReader, address: str, said: Mapping[str, str]) -> bytes:
    """The table is a question to the GPU's firmware, of about 1 ms: only of one that is awake. Empty: none."""
    if said.get(_POWER) != "active":
        return b""
    try:
        content = reader.host.read(f"{PCI}/{address}/{METRICS}", LARGEST)
    except Absent:
        return b""
    except ReadError as why:
        reader.gap(why.reason)
        return b""
    reader.answered(f"{PCI}/*/{METRICS}")
    return content


def _errors(properties: Mapping[str, str]) -> dict[str, int]:
    counts = {}
    for name in _RAS:
        block = name.removeprefix("ras/").removesuffix("_err_count")
        counts.update({f"{block}.{kind}": count for kind, count in parse_errors(properties.get(name, "")).items()})
    return counts


BALANCING = "/proc/sys/kernel/numa_balancing"
RELEASE = "/proc/sys/kernel/osrelease"
OPTIONS = ("CONFIG_PCI_P2PDMA", "CONFIG_DMABUF_MOVE_NOTIFY")
PEERS = ("/sys/kernel/mm/memory_peers/amdkfd/version", "/sys/kernel/memory_peers/amdkfd/version")
_CONFIG_LIMIT_BYTES = 1 << 20
_RELEASE = lazy_pattern(r"[A-Za-z0-9._+~-]{1,80}")


def read_settings(reader: HostReader) -> dict[str, str]:
    """Settings by name; what could not be read is left out."""
    settings: dict[str, str] = {}
    balancing = reader.text(BALANCING)
    if balancing is not None and re.fullmatch("[0-9]{1,3}", balancing):
        settings["numa_balancing"] = balancing
    release = reader.text(RELEASE)
    if release and _RELEASE.fullmatch(release):
        settings |= _options(reader, f"/boot/config-{release}")
    peers = next((path for path in PEERS if reader.text(path) is not None), None)
    return settings | ({"peer_memory": peers} if peers else {})


def parse_options(text: str) -> dict[str, str]:
    """Of the configuration that a kernel was built with, the options that matter; "n" where one is not set.

    >>> parse_options("CONFIG_PCI_P2PDMA=y\\n# CONFIG_DMABUF_MOVE_NOTIFY is not set\\n")
    {'CONFIG_PCI_P2PDMA': 'y', 'CONFIG_DMABUF_MOVE_NOTIFY': 'n'}
    """
    options = {}
    for option in OPTIONS:
        match = re.search(rf"^{option}=([ymn])$", text, re.MULTILINE)
        options[option] = match[1] if match else "n"
    return options


def _options(reader: HostReader, path: str) -> dict[str, str]:
    try:
        text = reader.host.read(path, _CONFIG_LIMIT_BYTES).decode("ascii", "replace")
    except Denied as why:
        reader.gap(why.reason)
        return {}
    except ReadError:
        return {}
    if "CONFIG_PCI=" not in text:
        return {}
    reader.answered(path)
    return parse_options(text)
