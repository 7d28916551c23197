"""The kernel's log since boot: Xid, SXid, AER, mlx5 and link messages as dated events.

/dev/kmsg first (CAP_SYSLOG where kernel.dmesg_restrict is set); the journal where that is denied; saved outputs of
dmesg and journalctl of other hosts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from probes.host import kmsg
from probes.host.commands import KERNEL_LOG, KERNEL_LOG_SAVED
from probes.host.interface import Absent, Denied, Failed, Host, ReadError
from probes.host_reader import HostReader, as_text
from probes.kernel.log_facts import KernelLogFacts
from probes.probe import Probe, Reading
from probes.text import lazy_pattern

if TYPE_CHECKING:
    from probes.kernel.log_events import Line

STAT_BYTES = 1 << 20
SAVED_FILES = ("/var/log/dmesg",)
_REFUSED = lazy_pattern(r"not permitted|[Pp]ermission denied|[Pp]assword")


def read(host: Host) -> Reading:
    """Everything of interest that the kernel wrote since boot. Raises ReadError where no log can be read."""
    reader = HostReader(host)
    boot_time = parse_boot_time(reader.text("/proc/stat", STAT_BYTES) or "")
    source, log = _log(host, reader, boot_time)
    from probes.kernel.log_events import events  # some thirty patterns: not for a source without a log

    found_events, left_out = events(log)
    if left_out:
        reader.gap(f"{left_out} more events of other kinds or devices are not listed")
    whole = _whole(log)
    if whole is False:
        reader.gap("the beginning of the log was overwritten: journalctl -k -b may have it")
    since = log[0].at or log[0].logged
    return Reading(KernelLogFacts(tuple(found_events), source, since, whole), reader.sources, reader.missing)


PROBE = Probe("kernel_log", read, 15.0)


def parse_boot_time(stat: str) -> int | None:
    r"""Unix seconds at which the kernel started, of /proc/stat.

    >>> parse_boot_time("cpu 1 2\nbtime 1700000000\nprocesses 5\n"), parse_boot_time("")
    (1700000000, None)
    """
    match = re.search(r"^btime (\d{1,12})$", stat, re.MULTILINE)
    return int(match[1]) if match else None


def _log(host: Host, reader: HostReader, boot_time: int | None) -> tuple[str, Sequence[Line]]:
    """The first log that can be read: its name and lines. Raises ReadError: of /dev/kmsg where all fail, or of the
    first saved output that is there and is no log."""
    try:
        text = as_text(host.read(kmsg.PLACE, kmsg.TAIL_BYTES))
        log = _lines(kmsg.PLACE, text, boot_time)
        reader.answered(kmsg.PLACE)
        return kmsg.PLACE, log
    except ReadError as why:
        denied = why
    if host.live and not isinstance(denied, Denied):
        raise denied
    refused: ReadError | None = None
    for source, text in _others(host, reader):
        try:
            return source, _lines(source, text, boot_time)
        except ReadError as why:
            refused = refused or why
    if isinstance(denied, Absent) and (refused or reader.missing):  # a saved log is there, and cannot be used
        raise refused or Failed(reader.missing or "")
    raise denied


def _others(host: Host, reader: HostReader) -> Iterator[tuple[str, str]]:
    """What else may hold the log, best first: its name and text."""
    for argv in KERNEL_LOG if host.live else (*KERNEL_LOG, *KERNEL_LOG_SAVED):
        if (host.live or host.has_output(*argv)) and (text := (reader.output(*argv) or "").strip()):
            yield " ".join(argv), text
    for path in () if host.live else SAVED_FILES:
        if saved := reader.text(path, 1 << 20):
            yield path, saved


def _lines(source: str, text: str, boot_time: int | None) -> Sequence[Line]:
    """The lines of a log. Raises Denied or Failed where a refusal, a prompt or a page stands in its place."""
    from probes.kernel.log_events import is_kernel_log, lines

    log = list(lines(text, boot_time))
    if is_kernel_log(log):
        return log
    first = next((line.text[:120] for line in log), "")
    if not first:
        raise Absent(f"{source}: no line of a kernel log")
    if _REFUSED.search(first):
        raise Denied(f"{source}: {first.removeprefix('dmesg: ')}", "EPERM")
    raise Failed(f"{source}: no line of a kernel log; it begins with: {first}")


def _whole(log: Sequence[Line]) -> bool | None:
    """Whether nothing is missing before the first line."""
    first = log[0]
    if first.sequence is not None:
        return first.sequence == 0
    return first.seconds < 1.0 if first.seconds is not None else None
