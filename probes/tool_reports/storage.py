"""What GPUDirect Storage supports on a host, as `gdscheck -p` lists it.

Source: NVIDIA GPUDirect Storage, installation and troubleshooting guide; outputs in public threads.
"""

from __future__ import annotations

import re

from probes.text import ParseError, lazy_pattern
from probes.tool_reports.facts import ToolReport, state_fault
from probes.tool_reports.lines import short_lines

_LIMIT_LINE = 300
_ROW = lazy_pattern(r"[*-]{0,4}(?P<name>[A-Z][\w .-]{1,40}?) {0,24}: (?P<value>Unsupported|Supported|compat)\b.{0,40}")
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
_FEWEST = 3  # rows of storage: of fewer, the rest is cut off


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
    for line in map(str.strip, short_lines(text, _LIMIT_LINE)):
        if row := _ROW.fullmatch(line):
            states.setdefault(row["name"], row["value"])
        elif (rdma := _RDMA.fullmatch(line)) and int(rdma["down"]):
            what = f"{rdma['down']} of {int(rdma['up']) + int(rdma['down'])}"
            reports.append(state_fault("gds-rdma-down", None, what, line))
    if not states:
        raise ParseError("no row of a kind of storage")
    if len(states) >= _FEWEST and set(states.values()) == {"Unsupported"}:
        code = "gds-none-strict" if _STRICT.search(text) else "gds-none"
        causes = ", ".join(_list_causes(text))
        detail = (("what", causes),) if causes else ()
        reports.append(ToolReport(code, None, f"Unsupported: {', '.join(states)}"[:_LIMIT_LINE], detail))
    return reports


def _list_causes(text: str) -> list[str]:
    loaded = _LOADED.search(text) is not None  # it is named before the library
    causes = _CAUSES[1:] if loaded else _CAUSES
    return [words for words, pattern in causes if pattern.search(text)]
