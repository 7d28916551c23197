"""Messages on stderr: `error:` with one `hint:`, `warning:`; and the exit codes that several commands share."""

from __future__ import annotations

import os
import re
import shlex
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
        print(printable(f"hint: {name_program(hint)}"), file=sys.stderr, flush=True)


def print_warning(text: str) -> None:
    """Print what the user should know; the command goes on."""
    print(printable(f"warning: {text}")[:LINE_CHARACTERS], file=sys.stderr)


def program_name(argv: list[str] | None = None) -> str:
    """The program as it was started, so that a command that is printed can be pasted; installed, its plain name.

    >>> program_name([".venv/bin/fabricscope", "scan"]), program_name(["/usr/bin/python3", "-m", "fabricscope", "scan"])
    ('.venv/bin/fabricscope', '/usr/bin/python3 -m fabricscope')
    >>> program_name(["/usr/bin/python3", ".venv/bin/fabricscope"]), program_name(["./fabricscope.pyz"])
    ('.venv/bin/fabricscope', './fabricscope.pyz')
    >>> program_name(["python3", "-m", "pytest"])
    'fabricscope'
    """
    words = list(sys.orig_argv if argv is None else argv)
    if ("-m", "fabricscope") in zip(words, words[1:], strict=False):  # noqa: RUF007  # itertools is one more import
        return f"{shlex.quote(words[0])} -m fabricscope"
    path = next((word for word in words[:2] if re.fullmatch(r"fabricscope(\.pyz)?", os.path.basename(word))), "")
    folder = os.path.dirname(path)
    on_path = not folder or folder in os.environ.get("PATH", "").split(os.pathsep)
    return os.path.basename(path) or "fabricscope" if on_path else shlex.quote(path)


def name_program(text: str) -> str:
    """The text with its commands as this program was started."""
    name = program_name()
    return text if name == "fabricscope" else re.sub(r"(?<![\w./-])fabricscope(?= [a-z-])", lambda _: name, text)


def printable(text: str) -> str:
    """One line that is safe on a terminal: names of files and keys of a file may hold escape sequences.

    >>> printable("x\\x1b[31m.json\\n")
    'x?[31m.json?'
    """
    return text if text.isprintable() else "".join(c if c.isprintable() else "?" for c in text)
