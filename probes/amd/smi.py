"""What AMD's own tools state of GPUs: the `amdsmi` library of a live host, or saved `amd-smi` and `rocm-smi` outputs.

Beside what the driver shows in sysfs: numbers of GPUs, module slots, the driver's version; and all else where only such
an output is there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from probes.amd.probe import AMD, PER_HOP, number_links, split_bandwidth
from probes.amd.smi_output import MOST_GPUS, SmiOutput, as_number, parse_smi
from probes.gpu.facts import Gpu, GpuFacts, NvLink, PairCell, find_address
from probes.host.commands import AMD_LIBRARY, AMD_SAVED
from probes.host.interface import Failed, Host
from probes.host_reader import HostReader, is_asleep
from probes.probe import Reading, Skipped
from probes.text import ParseError, is_pci_address

DRIVER = "/sys/bus/pci/drivers/amdgpu"
_DIRECT = frozenset({PER_HOP, 28, 41})  # weights of one hop: of whole GPUs, and with one or both ends partitioned
_COUNTS = {"correctable_count": "correctable", "uncorrectable_count": "uncorrectable", "deferred_count": "deferred"}
# Graphics architecture as the compute driver writes it, by PCI device: it shows the rate of one link
_GFX = {"0x66a": 90_006, "0x738": 90_008, "0x740": 90_010, "0x74a": 90_402, "0x74b": 90_402, "0x75a": 90_500}
_BLOCK = "xgmi_wafl"


def read(host: Host) -> Reading:
    """GPUs and pairs, by all outputs that are there. Raises ReadError, Skipped."""
    reader = HostReader(host)
    live = host.live or host.kind == "capture"
    if live:
        _leave_asleep(host)
    parsed, why = SmiOutput({}, {}), ""
    for argv in AMD_LIBRARY if live else tuple(argv for argv in AMD_SAVED if host.has_output(*argv)):
        name = " ".join(argv)
        try:
            output = parse_smi(host.run(*argv).stdout)
        except ParseError as reason:
            why = f"{name}: {reason}"
            reader.gap(why)
            continue
        reader.answered(name)
        if output.cut:
            reader.gap(f"{name}: the output is cut, its end is missing")
        for number, record in output.gpus.items():
            parsed.gpus.setdefault(number, {}).update(record)
        for pair, link in output.pairs.items():
            parsed.pairs.setdefault(pair, {}).update(link)
    if not parsed.gpus and not parsed.pairs:
        raise Failed(why or "the outputs name no GPU")
    facts = build_facts(parsed)
    if not live:
        facts = facts._replace(gpus=_with_widths(facts.gpus, parsed))
    return Reading(facts, reader.sources, reader.missing)


def _leave_asleep(host: Host) -> None:
    """The library opens every GPU, and that wakes it. Raises Skipped, ReadError."""
    for name in host.listdir(DRIVER)[: 4 * MOST_GPUS]:
        if is_pci_address(name) and is_asleep(host, f"/sys/bus/pci/devices/{name}"):
            raise Skipped(f"{name} is suspended, and the amdsmi library would wake it")


def build_facts(output: SmiOutput) -> GpuFacts:
    """GPUs by address, each once; where no output names addresses, by number."""
    places = {name: _address(record) or name for name, record in output.gpus.items()}
    records: dict[str, tuple[int | None, Mapping[str, Any]]] = {}
    for name in sorted(output.gpus, key=lambda name: int(name[3:])):
        records.setdefault(places[name], (int(name[3:]), output.gpus[name]))
    partitioned = len(records) < len(places)
    pairs = {(places.get(a, a), places.get(b, b)): link for (a, b), link in output.pairs.items()}
    for end in sorted({end for pair in pairs for end in pair} - set(records)):
        records[end] = None, {}  # a table names addresses only
    serials = Counter(_text(record, "asic", "asic_serial") for _, record in records.values())
    gpus = tuple(
        _gpu(place, None if partitioned else number, record, sorted(records), pairs, serials)
        for place, (number, record) in records.items()
    )
    cells = tuple(
        PairCell(a, b, "XGMI")
        for a, b in sorted(pairs)
        if a < b and all(pairs.get(pair, {}).get("link_type") == "XGMI" for pair in ((a, b), (b, a)))
    )
    versions = {_text(record, "driver", "version") for record in output.gpus.values()} - {None}
    version = versions.pop() if len(versions) == 1 else None
    return GpuFacts(gpus, pairs=cells, attached=len(gpus), vendor=AMD, driver_version=version)


def _with_widths(gpus: tuple[Gpu, ...], output: SmiOutput) -> tuple[Gpu, ...]:
    """The GPUs with the lanes of their PCIe links, where `metric` states those in use and `static` those possible."""
    widths = {
        int(name[3:]): (
            as_number(_read_field(row, "pcie", "width")),
            as_number(_read_field(row, "bus", "max_pcie_width")),
        )
        for name, row in output.gpus.items()
    }
    return tuple(
        gpu._replace(link_width=widths[gpu.index][0], link_max_width=widths[gpu.index][1])
        if gpu.index is not None and all(widths[gpu.index])
        else gpu
        for gpu in gpus
    )


def _address(record: Mapping[str, Any]) -> str | None:
    """Of the function that all partitions share."""
    for text in (record.get("bdf"), _text(record, "bus", "bdf")):
        if isinstance(text, str) and (address := find_address(text)):
            return f"{address[:-1]}0" if as_number(record.get("partition_id")) else address
    return None


def _gpu(
    place: str,
    number: int | None,
    record: Mapping[str, Any],
    everyone: list[str],
    pairs: Mapping[tuple[str, str], Mapping[str, str]],
    serials: Mapping[str | None, int],
) -> Gpu:
    device = _text(record, "asic", "device_id")
    links = _links(place, everyone, pairs, _gfx(device))
    is_linked = any(place in pair and "link_type" in link for pair, link in pairs.items())
    joined = any(place in pair and link.get("link_type") == "XGMI" for pair, link in pairs.items())
    serial = _text(record, "asic", "asic_serial")
    unique = as_number(serial) if serials[serial] == 1 else None
    name = _text(record, "asic", "market_name")
    return Gpu(
        index=number,
        address=place if ":" in place else None,
        vendor=AMD,
        device=device,
        uuid=f"GPU-{unique:016x}" if unique else None,
        name=name if name and "AMD" in name else None,
        vbios=_text(record, "vbios", "part_number"),
        memory_mib=as_number(_read_field(record, "vram", "size")),
        module_id=as_number(_read_field(record, "asic", "oam_id")),
        numa_node=as_number(_read_field(record, "numa", "node")),
        compute_partition=_text(record, "partition", "compute_partition") or _text(record, "accelerator_type"),
        memory_partition=_text(record, "partition", "memory_partition") or _text(record, "memory"),
        nvlink_supported=None if links or joined or not is_linked else False,
        nvlink_reason=None if links else "no XGMI link is stated" if not joined else "no weight of its links is stated",
        nvlinks=links,
        pcie_peers=_pcie_peers(place, everyone, pairs),
        error_counts=_errors(record) or None,
    )


def _links(
    place: str, everyone: list[str], pairs: Mapping[tuple[str, str], Mapping[str, str]], gfx: int | None
) -> tuple[NvLink, ...]:
    """Direct links; a weight of 0 is none that is stated."""
    to_each: dict[str, tuple[int, float | None]] = {}
    for other in everyone:
        fields = pairs.get((place, other), {})
        if fields.get("link_type") == "XGMI" and as_number(fields.get("weight")) in _DIRECT:
            most = fields.get("bandwidth", "").rpartition("-")[2]
            to_each[other] = split_bandwidth(gfx, as_number(most) or 0)
    return number_links(everyone, to_each)


def _pcie_peers(
    place: str, everyone: list[str], pairs: Mapping[tuple[str, str], Mapping[str, str]]
) -> tuple[str, ...] | None:
    """Addresses of the GPUs that it reaches over PCIe; None where the access to one of them is not stated."""
    others = {other: pairs.get((place, other), {}) for other in everyone if other != place}
    over = {other: said.get("link_status") for other, said in others.items() if said.get("link_type") == "PCIE"}
    known = all("link_type" in said for said in others.values()) and {*over.values()} <= {"ENABLED", "DISABLED"}
    placed = all(":" in name for name in everyone)
    return tuple(other for other, state in over.items() if state == "ENABLED") if known and placed else None


def _errors(record: Mapping[str, Any]) -> dict[str, int]:
    blocks = record.get("ecc_blocks")
    blocks = {key.lower(): value for key, value in blocks.items()} if isinstance(blocks, dict) else {}
    block = blocks.get(_BLOCK)
    counts = {
        _COUNTS.get(key.lower()): as_number(value) for key, value in (block if isinstance(block, dict) else {}).items()
    }
    return {f"{_BLOCK}.{kind}": count for kind, count in counts.items() if kind and count is not None}


def _gfx(device: str | None) -> int | None:
    return _GFX.get((device or "").lower()[:5])


def _read_field(record: Mapping[str, Any], *keys: str) -> Any:
    value: Any = record
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _text(record: Mapping[str, Any], *keys: str) -> str | None:
    """A text; None for "N/A" and the like."""
    value = _read_field(record, *keys)
    return value[:120] if isinstance(value, str) and value not in ("", "N/A") else None
