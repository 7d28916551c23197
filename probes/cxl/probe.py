"""The CXL bus in sysfs: memory devices, their ports and decoders, and regions.

Kernel page: Documentation/ABI/testing/sysfs-bus-cxl. Every file that is read here is the driver's own; those that ask
the device (CDAT, security, poison) are not.
"""

from __future__ import annotations

from collections.abc import Iterable

from probes.cxl.facts import MOST, CxlFacts, CxlMemdev, CxlRegion
from probes.host.commands import CXL_SAVED
from probes.host.interface import Absent, Host, ReadError
from probes.host_reader import FileFacts, HostReader, parse_files
from probes.probe import Reading
from probes.text import is_pci_address, lazy_pattern, text_or_none

BUS = "/sys/bus/cxl/devices"
_NUMBER = lazy_pattern(r"0x[0-9a-f]{1,16}|[0-9]{1,19}")
_PORT = lazy_pattern(r"(?:root|port)[0-9]{1,5}")
_DAX = lazy_pattern(r"dax[0-9]{1,5}\.[0-9]{1,5}")
_DECODER = lazy_pattern(r"decoder([0-9]{1,5})\.[0-9]{1,5}")
_MOST_WAYS = 16
_MODES = {"kmem": "system-ram", "device_dax": "devdax"}  # by the driver of a dax device


def read(host: Host) -> Reading:
    """What the bus shows; where it is not there, a saved output of `cxl list`. Raises ReadError."""
    reader = HostReader(host)
    try:
        names = host.listdir(BUS)
    except Absent:
        if not any(host.has_output(*argv) for argv in CXL_SAVED):
            raise
        from probes.cxl.cxl_list import read_saved  # lazy: only where such an output is

        return read_saved(host)
    reader.answered(BUS)
    endpoints = {
        name.removeprefix("endpoint"): _find_memdev(reader, name) for name in _sort_by_number(names, "endpoint")
    }
    decoders: dict[str, list[str]] = {}
    for name in names:
        if (decoder := _DECODER.fullmatch(name)) and decoder[1] in endpoints:
            decoders.setdefault(decoder[1], []).append(name)
    port_of = {memdev: port for port, memdev in endpoints.items() if memdev}
    memdevs = tuple(
        _read_memdev(reader, name, port_of.get(name), decoders.get(port_of.get(name, ""), []))
        for name in _sort_by_number(names, "mem")
    )
    regions = tuple(_read_region(reader, name, endpoints, names) for name in _sort_by_number(names, "region"))
    return Reading(CxlFacts(memdevs, regions), reader.sources, reader.missing)


def parse_number(text: str | None) -> int | None:
    """A number of the bus, decimal or hexadecimal; None where it is none.

    >>> parse_number("0x2000000000"), parse_number("2"), parse_number("-1"), parse_number(None)
    (137438953472, 2, None, None)
    """
    return int(text, 0 if text.startswith("0x") else 10) if text and _NUMBER.fullmatch(text) else None


_MEMDEV: FileFacts = {
    "ram/size": ("ram_bytes", parse_number),
    "pmem/size": ("pmem_bytes", parse_number),
    "ram/qos_class": ("qos_class", parse_number),
    "firmware_version": ("firmware", text_or_none),
    "numa_node": ("numa_node", parse_number),
}
_REGION: FileFacts = {
    "size": ("size_bytes", parse_number),
    "interleave_ways": ("ways", parse_number),
    "interleave_granularity": ("granularity_bytes", parse_number),
    "commit": ("committed", {"1": True, "0": False}.get),
}


def _sort_by_number(names: Iterable[str], kind: str) -> list[str]:
    """mem0, mem1, .. by number; `nvdimm-bridge0` and its like are no such names."""
    form = lazy_pattern(rf"{kind}([0-9]{{1,5}})")
    matches = [match for name in names if (match := form.fullmatch(name))]
    return [match[0] for match in sorted(matches, key=lambda match: int(match[1]))[:MOST]]


def _find_memdev(reader: HostReader, endpoint: str) -> str | None:
    link = reader.link(f"{BUS}/{endpoint}/uport")
    return link.rpartition("/")[2] if link else None


def _read_memdev(reader: HostReader, name: str, port: str | None, decoders: list[str]) -> CxlMemdev:
    facts = parse_files(_MEMDEV, reader.attributes(f"{BUS}/{name}", _MEMDEV, source=f"{BUS}/mem*"))
    endpoint = f"endpoint{port}" if port else None
    sizes = [
        parse_number(reader.attributes(f"{BUS}/{decoder}", ("dpa_size",), source=f"{BUS}/decoder*").get("dpa_size"))
        for decoder in decoders[:MOST]
    ]
    addresses = [part for part in _resolve(reader, name) if is_pci_address(part)]
    return CxlMemdev(
        **facts,
        name=name,
        address=addresses[-1] if addresses else None,
        decoded_bytes=sum(size or 0 for size in sizes) if sizes and None not in sizes else None,
        endpoint=endpoint,
        ports=tuple(part for part in _resolve(reader, endpoint) if _PORT.fullmatch(part)) if endpoint else (),
    )


def _resolve(reader: HostReader, name: str) -> list[str]:
    try:
        return reader.host.resolve(f"{BUS}/{name}").split("/")
    except ReadError as why:
        reader.gap(f"{BUS}/{name}: {why}")
        return []


def _read_region(reader: HostReader, name: str, endpoints: dict[str, str | None], names: Iterable[str]) -> CxlRegion:
    facts = parse_files(_REGION, reader.attributes(f"{BUS}/{name}", _REGION, source=f"{BUS}/region*"))
    wanted = [f"target{position}" for position in range(min(facts.get("ways") or 0, _MOST_WAYS))]
    targets = reader.attributes(f"{BUS}/{name}", wanted, source=f"{BUS}/region*")
    decoders = [_DECODER.fullmatch(targets.get(target, "")) for target in wanted]
    dax = f"dax_{name}"
    below = (reader.names(f"{BUS}/{dax}") or []) if dax in names else []
    devices = [device for device in below if _DAX.fullmatch(device)]
    drivers = [(reader.link(f"{BUS}/{dax}/{device}/driver") or "").rpartition("/")[2] for device in devices]
    nodes = [
        parse_number(reader.text(f"{BUS}/{dax}/{device}/target_node", source=f"{BUS}/dax_region*/dax*/target_node"))
        for device in devices
    ]
    return CxlRegion(
        **facts,
        name=name,
        memdevs=tuple(memdev for match in decoders if match and (memdev := endpoints.get(match[1]))),
        numa_node=nodes[0] if nodes else None,
        mode=_MODES.get(drivers[0]) if drivers else None,
        qos_class=_read_qos_class(reader, name),
    )


def _read_qos_class(reader: HostReader, region: str) -> int | None:
    """That of the root decoder, below which a region is."""
    decoder = next((part for part in reversed(_resolve(reader, region)) if _DECODER.fullmatch(part)), None)
    values = reader.attributes(f"{BUS}/{decoder}", ("qos_class",), source=f"{BUS}/decoder*") if decoder else {}
    return parse_number(values.get("qos_class"))
