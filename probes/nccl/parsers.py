"""What NCCL's files, environments and the maps of processes say: pure parsers, as literal as NCCL itself.

A line of a file is a setting where it holds a "=": what stands before it is the name, what follows the value, with
every blank and quote; "#" begins a remark in the first column only. Source: NCCL `src/misc/param.cc`.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from probes.host.filter_secrets import LIBRARIES

VALUE_CHARACTERS = 1023  # as much as NCCL takes of a name, and of a value
LINES_LIMIT = 512
# Of an environment: what is a setting, not where a rank stands or whom it calls.
WANTED = re.compile(r"(?:NCCL|UCX|FI|NVSHMEM)_\w{1,100}\Z|OMPI_MCA_(?:btl|pml|mtl|coll|osc)\w{0,80}\Z")
# Processes that hold a GPU open and are no job.
DAEMONS = frozenset(
    {"nv-hostengine", "dcgm-exporter", "nv-fabricmanage", "nvidia-persiste", "nvidia-imex", "Xorg", "nvidia-smi"}
    | {"nvidia-device-p", "fabricscope", "nvsm_core", "nv-nvlsm", "nvtop", "gpud"}
)
_LIBRARY = re.compile(LIBRARIES)
_VERSION = re.compile(r"\.so\.(\d{1,4}(?:\.\d{1,4}){1,3})\Z")


class Setting(NamedTuple):
    """One variable, literally. A line that sets nothing has the key "" and its text as value."""

    key: str
    value: str
    source: str  # "/etc/nccl.conf:3", "environment of pid 4711 (python3)"
    scope: str  # system | user | job
    line: str | None = None


class Mapped(NamedTuple):
    """What a process has mapped: libraries of interest by path, and device nodes."""

    libraries: tuple[str, ...] = ()
    gpu: bool = False
    rdma: bool = False


def parse_conf(text: str, path: str, scope: str) -> tuple[list[Setting], list[Setting]]:
    r"""Settings of a file, and lines that set nothing though they are no remark.

    >>> parse_conf("# x\nNCCL_IB_TC = 106\n\nNCCL_DEBUG\n", "/etc/nccl.conf", "system")[0][0][:3]
    ('NCCL_IB_TC ', ' 106', '/etc/nccl.conf:2')
    >>> [setting.value for setting in parse_conf("# x\n\nNCCL_DEBUG\n", "/etc/nccl.conf", "system")[1]]
    ['NCCL_DEBUG']
    """
    settings, others = [], []
    for number, line in enumerate(text.split("\n")[:LINES_LIMIT], start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        source = f"{path}:{number}"
        key, equals, value = line.partition("=")
        if equals:
            cut = value[:VALUE_CHARACTERS]
            settings.append(Setting(key[:VALUE_CHARACTERS], cut, source, scope, line[:VALUE_CHARACTERS]))
        else:
            others.append(Setting("", line[:VALUE_CHARACTERS], source, scope, line[:VALUE_CHARACTERS]))
    return settings, others


def parse_environ(content: bytes) -> tuple[tuple[str, str], ...]:
    r"""Variables of interest of a process's environment, sorted.

    >>> parse_environ(b"NCCL_IB_TC=106\0HOME=/root\0FI_PROVIDER=efa\0OMPI_COMM_WORLD_RANK=3\0")
    (('FI_PROVIDER', 'efa'), ('NCCL_IB_TC', '106'))
    """
    pairs = (part.decode("utf-8", "replace").partition("=") for part in content.split(b"\0"))
    return tuple(
        sorted({(key, value[:VALUE_CHARACTERS]) for key, equals, value in pairs if equals and WANTED.match(key)})
    )


def parse_maps(text: str) -> Mapped:
    r"""What /proc/PID/maps holds of NCCL's world.

    >>> parse_maps("0-0 r-xp 00000000 08:02 1 /usr/lib/libnccl.so.2.21.5\n0-0 rw-s 0 00:06 9 /dev/nvidia0\n")
    Mapped(libraries=('/usr/lib/libnccl.so.2.21.5',), gpu=True, rdma=False)
    """
    lines = text.split("\n")
    paths = (fields[5].strip().removesuffix(" (deleted)") for line in lines if len(fields := line.split(None, 5)) == 6)
    return Mapped(
        libraries=tuple(sorted({path[:VALUE_CHARACTERS] for path in paths if _is_library(path)})),
        gpu=any(re.search(r" /dev/nvidia\d", line) for line in lines),
        rdma=any(" /dev/infiniband/uverbs" in line for line in lines),
    )


def _is_library(path: str) -> bool:
    folder, _, name = path.rpartition("/")
    return folder.startswith("/") and _LIBRARY.match(name) is not None


def version_of(path: str) -> str | None:
    """The version in a library's name.

    >>> version_of("/usr/lib/libnccl.so.2.21.5"), version_of("/usr/lib/libnccl.so.2")
    ('2.21.5', None)
    """
    found = _VERSION.search(path)
    return found[1] if found else None


def is_nccl(path: str) -> bool:
    """Whether a library is NCCL itself.

    >>> is_nccl("/usr/lib/libnccl.so.2"), is_nccl("/usr/lib/libnccl-net.so")
    (True, False)
    """
    return path.rpartition("/")[2].startswith("libnccl.so")


def is_plugin(path: str) -> bool:
    """Whether a library is a network plugin of NCCL, or one of those that say what a job uses besides."""
    return not is_nccl(path) and path.rpartition("/")[2].startswith("libnccl-")
