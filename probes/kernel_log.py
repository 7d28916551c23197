"""The kernel's log since boot: Xid, SXid, AER, mlx5 and link messages as dated events.

/dev/kmsg first (CAP_SYSLOG where kernel.dmesg_restrict is set); the journal where that is denied; saved outputs of
dmesg and journalctl of other hosts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from probes.asking import Asking, as_text
from probes.host import kernel_log
from probes.host.commands import KERNEL_LOG, KERNEL_LOG_SAVED
from probes.host.door import Absent, Denied, Failed, Host, Unanswered
from probes.kernel_log_facts import KernelLogFacts
from probes.probe import Probe, Reading

if TYPE_CHECKING:
    from probes.kernel_log_lines import Line

STAT_BYTES = 1 << 20
SAVED_FILES = ("/var/log/dmesg",)


def read(host: Host) -> Reading:
    """Everything of interest that the kernel wrote since boot. Raises Unanswered where no log can be read."""
    asking = Asking(host)
    boot_time = parse_boot_time(asking.text("/proc/stat", STAT_BYTES) or "")
    source, text = _log(host, asking)
    from probes.kernel_log_events import events  # some thirty patterns: not for a source without a log
    from probes.kernel_log_lines import lines

    log = list(lines(text, boot_time))
    if not log:
        raise Absent(f"{source}: no line of a kernel log")
    found, left_out = events(log)
    if left_out:
        asking.gap(f"{left_out} more events of other kinds or devices are not listed")
    whole = _whole(log)
    if whole is False:
        asking.gap("the beginning of the log was overwritten: journalctl -k -b may have it")
    since = log[0].at or log[0].logged
    return Reading(KernelLogFacts(tuple(found), source, since, whole), asking.sources, asking.missing)


PROBE = Probe("kernel_log", read, 15.0)


def parse_boot_time(stat: str) -> int | None:
    r"""Unix seconds at which the kernel started, of /proc/stat.

    >>> parse_boot_time("cpu 1 2\nbtime 1700000000\nprocesses 5\n"), parse_boot_time("")
    (1700000000, None)
    """
    found = re.search(r"^btime (\d{1,12})$", stat, re.MULTILINE)
    return int(found[1]) if found else None


def _log(host: Host, asking: Asking) -> tuple[str, str]:
    """The first log that can be read: its name and text. Raises Unanswered, of /dev/kmsg where all fail."""
    try:
        text = as_text(host.read(kernel_log.PLACE, kernel_log.TAIL_BYTES))
        asking.answered(kernel_log.PLACE)
        return kernel_log.PLACE, text
    except Unanswered as why:
        denied = why
    if host.live and not isinstance(denied, Denied):
        raise denied
    for argv in KERNEL_LOG if host.live else (*KERNEL_LOG, *KERNEL_LOG_SAVED):
        if not host.live and not host.has_output(*argv):
            continue
        text = asking.output(*argv) or ""
        if text.strip():
            return " ".join(argv), text
    for path in () if host.live else SAVED_FILES:
        if saved := asking.text(path, 1 << 20):
            return path, saved
    if isinstance(denied, Absent) and asking.missing:  # a saved log is there, and cannot be used
        raise Failed(asking.missing)
    raise denied


def _whole(log: Sequence[Line]) -> bool | None:
    """Whether nothing is missing before the first line."""
    first = log[0]
    if first.sequence is not None:
        return first.sequence == 0
    return first.seconds < 1.0 if first.seconds is not None else None
