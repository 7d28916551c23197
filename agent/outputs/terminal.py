"""Prints styled lines to a terminal; the only module that imports rich."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from rich.console import Console
from rich.text import Text

from agent.outputs.text.lines import Line, clean

STYLES = {
    "": "",
    "dim": "dim",
    "bold": "bold",
    "head": "bold underline",
    "ok": "green",
    "info": "cyan",
    "warning": "yellow",
    "error": "bold red",
    "critical": "bold white on red",
}


def print_styled(lines: Sequence[Line], stream: TextIO) -> None:
    """Print a page with colours, without folding its lines."""
    console = Console(file=stream, force_terminal=True, highlight=False, soft_wrap=True, width=500)
    for line in lines:
        console.print(Text.assemble(*((clean(text), STYLES[style]) for text, style in line)))
