"""A sentence in which a tool states a fault: the shape of the rows of `table.py` and its parts."""

from __future__ import annotations

import re

from probes.named_tuple import NamedTuple
from probes.text import lazy_pattern

DEVICE = r"(?P<what>[a-zA-Z][\w.-]{1,40})"
BDF = r"(?P<bdf>[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7])"
# What a program in the background prints is behind a prompt
_BEGIN = r"^(?:\[?[\w-]{1,40}@[\w.-]{1,64}[^\n$#%]{0,100}[$#%][ \t]{0,8})?[ \t]{0,40}"


class ToolSentence(NamedTuple):
    """A sentence and the code of what it means. Groups: `bdf`, `gpu` and `part` name the part, others are
    details."""

    code: str
    tool: str | None  # in place of whose output it stands
    form: str  # some plain text of it is in each line that it fits
    pattern: re.Pattern[str]


def row(code: str, form: str, tool: str | None = None) -> ToolSentence:
    """A row; "^" in its form is the begin of a line, behind a prompt too."""
    form = _BEGIN + form[1:] if form.startswith("^") else form
    return ToolSentence(code, tool, form, lazy_pattern(form))


def rows_of(tool: str, *rows: tuple[str, str]) -> tuple[ToolSentence, ...]:
    """Rows of one tool: each a code and a form."""
    return tuple(row(code, form, tool) for code, form in rows)
