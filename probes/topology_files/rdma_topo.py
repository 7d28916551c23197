"""`rdma_topo dump` of rdma-core (JSON) -> facts: the PCI tree with whole config spaces, RDMA devices, interfaces.

Source: rdma-core kernel-boot/rdma_topo (c818b7d30). The dump is a list of PCI functions as sysfs shows them, sorted by
name: `realpath`, `modalias`, `config` (zlib, base64; root reads 4096 bytes), `numa_node`, `iommu_group`, `vpd`, and
`subsystems`: the names below drm, infiniband, net and nvme. Host and ISA bridges, system peripherals, non-essential
instrumentation and performance counters are left out.
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

from probes.netdev.probe import Netdev, NetdevFacts
from probes.pci.config_space import decode
from probes.pci.facts import PciFacts, PciFunctionBuilder, build_functions
from probes.pci.tree import place_in_path
from probes.rdma.facts import RdmaDevice, RdmaFacts
from probes.text import ParseError, is_pci_address, lazy_pattern, require
from probes.topology_files import xml_tree
from probes.topology_files.preparsed import PreparsedFacts

NAME = "rdma-topo"
SAID = "an rdma_topo dump"
LIMIT_BYTES = 16 << 20
_CONFIG_BYTES = 4096
_NAMES_LIMIT = 1024  # of one function: virtual functions have functions of their own
_MODALIAS = lazy_pattern(
    r"pci:v0000([0-9A-F]{4})d0000([0-9A-F]{4})sv0000([0-9A-F]{4})sd0000([0-9A-F]{4})"
    r"bc([0-9A-F]{2})sc([0-9A-F]{2})i([0-9A-F]{2})"
)
_FROM_MODALIAS = ("vendor", "device", "subsystem_vendor", "subsystem_device")
_NAME = lazy_pattern(r"[!-~]{1,64}")
_UNSAID = {
    "kernel": f"{SAID} has nothing of the running system",
    "dmi": f"{SAID} does not name its machine",
    "cpu": f"{SAID} has nothing of the processors",
    "numa": f"{SAID} has the NUMA node of a device, and nothing of the nodes",
    "pci": f"{SAID} leaves out host and ISA bridges, system peripherals and performance counters; drivers, slots and"
    " error counters",
    "nvml": f"{SAID} does not ask the GPU driver",
    "rdma": f"{SAID} names RDMA devices, and has nothing of their ports",
    "netdev": f"{SAID} names interfaces, and has nothing of their state",
    "modules": f"{SAID} does not list what is loaded",
}


def parse(content: bytes) -> PreparsedFacts:
    """Everything that one dump states. Raises ParseError.

    >>> said = parse(b'[{"realpath": "/sys/devices/pci0002:00/0002:00:00.0", "config": "eJy7J7BRCQAFMAHC", "modalias":'
    ...     b' "pci:v000010DEd000022B1sv00000000sd00000000bc06sc04i00", "numa_node": 0}]')
    >>> [(f.address, f.root_bus, f.device, f.numa_node) for f in said.facts["pci"].functions]
    [('0002:00:00.0', '0002:00', '0x22b1', 0)]
    """
    items = _items(content)
    drafts: dict[str, PciFunctionBuilder] = {}
    listed = {_address(item) for item in items}
    for item in items:
        draft = _draft(item, listed)
        require(draft.address not in drafts, f"names {draft.address} twice")
        drafts[draft.address] = draft
    facts: dict[str, Any] = {"pci": PciFacts(build_functions(list(drafts.values())))}
    xml_tree.check(facts["pci"].functions)
    devices = [RdmaDevice(name, address=place) for name, place in _names(items, "infiniband")]
    interfaces = [Netdev(name, address=place) for name, place in _names(items, "net")]
    if devices:
        facts["rdma"] = RdmaFacts(tuple(devices))
    if interfaces:
        facts["netdev"] = NetdevFacts(tuple(interfaces))
    return PreparsedFacts(facts, _UNSAID)


def _items(content: bytes) -> list[Mapping[str, Any]]:
    require(len(content) <= LIMIT_BYTES, f"longer than {LIMIT_BYTES >> 20} MiB")
    try:
        items = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ParseError(f"not JSON: {str(error)[:120]}") from None
    if not isinstance(items, list) or not items or not all(isinstance(item, dict) for item in items):
        raise ParseError("not a list of PCI functions")
    require(len(items) <= xml_tree.FUNCTIONS_LIMIT, f"more than {xml_tree.FUNCTIONS_LIMIT:,} functions")
    return items


def _address(item: Mapping[str, Any]) -> str:
    path = item.get("realpath")
    name = path.rstrip("/").rpartition("/")[2] if isinstance(path, str) and len(path) < 4096 else ""
    require(is_pci_address(name), f"a function without a PCI address for its path: {path!r:.80}")
    return name


def _draft(item: Mapping[str, Any], listed: set[str]) -> PciFunctionBuilder:
    address = _address(item)
    draft = PciFunctionBuilder(address, place=place_in_path(item["realpath"], listed))
    match = _MODALIAS.fullmatch(_text(item, "modalias") or "")
    if match:
        draft.fields |= {
            name: f"0x{number.lower()}" for name, number in zip(_FROM_MODALIAS, match.groups(), strict=False)
        }
        draft.fields["class_code"] = "0x" + "".join(match.groups()[4:]).lower()
    draft.fields["numa_node"] = _number(item, "numa_node", -1)
    draft.fields["iommu_group"] = _number(item, "iommu_group", 0)
    draft.add_config(decode(_config(address, item.get("config"))))
    return draft


def _config(address: str, encoded: object) -> bytes:
    if not isinstance(encoded, str) or len(encoded) > 2 * _CONFIG_BYTES:
        raise ParseError(f"{address}: no config space")
    try:
        inflate = zlib.decompressobj()
        space = inflate.decompress(base64.b64decode(encoded, validate=True), _CONFIG_BYTES + 1)
    except (binascii.Error, ValueError, zlib.error) as error:
        raise ParseError(f"{address}: damaged config space: {error}") from None
    if not inflate.eof or len(space) > _CONFIG_BYTES:
        raise ParseError(f"{address}: a config space that is cut short, or longer than {_CONFIG_BYTES} bytes")
    return space


def _names(items: list[Mapping[str, Any]], subsystem: str) -> Iterator[tuple[str, str]]:
    """Every name of one kind once, sorted, with the address that it is below."""
    names_of: dict[str, str] = {}
    for item in items:
        below = item.get("subsystems")
        names = below.get(subsystem) if isinstance(below, dict) else None
        for name in names[:_NAMES_LIMIT] if isinstance(names, list) else ():
            if isinstance(name, str) and _NAME.fullmatch(name):
                names_of.setdefault(name, _address(item))
    yield from sorted(names_of.items())


def _text(item: Mapping[str, Any], key: str) -> str | None:
    value = item.get(key)
    return value if isinstance(value, str) else None


def _number(item: Mapping[str, Any], key: str, least: int) -> int | None:
    value = item.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and least <= value < 1 << 31 else None
