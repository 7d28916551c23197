"""Formats a link in a few characters, and the footnotes that explain why a number is unreliable."""

from __future__ import annotations

import re

from agent.model.pci import Link, LinkQuality
from agent.outputs.text.lines import Line, Span, wrap_paragraph

GENERATION = {2.5: 1, 5.0: 2, 8.0: 3, 16.0: 4, 32.0: 5, 64.0: 6, 128.0: 7}
QUALITY_TEXTS = {"asleep": "asleep, not woken", "unreadable": "could not be read"}
_FAR_END = re.compile(r"the wire of [0-9a-f:.]{7,20}: ")
_ADDRESS = re.compile(r",?(?: above)? (?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7],?")


class Footnotes:
    """Footnotes: a mark per reason, in order of first use."""

    def __init__(self) -> None:
        self.marks: dict[str, str] = {}

    def mark(self, quality: LinkQuality) -> str:
        """The mark of this reason, as `(a)`."""
        meaning = QUALITY_TEXTS.get(quality.state, "")
        reason = _ADDRESS.sub("", _FAR_END.sub("", quality.reason or ""))
        text = ": ".join(part for part in (meaning, reason) if part) or quality.state
        return self.marks.setdefault(text, f"({_letters(len(self.marks))})")

    def lines(self, width: int) -> list[Line]:
        """The footnote lines."""
        return [
            line
            for text, mark in self.marks.items()
            for line in wrap_paragraph(text, width, indent="      ", first=f"  {mark} ", style="dim")
        ]


def format_link(link: Link | None, notes: Footnotes) -> list[Span]:
    """Format a link: `Gen5 x16`, reduced links as `Gen5 x8 of x16`, `Gen1 x16 of Gen4 (a)`."""
    if link is None:
        return []
    speed, width = link.speed_gt_s, link.width
    conclusive = link.quality.state == "conclusive"
    text = f"{format_generation(speed)} x{width if width is not None else '?'}"
    if speed is None and not width:
        text = "asleep" if link.quality.state == "asleep" else "link ?"
    less = describe_capability(link)
    text += f" of {less}" if less else ""
    if conclusive:
        return [(text, "warning" if less else "")]
    return [(text, ""), (f" {notes.mark(link.quality)}", "dim")]


def describe_capability(link: Link) -> str:
    """What a reduced link is capable of, where it does not reach it: `Gen5`, `x16`, both; else nothing."""
    speed, width, most, widest = link.speed_gt_s, link.width, link.max_speed_gt_s, link.max_width
    generation = format_generation(most) if most and speed and speed < most else ""
    return f"{generation} {f'x{widest}' if widest and width and width < widest else ''}".strip()


def format_generation(speed: float | None) -> str:
    """The PCIe generation of a lane rate in GT/s.

    >>> format_generation(32.0), format_generation(None)
    ('Gen5', 'Gen?')
    """
    return f"Gen{GENERATION[speed]}" if speed in GENERATION else f"{speed:g}GT/s" if speed else "Gen?"


def _letters(number: int) -> str:
    return chr(ord("a") + number) if number < 26 else f"a{number}"
