"""Readers of ethtool's answers and of modules' memory, and what damage to them starts from."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from typing import Any

from fixtures.build import build_capture
from fixtures.description import ModuleSpec
from fixtures.ethtool import build_pages
from probes import netlink as codec
from probes.ethtool import ioctl as ethtool_ioctl
from probes.ethtool import netlink as genl
from probes.optics import eeprom as optics_reads
from probes.redact.text import Pseudonyms, TextRedactor

SHAPE = "8xl40s-pcie-2s-2xcx7-roce"
QUESTION = genl.eeprom_request(21, 7, *optics_reads.UPPER)
SETTINGS = "\tSupported link modes:   100000baseSR4/Full\n\t\t200000baseCR4/Full\n\tSupported FEC modes: None RS\n"
PAUSE = "Pause parameters for ens6f0:\nAutonegotiate:\ton\nRX:\t\ton\nTX:\t\toff\n"
FEC = "Supported/Configured FEC encodings: Auto RS BaseR\nActive FEC encoding: RS\nStatistics:\n  corrected_blocks: 1\n"
STATISTICS = "NIC statistics:\n     rx_packets: 5\n     rx_discards_phy: 3\n"
DRIVER = "driver: mlx5_core\nversion: 5.0-0\nfirmware-version: 14.23.1020 (MT_2420110034)\n"
MODULE = (
    "\tIdentifier                                : 0x11 (QSFP28)\n\tVendor SN                                 : A1\n"
    "\tRx loss of signal                         : [ No, Yes ]\n\tModule temperature       : 47.11 degrees C\n"
    "\tRcvr signal avg optical power(Channel 2)  : 0.0000 mW / -inf dBm\n"
    "\tLaser rx power low alarm threshold        : 0.0467 mW / -13.31 dBm\n"
)


def replies(command: int) -> Callable[[], Sequence[bytes]]:
    """Answers to one command, as a fixture machine gives them."""

    def found() -> Sequence[bytes]:
        rows = [row for row in build_capture(SHAPE).netlink if row["protocol"] == codec.GENERIC and "reply" in row]
        data = [base64.b64decode(row["reply"]) for row in rows]
        return [message for message in data if message[16] == command][:4]

    return found


def structs(command: int) -> Callable[[], Sequence[bytes]]:
    """The same of ioctls."""
    return lambda: [
        reply for row in build_capture(SHAPE).ethtool if (reply := base64.b64decode(row["reply"]))[0] == command
    ][:2]


def counters() -> Sequence[bytes]:
    """Names and values of two counters, one after the other."""
    names = ethtool_ioctl.STRINGS.pack(0x1B, 1, 2) + b"rx".ljust(32, b"\0") + b"tx".ljust(32, b"\0")
    return [names + ethtool_ioctl.COUNTS.pack(0x1D, 2) + bytes(range(16))]


def memory(form: str) -> Callable[[], Sequence[bytes]]:
    """All pages of a module, one after the other."""
    return lambda: [b"".join(build_pages(ModuleSpec(form=form), "S1").values())]


def small() -> Sequence[bytes]:
    """Fields of a few bytes."""
    return [b"Mellanox        ", bytes.fromhex("8dcc7404875a7a76"), b"\x30\x54"]


def cmis(read: Callable[..., Any]) -> Callable[[bytes], Any]:
    """Five pages of 128 bytes."""
    return lambda data: read(*_two(data), {page: _page(data, index) for index, page in enumerate((1, 2, 0x11), 2)})


def sff8636(read: Callable[..., Any]) -> Callable[[bytes], Any]:
    """Three pages."""
    return lambda data: read(*_two(data), {3: _page(data, 2)})


def sff8472(read: Callable[..., Any]) -> Callable[[bytes], Any]:
    """Both addresses."""
    return lambda data: read(data[:96].ljust(96, b"\0"), data[96:])


def one_page(read: Callable[..., Any]) -> Callable[[bytes], Any]:
    """A page is whole, or it is not used."""
    return lambda data: read(_page(data, 0))


def redacting(read: Callable[..., Any]) -> Callable[[bytes], Any]:
    """With a question about the page that holds a serial number."""
    return lambda data: read(TextRedactor(Pseudonyms(b"key")), QUESTION, data)


def _two(data: bytes) -> tuple[bytes, bytes]:
    return _page(data, 0), _page(data, 1)


def _page(data: bytes, index: int) -> bytes:
    return data[128 * index : 128 * index + 128].ljust(128, b"\0")
