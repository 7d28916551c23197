"""The frame of every page: one file that loads nothing, with its own style and script and no other."""

from __future__ import annotations

import base64
import hashlib
from pkgutil import get_data
from xml.etree.ElementTree import Element, tostring

from agent.outputs.html.elements import el


def write_document(title: str, style: str, body: Element, script: str = "") -> str:
    """HTML 5; the same bytes for the same body."""
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", http_equiv="Content-Security-Policy", content=format_policy(style, script)),
        el("title", f"{title} - fabricscope"),
        _make_raw("style", style),
    )
    body.extend([_make_raw("script", script)] if script else [])
    return "<!DOCTYPE html>\n" + tostring(el("html", head, body, lang="en"), encoding="unicode", method="html") + "\n"


def read_styles(*names: str) -> str:
    """Style sheets that pages share."""
    return "".join((get_data(__package__ or "", name) or b"").decode() for name in names)


def format_policy(style: str, script: str = "") -> str:
    """Nothing is loaded and nothing runs but this style and this script, whatever a name in the data contains."""
    own = f"style-src {_hash(style)}; " + (f"script-src {_hash(script)}; " if script else "")
    return f"default-src 'none'; {own}base-uri 'none'; form-action 'none'"


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _make_raw(tag: str, text: str) -> Element:
    """Our own style or script, which `method="html"` writes unescaped."""
    element = Element(tag)
    element.text = text
    return element
