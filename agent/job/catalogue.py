"""The table of failure lines: which words a line must have, what it means, what is at fault, what to check next."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, NamedTuple

import msgspec

from agent.toml_file import parse_toml, read_toml

FOLDER = os.path.join(os.path.dirname(__file__), "patterns")
CODES = "codes.toml"
ROW_HEAD = "\n[[row]]"
OTHERS = (CODES, "names.toml", "values.toml")
find_tokens = re.compile(rb"[A-Za-z_]+").findall
# What a line of a role is taken for, the strongest first; the rest explains nothing by itself
_ROLES = (
    "hard xid port dead network error crash missing hang exit exception connect cancel unexplained consequence slow "
    "note fact noise"
)
ROLES = tuple(_ROLES.split())
FAILING = frozenset(ROLES[: ROLES.index("slow")])
ENDING = FAILING - {"xid", "connect", "unexplained"}  # a job that goes on does not have them; connections are retried
_SYMPTOMS = frozenset(("dead", "network", "connect"))  # what did not answer is shown, and why it did not is not


class FailureRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One kind of line."""

    id: str
    form_of: str | None = None  # the row of which it is another form: their lines are judged together
    words: list[str]  # one of them is in each such line, without digits; "~" before it: it may be within a token
    pattern: str
    role: str
    info: str | None = None  # the role of such a line at level INFO, where it is another
    placed: bool = False  # the pattern is also given the place and level that NCCL writes before a message
    general: bool = (
        False  # only that something ended, is gone or took too long: a failure of more before it explains it
    )
    plain: bool = False  # has less of a line than other rows: left out where one of them explains it
    fault: str = "unknown"
    confidence: str | None = None  # by its role, where no other is given
    # {group} of the pattern ("peer__2" is one more place of "peer"); {who}, {where}, {host} of the ranks, {ranks}
    # where they are known; {text}: the line; what is in [[ ]] is left out where a name in it has no value
    summary: str
    next: list[str] = []
    fires: list[str]  # lines that it is for
    silent: list[str]  # lines that are like it, and are not

    def judge(self, role: str) -> str:
        """How sure the cause of a line in a role is, by this one line alone."""
        return self.confidence or ("medium" if role in _SYMPTOMS else "high")


class Pattern:
    """A row: its words are read at once, the rest when a line has one of them, and its pattern is compiled then."""

    __slots__ = ("_row", "_search", "_text", "id", "is_general", "words")

    def __init__(self, text: str) -> None:
        """`text`: of the row, as its file has it, without its head."""
        self.words: list[str] = msgspec.json.decode(_find_line(text, "words"), type=list[str])
        self._text = text
        self.id: str = msgspec.json.decode(_find_line(text, "id"))
        self.is_general = _find_line(text, "general") == "true"
        self._row: FailureRow | None = None
        self._search: Callable[[str], re.Match[str] | None] | None = None

    @property
    def row(self) -> FailureRow:
        """All of it."""
        if self._row is None:
            self._row = parse_toml(self._text, FailureRow)
        return self._row

    def search(self, text: str) -> re.Match[str] | None:
        """Where a line matches."""
        if self._search is None:
            self._search = re.compile(self.row.pattern).search
        return self._search(text)


def _find_line(text: str, name: str) -> str:
    return text.partition(f"\n{name} = ")[2].partition("\n")[0]


@cache
def load_patterns() -> tuple[Pattern, ...]:
    """All rows, those of one file together."""
    patterns: list[Pattern] = []
    for name in sorted(name for name in os.listdir(FOLDER) if name.endswith(".toml") and name not in OTHERS):
        with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
            patterns += map(Pattern, file.read().split(ROW_HEAD)[1:])
    return tuple(patterns)


@cache
def load_general() -> frozenset[str]:
    """The rows whose lines have no more than that something ended, is gone or took too long."""
    return frozenset(pattern.id for pattern in load_patterns() if pattern.is_general)


class WordIndex(NamedTuple):
    """The words of the rows, by one whole token of each: a line is looked through once for tokens."""

    by_token: dict[bytes, tuple[tuple[bytes, tuple[Pattern, ...]], ...]]
    anywhere: tuple[tuple[bytes, tuple[Pattern, ...]], ...]  # words that begin or end within a token


@cache
def load_words() -> WordIndex:
    """Each word, and the rows that have it; one that begins with ~ may be within a token. Raises ValueError for a word
    by which no line, or each line, would be found."""
    words: dict[str, list[Pattern]] = {}
    for pattern in load_patterns():
        for word in pattern.words:
            words.setdefault(word, []).append(pattern)
    by_token: dict[bytes, list[tuple[bytes, tuple[Pattern, ...]]]] = {}
    anywhere = []
    for word, patterns in words.items():
        if word.startswith("~") and word[1:].strip():
            anywhere.append((word[1:].encode(), tuple(patterns)))
            continue
        tokens = find_tokens(word.encode())
        whole = tokens[:-1] if word.endswith("_") else tokens
        if not whole:
            raise ValueError(f"row {patterns[0].row.id}: lines are found by whole words, and {word!r} has none")
        by_token.setdefault(max(whole, key=len), []).append((word.encode(), tuple(patterns)))
    return WordIndex({token: tuple(rows) for token, rows in by_token.items()}, tuple(anywhere))


@cache
def load_codes() -> dict[str, dict[str, dict[str, Any]]]:
    """What numbers mean, by table and number."""
    return read_toml(os.path.join(FOLDER, CODES), dict[str, dict[str, dict[str, Any]]])


def find_patterns(line: bytes, tokens: Iterable[bytes] | None = None) -> tuple[Pattern, ...]:
    """The rows that a line may match."""
    index = load_words()
    rows = [
        row
        for token in index.by_token.keys() & (find_tokens(line) if tokens is None else tokens)
        for row in index.by_token[token]
    ]
    found = {pattern for word, patterns in (*rows, *index.anywhere) if word in line for pattern in patterns}
    return tuple(pattern for pattern in load_patterns() if pattern in found) if found else ()
