"""The bytes of a function's configuration space -> what its capabilities state.

Offsets and bits: PCI Local Bus and PCI Express Base specifications, as linux/pci_regs.h names them. The same decoder
serves sysfs `config` and `lspci -xxxx`. A register past the end of the data is None: a short read is never "off".
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Protocol, overload

from probes.named_tuple import NamedTuple

HEADER_BYTES = 64  # what the kernel gives to a reader without CAP_SYS_ADMIN
CONVENTIONAL_BYTES = 256  # extended capabilities start here

_SPEED_GT_S = {1: 2.5, 2: 5.0, 3: 8.0, 4: 16.0, 5: 32.0, 6: 64.0, 7: 128.0}
_PORT_TYPES = {
    0: "endpoint",
    1: "legacy_endpoint",
    4: "root_port",
    5: "upstream",
    6: "downstream",
    7: "bridge",
    8: "bridge",
    9: "rciep",
    10: "rcec",
}
_NO_LINK = ("rciep", "rcec")  # integrated into the root complex
_PORTS = ("root_port", "downstream")  # the upper end of a link: only these have the LBMS and LABS bits
_ASPM = {0: "off", 1: "L0s", 2: "L1", 3: "L0s L1"}
_ACS_BITS = {0x01: "SV", 0x02: "TB", 0x04: "RR", 0x08: "CR", 0x10: "UF", 0x20: "EC", 0x40: "DT"}

_CAP_POWER, _CAP_SUBSYSTEM, _CAP_EXPRESS = 0x01, 0x0D, 0x10
_EXT_AER, _EXT_SERIAL, _EXT_ACS, _EXT_ATS, _EXT_SRIOV = 0x0001, 0x0003, 0x000D, 0x000F, 0x0010
_EXPRESS_BYTES = 0x32  # up to LnkCtl2
_ALL_ONES = 0xFFFFFFFF


class Registers(Protocol):
    """The bytes, or what reads them where they are asked for."""

    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, at: int, /) -> int: ...
    @overload
    def __getitem__(self, at: slice, /) -> bytes: ...


class Express(NamedTuple):
    """The PCI Express capability: facts of a PCI function, each by its name there.

    None: past the end of the data, or this kind of function has no such register.
    """

    port_type: str | None
    slot_occupied: bool | None  # SltSta: presence is detected, by pins or by the link's receivers
    slot_powered: bool | None  # SltCtl; True too where the slot has no power controller
    link_active: bool | None  # LnkSta of ports that report it (LnkCap)
    max_payload_supported_bytes: int | None  # DevCap
    max_payload_bytes: int | None  # DevCtl
    max_read_request_bytes: int | None  # DevCtl
    relaxed_ordering: bool | None  # DevCtl
    extended_tags: bool | None  # DevCtl
    extended_tags_supported: bool | None  # DevCap
    ten_bit_tags: bool | None  # DevCtl2: the requester may use them
    ten_bit_tags_supported: bool | None  # DevCap2: of a port as completer, of others as requester
    max_link_speed_gt_s: float | None  # LnkCap
    max_link_width: int | None  # LnkCap
    current_link_speed_gt_s: float | None  # LnkSta; None too where the code is none that is defined
    current_link_width: int | None  # LnkSta; 0: no link
    aspm: str | None  # LnkCtl
    link_disabled: bool | None  # LnkCtl
    bandwidth_management_status: bool | None  # LnkSta of ports
    autonomous_bandwidth_status: bool | None  # LnkSta of ports
    target_link_speed_gt_s: float | None  # LnkCtl2


class VirtualFunctions(NamedTuple):
    """The SR-IOV capability: VF n of an enabled set is `offset + n * stride` routing ids further."""

    total: int
    enabled: int  # 0 where VF Enable is off, whatever NumVFs holds
    offset: int
    stride: int


class ConfigSpace(NamedTuple):
    """What the bytes state. `*_known`: whether None in that part means "has no such capability"."""

    size: int  # bytes that could be read
    gone: bool = False  # all-ones: nothing answers
    vendor: str | None = None  # "0x10de"; None for a virtual function, which reads as 0xffff
    device: str | None = None
    class_code: str | None = None
    revision: str | None = None
    subsystem_vendor: str | None = None
    subsystem_device: str | None = None
    header_type: int | None = None  # 0 function, 1 bridge, 2 CardBus
    secondary_bus: int | None = None
    power_state: str | None = None  # PMCSR: "D0" .. "D3hot"
    pcie_known: bool = False
    pcie: Express | None = None
    extended_known: bool = False
    acs_capability: frozenset[str] | None = None
    acs_control: frozenset[str] | None = None
    ats_enabled: bool | None = None
    aer: bool | None = None  # the capability is there
    serial: str | None = None  # "b8-3f-d2-ff-ff-00-00-01"
    virtual_functions: VirtualFunctions | None = None


def decode(data: Registers) -> ConfigSpace:
    """Decode as much as there is, of any length and content; raises nothing.

    >>> space = decode(bytes.fromhex("de10 3023 0601 1000 a100 0203") + bytes(40) + b"\x60" + bytes(11))
    >>> space.vendor, space.device, space.class_code, space.pcie_known
    ('0x10de', '0x2330', '0x030200', False)
    """
    if data[:HEADER_BYTES] == b"\xff" * HEADER_BYTES:
        return ConfigSpace(size=len(data), gone=True)
    header_type = data[0x0E] & 0x7F if len(data) > 0x0E else None
    bridge = header_type in (1, 2)
    capabilities, pcie_known = _capabilities(data, header_type)
    at = capabilities.get(_CAP_EXPRESS)
    express = None if at is None else _express(data[at : at + _EXPRESS_BYTES])
    extended, extended_known = _read_extended(data)
    if pcie_known and express is None:
        extended_known = True  # what we read there belongs to PCI Express functions only
    acs, ats = extended.get(_EXT_ACS), extended.get(_EXT_ATS)
    ats_control = None if ats is None else _u16(data, ats + 6)
    subsystem = _subsystem_at(header_type, capabilities)
    vendor = _u16(data, 0)
    virtual = vendor == 0xFFFF
    return ConfigSpace(
        size=len(data),
        vendor=None if virtual else _hex(vendor, 4),
        device=None if virtual else _hex(_u16(data, 2), 4),
        class_code=f"0x{int.from_bytes(data[9:12], 'little'):06x}" if len(data) >= 12 else None,
        revision=f"0x{data[8]:02x}" if len(data) > 8 else None,
        subsystem_vendor=None if subsystem is None else _hex(_u16(data, subsystem), 4),
        subsystem_device=None if subsystem is None else _hex(_u16(data, subsystem + 2), 4),
        header_type=header_type,
        secondary_bus=data[0x19] if bridge and len(data) > 0x19 else None,
        power_state=_power_state(data, capabilities.get(_CAP_POWER)),
        pcie_known=pcie_known,
        pcie=express,
        extended_known=extended_known,
        acs_capability=_acs_flags(data, acs, 4),
        acs_control=_acs_flags(data, acs, 6),
        ats_enabled=None if ats_control is None else bool(ats_control & 0x8000),
        aer=_EXT_AER in extended if extended_known or _EXT_AER in extended else None,
        serial=_serial(data, extended.get(_EXT_SERIAL)),
        virtual_functions=_virtual_functions(data, extended.get(_EXT_SRIOV)),
    )


def _capabilities(data: Registers, header_type: int | None) -> tuple[dict[int, int], bool]:
    """Capability id -> offset of the first such, and whether the list was walked to its end."""
    status = _u16(data, 0x06)
    if status is None or header_type not in (0, 1, 2):
        return {}, False
    if not status & 0x10:
        return {}, len(data) >= HEADER_BYTES
    pointer = _u8(data, 0x14 if header_type == 2 else 0x34)
    offsets: dict[int, int] = {}
    seen: set[int] = set()
    while pointer is not None and pointer & 0xFC:
        at = pointer & 0xFC
        identity, pointer = _u8(data, at), _u8(data, at + 1)
        if identity is None or identity == 0xFF or at < 0x40 or at in seen:
            return offsets, False
        seen.add(at)
        offsets.setdefault(identity, at)
    return offsets, pointer is not None


def _read_extended(data: Registers) -> tuple[dict[int, int], bool]:
    """The same for the extended list; each offset is visited once, so the walk is bounded by the data."""
    offsets: dict[int, int] = {}
    seen: set[int] = set()
    at = CONVENTIONAL_BYTES
    if data[at : at + 4] == data[:4]:
        return offsets, False  # a bridge on the way drops the upper address bits: the header is seen again
    while at:
        header = _u32(data, at)
        if header is None or header == _ALL_ONES or at in seen or at < CONVENTIONAL_BYTES:
            return offsets, False
        if header == 0:
            break
        seen.add(at)
        offsets.setdefault(header & 0xFFFF, at)
        at = header >> 20 & 0xFFC
    return offsets, True


@lru_cache(maxsize=256)
def _express(data: bytes) -> Express:
    """The registers of the capability, as many as could be read: most functions of a host share theirs with others."""
    flags, device_control = _u16(data, 2), _u16(data, 8)
    kind = None if flags is None else _PORT_TYPES.get(flags >> 4 & 0xF)
    version = 0 if flags is None else flags & 0xF
    has_link = kind is not None and kind not in _NO_LINK
    device_capability = _u32(data, 4)
    link_capability = _u32(data, 0x0C) if has_link else None
    link_control = _u16(data, 0x10) if has_link else None
    link_status = _u16(data, 0x12) if has_link else None
    slot = _u32(data, 0x14) if flags is not None and flags & 0x100 and kind in _PORTS else None
    slot_control, slot_status = (None if slot is None else _u16(data, offset) for offset in (0x18, 0x1A))
    link_control_2 = _u16(data, 0x30) if has_link and version >= 2 else None
    device_capability_2 = _u32(data, 0x24) if version >= 2 else None
    device_control_2 = _u16(data, 0x28) if version >= 2 else None
    ten_bit = 0x10000 if kind in (*_PORTS, "upstream") else 0x20000
    port_status = link_status if kind in _PORTS else None
    reports_active = link_capability is not None and bool(link_capability & 0x100000)
    return Express(
        port_type=kind,
        slot_occupied=None if slot_status is None else bool(slot_status & 0x40),
        slot_powered=None if slot is None or slot_control is None else not (slot & 2 and slot_control & 0x400),
        link_active=bool(port_status & 0x2000) if reports_active and port_status is not None else None,
        max_payload_supported_bytes=None if device_capability is None else 128 << (device_capability & 7),
        max_payload_bytes=None if device_control is None else 128 << (device_control >> 5 & 7),
        max_read_request_bytes=None if device_control is None else 128 << (device_control >> 12 & 7),
        relaxed_ordering=None if device_control is None else bool(device_control & 0x10),
        extended_tags=None if device_control is None else bool(device_control & 0x100),
        extended_tags_supported=None if device_capability is None else bool(device_capability & 0x20),
        ten_bit_tags=None if device_control_2 is None else bool(device_control_2 & 0x1000),
        ten_bit_tags_supported=None if device_capability_2 is None else bool(device_capability_2 & ten_bit),
        max_link_speed_gt_s=None if link_capability is None else _SPEED_GT_S.get(link_capability & 0xF),
        max_link_width=None if link_capability is None else link_capability >> 4 & 0x3F,
        current_link_speed_gt_s=None if link_status is None else _SPEED_GT_S.get(link_status & 0xF),
        current_link_width=None if link_status is None else link_status >> 4 & 0x3F,
        aspm=None if link_control is None else _ASPM[link_control & 3],
        link_disabled=None if link_control is None else bool(link_control & 0x10),
        bandwidth_management_status=None if port_status is None else bool(port_status & 0x4000),
        autonomous_bandwidth_status=None if port_status is None else bool(port_status & 0x8000),
        target_link_speed_gt_s=None if link_control_2 is None else _SPEED_GT_S.get(link_control_2 & 0xF),
    )


def _subsystem_at(header_type: int | None, capabilities: Mapping[int, int]) -> int | None:
    if header_type == 0:
        return 0x2C
    if header_type == 1 and _CAP_SUBSYSTEM in capabilities:
        return capabilities[_CAP_SUBSYSTEM] + 4
    return 0x40 if header_type == 2 else None


def _power_state(data: Registers, at: int | None) -> str | None:
    control = None if at is None else _u16(data, at + 4)
    return None if control is None else ("D0", "D1", "D2", "D3hot")[control & 3]


def _acs_flags(data: Registers, at: int | None, register: int) -> frozenset[str] | None:
    value = None if at is None else _u16(data, at + register)
    return None if value is None else frozenset(name for bit, name in _ACS_BITS.items() if value & bit)


def _serial(data: Registers, at: int | None) -> str | None:
    if at is None or len(data) < at + 12:
        return None
    return data[at + 4 : at + 12][::-1].hex("-")


def _virtual_functions(data: Registers, at: int | None) -> VirtualFunctions | None:
    if at is None or len(data) < at + 0x18:
        return None
    control, total, number, offset, stride = (
        int.from_bytes(data[at + register : at + register + 2], "little") for register in (0x08, 0x0E, 0x10, 0x14, 0x16)
    )
    return VirtualFunctions(total=total, enabled=number if control & 1 else 0, offset=offset, stride=stride)


def _u8(data: Registers, at: int) -> int | None:
    return data[at] if at < len(data) else None


def _u16(data: Registers, at: int) -> int | None:
    return int.from_bytes(data[at : at + 2], "little") if at + 2 <= len(data) else None


def _u32(data: Registers, at: int) -> int | None:
    return int.from_bytes(data[at : at + 4], "little") if at + 4 <= len(data) else None


def _hex(value: int | None, digits: int) -> str | None:
    return None if value is None else f"0x{value:0{digits}x}"
