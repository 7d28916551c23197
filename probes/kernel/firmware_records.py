"""Records of hardware errors that the firmware hands to the kernel: a PCIe or CXL device, the host's memory or a CPU.

Linux drivers/firmware/efi/cper.c (cper_estatus_print), drivers/acpi/apei.
"""

import re
from collections.abc import Iterator

from probes.kernel.log_facts import LogEvent
from probes.kernel.log_lines import Line
from probes.kernel.sentence import BDF, DRIVER, address
from probes.named_tuple import NamedTuple
from probes.text import lazy_pattern

_RECORD = lazy_pattern(r"(?P<record>(?:\{\d{1,10}\})?)\[Hardware Error\]: +(?!CPU:)(?P<text>\S.{0,100})")
_SECTIONS = {"CXL Protocol Error": "cxl", "PCIe error": "pcie"}
_PARTS_OF_HOST = {  # by section: what is not corrected, and what is
    "memory error": ("memory-uncorrected", "memory-corrected"),
    **dict.fromkeys(
        ("general processor error", "IA32/X64 processor error", "ARM processor error"),
        ("machine-check", "cpu-corrected"),
    ),
}
_DIMM = lazy_pattern(r"DIMM location: (?!not present)(?P<what>\S.{0,60}?)\s*$")
_AGENTS = {"cxl": lazy_pattern(rf"agent_address: {BDF}"), "pcie": lazy_pattern(rf"device_id: {BDF}")}
_STATUS = lazy_pattern(
    r"aer_(?P<kind>cor|uncor)_status: 0x(?P<status>[0-9a-f]{1,8}), aer_(?:un)?cor_mask: 0x(?P<mask>[0-9a-f]{1,8})"
)
_CORRECTED = {0: "RxErr", 6: "BadTLP", 7: "BadDLLP", 8: "Rollover", 12: "Timeout", 13: "NonFatalErr"}
_UNCORRECTED = {  # bits, as Linux drivers/pci/pcie/aer.c names them
    4: "DLP", 5: "SDES", 12: "TLP", 13: "FCP", 14: "CmpltTO", 15: "CmpltAbrt", 16: "UnxCmplt", 17: "RxOF",
    18: "MalfTLP", 19: "ECRC", 20: "UnsupReq", 21: "ACSViol", 22: "UncorrIntErr", 24: "AtomicOpBlocked",
}  # fmt: skip
_PCIE_SEVERITIES = {  # of a record, as AER has them
    "corrected": ("corrected", "Corrected"),
    "info": ("corrected", "Corrected"),
    "fatal": ("fatal", "Uncorrected (Fatal)"),
}


class _FirmwareRecord(NamedTuple):
    """What the lines of a firmware's record reported so far (cper_estatus_print_section)."""

    record: str  # "{1}"
    severity: str  # recoverable | fatal | corrected | info
    about: str = ""  # cxl | pcie
    event: LogEvent | None = None  # of the device that it names; its status follows
    part: str = ""  # "DIMM A1": the name that the firmware gives it


class FirmwareRecords:
    """The record that is being read; the next one, or the end of the log, completes it."""

    def __init__(self) -> None:
        self._record = _FirmwareRecord("", "")

    def read(self, line: Line) -> list[LogEvent] | None:
        """The events that a line of a record completes; None for another line."""
        match = _RECORD.match(line.text)
        if match is None:
            return None
        before, self._record = self._record, _read_record(self._record, match["record"], match["text"], line)
        return [before.event] if before.event and self._record.event is None else []

    def close(self) -> Iterator[LogEvent]:
        """The event of the last record."""
        if self._record.event:
            yield self._record.event


def _read_record(before: _FirmwareRecord, number: str, text: str, line: Line) -> _FirmwareRecord:
    """The record with one more line."""
    record = before if before.record == number else _FirmwareRecord(number, "")
    if kind := re.match(r"Error \d{1,5}, type: (\w{1,20})", text):
        return _FirmwareRecord(number, kind[1])
    if text.startswith("fru_text: "):
        return record._replace(part=text.removeprefix("fru_text: ").strip())
    if text.startswith("section_type: "):
        section = text.removeprefix("section_type: ").strip()
        event = _of_host(record, section, line) if section in _PARTS_OF_HOST else None
        return _FirmwareRecord(number, record.severity, _SECTIONS.get(section, ""), event)
    if record.event and record.event.kind == DRIVER:
        place = _DIMM.match(text)
        return record._replace(event=record.event._replace(detail=_detail(place.groupdict()))) if place else record
    if record.event:
        status = _STATUS.match(text)
        return record._replace(event=_with_status(record.event, status)) if status else record
    agent = _AGENTS[record.about].match(text) if record.about else None
    return record._replace(event=_of_firmware(record, agent, line)) if agent else record


def _of_host(record: _FirmwareRecord, section: str, line: Line) -> LogEvent:
    failed, corrected = _PARTS_OF_HOST[section]
    code = corrected if record.severity in ("corrected", "info") else failed
    text = f"[Hardware Error]: {section}, {record.severity or 'severity not stated'}"
    detail = _detail({"what": record.part} if record.part else {})
    return LogEvent(DRIVER, text, line.at, None, code, logged=line.logged, detail=detail)


def _with_status(event: LogEvent, status: re.Match[str]) -> LogEvent:
    """The event with the names of the bits of its AER status that no mask hides."""
    is_corrected = event.detail == _detail({"severity": "corrected"})
    bits = int(status["status"], 16) & ~int(status["mask"], 16)
    names = [name for bit, name in (_CORRECTED if is_corrected else _UNCORRECTED).items() if bits >> bit & 1]
    if event.kind != "aer" or not names or is_corrected != (status["kind"] == "cor"):
        return event
    return event._replace(code=names[0], text=f"{event.text}, {', '.join(names)}")


def _of_firmware(record: _FirmwareRecord, agent: re.Match[str], line: Line) -> LogEvent:
    place = address(agent["bdf"])
    if record.about == "cxl":
        said = f"CXL Protocol Error, {record.severity or 'severity not stated'}, {agent[0]}"
        return LogEvent("cxl_protocol", said, line.at, place, record.severity or None, logged=line.logged)
    severity, words = _PCIE_SEVERITIES.get(record.severity, ("nonfatal", "Uncorrected (Non-Fatal)"))
    said = f"[Hardware Error]: PCIe error, {words}, {agent[0]}"
    return LogEvent("aer", said, line.at, place, None, logged=line.logged, detail=_detail({"severity": severity}))


def _detail(groups: dict[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(groups.items()))
