"""Outputs of tools as tables: a `Layout` states the headings, labels and types of an output, one reader reads them all.

An output is lines of a label, a separator and a value, in sections below headings (`Port 1:`), and rows of a form of
their own. Headings are known by their form, not by indentation: mail programs lose it. `read_words` is for outputs that
print many labels and values on a line, `read_tree` for those whose sections their indentation marks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import Any

from probes.named_tuple import NamedTuple
from probes.text import lazy_pattern, text_or_none

DEEPEST = 16  # sections of a tree in each other: what lies deeper is left out


def read_switch(text: str) -> bool | None:
    """On or off."""
    return {"on": True, "off": False}.get(text.lower())


class Field(NamedTuple):
    """A fact, and how the text behind its label becomes its value: None for one that is no such value."""

    name: str
    read: Callable[[str], Any] = text_or_none


class Layout(NamedTuple):
    """An output, or a section of it. Patterns are of a whole line without its margin."""

    fields: Mapping[str, Field] = {}  # by label; groups of the heading that have a name count as labels
    heading: re.Pattern[str] | None = None  # begins the section; None: the whole text
    row: re.Pattern[str] | None = None  # a line of the section that is no label and value
    inner: Layout | None = None  # the sections in it
    separator: str = ":"
    whole: re.Pattern[str] | None = None  # a last line without its end that is not cut; None: each is taken
    resumed: bool = False  # a section that comes again goes on; else the later one counts
    wrapped: bool = False  # a line without a separator goes on with the value above


_DRAWN = Layout(whole=lazy_pattern(r".*[|+]"))  # a table whose lines have an end of their own


class Block:
    """What the text has of a section."""

    def __init__(self, layout: Layout, heading: re.Match[str] | None = None) -> None:
        groups = heading.groupdict() if heading else {}
        self.layout = layout
        self.texts: dict[str, str] = {label: text for label, text in groups.items() if text is not None}
        self.rows: list[re.Match[str]] = []
        self.sections: dict[tuple[str | None, ...], Block] = {}  # by the groups of their headings

    def values(self) -> dict[str, Any]:
        """Every fact of the layout that the text states, by its name."""
        values: dict[str, Any] = {}
        for label, text in self.texts.items():
            field = self.layout.fields.get(label)
            if field is not None and field.name not in values and (value := field.read(text)) is not None:
                values[field.name] = value
        return values


def read_layout(layout: Layout, text: str) -> Block:
    r"""The text as its layout has it. Of a label that comes twice in a section, the first.

    >>> port = Layout({"state": Field("up", read_switch), "n": Field("n", int)}, re.compile(r"Port (?P<n>\d):"))
    >>> [part.values() for part in read_layout(Layout(inner=port), "Port 1:\n state: on\nPort 2:\n").sections.values()]
    [{'n': 1, 'up': True}, {'n': 2}]
    """
    path = [Block(layout)]
    last = ""
    for line in complete_lines(layout, text):
        bare = line.strip()
        begun = _begin(path, bare)
        if begun is not None:
            path, last = begun, ""
            continue
        block = path[-1]
        if block.layout.row is not None and (row := block.layout.row.fullmatch(bare)):
            block.rows.append(row)
            continue
        label, separator, value = bare.partition(layout.separator)
        if separator:
            label = label.strip()
            last = "" if label in block.texts else label
            block.texts.setdefault(label, value.strip())
        elif layout.wrapped and last:
            block.texts[last] += f" {bare}"
    return path[0]


def _begin(path: list[Block], bare: str) -> list[Block] | None:
    """The sections that are open below this heading, from the outermost; None where the line is none."""
    for depth, block in enumerate(path, 1):
        inner = block.layout.inner
        if inner is None or inner.heading is None or (heading := inner.heading.fullmatch(bare)) is None:
            continue
        key = heading.groups()
        if key not in block.sections or not path[0].layout.resumed:
            block.sections[key] = Block(inner, heading)
        return [*path[:depth], block.sections[key]]
    return None


def complete_lines(layout: Layout, text: str) -> list[str]:
    """All lines but a last one that may be cut within."""
    lines, rest = whole_lines(text)
    return [*lines, rest] if rest and (layout.whole is None or layout.whole.fullmatch(rest.strip())) else lines


def whole_lines(text: str) -> tuple[list[str], str]:
    r"""The lines that a line feed ends, and the rest: the last line of a text that may have been cut within it.

    >>> whole_lines("Rate: 56\nBase lid: 3")
    (['Rate: 56'], 'Base lid: 3')
    """
    lines = text.splitlines()
    if not lines or text.endswith(("\n", "\r")):
        return lines, ""
    return lines[:-1], lines[-1]


def list_cells(text: str) -> list[list[str]]:
    r"""The cells of each line of a table that is drawn with `|`; a last line that is cut has none.

    >>> list_cells("+---+---+\n| 0 | OK |\n| 1 | O")
    [['0', 'OK']]
    """
    lines = (line.strip() for line in complete_lines(_DRAWN, text))
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]


def read_words(layout: Layout, words: Iterable[str]) -> Block:
    """Labels and values with only blanks between them: a word behind a label is its value, unless it is a label.

    >>> read_words(Layout({"mtu": Field("mtu", int), "state": Field("state")}), "mtu 9000 state UP".split()).values()
    {'mtu': 9000, 'state': 'UP'}
    """
    block = Block(layout)
    for label, value in pairwise(words):
        if label in layout.fields and value not in layout.fields:
            block.texts.setdefault(label, value)
    return block


class Node(NamedTuple):
    """A line of a tree, and the lines below it that are more indented."""

    label: str
    text: str
    nodes: list[Node]


def read_tree(text: str) -> list[Node]:
    r"""Labels and values whose sections the indentation alone marks. Lines without a label are left out.

    >>> read_tree("GPU: 0\n    BUS:\n        BDF: 0000:0a:00.0\nGPU: 1\n")[0].nodes[0].nodes
    [Node(label='BDF', text='0000:0a:00.0', nodes=[])]
    """
    top: list[Node] = []
    path: list[tuple[int, list[Node]]] = [(-1, top)]
    for line in text.splitlines():
        label, found, value = line.strip().partition(":")
        if not found or not label:
            continue
        indent = len(line) - len(line.lstrip())
        while path[-1][0] >= indent:
            path.pop()
        if len(path) <= DEEPEST:
            node = Node(label.strip(), value.strip(), [])
            path[-1][1].append(node)
            path.append((indent, node.nodes))
    return top
