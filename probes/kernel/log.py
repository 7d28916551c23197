"""The kernel's log since boot: Xid, SXid, AER, mlx5 and link messages as dated events.

/dev/kmsg first (CAP_SYSLOG where kernel.dmesg_restrict is set); the journal where that is denied; saved outputs of
dmesg and journalctl of other hosts.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence
from typing import TYPE_CHECKING

from probes.host import kmsg
from probes.host.commands import KERNEL_LOG, KERNEL_LOG_EARLIER, KERNEL_LOG_SAVED, ROTATED_LOG, UNUSED_LOG
from probes.host.interface import Absent, Denied, Failed, Host, ReadError
from probes.host_reader import HostReader, as_text
from probes.kernel.log_facts import AFTER_RESET, KernelLogFacts, LogEvent
from probes.probe import Reading
from probes.text import lazy_pattern

if TYPE_CHECKING:
    from probes.kernel.log_lines import Line

STAT_BYTES = 1 << 20
SAVED_FILES = ("/var/log/dmesg",)
_BOOT_START = "Linux version "  # in the first line that a kernel writes
_IOMMU_DEFAULT = lazy_pattern(r"iommu: Default domain type: (Translated|Passthrough)\b")
_BOOT_TIME = lazy_pattern(r"^btime (\d{1,12})$", re.MULTILINE)
_REFUSED = lazy_pattern(r"not permitted|[Pp]ermission denied|[Pp]assword")


def read(host: Host) -> Reading:
    """Everything of interest that the kernel wrote since boot. Raises ReadError where no log can be read."""
    reader = HostReader(host)
    boot_time = parse_boot_time(reader.text("/proc/stat", STAT_BYTES) or "")
    try:
        source, log = _log(host, reader, boot_time)
    except ReadError as why:
        return _read_earlier_alone(host, reader, why)
    from probes.kernel.log_events import events  # some thirty patterns: not for a source without a log

    found_events, left_out = events(log)
    if left_out:
        reader.gap(f"{left_out} more lines or events of other kinds or devices are not listed")
    first = next((line for line in log if not line.continued), log[0])
    for name in () if host.live else host.saved_arguments(*UNUSED_LOG):
        reader.gap(f"{name}: a further kernel log, which may be of another host", "log-unread")
    whole = _whole(first)
    if whole is False:
        reader.gap("the beginning of the log was overwritten: journalctl -k -b may have it")
    since = first.at or first.logged
    earlier = () if host.live else _read_other_logs(host, reader, source, found_events, whole)
    all_events = (*found_events, *earlier)
    iommu = _find_iommu_default(log)
    if iommu is not None:
        all_events = (*all_events, iommu)
    return Reading(
        KernelLogFacts(all_events, source, since, whole, iommu.code if iommu else None),
        reader.sources,
        reader.missing,
    )


def _read_earlier_alone(host: Host, reader: HostReader, why: ReadError) -> Reading:
    """What logs of earlier boots state where none of this boot can be read. Raises ReadError where that is nothing."""
    events = () if host.live else _read_other_logs(host, reader, "", (), None)
    if not events:
        raise why
    reader.gap(f"of this boot: {why}", "log-unread")
    dated = tuple(event._replace(boot=event.boot or "earlier") for event in events)
    return Reading(KernelLogFacts(dated, dated[0].source or "", None, None, None), reader.sources, reader.missing)


def _find_iommu_default(log: Sequence[Line]) -> LogEvent | None:
    """What the kernel states of addresses that it maps for devices, where nothing else is set for one."""
    named = (line for line in log if line.text.startswith("iommu: "))
    found = ((line, match) for line in named if (match := _IOMMU_DEFAULT.match(line.text)))
    return next(
        (LogEvent("iommu", match[0], line.at, code=match[1], logged=line.logged) for line, match in found), None
    )


def parse_boot_time(stat: str) -> int | None:
    r"""Unix seconds at which the kernel started, of /proc/stat.

    >>> parse_boot_time("cpu 1 2\nbtime 1700000000\nprocesses 5\n"), parse_boot_time("")
    (1700000000, None)
    """
    match = _BOOT_TIME.search(stat)
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
    if host.live:
        return
    for path in SAVED_FILES:
        if saved := reader.text(path, 1 << 20):
            yield path, saved
    from probes.kernel.log_files import is_rotated, list_log_files, read_log_file  # lazy: of saved logs alone

    for paths in list_log_files(host).values():
        if not is_rotated(paths[-1]) and (saved := read_log_file(host, reader, paths[-1])):
            from probes.kernel.log_lines import split_boots

            yield paths[-1], (split_boots(saved) or [""])[-1]


def _identify(event: LogEvent) -> tuple[object, ...]:
    """What lines of one error have in common, whatever else their log has."""
    return event.kind, event.subject, event.code, tuple(row for row in event.detail if row != AFTER_RESET)


def _read_other_logs(
    host: Host, reader: HostReader, main: str, known: Sequence[LogEvent], whole: bool | None
) -> Sequence[LogEvent]:
    """Events that only other logs of the source have: of earlier boots, and of this one where the first log lost some.

    One fault is often in two logs: it counts once, by the log with the boot's number.
    """
    from probes.kernel.log_files import group_logs, is_of_earlier_boot, list_log_files, read_log_file

    files, saved = list_log_files(host), host.saved_arguments(*ROTATED_LOG)
    outputs = (*KERNEL_LOG, *KERNEL_LOG_SAVED, *KERNEL_LOG_EARLIER)
    if not (files or saved or any(host.has_output(*argv) for argv in outputs)):
        return ()
    from probes.kernel.log_events import events
    from probes.kernel.log_lines import lines, split_boots

    by_key = {_identify(event): event for event in known}
    others: dict[tuple[object, ...], LogEvent] = {}

    def add(text: Iterator[Line], boot: str | None, source: str, known_here: Container[object] = ()) -> None:
        for event in events(text)[0]:
            key = _identify(event)
            if (boot is None and key in by_key) or key in known_here:
                continue
            others.setdefault((boot is None, *key), event._replace(boot=boot, source=source))

    def add_files(texts: Iterator[tuple[str, str | None]]) -> None:
        """Of one log, the newest file first: the last boot in a file goes on in the newer, unless one began there."""
        is_this = True
        for path, text in texts:
            boots = split_boots(text) if text else []
            for number, log in enumerate(boots, 1):
                is_last = is_this and number == len(boots)
                if is_last and whole and path != main:
                    add(lines(log, None), "earlier", path, by_key)
                elif path != main or not is_last:
                    add(lines(log, None), None if is_last else "earlier", path)
            is_this = is_this and len(boots) < 2 and not any(_BOOT_START in log for log in boots)

    for argv in (*KERNEL_LOG, *KERNEL_LOG_SAVED):
        if " ".join(argv) != main and host.has_output(*argv) and (text := reader.output(*argv)):
            add(lines(text, None), None, " ".join(argv))
    for argv in KERNEL_LOG_EARLIER:
        if host.has_output(*argv) and (text := reader.output(*argv)):
            add(lines(text, None), argv[-1], " ".join(argv))
    for paths in files.values():
        add_files((path, read_log_file(host, reader, path)) for path in reversed(paths))
    groups = group_logs(saved)
    for names in groups.values():
        add_files((name, reader.output(*ROTATED_LOG, name)) for name in reversed(names))
    for name in set(saved).difference(*groups.values()):
        if text := reader.output(*ROTATED_LOG, name):
            add(lines(text, None), "earlier" if is_of_earlier_boot(name) else None, name)
    return tuple(others.values())


def _lines(source: str, text: str, boot_time: int | None) -> Sequence[Line]:
    """The lines of a log. Raises Denied or Failed where a refusal, a prompt or a page is in its place."""
    from probes.kernel.log_lines import is_kernel_log, lines

    log = list(lines(text, boot_time))
    if is_kernel_log(log):
        return log
    first = next((line.text[:120] for line in log), "")
    if not first:
        raise Absent(f"{source}: no line of a kernel log")
    if _REFUSED.search(first):
        raise Denied(f"{source}: {first.removeprefix('dmesg: ')}", "EPERM")
    raise Failed(f"{source}: no line of a kernel log; it begins with: {first}")


def _whole(first: Line) -> bool | None:
    """Whether nothing is missing before the first line."""
    if first.sequence is not None:
        return first.sequence == 0
    if first.text.startswith(_BOOT_START):
        return True
    return first.seconds < 1.0 if first.seconds is not None else None
