"""What the codes of a rule mean that judges what drivers, services and tools state: the rows of `meanings/RULE.md`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping

import msgspec

_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "meanings")
_ENTRY = r"(?m)^- (.*(?:\n  .*)*)"
_ROW = r"`([a-z0-9-]+)` \(([^()]*)\): (.*)"
_MARKS = frozenset({"start", "hint", "kernel", "words"})
_IN_BRACES = r"{(\w+)}"


class Meaning(msgspec.Struct, frozen=True):
    """What one code means. `steps`: the part of the rule's page that has its steps, where it is not the code's own."""

    severity: str
    confidence: str
    title: str
    impact: str = "The device cannot be used by jobs."
    steps: str = ""
    marks: frozenset[str] = frozenset()

    @property
    def of_start(self) -> bool:
        """Whether it is over where the driver or service works now."""
        return "start" in self.marks

    @property
    def alone(self) -> bool:
        """Whether it states why; one that does not counts where nothing else explains the failure."""
        return "hint" not in self.marks


def read_meanings(rule: str) -> dict[str, Meaning]:
    """The rows of a rule's page of meanings, in their order; words in braces stand for an impact of several rows."""
    with open(os.path.join(_FOLDER, f"{rule}.md"), encoding="utf-8") as file:
        entries = [" ".join(entry.split()) for entry in re.findall(_ENTRY, file.read())]
    rows = [match.groups() for entry in entries if (match := re.fullmatch(_ROW, entry))]
    shared = dict(entry.split(": ", 1) for entry in entries if not entry.startswith("`"))
    return {code: _parse_row(words.split(", "), text.format_map(shared)) for code, words, text in rows}


def _parse_row(words: list[str], text: str) -> Meaning:
    severity, confidence, *others = words
    marks = _MARKS.intersection(others)
    steps = next((word for word in others if word not in marks), "")
    title, _, impact = text.partition(" | ")
    meaning = Meaning(severity, confidence, title, steps=steps, marks=marks)
    return msgspec.structs.replace(meaning, impact=impact) if impact else meaning


def fill_forms(detail: Mapping[str, str], forms: Iterable[str]) -> list[str]:
    """What a line states beside its code: each form with the words in braces that the line has, else none; of
    "FORM | FORM" the first.

    >>> fill_forms({"link": "3", "error": "-5"}, ("NVLink {link}", "{name} of {bus} | error {error}", "CPU {cpu}"))
    ['NVLink 3', 'error -5']
    """
    texts = []
    for choices in forms:
        fitting = (form for form in choices.split(" | ") if detail.keys() >= set(re.findall(_IN_BRACES, form)))
        texts.append(next(fitting, "").format_map(detail))
    return [text for text in texts if text]
