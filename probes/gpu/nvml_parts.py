"""Parts of one GPU through NVML that only some have: C2C links, a bandwidth mode, a place in a rack, PCIe counters.

Field ids: nvml.h, NVML_FI_DEV_*. Each entry of an answer has its own return code; one that failed is no zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from probes.gpu.nvml_enums import C2C_ERRORS, C2C_STATES, PCIE_COUNTERS
from probes.gpu.nvml_nvlink import Asks, Fields, believable

_C2C_COUNT, _C2C_STATUS, _C2C_MAX = 170, 171, 172
_MOST_C2C = 64  # a Grace Hopper has 10


def pcie_counters(ask: Asks, index: int) -> dict[str, int] | None:
    """Counters of the GPU's own PCIe link; None where the driver has none of them."""
    return _counters(ask.fields(index, [(field, 0) for field in PCIE_COUNTERS]), PCIE_COUNTERS)


def c2c_links(ask: Asks, index: int) -> dict[str, Any]:
    """State of every C2C link; bandwidth and errors of all together, each only where every link said its own."""
    count = believable(ask.fields(index, [(_C2C_COUNT, 0)]).get((_C2C_COUNT, 0)), _MOST_C2C)
    if not count:
        return {}
    said = ask.fields(index, [(_C2C_STATUS, link) for link in range(count)])
    more = ask.fields(index, [(field, link) for link in range(count) for field in (_C2C_MAX, *C2C_ERRORS)])
    sums: dict[tuple[int, int], int | float] = {}
    for field in (_C2C_MAX, *C2C_ERRORS):
        values = [more[field, link] for link in range(count) if (field, link) in more]
        if len(values) == count:
            sums[field, 0] = sum(values)
    most = sums.get((_C2C_MAX, 0))
    return {
        "c2c_links": tuple(C2C_STATES.get(int(said.get((_C2C_STATUS, link), -1)), "unknown") for link in range(count)),
        "c2c_max_gbyte_s": most / 1000 if most else None,
        "c2c_errors": _counters(sums, C2C_ERRORS),
    }


def _counters(said: Fields, names: Mapping[int, str]) -> dict[str, int] | None:
    """Counters by name, of fields of scope 0; None where the driver has none of them."""
    return {name: int(said[field, 0]) for field, name in names.items() if (field, 0) in said} or None


def bandwidth_mode(said: Mapping[str, int] | None) -> str | None:
    """`bIsBest` says whether anything was taken away. `bwMode` is one of up to 23 that the GPU lists, not a number of
    the system's five modes."""
    if said is None:
        return None
    return "full" if said["bIsBest"] else "reduced"


def place(said: Mapping[str, Any] | None) -> dict[str, Any]:
    """Where in a rack the GPU sits. Without a chassis the numbers mean nothing: they are then zeros."""
    if said is None or not said["chassisSerialNumber"]:
        return {}
    return {
        "chassis_serial": said["chassisSerialNumber"],
        "slot": str(said["slotNumber"]),
        "tray": str(said["trayIndex"]),
    }
