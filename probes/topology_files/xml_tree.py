"""XML text -> elements, within stated bounds. A DOCTYPE is accepted and never followed; entities are refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple
from xml.parsers import expat

from probes.text import Unparsable

LIMIT_BYTES = 16 << 20
ELEMENTS_LIMIT = 200_000  # lstopo writes some 20 for each processor
DEPTH_LIMIT = 64  # packages, groups, caches and cores, or bridges below bridges
ATTRIBUTES_LIMIT = 64


class Element(NamedTuple):
    """One element. `words`: its own text, in pieces."""

    tag: str
    attributes: Mapping[str, str]
    children: list[Element]
    words: list[str]

    def each(self, tag: str) -> Iterator[Element]:
        """Its children of one name."""
        return (child for child in self.children if child.tag == tag)

    def said(self, name: str) -> str | None:
        """An attribute without blanks around it; None where it is not there, or empty."""
        return self.attributes.get(name, "").strip() or None


def parse(content: bytes, root: str) -> Element:
    """The document's element, which must be a `root`. Raises Unparsable.

    >>> parse(b'<!DOCTYPE topology SYSTEM "hwloc2.dtd"><topology version="2.0"/>', "topology").said("version")
    '2.0'
    """
    if len(content) > LIMIT_BYTES:
        raise Unparsable(f"longer than {LIMIT_BYTES >> 20} MiB")
    growing = _Growing(root)
    parser = expat.ParserCreate(encoding="utf-8")  # what it declares itself would be looked up among Python's codecs
    parser.buffer_text = True
    parser.StartElementHandler = growing.start
    parser.EndElementHandler = growing.end
    parser.CharacterDataHandler = growing.text
    parser.EntityDeclHandler = growing.refuse
    parser.SkippedEntityHandler = growing.refuse
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        raise Unparsable(f"not XML: {error}") from None
    if growing.document is None:
        raise Unparsable("not XML: no element")
    return growing.document


class _Growing:
    """The tree while the parser walks through the text."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.document: Element | None = None
        self.open: list[Element] = []
        self.elements = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self.elements += 1
        if self.elements > ELEMENTS_LIMIT:
            raise Unparsable(f"more than {ELEMENTS_LIMIT:,} elements")
        if len(self.open) >= DEPTH_LIMIT:
            raise Unparsable(f"elements nested more than {DEPTH_LIMIT} deep")
        if len(attributes) > ATTRIBUTES_LIMIT:
            raise Unparsable(f"an element with more than {ATTRIBUTES_LIMIT} attributes")
        element = Element(tag, attributes, [], [])
        if self.open:
            self.open[-1].children.append(element)
        elif tag != self.root:
            raise Unparsable(f"its element is <{tag[:40]}>, not <{self.root}>")
        else:
            self.document = element
        self.open.append(element)

    def end(self, _: str) -> None:
        self.open.pop()

    def text(self, text: str) -> None:
        if not text.isspace():
            self.open[-1].words.append(text)

    def refuse(self, name: str, *_: object) -> None:
        raise Unparsable(f"it declares or uses an entity ({name[:40]!r})")
