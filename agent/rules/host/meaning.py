"""The shape of what a sentence of a driver or service means, and of a code of a tool's output."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import msgspec

_IN_BRACES = re.compile(r"{(\w+)}")


class Meaning(msgspec.Struct, frozen=True):
    """What one sentence means."""

    severity: str
    title: str
    impact: str = "The device cannot be used by jobs."
    of_start: bool = True  # over where the driver drives the device now
    confidence: str = "high"
    alone: bool = True  # False: it states that, and not why; it counts where nothing else explains the failure


class ToolMeaning(msgspec.Struct, frozen=True):
    """What one code means. `steps`: the part of the page that has its steps."""

    severity: str
    title: str
    impact: str
    steps: str
    confidence: str = "medium"


def fill_forms(detail: Mapping[str, str], forms: Iterable[str]) -> list[str]:
    """What a line states beside its code: each form with the words in braces that the line has, else none; of
    "FORM | FORM" the first.

    >>> fill_forms({"link": "3", "error": "-5"}, ("NVLink {link}", "{name} of {bus} | error {error}", "CPU {cpu}"))
    ['NVLink 3', 'error -5']
    """
    texts = []
    for choices in forms:
        fitting = (form for form in choices.split(" | ") if detail.keys() >= set(_IN_BRACES.findall(form)))
        texts.append(next(fitting, "").format_map(detail))
    return [text for text in texts if text]
