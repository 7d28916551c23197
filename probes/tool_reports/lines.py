"""The lines of a tool's output, as every reader takes them: of a text that is not too long, without lines that are; and
the part that such a line names."""

from __future__ import annotations

from probes.gpu.facts import find_address
from probes.text import MOST_CHARACTERS, check_length, lazy_pattern

_ADDRESS = lazy_pattern(
    r"(?<![\w:.])(?P<bdf>[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2})(?P<function>\.[0-7])?(?![\w:])"
)
_RDMA_DEVICE = lazy_pattern(r"\b(?:mlx[45]_(?:bond_)?|bnxt_re|irdma|ionic_|efa_|erdma_)\d{1,3}\b")


def short_lines(text: str, longest: int, most: int = MOST_CHARACTERS) -> list[str]:
    """Its lines that are shorter than `longest`: patterns are tried on no other. Raises ParseError.

    >>> short_lines("up\\n" + "x" * 9, longest=4)
    ['up']
    """
    return [line for line in check_length(text, most).splitlines() if len(line) < longest]


def find_only_part(line: str) -> str | None:
    """The PCI address of a line that names one, else its one RDMA device; None where it names none or several.

    >>> find_only_part("hl5 (0000:b4:00.0)"), find_only_part("mlx5_7 is down"), find_only_part("mlx5_1, mlx5_2")
    ('0000:b4:00.0', 'mlx5_7', None)
    """
    addresses = {match["bdf"] + (match["function"] or ".0") for match in _ADDRESS.finditer(line)}
    if addresses:
        return find_address(addresses.pop()) if len(addresses) == 1 else None
    names = set(_RDMA_DEVICE.findall(line))
    return names.pop() if len(names) == 1 else None
