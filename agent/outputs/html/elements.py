"""Elements of pages and pictures. All untrusted text (names, firmware strings) is cleaned here."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from agent.outputs.text.lines import clean

LIMIT = 900  # characters of one text; firmware strings may be very long
Child = Element | str | None


def el(tag: str, *children: Child, **attributes: object) -> Element:
    """Make an element with text and children; `class_` becomes class, `aria_label` aria-label. None is omitted.

    >>> from xml.etree.ElementTree import tostring
    >>> tostring(el("a", "x<y", el("b"), "z", class_="k", data_id=1, href=None))
    b'<a class="k" data-id="1">x&lt;y<b />z</a>'
    """
    attribute_texts = {
        name.rstrip("_").replace("_", "-"): to_text(value) for name, value in attributes.items() if value is not None
    }
    element = Element(tag, attribute_texts)
    last: Element | None = None
    for child in children:
        if isinstance(child, Element):
            element.append(child)
            last = child
        elif child and last is None:
            element.text = (element.text or "") + to_text(child)
        elif child and last is not None:
            last.tail = (last.tail or "") + to_text(child)
    return element


def to_text(value: object) -> str:
    """Format a number in its shortest form; clean a text and limit its length.

    >>> to_text(12.0), to_text(1.25), to_text("a\\x1b")
    ('12', '1.25', 'a?')
    """
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".")
    text = clean(str(value))
    return text if len(text) <= LIMIT else text[: LIMIT - 1] + "…"
