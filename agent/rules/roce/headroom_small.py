"""roce-headroom-small."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.model.nic import Netdev
from agent.rules.case import Case
from agent.rules.roce.lossless import Chain
from agent.rules.roce.told import fault, lost, over_readable
from agent.rules.rule import Answer, NotApplicable, Pass, Unknown, rule

_CABLE_METRES = 7.0  # what mlx5 reckons with where nobody says more
_XON, _CELL = 9216, 128  # bytes between XON and XOFF, and the smallest cell of the buffer: the most lenient sum
_DROPS = ("discards", "buf_discard")


@rule("roce-headroom-small", "warning", needs=("rdma|rdma_tools", "netdev"), references=("roce-headroom-small",))
def roce_headroom_small(case: Case) -> Iterator[Answer]:
    """The receive buffer of a lossless class is too small for what is under way when it pauses.

    ## What it checks
    The size of the receive buffer of every lossless priority of every RoCE port with an mlx5 driver.

    ## Why it matters
    After a pause is sent, what is on the cable still arrives: at 400 Gb/s, 7 m and MTU 9000 the buffer needs 160 kB, at
    100 m 241 kB. Less overflows, and packets are lost in spite of PFC.

    ## How it is decided
    Needed: (301 + 2.16 * cable metres) * Gb/s + 2.72 * MTU + 9216 + 128 bytes, as mlx5 reckons. The cable is the
    longest of: declared (`cable_metres` below `[facts]`), what the plugged cable says of itself, what the driver
    reckons with, else 7 m. A smaller buffer: warning, error where the port discarded packets in the window. Storage:
    one step less.

    ## What keeps it silent
    - Other drivers, BlueField (its cells are not known), PFC off: not applicable.
    - Buffers, speed or MTU could not be read, virtual functions: unknown.

    ## How to confirm
    `dcb buffer show dev INTERFACE`, or `mlnx_qos -i INTERFACE`; `ethtool -S INTERFACE | grep discard`

    ## How to fix
    `mlnx_qos -i INTERFACE --cable_len 100` makes the driver reckon anew; or `--buffer_size`.

    ## Source
    Linux `mlx5/core/en/port_buffer.c` (`calculate_xoff`, `update_xoff_threshold`).
    """
    yield from over_readable(case, lambda each, netdev: _judge(case, each, netdev))


def needed_bytes(metres: float, gbit_s: float, mtu: int) -> float:
    """The smallest buffer of a lossless class.

    >>> round(needed_bytes(7, 400, 9000) / 1000), round(needed_bytes(100, 400, 9000) / 1000)
    (160, 241)
    """
    return (301 + 2.16 * metres) * gbit_s + 2.72 * mtu + _XON + _CELL


def _judge(case: Case, each: Chain, netdev: Netdev) -> Answer:
    subject, nic = each.each.subject, each.each.nic
    driver = nic.driver or netdev.driver or ""
    if not each.protected:
        return NotApplicable(subject, "PFC is off")
    if not driver.startswith("mlx5") or (nic.model or "").startswith("BlueField"):
        return NotApplicable(subject, "not reckoned for this kind of NIC")
    where, sizes = each.qos.buffers.get("prio_buffer", []), each.qos.buffers.get("size_bytes", [])
    speed, mtu = netdev.speed_gbit_s or each.each.port.rate_gbit_s, netdev.mtu
    if not speed or not mtu or len(where) < 8 or not all(0 <= where[n] < len(sizes) for n in each.protected):
        return Unknown(subject, "buffers, speed or MTU could not be read")
    metres = _metres(case, each, netdev)
    need = needed_bytes(metres, speed, mtu)
    small = {where[n]: sizes[where[n]] for n in each.protected if sizes[where[n]] < need}
    if not small:
        return Pass(subject)
    dropped = [name for name, _ in each.losses if name.endswith(_DROPS) or name.startswith("rx_discards")]
    found = ", ".join(f"buffer {n} has {size // 1000} kB" for n, size in sorted(small.items()))
    return fault(
        each,
        f"{found}; {need / 1000:.0f} kB are needed at {speed:g} Gb/s, MTU {mtu} and {metres:g} m of cable",
        f"mlnx_qos -i INTERFACE --cable_len {max(metres, _CABLE_METRES):.0f} makes the driver reckon anew.",
        impact=f"{(need - min(small.values())) / 1000:.0f} kB can be lost each time that the port pauses its switch.",
        severity=each.each.severity("error" if dropped else "warning"),
        evidence=(
            Evidence(
                what=f"receive buffers of {netdev.label}",
                value=f"bytes {sizes}, by priority {where}",
                source=f"dcb buffer show dev {netdev.label}",
            ),
            *lost(each),
        ),
        confidence="high" if dropped else "medium",
    )


def _metres(case: Case, each: Chain, netdev: Netdev) -> float:
    declared = case.settings.facts.get("cable_metres")
    told = [float(declared)] if isinstance(declared, int | float) else []
    told += [netdev.module.length_m] if netdev.module and netdev.module.length_m else []
    told += [float(each.qos.cable_metres)] if each.qos.cable_metres else []
    return max(told, default=_CABLE_METRES)
