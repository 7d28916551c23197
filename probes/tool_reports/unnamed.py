"""Lines of long outputs that a filter left without the device that they are about: what they state is read all the
same (`lspci -vvv | grep ACSCtl`, `nvidia-smi -q | grep -A4 "Remapped Rows"`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from probes.text import ParseError, check_length, lazy_pattern
from probes.tool_reports.facts import ToolReport

_LIMIT_TEXT = 200
_ACS = lazy_pattern(r"^[ \t]*ACSCtl:[^\n]{0,120}\bReqRedir([+-])", re.MULTILINE)
_LINK = lazy_pattern(r"^[ \t]*LnkSta:([^\n]{0,200})$", re.MULTILINE)
_SMI = (
    ("unnamed-remap-failed", lazy_pattern(r"^[ \t]*Remapping Failure Occurred[ \t]*: Yes\b", re.MULTILINE)),
    (
        "unnamed-remap-pending",
        lazy_pattern(r"^[ \t]*Remapped Rows[ \t]*$(?:\n[^\n]{0,120}){0,4}?\n[ \t]*Pending[ \t]*: Yes\b", re.MULTILINE),
    ),
    ("unnamed-sram", lazy_pattern(r"^[ \t]*SRAM Threshold Exceeded[ \t]*: Yes\b", re.MULTILINE)),
    (
        "unnamed-ecc",
        lazy_pattern(
            r"^[ \t]*Volatile[ \t]*$(?:\n(?![ \t]*Aggregate)[^\n]{0,120}){0,6}?"
            r"\n[ \t]*[SD]RAM Uncorrectable[\w -]{0,12}: [1-9]\d{0,11}\b",
            re.MULTILINE,
        ),
    ),
    (
        "unnamed-slowdown",
        lazy_pattern(r"^[ \t]*HW (?P<what>Thermal Slowdown|Power Brake Slowdown)[ \t]*: Active\b", re.MULTILINE),
    ),
    ("unnamed-slowdown", lazy_pattern(r"^[ \t]*(?P<what>HW Slowdown)[ \t]*: Active\b", re.MULTILINE)),
    (
        "unnamed-action",
        lazy_pattern(
            r"^[ \t]*GPU Recovery Action[ \t]*: (?P<what>(?!None|N/A|Unknown)[A-Z][\w -]{2,40})", re.MULTILINE
        ),
    ),
    (
        "unnamed-width",
        lazy_pattern(
            r"^[ \t]*Link Width[ \t]*\n[ \t]*Max[ \t]*: (?P<max>\d{1,2})x[ \t]*\n"
            r"[ \t]*Current[ \t]*: (?!(?P=max)x)(?P<what>\d{1,2}x)",
            re.MULTILINE,
        ),
    ),
    (
        "unnamed-fabric-failed",
        lazy_pattern(
            r"^[ \t]*Fabric[ \t]*\n[ \t]*State[ \t]*: Completed[ \t]*\n"
            r"[ \t]*Status[ \t]*: (?P<what>(?!Success|N/A)[A-Z][\w ]{2,40})",
            re.MULTILINE,
        ),
    ),
    ("unnamed-fabric", lazy_pattern(r"^[ \t]*Fabric[ \t]*\n[ \t]*State[ \t]*: In Progress\b", re.MULTILINE)),
)
_GUID = lazy_pattern(  # a row of ibv_devices; in other outputs the device, and below it its GUID
    r"^[ \t]*(?:(?:CA '|hca_id:[ \t]{1,8})(?P<device>[\w.-]{2,40})|"
    r"(?:Node GUID: 0x|node_guid:[ \t]{1,40})(?P<guid>[0-9a-f:]{16,19})\b|"
    r"(?P<row>[a-z][\w.-]{1,40})[ \t]{1,40}(?P<row_guid>[0-9a-f]{16})[ \t\r]*$)",
    re.MULTILINE,
)
_WITH_GUID = ("mlx", "ib")  # EFA had none for years
_SHOWN = 8
_CMDLINE = lazy_pattern(  # of the running kernel, or of the next boot
    r"(?:/proc/cmdline(?: <==[ \t]*\n|:)|\bGRUB_CMDLINE_LINUX(?:_DEFAULT)?=)([^\n]{1,4096})"
)
_IOMMU_ON = lazy_pattern(
    r"\b(?:intel_iommu=(?:[\w,]{1,40},)?on\b|amd_iommu=(?:on|force_enable)\b|iommu=(?:force|on)\b)"
)
_PASSTHROUGH = lazy_pattern(r"\b(?:iommu=(?:[\w,]{1,40},)?(?:pt|off)\b|iommu\.passthrough=1\b)")
_NUMA_NODE = lazy_pattern(
    r"/sys/bus/pci/devices/(?P<address>[0-9a-f]{4,8}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7])/numa_node(?: <==[ \t]*\n|:)"
    r"[ \t]{0,8}(?P<node>-?\d{1,4})\b"
)
_VALUES = lazy_pattern(  # whose path has a pattern in the place of the port's device
    r"^==> (?P<path>/sys/class/(?:infiniband/[\w.*-]{1,64}/ports/\d/|net/[a-z][\w.-]{0,40}\*[\w.-]{0,40}/)"
    r"(?P<file>rate|state|phys_state|link_layer|speed|mtu)) <==\n(?P<values>(?:(?!==>)[^\n]{1,80}\n){2,512})",
    re.MULTILINE,
)
_MOST_VALUES, _ENOUGH = 512, 4
_SMI_CALM = lazy_pattern(
    r"^[ \t]*(?:Link Width[ \t]*$|HW Slowdown[ \t]*: Not Active|GPU Recovery Action[ \t]*: None|"
    r"Remapping Failure Occurred[ \t]*: No\b|Fabric[ \t]*\n[ \t]*State[ \t]*: (?:N/A|Completed)\b)",
    re.MULTILINE,
)


def list_pci_lines(text: str) -> list[ToolReport]:
    """Functions whose ACS redirects requests, and links below what their device supports. Raises ParseError.

    >>> line = "ACSCtl: SrcValid+ TransBlk- ReqRedir{} CmpltRedir-\\n"
    >>> [(report.code, report.detail) for report in list_pci_lines(line.format("+") + line.format("-"))]
    [('unnamed-acs', (('what', '1 of 2 functions'),))]
    """
    signs = _ACS.findall(check_length(text))
    links = _LINK.findall(text)
    slow = [link for link in links if "(downgraded)" in link]
    reports = []
    if "+" in signs:
        reports.append(_report("unnamed-acs", f"{signs.count('+')} of {len(signs)} functions", "ACSCtl: ReqRedir+"))
    if slow:
        reports.append(_report("unnamed-link", f"{len(slow)} of {len(links)} links", f"LnkSta:{slow[0]}"))
    if not signs and not links:
        raise ParseError("no line of ACSCtl or LnkSta")
    return reports


def list_module_lines(text: str) -> list[ToolReport]:
    """Whether `lsmod`, or a part of it, shows nouveau in use and no module of NVIDIA. Raises ParseError.

    >>> [report.code for report in list_module_lines("nouveau  2596864  4\\nmlx5_core  2134016  1 mlx5_ib\\n")]
    ['modules-nouveau']
    """
    rows = [
        words for line in check_length(text).splitlines() if len(words := line.split()) >= 3 and words[2].isdecimal()
    ]
    if not rows:
        raise ParseError("no module is named")
    uses = {words[0]: int(words[2][:9]) for words in rows}
    if not uses.get("nouveau") or "nvidia" in uses:
        return []
    line = next(" ".join(words) for words in rows if words[0] == "nouveau")
    return [ToolReport("modules-nouveau", None, line[:_LIMIT_TEXT])]


def list_zero_guids(text: str) -> list[ToolReport]:
    """RDMA devices whose GUID is zero. Raises ParseError where there is none.

    >>> [report.detail for report in list_zero_guids("mlx5_0 506b4b03002811a0\\nmlx5_2 0000000000000000\\n")]
    [(('what', 'mlx5_2'),)]
    """
    guids: dict[str, bool] = {}
    device = ""
    for match in _GUID.finditer(check_length(text)):
        device = match["device"] or match["row"] or device
        guid = match["guid"] or match["row_guid"]
        if guid and device:
            guids.setdefault(device, not guid.strip("0:"))
    zero = [device for device, is_zero in guids.items() if is_zero and device.startswith(_WITH_GUID)]
    if not zero:
        raise ParseError("no GUID of an RDMA device that is zero")
    what = ", ".join(zero[:_SHOWN])
    return [ToolReport("guid-zero", None, f"no node GUID, {', '.join(zero)}"[:_LIMIT_TEXT], (("what", what),))]


def list_shown_files(text: str) -> list[ToolReport]:
    """What files of the kernel state that a paste shows without a list of PCI devices. Raises ParseError where it shows
    none of these files, and where they state nothing.

    >>> [report.code for report in list_shown_files("==> /proc/cmdline <==\\nro intel_iommu=on quiet\\n")]
    ['cmdline-iommu']
    >>> [report.code for report in list_shown_files('GRUB_CMDLINE_LINUX="crashkernel=auto amd_iommu=on"\\n')]
    ['cmdline-iommu']
    """
    reports = []
    if (line := _CMDLINE.search(check_length(text))) and _IOMMU_ON.search(line[1]) and not _PASSTHROUGH.search(line[1]):
        reports.append(ToolReport("cmdline-iommu", None, line[1].strip()[:_LIMIT_TEXT]))
    nodes = {match["address"]: match["node"] for match in _NUMA_NODE.finditer(text)}
    if len(nodes) > 1 and set(nodes.values()) == {"-1"}:
        addresses = ", ".join(nodes)[:_LIMIT_TEXT]
        reports.append(
            ToolReport("numa-none", None, f"numa_node -1: {addresses}", (("what", f"{len(nodes)} functions"),))
        )
    reports += [_report("file-odd", what, line) for what, line in _list_odd_values(text)]
    if not reports:
        raise ParseError("no file of the kernel that states a fault")
    return reports


def _list_odd_values(text: str) -> Iterator[tuple[str, str]]:
    """Values of several files, printed without their names, of which few differ from all others."""
    for match in _VALUES.finditer(text):
        values = match["values"].splitlines()[:_MOST_VALUES]
        usual, count = Counter(values).most_common(1)[0]
        odd = [f"{value} (number {number})" for number, value in enumerate(values, 1) if value != usual]
        if len(values) >= _ENOUGH and 0 < len(odd) <= len(values) / _ENOUGH:
            yield f"{match['file']}: {', '.join(odd)}; {count} of {len(values)} are {usual}", f"cat {match['path']}"


def list_gpu_lines(text: str) -> list[ToolReport]:
    """What lines of `nvidia-smi -q` state of the memory and the fabric of some GPU. Raises ParseError.

    >>> rows = "Remapped Rows\\n  Uncorrectable Error : 4\\n  Pending : Yes\\n"
    >>> [report.code for report in list_gpu_lines(rows)]
    ['unnamed-remap-pending']
    """
    matches: dict[str, re.Match[str]] = {}
    for code, pattern in _SMI:
        if match := pattern.search(check_length(text)):
            matches.setdefault(code, match)
    if not matches and not _SMI_CALM.search(text):
        raise ParseError("no state of a GPU that is a fault")
    return [
        ToolReport(code, None, " ".join(match[0].split())[:_LIMIT_TEXT], tuple(match.groupdict().items()))
        for code, match in matches.items()
    ]


def _report(code: str, what: str, text: str) -> ToolReport:
    return ToolReport(code, None, text.strip()[:_LIMIT_TEXT], (("what", what),))
