"""What each process of a job prints, as forms: a message without its numbers and addresses, and these as its values.

Most ranks of a job print the same forms with the same values. What one of them prints otherwise is found in
`causes.differing_ranks`; here lines are only collected, few of each form, in bounded memory.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import NamedTuple

from agent.job.lines import Prefixes, split_line
from probes.text import lazy_pattern

_MOST_EFFORT = 150_000  # for taking lines apart, of all files together: one for a line of NCCL
_OF_OTHERS = 4  # effort for a line of others
MOST_OF_A_KIND = 2048  # lines of one file that differ in digits only
_MOST_FORMS = 4000
_MOST_ROWS = 300_000  # of values, of all forms
_OF_A_PROCESS = 24  # rows of one form
_LENGTH = 300  # characters of a message
_VALUE = lazy_pattern(  # numbers, addresses, hex
    r"0x[0-9a-fA-F]+|(?:(?<![A-Za-z_])[a-f]{1,8})?\d[0-9a-f]*(?:(?::+[0-9a-f]+){2,}|(?:\.[0-9a-f]+)*)"
)
# After such a line a process prints what its own way of failing lets it print
_FAILS = lazy_pattern(
    r"Traceback \(most|\bFATAL\b|\bERROR\b|\[E\d{3,4} |\w(?:Error|Exception): |\bCUDA error\b|\b[Aa]bort"
)
SLOT = "\0"
_WORD = lazy_pattern(r"[A-Za-z]{3}")
_INFO = lazy_pattern(
    rb"(?:\A|[^\w.-])([A-Za-z0-9][\w.-]{0,63}):(\d{1,8}):\d{1,8} \[\d{1,3}\] (?:\S{1,100} )?NCCL INFO ([^\r\n]{0,300})"
)
_OWN_RANK = lazy_pattern(r"\[rank\d{1,7}\]:? ?")


class LineWriter(NamedTuple):
    """Who wrote a line, as far as the line shows it; `file` where it shows nothing else."""

    rank: int | None
    host: str | None
    pid: int | None
    task: int | None
    file: int | None


class FormLine(NamedTuple):
    """The first line of a form of one process."""

    file: int
    number: int
    nccl: bool


class LineForm:
    """One form, with the values of each process."""

    __slots__ = ("first", "rows", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.first: dict[LineWriter, FormLine] = {}
        self.rows: dict[LineWriter, list[tuple[str, ...]]] = {}

    def write(self, values: tuple[str, ...]) -> str:
        """The message that has these values."""
        parts = self.text.split(SLOT)
        return "".join(part + value for part, value in zip(parts, (*values, ""), strict=True))


class LineForms:
    """Collects the forms of a job's lines."""

    def __init__(self) -> None:
        self.forms: dict[str, LineForm] = {}
        self.lines: dict[LineWriter, int] = defaultdict(int)
        self.is_cut = False  # a limit was reached: that a process did not print a form shows nothing
        self._effort = self._rows = 0
        self._failed: set[LineWriter] = set()

    def add(self, raw: bytes, number: int, file: int, prefixes: Prefixes, count: int) -> None:
        """One line; `count`: the number of it among those of the file that differ in digits only."""
        if count == MOST_OF_A_KIND or self._effort >= _MOST_EFFORT:
            self.is_cut = True
        if self._effort >= _MOST_EFFORT:
            return
        info = _INFO.search(raw)
        self._effort += 1 if info is not None else _OF_OTHERS
        if info is not None:  # as most lines of many logs: it is faster so
            host = info[1].decode().partition(".")[0]
            message = info[3].decode("utf-8", "replace")
            self._add_message(LineWriter(None, host, int(info[2]), None, None), message, FormLine(file, number, True))
            return
        for line in split_line(raw, number, file, prefixes):
            known = line.rank is not None or line.pid is not None or line.task is not None
            writer = LineWriter(line.rank, line.host, line.pid, line.task, None if known else line.file)
            if line.level == "WARN" or (line.level is None and _FAILS.search(line.text[:_LENGTH]) is not None):
                self._failed.add(writer)
            text = _OWN_RANK.sub("", line.text[: _LENGTH + 20], count=1) if line.rank is not None else line.text
            self._add_message(writer, text, FormLine(file, number, line.level is not None))

    def _add_message(self, writer: LineWriter, message: str, place: FormLine) -> None:
        if writer in self._failed:
            return
        values: list[str] = []

        def take(match: re.Match[str]) -> str:
            values.append(match[0])
            return SLOT

        text = _VALUE.sub(take, message.replace(SLOT, " ")[:_LENGTH].strip())
        if _WORD.search(text) is None:
            return  # a dump of bytes, a row of a table
        form = self.forms.get(text)
        if form is None:
            if len(self.forms) >= _MOST_FORMS:
                self.is_cut = True
                return
            form = self.forms[text] = LineForm(text)
        self.lines[writer] += 1
        rows = form.rows.setdefault(writer, [])
        if not rows:
            form.first[writer] = place
        if len(rows) < _OF_A_PROCESS and self._rows < _MOST_ROWS:
            rows.append(tuple(values))
            self._rows += 1
