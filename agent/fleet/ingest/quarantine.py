"""Reports that could not be taken: their bytes, and a line each that states why.

Workers keep the bytes beside their epochs. When all is read, each refused report is a file of the quarantine; where
one input (a file of lines, an archive, stdin) holds more than a few of them, they are one archive and one line with
their number: an input of a megabyte can hold a million of them.
"""

from __future__ import annotations

import gzip
import os
import re
import tarfile
from collections.abc import Iterable, Iterator
from hashlib import sha256
from io import BytesIO, FileIO

import msgspec

from agent.fleet.dataset import QUARANTINE
from agent.fleet.ingest.files import Staging, make_staged_folder
from agent.fleet.store import Store

REASONS = f"{QUARANTINE}/reasons.ndjson"
KEPT_BYTES = 4 << 20  # of one report
BUDGET_BYTES, BUDGET_REPORTS = 256 << 20, 100_000  # of one worker in one run; the line is written in any case
INPUT_BYTES, INPUT_REPORTS = 64 << 20, 10_000  # of one input, so that it leaves room for others
FEW = 3  # of one input: each is a file and a line
MOST_LINES = 100_000
_NAMED = (".json", ".json.gz", ".json.zst")  # what an ingest takes in a folder
_ARCHIVE = ".tar.gz"
_UNFIT = re.compile(r"[^A-Za-z0-9._-]")
_TAKEN_FROM = re.compile(r"[0-9a-f]{16}_.*")  # a quarantine's own file
QUARANTINE_FILE = re.compile(rf"{QUARANTINE}/[0-9a-f]{{16}}_[A-Za-z0-9._-]{{1,87}}")


class RefusedReport(msgspec.Struct, frozen=True):
    """Why a report was not taken, or several of one input."""

    at: str  # when it was tried, RFC 3339
    source: str
    reason: str
    size: int
    sha256: str  # of several: over those of the reports
    file: str | None  # below the dataset; null: no bytes, or no room was left for them
    count: int = 1  # reports


class RefusedItem(msgspec.Struct, array_like=True, frozen=True):
    """A report that was not taken, and where a worker keeps its bytes."""

    source: str
    within: str  # the input that holds it with others; "": it is an input of its own
    number: int  # its place there
    reason: str
    size: int
    sha256: str
    path: str = ""
    offset: int = 0
    kept: int = 0  # bytes

    def read(self) -> bytes:
        """The bytes that were kept. Raises OSError."""
        if not self.kept:
            return b""
        with open(self.path, "rb", buffering=0) as file:
            return os.pread(file.fileno(), self.kept, self.offset)


class RefusedBytes:
    """Of one worker, in one file."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file: FileIO | None = None
        self._size = self._count = 0
        self._inputs: dict[str, tuple[int, int]] = {}  # that hold several: reports and bytes

    def keep(self, source: str, within: str, number: int, why: str, data: bytes) -> RefusedItem:
        """Keep what can be kept. Raises OSError."""
        digest, excerpt, offset = sha256(data).hexdigest(), data[:KEPT_BYTES], self._size
        if not self._has_room(within, len(excerpt)):
            excerpt = b""
        if excerpt:
            if self._file is None:
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
                self._file = open(os.open(self._path, flags, 0o600), "wb", buffering=0)  # noqa: SIM115  # to the end
            view = memoryview(excerpt)
            while view:
                view = view[self._file.write(view) or 0 :]
            self._size, self._count = self._size + len(excerpt), self._count + 1
        return RefusedItem(source, within, number, why[:500], len(data), digest, self._path, offset, len(excerpt))

    def _has_room(self, within: str, size: int) -> bool:
        if self._count >= BUDGET_REPORTS or self._size + size > BUDGET_BYTES:
            return False
        if within:
            reports, bytes_ = self._inputs.get(within, (0, 0))
            if reports >= INPUT_REPORTS or bytes_ + size > INPUT_BYTES:
                return False
            self._inputs[within] = reports + 1, bytes_ + size
        return True


class _Input:
    """What was refused of one input."""

    def __init__(self) -> None:
        self.count = self.size = 0
        self.refusals: list[RefusedItem] = []

    def add(self, refusal: RefusedItem) -> None:
        self.count += 1
        self.size += refusal.size
        if refusal.kept or len(self.refusals) <= FEW:
            self.refusals.append(refusal)


class Quarantine:
    """What one ingest puts there."""

    def __init__(self, store: Store, staging: Staging, now: str) -> None:
        self._store, self._staging, self._now = store, staging, now
        self._inputs: dict[str, _Input] = {}
        self._files: set[str] = set()

    def add(self, refusals: list[RefusedItem]) -> None:
        """Note what was refused."""
        for refusal in refusals:
            self._inputs.setdefault(refusal.within or refusal.source, _Input()).add(refusal)

    def write(self) -> list[RefusedReport]:
        """Write files; the reasons of what is not there already. Raises OSError."""
        reasons: list[RefusedReport] = []
        for name, refused in self._inputs.items():
            refusals = sorted(refused.refusals, key=lambda refusal: refusal.number)
            if refused.count > FEW:
                reasons += self._write_archive(name, refused, refusals)
            else:
                reasons += [reason for refusal in refusals for reason in self._write_report(refusal)]
        for path in sorted(self._files):
            self._staging.finished(path, self._store)
        return reasons

    def _write_report(self, refusal: RefusedItem) -> Iterator[RefusedReport]:
        if self._has(refusal):
            return
        path = None
        if refusal.kept:
            base = _make_base(refusal.source)
            if not base.lower().endswith(_NAMED):  # a line of a file, a member of a stream
                base += ".json"
            path = f"{QUARANTINE}/{refusal.sha256[:16]}_{base}"
            self._write(path, refusal.read())
        source = _clean_name(refusal.source)
        yield RefusedReport(self._now, source, refusal.reason, refusal.size, refusal.sha256, path)

    def _write_archive(self, name: str, refused: _Input, refusals: list[RefusedItem]) -> Iterator[RefusedReport]:
        """What this quarantine holds, and is tried again, has the digest that its name begins with."""
        digests = sha256()
        for refusal in refusals:
            if refusal.kept:
                digests.update(bytes.fromhex(refusal.sha256))
        digest = digests.hexdigest()
        base = _make_base(name)
        if base.startswith(f"{digest[:16]}_") and self._read(f"{QUARANTINE}/{base}") is not None:
            return
        path = None
        if any(refusal.kept for refusal in refusals):
            path = f"{QUARANTINE}/{digest[:16]}_{base.removesuffix(_ARCHIVE)}{_ARCHIVE}"
            self._write(path, _pack(refusals))
        examples = "; ".join(f"{_find_place(name, refusal)}: {refusal.reason[:100]}" for refusal in refusals[:FEW])
        reason = _clean_name(f"{refused.count:,} of its reports, the first: {examples}")[:500]
        yield RefusedReport(self._now, _clean_name(name), reason, refused.size, digest, path, refused.count)

    def _write(self, path: str, data: bytes) -> None:
        if path in self._files:
            return
        local = make_staged_folder(self._staging.folder, path)
        with open(os.open(local, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as file:
            file.write(data)
        self._files.add(path)

    def _has(self, refusal: RefusedItem) -> bool:
        """Whether it is a file of this quarantine that was tried again: its bytes and its reason are there."""
        base = os.path.basename(refusal.source)
        data = self._read(f"{QUARANTINE}/{base}") if _TAKEN_FROM.fullmatch(base) else None
        return data is not None and sha256(data).hexdigest() == refusal.sha256

    def _read(self, path: str) -> bytes | None:
        try:
            return self._store.read(path)
        except OSError:
            return None


def update_reasons(store: Store, reasons: list[RefusedReport]) -> tuple[bytes, int] | None:
    """reasons.ndjson with new lines, and of how many reports it is; None where no line is new. Raises OSError."""
    try:
        lines = store.read(REASONS).splitlines()
    except FileNotFoundError:
        lines = []
    known, counts = set(), []
    for line in lines:
        try:
            refused = msgspec.json.decode(line, type=RefusedReport)
        except (msgspec.DecodeError, UnicodeDecodeError):
            counts.append(1)
            continue
        known.add((refused.sha256, refused.source))
        counts.append(refused.count)
    new = {(reason.sha256, reason.source): reason for reason in reasons if (reason.sha256, reason.source) not in known}
    if not new:
        return None
    encode = msgspec.json.Encoder(order="deterministic").encode
    lines += [encode(refused_report) for refused_report in new.values()]
    counts += [refused_report.count for refused_report in new.values()]
    return b"\n".join(lines[-MOST_LINES:]) + b"\n", sum(counts[-MOST_LINES:])


def _pack(refusals: Iterable[RefusedItem]) -> bytes:
    """The same bytes for the same reports."""
    data = BytesIO()
    with (
        gzip.GzipFile(fileobj=data, mode="wb", compresslevel=1, mtime=0, filename="") as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive,
    ):
        for number, refusal in enumerate(refusals):
            if refusal.kept:
                base = _make_base(refusal.source.rpartition(":")[2])
                suffix = "" if base.lower().endswith(_NAMED) else ".json"
                member = tarfile.TarInfo(f"{number:06d}_{base}{suffix}")
                member.size = refusal.kept
                archive.addfile(member, BytesIO(refusal.read()))
    return data.getvalue()


def _make_base(source: str) -> str:
    return _UNFIT.sub("_", os.path.basename(source)).lstrip(".")[-80:] or "report"


def _find_place(name: str, refusal: RefusedItem) -> str:
    """Of a report within its input; the input's end has none."""
    return refusal.source.removeprefix(f"{name}:") if refusal.source != name else "at its end"


def _clean_name(text: str) -> str:
    """File names may hold bytes that are no text."""
    return text.encode("utf-8", "backslashreplace").decode()
