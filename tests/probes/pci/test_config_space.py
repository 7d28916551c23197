"""The config space decoder: every register it reads, and every way in which there is less than a register."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from probes.host.folder import LiveFiles
from probes.pci.config_space import ConfigSpace, decode
from tests.probes.pci.pci_machine import EXPRESS_AT, POWER_AT, conventional, express, put

ACS, ATS, AER, SERIAL, SRIOV = 0x000D, 0x000F, 0x0001, 0x0003, 0x0010

GPU = express(
    device=(0x0001, 0x5130),  # 256 bytes supported; 256 in use, 4096 to read, relaxed ordering, extended tags
    link=(0x0105, 0x0002, 0x1103),  # 32 GT/s x16; L1; 8 GT/s x16
    target=0x0003,  # capped at 8 GT/s
    extended={
        AER: bytes(0x20),
        SERIAL: bytes.fromhex("01 00 00 ff ff d2 3f b8"),
        ACS: bytes.fromhex("5f 00 1d 00"),
        ATS: bytes.fromhex("00 00 00 80"),
    },
)


BRIDGE = express(kind=4, bridge=(0x15, 0x16, 0x1A), link=(0x0105, 0, 0x3103))


@pytest.mark.parametrize("data", [GPU, BRIDGE, bytes(conventional()), GPU[:64], b"\xff" * 4096, GPU[:70], b"", b"\xde"])
def test_of_a_live_host_few_registers_are_read(data: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They state what the whole states: each is a question to the device, which may take a microsecond."""
    (tmp_path / "config").write_bytes(data)
    read: list[int] = []
    actual = os.pread
    monkeypatch.setattr(os, "pread", lambda *at: read.append(len(found := actual(*at))) or found)  # type: ignore[func-returns-value]
    registers = LiveFiles().open_registers(f"{tmp_path}/config")
    space = decode(registers)
    registers.close()

    assert decode(data) == space
    assert sum(read) <= min(len(data) + 8, 256)


def test_without_privilege_as_much_as_the_kernel_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file has its full size, and reads end after the header."""
    (tmp_path / "config").write_bytes(GPU)
    actual = os.pread
    monkeypatch.setattr(os, "pread", lambda descriptor, size, at: actual(descriptor, max(min(size, 64 - at), 0), at))
    registers = LiveFiles().open_registers(f"{tmp_path}/config")

    assert decode(GPU[:64]) == decode(registers)
    registers.close()


def test_every_register_of_a_gpu() -> None:
    """One function with every capability says what was put into it."""
    space = decode(GPU)

    assert (4096, False, 0) == (space.size, space.gone, space.header_type)
    assert ("0x10de", "0x2330", "0x030200", "0xa1") == (space.vendor, space.device, space.class_code, space.revision)
    assert ("0x10de", "0x16c1", "D0") == (space.subsystem_vendor, space.subsystem_device, space.power_state)
    assert (True, True, True, True) == (space.pcie_known, space.extended_known, space.aer, space.ats_enabled)
    assert "b8-3f-d2-ff-ff-00-00-01" == space.serial
    assert frozenset({"SV", "TB", "RR", "CR", "UF", "DT"}) == space.acs_capability
    assert frozenset({"SV", "RR", "CR", "UF"}) == space.acs_control
    link = space.pcie
    assert link is not None
    assert ("endpoint", 32.0, 16, 8.0, 16) == (
        link.port_type,
        link.max_link_speed_gt_s,
        link.max_link_width,
        link.current_link_speed_gt_s,
        link.current_link_width,
    )
    assert (8.0, "L1", False) == (link.target_link_speed_gt_s, link.aspm, link.link_disabled)
    assert (256, 256, 4096) == (
        link.max_payload_supported_bytes,
        link.max_payload_bytes,
        link.max_read_request_bytes,
    )
    assert (True, True) == (link.relaxed_ordering, link.extended_tags)
    assert (None, None) == (link.bandwidth_management_status, link.autonomous_bandwidth_status)


def test_a_downstream_port_has_bus_numbers_a_slot_and_retrain_bits() -> None:
    """Bits that belong to the upper end of a link are read there, and only there."""
    data = bytearray(express(kind=6, bridge=(0x17, 0x19, 0x1A), link=(0x0105, 0x0010, 0xC105)))
    put(data, EXPRESS_AT + 2, 2 | 6 << 4 | 0x100)
    put(data, EXPRESS_AT + 0x14, 28 << 19, 4)

    space = decode(bytes(data))

    assert (1, 0x19) == (space.header_type, space.secondary_bus)
    assert space.pcie is not None
    assert ("downstream", True, True, True) == (
        space.pcie.port_type,
        space.pcie.link_disabled,
        space.pcie.bandwidth_management_status,
        space.pcie.autonomous_bandwidth_status,
    )


@pytest.mark.parametrize(
    ("slot", "control", "status", "expected"),
    [
        (0x2, 0x0000, 0x40, (True, True)),
        (0x2, 0x0400, 0x40, (True, False)),  # its power controller is off
        (0x0, 0x0400, 0x00, (False, True)),  # no power controller: the bit means nothing
    ],
)
def test_a_slot_reports_its_card_and_its_power(slot: int, control: int, status: int, expected) -> None:
    """SltCap, SltCtl and SltSta of a port that has a slot; without one they are no registers."""
    data = bytearray(express(kind=6, link=(0x0105, 0, 0x1103)))
    put(data, EXPRESS_AT + 0x14, slot, 4)
    put(data, EXPRESS_AT + 0x18, control)
    put(data, EXPRESS_AT + 0x1A, status)
    none = decode(bytes(data)).pcie
    put(data, EXPRESS_AT + 2, 2 | 6 << 4 | 0x100)
    link = decode(bytes(data)).pcie

    assert none is not None
    assert link is not None
    assert (None, None) == (none.slot_occupied, none.slot_powered)
    assert expected == (link.slot_occupied, link.slot_powered)


@pytest.mark.parametrize(
    ("kind", "capability", "status", "expected"),
    [(6, 0x100105, 0x3103, True), (4, 0x100105, 0x1103, False), (6, 0x0105, 0x3103, None), (0, 0x100105, 0x3103, None)],
)
def test_a_port_that_can_reports_whether_its_link_is_up(kind: int, capability: int, status: int, expected) -> None:
    """LnkSta has a bit for it, which means something in ports whose LnkCap says so."""
    data = bytearray(express(kind=kind, link=(0, 0, 0)))
    put(data, EXPRESS_AT + 0x0C, capability, 4)
    put(data, EXPRESS_AT + 0x12, status)

    link = decode(bytes(data)).pcie

    assert link is not None
    assert expected is link.link_active


@pytest.mark.parametrize(
    ("kind", "capability", "control", "expected"),
    [
        (0, 0x20000, 0x1000, (True, True)),  # an endpoint: as requester
        (0, 0x10000, 0x0000, (False, False)),
        (4, 0x10000, 0x0000, (True, False)),  # ports: as completer
        (5, 0x20000, 0x0000, (False, False)),
        (6, 0x10000, 0x0000, (True, False)),
    ],
)
def test_ten_bit_tags_are_of_a_requester_or_of_a_completer(kind: int, capability: int, control: int, expected) -> None:
    """DevCap2 has a bit for either; what counts of a port is that it completes."""
    data = bytearray(express(kind=kind, link=(0x0105, 0, 0x1103)))
    put(data, EXPRESS_AT + 0x24, capability, 4)
    put(data, EXPRESS_AT + 0x28, control)

    link = decode(bytes(data)).pcie

    assert link is not None
    assert expected == (link.ten_bit_tags_supported, link.ten_bit_tags)


def test_a_capability_of_version_1_has_no_ten_bit_tags() -> None:
    """It ends before DevCap2: what lies there belongs to something else."""
    data = bytearray(GPU)
    put(data, EXPRESS_AT + 0x02, 1)
    put(data, EXPRESS_AT + 0x24, 0x30000, 4)

    link = decode(bytes(data)).pcie

    assert link is not None
    assert (None, None) == (link.ten_bit_tags_supported, link.ten_bit_tags)


@pytest.mark.parametrize(("capability", "supported"), [(0x0001, False), (0x0021, True)])
def test_whether_extended_tags_are_possible(capability: int, supported: bool) -> None:
    """DevCap bit 5."""
    link = decode(express(device=(capability, 0))).pcie

    assert link is not None
    assert supported is link.extended_tags_supported


def test_an_integrated_endpoint_has_no_link() -> None:
    """What lies in the link registers of a function inside the root complex is nothing."""
    space = decode(express(kind=9, link=(0x0105, 0x0002, 0x1105), device=(0, 0x2810)))

    assert space.pcie is not None
    assert ("rciep", None, None, None) == (
        space.pcie.port_type,
        space.pcie.current_link_width,
        space.pcie.max_link_width,
        space.pcie.aspm,
    )
    assert 512 == space.pcie.max_read_request_bytes


@pytest.mark.parametrize(
    ("length", "pcie_known", "extended_known"),
    [(0, False, False), (63, False, False), (64, False, False), (256, True, False), (4096, True, True)],
)
def test_a_short_read_is_unknown_and_never_off(length: int, pcie_known: bool, extended_known: bool) -> None:
    """64 bytes without privilege, 256 without extended space: nothing beyond is claimed to be absent."""
    space = decode(GPU[:length])

    assert (pcie_known, extended_known) == (space.pcie_known, space.extended_known)
    assert pcie_known == (space.pcie is not None)
    assert (None, None, None) == (space.acs_control, space.ats_enabled, space.aer) or extended_known


def test_truncation_at_every_length_only_takes_away() -> None:
    """Whatever a shorter read says, the whole read says too."""
    whole = decode(GPU)

    for length in range(len(GPU)):
        part = decode(GPU[:length])

        for field in ConfigSpace._fields:
            value = getattr(part, field)
            if field not in ("size", "pcie") and value not in (None, False):
                assert getattr(whole, field) == value, f"{field} of {length} bytes"


def test_a_conventional_function_has_neither_express_nor_acs() -> None:
    """Without a PCI Express capability there is nothing to know in extended space."""
    space = decode(bytes(conventional()))

    assert (True, None, True, None) == (space.pcie_known, space.pcie, space.extended_known, space.acs_control)


def test_all_ones_is_gone() -> None:
    """Nothing answers: no register is taken for a value."""
    assert decode(b"\xff" * 256) == ConfigSpace(size=256, gone=True)


def test_a_virtual_function_is_not_gone() -> None:
    """A VF reads its vendor and device as 0xffff; its other bytes are real."""
    data = bytearray(GPU)
    put(data, 0, 0xFFFFFFFF, 4)

    space = decode(bytes(data))

    assert (False, None, None) == (space.gone, space.vendor, space.device)
    assert space.pcie is not None


def test_capability_lists_that_do_not_end() -> None:
    """A loop, a pointer into the header, an all-ones id: what was found stays, the rest is unknown."""
    loop, header, ones = bytearray(GPU), bytearray(GPU), bytearray(GPU)
    loop[EXPRESS_AT + 1] = POWER_AT
    header[EXPRESS_AT + 1] = 0x10
    ones[POWER_AT] = 0xFF

    assert [(False, True), (False, True), (False, False)] == [
        (space.pcie_known, space.pcie is not None) for space in map(decode, map(bytes, (loop, header, ones)))
    ]


@pytest.mark.parametrize(
    "header",
    [0x1_0010 | 0x100 << 20, 0x1_0010 | 0x040 << 20, 0xFFFFFFFF, 0x1_0010 | 0xFFC << 20],
    ids=["loop", "below the extended space", "all-ones", "the last word, which is empty"],
)
def test_extended_lists_that_do_not_end(header: int) -> None:
    """A broken chain makes ACS unknown, not absent; a chain that ends in an empty header is whole."""
    data = bytearray(express())
    put(data, 0x100, header, 4)

    space = decode(bytes(data))

    assert (header >> 20 == 0xFFC and header != 0xFFFFFFFF) == space.extended_known
    assert space.acs_control is None


def test_extended_space_that_repeats_the_header_is_unknown() -> None:
    """Some bridges drop the upper address bits: byte 0x100 is byte 0 again."""
    data = bytearray(GPU)
    data[0x100:0x200] = data[:0x100]

    assert (False, None) == (decode(bytes(data)).extended_known, decode(bytes(data)).acs_control)


def test_virtual_functions_count_only_where_they_are_enabled() -> None:
    """NumVFs may hold a number while VF Enable is off."""
    body = bytes.fromhex("00000000 0100 0000 1000 1000 0400 0000 0200 0100")
    off = express(extended={SRIOV: body[:4] + b"\0\0" + body[6:]})

    on_space, off_space = decode(express(extended={SRIOV: body})), decode(off)

    assert on_space.virtual_functions is not None
    assert off_space.virtual_functions is not None
    assert (16, 4, 2, 1) == (
        on_space.virtual_functions.total,
        on_space.virtual_functions.enabled,
        on_space.virtual_functions.offset,
        on_space.virtual_functions.stride,
    )
    assert (16, 0) == (off_space.virtual_functions.total, off_space.virtual_functions.enabled)
