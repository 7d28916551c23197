"""Elements of pages and pictures. Names and firmware strings are untrusted: everything goes through here."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from agent.outputs.text.lines import clean

LIMIT = 900  # characters of one text: what a firmware says may be a mile long
Child = Element | str | None


def el(tag: str, *children: Child, **attributes: object) -> Element:
    """An element with text and elements in it; `class_` is class, `aria_label` is aria-label. None is left out.

    >>> from xml.etree.ElementTree import tostring
    >>> tostring(el("a", "x<y", el("b"), "z", class_="k", data_id=1, href=None))
    b'<a class="k" data-id="1">x&lt;y<b />z</a>'
    """
    said = {name.rstrip("_").replace("_", "-"): told(value) for name, value in attributes.items() if value is not None}
    made = Element(tag, said)
    last: Element | None = None
    for child in children:
        if isinstance(child, Element):
            made.append(child)
            last = child
        elif child and last is None:
            made.text = (made.text or "") + told(child)
        elif child and last is not None:
            last.tail = (last.tail or "") + told(child)
    return made


def told(value: object) -> str:
    """A number in its shortest form; a text without what no page can hold.

    >>> told(12.0), told(1.25), told("a\\x1b")
    ('12', '1.25', 'a?')
    """
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".")
    text = clean(str(value))
    return text if len(text) <= LIMIT else text[: LIMIT - 1] + "…"
