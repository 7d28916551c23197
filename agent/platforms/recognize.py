"""Recognizes the platform of a node: by the firmware's product name, then by its PCI devices.

Sources: DMI strings of real machines (DGX-1, DGX-2H, DGX A100, DGX B200, GB10), cloud-init's ds-identify for clouds,
pci.ids and real dumps for the fingerprints. A name that no dump confirms gives `likely`, never `exact`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import msgspec

from agent.model.node import Node, Platform
from agent.model.pci import PciFunction
from agent.platforms.devices import is_accelerator, is_nvswitch


class _Product(msgspec.Struct, frozen=True):
    """A product name of NVIDIA, and whether a dump of a real machine confirms it."""

    pattern: str
    profile: str
    confirmed: bool


class _Fingerprint(msgspec.Struct, frozen=True):
    """`devices` in any of `counts`, with one of the NVSwitch counts in `switches` (None: any)."""

    profile: str
    vendor: str
    devices: frozenset[str]
    counts: tuple[int, ...]
    switches: tuple[int, ...] | None = None
    arch: str | None = None
    whole: bool = False  # a module that no board with fewer sockets takes: below PCIe switches, fewer are lost ones
    per_cpu: int = 0  # GPUs of one superchip: where one CPU has all of them, the other has lost some


def _product(pattern: str, profile: str, confirmed: bool = False) -> _Product:
    return _Product(f"(?i){pattern}", profile, confirmed)


def _fingerprint(
    profile: str,
    ids: str,
    counts: tuple[int, ...],
    switches: tuple[int, ...] | None = None,
    arch: str | None = None,
    vendor: str = "0x10de",
    whole: bool = False,
    per_cpu: int = 0,
) -> _Fingerprint:
    devices = frozenset(f"0x{device}" for device in ids.split())
    return _Fingerprint(profile, vendor, devices, counts, switches, arch, whole, per_cpu)


_PRODUCTS = (
    _product(r"DGX-1 with V100", "dgx1v", confirmed=True),
    _product(r"NVIDIA DGX-2H", "dgx2", confirmed=True),
    _product(r"DGXA100", "dgx-a100", confirmed=True),
    _product(r"DGXB200", "dgx-b200", confirmed=True),
    _product(r"NVIDIA_DGX_Spark", "gb10", confirmed=True),
    _product(r"DGX[ _-]?H100", "dgx-h100"),
    _product(r"DGX[ _-]?H200", "dgx-h200"),
    _product(r"DGX[ _-]?B300", "dgx-b300"),
)
_ANY = tuple(range(1, 33))
_TO_8, _TO_16 = tuple(range(1, 9)), tuple(range(1, 17))  # NVSwitches identify the board: missing GPUs are lost
_FINGERPRINTS = (
    _fingerprint("dgx2", "1db8 1db5", _TO_16, switches=(12,)),
    _fingerprint("sxm2-v100-8", "1db1 1db5", (8,), switches=(0,)),
    _fingerprint("hgx-a100-8", "20b0 20b2 20f3", _TO_8, switches=(6,)),
    _fingerprint("hgx-a100-4", "20b0 20b2", (4,), switches=(0,)),
    _fingerprint("hgx-h100-8", "2330 2324 2329 232c", _TO_8, switches=(4,)),
    _fingerprint("hgx-h100-4", "2330 2337 2338 2339", (4,)),
    _fingerprint("hgx-h200-8", "2335", _TO_8, switches=(4,)),
    _fingerprint("hgx-b200-8", "2901 2909", (8,), switches=(0,), whole=True),
    _fingerprint("hgx-b300-8", "3182", (8,), switches=(0,), whole=True),
    _fingerprint("gh200", "2342 2345 2348 237f", (1, 2, 3, 4), arch="aarch64"),
    _fingerprint("gb200-tray", "2941", (4,), arch="aarch64", per_cpu=2),
    _fingerprint("gb300-tray", "31c2 31c3", (4,), arch="aarch64", per_cpu=2),
    _fingerprint("mi300x-8", "74a1", (8,), vendor="0x1002", whole=True),
    _fingerprint("mi325x-8", "74a5", (8,), vendor="0x1002", whole=True),
    _fingerprint("mi308x-8", "74a2", (8,), vendor="0x1002", whole=True),
    _fingerprint("mi300a-4", "74a0", (4,), vendor="0x1002"),
    _fingerprint("mi250x-4", "7408", (8,), vendor="0x1002"),
    _fingerprint("mi210-8", "740f", (8,), vendor="0x1002"),
    _fingerprint("mi350x-8", "75a0 75a3", (8,), vendor="0x1002", whole=True),
    _fingerprint("ascend-a2", "d802", (8,), vendor="0x19e5"),
    _fingerprint("ascend-a3", "d803 d804", (16,), vendor="0x19e5"),
    _fingerprint("ascend-950", "d806 d807", (8,), vendor="0x19e5"),
    _fingerprint("gaudi2-8", "1020", (8,), vendor="0x1da3"),
    _fingerprint("gaudi3-8", "1060", (8,), vendor="0x1da3"),
    _fingerprint("l40s", "26b9", _ANY),
    _fingerprint("geforce", "2684 2685 2b85 2204", _ANY),
)
_AWS_SHAPE = r"(?:p[3-9]|g[4-9]|trn[1-9]|inf[1-9])[a-z0-9-]*\.(?:[0-9]*xlarge|metal[a-z0-9-]*)"
_CLOUDS_BY_TAG = {"7783-7084-3265-9085-8269-3286-77": "Azure", "OracleCloud.com": "OCI"}


def recognize_platform(
    node: Node, rows: Sequence[PciFunction], asset_tag: str | None = None, unlisted: int = 0
) -> Platform:
    """The profile and its confidence. `asset_tag`: of the chassis, where a cloud writes its name. `unlisted`: GPUs
    that the driver reports at addresses missing from the bus: a count of those on the bus is then meaningless."""
    evidence: list[str] = []
    cloud = _detect_cloud(node, asset_tag)
    if cloud:
        evidence.append(f"cloud: {cloud}")
    profile, device_reasons = _match_devices(node, rows)
    if unlisted:
        profile = None
        device_reasons = [*device_reasons, f"the driver names {unlisted} more GPUs than the PCI functions show"]
    if cloud == "AWS" and node.product and re.fullmatch(_AWS_SHAPE, node.product):
        reason = f"DMI product {node.product!r} is the instance type"
        return Platform(profile=node.product, confidence="exact", evidence=[*evidence, reason, *device_reasons])
    product = _match_product(node)
    if product:
        reason = f"DMI product {node.product!r}"
        sure = product.confirmed and (not device_reasons or profile is not None)
        return Platform(
            profile=product.profile, confidence="exact" if sure else "likely", evidence=[reason, *device_reasons]
        )
    if profile:
        return Platform(profile=profile, confidence="likely", evidence=[*evidence, *device_reasons])
    return Platform(evidence=[*evidence, *device_reasons])


def _match_product(node: Node) -> _Product | None:
    if (node.vendor or "").strip().upper() != "NVIDIA" or not node.product:
        return None
    return next((product for product in _PRODUCTS if re.match(product.pattern, node.product)), None)


def _detect_cloud(node: Node, asset_tag: str | None) -> str | None:
    if asset_tag in _CLOUDS_BY_TAG:
        return _CLOUDS_BY_TAG[asset_tag]
    if node.vendor == "Amazon EC2":
        return "AWS"
    return "GCP" if node.product == "Google Compute Engine" else None


def _match_devices(node: Node, rows: Sequence[PciFunction]) -> tuple[str | None, list[str]]:
    """The profile that the devices match, and the counts as evidence."""
    gpus = Counter(
        (row.vendor, row.device)
        for row in rows
        if is_accelerator(row.vendor, row.device, row.class_code) and not row.physical_function
    )
    switches = sum(is_nvswitch(row.vendor, row.device, row.class_code) for row in rows)
    if not gpus:
        return None, []
    counted = sorted(f"{(vendor or '')[2:]}:{(device or '')[2:]} x{count}" for (vendor, device), count in gpus.items())
    counts_text = ["PCI: " + ", ".join(counted) + (f", NVSwitch x{switches}" if switches else "")]
    for fingerprint in _FINGERPRINTS:
        of_kind = sum(
            count
            for (vendor, device), count in gpus.items()
            if vendor == fingerprint.vendor and device in fingerprint.devices
        )
        partial = fingerprint.whole and 0 < of_kind < fingerprint.counts[0] and _are_below_switches(node, rows)
        partial = partial or _is_superchip_incomplete(node, rows, fingerprint.per_cpu)
        if (of_kind not in fingerprint.counts and not partial) or of_kind != sum(gpus.values()):
            continue
        if not _have_switches(fingerprint, switches) and not _lost_switches(fingerprint, switches, node, rows):
            continue
        if fingerprint.arch is None or node.arch in (None, fingerprint.arch):
            return fingerprint.profile, counts_text
    return None, counts_text


def _have_switches(fingerprint: _Fingerprint, switches: int) -> bool:
    return fingerprint.switches is None or switches in fingerprint.switches


def _lost_switches(fingerprint: _Fingerprint, switches: int, node: Node, rows: Sequence[PciFunction]) -> bool:
    """Whether one NVSwitch of a board is missing: on bare metal none has fewer. hwloc lists 11 of a DGX-2's twelve."""
    lost = 0 < switches == min(fingerprint.switches or (0,)) - 1 and fingerprint.counts == _TO_8
    return lost and _are_below_switches(node, rows)


def _are_below_switches(node: Node, rows: Sequence[PciFunction]) -> bool:
    """Whether every accelerator is below a PCIe switch of this machine: a guest sees at most a root port."""
    by_id = {row.id: row for row in rows}
    ports = [
        by_id.get(row.parent or "")
        for row in rows
        if is_accelerator(row.vendor, row.device, row.class_code) and not row.physical_function
    ]
    return node.virtualization is None and all(port is not None and port.parent in by_id for port in ports)


def _is_superchip_incomplete(node: Node, rows: Sequence[PciFunction], per_cpu: int) -> bool:
    """Whether one CPU has all its GPUs and another has fewer: boards with fewer GPUs are even. Each GPU is below a
    port of its CPU, which a guest does not see."""
    vendors = {row.id: row.vendor for row in rows}
    gpus = [row for row in rows if is_accelerator(row.vendor, row.device, row.class_code)]
    at = Counter(row.numa_node for row in gpus)
    if node.virtualization or None in at or any(vendors.get(row.parent or "") != row.vendor for row in gpus):
        return False
    return max(at.values(), default=0) == per_cpu and at.total() < per_cpu * (node.cpu.sockets or 0)
