"""The texts of sysfs attributes of a PCI function: link speeds, widths, BARs, AER counters.

Kernel: Documentation/ABI/testing/sysfs-bus-pci, sysfs-bus-pci-devices-aer_stats; drivers/pci/pci-sysfs.c, probe.c.
Every parser answers None (or leaves out) what is not as the kernel writes it, and raises nothing.
"""

from __future__ import annotations

import re
from functools import lru_cache

_SPEED = re.compile(r"\s*(\d{1,4}(?:\.\d{1,3})?)\s*GT/s(?:\s+PCIe)?\s*")
_DECIMAL = re.compile(r"\s*(-?\d{1,12})\s*")
_ID = re.compile(r"\s*(0x[0-9a-f]{2,8})\s*", re.IGNORECASE)
_RANGE = re.compile(r"\s*0x([0-9a-f]{1,16})\s+0x([0-9a-f]{1,16})\s+0x([0-9a-f]{1,16})\s*", re.IGNORECASE)
_BARS = 6  # lines 0..5 of `resource`; then come the ROM, the VFs' BARs and bridge windows


def link_speed(text: str) -> float | None:
    """GT/s of `current_link_speed`, `max_link_speed`, in the forms of all kernels; None for "Unknown" too.

    >>> link_speed("32.0 GT/s PCIe"), link_speed("8 GT/s"), link_speed("Unknown speed")
    (32.0, 8.0, None)
    """
    match = _SPEED.fullmatch(text)
    return float(match.group(1)) if match else None


def decimal(text: str) -> int | None:
    """A number as `numa_node`, `current_link_width` or `sriov_numvfs` hold it.

    >>> decimal("-1"), decimal("16\\n"), decimal("")
    (-1, 16, None)
    """
    match = _DECIMAL.fullmatch(text)
    return int(match.group(1)) if match else None


def identifier(text: str) -> str | None:
    """`class`, `vendor`, `device` and the like, in lower case.

    >>> identifier("0x030200"), identifier("0x10DE\\n"), identifier("10de")
    ('0x030200', '0x10de', None)
    """
    match = _ID.fullmatch(text)
    return match.group(1).lower() if match else None


def bars(text: str) -> dict[str, int] | None:
    """BAR number -> bytes, from `resource`; BARs that the function lacks are left out, None where no line is read.

    >>> bars("0x0000000096000000 0x0000000096ffffff 0x0000000000140204\\n0x0 0x0 0x0")
    {'0': 16777216}
    """
    found = {}
    read = False
    for number, line in enumerate(text.splitlines()[:_BARS]):
        match = _RANGE.fullmatch(line)
        if match is None:
            continue
        read = True
        start, end, flags = (int(part, 16) for part in match.groups())
        if flags and end > start:
            found[str(number)] = end - start + 1
    return found if read else None


def aer_counters(text: str) -> dict[str, int] | None:
    """Error name -> count since boot, from `aer_dev_correctable` and its kin; None where no line is read.

    >>> aer_counters("RxErr 3\\nReceiver Error 2\\nTOTAL_ERR_COR 3")
    {'RxErr': 3, 'Receiver Error': 2, 'TOTAL_ERR_COR': 3}
    """
    return dict(_counted(text)) or None


@lru_cache(maxsize=256)
def _counted(text: str) -> tuple[tuple[str, int], ...]:
    """Nearly all functions of a host say the same: nothing was counted."""
    found = {}
    for line in text.splitlines():
        name, _, count = line.strip().rpartition(" ")
        number = decimal(count)
        if name and number is not None:
            found[name.strip()] = number
    return tuple(found.items())
