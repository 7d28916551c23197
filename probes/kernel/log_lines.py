"""Lines of a kernel log in all the forms in which it is printed: /dev/kmsg records, dmesg, journalctl, syslog.

Kernel page: Documentation/ABI/testing/dev-kmsg; dmesg(1) (-T, -x, --time-format), journalctl(1) (-o short..).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta, timezone
from typing import NamedTuple

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


def looks_kept(log: Sequence[Line]) -> bool:
    """Whether any line is a kernel log's: a refused dmesg leaves a sentence where its log should be.

    >>> looks_kept(list(lines("dmesg: read kernel buffer failed: Operation not permitted", None)))
    False
    >>> looks_kept(list(lines("[    0.000000] x", None))), looks_kept(list(lines("NVRM: loading", None)))
    (True, True)
    """
    return any(not line.continued or _UNDATED.search(line.text) for line in log)


def moment(boot_time: int | None, seconds: float) -> str | None:
    """The time of a message.

    >>> moment(1_700_000_000, 12.5), moment(None, 12.5)
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
        at = moment(boot_time, seconds)
        return Line(record["text"], at, _since_boot(at, seconds), int(record["sequence"]), seconds)
    if raw.startswith(" ") and "=" in raw and re.fullmatch(r" [A-Z]+=\S*", raw):
        return None  # a property of the record before
    if printed := _PRINTED.match(raw):
        return None if _OTHER_TAG.match(printed["text"]) and not printed["seconds"] else _printed(printed, boot_time)
    if syslog := _SYSLOG.match(raw):
        if syslog["tag"] != "kernel":
            return None
        seconds_text = syslog["seconds"]
        return Line(syslog["text"], None, syslog["logged"], None, float(seconds_text) if seconds_text else None)
    if bare := _BARE.match(raw):
        return Line(bare["text"])
    return Line(raw.strip(), continued=True)


def _printed(found: re.Match[str], boot_time: int | None) -> Line:
    if found["seconds"]:
        seconds = float(found["seconds"])
        at = moment(boot_time, seconds)
        return Line(found["text"], at, _since_boot(at, seconds), None, seconds)
    if found["iso"]:
        return Line(found["text"], _utc(found["iso"]), None)
    return Line(found["text"], None, found["ctime"])


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
