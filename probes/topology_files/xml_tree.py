"""XML text -> elements, within stated bounds. A DOCTYPE is accepted and never followed; entities are refused.

A file that states more than one machine can hold is refused: it would cost more than it shows, as every GPU has a way
to every NIC.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from xml.parsers import expat

from probes.named_tuple import NamedTuple
from probes.pci.facts import PciFunction
from probes.text import ParseError, require

FUNCTIONS_LIMIT = 16_384
GPUS_LIMIT = 128  # the largest machines have 16, and display chips of their boards
NICS_LIMIT = 4096  # with virtual functions


def check(functions: Collection[PciFunction]) -> None:
    """Raises ParseError for more than one machine can hold."""
    gpus = sum(is_gpu(function.class_code) for function in functions)
    nics = sum((function.class_code or "").startswith("0x02") for function in functions)
    if len(functions) > FUNCTIONS_LIMIT or gpus > GPUS_LIMIT or nics > NICS_LIMIT:
        raise ParseError(
            f"more than one machine holds: {len(functions)} PCI functions, {gpus} GPUs, {nics} network functions"
        )


def is_gpu(class_code: str | None) -> bool:
    """Whether a class is that of display controllers or of processing accelerators.

    >>> is_gpu("0x030200"), is_gpu("0x120000"), is_gpu("0x020700")
    (True, True, False)
    """
    return (class_code or "").startswith(("0x03", "0x12"))


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
    """The document's element, which must be a `root`. Raises ParseError.

    >>> parse(b'<!DOCTYPE topology SYSTEM "hwloc2.dtd"><topology version="2.0"/>', "topology").said("version")
    '2.0'
    """
    require(len(content) <= LIMIT_BYTES, f"longer than {LIMIT_BYTES >> 20} MiB")
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
        raise ParseError(f"not XML: {error}") from None
    if growing.document is None:
        raise ParseError("not XML: no element")
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
            raise ParseError(f"more than {ELEMENTS_LIMIT:,} elements")
        if len(self.open) >= DEPTH_LIMIT:
            raise ParseError(f"elements nested more than {DEPTH_LIMIT} deep")
        if len(attributes) > ATTRIBUTES_LIMIT:
            raise ParseError(f"an element with more than {ATTRIBUTES_LIMIT} attributes")
        element = Element(tag, attributes, [], [])
        if self.open:
            self.open[-1].children.append(element)
        elif tag != self.root:
            raise ParseError(f"its element is <{tag[:40]}>, not <{self.root}>")
        else:
            self.document = element
        self.open.append(element)

    def end(self, _: str) -> None:
        self.open.pop()

    def text(self, text: str) -> None:
        if not text.isspace():
            self.open[-1].words.append(text)

    def refuse(self, name: str, *_: object) -> None:
        raise ParseError(f"it declares or uses an entity ({name[:40]!r})")
