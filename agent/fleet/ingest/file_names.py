"""What a file is by its name: the same in a folder and in an archive."""

from __future__ import annotations

import re

import msgspec

from agent.fleet.dataset import MANIFEST
from agent.fleet.ingest.quarantine import REASONS, RefusedReport

REPORTS = (".json", ".json.gz", ".json.zst")


STREAMS = (".ndjson", ".jsonl", ".tar", ".tgz", ".tzst")


HEAD_BYTES = 1 << 16  # of a file, for `ours`


_PACKED = (".gz", ".zst", ".bz2", ".xz")


_OURS = tuple(path.rpartition("/")[2] for path in (MANIFEST, REASONS))


_MANIFEST = re.compile(rb'\s*\{\s*"format"\s*:\s*"fabricscope\.dataset/')


def kind_of(path: str) -> str | None:
    """report, stream; None: neither by its name.

    Hidden files are neither: who writes a report names it so until it is whole.
    """
    parts = path.split("/")
    if any(part.startswith(".") and part not in (".", "..") for part in parts):
        return None
    low = parts[-1].lower()
    if low.endswith(REPORTS):
        return "report"
    for packed in _PACKED:
        low = low.removesuffix(packed)
    return "stream" if low.endswith(STREAMS) else None


def may_be_ours(path: str) -> bool:
    """Whether it is named as files of a dataset that are no reports; `ours` recognizes them by their beginning."""
    return path.rpartition("/")[2] in _OURS


def is_ours(head: bytes) -> bool:
    """Whether it is a dataset's manifest, or the reasons of a quarantine.

    >>> is_ours(b'{"format": "fabricscope.dataset/1", "generation": 3'), is_ours(b'{"schema": "fabricscope.report/1"}')
    (True, False)
    """
    if _MANIFEST.match(head):
        return True
    try:
        msgspec.json.decode(head.partition(b"\n")[0], type=RefusedReport)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True
