"""The parts that a line names: functions of PCI, RDMA devices, accelerators by number, interfaces, ports, slots."""

from __future__ import annotations

from collections.abc import Sequence

from probes.gpu.facts import find_address
from probes.text import INTERFACE, RDMA_DEVICE, SWITCH_PORT, lazy_pattern

_PART = lazy_pattern(  # what names one part
    r"(?<![\w:.])(?:PCI:)?(?P<bdf>[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?"
    r"|[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7])(?!\w|[:.]\w)"
    rf"|\b(?P<rdma>{RDMA_DEVICE})\b"
    r"|(?<!/)\b(?:GPU|(?i:GPUs?(?: (?:index|id|number))?(?:[ \[#:=]|-?id[ =:]){1,2}))"
    r"(?P<number>\d{1,2})(?!\w|[.:/%-]\w)"
    r"|\b(?P<uuid>GPU-[0-9a-f]{8}(?:-[0-9a-f]{4}){0,3}(?:-[0-9a-f]{12})?)\b"
    r"|/dev/nvidia(?P<node>\d{1,2})\b|\bcuda:(?P<cuda>\d{1,2})\b"
    r"|(?<![\w/])(?P<file>/dev/(?:kfd|dri/\w{4,7}\d{1,3}|infiniband/\w{3,12}\d{1,3}|(?:accel/)?accel\d{1,3}"
    r"|vfio/\d{1,4}|neuron\d{1,2}|davinci\w{1,8}|gdrdrv|nvidia-\w{3,20}))\b"
    r"|\b(?P<other>(?i:(?:NPU|HPU|NVSwitch|NVLink|rail|HCA|PSU|fan|slot|tray|port|link)[ #-]?\d{1,3})(?![\w.:/%])"
    r"|(?i:fan\d{1,2}/f\d{1,2})|PS\d|nvme\d{1,3}(?:n\d)?|davinci\d{1,3}|hl\d{1,2}|neuron\d{1,2}"
    r"|(?:(?:P|CPU|PROC ?)\d{1,2}[ _-]?)?DIMM(?:[ _][A-Z]|[A-Z])\d{1,2}"
    rf"|{INTERFACE}|{SWITCH_PORT})(?![\w-])"
)
KINDS = ("bdf", "rdma", "number", "node", "cuda", "uuid", "file", "other")  # of several in one line the first
DEVICES = ("bdf", "rdma")
_LONGEST = 600  # of a line
_OF_AMD = lazy_pattern(r"(?i:\bAMD\b|amdgpu|\brocm|\bMI[23]\d\d\b|\bhip[A-Z_]|\brccl)")


def find_part(line: str, kinds: Sequence[str] = KINDS) -> str | None:
    """The one part that a line names; None where it names none or several.

    >>> find_part("hl5 (0000:b4:00.0)"), find_part("memory error @P2-DIMMF1"), find_part("mlx5_1, mlx5_2")
    ('0000:b4:00.0', 'P2-DIMMF1', None)
    """
    parts = list_parts(line, kinds)
    return parts[0] if len(parts) == 1 else None


def find_place(line: str) -> int:
    """Where the first part stands; 0 where a line names none."""
    match = _PART.search(line)
    return match.start() if match else 0


def list_parts(line: str, kinds: Sequence[str] = KINDS) -> list[str]:
    """The parts that a line names, as a tool's report has them; of a function of PCI and its name the first alone.

    >>> list_parts("mlx5_3 to mlx5_4"), list_parts("GPU[2] at 0000:1b:00.0"), list_parts("swp17 lost its carrier")
    (['mlx5_3', 'mlx5_4'], ['0000:1b:00.0'], ['swp17'])
    """
    named = _list_by_kind(line)
    return next((parts for kind in kinds if (parts := named.get(kind))), [])


def list_all_parts(text: str) -> list[str]:
    """The parts of every kind that a text names.

    >>> list_all_parts("GPU 3 is slow, mlx5_2 seems fine")
    ['NVIDIA 3', 'mlx5_2']
    """
    lines = (line for line in text.splitlines() if len(line) < _LONGEST)
    return list(dict.fromkeys(part for line in lines for parts in _list_by_kind(line).values() for part in parts))


def _list_by_kind(line: str) -> dict[str, list[str]]:
    named: dict[str, list[str]] = {}
    maker = "AMD" if _OF_AMD.search(line) else "NVIDIA"
    for match in _PART.finditer(line):
        number = match["number"] or match["node"] or match["cuda"]
        if bdf := match["bdf"]:
            part = find_address(f"{'' if bdf.count(':') == 2 else '0000:'}{bdf}{'' if '.' in bdf else '.0'}")
        else:
            part = (
                f"{maker} {int(number)}"
                if number
                else match["rdma"] or match["uuid"] or match["file"] or match["other"]
            )
        if part and part not in named.setdefault(match.lastgroup or "", []):
            named[match.lastgroup or ""].append(part)
    return named
