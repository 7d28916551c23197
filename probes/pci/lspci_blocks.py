"""An lspci output cut into functions and their fields, as printed.

Indentation is not used: mail and web pages lose it. A line that opens no field goes on with the field before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_HEAD = re.compile(r"[>\s]{0,40}(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}:[0-9a-f]{2}\.[0-7])(?:\s+(\S.*))?\s*")
_HEX = re.compile(r"[>\s]{0,40}([0-9a-f]{2,3}): ((?:[0-9a-f]{2}\s){0,15}[0-9a-f]{2})\s*")
_FIELD = re.compile(r"([A-Z][A-Za-z0-9/ -]{0,30}):(?:\s+|$)|(Expansion ROM|\[virtual\]|!!!)")
_LONGEST_FIELD = 4096
_MARGIN = "> \t\r\n"

_CAPABILITY = re.compile(r"\[([0-9a-f]{2,3})(?: v\d{1,2})?\]\s+")


@dataclass(slots=True)
class Block:
    """The lines of one function."""

    address: str
    head: str
    fields: dict[str, list[str]] = field(default_factory=dict)  # name -> its texts, in order
    data: bytearray = field(default_factory=bytearray)
    closed: bool = False  # it was printed to its end: another function, its driver or its bytes come after it

    def first(self, name: str) -> str:
        """The text of a field where it stands first; "" where it does not stand."""
        texts = self.fields.get(name)
        return texts[0] if texts else ""

    def texts_of(self, name: str) -> list[str]:
        """Where the texts of a field go. The regions of virtual functions are called as the function's own are."""
        virtual = name.startswith("Region") and "Capabilities" in self.fields
        return self.fields.setdefault(f"VF {name}" if virtual else name, [])

    def add_bytes(self, offset: int, row: bytes) -> None:
        """Rows follow each other; what comes after a gap is left out."""
        if offset == len(self.data):
            self.data += row
        self.closed = True

    def capabilities(self) -> list[str]:
        """What stands after "Capabilities: [60] "."""
        return [_CAPABILITY.sub("", text, count=1) for text in self.fields.get("Capabilities", ())]


def blocks(text: str) -> Iterator[Block]:
    """Every function of an output. A line opens one by an address and a blank; bytes are rows as "10: 00 ff".

    >>> [(block.address, block.first("NUMA node")) for block in blocks("19:00.0 Bridge: X\\n\\tNUMA node: 1")]
    [('0000:19:00.0', '1')]
    """
    block: Block | None = None
    texts: list[str] | None = None  # of the field that is open
    for line in text.splitlines():
        head = _HEAD.fullmatch(line)
        if head is not None:
            if block is not None:
                block.closed = True
                yield block
            domain, rest, words = head.groups()
            block, texts = Block(f"{domain or '0000'}:{rest}", words or ""), None
            continue
        if block is None:
            continue
        row = _HEX.fullmatch(line)
        if row is not None:
            block.add_bytes(int(row.group(1), 16), bytes.fromhex(row.group(2)))
            continue
        words = line.lstrip(_MARGIN).rstrip()
        opened = _FIELD.match(words)
        if opened is not None:
            texts = block.texts_of(opened.group(1) or opened.group(2))
            texts.append(words[opened.end() :])
        elif words and texts is not None:
            texts[-1] = _longer(texts[-1], words)
        elif words:
            block.head = _longer(block.head, words)
    if block is not None:
        block.closed = block.closed or "Kernel driver in use" in block.fields or "Kernel modules" in block.fields
        yield block


def _longer(text: str, words: str) -> str:
    """A wrapped line goes on, up to more than any field of lspci is long: the cost stays linear."""
    return f"{text} {words}" if len(text) < _LONGEST_FIELD else text
