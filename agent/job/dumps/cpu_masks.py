"""Which CPUs each rank may use, as launchers print it when they are asked to."""

from __future__ import annotations

import re
from typing import NamedTuple

from agent.job.lines import LogLine
from probes.text import lazy_pattern

WORDS = (b"MPI startup():", b"mask 0x", b" bound to ", b"core affinity =")
_FORMS = (
    # Intel MPI: "[0] MPI startup(): 16  107850  gpu3  {0,1,2,3}", or "0-3"
    lazy_pattern(
        r"MPI startup\(\): (?P<rank>\d{1,7})\s{1,12}\d{1,9}\s{1,12}(?P<host>[\w.-]{1,64})\s{1,12}"
        r"(?:\{(?P<list>[\d,-]{1,2000})\}|(?P<list2>\d{1,4}-\d{1,4}(?:,[\d,-]{1,2000})?|\d{1,4})\s{0,8}$)"
    ),
    # Slurm: "cpu-bind=MASK - gpu3, task  0  0 [4711]: mask 0xff set"
    lazy_pattern(
        r"cpu-bind\S{0,20} - (?P<host>[\w.-]{1,64}), task {1,8}(?P<rank>\d{1,7}) .{1,40}: "
        r"mask (?P<mask>0x[0-9A-Fa-f]{1,400})\b"
    ),
    # Open MPI 5: "[gpu3:4711] Rank 0 bound to package[0][core:0-7]"; before: "MCW rank 0 bound to .. [B/B/./.]"
    lazy_pattern(
        r"\[(?P<host>[\w.-]{1,64}):\d{1,9}\] (?:MCW )?[Rr]ank (?P<rank>\d{1,7}) bound to [^\[]{0,20}"
        r"(?:\[\d{1,4}\])?\[(?:core|hwt):(?P<list>[\d,-]{1,2000})\]"
    ),
    lazy_pattern(
        r"\[(?P<host>[\w.-]{1,64}):\d{1,9}\] MCW rank (?P<rank>\d{1,7}) bound to .{1,2000}?: ?"
        r"(?P<cells>(?:\[[B./]{1,600}\]){1,16})"
    ),
    # xthi: "Hello from rank 0, thread 0, on gpu3. (core affinity = 0-7)"
    lazy_pattern(
        r"[Rr]ank {1,4}(?P<rank>\d{1,7})\b.{0,40}?\bon (?P<host>[\w-]{1,64})\b.{0,40}?"
        r"\b(?:core|CPU|cpu)[ _]affinity ?[=:] ?\(?(?P<list>[\d,-]{1,2000})"
    ),
)  # fmt: skip


class CpuMask(NamedTuple):
    """The CPUs of a rank: as they are printed, and how many."""

    rank: int
    host: str
    text: str
    cpus: int
    line: LogLine


def read_mask(line: LogLine) -> CpuMask | None:
    """The CPUs that a line lists for a rank."""
    for form in _FORMS:
        match = form.search(line.whole)
        if match is None:
            continue
        groups = match.groupdict()
        host = groups["host"].partition(".")[0]
        if (listed := groups.get("list") or groups.get("list2")) is not None:
            count = _count(listed)
        elif (cells := groups.get("cells")) is not None:
            listed, count = cells, sum("B" in cell for cell in re.split(r"[/\[\]]", cells))
        else:
            listed = groups["mask"]
            count = int(listed, 16).bit_count()
        return CpuMask(int(groups["rank"]), host, listed, count, line) if count else None
    return None


def _count(text: str) -> int:
    """How many numbers a list has.

    >>> _count("0-3,8")
    5
    """
    total = 0
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first.isdecimal() and (last.isdecimal() or not last):
            total += max(int(last[:6] or first[:6]) - int(first[:6]) + 1, 1)
    return total
