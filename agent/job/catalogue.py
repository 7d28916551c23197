"""The table of failure lines: which words a line must have, what it means, who is at fault, what to check next."""

from __future__ import annotations

import os
import re
from functools import cache
from typing import Any

import msgspec

from agent.toml_file import read_toml

FOLDER = os.path.join(os.path.dirname(__file__), "patterns")
CODES = "codes.toml"
OTHERS = (CODES, "names.toml", "values.toml")
# What a line of a role is taken for, the strongest first; the rest explains nothing by itself
ROLES = (
    "hard", "xid", "port", "dead", "network", "error", "crash", "missing", "hang", "exit", "exception", "connect",
    "cancel", "consequence", "slow", "note", "fact", "noise",
)  # fmt: skip


class Row(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One kind of line."""

    id: str
    words: list[str]  # one of them is in each such line; without digits, which the quick search leaves out
    pattern: str
    role: str
    info: str | None = None  # the role of such a line at level INFO, where it is another
    fault: str = "unknown"
    confidence: str = "high"
    summary: str  # {group} of the pattern; {who}, {where}, {host} of the ranks; {text}: the line
    next: list[str] = []
    fires: list[str]  # lines that it is for
    silent: list[str]  # lines that are like it, and are not


class Rows(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One file of the table."""

    row: list[Row]


class Pattern:
    """A row, compiled."""

    __slots__ = ("row", "search")

    def __init__(self, row: Row) -> None:
        self.row = row
        self.search = re.compile(row.pattern).search


@cache
def load_rows() -> tuple[Row, ...]:
    """All rows, those of one file together."""
    names = sorted(name for name in os.listdir(FOLDER) if name.endswith(".toml") and name not in OTHERS)
    return tuple(row for name in names for row in read_toml(os.path.join(FOLDER, name), Rows).row)


@cache
def load_patterns() -> tuple[Pattern, ...]:
    """All rows, compiled."""
    return tuple(Pattern(row) for row in load_rows())


@cache
def load_words() -> tuple[tuple[bytes, tuple[Pattern, ...]], ...]:
    """Each word, and the rows that have it."""
    words: dict[bytes, list[Pattern]] = {}
    for pattern in load_patterns():
        for word in pattern.row.words:
            words.setdefault(word.encode(), []).append(pattern)
    return tuple((word, tuple(patterns)) for word, patterns in words.items())


@cache
def load_codes() -> dict[str, dict[str, dict[str, Any]]]:
    """What numbers mean, by table and number."""
    return read_toml(os.path.join(FOLDER, CODES), dict[str, dict[str, dict[str, Any]]])


def find_patterns(line: bytes) -> tuple[Pattern, ...]:
    """The rows that a line may match."""
    return tuple(dict.fromkeys(pattern for word, patterns in load_words() if word in line for pattern in patterns))
