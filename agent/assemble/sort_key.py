"""The sort order of rows: numbers in names sort as numbers, PCI addresses by domain, bus, device and function."""

from __future__ import annotations

import re

_ADDRESS = re.compile(r"([0-9a-f]{4,8}):([0-9a-f]{2}):([0-9a-f]{2})\.([0-7])")
_NUMBER = re.compile(r"([0-9]{1,18})")  # Python refuses to read longer ones, and no device has them

Key = tuple[int, tuple[tuple[int, str], ...]]


def sort_key(name: str) -> Key:
    """A sort key: PCI addresses first, by domain, bus, device and function; then names, their numbers as numbers.

    >>> sorted(["mlx5_10", "10000:00:00.0", "mlx5_9", "0000:e1:00.0"], key=sort_key)
    ['0000:e1:00.0', '10000:00:00.0', 'mlx5_9', 'mlx5_10']
    """
    address = _ADDRESS.fullmatch(name)
    if address:
        return 0, tuple((int(part, 16), "") for part in address.groups())
    return 1, tuple((int(part), "") if _NUMBER.fullmatch(part) else (-1, part) for part in _NUMBER.split(name) if part)


def card_address(address: str) -> str:
    """The card of a function: its PCI address without the function number."""
    return address.rpartition(".")[0]
