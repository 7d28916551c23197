"""`nvidia-smi -q -x`: every GPU as XML, document types nvsmi_device_v4 to v13.

A DOCTYPE is accepted and never followed; a text that declares entities is refused before it is parsed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from xml.etree import ElementTree

from probes.gpu import nvidia_smi_values as nvidia_smi_words
from probes.gpu.facts import Gpu, GpuFacts
from probes.text import Unparsable

_LIMIT_CHARACTERS = 16 << 20
_NEWEST = 13  # the newest document type that we have seen; a newer one is read as this
_TYPE = re.compile(r"nvsmi_device_v(\d{1,3})\.dtd", re.ASCII)
_END = "</nvidia_smi_log>"
_LINK = "pci/pci_gpu_link_info"

# by our names: where the value stands, newest document type first
_PLACES: Mapping[str, tuple[str, ...]] = {
    "name": ("product_name",),
    "uuid": ("uuid",),
    "serial": ("serial",),
    "minor": ("minor_number",),
    "architecture": ("product_architecture",),
    "vbios": ("vbios_version",),
    "module_id": ("platformInfo/module_id", "gpu_module_id"),
    "pstate": ("performance_state",),
    "utilization": ("utilization/gpu_util",),
    "memory": ("fb_memory_usage/total",),
    "bar1": ("bar1_memory_usage/total",),
    "persistence": ("persistence_mode",),
    "virtualization": ("gpu_virtualization_mode/virtualization_mode",),
    "addressing_mode": ("addressing_mode",),
    "c2c": ("c2c_mode", "gpu_c2c_mode"),
    "link_generation": (f"{_LINK}/pcie_gen/current_link_gen",),
    "link_width": (f"{_LINK}/link_widths/current_link_width",),
    "link_max_generation": (f"{_LINK}/pcie_gen/max_link_gen",),
    "link_max_width": (f"{_LINK}/link_widths/max_link_width",),
    "gpu_max_generation": (f"{_LINK}/pcie_gen/max_device_link_gen",),
    "host_max_generation": (f"{_LINK}/pcie_gen/max_host_link_gen",),
    "replays": ("pci/replay_counter",),
    "rollovers": ("pci/replay_rollover_counter",),
    "chassis_serial": ("platformInfo/chassis_serial_number",),
    "slot": ("platformInfo/slot_number",),
    "tray": ("platformInfo/tray_index",),
    "mig_current": ("mig_mode/current_mig",),
    "mig_pending": ("mig_mode/pending_mig",),
    "recovery_action": ("gpu_recovery_action",),
    "fabric_state": ("fabric/state",),
    "fabric_status": ("fabric/status",),
    "fabric_clique": ("fabric/cliqueId",),
    "fabric_uuid": ("fabric/clusterUuid",),
    "health_summary": ("fabric/health/summary",),
    "health_bandwidth": ("fabric/health/bandwidth",),
    "health_route_recovery": ("fabric/health/route_recovery_in_progress",),
    "health_route_unhealthy": ("fabric/health/route_unhealthy",),
    "health_access_timeout": ("fabric/health/access_timeout_recovery",),
    "health_configuration": ("fabric/health/incorrect_configuration",),
    "health_partition": ("fabric/health/partition_assigned",),
}


def parse(text: str) -> tuple[GpuFacts, str | None]:
    """The GPUs of `nvidia-smi -q -x`, and what is missing from the text. Raises Unparsable.

    >>> said, missing = parse('<?xml version="1.0" ?><!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">'
    ...     '<nvidia_smi_log><driver_version>535.54.03</driver_version><attached_gpus>1</attached_gpus>'
    ...     '<gpu id="00000000:07:00.0"><product_name>NVIDIA A100</product_name></gpu></nvidia_smi_log>')
    >>> said.driver_version, said.gpus[0].address, said.gpus[0].name, missing
    ('535.54.03', '0000:07:00.0', 'NVIDIA A100', None)
    """
    root = _root(text)
    gpus = root.findall("gpu")
    attached = nvidia_smi_words.number(_text(root, "attached_gpus") or "")
    whole = attached == len(gpus)
    facts = GpuFacts(
        gpus=tuple(_gpu(element, place if whole else None) for place, element in enumerate(gpus)),
        driver_version=_version(root, "kmd_version", "driver_version"),
        cuda_version=_version(root, "cuda_umd_version", "cuda_version"),
        attached=attached,
    )
    notes = []
    declared = _TYPE.search(text[: text.find("<nvidia_smi_log")])
    if declared and int(declared[1]) > _NEWEST:
        notes.append(f"document type v{declared[1]} is newer than v{_NEWEST}, and was read as that")
    if attached is not None and not whole:
        notes.append(f"{len(gpus)} of {attached} attached GPUs are described")
    return facts, "; ".join(notes) or None


def _root(text: str) -> ElementTree.Element:
    """The log element. nvidia-smi may print warnings before and after it."""
    if len(text) > _LIMIT_CHARACTERS:
        raise Unparsable(f"longer than {_LIMIT_CHARACTERS} characters")
    begin, end = text.find("<nvidia_smi_log"), text.rfind(_END)
    if begin < 0:
        first = next((line.strip() for line in text.splitlines() if line.strip()), "nothing")
        raise Unparsable(f"no <nvidia_smi_log>; it begins with: {first[:120]}")
    if end < begin:
        raise Unparsable(f"cut short: no {_END}")
    if "<!ENTITY" in text.upper():
        raise Unparsable("it declares entities")
    try:
        return ElementTree.fromstring(text[begin : end + len(_END)])  # noqa: S314 - no entities, bounded (above)
    except (ElementTree.ParseError, ValueError) as error:
        raise Unparsable(f"not XML: {error}") from None


def _gpu(element: ElementTree.Element, index: int | None) -> Gpu:
    values = {}
    for name, places in _PLACES.items():
        said = next((text for place in places if (text := _text(element, place)) is not None), None)
        if said is not None:
            values[name] = said
    address = element.get("id") or _text(element, "pci/pci_bus_id")
    instances = (_text(device, "uuid") for device in element.findall("mig_devices/mig_device"))
    return nvidia_smi_words.gpu(
        {**values, **({"address": address} if address else {})},
        index,
        tuple(uuid for uuid in instances if uuid and uuid.startswith("MIG-")),
    )


def _version(root: ElementTree.Element, *places: str) -> str | None:
    """The first word: R610 puts a notice behind the deprecated ones."""
    words = (nvidia_smi_words.meaning((_text(root, place) or "").partition(" ")[0]) for place in places)
    return next((word for word in words if word), None)


def _text(element: ElementTree.Element, place: str) -> str | None:
    text = element.findtext(place)
    return None if text is None else text.strip()
