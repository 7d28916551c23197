"""What the words of a line show that no row is for: the part that it names, what failed there, and what to look at."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from agent.job.catalogue import load_codes
from probes.text import INTERFACE, PCI_ADDRESS, RDMA_DEVICE, SWITCH_PORT, lazy_pattern

_PART = (
    rf"(?<![\w./-])(?:(?P<nic>{RDMA_DEVICE})|(?P<interface>{INTERFACE}))(?![\w.]*\.(?:so|c|cc|cpp|py|h)\b)(?!\w)|"
    rf"(?<![\w:])(?P<pci>{PCI_ADDRESS})(?!\w)|(?<![\w/])(?P<port>{SWITCH_PORT})(?!\w)|"
    r"(?i:(?<!\w)(?P<rail>rail[ #:]{0,2}\d{1,3})(?!\w))|"
    r"(?i:(?<!\w)(?P<gpu>(?:GPU|NPU|HPU)[ :#]{0,2}\d{1,3})(?![\w.]))"
)
# A GPU that a program only has its data on is no part at fault
_OF_A_GPU = (
    r"(?i)\b(?:lost|fallen|ECC|uncorrect\w*|Xid|XID|hung|hang(?:s|ing)?|stuck|reset|NVLink|nvlink|MMU|overheat\w*|"
    r"throttl\w*|unhealthy|unresponsive|off the bus|time[ds]?[ -]?out|not respond\w*|driver|P2P|peer access)\b"
)
_MOST_PARTS = 8  # of one line


class LineWords(NamedTuple):
    """What the words of a line show."""

    parts: tuple[str, ...]  # NICs, interfaces, rails, PCI addresses, switch ports, GPUs, as they are written
    nic: str | None  # the only NIC among them
    is_consequence: bool
    is_outside: bool  # it may be no failure of the program: a part is named, or what the program depends on
    means: str | None  # in a sentence
    next: tuple[str, ...]  # {host} is the host


def read_words(text: str) -> LineWords:
    """What a line shows by its words.

    >>> read_words("endpoint of mlx5_3 could not be opened: Permission denied")[:4]
    (('mlx5_3',), 'mlx5_3', False, True)
    >>> read_words("Expected all tensors on GPU 1").parts, read_words("[Errno 28] No space left on device").means
    ((), 'storage, not the network of the GPUs')
    """
    parts: dict[str, str] = {}
    find_parts, is_of_a_gpu = _compile()
    for match in find_parts.finditer(text):
        kind = match.lastgroup or ""
        if (kind != "gpu" or is_of_a_gpu.search(text)) and len(parts) < _MOST_PARTS:
            parts.setdefault(match[0], kind)
    nics = [part for part, kind in parts.items() if kind == "nic"]
    wording = _find(text, "wording")
    subject = None if parts else _find(text, "subject")
    means = [found.means for found in (wording, subject) if found is not None]
    if subject is not None and subject.name not in _OF_FABRIC and not (wording and wording.name == "consequence"):
        means, wording = [subject.means], None  # it has the more of the line
    steps = [step for found in (wording, subject) if found is not None for step in found.next]
    if parts and set(parts.values()) <= _OF_GPUS:
        steps = [_GPU_STEP]
    return LineWords(
        parts=tuple(parts),
        nic=nics[0] if len(nics) == 1 else None,
        is_consequence=wording is not None and wording.name == "consequence",
        is_outside=bool(parts) or (subject is not None and subject.name != "file"),
        means=", ".join(means) or None,
        next=tuple(steps),
    )


_DEVICE = lazy_pattern(
    r"(?<![\w./])(?i:(?:GPU|NPU|HPU|TPU|XPU|ND|NC|neuron|davinci|hl|accel|chip(?:Id)?|device|card|tile)"
    r"(?: ?[:#=] ?| |_)?\d{1,3}(?![\w.:]))"
)


def find_device(text: str) -> str | None:
    """The accelerator that a line names, as its maker writes it.

    >>> find_device("HBM uncorrectable error on ND 7, worker rank 31"), find_device("(PID:30112, Device:9, RankID:73)")
    ('ND 7', 'Device:9')
    """
    match = _DEVICE.search(text)
    return match[0] if match else None


@cache
def _compile() -> tuple[re.Pattern[str], re.Pattern[str]]:
    return re.compile(_PART), re.compile(_OF_A_GPU)  # few logs have such lines


class _WordingRow(NamedTuple):
    name: str
    pattern: re.Pattern[str]
    means: str
    next: tuple[str, ...]


_OF_GPUS = frozenset(("gpu", "pci"))
_GPU_STEP = "the kernel log of {host} at that time: Xids, AER, resets"
_OF_FABRIC = frozenset(("rdma", "gpu_links"))


@cache
def _load(table: str) -> tuple[_WordingRow, ...]:
    return tuple(
        _WordingRow(name, re.compile(row["pattern"]), row["means"], tuple(row["next"]))
        for name, row in load_codes()[table].items()
    )


def _find(text: str, table: str) -> _WordingRow | None:
    return next((entry for entry in _load(table) if entry.pattern.search(text)), None)
