"""The page of a rule, and lists of rules, for a terminal: folded to its width."""

from __future__ import annotations

import re
from collections.abc import Sequence

from agent.outputs.text.lines import BLANK, Line, make_heading, make_line, wrap_paragraph

_ITEM = re.compile(r" *(?:[-*]|\d+\.) +")
_HEADING = re.compile(r"#+ +")


def fold_page(page: str, width: int) -> list[Line]:
    """Markdown of headings, paragraphs and lists, as the pages have it; code keeps its marks."""
    lines: list[Line] = []
    for block in _join_blocks(page.splitlines()):
        heading = _HEADING.match(block)
        if heading:
            lines.append(make_heading(block[heading.end() :]))
        elif block:
            item = _ITEM.match(block)
            mark = item[0] if item else ""
            lines += wrap_paragraph(block[len(mark) :], width, indent=" " * len(mark), first=mark)
        else:
            lines.append(BLANK)
    return lines


def _join_blocks(lines: Sequence[str]) -> list[str]:
    """One line for each heading, paragraph and item; empty ones between them."""
    blocks: list[str] = []
    ended = True
    for line in lines:
        begins = ended or not line.strip() or _ITEM.match(line) or _HEADING.match(line)
        if begins:
            blocks.append(line.rstrip())
        else:
            blocks[-1] += f" {line.strip()}"
        ended = not line.strip() or bool(_HEADING.match(line))
    return blocks


def list_rules(rows: Sequence[tuple[str, str, bool, str]], width: int) -> list[Line]:
    """Of (name, severity, whether essential, title): in columns, or where these are too wide with titles below."""
    wide = max(len(name) for name, *_ in rows)
    columns = [
        (f"{name:{wide}}  {severity:8}  {'essential' if essential else '':9}  ", severity, title)
        for name, severity, essential, title in rows
    ]
    if all(len(left) + len(title) <= width for left, _, title in columns):
        return [make_line(left, title) for left, _, title in columns]
    lines: list[Line] = []
    for name, severity, essential, title in rows:
        marks = f"{severity}, essential" if essential else severity
        lines.append(make_line(name, "  ", (marks, severity)))
        lines += wrap_paragraph(title, width, indent="    ", style="dim")
    return lines
