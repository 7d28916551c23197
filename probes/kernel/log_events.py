"""What a kernel log says of GPUs, NICs and links: each line of interest as an event with its device and its code.

Message forms: NVIDIA's driver (Xid, SXid), Linux drivers/pci/pcie/{aer,dpc}.c, drivers/pci/hotplug, pci.c
(__pcie_print_link_status), mlx5 (events.c, health.c, cmd.c), bnxt, ice, kernel/module (symbol versions).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from probes.kernel.log_facts import Event
from probes.kernel.log_lines import Line

TEXT_CHARACTERS = 300
EVENTS_LIMIT = 500  # distinct ones; a log of one fault repeated is one row

_BDF = r"(?P<bdf>[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?)"


class _Form(NamedTuple):
    """One message: where a line matches, it is an event of that kind. Named groups: bdf, name, code; others: detail."""

    kind: str
    pattern: re.Pattern[str]
    code: str | None = None


def _form(kind: str, pattern: str, code: str | None = None) -> _Form:
    return _Form(kind, re.compile(pattern), code)


_PORT = rf"pcieport {_BDF}: (?:AER: )?"
_MLX5 = rf"mlx5_core {_BDF}:"
_OTHER_NICS = rf"(?:bnxt_en|ice|i40e|ixgbe|tg3) {_BDF} (?P<name>\S+?): NIC Link is"
_FORMS = (
    _form("xid", rf"NVRM: Xid \((?:PCI:)?{_BDF}\): (?P<code>\d{{1,4}})\b"),
    _form(
        "sxid",
        r"(?P<switch>nvidia-nvswitch\d+): SXid "
        rf"\((?:PCI:)?{_BDF}\): (?P<code>\d{{1,6}}), (?P<severity>Fatal|Non-fatal)",
    ),
    _form("gpu_lost", rf"NVRM: (?:The NVIDIA )?GPU (?:at PCI:)?{_BDF}:? .*fallen off the bus"),
    _form("gpu_init", rf"NVRM: GPU {_BDF}: (?P<code>RmInitAdapter failed)"),
    _form("driver", r"NVRM: API mismatch: (?P<what>.{0,160})", "api-mismatch"),
    _form("dpc", _PORT + r"DPC: containment event, status:(?P<status>0x[0-9a-f]+)", "containment"),
    _form("dpc", _PORT + r"DPC: (?P<what>unmasked uncorrectable error detected)", "containment"),
    _form("hotplug", _PORT + r"pciehp: Slot\((?P<slot>[^)]{1,32})\): (?P<code>Link Down|Card not present)"),
    _form(
        "pcie_bandwidth",
        rf"{_BDF}: (?P<available>[\d.]+) Gb/s available PCIe bandwidth, "
        r"limited by (?P<limit>[\d.]+ GT/s(?: PCIe)? x\d+) link at (?P<hop>[0-9a-fA-F:.]+) "
        r"\(capable of (?P<capable>[\d.]+) Gb/s",
    ),
    _form("mlx5", _MLX5 + r".*Detected insufficient power on the PCIe slot \((?P<watts>\d+)W\)", "slot-power"),
    _form(
        "mlx5",
        _MLX5 + r".* Port module event(?:\[error\])?: module (?P<module>\d+), "
        r"(?P<what>[^\n]{0,80}(?:[Ee]rror|High [Tt]emp)[^\n]{0,80})",
        "module",
    ),
    _form("mlx5", _MLX5 + r".*temp_warn.*High temperature", "temperature"),
    _form("mlx5", _MLX5 + r".*ACCESS_REG\((?P<register>0x805)\).*failed", "access-reg"),
    _form("mlx5", _MLX5 + r".*poll_health.*(?P<what>Fatal error \d+ detected|device's health compromised)", "health"),
    _form("mlx5", _MLX5 + r".*(?:load_one|init_one|probe_one).*(?P<what>failed with error (?:code )?-?\d+)", "load"),
    _form("link_down", rf"mlx5_core {_BDF}:? (?P<name>\S+?):? (?:Port: \d+ )?Link (?:down|DOWN)\b"),
    _form("link_up", rf"mlx5_core {_BDF}:? (?P<name>\S+?):? (?:Port: \d+ )?Link (?:up|ACTIVE)\b"),
    _form("link_down", _OTHER_NICS + r" Down"),
    _form("link_up", _OTHER_NICS + r" [Uu]p"),
    _form(
        "peermem",
        r"(?P<module>nvidia_peermem|nv_peer_mem): (?:Unknown symbol|disagrees about version of symbol) "
        r"(?P<symbol>ib_register_peer_memory_client)",
        "symbol",
    ),
)
_TOKENS = ("NVRM", "nvidia", "nv_peer", "pcie", "PCIe", "mlx5_core", "NIC Link", "AER", "DPC")  # cheap sieve

_AER = re.compile(
    rf"{_BDF}: (?:AER: )?PCIe Bus Error: severity=(?P<severity>[^,]{{1,40}}), (?:type=)?(?P<layer>[^,]{{1,40}})"
)
_AER_BIT = re.compile(rf"{_BDF}:? +\[ ?\d+\] (?P<name>[A-Za-z][\w ]{{0,40}}?)\s*(?:\(First\))?\s*$")
_GPU_NAMED = re.compile(rf"NVRM: The NVIDIA GPU {_BDF}\s*$")
_NVLINK5 = re.compile(r"\b(?P<unit>[A-Z][A-Z0-9_]{2,24}) (?P<severity>Fatal|Nonfatal)\b.*?\bLink (?P<link>-?\d+)")
_PREVIOUS = re.compile(r"caused by previous Xid (?P<previous>\d+)")
_RECOVERY = re.compile(r"GPU recovery action changed from (?P<before>\S+.*?) to (?P<after>\S.*?)\s*$")
_SXID_LINK = re.compile(r"\bLink (?P<link>\d+)\b")


def events(log: Iterable[Line]) -> tuple[list[Event], int]:
    """Events in the order of their first line, equal ones as one; and how many were left out for their number."""
    found: dict[tuple[object, ...], Event] = {}
    left_out = 0
    for event in _events(log):
        key = (event.kind, event.subject, event.code, event.detail)
        before = found.get(key)
        if before is not None:
            first = before.first_at or before.at
            found[key] = event._replace(count=before.count + 1, first_at=first)
        elif len(found) < EVENTS_LIMIT:
            found[key] = event
        else:
            left_out += 1
    return list(found.values()), left_out


def address(text: str) -> str:
    """A PCI address as ours; a message of the driver leaves the function out.

    >>> address("0018:01:00"), address("00000000:3B:00.0"), address("10000:e1:00.0")
    ('0018:01:00.0', '0000:3b:00.0', '10000:e1:00.0')
    """
    domain, _, rest = text.lower().partition(":")
    return f"{int(domain, 16):04x}:{rest}" + ("" if "." in rest else ".0")


def _events(log: Iterable[Line]) -> Iterator[Event]:
    named: str | None = None  # a GPU whose sentence goes on in the next lines
    bus_error: tuple[Line, re.Match[str], bool] | None = None  # AER's first line, and whether a bit was told
    for line in log:
        if bus_error and (bit := _AER_BIT.search(line.text)) and bit["bdf"] == bus_error[1]["bdf"]:
            yield _aer(bus_error[0], bus_error[1], bit["name"])
            bus_error = (*bus_error[:2], True)
            continue
        if not any(token in line.text for token in _TOKENS):
            continue
        if again := _AER.search(line.text):
            if bus_error and not bus_error[2]:
                yield _aer(bus_error[0], bus_error[1], None)
            bus_error = (line, again, False)
            continue
        if begun := _GPU_NAMED.search(line.text):
            named = address(begun["bdf"])
            continue
        if named and "fallen off the bus" in line.text:
            yield Event("gpu_lost", f"NVRM: GPU {named} has fallen off the bus", line.at, named, logged=line.logged)
            named = None
            continue
        yield from _plain(line)
    if bus_error and not bus_error[2]:
        yield _aer(bus_error[0], bus_error[1], None)


def _plain(line: Line) -> Iterator[Event]:
    for form in _FORMS:
        match = form.pattern.search(line.text)
        if match is None:
            continue
        groups = {key: value for key, value in match.groupdict().items() if value}
        bdf, name = groups.pop("bdf", None), groups.pop("name", None)
        code = groups.pop("code", None) or form.code
        subject = address(bdf) if bdf else name
        if name and bdf:
            groups["name"] = name
        if more := _MORE.get(form.kind):
            groups |= more(line.text)
        yield Event(
            form.kind, line.text[:TEXT_CHARACTERS], line.at, subject, code, logged=line.logged, detail=_detail(groups)
        )
        return


def _xid(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for pattern in (_NVLINK5, _PREVIOUS, _RECOVERY):
        if match := pattern.search(text):
            found |= {key: value for key, value in match.groupdict().items() if value}
    return found


def _sxid(text: str) -> dict[str, str]:
    match = _SXID_LINK.search(text)
    return {"link": match["link"]} if match else {}


_MORE: dict[str, Callable[[str], dict[str, str]]] = {"xid": _xid, "sxid": _sxid}


def _aer(line: Line, match: re.Match[str], bit: str | None) -> Event:
    severity = match["severity"].strip().lower()
    kind = (
        "fatal" if "(fatal" in severity else "nonfatal" if "uncorrect" in severity or "non" in severity else "corrected"
    )
    detail = {"severity": kind, "layer": match["layer"].strip()}
    return Event(
        "aer",
        line.text[:TEXT_CHARACTERS],
        line.at,
        address(match["bdf"]),
        bit,
        logged=line.logged,
        detail=_detail(detail),
    )


def _detail(groups: dict[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(groups.items()))
