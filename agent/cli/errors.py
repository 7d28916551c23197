"""The error of the command line, and the exit codes that several commands share."""

from __future__ import annotations

INTERRUPTED = 130


class CliError(Exception):
    """The command cannot run as requested; the message is printed as one line."""
