"""The values of every GPU in the three forms in which nvidia-smi prints them (drivers R470 to R610).

`nvidia-smi -q` is an indented text, "Name : value" below headings. `nvidia-smi -q -x` is XML, document types
nvsmi_device_v4 to v13: a DOCTYPE is accepted and never followed, a text that declares entities is refused before it is
parsed. `nvidia-smi --query-gpu=... --format=csv` has a GPU a line below a heading of field names, whichever were asked
for.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from itertools import pairwise
from xml.etree import ElementTree

from probes.gpu import nvidia_smi_health, nvidia_smi_values
from probes.gpu.facts import Gpu, GpuFacts
from probes.text import MONTHS, ParseError, check_length, first_line, lazy_pattern, require

_LIMIT_CHARACTERS = 16 << 20
_LIMIT_LINE = 1000
_LIMIT_DEPTH = 12
_LIMIT_MIG = 64  # MIG devices of one GPU
_MIG_DEVICE = "MIG Device"
_MIG_NUMBER = lazy_pattern(r"[0-9]{1,3}")
_GPU = lazy_pattern(r"GPU ([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])", re.ASCII)
_CUTS = ("[...]", "...", "…", "--")  # the last between two places that grep shows
_ALWAYS = frozenset({"Product Name", "GPU UUID"})  # of a GPU whose lines no filter took away

# by the names of `nvidia_smi_values.gpu`: where the value is, newest layout first
TEXT_FIELDS: Mapping[str, tuple[str, ...]] = {
    **nvidia_smi_health.TEXT,
    "name": ("Product Name",),
    "uuid": ("GPU UUID",),
    "serial": ("Serial Number",),
    "minor": ("Minor Number",),
    "architecture": ("Product Architecture",),
    "vbios": ("VBIOS Version",),
    "module_id": ("Platform Info/Module Id", "Module Id", "Module ID"),
    "pstate": ("Performance State",),
    "utilization_percent": ("Utilization/GPU", "Utilization/Gpu"),
    "memory_mib": ("FB Memory Usage/Total",),
    "bar1_mib": ("BAR1 Memory Usage/Total",),
    "virtualization": ("GPU Virtualization Mode/Virtualization Mode", "GPU Virtualization Mode/Virtualization mode"),
    "addressing_mode": ("Addressing Mode",),
    "c2c_enabled": ("GPU C2C Mode",),
    "link_generation": ("PCI/GPU Link Info/PCIe Generation/Current",),
    "link_width": ("PCI/GPU Link Info/Link Width/Current",),
    "link_max_generation": ("PCI/GPU Link Info/PCIe Generation/Max",),
    "link_max_width": ("PCI/GPU Link Info/Link Width/Max",),
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


@cache
def _list_short_paths() -> dict[str, str]:
    """Ends of the paths above that one field alone has, each with its path: a filter takes headings away."""
    fields: dict[str, set[str]] = {}
    places: dict[str, str] = {}
    for name, paths in TEXT_FIELDS.items():
        for path in paths:
            parts = path.split("/")
            for start in range(1, len(parts)):
                short = "/".join(parts[start:])
                if "/" in short or " " in short:  # a word alone may be of anything: State, Current
                    fields.setdefault(short, set()).add(name)
                    places.setdefault(short, path)
    return {short: path for short, path in places.items() if len(fields[short]) == 1}


_LOG = "==NVSMI LOG=="
_STAMP = lazy_pattern(
    r"^Timestamp[ \t]{0,60}:[ \t]{1,4}[A-Z][a-z]{2} ([A-Z][a-z]{2}) {1,2}(\d{1,2}) (\d\d:\d\d:\d\d) (\d{4})",
    re.ASCII | re.MULTILINE,
)
_LIMIT_HEAD = 2000  # characters of a log before its first GPU


def parse_text(text: str) -> tuple[GpuFacts, str | None]:
    r"""The GPUs of `nvidia-smi -q`, and what is missing from the text. Raises ParseError.

    >>> said, missing = parse_text("Driver Version : 545.23.08\nAttached GPUs : 1\nGPU 00000000:19:00.0\n"
    ...     "    Product Name : NVIDIA H100 80GB HBM3\n    PCI\n        GPU Link Info\n            Link Width\n"
    ...     "                Current : 16x\n")
    >>> said.driver_version, said.gpus[0].address, said.gpus[0].name, said.gpus[0].link_width
    ('545.23.08', '0000:19:00.0', 'NVIDIA H100 80GB HBM3', 16)
    """
    check_length(text, _LIMIT_CHARACTERS)
    logs = _split_logs(text)
    top, sections, cut = _sections("".join(log for _, log in logs))
    attached = nvidia_smi_values.number(top.get("Attached GPUs", ""))
    gone: set[str] = set()
    if len(logs) > 1 and len(latest := _sections(logs[0][1])[1]) == attached:
        gone, sections = sections.keys() - latest.keys(), latest
    if not sections and attached is None:
        raise ParseError(f"no GPU; it begins with: {first_line(text)}")
    whole = attached == len(sections)
    facts = GpuFacts(
        gpus=tuple(_gpu_of_text(section, place if whole else None) for place, section in enumerate(sections.values())),
        driver_version=_find_version(top.get, "KMD Version", "Driver Version"),
        cuda_version=_find_version(top.get, "CUDA UMD Version", "CUDA Version"),
        attached=attached,
    )
    notes = ["its author cut the text"] if cut else []
    if len(logs) > 1:
        notes.append(f"{len(logs)} logs; of what several state, that of {logs[0][0]} is used")
    notes += [f"GPU {address} is in an earlier log alone" for address in sorted(gone)]
    if attached is not None and not whole:
        notes.append(f"{len(sections)} of {attached} attached GPUs are described")
    return facts, "; ".join(notes) or None


def _split_logs(text: str) -> list[tuple[str, str]]:
    """The logs of a text with their dates, the latest first: an idle GPU and a busy one, before a repair and after it.

    One where fewer than two have a date.
    """
    if text.count(_LOG) < 2:
        return [("", text)]
    lines = text.splitlines(keepends=True)
    if not text.endswith(("\n", "\r")):
        lines = lines[:-1]  # its value may be cut
    starts = [number for number, line in enumerate(lines) if _LOG in line]
    parts = ["".join(lines[a:b]) for a, b in pairwise([0, *starts[1:], len(lines)])]
    dated = [(date, part) for part in parts if (date := _find_date(part))]
    undated = "".join(part for part in parts if not _find_date(part))
    if len(dated) < 2:
        return [("", text)]
    dated.sort(key=lambda log: log[0], reverse=True)
    return [*dated[:-1], (dated[-1][0], dated[-1][1] + undated)]


def _find_date(log: str) -> str:
    """As text that sorts; "" where none is stated."""
    stamp = _STAMP.search(log[:_LIMIT_HEAD])
    if stamp is None or stamp[1] not in MONTHS:
        return ""
    return f"{stamp[4]}-{MONTHS.index(stamp[1]) + 1:02}-{int(stamp[2]):02} {stamp[3]}"


def _sections(text: str) -> tuple[dict[str, str], dict[str, dict[str, str]], bool]:
    """The values before the first GPU, those of each GPU by address, and whether parts were cut out. A value's name is
    its path through the headings, MIG devices counted from 0; of two with one path the first stays."""
    top: dict[str, str] = {}
    sections: dict[str, dict[str, str]] = {}
    headings: list[tuple[int, str]] = []
    current, cut, slices = top, False, 0
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
            current, headings, slices = sections.setdefault(gpu[1], {"address": gpu[1]}), [], 0
        else:
            indent = len(line.expandtabs()) - len(line.expandtabs().lstrip())
            headings = [heading for heading in headings if heading[0] < indent]  # that the line is below
            name, colon, value = f"{words} ".partition(" : ")
            if colon:
                path = "/".join([*(heading for _, heading in headings), name.strip()])
                current.setdefault(path, value.strip())
            elif words == _MIG_DEVICE:
                headings = [(indent, f"{_MIG_DEVICE} {slices}")]
                slices = min(slices + 1, _LIMIT_MIG)
            elif len(headings) < _LIMIT_DEPTH:
                headings = [*headings, (indent, words)]
    return top, sections, cut


def _gpu_of_text(section: Mapping[str, str], index: int | None) -> Gpu:
    if not section.keys() & _ALWAYS:
        short = _list_short_paths()
        section = {short.get(path, path): value for path, value in section.items()}
    values = {**_select_values(TEXT_FIELDS, section.get), "address": section["address"]}
    devices = (f"{_MIG_DEVICE} {number}/" for number in range(_LIMIT_MIG))
    numbers = ((section.get(f"{at}GPU Instance ID"), section.get(f"{at}Compute Instance ID")) for at in devices)
    return nvidia_smi_values.gpu(values, index, _numbered_instances(values.get("uuid"), numbers))


def _numbered_instances(uuid: str | None, numbers: Iterable[tuple[str | None, str | None]]) -> tuple[str, ...]:
    """MIG devices by the numbers of their GPU instance and compute instance, where no UUID of their own is printed:
    the name that drivers before R470 gave them."""
    whole = nvidia_smi_values.meaning(uuid or "")
    known = [pair for pair in numbers if all(number and _MIG_NUMBER.fullmatch(number) for number in pair)]
    return tuple(f"MIG-{whole}/{gpu}/{compute}" for gpu, compute in known) if whole else ()


def _find_version(find: Callable[[str], str | None], *places: str) -> str | None:
    """The first word: R610 states "610.57.04 [Deprecated; will be removed in CUDA 14.0. Use KMD Version instead]"."""
    words = (nvidia_smi_values.meaning((find(place) or "").partition(" ")[0]) for place in places)
    return next((word for word in words if word), None)


_NEWEST = 13  # the newest document type that we have seen; a newer one is read as this
_TYPE = lazy_pattern(r"nvsmi_device_v(\d{1,3})\.dtd", re.ASCII)
_END = "</nvidia_smi_log>"
_LINK = "pci/pci_gpu_link_info"

# likewise, newest document type first
XML_FIELDS: Mapping[str, tuple[str, ...]] = {
    **nvidia_smi_health.XML,
    "name": ("product_name",),
    "uuid": ("uuid",),
    "serial": ("serial",),
    "minor": ("minor_number",),
    "architecture": ("product_architecture",),
    "vbios": ("vbios_version",),
    "module_id": ("platformInfo/module_id", "gpu_module_id"),
    "pstate": ("performance_state",),
    "utilization_percent": ("utilization/gpu_util",),
    "memory_mib": ("fb_memory_usage/total",),
    "bar1_mib": ("bar1_memory_usage/total",),
    "virtualization": ("gpu_virtualization_mode/virtualization_mode",),
    "addressing_mode": ("addressing_mode",),
    "c2c_enabled": ("c2c_mode", "gpu_c2c_mode"),
    "link_generation": (f"{_LINK}/pcie_gen/current_link_gen",),
    "link_width": (f"{_LINK}/link_widths/current_link_width",),
    "link_max_generation": (f"{_LINK}/pcie_gen/max_link_gen",),
    "link_max_width": (f"{_LINK}/link_widths/max_link_width",),
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


def parse_xml(text: str) -> tuple[GpuFacts, str | None]:
    """The GPUs of `nvidia-smi -q -x`, and what is missing from the text. Raises ParseError.

    >>> said, missing = parse_xml('<?xml version="1.0" ?><!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">'
    ...     '<nvidia_smi_log><driver_version>535.54.03</driver_version><attached_gpus>1</attached_gpus>'
    ...     '<gpu id="00000000:07:00.0"><product_name>NVIDIA A100</product_name></gpu></nvidia_smi_log>')
    >>> said.driver_version, said.gpus[0].address, said.gpus[0].name, missing
    ('535.54.03', '0000:07:00.0', 'NVIDIA A100', None)
    """
    root = parse_log(text)
    gpus = root.findall("gpu")
    attached = nvidia_smi_values.number(_text(root, "attached_gpus") or "")
    whole = attached == len(gpus)
    facts = GpuFacts(
        gpus=tuple(_gpu_of_xml(element, place if whole else None) for place, element in enumerate(gpus)),
        driver_version=_find_version(partial(_text, root), "kmd_version", "driver_version"),
        cuda_version=_find_version(partial(_text, root), "cuda_umd_version", "cuda_version"),
        attached=attached,
    )
    notes = []
    declared = _TYPE.search(text[: text.find("<nvidia_smi_log")])
    if declared and int(declared[1]) > _NEWEST:
        notes.append(f"document type v{declared[1]} is newer than v{_NEWEST}, and was read as that")
    if attached is not None and not whole:
        notes.append(f"{len(gpus)} of {attached} attached GPUs are described")
    return facts, "; ".join(notes) or None


def parse_log(text: str) -> ElementTree.Element:
    """The log element. nvidia-smi may print warnings before and after it. Raises ParseError."""
    check_length(text, _LIMIT_CHARACTERS)
    begin, end = text.find("<nvidia_smi_log"), text.rfind(_END)
    require(begin >= 0, f"no <nvidia_smi_log>; it begins with: {first_line(text)}")
    require(end >= begin, f"cut short: no {_END}")
    require("<!ENTITY" not in text.upper(), "it declares entities")
    try:
        return ElementTree.fromstring(text[begin : end + len(_END)])  # noqa: S314 - no entities, bounded (above)
    except (ElementTree.ParseError, ValueError) as error:
        raise ParseError(f"not XML: {error}") from None


def _gpu_of_xml(element: ElementTree.Element, index: int | None) -> Gpu:
    values = _select_values(XML_FIELDS, partial(_text, element))
    address = element.get("id") or _text(element, "pci/pci_bus_id")
    devices = element.findall("mig_devices/mig_device")[:_LIMIT_MIG]
    named = tuple(uuid for device in devices if (uuid := _text(device, "uuid")) and uuid.startswith("MIG-"))
    numbers = ((_text(device, "gpu_instance_id"), _text(device, "compute_instance_id")) for device in devices)
    return nvidia_smi_values.gpu(
        {**values, **({"address": address} if address else {})},
        index,
        named or _numbered_instances(values.get("uuid"), numbers),
    )


def _text(element: ElementTree.Element, place: str) -> str | None:
    text = element.findtext(place)
    return None if text is None else text.strip()


_LIMIT_COLUMNS = 2000

# likewise the field of --help-query-gpu, newest first
CSV_FIELDS: Mapping[str, tuple[str, ...]] = {
    **nvidia_smi_health.CSV,
    "name": ("name", "gpu_name"),
    "address": ("pci.bus_id", "gpu_bus_id"),
    "uuid": ("uuid", "gpu_uuid"),
    "serial": ("serial", "gpu_serial"),
    "compute_capability": ("compute_cap",),
    "vbios": ("vbios_version",),
    "module_id": ("platform.module_id",),
    "pstate": ("pstate",),
    "utilization_percent": ("utilization.gpu",),
    "memory_mib": ("memory.total",),
    "addressing_mode": ("addressing_mode",),
    "c2c_enabled": ("c2c.mode",),
    "link_generation": ("pcie.link.gen.gpucurrent", "pcie.link.gen.current"),
    "link_width": ("pcie.link.width.current",),
    "link_max_generation": ("pcie.link.gen.max",),
    "link_max_width": ("pcie.link.width.max",),
    "chassis_serial": ("platform.chassis_serial_number",),
    "slot": ("platform.slot_number",),
    "tray": ("platform.tray_index",),
    "mig_current": ("mig.mode.current",),
    "mig_pending": ("mig.mode.pending",),
    "recovery_action": ("gpu_recovery_action",),
    "fabric_state": ("fabric.state",),
    "fabric_status": ("fabric.status",),
    "fabric_clique": ("fabric.cliqueId",),
    "fabric_uuid": ("fabric.clusterUuid",),
    "health_summary": ("fabric.health.summary",),
    "health_bandwidth": ("fabric.health.bandwidth",),
    "health_route_recovery": ("fabric.health.route_recovery_in_progress",),
    "health_route_unhealthy": ("fabric.health.route_unhealthy",),
    "health_access_timeout": ("fabric.health.access_timeout_recovery",),
    "health_configuration": ("fabric.health.incorrect_configuration",),
    "health_partition": ("fabric.health.partition_assigned",),
}


def parse_csv(text: str) -> tuple[GpuFacts, str | None]:
    r"""The GPUs of the CSV, and what is missing from it. Raises ParseError, also where the heading was left out.

    >>> said, _ = parse_csv("index, uuid, pci.bus_id, memory.total [MiB], pstate\n"
    ...                 "0, GPU-34bf77d1, 00000000:18:00.0, 81559 MiB, P0\n")
    >>> said.gpus[0].index, said.gpus[0].address, said.gpus[0].memory_mib, said.gpus[0].pstate
    (0, '0000:18:00.0', 81559, 0)
    """
    heading, rows = _table(text)
    fitting = [dict(zip(heading, row, strict=True)) for row in rows if len(row) == len(heading)]
    require(fitting, f"no line with the {len(heading)} fields of the heading")
    first = fitting[0]
    count = nvidia_smi_values.number(first.get("count", ""))
    # nvidia-smi lists the GPUs by their index: where no column names them, the line does
    named = not {"index", *CSV_FIELDS["uuid"], *CSV_FIELDS["address"], *CSV_FIELDS["serial"]}.isdisjoint(heading)
    facts = GpuFacts(
        gpus=tuple(
            nvidia_smi_values.gpu(
                _select_values(CSV_FIELDS, row.get),
                index=nvidia_smi_values.number(row.get("index", "")) if named else place,
            )
            for place, row in enumerate(fitting)
        ),
        driver_version=nvidia_smi_values.meaning(first.get("kmd_version") or first.get("driver_version", "")),
        attached=count,
    )
    broken = len(rows) - len(fitting)
    return facts, f"{broken} lines do not have the fields of the heading" if broken else None


def _table(text: str) -> tuple[list[str], list[list[str]]]:
    check_length(text, _LIMIT_CHARACTERS)
    try:
        rows = [row for row in csv.reader(text.splitlines(), skipinitialspace=True) if row]
    except csv.Error as error:
        raise ParseError(f"not CSV: {error}") from None
    if rows and not text.endswith(("\n", "\r")):
        rows[-1][-1] = ""  # it may be cut
    fields = {field for fields in CSV_FIELDS.values() for field in fields}
    for at, row in enumerate(rows):
        heading = [name.partition(" [")[0].strip() for name in row]
        if len(heading) <= _LIMIT_COLUMNS and fields.intersection(heading):
            return heading, rows[at + 1 :]
    first = ",".join(rows[0]) if rows else "nothing"
    raise ParseError(f"no heading with field names; it begins with: {first[:120]}")


def _select_values(fields: Mapping[str, tuple[str, ...]], find: Callable[[str], str | None]) -> dict[str, str]:
    """Of each value the text at the first of its places that is there."""
    texts = {
        name: next((text for place in places if (text := find(place)) is not None), None)
        for name, places in fields.items()
    }
    return {name: text for name, text in texts.items() if text is not None}
