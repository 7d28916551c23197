"""`nvidia-smi -q`: every GPU as an indented text, "Name : value" below headings (drivers R470 to R610)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from probes.gpu import nvidia_smi_values as nvidia_smi_words
from probes.gpu.facts import Gpu, GpuFacts
from probes.text import Unparsable

_LIMIT_CHARACTERS = 16 << 20
_LIMIT_LINE = 1000
_LIMIT_DEPTH = 12
_GPU = re.compile(r"GPU ([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])", re.ASCII)
_CUTS = ("[...]", "...", "…")

# by our names: where the value stands, newest layout first
_PLACES: Mapping[str, tuple[str, ...]] = {
    "name": ("Product Name",),
    "uuid": ("GPU UUID",),
    "serial": ("Serial Number",),
    "minor": ("Minor Number",),
    "architecture": ("Product Architecture",),
    "vbios": ("VBIOS Version",),
    "module_id": ("Platform Info/Module Id", "Module Id", "Module ID"),
    "pstate": ("Performance State",),
    "utilization": ("Utilization/GPU", "Utilization/Gpu"),
    "memory": ("FB Memory Usage/Total",),
    "bar1": ("BAR1 Memory Usage/Total",),
    "persistence": ("Persistence Mode",),
    "virtualization": ("GPU Virtualization Mode/Virtualization Mode", "GPU Virtualization Mode/Virtualization mode"),
    "addressing_mode": ("Addressing Mode",),
    "c2c": ("GPU C2C Mode",),
    "link_generation": ("PCI/GPU Link Info/PCIe Generation/Current",),
    "link_width": ("PCI/GPU Link Info/Link Width/Current",),
    "link_max_generation": ("PCI/GPU Link Info/PCIe Generation/Max",),
    "link_max_width": ("PCI/GPU Link Info/Link Width/Max",),
    "gpu_max_generation": ("PCI/GPU Link Info/PCIe Generation/Device Max",),
    "host_max_generation": ("PCI/GPU Link Info/PCIe Generation/Host Max",),
    "replays": ("PCI/Replays Since Reset", "PCI/Replays since reset"),
    "rollovers": ("PCI/Replay Number Rollovers",),
    "chassis_serial": ("Platform Info/Chassis Serial Number",),
    "slot": ("Platform Info/Slot Number",),
    "tray": ("Platform Info/Tray Index",),
    "mig_current": ("MIG Mode/Current",),
    "mig_pending": ("MIG Mode/Pending",),
    "recovery_action": ("GPU Recovery Action",),
    "fabric_state": ("Fabric/State",),
    "fabric_status": ("Fabric/Status",),
    "fabric_clique": ("Fabric/CliqueId",),
    "fabric_uuid": ("Fabric/ClusterUUID",),
    "health_summary": ("Fabric/Health/Summary",),
    "health_bandwidth": ("Fabric/Health/Bandwidth",),
    "health_route_recovery": ("Fabric/Health/Route Recovery in progress",),
    "health_route_unhealthy": ("Fabric/Health/Route Unhealthy",),
    "health_access_timeout": ("Fabric/Health/Access Timeout Recovery",),
    "health_configuration": ("Fabric/Health/Incorrect Configuration",),
    "health_partition": ("Fabric/Health/Partition Assigned",),
}


def parse(text: str) -> tuple[GpuFacts, str | None]:
    r"""The GPUs of `nvidia-smi -q`, and what is missing from the text. Raises Unparsable.

    >>> said, missing = parse("Driver Version : 545.23.08\nAttached GPUs : 1\nGPU 00000000:19:00.0\n"
    ...     "    Product Name : NVIDIA H100 80GB HBM3\n    PCI\n        GPU Link Info\n            Link Width\n"
    ...     "                Current : 16x\n")
    >>> said.driver_version, said.gpus[0].address, said.gpus[0].name, said.gpus[0].link_width
    ('545.23.08', '0000:19:00.0', 'NVIDIA H100 80GB HBM3', 16)
    """
    if len(text) > _LIMIT_CHARACTERS:
        raise Unparsable(f"longer than {_LIMIT_CHARACTERS} characters")
    top, sections, cut = _sections(text)
    attached = nvidia_smi_words.number(top.get("Attached GPUs", ""))
    if not sections and attached is None:
        first = next((line.strip() for line in text.splitlines() if line.strip()), "nothing")
        raise Unparsable(f"no GPU; it begins with: {first[:120]}")
    whole = attached == len(sections)
    facts = GpuFacts(
        gpus=tuple(_gpu(section, place if whole else None) for place, section in enumerate(sections.values())),
        driver_version=_version(top, "KMD Version", "Driver Version"),
        cuda_version=_version(top, "CUDA UMD Version", "CUDA Version"),
        attached=attached,
    )
    notes = ["its author cut the text"] if cut else []
    if attached is not None and not whole:
        notes.append(f"{len(sections)} of {attached} attached GPUs are described")
    return facts, "; ".join(notes) or None


def _sections(text: str) -> tuple[dict[str, str], dict[str, dict[str, str]], bool]:
    """The values before the first GPU, those of each GPU by address, and whether parts were cut out. A value's name is
    its path through the headings; of two with one path (MIG devices) the first stays."""
    top: dict[str, str] = {}
    sections: dict[str, dict[str, str]] = {}
    headings: list[tuple[int, str]] = []
    current, cut = top, False
    lines = text.splitlines()
    if not text.endswith(("\n", "\r")):
        lines = lines[:-1]  # its value may be cut
    for line in lines:
        words = line.expandtabs().strip()
        if not words or len(words) > _LIMIT_LINE:
            continue
        if words in _CUTS:
            cut = True
        elif gpu := _GPU.fullmatch(words):
            current, headings = sections.setdefault(gpu[1], {"address": gpu[1]}), []
        else:
            indent = len(line.expandtabs()) - len(line.expandtabs().lstrip())
            headings = _below(headings, indent)
            name, colon, value = f"{words} ".partition(" : ")
            if colon:
                path = "/".join([*(heading for _, heading in headings), name.strip()])
                current.setdefault(path, value.strip())
            elif len(headings) < _LIMIT_DEPTH:
                headings = [*headings, (indent, words)]
    return top, sections, cut


def _below(headings: list[tuple[int, str]], indent: int) -> list[tuple[int, str]]:
    """The headings that a line of this indent stands below."""
    return [heading for heading in headings if heading[0] < indent]


def _gpu(section: Mapping[str, str], index: int | None) -> Gpu:
    values = {"address": section["address"]}
    for name, places in _PLACES.items():
        said = next((section[place] for place in places if place in section), None)
        if said is not None:
            values.setdefault(name, said)
    return nvidia_smi_words.gpu(values, index)


def _version(top: Mapping[str, str], *names: str) -> str | None:
    """The first word: R610 says "610.57.04 [Deprecated; will be removed in CUDA 14.0. Use KMD Version instead]"."""
    words = (nvidia_smi_words.meaning(top.get(name, "").partition(" ")[0]) for name in names)
    return next((word for word in words if word), None)
