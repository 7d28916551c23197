"""What a PCIe link carries: GB/s (10^9 bytes) in one direction, after line coding.

PCIe Base Specification: 8b/10b up to 5 GT/s, 128b/130b from 8 GT/s, and from 64 GT/s FLIT mode, where 236 of 256
bytes are transaction layer packets (118 GB/s for x16).
"""

from __future__ import annotations

_GBYTE_S_PER_LANE = {
    2.5: 0.25,
    5.0: 0.5,
    8.0: 8 * 128 / 130 / 8,
    16.0: 16 * 128 / 130 / 8,
    32.0: 32 * 128 / 130 / 8,
    64.0: 64 * 236 / 256 / 8,
    128.0: 128 * 236 / 256 / 8,
}
_GENERATION = {speed: number for number, speed in enumerate(_GBYTE_S_PER_LANE, start=1)}


def bandwidth_gbyte_s(speed_gt_s: float | None, width: int | None) -> float | None:
    """Bandwidth of a link in one direction; None where speed or width are not known.

    >>> bandwidth_gbyte_s(32.0, 16), bandwidth_gbyte_s(64.0, 16), bandwidth_gbyte_s(None, 16)
    (63.015, 118.0, None)
    """
    lane = _GBYTE_S_PER_LANE.get(speed_gt_s) if speed_gt_s is not None else None
    return round(lane * width, 3) if lane is not None and width else None


def generation(speed_gt_s: float | None) -> int | None:
    """The PCIe generation of a lane speed, 1 for 2.5 GT/s; None for a speed that no generation has."""
    return _GENERATION.get(speed_gt_s) if speed_gt_s is not None else None
