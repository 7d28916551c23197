"""ethtool's messages: this kernel's own answers, and written ones."""

from __future__ import annotations

import struct

import pytest

from probes import netlink as codec
from probes.ethtool import ioctl as ioctl
from probes.ethtool import netlink as genl
from probes.ethtool.netlink import fastest, set_bits
from probes.netlink import attribute, request
from probes.text import ParseError

# LINKMODES_GET of a virtio interface that knows no mode, and of a veth, by a 6.18 kernel
VIRTIO = (
    "800000001500000001000000a83300000401000018000180080001000400000009000200657468300000000005000200000000003400038008"
    "000200790000001400040000000000000000000000000000000000140005000000000000000000000000000000000008000500ffffffff0500"
    "0600ff00000005000a0000000000"
)
VETH = (
    "7c0000001500000001000000574c0000040100001400018008000100020000000700020076310000050002000000000034000380080002007900"
    "00001400040000000000000000000000000000000000140005000000000000000000000000000000000008000500102700000500060001000000"
    "05000a0000000000"
)


def message(command: int, *attributes: bytes) -> bytes:
    return request(21, 0, codec.GENERIC_HEAD.pack(command, 1, 0) + b"".join(attributes))


def bits(kind: int, *numbers: int) -> bytes:
    value = sum(1 << number for number in numbers)
    return attribute(kind, struct.pack("=4I", *(value >> 32 * word & 0xFFFFFFFF for word in range(4))))


@pytest.mark.parametrize("reply", [VIRTIO, VETH])
def test_a_kernels_answer_about_software_interfaces(reply: str) -> None:
    """No mode is known: no speed is made up. The veth's 10000 Mbit/s is a current speed, not what it supports."""
    assert genl.LinkModes(False, None, ()) == genl.parse_link_modes(bytes.fromhex(reply))


def test_what_a_port_supports_is_the_mask() -> None:
    """The value is what it offers: a port may be set to offer less."""
    ours = bits(genl.BITS_VALUE, 6, 38) + bits(genl.BITS_MASK, 6, 38, 66, 69, 49, 50)
    reply = message(genl.LINKMODES_REPLY, attribute(2, b"\1"), attribute(genl.MODES_OURS | genl.NESTED, ours))

    assert genl.LinkModes(True, 400_000, ("off", "rs")) == genl.parse_link_modes(reply)


def test_pause_of_each_direction() -> None:
    """Autoneg, receive, transmit; what is not said stays unknown."""
    reply = message(genl.PAUSE_REPLY, attribute(2, b"\0"), attribute(3, b"\1"))

    assert genl.PauseReading(True, None, False) == genl.parse_pause(reply)


@pytest.mark.parametrize(("bit", "word"), [(49, "off"), (50, "rs"), (51, "baser"), (74, "llrs"), (6, None)])
def test_fec_by_the_bit_of_its_link_mode(bit: int, word: str | None) -> None:
    """A mode that has no name yet is unknown."""
    counts = attribute(2, struct.pack("=3Q", 12, 5, 7)) + attribute(3, struct.pack("=Q", 2**64 - 1)) + attribute(9, b"")
    reply = message(
        genl.FEC_REPLY,
        attribute(genl.FEC_CONFIGURED | genl.NESTED, attribute(1, b"") + bits(genl.BITS_VALUE, 50, 51)),
        attribute(genl.FEC_AUTO, b"\1"),
        attribute(genl.FEC_ACTIVE, struct.pack("=I", bit)),
        attribute(genl.FEC_STATISTICS | genl.NESTED, counts),
    )

    assert genl.FecReading(word, ("rs", "baser"), True, {"fec_corrected_blocks": 12}) == genl.parse_fec(reply)


def test_a_link_that_is_down_has_no_active_fec() -> None:
    """The driver then leaves it out."""
    assert genl.FecReading(None, (), False, {}) == genl.parse_fec(
        message(genl.FEC_REPLY, attribute(genl.FEC_AUTO, b"\0"))
    )


def test_the_family_and_the_memory() -> None:
    """Another message, or none, is refused."""
    family = request(codec.CONTROL, 0, codec.GENERIC_HEAD.pack(codec.NEW_FAMILY, 2, 0) + attribute(1, b"\x15\0"))

    assert 21 == codec.parse_family(family)
    assert b"\x19\x52" == genl.parse_eeprom(message(genl.EEPROM_REPLY, attribute(genl.EEPROM_DATA, b"\x19\x52")))
    for parse in (codec.parse_family, genl.parse_eeprom, genl.parse_pause, genl.parse_fec, genl.parse_link_modes):
        with pytest.raises(ParseError):
            parse(b"")
        with pytest.raises(ParseError):
            parse(message(99))
    with pytest.raises(ParseError):
        genl.parse_eeprom(message(genl.EEPROM_REPLY))
    with pytest.raises(ParseError):
        codec.parse_family(request(codec.CONTROL, 0, codec.GENERIC_HEAD.pack(codec.NEW_FAMILY, 2, 0)))


def test_a_question_names_no_interface() -> None:
    """Its index stands there: a name may hold a MAC, and questions are recorded as they are."""
    request = genl.eeprom_request(21, 7, 0x11, 128, 64)

    assert struct.pack("=I", 7) in request
    assert {2: (128).to_bytes(4, "little"), 3: (64).to_bytes(4, "little"), 4: b"\x11", 5: b"\0", 6: b"\x50"} == {
        kind: value for kind, value in genl.attributes(request, 20).items() if kind > 1
    }


@pytest.mark.parametrize(
    ("mode", "mbit"),
    [
        (5, 1000),
        (12, 10_000),
        (33, 25_000),
        (52, 50_000),
        (79, 100_000),
        (103, 200_000),
        (114, 400_000),
        (120, 800_000),
    ],
)
def test_speeds_of_modes(mode: int, mbit: int) -> None:
    """From each row of the header's table."""
    assert mbit == fastest({mode, 6, 13})
    assert {mode} == set_bits((1 << mode).to_bytes(16, "little"))


def test_structs_of_ioctls() -> None:
    """FEC words and their bits; pause; what a driver says of itself."""
    assert genl.FecReading("rs", ("rs", "baser"), True) == ioctl.parse_fec(ioctl.FEC.pack(0x50, 8, 0x1A, 0))
    assert genl.FecReading(None, ("off",), False) == ioctl.parse_fec(ioctl.FEC.pack(0x50, 0, 4, 0))
    assert genl.PauseReading(True, False, True) == ioctl.parse_pause(ioctl.PAUSE.pack(0x12, 1, 1, 0))
    driver = ioctl.DRIVER.pack(3, b"mlx5_core", b"", b"28.43.1000 (MT_1)", b"0000:1a:00.0", b"", b"", 0, 0, 0, 0, 0)
    assert ioctl.DriverInfo("mlx5_core", None, "28.43.1000 (MT_1)") == ioctl.parse_driver(driver)


def test_counters_need_as_many_names_as_values() -> None:
    """The driver may be set up anew between two questions."""
    names = ioctl.STRINGS.pack(0x1B, 1, 2) + b"a".ljust(32, b"\0") + b"b".ljust(32, b"\0")
    values = ioctl.COUNTS.pack(0x1D, 2) + struct.pack("=2Q", 3, 4)

    assert {"a": 3, "b": 4} == ioctl.parse_counters(names, values)
    for other in (values[:-1], ioctl.COUNTS.pack(0x1D, 1) + values[8:], b""):
        with pytest.raises(ParseError):
            ioctl.parse_counters(names, other)
    with pytest.raises(ParseError):
        ioctl.parse_counters(names[:-1], values)


def test_how_many_counters() -> None:
    """None where the set is not there; too many are no answer."""
    assert 7 == ioctl.parse_count(ioctl.SET_INFO.pack(0x37, 0, 2, 7))
    assert 0 == ioctl.parse_count(ioctl.SET_INFO.pack(0x37, 0, 0, 7))
    with pytest.raises(ParseError):
        ioctl.parse_count(ioctl.SET_INFO.pack(0x37, 0, 2, ioctl.MOST_COUNTERS + 1))
