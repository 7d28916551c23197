"""The files of syslog: kern.log, syslog and messages with those that logrotate put aside, compressed or not; and
dmesg, in which Debian keeps what each boot began with."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from probes.compression import DamagedData, decompress
from probes.host.interface import LOG_LIMIT_BYTES, OUTPUT_LIMIT_BYTES, Absent, Host, ReadError
from probes.host_reader import HostReader
from probes.text import lazy_pattern

FOLDER = "/var/log"
LOG_NAME = lazy_pattern(
    r"(?P<log>dmesg|kern\.log|syslog|messages)(?:\.(?P<number>\d{1,3})|-(?P<day>\d{6,14}))?(?P<packed>\.(?:gz|bz2|xz))?"
)


def list_log_files(host: Host) -> dict[str, list[str]]:
    """Paths by log, of each the oldest first: the part that has the newest lines has the plain name."""
    try:
        names = host.listdir(FOLDER)
    except ReadError:
        return {}
    return {log: [f"{FOLDER}/{name}" for name in own] for log, own in group_logs(names).items()}


def group_logs(names: Iterable[str]) -> dict[str, list[str]]:
    """Names of files by the log that they are a part of, of each the oldest first; others are left out.

    >>> group_logs(["messages", "messages-20260101", "syslog", "syslog.1", "syslog.2.gz", "auth.log"])
    {'messages': ['messages-20260101', 'messages'], 'syslog': ['syslog.2.gz', 'syslog.1', 'syslog']}
    """
    groups: dict[str, list[str]] = {}
    for name in sorted(names, key=_rank_age):
        if match := LOG_NAME.fullmatch(name):
            groups.setdefault(match["log"], []).append(name)
    return {log: groups[log] for log in sorted(groups)}


def _rank_age(name: str) -> tuple[int, int, str]:
    match = LOG_NAME.fullmatch(name)
    if match is None or (match["number"] is None and match["day"] is None):
        return 1, 0, name
    return 0, -int(match["number"]) if match["number"] else int(match["day"]), name


def read_log_file(
    host: Host, reader: HostReader, path: str, shorten: Callable[[bytes], bytes] | None = None
) -> str | None:
    """The text of a log file. `shorten`: what keeps the lines of a long one that are read; those of the kernel, else.

    None, and a gap, where it is there and cannot be read whole.
    """
    try:
        content = host.read(path, LOG_LIMIT_BYTES)
    except Absent:
        return None
    except ReadError as why:
        reader.gap(f"{path}: {why.reason}", "log-unread")
        return None
    if len(content) == OUTPUT_LIMIT_BYTES:  # so much an archive keeps of one file
        reader.gap(f"{path}: longer than {OUTPUT_LIMIT_BYTES >> 20} MiB", "log-unread")
        return None
    try:
        content = decompress(content, LOG_LIMIT_BYTES)
    except DamagedData:
        reader.gap(f"{path}: is damaged or cut short", "log-unread")
        return None
    if len(content) >= LOG_LIMIT_BYTES:
        reader.gap(f"{path}: longer than {LOG_LIMIT_BYTES >> 20} MiB", "log-unread")
        return None
    if len(content) > OUTPUT_LIMIT_BYTES:
        from probes.kernel.log_lines import keep_read_lines

        content = (shorten or keep_read_lines)(content)
    reader.answered(path)
    return content.decode("utf-8", "replace")


def is_log_file(path: str) -> bool:
    """Whether a path of a host is that of such a log.

    >>> is_log_file("/var/log/messages-20260115"), is_log_file("/var/log/syslog.2.gz"), is_log_file("/var/log/auth.log")
    (True, True, False)
    """
    folder, _, name = path.rpartition("/")
    return folder == FOLDER and LOG_NAME.fullmatch(name) is not None


_JOURNAL = lazy_pattern(r"journalctl(?:[_.-].*)?")
_OF_EARLIER_BOOT = lazy_pattern(r".*(?:_-b|_--boot)[_=]?-\d{1,3}(?:[_.].*)?")


def is_further_log(name: str) -> bool:
    """Whether a saved file is by its name one of several logs of one host: a file of syslog, or a journal.

    >>> is_further_log("kern.log"), is_further_log("journalctl_-k_-b_-3.txt"), is_further_log("n2_dmesg.txt")
    (True, True, False)
    """
    return LOG_NAME.fullmatch(name) is not None or _JOURNAL.fullmatch(name) is not None


def is_of_earlier_boot(name: str) -> bool:
    """Whether a saved journal is by its name that of a boot before.

    >>> is_of_earlier_boot("journalctl_-b_-3_-k.txt"), is_of_earlier_boot("journalctl_--boot=-1"), is_of_earlier_boot(
    ...     "journalctl_-k_-b_-q.txt")
    (True, True, False)
    """
    return _OF_EARLIER_BOOT.fullmatch(name) is not None


def is_packed(name: str) -> bool:
    """Whether a file is by its name a compressed log.

    >>> is_packed("syslog.2.gz"), is_packed("syslog.2"), is_packed("data.gz")
    (True, False, False)
    """
    match = LOG_NAME.fullmatch(name)
    return match is not None and match["packed"] is not None


def is_rotated(path: str) -> bool:
    """Whether logrotate put it aside: what runs writes to another file now.

    >>> is_rotated("messages-20260115"), is_rotated("syslog")
    (True, False)
    """
    match = LOG_NAME.fullmatch(path.rpartition("/")[2])
    return match is not None and bool(match["number"] or match["day"])
