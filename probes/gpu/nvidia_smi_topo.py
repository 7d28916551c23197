"""`nvidia-smi topo -m`: how GPUs and NICs reach each other, and which CPUs and NUMA node are near each GPU."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from probes.gpu.facts import Gpu, PairCell
from probes.gpu.nvidia_smi_table import Row, Table, parse_table

# C2C and PSB are of the drivers' own lists; SOC is what SYS was called before R384; ERR and N/A say nothing
_WORDS = (r"NV\d{1,2}", "PIX", "PXB", "PHB", "NODE", "SYS", "SOC", "C2C", "PSB", "ERR", "N/A")
_SAYS_NOTHING = ("ERR", "N/A")
_CPULIST = re.compile(r"\d{1,6}(?:-\d{1,6})?(?:,\d{1,6}(?:-\d{1,6})?)*", re.ASCII)
_NUMBER = re.compile(r"\d{1,6}", re.ASCII)
_NIC = re.compile(r"^[ \t]*(NIC\d{1,4}): (\S{1,64})[ \t\r]*\n", re.ASCII | re.MULTILINE)  # without an end it may be cut


class Matrix(NamedTuple):
    """One matrix: its GPUs (index, affinity, NUMA), every pair once, and the devices behind "NIC0", "NIC1"."""

    gpus: tuple[Gpu, ...]
    pairs: tuple[PairCell, ...]
    nic_names: Mapping[str, str]
    missing: str | None = None  # what of it the text does not hold


def parse(text: str) -> Matrix:
    r"""The matrix of `nvidia-smi topo -m` (or `-mp`, which shows PCIe only). Raises Unparsable.

    >>> matrix = parse("\tGPU0\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
    ...                "GPU0\t X \tPIX\t0-55,112-167\t0\t\tN/A\n"
    ...                "NIC0\tPIX\t X \t\t\t\t\n\nNIC Legend:\n\n  NIC0: mlx5_0\n")
    >>> matrix.pairs, matrix.nic_names
    ((PairCell(a='GPU0', b='NIC0', kind='PIX'),), {'NIC0': 'mlx5_0'})
    >>> matrix.gpus[0].cpu_affinity, matrix.gpus[0].numa_node, matrix.gpus[0].memory_numa_node
    ('0-55,112-167', 0, None)
    """
    table = parse_table(text, _WORDS)
    rows = {row.label: row for row in table.rows}
    pairs, notes = _pairs(table, rows)
    return Matrix(
        gpus=tuple(_gpu(label, rows.get(label), table.tail) for label in table.gpus),
        pairs=pairs,
        nic_names=dict(_NIC.findall(text)),
        missing="; ".join(note for note in (table.missing, *notes) if note) or None,
    )


def _pairs(table: Table, rows: Mapping[str, Row]) -> tuple[tuple[PairCell, ...], list[str]]:
    """Each pair from either of its rows; none where the two rows differ."""
    cells, notes = [], []
    for place, a in enumerate(table.columns):
        for b in table.columns[place + 1 :]:
            said = {rows[row].cells[column] for row, column in ((a, b), (b, a)) if row in rows} - set(_SAYS_NOTHING)
            if len(said) == 1:
                kind = said.pop()
                cells.append(PairCell(a, b, "SYS" if kind == "SOC" else kind))
            elif said:
                notes.append(f"{a}-{b} is {' one way and '.join(sorted(said))} the other")
    return tuple(cells), notes


def _gpu(label: str, row: Row | None, headings: tuple[str, ...]) -> Gpu:
    index = int(label.removeprefix("GPU"))
    if row is None or row.tail is None:
        return Gpu(index=index)
    said = dict(zip(headings, row.tail, strict=True))
    cpus, numa, own = (said.get(heading, "") for heading in ("CPU Affinity", "NUMA Affinity", "GPU NUMA ID"))
    return Gpu(
        index=index,
        cpu_affinity=_canonical(cpus) if _CPULIST.fullmatch(cpus) else None,
        numa_node=int(numa) if _NUMBER.fullmatch(numa) else None,
        numa_affinity=numa if _CPULIST.fullmatch(numa) else None,
        memory_numa_node=int(own) if _NUMBER.fullmatch(own) else None,
    )


def _canonical(cpus: str) -> str:
    """A CPU list as the kernel writes it: POWER prints "0-0,8-8" for "0,8"."""
    spans = (span.partition("-") for span in cpus.split(","))
    return ",".join(first if not last or int(first) == int(last) else f"{first}-{last}" for first, _, last in spans)
