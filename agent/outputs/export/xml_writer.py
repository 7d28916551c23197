"""Writes XML for the strictest known reader: NCCL's, which is not a full XML parser.

It requires no declaration, single blanks before attributes and closing marks, and no "=" before the first blank of a
comment; it does not decode entities. Other readers' requirements are met too: escaped values, no "--" in a comment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"})


class XmlComment(NamedTuple):
    """A comment line."""

    text: str


class XmlElement(NamedTuple):
    """One element; children may be added until it is written."""

    tag: str
    attributes: Mapping[str, str]
    children: list[XmlElement | XmlComment]
    text: str = ""


def make_element(
    tag: str, attributes: Mapping[str, str] | None = None, text: str = "", children: Iterable[XmlElement] = ()
) -> XmlElement:
    """One element."""
    return XmlElement(tag, attributes or {}, list(children), text)


def write_xml(root: XmlElement) -> str:
    """Format the document."""
    return "\n".join(_format_lines(root, "")) + "\n"


def escape_xml(text: str) -> str:
    r"""Escape a text or value. Characters invalid in XML 1.0 (most control characters, lone surrogates) become "?".

    >>> escape_xml('<a b="1">\x1b\ud800')
    '&lt;a b=&quot;1&quot;&gt;??'
    """
    return "".join(c if _is_valid(c) else "?" for c in text).translate(_ENTITIES)


def _is_valid(character: str) -> bool:
    return character == "\n" or (character >= " " and not "\ud800" <= character <= "\udfff" and character < "\ufffe")


def _format_lines(node: XmlElement | XmlComment, indent: str) -> Iterator[str]:
    if isinstance(node, XmlComment):
        yield f"{indent}<!-- {_clean_comment(node.text)} -->"
        return
    attributes = "".join(f' {name}="{escape_xml(value)}"' for name, value in node.attributes.items())
    if not node.children and not node.text:
        yield f"{indent}<{node.tag}{attributes}/>"
        return
    if node.text:
        yield f"{indent}<{node.tag}{attributes}>{escape_xml(node.text)}</{node.tag}>"
        return
    yield f"{indent}<{node.tag}{attributes}>"
    for child in node.children:
        yield from _format_lines(child, indent + "  ")
    yield f"{indent}</{node.tag}>"


def _clean_comment(text: str) -> str:
    """
    >>> _clean_comment("a --> b-")
    'a - > b- '
    """
    cleaned = "".join(c if _is_valid(c) and c != "\n" else "?" for c in text)
    while "--" in cleaned:
        cleaned = cleaned.replace("--", "- ")
    return cleaned + " " if cleaned.endswith("-") else cleaned
