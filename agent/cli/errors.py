"""Messages on stderr: `error:` with one `hint:`, `warning:`; and the exit codes that several commands share."""

from __future__ import annotations

import os
import re
import sys

INTERRUPTED = 130
LINE_CHARACTERS = 1000


class CliError(Exception):
    """The command cannot run as requested: one line, and where it helps the next step as a hint."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


class ErrorTranslation:
    """Within it errors of these kinds become the command's: their text is its message, behind what it is about. Raises
    CliError."""

    def __init__(self, *kinds: type[Exception], about: str | None = None, hint: str | None = None) -> None:
        self._kinds, self._about, self._hint = kinds, about, hint

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        if isinstance(error, self._kinds):
            text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise CliError(f"{self._about}: {text}" if self._about else text, self._hint) from error


def print_error(text: str, hint: str | None = None) -> None:
    """Print why the command failed."""
    print(printable(f"error: {text}"), file=sys.stderr)
    if hint:
        print(printable(f"hint: {name_program(hint)}"), file=sys.stderr, flush=True)


def print_warning(text: str) -> None:
    """Print a warning; the command goes on."""
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
    from shlex import quote  # lazy: compiles a pattern, and a scan names the program only in a hint

    words = list(sys.orig_argv if argv is None else argv)
    if ("-m", "fabricscope") in zip(words, words[1:], strict=False):  # noqa: RUF007  # itertools is one more import
        return f"{quote(words[0])} -m fabricscope"
    path = next((word for word in words[:2] if re.fullmatch(r"fabricscope(\.pyz)?", os.path.basename(word))), "")
    folder = os.path.dirname(path)
    on_path = not folder or folder in os.environ.get("PATH", "").split(os.pathsep)
    return os.path.basename(path) or "fabricscope" if on_path else quote(path)


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


_READERS = "a file is read by `fabricscope scan PATH`, the log of a job by `fabricscope job PATH`"
_FILE_OPTIONS = ("--from", "--file", "--input", "--in", "--path", "--log", "--dump")  # of other tools
# How commands that take no path are given one
_PATH_HINTS = {
    "scan": "one source at a time: `fabricscope diff OLD NEW` compares two, and a folder holds all outputs of one host",
    "explain": _READERS,
    "fabricscope": _READERS,
    "export": "a report is given with --report FILE, another source with --source PATH",
    "check": "a report is given with --report FILE, another source with --source PATH",
    "recommend": "a report is given with --report FILE, another source with --source PATH",
    "capture": "the archive is named with --output FILE, another source with --source PATH",
    "fleet": "a dataset is given with --dataset DIR",
}


def hint_path(command: str, word: str) -> str | None:
    """How a path is given to a command that does not take it as this argument; none where the word is no path."""
    return _PATH_HINTS.get(command) if os.path.exists(word) or "/" in word else None


def _is_near(word: str, name: str) -> bool:
    from difflib import SequenceMatcher

    return name.startswith(word) or SequenceMatcher(None, word, name).ratio() >= 0.75


def explain_usage_error(message: str, words: list[str]) -> tuple[str, str | None]:
    """Message and hint of a parser's error about the command of these words, "fabricscope scan".

    >>> explain_usage_error("No such option: --brif Did you mean --brief?", ["fabricscope", "scan"])
    ('No such option: --brif', 'did you mean --brief?')
    >>> explain_usage_error("Missing argument 'SHELL'. Choose from:\\n\\tbash,\\n\\tzsh", ["fabricscope", "completion"])
    ("Missing argument 'SHELL': choose from bash, zsh", 'fabricscope completion --help shows how it is used')
    >>> explain_usage_error("Invalid value for '--timeout': 'x' is not a valid float range.", ["fabricscope"])[0]
    "Invalid value for '--timeout': 'x' is not a number"
    >>> explain_usage_error("Got unexpected extra argument(s) ()", ["fabricscope", "check"])
    ("Too many arguments: ''", 'fabricscope check --help shows how it is used')
    """
    message, _, near = re.sub(r"\s+", " ", message).strip().partition("Did you mean ")
    message = re.sub(r"is not a valid (float|integer)( range)?\b", "is not a number", message.strip().rstrip("."))
    message = message.replace(". Choose from: ", ": choose from ").replace(
        "Got unexpected extra argument(s)", "Too many arguments:"
    )
    before, options, names_given = message.rpartition(" (Possible options: ")
    if options:
        message = before
        names = [name for name in names_given[:-1].split(", ") if _is_near(before.rpartition(" ")[2], name)][:2]
        near = f"{' or '.join(names)}?" if names else ""
    extra = re.search(r"^Too many arguments: \((.*?)\)$|^No such command '(.*)'$", message)
    if extra and not near:
        word = (extra[1] or extra[2] or "").split(" ")[-1]
        message = message.replace(f"({extra[1]})", extra[1] or "''")
        hint = hint_path(words[1] if len(words) > 1 else words[0], word) if words else None
        if hint:
            return message, hint
    if message.removeprefix("No such option: ") in _FILE_OPTIONS:
        return message, _READERS
    if near:
        return message, f"did you mean {near}"
    return message, f"{' '.join(words)} --help shows how it is used" if words else None
