"""Identities in ethtool's answers: serial numbers of modules, names made of a MAC; the unknown is left out."""

from __future__ import annotations

import struct

import pytest

from fixtures.description import ModuleSpec
from fixtures.ethtool import build_pages
from probes import netlink as codec
from probes.ethtool import ioctl as ioctl
from probes.ethtool import netlink as genl
from probes.host.interface import Completed, Refusal
from probes.host.recording import Recording
from probes.netlink import attribute, attributes, request
from probes.optics import cmis as optics_cmis
from probes.optics import eeprom as optics_reads
from probes.optics import sff
from probes.redact.binary import module_serial, rewrite_generic_netlink
from probes.redact.redact import redact_recording
from probes.redact.text import Pseudonyms, TextRedactor

SERIAL, NAMED = "MT2233X00AAA", "enxb83fd2123456"


def header(name: str) -> bytes:
    inner = attribute(1, struct.pack("=I", 7)) + attribute(2, name.encode() + b"\0") + attribute(9, b"secret")
    return attribute(genl.HEADER | genl.NESTED, inner)


def message(command: int, *attributes: bytes, kind: int = 21) -> bytes:
    return request(kind, 0, codec.GENERIC_HEAD.pack(command, 1, 0) + b"".join(attributes))


def memory(part: tuple[int, int, int, int], data: bytes) -> tuple[bytes, bytes]:
    """Question and answer."""
    answer = message(genl.EEPROM_REPLY, header(NAMED), attribute(genl.EEPROM_DATA, data), attribute(8, b"secret"))
    return genl.eeprom_request(21, 7, *part), answer


def texts() -> TextRedactor:
    made = TextRedactor(Pseudonyms(b"key"))
    made.learn_hardware(bytes.fromhex(NAMED[3:]))
    return made


def written(question: bytes, answer: bytes) -> bytes:
    new = rewrite_generic_netlink(texts(), question, answer)
    assert new is not None
    assert b"secret" not in new
    assert NAMED.encode() not in new
    return new


@pytest.mark.parametrize("form", ["osfp", "qsfp-dd", "qsfp28"])
def test_the_serial_number_of_a_module(form: str) -> None:
    """As long, and nothing else is different."""
    made = build_pages(ModuleSpec(form=form, vendor="ACME", part="SR4"), SERIAL)
    parse = sff.parse_sff8636 if form == "qsfp28" else optics_cmis.parse
    question, answer = memory(optics_reads.UPPER, made[0])
    new = genl.parse_eeprom(written(question, answer))
    before, after = (parse(made[-1], upper, {}) for upper in (made[0], new))

    assert SERIAL == module_serial(question, answer) == before.serial
    assert after.serial not in (None, SERIAL)
    assert len(SERIAL) == len(after.serial or "")
    assert before == after._replace(serial=SERIAL)


def test_the_serial_number_of_an_sfp() -> None:
    """It stands in the first bytes."""
    data = bytearray(96)
    data[0], data[68:84] = 0x03, SERIAL.encode().ljust(16)
    question, answer = memory(optics_reads.SFF8472_SERIAL, bytes(data))
    new = genl.parse_eeprom(written(question, answer))

    assert SERIAL == module_serial(question, answer)
    assert SERIAL.encode() not in new
    assert bytes(data[:68]) == new[:68]


@pytest.mark.parametrize(
    "part", [optics_reads.FIRST, optics_reads.LOWER, optics_reads.CMIS_LANES, optics_reads.SFF8472_DIAGNOSTICS]
)
def test_numbers_stay(part: tuple[int, int, int, int]) -> None:
    """Pages that name nobody."""
    data = bytes([0x19]) + bytes(range(part[2] - 1))
    question, answer = memory(part, data)
    assert data == genl.parse_eeprom(written(question, answer))
    assert module_serial(question, answer) is None


def test_a_module_without_a_serial_number() -> None:
    """Blanks stay blanks."""
    question, answer = memory(optics_reads.UPPER, bytes([0x19]) + b" " * 127)
    assert bytes([0x19]) + b" " * 127 == genl.parse_eeprom(written(question, answer))


@pytest.mark.parametrize(
    "answer",
    [
        message(99, header(NAMED)),
        message(2, header(NAMED)),
        message(7, header(NAMED), kind=codec.CONTROL),
        request(21, 0, b""),
        message(genl.PAUSE_REPLY, b"\xff\xff\1\0"),
        memory(optics_reads.UPPER, b"\x7f" * 128)[1],
        memory(optics_reads.UPPER, b"")[1],
    ],
)
def test_what_is_not_understood_is_left_out(answer: bytes) -> None:
    """Another command, damage, the names' page of a module of another kind."""
    question = genl.eeprom_request(21, 7, *optics_reads.UPPER)
    new = rewrite_generic_netlink(texts(), question, answer)
    assert new is None or genl.EEPROM_DATA not in attributes(new, 20)


def test_settings_stay_and_the_family_too() -> None:
    """Words and numbers; of the family its number."""
    pause = message(genl.PAUSE_REPLY, header(NAMED), attribute(2, b"\0"), attribute(3, b"\1"))
    family = message(
        codec.NEW_FAMILY, attribute(2, b"ethtool\0"), attribute(1, b"\x15\0"), attribute(7, b"secret"), kind=16
    )

    assert genl.PauseReading(True, None, False) == genl.parse_pause(written(b"", pause))
    assert 21 == codec.parse_family(written(b"", family))


def test_a_whole_recording() -> None:
    """The same serial has one pseudonym in memory and in text; names of interfaces; reasons of refusals."""
    made = build_pages(ModuleSpec(), SERIAL)
    question, answer = memory(optics_reads.UPPER, made[0])
    driver = ioctl.DRIVER.pack(
        3, b"mlx5_core", b"6.8", b"28.43 (MT_1)", b"0000:1a:00.0", NAMED.encode(), b"", 0, 0, 0, 9, 0
    )
    recording = Recording(
        files={f"/sys/class/net/{NAMED}/address": b"b8:3f:d2:12:34:56\n"},
        netlink={(16, question): answer, (16, b"odd"): Refusal("failed", f"{NAMED}: x", "EIO")},
        ethtool={
            (NAMED, ioctl.driver_request()): driver,
            (NAMED, ioctl.pause_request()): Refusal("failed", f"ethtool of {NAMED}: x", "EOPNOTSUPP"),
        },
        commands={
            ("ethtool", "-m", NAMED): Completed(
                (), 0, f"\tVendor SN                                 : {SERIAL}\n", "", 0.0
            )
        },
    )
    new, names = redact_recording(recording)
    ((argv, printed),) = new.commands.items()
    name = argv[-1]
    upper = genl.parse_eeprom(next(each for each in new.netlink.values() if isinstance(each, bytes)))
    told = new.ethtool[(name, ioctl.driver_request())]
    assert isinstance(printed, Completed)
    assert isinstance(told, bytes)

    assert names.names.serial(SERIAL) == optics_cmis.parse(made[-1], upper, {}).serial == printed.stdout.split()[-1]
    assert name not in (NAMED, "")
    assert ioctl.DriverInfo("mlx5_core", "6.8", "28.43 (MT_1)") == ioctl.parse_driver(told)
    assert len(driver) == len(told)
    assert driver[132:164] != told[132:164]
    assert NAMED not in repr(new)
    assert SERIAL not in repr(new)


def test_a_serial_number_in_text_alone() -> None:
    """As a dump holds it."""
    printed = Completed(
        (), 0, f"\tVendor SN                                 : {SERIAL}\n\tDate code : 221011\n", "", 0.0
    )
    new, _ = redact_recording(Recording(commands={("ethtool", "-m", "eth0"): printed}))

    assert SERIAL not in repr(new)
    assert "Date code : 221011" in repr(new)
