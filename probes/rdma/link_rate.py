"""Link rates as the kernel and the RDMA tools print them, taken apart and put together."""

from __future__ import annotations

import re
from typing import NamedTuple

from probes.text import Unparsable

# drivers/infiniband/core/sysfs.c, include/rdma/ib_verbs.h: speed code -> name, Gbit/s a lane as sysfs counts them
SPEEDS = {
    1: ("SDR", 2.5),
    2: ("DDR", 5.0),
    4: ("QDR", 10.0),
    8: ("FDR10", 10.0),
    16: ("FDR", 14.0),
    32: ("EDR", 25.0),
    64: ("HDR", 50.0),
    128: ("NDR", 100.0),
    256: ("XDR", 200.0),
}

_RATE = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,4})?)(?: Gb/sec(?: \(([0-9]{1,2}X)(?: ([A-Z]{2,4}[0-9]{0,3}))?\))?)?")


class Rate(NamedTuple):
    """One printed rate. `width` and `speed` are None where the text does not name them (ibstat; SDR of old kernels)."""

    gbit_s: float
    width: str | None
    speed: str | None


def parse_rate(text: str) -> Rate:
    """The rate of sysfs, ibstatus or ibstat. A port that is down prints a default here. Raises Unparsable.

    >>> parse_rate("400 Gb/sec (4X NDR)")
    Rate(gbit_s=400.0, width='4X', speed='NDR')
    >>> parse_rate("2.5 Gb/sec (1X SDR)"), parse_rate("10 Gb/sec (4X)").speed, parse_rate("56")
    (Rate(gbit_s=2.5, width='1X', speed='SDR'), None, Rate(gbit_s=56.0, width=None, speed=None))
    """
    match = _RATE.fullmatch(text.strip())
    if not match:
        raise Unparsable(f"not a link rate: {text!r:.60}")
    return Rate(float(match[1]), match[2], match[3])


def rate_text(lanes: int, speed_code: int) -> str | None:
    """The text that sysfs prints for a width and a speed code; None for a code that is not known here.

    >>> rate_text(4, 32), rate_text(1, 1), rate_text(4, 3)
    ('100 Gb/sec (4X EDR)', '2.5 Gb/sec (1X SDR)', None)
    """
    if speed_code not in SPEEDS:
        return None
    name, lane = SPEEDS[speed_code]
    return f"{lanes * lane:g} Gb/sec ({lanes}X {name})"
