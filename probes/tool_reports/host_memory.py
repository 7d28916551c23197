"""Memory modules of the host, as `dmidecode -t memory` lists them: modules that run below their rate, and a few less
on one CPU than on the others.

Sources: DMTF SMBIOS 3.7, section 7.18 (type 17); dmidecode 2.12 to 3.6 (names of the lines).
"""

from __future__ import annotations

from collections import Counter

from probes.named_tuple import NamedTuple
from probes.text import ParseError, lazy_pattern
from probes.tool_reports.facts import ToolReport, state_fault
from probes.tool_reports.lines import short_lines

_LIMIT_LINE = 200
_TITLE = "Memory Device"
_FIELD = lazy_pattern(r"[ \t]+(?P<name>[A-Z][\w ]{2,40}): {0,4}(?P<value>\S.{0,100}?)[ \t]*")
_SPEED = lazy_pattern(r"(\d{2,6}) (?:MHz|MT/s)")
_SIZE = lazy_pattern(r"\d{1,9} (?:[kMGT]i?B)")
_CPU = lazy_pattern(r"(?i:(?:cpu|proc|node|socket|p)[ _]{0,2})(?P<cpu>\d)(?!\d)")
_CONFIGURED = ("Configured Memory Speed", "Configured Clock Speed")
_FEWEST, _PART = 4, 4  # modules of the fullest CPU, and which part of them may be missing: with less, it was so fitted


class _Module(NamedTuple):
    """A slot, with what is in it."""

    name: str
    cpu: str | None
    size: str | None  # None: empty
    rated: int | None  # MT/s
    configured: int | None


def list_memory_faults(text: str) -> list[ToolReport]:
    """What the modules state. Raises ParseError where the text lists none.

    >>> rows = "Memory Device\\n\\tSize: 64 GB\\n\\tLocator: CPU{}_DIMM_A1\\n\\tSpeed: 4800 MT/s\\n"
    >>> rows += "\\tConfigured Memory Speed: 4400 MT/s\\n"
    >>> [(report.code, report.detail) for report in list_memory_faults(rows.format(0) + rows.format(1))]
    [('dimm-slow', (('what', '2 of 2 modules, 4400 of 4800 MT/s'),))]
    """
    modules = [module for fields in _list_devices(text) if (module := _build_module(fields)) is not None]
    if not modules:
        raise ParseError("no memory module is listed")
    fitted = [module for module in modules if module.size is not None]
    reports = [*_list_uneven(modules)]
    slow = [module for module in fitted if module.rated and module.configured and module.configured < module.rated]
    if slow:
        rates = Counter((module.configured, module.rated) for module in slow).most_common(1)[0][0]
        what = f"{len(slow)} of {len(fitted)} modules, {rates[0]} of {rates[1]} MT/s"
        reports.append(state_fault("dimm-slow", None, what, f"{slow[0].name}: {what}"))
    return reports


def _list_devices(text: str) -> list[dict[str, str]]:
    devices: list[dict[str, str]] = []
    inside = False
    for line in short_lines(text, _LIMIT_LINE):
        if line.strip() == _TITLE:
            devices.append({})
            inside = True
        elif field := _FIELD.fullmatch(line):
            if inside:
                devices[-1].setdefault(field["name"], field["value"])
        elif line.strip():
            inside = False  # the title or the handle of another structure
    return devices


def _build_module(fields: dict[str, str]) -> _Module | None:
    if "Locator" not in fields or "Size" not in fields:
        return None
    cpu = _CPU.search(fields["Locator"]) or _CPU.search(fields.get("Bank Locator", ""))
    rates = [_SPEED.match(fields.get(name, "")) for name in ("Speed", *_CONFIGURED)]
    rated, configured = rates[0], rates[1] or rates[2]
    return _Module(
        fields["Locator"],
        cpu["cpu"] if cpu else None,
        fields["Size"] if _SIZE.fullmatch(fields["Size"]) else None,
        int(rated[1]) if rated else None,
        int(configured[1]) if configured else None,
    )


def _list_uneven(modules: list[_Module]) -> list[ToolReport]:
    """One CPU with a few modules less than another that has as many slots."""
    slots = Counter(module.cpu for module in modules if module.cpu is not None)
    fitted = Counter(module.cpu for module in modules if module.cpu is not None and module.size is not None)
    most, least = (max(counts), min(counts)) if (counts := [fitted[cpu] for cpu in slots]) else (0, 0)
    if len(set(slots.values())) > 1 or most < _FEWEST or not 0 < most - least <= most // _PART:
        return []
    what = ", ".join(f"CPU {cpu}: {fitted[cpu]} of {count}" for cpu, count in sorted(slots.items()))
    return [state_fault("dimm-uneven", None, what)]
