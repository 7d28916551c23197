"""What tools state of the host itself: libraries of the fabric that a program does not find (`ldd`), what GPUDirect
Storage supports (`gdscheck -p`), memory modules that run below their rate or are missing (`dmidecode -t memory`).

Sources: glibc elf/rtld.c; NVIDIA GPUDirect Storage, installation and troubleshooting guide, outputs in public threads;
DMTF SMBIOS 3.7, section 7.18 (type 17); dmidecode 2.12 to 3.6 (names of the lines).
"""

from __future__ import annotations

import re
from collections import Counter

from probes.named_tuple import NamedTuple
from probes.text import lazy_pattern, require, short_lines
from probes.tool_reports.facts import ToolReport, state_fault

_SHOWN = 8
_LIBRARY = lazy_pattern(r"[> \t]*(?P<name>lib[\w.+-]{1,60}\.so[\w.]{0,16}) => not found[ \t]*")
_OF_FABRIC = lazy_pattern(
    r"lib(?:uc[pmsts]|ucc|ibverbs|ibumad|ibmad|rdmacm|mlx[45]|efa|bnxt_re|irdma|ionic|fabric|nccl|rccl|nvshmem|sharp|"
    r"hcoll|cuda|cudart|nvidia|amdhip|hsa|hccl|ascend|hcl|Synapse|nrt|oneccl|ccl|psm2|knem|xpmem)[\w-]{0,24}\."
)


def list_missing_libraries(text: str) -> list[ToolReport]:
    """One report with the libraries of NICs, GPUs and collectives that were not found. Raises ParseError.

    >>> rows = "\\tlibucp.so.0 => not found\\n\\tlibm.so.6 => /lib64/libm.so.6 (0x00007f)\\n"
    >>> [report.detail for report in list_missing_libraries(rows)]
    [(('what', 'libucp.so.0'),)]
    """
    rows = require([line for line in short_lines(text) if " => " in line], "no row of ldd")
    missing = {match["name"]: line for line in rows if (match := _LIBRARY.fullmatch(line))}
    names = [name for name in missing if _OF_FABRIC.match(name)]
    if not names:
        return []
    line = " ".join(missing[names[0]].split())
    return [state_fault("library-missing", None, ", ".join(names[:_SHOWN]), line)]


_LIMIT_LINE = 300
_STORAGE = lazy_pattern(
    r"[*-]{0,4}(?P<name>[A-Z][\w .-]{1,40}?) {0,24}: (?P<value>Unsupported|Supported|compat)\b.{0,40}"
)
_RDMA = lazy_pattern(r"[*-]{0,4}rdma_device_status {1,8}: Up: (?P<up>\d{1,4}) Down: (?P<down>\d{1,4})\b.{0,40}")
_CAUSES = (  # what else the output states that keeps storage from working this way
    ("nvidia_fs is not loaded", lazy_pattern(r"^[ \t]*libcufile version[ \t]*:", re.MULTILINE)),
    ("PeerDirect is disabled", lazy_pattern(r"^[ \t]*-{0,2}Mellanox PeerDirect[ \t]*: Disabled", re.MULTILINE)),
    ("the RDMA library is not loaded", lazy_pattern(r"^[ \t]*-{0,2}rdma library[ \t]*: Not Loaded", re.MULTILINE)),
    ("the IOMMU is on", lazy_pattern(r"^[ \t]*IOMMU[ \t]*: [Ee]nabled", re.MULTILINE)),
    ("ACS redirects peers", lazy_pattern(r"^[ \t]*(?:PCIe? )?ACS[ \t]*: [Ee]nabled", re.MULTILINE)),
    ("the GPU does not support it", lazy_pattern(r"\bdoes not support GDS\b|\bGDS (?:is )?not supported on GPU")),
    ("the driver does not support it", lazy_pattern(r"Nvidia Driver Info Status: *Not [Ss]upported")),
)
_LOADED = lazy_pattern(r"^[ \t]*nvidia_fs version[ \t]*:", re.MULTILINE)
_STRICT = lazy_pattern(r"^[ \t]*properties\.(?:use|allow)_compat_mode[ \t]*: false\b", re.MULTILINE)
_FEWEST_KINDS = 3  # rows of storage: of fewer, the rest is cut off


def list_storage_faults(text: str) -> list[ToolReport]:
    """Whether no storage is supported, and RDMA devices that are down. Raises ParseError.

    >>> rows = "".join(f" {name} : {{}}\\n" for name in ("NVMe", "NVMeOF", "NFS", "WekaFS"))
    >>> [report.code for report in list_storage_faults(rows.format(*["Unsupported"] * 4))]
    ['gds-none']
    >>> list_storage_faults(rows.format("Supported", *["Unsupported"] * 3))
    []
    """
    states: dict[str, str] = {}
    reports = []
    for line in map(str.strip, short_lines(text)):
        if row := _STORAGE.fullmatch(line):
            states.setdefault(row["name"], row["value"])
        elif (rdma := _RDMA.fullmatch(line)) and int(rdma["down"]):
            what = f"{rdma['down']} of {int(rdma['up']) + int(rdma['down'])}"
            reports.append(state_fault("gds-rdma-down", None, what, line))
    require(states, "no row of a kind of storage")
    if len(states) >= _FEWEST_KINDS and set(states.values()) == {"Unsupported"}:
        code = "gds-none-strict" if _STRICT.search(text) else "gds-none"
        causes = ", ".join(_list_causes(text))
        detail = (("what", causes),) if causes else ()
        reports.append(ToolReport(code, None, f"Unsupported: {', '.join(states)}"[:_LIMIT_LINE], detail))
    return reports


def _list_causes(text: str) -> list[str]:
    loaded = _LOADED.search(text) is not None  # it is named before the library
    causes = _CAUSES[1:] if loaded else _CAUSES
    return [words for words, pattern in causes if pattern.search(text)]


_TITLE = "Memory Device"
_FIELD = lazy_pattern(r"[ \t]+(?P<name>[A-Z][\w ]{2,40}): {0,4}(?P<value>\S.{0,100}?)[ \t]*")
_SPEED = lazy_pattern(r"(\d{2,6}) (?:MHz|MT/s)")
_SIZE = lazy_pattern(r"\d{1,9} (?:[kMGT]i?B)")
_CPU = lazy_pattern(r"(?i:(?:cpu|proc|node|socket|p)[ _]{0,2})(?P<cpu>\d)(?!\d)")
_CONFIGURED = ("Configured Memory Speed", "Configured Clock Speed")
_FEWEST, _PART = 4, 4  # modules of the fullest CPU, and which part of them may be missing: with less, it was so fitted


class _Module(NamedTuple):
    """A slot, with what is in it."""

    name: str
    cpu: str | None
    size: str | None  # None: empty
    rated: int | None  # MT/s
    configured: int | None


def list_memory_faults(text: str) -> list[ToolReport]:
    """What the modules state. Raises ParseError where the text lists none.

    >>> rows = "Memory Device\\n\\tSize: 64 GB\\n\\tLocator: CPU{}_DIMM_A1\\n\\tSpeed: 4800 MT/s\\n"
    >>> rows += "\\tConfigured Memory Speed: 4400 MT/s\\n"
    >>> [(report.code, report.detail) for report in list_memory_faults(rows.format(0) + rows.format(1))]
    [('dimm-slow', (('what', '2 of 2 modules, 4400 of 4800 MT/s'),))]
    """
    modules = [module for fields in _list_devices(text) if (module := _build_module(fields)) is not None]
    require(modules, "no memory module is listed")
    fitted = [module for module in modules if module.size is not None]
    reports = [*_list_uneven(modules)]
    slow = [module for module in fitted if module.rated and module.configured and module.configured < module.rated]
    if slow:
        rates = Counter((module.configured, module.rated) for module in slow).most_common(1)[0][0]
        what = f"{len(slow)} of {len(fitted)} modules, {rates[0]} of {rates[1]} MT/s"
        reports.append(state_fault("dimm-slow", None, what, f"{slow[0].name}: {what}"))
    return reports


def _list_devices(text: str) -> list[dict[str, str]]:
    devices: list[dict[str, str]] = []
    inside = False
    for line in short_lines(text):
        if line.strip() == _TITLE:
            devices.append({})
            inside = True
        elif field := _FIELD.fullmatch(line):
            if inside:
                devices[-1].setdefault(field["name"], field["value"])
        elif line.strip():
            inside = False  # the title or the handle of another structure
    return devices


def _build_module(fields: dict[str, str]) -> _Module | None:
    if "Locator" not in fields or "Size" not in fields:
        return None
    cpu = _CPU.search(fields["Locator"]) or _CPU.search(fields.get("Bank Locator", ""))
    rates = [_SPEED.match(fields.get(name, "")) for name in ("Speed", *_CONFIGURED)]
    rated, configured = rates[0], rates[1] or rates[2]
    return _Module(
        fields["Locator"],
        cpu["cpu"] if cpu else None,
        fields["Size"] if _SIZE.fullmatch(fields["Size"]) else None,
        int(rated[1]) if rated else None,
        int(configured[1]) if configured else None,
    )


def _list_uneven(modules: list[_Module]) -> list[ToolReport]:
    """One CPU with a few modules less than another that has as many slots."""
    slots = Counter(module.cpu for module in modules if module.cpu is not None)
    fitted = Counter(module.cpu for module in modules if module.cpu is not None and module.size is not None)
    most, least = (max(counts), min(counts)) if (counts := [fitted[cpu] for cpu in slots]) else (0, 0)
    if len(set(slots.values())) > 1 or most < _FEWEST or not 0 < most - least <= most // _PART:
        return []
    what = ", ".join(f"CPU {cpu}: {fitted[cpu]} of {count}" for cpu, count in sorted(slots.items()))
    return [state_fault("dimm-uneven", None, what)]
