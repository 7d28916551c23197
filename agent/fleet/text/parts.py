"""What all answers in words are made of."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from agent.outputs.text.lines import Line, clean, join_cells, make_line, wrap_paragraph

STYLES = {word: word for word in ("critical", "error", "warning", "info", "ok")} | {"stale": "warning"}
FLEET_HISTORY = "from the fleet's history"  # of findings that the fleet made of two reports
_ROOM = 240  # letters of a host list in an answer; the rest is in JSON and CSV


def number(count: int) -> str:
    """
    >>> number(12345)
    '12,345'
    """
    return f"{count:,}"


def count(many: int, one: str) -> str:
    """
    >>> count(1, "node"), count(1200, "node"), count(2, "class"), count(2, "switch")
    ('1 node', '1,200 nodes', '2 classes', '2 switches')
    """
    if many == 1:
        return f"1 {one}"
    if one.endswith("y"):
        return f"{number(many)} {one[:-1]}ies"
    return f"{number(many)} {one}{'es' if one.endswith(('s', 'ch')) else 's'}"


def name_asked(nodes: int, switches: int) -> str:
    """
    >>> name_asked(8, 0), name_asked(8, 1), name_asked(0, 2)
    ('8 nodes', '8 nodes and 1 switch', '2 switches')
    """
    asked = [count(nodes, "node")] if nodes or not switches else []
    return " and ".join([*asked, *([count(switches, "switch")] if switches else [])])


def share(part: int, whole: int) -> str:
    """In percent; all is 100%, and nothing else is.

    >>> share(1, 1), share(9999, 10000), share(99999, 100000), share(1, 3)
    ('100%', '99.9%', '99.9%', '33%')
    """
    if not whole:
        return "0%"
    percent = 100 * part / whole
    if part == whole or percent < 99:
        return f"{percent:.0f}%" if percent >= 1 or not part else "under 1%"
    return f"{int(percent * 10) / 10}%"


def hosts(folded: str, nodes: int, room: int = _ROOM) -> str:
    """A folded host list, cut where it is too long for a reader.

    >>> hosts("gpu[001,003,005]", 3, 12)
    'gpu[001,003,..] (3 nodes)'
    """
    if len(folded) <= room:
        return folded
    cut = folded.rfind(",", 0, room)
    start = folded[: cut if cut > 0 else room]
    return f"{start},..{']' if start.count('[') > start.count(']') else ''} ({count(nodes, 'node')})"


def wrap_item(text: str, width: int, indent: str = "    ", first: str = "  ", style: str = "") -> list[Line]:
    """One answer; a word that is longer than a line (a host list) is broken at a comma."""
    room = max(width, 40) - len(indent)
    return wrap_paragraph(
        " ".join(_break_word(word, room) for word in clean(text).split()), width, indent, style, first
    )


def split_steps(remedy: str) -> list[str]:
    """The steps of a fix, which a report has as one text with numbers.

    >>> split_steps("1. Drain the node. 2. Update to version 2. 3. Done."), split_steps("Reseat the card.")
    (['Drain the node.', 'Update to version 2.', 'Done.'], ['Reseat the card.'])
    """
    steps = [remedy.removeprefix("1. ")]
    while remedy.startswith("1. ") and (mark := f" {len(steps) + 1}. ") in steps[-1]:
        steps[-1:] = steps[-1].split(mark, 1)
    return steps


def table(head: Sequence[str], rows: Sequence[Sequence[str]], width: int, left: int = 1) -> list[Line]:
    """Columns; the first `left` are texts, and the last of these is folded where the line is too short."""
    if not rows:
        return []
    cells = [[clean(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(head, *cells, strict=True)]
    numbers = range(left, len(head))
    over = sum(widths) + 2 * len(widths) - width
    if over > 0:
        widths[left - 1] = max(16, widths[left - 1] - over)
    lines = [make_line((f"  {join_cells(head, widths, numbers)}", "dim"))]
    for row in cells:
        text = row[left - 1]
        if len(text) > widths[left - 1]:
            text = " ".join(_break_word(word, widths[left - 1] - 2) for word in text.split())
        folded = textwrap.wrap(text, widths[left - 1], subsequent_indent="  ") or [""]
        lines.append(make_line(f"  {join_cells([*row[: left - 1], folded[0], *row[left:]], widths, numbers)}"))
        before = " " * (2 + sum(width + 2 for width in widths[: left - 1]))
        lines += [make_line(before + rest) for rest in folded[1:]]
    return lines


def _break_word(word: str, room: int) -> str:
    """
    >>> _break_word("gpu[001,003,005]", 12)
    'gpu[001,003, 005]'
    """
    parts = []
    while len(word) > room:
        cut = word.rfind(",", 0, room) + 1
        if not cut:
            break
        parts.append(word[:cut])
        word = word[cut:]
    return " ".join([*parts, word])
