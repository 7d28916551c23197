"""Lines out of the middle of an output: which command's they are, where nothing above them states it.

People paste the lines that matter, and what identifies an output is its heading. A row here is a form of lines that no
other known command prints, and how many of them are enough. The device that the missing heading names stays not known.
"""

from __future__ import annotations

import re

from probes.gpu.nvml_enums import P2P_STATUSES, TOPOLOGY_LEVELS
from probes.host.commands import GDS_CHECK, GPU_LINES, MLXLINK, PCI_LINES, REPEATED
from probes.named_tuple import NamedTuple
from probes.text import RDMA_DEVICE, lazy_pattern
from probes.tool_reports.unnamed import OF_FUNCTION, OF_GPU, find_repeated

_ADDRESS = r"[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[01][0-9A-Fa-f]\.[0-7]"
_LINKS = rf"(?:X|NV\d{{1,2}}|{'|'.join(TOPOLOGY_LEVELS.values())}|C2C)"
_P2P = f"(?:X|{'|'.join(P2P_STATUSES.values())})"


class _Excerpt(NamedTuple):
    """A form of lines. `least`: so many of them are in an excerpt."""

    command: tuple[str, ...]
    line: re.Pattern[str]
    least: int = 1


def _lines(command: str | tuple[str, ...], line: str, least: int = 1) -> _Excerpt:
    argv = tuple(command.split()) if isinstance(command, str) else command
    return _Excerpt(argv, lazy_pattern(rf"^[> \t]{{0,40}}{line}", re.MULTILINE), least)


_EXCERPTS = (
    _lines("hl-smi", rf"\|[ \t]{{1,4}}\d{{1,3}}[ \t]+HL-\S+[ \t]+\S+[ \t]*\|[ \t]*{_ADDRESS}"),
    _lines("nvidia-smi", rf"\|[ \t]{{1,4}}\d{{1,3}}[ \t]+\S[^|\n]{{3,60}}\|[ \t]*{_ADDRESS}[ \t]+\S+[ \t]*\|"),
    _lines("nvidia-smi topo -p2p r", rf"GPU\d{{1,3}}(?:[ \t]+{_P2P}){{2,32}}[ \t\r]*$"),
    _lines("nvidia-smi topo -m", rf"(?:GPU|NIC|mlx5_)\d{{1,3}}(?:[ \t]+{_LINKS}){{2,64}}(?:[ \t]|$)"),
    _lines(GPU_LINES, OF_GPU),
    _lines("npu-smi info", r"\|[ \t]{0,4}\d{1,3}[ \t]+(?:Ascend)?(?:310|910|950)\w{0,8}[ \t]*\|[ \t]*[A-Z]\w+[ \t]*\|"),
    _lines("show_gids", r"[a-z][\w.-]{1,40}[ \t]+\d{1,3}[ \t]+\d{1,4}[ \t]+(?:[0-9a-f]{4}:){7}[0-9a-f]{4}[ \t]"),
    _lines(
        "rdma link",
        rf"(?:(?:CA|HCA|device|port|link)[ \t])?'?{RDMA_DEVICE}'?(?:/| port |:)\d{{1,3}}[:,]?[ \t]"
        r"[^\n]{0,60}?\bstate[ :=]{1,2}"
        r"(?:ACTIVE|DOWN|INIT|ARMED|Active|Down|Init\w{0,8})\b",
    ),
    _lines("ibv_devices", r"[a-z][\w.-]{1,40}[ \t]+[0-9a-f]{16}[ \t\r]*$"),
    _lines("ibstat", r"(?:CA type: MT\d|Base lid: \d|Capability mask: 0x|SM lid: \d)"),
    _lines("ibv_devinfo -v", r"(?:active_width:[ \t]+\d{1,2}X|sm_lid:[ \t]+\d|node_guid:[ \t]+[0-9a-f]{4}:)"),
    _lines(
        MLXLINK,
        r"(?:\"?(?:Raw Physical BER|Effective Physical BER|Status Opcode)\"?|\"Physical state\") {0,40}: ?[\"\w]",
    ),
    _lines(MLXLINK, r"(?:State {2,40}: [A-Z]|Physical state {2,40}: )", 2),
    _lines("dcgmi health -c", r"\| GPU ID: \d{1,3} +\| (?:Healthy|Warning|Failure) +\|"),
    _lines("perfquery", r"[A-Z][A-Za-z]\w{4,40}:\.{2,40}\d{1,20}[ \t\r]*$", 2),
    _lines("ip link", r"\d{1,6}: [\w.@-]{1,64}: <[A-Z0-9_,-]{2,200}> mtu \d"),
    _lines("dcgmi diag -r", r"\| \w[\w -]{2,25} {1,25}\| (?:Pass|Fail|Warn|Skip)(?: - [\w ]{2,20}?)? +\|"),
    _lines(("sysfs", "files"), r"(?:/proc/cmdline(?: <==|:)|BOOT_IMAGE=\S{2,200} \S)"),
    _lines(
        ("sysfs", "files"),
        r"[^\n]{0,200}?/sys/[\w/:.@+-]{8,200}[`'\"]{0,2} (?:->|=>|→|=|is|reads|shows|gives) ?[`'\"]?-?\d",
    ),
    _lines(
        ("sysfs", "files"),
        r"options nvidia(?:[_-]\w{2,10})? [^\n]{0,400}=|(?:NvLinkDisable|RegistryDwords|ExcludedGpus): ",
    ),
    _lines(("sysfs", "files"), r"[a-z][\w.-]{1,40}/ports/\d{1,3}/(?:hw_)?counters/\w{3,60}: ?\d{1,20}[ \t\r]*$"),
    _lines(
        GDS_CHECK, r"(?:NVMe(?:OF)?|ScaleFlux CSD|NVMesh|WekaFS|BeeGFS|Userspace RDMA) {1,30}: (?:Uns|S)upported", 2
    ),
    _lines(PCI_LINES, OF_FUNCTION),
)


def find_excerpt(text: str) -> tuple[str, ...] | None:
    """The command whose lines these are; None: nothing is known of them.

    >>> find_excerpt("\\tRate: 400\\n\\tBase lid: 12\\n"), find_excerpt("Dear all,")
    (('ibstat',), None)
    """
    for row in _EXCERPTS:
        found = row.line.finditer(text)
        if sum(1 for _ in zip(range(row.least), found, strict=False)) == row.least:
            return row.command
    return REPEATED if find_repeated(text) else None
