"""RDMA devices and their ports, as facts, whoever states them: sysfs (`sysfs.py`) or tools (`tools.py`).

Kernel page: Documentation/ABI/stable/sysfs-class-infiniband.
"""

from collections.abc import Mapping

from probes.named_tuple import NamedTuple


class GidEntry(NamedTuple):
    """One used entry of a GID table (empty ones are left out)."""

    index: int  # type: ignore[assignment]  # hides tuple.index, which no fact needs
    gid: str  # "fe80:0000:..." as sysfs prints it (eight groups of four)
    type: str | None = None  # "IB/RoCE v1" | "RoCE v2"
    netdev: str | None = None


class RdmaPort(NamedTuple):
    """One port. Texts are the source's own words; numbers are made in assemble."""

    port: int
    link_layer: str | None = None  # InfiniBand | Ethernet | Unknown
    state: str | None = None  # "4: ACTIVE" in sysfs -> "ACTIVE"
    phys_state: str | None = None  # "LinkUp"
    rate_text: str | None = None  # "400 Gb/sec (4X NDR)"; ibstat: "400"
    lid: int | None = None
    sm_lid: int | None = None
    active_mtu: int | None = None  # only ibv_devinfo states it
    port_guid: str | None = None  # "b83f:d203:0012:3456"; sysfs: the lower half of GID 0 (InfiniBand only)
    gids: tuple[GidEntry, ...] = ()
    gids_known: bool = False  # True: the whole table was read, so an empty `gids` means none
    pkeys: tuple[str, ...] = ()  # "0xffff"; empty entries left out
    netdevs: tuple[str, ...] = ()
    counters: Mapping[str, int] | None = None
    hw_counters: Mapping[str, int] | None = None


class RdmaDevice(NamedTuple):
    """One RDMA device."""

    name: str  # "mlx5_0"
    address: str | None = None  # PCI address; None for software devices and where the source does not show it
    node_type: str | None = None  # "CA" | "RNIC" ...
    firmware: str | None = None
    board_id: str | None = None  # PSID
    hca_type: str | None = None  # "MT4129"
    node_guid: str | None = None  # "b83f:d203:0012:3456"
    system_image_guid: str | None = None
    node_description: str | None = None
    software: bool = False  # rxe, siw: lies under /sys/devices/virtual
    limited: str | None = None  # why its counters were not read (a fabric manager owns the function)
    asleep: bool = False  # its PCI function is suspended: nothing past runtime_status was read
    ports: tuple[RdmaPort, ...] = ()


class RdmaFacts(NamedTuple):
    """Every RDMA device, sorted by name (numbers as numbers)."""

    devices: tuple[RdmaDevice, ...]
    whole: bool = True  # False: every text that lists devices is cut; there may be more
