"""Counts of errors that no memory corrects, and of those of a PCIe link, as any tool of an accelerator prints them: a
label and a number below the device, or keys of JSON beside the number of the device.

Only what is counted since the device started: aggregates, pages and rows state what was repaired long ago. Sources:
hicann/driver npucli (`npu-smi info -t ecc`, `-t pcie-err`); AWS Neuron tools, neuron-monitor user guide
(`neuron_hw_counters`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from probes.cut_json import list_whole_objects
from probes.text import lazy_pattern, require, short_lines
from probes.tool_reports.facts import ToolReport, state_fault

_DEVICE = lazy_pattern(
    r"[ \t#=>|]{0,8}(?P<kind>NPU|GPU|HPU|AIP|DCU|XPU|MLU|Neuron ?Device)(?: ?(?:ID|Id|id|Index|index|number))?"
    r"[ \t]{0,40}[:= #\[][ \t]{0,4}(?P<number>\d{1,3})\]?:?[ \t]*"
)
_FIELD = lazy_pattern(
    r"[ \t]{0,16}(?P<name>[A-Za-z][\w .()/-]{3,60}?)[ \t]{0,60}[:=][ \t]{0,4}(?P<count>\d{1,12})[ \t]*"
)
_UNCORRECTED = lazy_pattern(
    r"(?:\b(?:double|multi)[ -]?bit\b.{0,20}\b(?:err(?:or)?s?|ecc)\b"
    r"|\b(?:hbm|ecc|mem(?:ory)?|[sd]ram)\b.{0,30}\buncorrect\w*"
    r"|\buncorrect\w*.{0,20}\b(?:ecc|mem(?:ory)?|[sd]ram|hbm)\b)"
)
_PAST = lazy_pattern(
    r"\b(?:aggregate|lifetime|history|isolated|retired|remapped|pages?|rows?|repair\w*|threshold|limit)\b"
)
_OF_LINK = lazy_pattern(r"\b(?:(?:l?crc|ecrc|[rt]x|recovery) err(?:or)?s?(?: count)?|replay (?:count|num\w*))\b")
_IS_PCIE = lazy_pattern(r"(?i)pcie|lcrc|ecrc")  # of other links the same labels are counted elsewhere
_MANY = 10  # fewer come with a link that trains
_KEYS = ("device_index", "device_id", "npu_id", "gpu_id", "npu", "gpu", "neuron_device", "index")
_OBJECT = lazy_pattern(r"\"[a-z_]{0,40}(?:uncorrect|double_bit)[a-z_]{0,40}\" ?: ?\d")


def has_counts(text: str) -> bool:
    """Whether a text has such a count below a device, or in JSON that numbers its devices."""
    return next(_list_counts(text), None) is not None


def list_counts(text: str) -> list[ToolReport]:
    """Devices with counts above zero. Raises ParseError where the text has no such count.

    >>> text = "NPU ID : 3\\n  HBM Double Bit Error Count : 2\\n  HBM Double Bit Isolated Pages Count : 9\\n"
    >>> [(report.subject, report.detail) for report in list_counts(text)]
    [('NPU 3', (('what', 'HBM Double Bit Error Count 2'),))]
    >>> text = "NPU ID : 2\\n  RX Error Count : 3\\n  LCRC Error Count : 90\\n"
    >>> [(report.code, report.detail) for report in list_counts(text)]
    [('count-link', (('what', 'LCRC Error Count 90'),))]
    >>> [report.subject for report in list_counts('{"neuron_device_index": 6, "sram_ecc_uncorrected": 1}')]
    ['Neuron 6']
    """
    counts = require(list(_list_counts(text)), "no count of uncorrected errors of a device")
    found: dict[tuple[str, str], list[str]] = {}
    for device, name, count in counts:
        code = "count-memory" if _is_uncorrected(name) else "count-link"
        if count and (code == "count-memory" or count >= _MANY):
            found.setdefault((code, device), []).append(f"{name} {count}")
    return [
        state_fault(code, device, ", ".join(rows), f"{device}: {', '.join(rows)}")
        for (code, device), rows in found.items()
    ]


def _list_counts(text: str) -> Iterator[tuple[str, str, int]]:
    """Each device, with the name and the number of its counts."""
    if _OBJECT.search(text):
        for row in list_whole_objects(text, lambda row: any(map(_is_uncorrected, row)) and _name(row) is not None):
            counts = {name: count for name, count in row.items() if isinstance(count, int) and _is_uncorrected(name)}
            yield from ((_name(row) or "", name, count) for name, count in counts.items())
        return
    device, is_wanted = "", _is_counted if _IS_PCIE.search(text) else _is_uncorrected
    for line in short_lines(text):
        if named := _DEVICE.fullmatch(line):
            device = f"{named['kind'].partition(' ')[0]} {int(named['number'])}"
        elif device and (field := _FIELD.fullmatch(line)) and is_wanted(field["name"]):
            yield device, field["name"], int(field["count"])


def _is_uncorrected(name: str) -> bool:
    words = name.lower().replace("_", " ")
    return _UNCORRECTED.search(words) is not None and _PAST.search(words) is None


def _is_counted(name: str) -> bool:
    return _is_uncorrected(name) or _OF_LINK.fullmatch(name.lower()) is not None


def _name(row: dict[str, Any]) -> str | None:
    """The device that an object is about: by the last part of a key that numbers it."""
    for key, number in row.items():
        if isinstance(number, int) and not isinstance(number, bool) and key.lower().endswith(_KEYS):
            kind = key.lower().partition("_")[0]
            return f"{kind.upper() if kind in ('npu', 'gpu') else kind.capitalize()} {number}"
    return None
