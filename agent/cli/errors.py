"""Messages on stderr: `error:` with one `hint:`, `warning:`; and the exit codes that several commands share."""

from __future__ import annotations

import sys

INTERRUPTED = 130
LINE_CHARACTERS = 1000


class CliError(Exception):
    """The command cannot run as requested: one line, and where it helps the next step as a hint."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


def print_error(text: str, hint: str | None = None) -> None:
    """Print why the command failed."""
    print(printable(f"error: {text}"), file=sys.stderr)
    if hint:
        print(printable(f"hint: {hint}"), file=sys.stderr, flush=True)


def print_warning(text: str) -> None:
    """Print what the user should know; the command goes on."""
    print(printable(f"warning: {text}")[:LINE_CHARACTERS], file=sys.stderr)


def printable(text: str) -> str:
    """One line that is safe on a terminal: names of files and keys of a file may hold escape sequences.

    >>> printable("x\\x1b[31m.json\\n")
    'x?[31m.json?'
    """
    return text if text.isprintable() else "".join(c if c.isprintable() else "?" for c in text)
