"""A folder or tar of a machine's files (`tree`), of saved command outputs (`dump`), or of both.

How a saved command ended is not known: each is answered as if it ended well. NVML and netlink leave no files.

When a bundle was made: what `date` printed, as RFC 3339 in UTC; None where its zone is not reported or not known.

A support bundle as a host: the files and command outputs that someone else's tool chose to keep.

What it does not have is not known to be missing on the machine: each reason states that the bundle does not hold it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, Protocol, cast

from probes.host.files import Files
from probes.host.interface import READ_LIMIT_BYTES, Absent, Completed, ReadError
from probes.host.udev import properties_in
from probes.text import MONTHS, lazy_pattern

if TYPE_CHECKING:
    from probes.sources.dump import SavedOutputs

SAVED_KINDS = ("dump", "text")  # sources of nothing but outputs that a person saved
_WORD = r"[A-Z][a-z]{2}"
_CLOCK = r"(?P<hour>\d{1,2}):(?P<minute>\d\d):(?P<second>\d\d)(?: (?P<half>[AP]M))?"
_ZONE = r"(?: (?P<zone>UTC|GMT|[+-]\d\d(?:\d\d)?|[A-Z]{3,5}))?"
_DAY = rf"{_WORD},? (?:({_WORD}) +(\d{{1,2}}),?|(\d{{1,2}}) ({_WORD}))"
_DATE = lazy_pattern(rf"\s*{_DAY} {_CLOCK}{_ZONE} (?P<year>\d{{4}})\s*")
_YEAR_BEFORE = lazy_pattern(rf"\s*{_DAY} (?P<year>\d{{4}}),? {_CLOCK}{_ZONE}\s*")
_OFFSET = lazy_pattern(r"([+-])(\d\d)(\d\d)?")


def parse_date_output(text: str, offset: str | None = None) -> str | None:
    """The moment that a line of `date` names. `offset`: the zone ("-0300") where the line only has letters for it.

    >>> parse_date_output("Thu Oct 27 08:50:11 PM -03 2022"), parse_date_output("Sat Nov 21 00:53:57 UTC 2026")
    ('2022-10-27T23:50:11Z', '2026-11-21T00:53:57Z')
    >>> parse_date_output("Tue Oct 27 14:31:54 EDT 2009"), parse_date_output("Tue Oct 27 14:31:54 EDT 2009", "-0400")
    (None, '2009-10-27T18:31:54Z')
    """
    match = _DATE.fullmatch(text) or _YEAR_BEFORE.fullmatch(text)
    if match is None:
        return None
    zone, half = match["zone"] or "", match["half"]
    east = _east(zone if zone in ("UTC", "GMT") or _OFFSET.fullmatch(zone) else offset)
    if east is None:
        return None
    hour = int(match["hour"]) % 12 + (12 if half == "PM" else 0) if half else int(match["hour"])
    try:
        month, day = MONTHS.index(match[1] or match[4]) + 1, int(match[2] or match[3])
        local = datetime(
            int(match["year"]), month, day, hour, int(match["minute"]), int(match["second"]), tzinfo=timezone(east)
        )
        return local.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError):
        return None


def _east(zone: str | None) -> timedelta | None:
    if zone in ("UTC", "GMT"):
        return timedelta(0)
    match = _OFFSET.fullmatch(zone or "")
    if match is None:
        return None
    size = timedelta(hours=int(match[2]), minutes=int(match[3] or 0))
    return -size if match[1] == "-" else size


class Outputs(Protocol):
    """Saved outputs of any kind of source."""

    def completed(self, argv: tuple[str, ...]) -> Completed:
        """See Host.run."""

    def holds(self, argv: tuple[str, ...]) -> bool:
        """See Host.has_output."""

    def arguments(self, argv: tuple[str, ...]) -> list[str]:
        """See Host.saved_arguments."""


class NoOutputs:
    """Those of a folder without a file at its top."""

    def completed(self, argv: tuple[str, ...]) -> Completed:
        """See Host.run. Raises Absent."""
        raise Absent(f"{' '.join(argv)}: no saved output")

    def holds(self, _argv: tuple[str, ...]) -> bool:
        """See Host.has_output."""
        return False

    def arguments(self, _argv: tuple[str, ...]) -> list[str]:
        """See Host.saved_arguments."""
        return []


class TreeHost:
    """A machine as far as its files, or its commands' outputs, were saved."""

    live = False
    observed_at: str | None = None

    def __init__(self, kind: str, path: str, files: Files, outputs: Outputs, unread: tuple[str, ...] = ()) -> None:
        self.kind = kind
        self.unread = unread  # outputs in a longer text that are not used, and why
        self.path: str | None = path
        self._files = files
        self._outputs = outputs
        self._noun_of_kind = "dump" if kind in SAVED_KINDS else kind
        self.saved = cast("SavedOutputs", outputs) if kind in SAVED_KINDS else None
        self.cut_commands = self.saved.cut_commands if self.saved else {}  # outputs that end early, and how

    def read(self, path: str, limit: int = READ_LIMIT_BYTES) -> bytes:
        """See Host.read."""
        return self._files.read(path, limit)

    def attributes(self, directory: str, names: Iterable[str]) -> Mapping[str, bytes | ReadError]:
        """See Host.attributes."""
        return self._files.attributes(directory, names)

    def listdir(self, path: str) -> list[str]:
        """See Host.listdir."""
        return self._files.listdir(path)

    def readlink(self, path: str) -> str:
        """See Host.readlink."""
        return self._files.readlink(path)

    def resolve(self, path: str) -> str:
        """See Host.resolve."""
        return self._files.resolve(path)

    def run(self, *argv: str) -> Completed:
        """See Host.run."""
        return self._outputs.completed(argv)

    def has_output(self, *argv: str) -> bool:
        """See Host.has_output."""
        return self._outputs.holds(argv)

    def saved_arguments(self, *argv: str) -> list[str]:
        """See Host.saved_arguments."""
        return self._outputs.arguments(argv)

    def nvml(self, function: str, *arguments: Any) -> Any:
        """See Host.nvml."""
        raise Absent(f"{function}: a {self._noun_of_kind} holds no NVML answers")

    def netlink(self, protocol: int, request: bytes) -> bytes:
        """See Host.netlink."""
        raise Absent(f"a {self._noun_of_kind} holds no netlink answers")

    def ethtool(self, interface: str, request: bytes) -> bytes:
        """See Host.ethtool."""
        raise Absent(f"a {self._noun_of_kind} holds no ethtool answers")

    def udev(self, path: str) -> Mapping[str, str]:
        """See Host.udev."""
        return properties_in(self._files, path)


class BundleHost(TreeHost):
    """`noun` is what people call the bundle; `notes` what it states of commands that it has no output of."""

    def __init__(
        self,
        kind: str,
        path: str,
        files: Files,
        outputs: Outputs,
        *,
        noun: str,
        observed_at: str | None = None,
        notes: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(kind, path, files, outputs)
        self.observed_at = observed_at
        self._noun = noun
        self._notes = notes or {}

    def read(self, path: str, limit: int = READ_LIMIT_BYTES) -> bytes:
        """See Host.read."""
        with self._naming(path):
            return super().read(path, limit)

    def attributes(self, directory: str, names: Iterable[str]) -> Mapping[str, bytes | ReadError]:
        """See Host.attributes."""
        with self._naming(directory):
            return super().attributes(directory, names)

    def listdir(self, path: str) -> list[str]:
        """See Host.listdir."""
        with self._naming(path):
            return super().listdir(path)

    def readlink(self, path: str) -> str:
        """See Host.readlink."""
        with self._naming(path):
            return super().readlink(path)

    def resolve(self, path: str) -> str:
        """See Host.resolve."""
        with self._naming(path):
            return super().resolve(path)

    def run(self, *argv: str) -> Completed:
        """See Host.run."""
        try:
            return super().run(*argv)
        except Absent:
            why = self._notes.get(argv[0])
            lacking = f"the {self._noun} holds no output of {' '.join(argv)}"
            raise Absent(f"{lacking} ({why})" if why else lacking) from None

    @contextmanager
    def _naming(self, path: str) -> Iterator[None]:
        try:
            yield
        except Absent as why:
            if why.code not in ("ENOENT", "ENOTDIR"):
                raise
            raise Absent(f"the {self._noun} holds no {path}", why.code) from None
