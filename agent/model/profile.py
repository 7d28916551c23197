"""What a platform, or a site, expects of a node: counts, NVLinks, rails, pairing, each with where it is from."""

import msgspec


class BadProfile(Exception):
    """A profile that is not there or cannot be used; the message names it and what is wrong."""


class Expected(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One expected number or word. A value of low confidence gives info at most."""

    value: int | float | str
    source: str
    confidence: str = "high"  # high | medium | low


class Device(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One device that a good node of a site had: what to look for, where it sits, and how its link ran."""

    kind: str  # gpu | nic | nvswitch
    pci: str | None = None
    slot: str | None = None
    name: str | None = None
    vendor_device: str | None = None  # "10de:2330"
    role: str | None = None
    link_gt_s: float | None = None
    link_width: int | None = None
    firmware: str | None = None
    rate_gbit_s: float | None = None
    link_layer: str | None = None
    numa_node: int | None = None


class Profile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Expectations by name. Null: nothing is expected, and nothing judged."""

    name: str
    title: str = ""
    gpu_devices: list[str] = []  # PCI ids "10de:2330" that make a node one of these
    gpus: Expected | None = None  # how many
    nvlinks_per_gpu: Expected | None = None
    nv: Expected | None = None  # the number in NV#, of every pair
    nvlink_signal_gbyte_s: Expected | None = None
    nvswitches: Expected | None = None  # that the host sees on PCI
    fabric_manager: Expected | None = None  # "node": runs here; "none": not on this node
    rails: Expected | None = None
    rail_gbit_s: Expected | None = None
    gpu_rail_kind: Expected | None = None  # PIX | PXB | PHB | NODE | SYS: of a GPU and its nearest rail
    c2c_gbyte_s: Expected | None = None  # of one GPU, one direction
    gpu_pcie_lanes: Expected | None = None  # that the GPU itself has, in whatever slot
    module_ids: Expected | None = None  # how many baseboard sockets, numbered from 1
    devices: list[Device] = []  # of a learnt profile: each is missed when it is gone
