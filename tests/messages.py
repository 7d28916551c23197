"""What the command line prints on stderr."""

from __future__ import annotations


def error_lines(text: str) -> list[str]:
    """The lines without the hint, of which there is one at most, at the end."""
    lines = text.splitlines()
    hints = [line for line in lines if line.startswith("hint: ")]
    assert hints in ([], lines[-1:]), text
    return [line for line in lines if line not in hints]
