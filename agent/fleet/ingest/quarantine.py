"""Reports that could not be taken: their bytes, and a line each that says why."""

from __future__ import annotations

import os
import re
from hashlib import sha256

import msgspec

from agent.fleet.dataset import QUARANTINE
from agent.fleet.store import Store

REASONS = f"{QUARANTINE}/reasons.ndjson"
KEPT_BYTES = 4 << 20  # of one report
BUDGET_BYTES = 256 << 20  # of one worker in one run; the line is written in any case
MOST_LINES = 100_000
_UNFIT = re.compile(r"[^A-Za-z0-9._-]")


class Reason(msgspec.Struct, frozen=True):
    """Why a report was not taken."""

    at: str  # when it was tried, RFC 3339
    source: str
    reason: str
    size: int
    sha256: str
    file: str | None  # below the dataset; null: no bytes, or no room was left for them


class Quarantine:
    """Of one worker: files go where its other files go."""

    def __init__(self, folder: str, now: str) -> None:
        self._folder, self._now = folder, now
        self._left = BUDGET_BYTES
        self.reasons: list[Reason] = []
        self.files: set[str] = set()

    def add(self, source: str, why: str, data: bytes) -> None:
        """Keep what can be kept. Raises OSError."""
        digest = sha256(data).hexdigest()
        kept = data[:KEPT_BYTES]
        path = None
        if kept and len(kept) <= self._left:
            base = _UNFIT.sub("_", os.path.basename(source)).lstrip(".")[-80:] or "report"
            path = f"{QUARANTINE}/{digest[:16]}_{base}"
            if path not in self.files:
                local = os.path.join(self._folder, path)
                os.makedirs(os.path.dirname(local), exist_ok=True)
                with open(local, "wb") as file:
                    file.write(kept)
                self._left -= len(kept)
                self.files.add(path)
        self.reasons.append(Reason(self._now, _plain(source), why[:500], len(data), digest, path))

    def taken(self) -> list[Reason]:
        """The reasons since the last time."""
        reasons, self.reasons = self.reasons, []
        return reasons


def updated(store: Store, reasons: list[Reason]) -> bytes | None:
    """reasons.ndjson with new lines; None where there is none that is new. Raises OSError."""
    try:
        lines = store.read(REASONS).splitlines()
    except FileNotFoundError:
        lines = []
    known = set()
    for line in lines:
        try:
            told = msgspec.json.decode(line, type=Reason)
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
        known.add((told.sha256, told.source))
    new = {(each.sha256, each.source): each for each in reasons if (each.sha256, each.source) not in known}
    if not new:
        return None
    encode = msgspec.json.Encoder(order="deterministic").encode
    lines += [encode(each) for each in new.values()]
    return b"\n".join(lines[-MOST_LINES:]) + b"\n"


def _plain(text: str) -> str:
    """File names may hold bytes that are no text."""
    return text.encode("utf-8", "backslashreplace").decode()
