"""`nvidia-smi topo -p2p r|w|n`: whether the driver lets each GPU reach each other one."""

from __future__ import annotations

from collections.abc import Mapping

from probes.gpu.nvidia_smi_table import parse_table

# OK, chipset / GPU / topology not supported, not supported, disabled by registry key, unknown
_WORDS = ("OK", "CNS", "GNS", "TNS", "NS", "DR", "U", "N/A")


def parse(text: str) -> tuple[Mapping[tuple[int, int], str], str | None]:
    r"""The word of every ordered pair of GPU indexes, and what the text does not hold. Raises Unparsable.

    >>> parse(" \tGPU0\tGPU1\t\n GPU0\tX\tCNS\t\n GPU1\tCNS\tX\t\n\nLegend:\n\n  X    = Self\n")
    ({(0, 1): 'CNS', (1, 0): 'CNS'}, None)
    """
    table = parse_table(text, _WORDS)
    words = {
        (int(row.label[3:]), int(peer[3:])): word
        for row in table.rows
        for peer, word in row.cells.items()
        if row.label in table.gpus and peer in table.gpus and word != "N/A"
    }
    return words, table.missing
