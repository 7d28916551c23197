"""Saved output of `cxl list -v`: the same objects as JSON, nested or in one list for each kind.

Source: pmem/ndctl, Documentation/cxl/cxl-list.txt. Keys that begin a new object are read wherever they are; sizes are
numbers, or texts with `-u`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from probes.cut_json import load_json
from probes.cxl.facts import MOST, CxlFacts, CxlMemdev, CxlRegion
from probes.host.commands import CXL_SAVED
from probes.host.interface import Failed, Host
from probes.probe import Reading
from probes.text import ParseError, is_pci_address, lazy_pattern

_HEALTH = (
    "maintenance_needed",
    "performance_degraded",
    "hw_replacement_needed",
    "media_not_ready",
    "media_persistence_lost",
    "media_data_lost",
)
_UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_SIZE = lazy_pattern(r"([0-9]{1,9}(?:\.[0-9]{1,4})?) (KiB|MiB|GiB|TiB)\b")
_DEEPEST, _MOST_OBJECTS = 32, 16_384


def read_saved(host: Host) -> Reading:
    """What the first output that is there holds. Raises ReadError."""
    argv = next(argv for argv in CXL_SAVED if host.has_output(*argv))
    try:
        facts = parse_cxl_list(host.run(*argv).stdout)
        return Reading(facts, (" ".join(argv),), "the output of cxl list is cut" if facts.cut else None)
    except ParseError as why:
        raise Failed(str(why)) from None


def parse_cxl_list(text: str) -> CxlFacts:
    """Memory devices and regions; of an output without its end no regions. Raises ParseError for what is no JSON.

    >>> parse_cxl_list('[{"memdev":"mem0","ram_size":268435456,"host":"0000:d3:00.0"}]').memdevs[0].address
    '0000:d3:00.0'
    """
    if text.startswith(("# ", "$ ")):
        text = text.partition("\n")[2]
    try:
        document, is_cut = load_json(text)
    except ParseError as why:
        raise ParseError(f"cxl list: {why}") from why
    memdevs: dict[str, CxlMemdev] = {}
    regions: dict[str, CxlRegion] = {}
    for item, ports in _walk(document, (), 0):
        if (
            (memdev := item.get("memdev"))
            and item.keys() & {"host", "health", "media_errors"}
            and isinstance(memdev, str)
        ):
            memdevs.setdefault(memdev, _memdev(memdev, item, is_cut))
        if isinstance(item.get("endpoint"), str) and (device := _endpoint(item, ports, is_cut)):
            memdevs[device.name] = device
        if not is_cut and ("mappings" in item or "daxregion" in item) and isinstance(region := item.get("region"), str):
            regions[region] = _region(region, item)
    return CxlFacts(tuple(memdevs[name] for name in sorted(memdevs)[:MOST]), tuple(regions.values())[:MOST], is_cut)


def _walk(value: Any, ports: tuple[str, ...], depth: int) -> Iterator[tuple[Mapping[str, Any], tuple[str, ...]]]:
    """Every object, with the ports above it; deeper ones than any tool prints are left out."""
    if depth > _DEEPEST:
        return
    if isinstance(value, dict):
        yield value, ports
        own = value.get("bus") or value.get("port")
        ports = (*ports, own) if isinstance(own, str) else ports
        value = list(value.values())
    if isinstance(value, list):
        for item in value[:_MOST_OBJECTS]:
            if isinstance(item, dict | list):
                yield from _walk(item, ports, depth + 1)


def _memdev(name: str, item: Mapping[str, Any], is_cut: bool) -> CxlMemdev:
    none = None if is_cut else 0  # a size of 0 is not printed
    address, firmware = item.get("host"), item.get("firmware_version")
    return CxlMemdev(
        name=name,
        address=address if isinstance(address, str) and is_pci_address(address) else None,
        ram_bytes=_size(item.get("ram_size", none)),
        pmem_bytes=_size(item.get("pmem_size", none)),
        qos_class=_size(item.get("ram_qos_class")),
        firmware=firmware if isinstance(firmware, str) else None,
        numa_node=_size(item.get("numa_node")),
        health=(_health(item.get("health")) or None) if is_cut else _health(item.get("health")),
        media_errors=_media_errors(item.get("media_errors")),
    )


def _media_errors(said: Any) -> dict[str, int] | None:
    """Records of poison, by the source that the device states for each."""
    if not isinstance(said, list):
        return None
    sources = [row.get("source") for row in _objects(said)]
    return dict(Counter(source[:32] if isinstance(source, str) else "Unknown" for source in sources))


def _health(health: Any) -> tuple[str, ...] | None:
    """What a device reports of itself that is not as it should be."""
    if not isinstance(health, dict):
        return None
    return tuple(
        [name for name in _HEALTH if health.get(name) is True]
        + ["media_normal"] * (health.get("media_normal") is False)
    )


def _endpoint(item: Mapping[str, Any], ports: tuple[str, ...], is_cut: bool) -> CxlMemdev | None:
    memdev, endpoint = item.get("memdev"), item["endpoint"]
    if not isinstance(memdev, dict) or not isinstance(name := memdev.get("memdev"), str):
        return None
    sizes = [_size(decoder.get("dpa_size", 0)) for decoder in _objects(item.get(f"decoders:{endpoint}"))]
    return _memdev(name, memdev, is_cut)._replace(
        endpoint=endpoint,
        ports=ports,
        decoded_bytes=sum(size or 0 for size in sizes) if sizes and None not in sizes and not is_cut else None,
    )


def _region(name: str, item: Mapping[str, Any]) -> CxlRegion:
    mappings = sorted(
        (_size(row.get("position")) or 0, row["memdev"])
        for row in _objects(item.get("mappings"))
        if isinstance(row.get("memdev"), str)
    )
    dax = item.get("daxregion")
    devices = _objects(dax.get("devices") if isinstance(dax, dict) else None)
    nodes = [_size(row.get("target_node")) for row in devices]
    mode = devices[0].get("mode") if devices else None
    blocks = [[_size(row.get(f"{kind}_memblocks")) for row in devices] for kind in ("online", "total")]
    state = item.get("decode_state")
    return CxlRegion(
        name=name,
        size_bytes=_size(item.get("size")),
        ways=_size(item.get("interleave_ways")),
        granularity_bytes=_size(item.get("interleave_granularity")),
        committed=state == "commit" if isinstance(state, str) else None,
        memdevs=tuple(memdev for _, memdev in mappings),
        numa_node=nodes[0] if nodes else None,
        mode=mode if isinstance(mode, str) else None,
        online_blocks=_sum(blocks[0]),
        total_blocks=_sum(blocks[1]),
    )


def _sum(numbers: list[int | None]) -> int | None:
    return sum(number or 0 for number in numbers) if numbers and None not in numbers else None


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []


def _size(value: Any) -> int | None:
    """A number, or what `-u` makes of it.

    >>> _size(4096), _size("256.00 MiB (268.44 MB)"), _size(True), _size("much")
    (4096, 268435456, None, None)
    """
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 64:
        return value
    match = _SIZE.match(value) if isinstance(value, str) else None
    return round(float(match[1]) * _UNITS[match[2]]) if match else None
