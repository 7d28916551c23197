"""What a kernel log says of GPUs, NICs and links: each line of interest as an event with its device and its code.

Message forms: NVIDIA's driver (Xid, SXid), amdgpu (amdgpu_ras.c, amdgpu_device.c, amdgpu_xgmi.c), Linux
drivers/pci/pcie/{aer,dpc}.c, drivers/pci/hotplug, pci.c (__pcie_print_link_status), mlx5 (events.c, health.c, cmd.c),
bnxt, ice, kernel/module (symbol versions).

Lines of a kernel log in all the forms in which it is printed: /dev/kmsg records, dmesg, journalctl, syslog.

Kernel page: Documentation/ABI/testing/dev-kmsg; dmesg(1) (-T, -x, --time-format), journalctl(1) (-o short..).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta, timezone
from typing import NamedTuple

from probes.kernel.log_facts import LogEvent
from probes.text import ESCAPES

LINE_CHARACTERS = 1000  # of one line; the kernel's own limit is 1024 bytes
_KERNEL_FACILITY = 0

_RECORD = re.compile(
    r"(?P<priority>\d{1,4}),(?P<sequence>\d{1,19}),(?P<microseconds>\d{1,18}),[^;\n]{0,40};(?P<text>.*)"
)
_CTIME = r"\[(?P<ctime>[^\W\d]{2,9}\.? [^\W\d]{3,9}\.? [ \d]\d \d\d:\d\d:\d\d \d{4})\]"
_SECONDS = r"\[ {0,8}(?P<seconds>\d{1,9}\.\d{6})(?: *[<@][^\]]{0,20})?\](?:\[ *[TC]\d{1,9}\])?"
_ISO = r"(?P<iso>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d))"
_TAG = r"(?:\S{1,255} kernel(?:\[\d+\])?: )?"
_PRINTED = re.compile(
    rf"(?:\d{{1,7}} ?)?(?:<\d+>)?\s*(?:\w+ *:\w+ *: )?(?:{_SECONDS}|{_CTIME}|{_ISO})"  # numbered, with its level, dated
    rf"[: ]?{_TAG}(?:\[ *\d+\.\d{{6}}\] )?(?P<text>.*)"
)
_SYSLOG = re.compile(
    r"(?P<logged>[^\W\d]{3,12}\.? {1,2}\d{1,2} \d\d:\d\d:\d\d)(?:\.\d+)? \S{1,255} "
    rf"(?P<tag>[^:\[ ]{{1,64}})(?:\[\d+\])?: (?:{_SECONDS} )?(?P<text>.*)"
)
_OTHER_TAG = re.compile(r"\S{1,255} [\w@./-]{1,64}\[\d+\]: ")
_BARE = re.compile(r"kernel: (?P<text>.*)")
_UNDATED = re.compile(  # what a log without times (dmesg -t) has of its own
    r"\bLinux version \d|\b(?:BIOS-e820|ACPI|NVRM): |\b(?:pci|pcieport|nvidia|mlx[45]_core) [0-9a-f]{4,8}:[0-9a-f]{2}:"
)


class Line(NamedTuple):
    """One line of the log."""

    text: str
    at: str | None = None  # RFC 3339, UTC, microseconds left out
    logged: str | None = None  # what the log says of the time, where that gives no moment: "+68183.6 s", "Dec  1 02:16"
    sequence: int | None = None
    seconds: float | None = None  # since boot
    continued: bool = False  # belongs to the line before


def lines(text: str, boot_time: int | None) -> Iterator[Line]:
    """Every line that the kernel wrote. `boot_time`: Unix seconds (btime of /proc/stat), None where not known."""
    for raw in (ESCAPES.sub("", text) if "\x1b" in text else text).splitlines():
        line = _line(raw[:LINE_CHARACTERS], boot_time)
        if line is not None and line.text:
            yield line


def is_kernel_log(log: Sequence[Line]) -> bool:
    """Whether any line is a kernel log's: a refused dmesg leaves a sentence where its log should be.

    >>> is_kernel_log(list(lines("dmesg: read kernel buffer failed: Operation not permitted", None)))
    False
    >>> is_kernel_log(list(lines("[    0.000000] x", None))), is_kernel_log(list(lines("NVRM: loading", None)))
    (True, True)
    """
    return any(not line.continued or _UNDATED.search(line.text) for line in log)


def format_time(boot_time: int | None, seconds: float) -> str | None:
    """The time of a message.

    >>> format_time(1_700_000_000, 12.5), format_time(None, 12.5)
    ('2023-11-14T22:13:32Z', None)
    """
    if boot_time is None:
        return None
    try:
        at = datetime.fromtimestamp(boot_time, timezone.utc) + timedelta(seconds=seconds)
    except (ValueError, OverflowError, OSError):
        return None
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def _line(raw: str, boot_time: int | None) -> Line | None:
    if record := _RECORD.fullmatch(raw):
        if int(record["priority"]) >> 3 != _KERNEL_FACILITY:
            return None  # written by a program
        seconds = int(record["microseconds"]) / 1e6
        at = format_time(boot_time, seconds)
        return Line(record["text"], at, _since_boot(at, seconds), int(record["sequence"]), seconds)
    if raw.startswith(" ") and "=" in raw and re.fullmatch(r" [A-Z]+=\S*", raw):
        return None  # a property of the record before
    if printed := _PRINTED.match(raw):
        return (
            None if _OTHER_TAG.match(printed["text"]) and not printed["seconds"] else _parse_printed(printed, boot_time)
        )
    if syslog := _SYSLOG.match(raw):
        if syslog["tag"] != "kernel":
            return None
        seconds_text = syslog["seconds"]
        return Line(syslog["text"], None, syslog["logged"], None, float(seconds_text) if seconds_text else None)
    if bare := _BARE.match(raw):
        return Line(bare["text"])
    return Line(raw.strip(), continued=True)


def _parse_printed(match: re.Match[str], boot_time: int | None) -> Line:
    if match["seconds"]:
        seconds = float(match["seconds"])
        at = format_time(boot_time, seconds)
        return Line(match["text"], at, _since_boot(at, seconds), None, seconds)
    if match["iso"]:
        return Line(match["text"], _utc(match["iso"]), None)
    return Line(match["text"], None, match["ctime"])


def _utc(text: str) -> str | None:
    text = re.sub(
        r"([.,]\d+)|([+-]\d\d):?(\d\d)$", lambda m: "" if m[1] else f"{m[2]}:{m[3]}", text.replace("Z", "+00:00")
    )
    try:
        return datetime.fromisoformat(text).astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError):
        return None


def _since_boot(at: str | None, seconds: float) -> str | None:
    return None if at else f"+{seconds:.3f} s"


TEXT_CHARACTERS = 300
_OF_LINKS, _TIMES = ("link_down", "link_up"), 32  # whose times are kept, and how many
EVENTS_LIMIT = 500  # distinct ones; a log of one fault repeated is one row
CODES_LIMIT = 1000  # above the limit only codes that a device has not had: details of many links hide no fault

_BDF = r"(?P<bdf>[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?)"


class _Form(NamedTuple):
    """One message: where a line matches, it is an event of that kind. Named groups: bdf, name, code; others: detail."""

    kind: str
    pattern: re.Pattern[str]
    code: str | None = None


def _form(kind: str, pattern: str, code: str | None = None) -> _Form:
    return _Form(kind, re.compile(pattern), code)


_STARTED = "started"
_PORT = rf"pcieport {_BDF}: (?:AER: )?"
_MLX5 = rf"mlx5_core {_BDF}:"
_OTHER_NICS = rf"(?:bnxt_en|ice|i40e|ixgbe|tg3) {_BDF} (?P<name>\S+?): NIC Link is"
_AMDGPU = rf"amdgpu {_BDF}: (?:amdgpu: )?"
_FORMS = (
    _form(
        "amd_ras",
        _AMDGPU + r"(?:\{\d{1,20}\})?socket: (?P<socket>\d{1,4}),.{0,40} \d{1,20} new "
        r"(?P<severity>correctable|uncorrectable|deferred) hardware errors detected in (?P<code>\w{1,32}) block",
    ),
    _form("amd_fatal", _AMDGPU + r".{0,40}uncorrectable hardware error ?\((?P<code>\w{1,48})\) detected"),
    _form(
        "amd_bad_pages",
        _AMDGPU + r"(?:Saved bad pages.{0,24} reaches threshold|RAS records: ?\d{1,9} exceed threshold)\b",
    ),
    _form("amd_reset", _AMDGPU + r"GPU reset begin!"),
    _form("amd_vram_lost", rf"(?:{_AMDGPU}|\[drm\] )VRAM is lost due to GPU reset!"),  # older kernels name no GPU
    _form("amd_init", _AMDGPU + r"(?P<code>Fatal error during GPU init)"),
    _form("xgmi", _AMDGPU + r"XGMI: (?P<code>Failed to add node|Set topology failure|Get topology failure)"),
    _form("npu_heartbeat", r"\[ascend\] .{0,200}Heartbeat lost! \(device=(?P<device>\d{1,5});", "heartbeat-lost"),
    _form("npu_fault", r"\[ascend\] .{0,400}\b[Ee]vent[ _]id(?:=| ?: {0,4}\[)(?P<code>0x[0-9a-fA-F]{8})\b"),
    _form(
        "neuron_hw",
        r"NEURON_HW_ERR=(?P<code>[A-Z_]{1,64}) .{0,300}?\bnd-id=(?P<device>\d{1,4}) nc-id=(?P<core>\d{1,4})\b"
        r"(?:.{0,80}?\baction=(?P<action>[A-Z_]{1,40}))?",
    ),
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
    _form("mlx5", _MLX5 + r".*poll_health.*(?P<what>Fatal error \d+ detected)", "health"),
    _form("mlx5", _MLX5 + r".*(?P<what>device's health compromised|health recovery failed)", "health"),
    _form("mlx5", _MLX5 + r".*Will cause a leak of a command resource", "command"),
    _form("mlx5", rf"mlx5_core {_BDF}.*TX timeout detected", "tx-timeout"),
    _form("mlx5", _MLX5 + r".*health recovery succeeded", "recovered"),
    _form("mlx5", _MLX5 + r".*\bfirmware version: (?!65535)\d+\.\d+\.\d+", _STARTED),
    _form("mlx5", _MLX5 + r".*(?:load_one|init_one|probe_one).*(?P<what>failed with error (?:code )?-?\d+)", "load"),
    _form("link_down", rf"mlx5_core {_BDF}:? (?P<name>\S+?):? (?:Port: \d+ )?Link (?:down|DOWN)\b"),
    _form("link_up", rf"mlx5_core {_BDF}:? (?P<name>\S+?):? (?:Port: \d+ )?Link (?:up|ACTIVE)\b"),
    _form("nic_firmware", rf"bnxt_en {_BDF} .*Firmware reset aborted(?P<what>.{{0,100}})", "reset-failed"),
    _form("nic_firmware", rf"bnxt_en {_BDF} .*\bFatal firmware reset event\b", "reset"),
    _form("nic_firmware", rf"\bice {_BDF}: Rebuild failed, unload and reload driver", "reset-failed"),
    _form("link_down", _OTHER_NICS + r" Down"),
    _form("link_up", _OTHER_NICS + r" [Uu]p"),
    _form(
        "peermem",
        r"(?P<module>nvidia_peermem|nv_peer_mem): (?:Unknown symbol|disagrees about version of symbol) "
        r"(?P<symbol>ib_register_peer_memory_client)",
        "symbol",
    ),
)
_TOKENS = (  # cheap sieve
    "NVRM", "nvidia", "nv_peer", "pcie", "PCIe", "mlx5_core", "NIC Link", "AER", "DPC",
    "irmware reset", "Rebuild failed", "amdgpu", "VRAM is lost", "[ascend]", "NEURON_HW_ERR", "Hardware Error]",
)  # fmt: skip

_AER = re.compile(
    rf"{_BDF}: (?:AER: )?PCIe Bus Error: severity=(?P<severity>[^,]{{1,40}}), (?:type=)?(?P<layer>[^,]{{1,40}})"
)
_AER_BIT = re.compile(rf"{_BDF}:? +(?:AER: +)?\[ ?\d+\] (?P<name>[A-Za-z][\w ]{{0,40}}?)\s*(?:\(First\))?\s*$")
_CXL_RECORD = re.compile(r"(?P<record>(?:\{\d{1,10}\})?)\[Hardware Error\]: +(?P<text>\S.{0,100})")
_CXL_AGENT = re.compile(rf"agent_address: {_BDF}")
_GPU_NAMED = re.compile(rf"NVRM: The NVIDIA GPU {_BDF}\s*$")
_NVLINK5 = re.compile(r"\b(?P<unit>[A-Z][A-Z0-9_]{2,24}) (?P<severity>Fatal|Nonfatal)\b.*?\bLink (?P<link>-?\d+)")
_PREVIOUS = re.compile(r"caused by previous Xid (?P<previous>\d+)")
_RECOVERY = re.compile(r"GPU recovery action changed from (?P<before>\S+.*?) to (?P<after>\S.*?)\s*$")
_SXID_LINK = re.compile(r"\bLink (?P<link>\d+)\b")


def events(log: Iterable[Line]) -> tuple[list[LogEvent], int]:
    """Events in the order of their first line, equal ones as one; and how many were left out for their number."""
    by_key: dict[tuple[object, ...], LogEvent] = {}
    failed: set[str | None] = set()  # NICs of whose driver a start is of interest: every boot has one
    codes: set[tuple[object, ...]] = set()
    left_out = 0
    for event in _events(log):
        if event.code == _STARTED and event.subject not in failed:
            continue
        if event.kind == "mlx5":
            failed.add(event.subject)
        key = (event.kind, event.subject, event.code, event.detail)
        before = by_key.get(key)
        if event.kind in _OF_LINKS and (date := event.at or event.logged):
            event = event._replace(times=(*(before.times if before else ()), date)[-_TIMES:])
        if before is not None:
            first = before.first_at or before.at
            by_key[key] = event._replace(count=before.count + 1, first_at=first)
        elif len(by_key) < (EVENTS_LIMIT if key[:3] in codes else CODES_LIMIT):
            by_key[key] = event
            codes.add(key[:3])
        else:
            left_out += 1
    return list(by_key.values()), left_out


def address(text: str) -> str:
    """A PCI address as ours; a message of the driver leaves the function out.

    >>> address("0018:01:00"), address("00000000:3B:00.0"), address("10000:e1:00.0")
    ('0018:01:00.0', '0000:3b:00.0', '10000:e1:00.0')
    """
    domain, _, rest = text.lower().partition(":")
    return f"{int(domain, 16):04x}:{rest}" + ("" if "." in rest else ".0")


def _events(log: Iterable[Line]) -> Iterator[LogEvent]:
    named: str | None = None  # a GPU whose sentence goes on in the next lines
    bus_error: tuple[Line, re.Match[str], bool] | None = None  # AER's first line, and whether a bit was told
    cxl = _CxlRecord("", "")
    for line in log:
        if bus_error and (bit := _AER_BIT.search(line.text)) and bit["bdf"] == bus_error[1]["bdf"]:
            yield _aer(bus_error[0], bus_error[1], bit["name"])
            bus_error = (*bus_error[:2], True)
            continue
        if not any(token in line.text for token in _TOKENS):
            continue
        if record := _CXL_RECORD.match(line.text):
            cxl, event = _read_record(cxl, record["record"], record["text"], line)
            if event:
                yield event
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
            yield LogEvent("gpu_lost", f"NVRM: GPU {named} has fallen off the bus", line.at, named, logged=line.logged)
            named = None
            continue
        yield from _plain(line)
    if bus_error and not bus_error[2]:
        yield _aer(bus_error[0], bus_error[1], None)


class _CxlRecord(NamedTuple):
    """What the lines of a firmware's record said so far (cper_estatus_print_section)."""

    record: str  # "{1}"
    severity: str  # recoverable | fatal | corrected | info
    of_cxl: bool = False


def _read_record(before: _CxlRecord, record: str, text: str, line: Line) -> tuple[_CxlRecord, LogEvent | None]:
    """The record with one more line, and the event where that line names the device."""
    cxl = before if before.record == record else _CxlRecord(record, "")
    if kind := re.match(r"Error \d{1,5}, type: (\w{1,20})", text):
        return _CxlRecord(record, kind[1]), None
    if text.startswith("section_type: "):
        return cxl._replace(of_cxl=text.startswith("section_type: CXL Protocol Error")), None
    agent = _CXL_AGENT.match(text) if cxl.of_cxl else None
    if agent is None:
        return cxl, None
    said = f"CXL Protocol Error, {cxl.severity or 'severity not stated'}, {text}"
    event = LogEvent("cxl_protocol", said, line.at, address(agent["bdf"]), cxl.severity or None, logged=line.logged)
    return cxl._replace(of_cxl=False), event


def _plain(line: Line) -> Iterator[LogEvent]:
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
        yield LogEvent(
            form.kind, line.text[:TEXT_CHARACTERS], line.at, subject, code, logged=line.logged, detail=_detail(groups)
        )
        return


def _xid(text: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    for pattern in (_NVLINK5, _PREVIOUS, _RECOVERY):
        if match := pattern.search(text):
            fields |= {key: value for key, value in match.groupdict().items() if value}
    return fields


def _sxid(text: str) -> dict[str, str]:
    match = _SXID_LINK.search(text)
    return {"link": match["link"]} if match else {}


_MORE: dict[str, Callable[[str], dict[str, str]]] = {"xid": _xid, "sxid": _sxid}


def _aer(line: Line, match: re.Match[str], bit: str | None) -> LogEvent:
    severity = match["severity"].strip().lower()
    kind = (
        "fatal" if "(fatal" in severity else "nonfatal" if "uncorrect" in severity or "non" in severity else "corrected"
    )
    detail = {"severity": kind, "layer": match["layer"].strip()}
    return LogEvent(
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
