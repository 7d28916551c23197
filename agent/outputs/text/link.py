"""A link in a few characters, and the notes below the tree that say why a number is not believed."""

from __future__ import annotations

import re

from agent.model.pci import Link, LinkQuality
from agent.outputs.text.lines import Line, Span, paragraph

GENERATION = {2.5: 1, 5.0: 2, 8.0: 3, 16.0: 4, 32.0: 5, 64.0: 6, 128.0: 7}
MEANING = {
    "idle": "idle, so it says nothing of the speed under load",
    "untrusted": "not believed",
    "asleep": "asleep, and left so",
    "unreadable": "could not be read",
}
_FAR_END = re.compile(r"the wire of [0-9a-f:.]{7,20}: ")


class Notes:
    """Footnotes: a mark for each reason that occurs, in the order in which they first occur."""

    def __init__(self) -> None:
        self.marks: dict[str, str] = {}

    def mark(self, quality: LinkQuality) -> str:
        """`(a)` of this reason."""
        meaning = MEANING.get(quality.state, quality.state)
        reason = _FAR_END.sub("", quality.reason or "")
        text = f"{meaning}: {reason}" if reason else meaning
        return self.marks.setdefault(text, f"({_letters(len(self.marks))})")

    def lines(self, width: int) -> list[Line]:
        """What the marks stand for."""
        return [
            each
            for text, mark in self.marks.items()
            for each in paragraph(text, width, indent="      ", first=f"  {mark} ", style="dim")
        ]


def link_text(link: Link | None, notes: Notes) -> list[Span]:
    """`Gen5 x16`, and what is not as it could be: `Gen5 x8 of x16`, `Gen1 x16 of Gen4 (a)`."""
    if link is None:
        return []
    speed, width, most, widest = link.speed_gt_s, link.width, link.max_speed_gt_s, link.max_width
    conclusive = link.quality.state == "conclusive"
    told = f"{generation(speed)} x{width if width is not None else '?'}"
    if speed is None and width is None:
        told = "asleep" if link.quality.state == "asleep" else "link ?"
    lacks = [
        generation(most) if most and speed and speed < most else "",
        f"x{widest}" if widest and width and width < widest else "",
    ]
    less = " ".join(each for each in lacks if each)
    told += f" of {less}" if less else ""
    if conclusive:
        return [(told, "warning" if less else "")]
    return [(told, ""), (f" {notes.mark(link.quality)}", "dim")]


def generation(speed: float | None) -> str:
    """PCIe generation of a lane's rate in GT/s.

    >>> generation(32.0), generation(None)
    ('Gen5', 'Gen?')
    """
    return f"Gen{GENERATION[speed]}" if speed in GENERATION else f"{speed:g}GT/s" if speed else "Gen?"


def _letters(number: int) -> str:
    return chr(ord("a") + number) if number < 26 else f"a{number}"
