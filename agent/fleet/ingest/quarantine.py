"""Reports that could not be taken: their bytes, and a line each that says why."""

from __future__ import annotations

import os
import re
from hashlib import sha256

import msgspec

from agent.fleet.dataset import QUARANTINE
from agent.fleet.ingest.files import make_staged_folder
from agent.fleet.store import Store

REASONS = f"{QUARANTINE}/reasons.ndjson"
KEPT_BYTES = 4 << 20  # of one report
BUDGET_BYTES = 256 << 20  # of one worker in one run; the line is written in any case
MOST_LINES = 100_000
_NAMED = (".json", ".json.gz", ".json.zst")  # what an ingest takes in a folder
_UNFIT = re.compile(r"[^A-Za-z0-9._-]")
_TAKEN_FROM = re.compile(r"[0-9a-f]{16}_.*")  # a quarantine's own file
QUARANTINE_FILE = re.compile(rf"{QUARANTINE}/[0-9a-f]{{16}}_[A-Za-z0-9._-]{{1,85}}")


class RefusedReport(msgspec.Struct, frozen=True):
    """Why a report was not taken."""

    at: str  # when it was tried, RFC 3339
    source: str
    reason: str
    size: int
    sha256: str
    file: str | None  # below the dataset; null: no bytes, or no room was left for them


class Quarantine:
    """Of one worker: files go where its other files go."""

    def __init__(self, store: Store, folder: str, now: str) -> None:
        self._store, self._folder, self._now = store, folder, now
        self._left = BUDGET_BYTES
        self._again = 0
        self.reasons: list[RefusedReport] = []
        self.files: set[str] = set()

    def add(self, source: str, why: str, data: bytes) -> None:
        """Keep what can be kept. Raises OSError."""
        if self._has(source, data):
            self._again += 1
            return
        digest = sha256(data).hexdigest()
        excerpt = data[:KEPT_BYTES]
        path = None
        if excerpt and len(excerpt) <= self._left:
            base = _UNFIT.sub("_", os.path.basename(source)).lstrip(".")[-80:] or "report"
            if not base.lower().endswith(_NAMED):  # a line of a file, a member of a stream
                base += ".json"
            path = f"{QUARANTINE}/{digest[:16]}_{base}"
            if path not in self.files:
                local = make_staged_folder(self._folder, path)
                with open(os.open(local, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as file:
                    file.write(excerpt)
                self._left -= len(excerpt)
                self.files.add(path)
        self.reasons.append(RefusedReport(self._now, _clean_name(source), why[:500], len(data), digest, path))

    def taken(self) -> tuple[list[RefusedReport], int]:
        """The reasons since the last time, and how often something was tried again that is there already."""
        reasons, again = self.reasons, self._again
        self.reasons, self._again = [], 0
        return reasons, again

    def _has(self, source: str, data: bytes) -> bool:
        """Whether it is a file of this quarantine that was tried again: its bytes and its reason are there."""
        base = os.path.basename(source)
        if not _TAKEN_FROM.fullmatch(base):
            return False
        try:
            return self._store.read(f"{QUARANTINE}/{base}") == data
        except OSError:
            return False


def update_reasons(store: Store, reasons: list[RefusedReport]) -> bytes | None:
    """reasons.ndjson with new lines; None where there is none that is new. Raises OSError."""
    try:
        lines = store.read(REASONS).splitlines()
    except FileNotFoundError:
        lines = []
    known = set()
    for line in lines:
        try:
            refused = msgspec.json.decode(line, type=RefusedReport)
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
        known.add((refused.sha256, refused.source))
    new = {(reason.sha256, reason.source): reason for reason in reasons if (reason.sha256, reason.source) not in known}
    if not new:
        return None
    encode = msgspec.json.Encoder(order="deterministic").encode
    lines += [encode(refused_report) for refused_report in new.values()]
    return b"\n".join(lines[-MOST_LINES:]) + b"\n"


def _clean_name(text: str) -> str:
    """File names may hold bytes that are no text."""
    return text.encode("utf-8", "backslashreplace").decode()
