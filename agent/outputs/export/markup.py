"""XML elements, written the way that the strictest reader we know takes them: NCCL's, which is no XML parser.

It wants no declaration, attributes and closing marks behind single blanks, and no "=" before the first blank of a
comment; it reads no entities. What other readers want is met, too: escaped values, no "--" in a comment.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"})


class Comment(NamedTuple):
    """A line for people."""

    text: str


class Element(NamedTuple):
    """One element; children may be added until it is written."""

    tag: str
    attributes: Mapping[str, str]
    children: list[Element | Comment]
    text: str = ""


def element(tag: str, attributes: Mapping[str, str] | None = None, text: str = "") -> Element:
    """An element without children yet."""
    return Element(tag, attributes or {}, [], text)


def written(root: Element) -> str:
    """The whole document."""
    return "\n".join(_lines(root, "")) + "\n"


def escaped(text: str) -> str:
    r"""Text or a value. What XML 1.0 cannot hold (most control characters, lone surrogates) becomes "?".

    >>> escaped('<a b="1">\x1b\ud800')
    '&lt;a b=&quot;1&quot;&gt;??'
    """
    return "".join(c if _can_stand(c) else "?" for c in text).translate(_ENTITIES)


def _can_stand(character: str) -> bool:
    return character == "\n" or (character >= " " and not "\ud800" <= character <= "\udfff" and character < "\ufffe")


def _lines(node: Element | Comment, indent: str) -> Iterator[str]:
    if isinstance(node, Comment):
        yield f"{indent}<!-- {_comment(node.text)} -->"
        return
    attributes = "".join(f' {name}="{escaped(value)}"' for name, value in node.attributes.items())
    if not node.children and not node.text:
        yield f"{indent}<{node.tag}{attributes}/>"
        return
    if node.text:
        yield f"{indent}<{node.tag}{attributes}>{escaped(node.text)}</{node.tag}>"
        return
    yield f"{indent}<{node.tag}{attributes}>"
    for child in node.children:
        yield from _lines(child, indent + "  ")
    yield f"{indent}</{node.tag}>"


def _comment(text: str) -> str:
    """
    >>> _comment("a --> b-")
    'a - > b- '
    """
    said = "".join(c if _can_stand(c) and c != "\n" else "?" for c in text)
    while "--" in said:
        said = said.replace("--", "- ")
    return said + " " if said.endswith("-") else said
