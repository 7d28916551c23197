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
    print(f"error: {text}", file=sys.stderr)
    if hint:
        print(f"hint: {hint}", file=sys.stderr, flush=True)


def print_warning(text: str) -> None:
    """Print what the user should know; the command goes on."""
    print(f"warning: {text}"[:LINE_CHARACTERS], file=sys.stderr)
