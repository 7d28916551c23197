"""The link modes of Ethernet by their bits: enum ethtool_link_mode_bit_indices in linux/ethtool.h."""

from __future__ import annotations

from collections.abc import Iterable

FEC_MODES = {49: "off", 50: "rs", 51: "baser", 74: "llrs"}
SPEEDS_MBIT_S = {
    10: (0, 1, 92, 99, 100, 101, 102),
    100: (2, 3, 67, 90, 91),
    1_000: (4, 5, 17, 41, 68),
    2_500: (15, 47),
    5_000: (48,),
    10_000: (12, 18, 19, 20, *range(42, 47)),
    20_000: (21, 22),
    25_000: (31, 32, 33),
    40_000: range(23, 27),
    50_000: (34, 35, 40, *range(52, 57)),
    56_000: range(27, 31),
    100_000: (*range(36, 40), *range(57, 62), *range(75, 80)),
    200_000: (*range(62, 67), *range(80, 85), *range(103, 109)),
    400_000: (*range(69, 74), *range(85, 90), *range(109, 115)),
    800_000: (*range(93, 99), *range(115, 121)),
    1_600_000: range(121, 125),
}
_SPEED_OF = {bit: speed for speed, bits in SPEEDS_MBIT_S.items() for bit in bits}
BITS_LIMIT = 1024


def set_bits(raw: bytes) -> frozenset[int]:
    """Numbers of the bits that are set in a bitmap of 32-bit words.

    >>> sorted(set_bits((1 << 50 | 1 << 6).to_bytes(8, "little")))
    [6, 50]
    """
    import sys

    words = (int.from_bytes(raw[at : at + 4], sys.byteorder) for at in range(0, min(len(raw), BITS_LIMIT // 8), 4))
    return frozenset(32 * place + bit for place, word in enumerate(words) for bit in range(32) if word >> bit & 1)


def fastest(modes: Iterable[int]) -> int | None:
    """Mbit/s of the fastest mode; None where no mode is known.

    >>> fastest({6, 13, 38, 66}), fastest({6})
    (200000, None)
    """
    return max((_SPEED_OF[bit] for bit in modes if bit in _SPEED_OF), default=None)
