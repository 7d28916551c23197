"""Rules in words: a name of a rule on the page opens why the rule matters, how to confirm it and how to fix it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree.ElementTree import Element

from agent.outputs.html.elements import Child, el
from agent.rules import pages

SECTIONS = ("Why it matters", "How to confirm", "How to fix")
_CODE = re.compile(r"`([^`]+)`")
_ENTRY = re.compile(r"(?:^|\n)(?:- |\d+\. )")
_PLACEHOLDER = re.compile(
    r"\b(ADDRESS|PORT_ABOVE|INTERFACE|DEVICE|PORT_NUMBER|GPU_INDEX|FAR_END|PORT|GUID|RULE)\b|\.\."
)


class RuleLinks:
    """Makes links to panels, and then the panels of the rules that were named."""

    def __init__(self) -> None:
        self._known = pages.page_paths()
        self._named: dict[str, None] = {}

    def link(self, rule: str) -> Element:
        """The rule's name, linked to its panel; plain for a rule that this version does not have."""
        if rule not in self._known:
            return el("code", rule, class_="rule")
        self._named[rule] = None
        return el("a", el("code", rule), href=f"#r-{rule}", class_="rule")

    def link_words(self, text: str) -> list[Child]:
        """A text, with the names of rules in it linked."""
        words = re.split(r"((?<![a-z0-9])[a-z0-9]+(?:-[a-z0-9]+)+)", text)
        return [self.link(word) if word in self._known else word for word in words]

    def panels(self) -> list[Element]:
        """One panel per rule that the page names, sorted."""
        return [_render_panel(rule) for rule in sorted(self._named)]


def _render_panel(rule: str) -> Element:
    title, _, text = pages.read_text(rule).partition("\n")
    sections = dict(part.split("\n", 1) for part in text.split("\n## ")[1:])
    shown = [
        part for name in SECTIONS if name in sections for part in (el("h4", name), *render_markdown(sections[name]))
    ]
    body = el("div", el("p", el("code", rule), class_="dim"), *shown, class_="body")
    return el("section", el("h3", *render_inline(title.rstrip("."))), body, class_="rule-panel", id=f"r-{rule}")


def render_markdown(text: str) -> Iterator[Element]:
    """Paragraphs, lists of `- ` or `1. ` with lists in them, and code: all that the pages of rules have."""
    for block in text.strip().split("\n\n"):
        if _ENTRY.match(block):
            entries = _ENTRY.split(block)[1:]
            yield el("ul" if block.startswith("- ") else "ol", *map(_render_entry, entries))
        else:
            yield el("p", *render_inline(block))


def render_command(command: str) -> Element:
    """A command with a button that copies it."""
    button = el("button", "Copy", type="button", class_="copy scripted", aria_label=f"Copy: {command}")
    return el("span", el("code", command), button, class_="command")


def render_inline(text: str) -> list[Child]:
    """A text whose code is marked; a command that can be run as it is can be copied."""
    parts: list[Child] = []
    for number, part in enumerate(_CODE.split(" ".join(text.split()))):
        if number % 2 == 0:
            parts.append(part)
        else:
            parts.append(render_command(part) if " " in part and not _PLACEHOLDER.search(part) else el("code", part))
    return parts


def _render_entry(entry: str) -> Element:
    first, *inner = re.split(r"\n +- ", entry)
    below = el("ul", *[el("li", *render_inline(line)) for line in inner], class_="outcomes") if inner else None
    return el("li", *render_inline(first), below)
