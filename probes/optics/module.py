"""The memory of one module, read by the layout that it states of itself."""

from __future__ import annotations

from probes import netlink as codec
from probes.ethtool import netlink as genl
from probes.host.interface import Host, ReadError
from probes.optics import cmis as optics_cmis
from probes.optics import eeprom as optics_reads
from probes.optics import sff
from probes.optics.eeprom import CMIS, SFF8472, SFF8636, Read
from probes.optics.facts import ModuleReading
from probes.text import ParseError, require

CABLES = ("copper", "active_copper")  # they measure nothing


class Memory:
    """The memory of one module."""

    def __init__(self, host: Host, family: int, index: int) -> None:
        self.host = host
        self.family = family
        self.index = index

    def bytes_of(self, part: Read) -> bytes:
        """One part, whole. Raises ReadError, and ParseError where it is of another length."""
        request = genl.eeprom_request(self.family, self.index, *part)
        data = genl.parse_eeprom(self.host.netlink(codec.GENERIC, request))
        require(len(data) == part[2], f"ethtool: {len(data)} bytes of a module where {part[2]} were asked for")
        return data

    def page(self, part: Read) -> bytes:
        """A page that not every module has: empty where it does not answer."""
        try:
            return self.bytes_of(part)
        except (ReadError, ParseError):
            return b""


def read_module(memory: Memory) -> ModuleReading:
    """What the module shows, by the layout of its memory. Raises ReadError and ParseError."""
    code = memory.bytes_of(optics_reads.FIRST)[0]
    if code in SFF8472:
        serial = memory.bytes_of(optics_reads.SFF8472_SERIAL)
        more = memory.page(optics_reads.SFF8472_DIAGNOSTICS) if sff.has_monitors(serial) else b""
        return sff.parse_sff8472(serial, more)
    require(code in CMIS or code in SFF8636, f"a module of kind 0x{code:02x}, whose memory is laid out in another way")
    lower, upper = memory.bytes_of(optics_reads.LOWER), memory.bytes_of(optics_reads.UPPER)
    if code in SFF8636:
        reading = sff.parse_sff8636(lower, upper, {})
        if reading.media in CABLES or not sff.is_paged(lower):
            return reading
        return sff.parse_sff8636(lower, upper, {3: memory.page(optics_reads.SFF8636_THRESHOLDS)})
    reading = optics_cmis.parse(lower, upper, {})
    if reading.media in CABLES or not optics_cmis.is_paged(lower):
        return reading
    memory.page(optics_reads.CMIS_FLAGS)  # those of the past; what is flagged now is flagged again
    wanted = {
        1: optics_reads.CMIS_ADVERTISED,
        2: optics_reads.CMIS_THRESHOLDS,
        0x11: optics_reads.CMIS_LANES,
    }
    return optics_cmis.parse(lower, upper, {page: memory.page(part) for page, part in wanted.items()})
