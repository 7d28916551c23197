"""The one error of the command line."""

from __future__ import annotations


class Refused(Exception):
    """The command cannot do what was asked; the message is the one line that a person reads."""
