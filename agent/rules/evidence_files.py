"""Evidence of saved outputs names the file that was given, and the command that it was read as.

Rules name the command, or the file of a host, by which a person can repeat an observation; of outputs that someone
saved neither was run or read.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from agent.model.finding import Evidence, Finding
from agent.model.report import Source, SourceFile

_RDMA = ("ibv_devinfo", "ibstat", "ibstatus", "rdma", "show_gids", "ibdev2netdev")
_LOGS = ("dmesg", "journalctl")
# Which outputs state what a file of the host or another command would, by its beginning; the first that are there
_OF_PATHS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("/sys/class/infiniband", _RDMA),
    ("/sys/class/net", ("ethtool", "ip", "mlnx_qos", "dcb")),
    ("/sys/bus/pci", ("lspci",)),
    ("/sys/class/kfd", ("amd-smi", "rocm-smi")),
    ("/proc/modules", ("lsmod",)),
    ("/proc/driver/nvidia", ("nvidia-smi", *_LOGS)),
    ("/dev/kmsg", _LOGS),
    ("/sys/bus/cxl", ("cxl",)),
    ("dcb ", ("dcb", "mlnx_qos")),
    ("dcb ", ("ethtool -S",)),  # mlx5 counts the pauses of a priority only where its PFC is on
    ("ip addr", ("ip", "ifconfig")),
    ("ip addr", ("show_gids", "ibv_devinfo")),  # a port has a GID for each address
    ("amd-smi topology", ("amd-smi topology", "rocm-smi")),
    ("/etc/hccn.conf", ("hccn.conf", "hccn_tool")),
    ("counters of the port", ("ethtool", *_RDMA)),
    ("service-log", ("log of a service",)),
    ("bmc-log", ("log of a BMC",)),
)
_NAMED = 3  # files of one observation


def name_files(findings: Sequence[Finding], source: Source) -> list[Finding]:
    """The findings with evidence that names given files; the same where the source has none."""
    read = [file for file in source.files or () if file.read_as]
    if not read:
        return list(findings)
    return [replace(f, evidence=[replace(row, source=_name(row, read)) for row in f.evidence]) for f in findings]


def _name(row: Evidence, read: Sequence[SourceFile]) -> str:
    names = dict.fromkeys(name for part in row.source.split(", ") for name in _find(part, read))
    return ", ".join([*names][:_NAMED]) or row.source


def _find(source: str, read: Sequence[SourceFile]) -> list[str]:
    """The files that a source may stand for: those of the same command, of the nearest options where there are any."""
    choices = [tools for begin, tools in _OF_PATHS if source.startswith(begin)] or [tuple(source.split()[:1])]
    of_choices = ([file for file in read if _is_of(file, tools)] for tools in choices)
    of_tools = next(filter(None, of_choices), [])
    words = source.split()
    alike = {file.name: len(_shared(words, (file.read_as or "").split())) for file in of_tools}
    most = max(alike.values(), default=0)
    return [f"{file.name} ({file.read_as})" for file in of_tools if alike[file.name] == most]


def _is_of(file: SourceFile, tools: Sequence[str]) -> bool:
    return f"{file.read_as} ".startswith(tuple(f"{tool} " for tool in tools))


def _shared(one: Sequence[str], other: Sequence[str]) -> list[str]:
    """The words with which both begin."""
    shared: list[str] = []
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        shared.append(a)
    return shared
